/*
 * counters.c: the reader of the sampler.
 *
 * Each source has a file that stays open.  A reading that fails closes it; the
 * next attempt to open it is RETRY_READINGS readings later, so that a machine
 * without, say, /proc/pressure pays for it once a minute only.
 *
 * Invariants: after the first reading nothing is allocated, unless a file
 * outgrows the buffer (a CPU came), which then doubles, up to KA_FILE_MAX.  A
 * source that fails leaves all of its own fields unknown and the others alone.
 *
 * Locks: none; one KaReader belongs to one thread.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "counters.h"
#include "counters_procps.h"
#include "parse.h"
#include "path.h"

/* A minute at the default interval of the sampler. */
#define RETRY_READINGS 60

/* zoneinfo of two nodes and some dozen CPUs. */
#define FIRST_BUFFER 65536

const char *const ka_counter_file[KA_NSOURCES] = {
	[KA_SRC_VMSTAT] = "/proc/vmstat",
	[KA_SRC_MEMINFO] = "/proc/meminfo",
	[KA_SRC_DISKSTATS] = "/proc/diskstats",
	[KA_SRC_ZONEINFO] = "/proc/zoneinfo",
	[KA_SRC_BUDDYINFO] = "/proc/buddyinfo",
	[KA_SRC_PRESSURE] = "/proc/pressure/memory",
	[KA_SRC_HUGEPAGES] = "/sys/kernel/mm/hugepages",
};

typedef struct Source
{
	int			fd;				/* -1: not open, or libproc2 has it */
	int			error;			/* of the last reading */
	int			wait;			/* readings to skip before it is tried again */
} Source;

struct KaReader
{
	char	   *root;
	char	   *devices[2];
	int64_t		hugepage_size_bytes;	/* KA_UNKNOWN: the default size */
	Source		sources[KA_NSOURCES];
	KaProcps   *procps;			/* NULL: a copy is read */
	char	   *buffer;
	size_t		capacity;
};

KaReader *
ka_reader_new(const KaReaderConfig *config)
{
	const char *root = config->root ? config->root : "";
	KaReader   *reader = calloc(1, sizeof(*reader));

	if (reader == NULL)
		return NULL;
	for (int i = 0; i < KA_NSOURCES; i++)
		reader->sources[i].fd = -1;
	reader->hugepage_size_bytes = config->hugepage_size_bytes;
	reader->capacity = FIRST_BUFFER;
	reader->buffer = malloc(reader->capacity);
	reader->root = strdup(root);
	if (reader->buffer == NULL || reader->root == NULL)
		goto no_memory;
	for (int i = 0; i < 2; i++)
	{
		if (config->devices[i] == NULL)
			continue;
		reader->devices[i] = strdup(config->devices[i]);
		if (reader->devices[i] == NULL)
			goto no_memory;
	}
	if (root[0] == '\0')
	{
		reader->procps = ka_procps_new();
		if (reader->procps == NULL)
			goto no_memory;
	}
	return reader;

no_memory:
	ka_reader_free(reader);
	return NULL;
}

void
ka_reader_free(KaReader *reader)
{
	if (reader == NULL)
		return;
	for (int i = 0; i < KA_NSOURCES; i++)
	{
		if (reader->sources[i].fd >= 0)
			close(reader->sources[i].fd);
	}
	for (int i = 0; i < 2; i++)
		free(reader->devices[i]);
	ka_procps_free(reader->procps);
	free(reader->root);
	free(reader->buffer);
	free(reader);
}

/* The default huge page size, or KA_UNKNOWN without hugetlb. */
static int64_t
default_hugepage_size(const char *root)
{
	KaPath		path;
	int64_t		size = KA_UNKNOWN;

	ka_path_init(&path, root);
	if (ka_path_read(&path, "/proc/meminfo") == 0)
	{
		KaSpan		rest = ka_path_text(&path);

		while (rest.length > 0)
		{
			KaSpan		name;
			int64_t		value;

			if (ka_parse_meminfo_line(ka_next_line(&rest), &name, &value) &&
				ka_equals(name, "Hugepagesize"))
				size = ka_multiply(value, 1024);
		}
	}
	ka_path_free(&path);
	return size;
}

/* A descriptor or a negative errno. */
static int
open_source(const KaReader *reader, KaCounterSource source)
{
	char		name[KA_PATH_MAX];
	int64_t		size = reader->hugepage_size_bytes;

	if (source != KA_SRC_HUGEPAGES)
		return ka_path_open(reader->root, ka_counter_file[source], O_RDONLY);

	if (size == KA_UNKNOWN)
		size = default_hugepage_size(reader->root);
	if (size <= 0)
		return -ENOENT;
	snprintf(name, sizeof(name), "%s/hugepages-%lldkB/free_hugepages",
			 ka_counter_file[source], (long long) (size / 1024));
	return ka_path_open(reader->root, name, O_RDONLY);
}

/* The text of a source is in the buffer: its length, or a negative errno. */
static ssize_t
read_text(KaReader *reader, KaCounterSource source)
{
	Source	   *s = &reader->sources[source];

	if (s->fd < 0)
	{
		s->fd = open_source(reader, source);
		if (s->fd < 0)
			return s->fd;
	}
	for (;;)
	{
		ssize_t		length = ka_read_at_start(s->fd, reader->buffer, reader->capacity);
		char	   *larger;

		if (length != -EFBIG || reader->capacity >= KA_FILE_MAX)
			return length;
		larger = realloc(reader->buffer, reader->capacity * 2);
		if (larger == NULL)
			return -ENOMEM;
		reader->buffer = larger;
		reader->capacity *= 2;
	}
}

static bool
parse_text(const KaReader *reader, KaCounterSource source, size_t length, KaCounters *out)
{
	const char *text = reader->buffer;
	int64_t		zones;

	switch (source)
	{
		case KA_SRC_VMSTAT:
			return ka_parse_vmstat(text, length, out);
		case KA_SRC_MEMINFO:
			return ka_parse_meminfo(text, length, out);
		case KA_SRC_DISKSTATS:
			return ka_parse_diskstats(text, length, (const char *const *) reader->devices, out);
		case KA_SRC_ZONEINFO:
			return ka_parse_zoneinfo(text, length, &out->pcp_pages, &zones);
		case KA_SRC_BUDDYINFO:
			return ka_parse_buddyinfo(text, length, out);
		case KA_SRC_PRESSURE:
			return ka_parse_pressure(text, length, out);
		case KA_SRC_HUGEPAGES:
			return ka_to_number(ka_trim(ka_span(text, length)), &out->hugepages_free);
		case KA_NSOURCES:
			break;
	}
	return false;
}

/* By the core's own parsers; 0 or an errno. */
static int
read_own(KaReader *reader, KaCounterSource source, KaCounters *out)
{
	ssize_t		length = read_text(reader, source);

	if (length < 0)
		return (int) -length;
	if (!parse_text(reader, source, (size_t) length, out))
		return EBADMSG;
	if (source == KA_SRC_DISKSTATS && out->write_ios == KA_UNKNOWN)
		return ENODEV;
	return 0;
}

static int
read_any(KaReader *reader, KaCounterSource source, KaCounters *out)
{
	if (reader->procps == NULL)
		return read_own(reader, source, out);
	switch (source)
	{
		case KA_SRC_VMSTAT:
			return ka_procps_vmstat(reader->procps, out);
		case KA_SRC_MEMINFO:
			return ka_procps_meminfo(reader->procps, out);
		case KA_SRC_DISKSTATS:
			return ka_procps_diskstats(reader->procps, (const char *const *) reader->devices, out);
		default:
			return read_own(reader, source, out);
	}
}

/* Adds the fields of one source to "out". */
static void
read_source(KaReader *reader, KaCounterSource source, KaCounters *out)
{
	Source	   *s = &reader->sources[source];
	KaCounters	reading = *out;

	if (source == KA_SRC_DISKSTATS && reader->devices[0] == NULL && reader->devices[1] == NULL)
	{
		s->error = ENODEV;		/* nobody asked for one: not worth a reading */
		return;
	}
	if (s->wait > 0)
	{
		s->wait--;
		return;					/* the error stands */
	}

	s->error = read_any(reader, source, &reading);
	if (s->error == 0)
	{
		*out = reading;
		return;
	}
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->wait = RETRY_READINGS - 1;
}

void
ka_reader_read(KaReader *reader, KaCounters *out)
{
	ka_counters_init(out);
	for (int source = 0; source < KA_NSOURCES; source++)
		read_source(reader, (KaCounterSource) source, out);
}

void
ka_reader_read_source(KaReader *reader, KaCounterSource source, KaCounters *out)
{
	ka_counters_init(out);
	read_source(reader, source, out);
}

int
ka_reader_error(const KaReader *reader, KaCounterSource source)
{
	return reader->sources[source].error;
}
