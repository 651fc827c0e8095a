/*
 * counters.c: the reader of the sampler.
 *
 * Each source has a file that stays open (the devices one each).  A reading
 * that fails closes it; the next attempt to open it is RETRY_READINGS readings
 * later, so that a machine without, say, /proc/pressure pays for it once a
 * minute only.
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
#include <string.h>
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
	[KA_SRC_DEVICES] = "/sys/class/block",
	[KA_SRC_ZONEINFO] = "/proc/zoneinfo",
	[KA_SRC_BUDDYINFO] = "/proc/buddyinfo",
	[KA_SRC_PRESSURE] = "/proc/pressure/memory",
	[KA_SRC_HUGEPAGES] = "/sys/kernel/mm/hugepages",
};

typedef struct Source
{
	int			fds[2];			/* -1: not open, or libproc2 has it; only devices need two */
	int			error;			/* of the last reading */
	int			wait;			/* readings to skip before it is tried again */
} Source;

struct KaReader
{
	char	   *root;
	char	   *devices[2];		/* NULL: none, or the same as the first */
	int64_t		page_size_bytes;
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
		reader->sources[i].fds[0] = reader->sources[i].fds[1] = -1;
	reader->page_size_bytes = config->page_size_bytes > 0 ? config->page_size_bytes : 4096;
	reader->hugepage_size_bytes = config->hugepage_size_bytes;
	reader->capacity = FIRST_BUFFER;
	reader->buffer = malloc(reader->capacity);
	reader->root = strdup(root);
	if (reader->buffer == NULL || reader->root == NULL)
		goto no_memory;
	for (int i = 0; i < 2; i++)
	{
		const char *name = config->devices[i];

		if (name == NULL || (i == 1 && config->devices[0] && strcmp(config->devices[0], name) == 0))
			continue;
		reader->devices[i] = strdup(name);
		if (reader->devices[i] == NULL)
			goto no_memory;
		/* What diskstats calls cciss/c0d0 is cciss!c0d0 in sysfs. */
		for (char *at = reader->devices[i]; (at = strchr(at, '/')) != NULL;)
			*at = '!';
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

static void
close_source(Source *source)
{
	for (int i = 0; i < 2; i++)
	{
		if (source->fds[i] >= 0)
			close(source->fds[i]);
		source->fds[i] = -1;
	}
}

void
ka_reader_free(KaReader *reader)
{
	if (reader == NULL)
		return;
	for (int i = 0; i < KA_NSOURCES; i++)
		close_source(&reader->sources[i]);
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

/* The file of a source; "which" of the devices.  0 or an errno. */
static int
name_file(const KaReader *reader, KaCounterSource source, int which, char *name, size_t size)
{
	const char *file = ka_counter_file[source];
	int64_t		bytes = reader->hugepage_size_bytes;
	int			length;

	switch (source)
	{
		case KA_SRC_DEVICES:
			length = snprintf(name, size, "%s/%s/stat", file, reader->devices[which]);
			break;
		case KA_SRC_HUGEPAGES:
			if (bytes == KA_UNKNOWN)
				bytes = default_hugepage_size(reader->root);
			if (bytes <= 0)
				return ENOENT;
			length = snprintf(name, size, "%s/hugepages-%lldkB/free_hugepages", file, (long long) (bytes / 1024));
			break;
		default:
			length = snprintf(name, size, "%s", file);
			break;
	}
	return length < (int) size ? 0 : ENAMETOOLONG;
}

/* The text of a source is in the buffer: its length, or a negative errno. */
static ssize_t
read_text(KaReader *reader, KaCounterSource source, int which)
{
	int		   *fd = &reader->sources[source].fds[which];

	if (*fd < 0)
	{
		char		name[KA_PATH_MAX];
		int			error = name_file(reader, source, which, name, sizeof(name));

		if (error != 0)
			return -error;
		*fd = ka_path_open(reader->root, name, O_RDONLY);
		if (*fd < 0)
			return *fd;
	}
	for (;;)
	{
		ssize_t		length = ka_read_at_start(*fd, reader->buffer, reader->capacity);
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
			return ka_parse_vmstat(text, length, reader->page_size_bytes, out);
		case KA_SRC_DEVICES:
			return ka_parse_block_stat(text, length, out);
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
read_file(KaReader *reader, KaCounterSource source, int which, KaCounters *out)
{
	ssize_t		length = read_text(reader, source, which);

	if (length < 0)
		return (int) -length;
	return parse_text(reader, source, (size_t) length, out) ? 0 : EBADMSG;
}

/*
 * The sums over the devices.  One that is missing makes all unknown, because a
 * sum without it would look like a reset when it comes back.
 */
static int
read_devices(KaReader *reader, KaCounters *out)
{
	int64_t		io_ms[2] = {KA_UNKNOWN, KA_UNKNOWN};
	int			error = ENODEV;

	for (int i = 0; i < 2; i++)
	{
		if (reader->devices[i] == NULL)
			continue;
		error = read_file(reader, KA_SRC_DEVICES, i, out);
		if (error != 0)
			return error == ENOENT ? ENODEV : error;
		io_ms[i] = out->io_ms;
	}
	out->io_ms = io_ms[0];
	out->io_ms_second = io_ms[1];
	return error;
}

/* Adds the fields of one source to "out". */
static void
read_source(KaReader *reader, KaCounterSource source, KaCounters *out)
{
	Source	   *s = &reader->sources[source];
	KaCounters	reading = *out;

	if (source == KA_SRC_DEVICES && reader->devices[0] == NULL && reader->devices[1] == NULL)
	{
		s->error = ENODEV;		/* nobody asked for one: not worth a reading */
		return;
	}
	if (s->wait > 0)
	{
		s->wait--;
		return;					/* the error stands */
	}

	if (source == KA_SRC_VMSTAT && reader->procps != NULL)
		s->error = ka_procps_vmstat(reader->procps, &reading);
	else if (source == KA_SRC_DEVICES)
		s->error = read_devices(reader, &reading);
	else
		s->error = read_file(reader, source, 0, &reading);
	if (s->error == 0)
	{
		*out = reading;
		return;
	}
	close_source(s);
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
