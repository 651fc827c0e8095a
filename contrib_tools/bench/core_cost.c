/*
 * core_cost.c: what a sample costs, without a server around it.
 *
 *	core_cost sources ROOT N	per source: the reader's CPU time beside the bare reading of the same file
 *	core_cost flat ROOT N		private memory of a process before and after N samples
 *
 * ROOT is "/" for this machine, or a copy of another one's /proc and /sys.  CPU
 * time is the thread's own (user and system), the median of N readings; output
 * is one row per line, columns separated by tabs.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"

#define WARM_UP 100				/* readings before the first that counts */

static char buffer[1 << 22];	/* zoneinfo of 384 CPUs and 4 nodes is about 300 KiB */

static void
die(const char *what)
{
	fprintf(stderr, "core_cost: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* CPU time of this thread (µs). */
static double
cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Reads a file that stays open, from its start to its end: what any reader must pay at least. */
static size_t
read_again(int fd)
{
	size_t		length = 0;
	ssize_t		n;

	while ((n = pread(fd, buffer, sizeof(buffer), (off_t) length)) > 0)
		length += (size_t) n;
	if (n < 0)
		die("pread");
	return length;
}

/* What is measured: a source (or all, KA_NSOURCES) of a reader, or a bare file. */
typedef struct Subject
{
	KaReader   *reader;			/* NULL: the bare file */
	KaCounterSource source;
	int			fd;
} Subject;

static void
read_once(const Subject *subject)
{
	static KaCounters counters;

	if (subject->reader == NULL)
		read_again(subject->fd);
	else if (subject->source == KA_NSOURCES)
		ka_reader_read(subject->reader, &counters);
	else
		ka_reader_read_source(subject->reader, subject->source, &counters);
}

/* The median of n readings (µs). */
static double
median_us(const Subject *subject, size_t n)
{
	double	   *took = calloc(n, sizeof(*took)),
				median;

	if (took == NULL)
		die("calloc");
	for (size_t i = 0; i < WARM_UP; i++)
		read_once(subject);
	for (size_t i = 0; i < n; i++)
	{
		double		start = cpu_us();

		read_once(subject);
		took[i] = cpu_us() - start;
	}
	qsort(took, n, sizeof(*took), compare);
	median = took[n / 2];
	free(took);
	return median;
}

/* The files of a source; the pool of huge pages is a directory with one file that counts. */
static int
open_bare(const char *root, KaCounterSource source)
{
	char		path[4096];

	snprintf(path, sizeof(path), "%s%s%s", root, ka_counter_file[source],
			 source == KA_SRC_HUGEPAGES ? "/hugepages-2048kB/free_hugepages" : "");
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* A device to watch: the first in diskstats that has written anything. */
static const char *
first_device(const char *root)
{
	static char name[64];
	char		path[4096];
	uint64_t	written;
	FILE	   *file;
	char		line[512];

	snprintf(path, sizeof(path), "%s%s", root, ka_counter_file[KA_SRC_DISKSTATS]);
	file = fopen(path, "r");
	if (file == NULL)
		return NULL;
	while (fgets(line, sizeof(line), file) != NULL)
	{
		if (sscanf(line, "%*d %*d %63s %*d %*d %*d %*d %" SCNu64, name, &written) == 2 && written > 0)
			break;
		name[0] = '\0';
	}
	fclose(file);
	return name[0] != '\0' ? name : NULL;
}

static void
sources(const char *root, KaReader *reader, size_t n)
{
	Subject		all = {reader, KA_NSOURCES, -1};
	double		bare_sum = 0;

	for (int i = 0; i < KA_NSOURCES; i++)
	{
		Subject		ours = {reader, (KaCounterSource) i, -1};
		Subject		bare = {NULL, (KaCounterSource) i, open_bare(root, (KaCounterSource) i)};
		double		bare_us;

		if (bare.fd < 0)
		{
			printf("%s\t-\t-\t-\n", ka_counter_file[i]);
			continue;
		}
		bare_us = median_us(&bare, n);
		bare_sum += bare_us;
		printf("%s\t%zu\t%.1f\t%.1f\n", ka_counter_file[i], read_again(bare.fd), bare_us, median_us(&ours, n));
		close(bare.fd);
		if (ka_reader_error(reader, (KaCounterSource) i) != 0)
		{
			errno = ka_reader_error(reader, (KaCounterSource) i);
			die(ka_counter_file[i]);
		}
	}
	printf("total\t-\t%.1f\t%.1f\n", bare_sum, median_us(&all, n));
}

/* Memory that is this process's alone (kB). */
static long
private_kb(void)
{
	FILE	   *file = fopen("/proc/self/smaps_rollup", "r");
	char		line[256];
	long		kb,
				sum = 0;

	if (file == NULL)
		die("/proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), file) != NULL)
	{
		if (sscanf(line, "Private_Clean: %ld", &kb) == 1 || sscanf(line, "Private_Dirty: %ld", &kb) == 1)
			sum += kb;
	}
	fclose(file);
	return sum;
}

static void
flat(KaReader *reader, size_t n)
{
	Subject		all = {reader, KA_NSOURCES, -1};
	long		before;

	private_kb();				/* its own buffers belong to "before" */
	for (size_t i = 0; i < WARM_UP; i++)
		read_once(&all);
	before = private_kb();
	for (size_t i = 0; i < n; i++)
		read_once(&all);
	printf("private_kb\t%zu\t%ld\t%ld\n", n, before, private_kb());
}

int
main(int argc, char **argv)
{
	size_t		n = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	const char *root = argc == 4 && strcmp(argv[2], "/") != 0 ? argv[2] : "";
	KaReaderConfig config = {root, 0, KA_UNKNOWN, {NULL, NULL}};
	KaReader   *reader;

	if (n == 0)
	{
		fprintf(stderr, "usage: core_cost sources|flat ROOT N\n");
		return 2;
	}
	config.devices[0] = first_device(root);
	reader = ka_reader_new(&config);
	if (reader == NULL)
		die("ka_reader_new");
	if (strcmp(argv[1], "flat") == 0)
		flat(reader, n);
	else
		sources(root, reader, n);
	ka_reader_free(reader);
	return 0;
}
