/*
 * core_cost.c: what a sample costs, without a server around it.
 *
 *	core_cost sources ROOT N PAUSE_MS	per source: the reader's CPU time beside the bare reading of the same file
 *	core_cost flat ROOT N				private memory of a process before and after N samples
 *
 * ROOT is "/" for this machine, or a copy of another one's /proc and /sys.  CPU
 * time is the thread's own (user and system), the median of N samples, each
 * after a pause; output is one row per line, columns separated by tabs.
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

/* CPU times (µs) of n samples, by source, and their sums in the last row. */
typedef struct Times
{
	double	   *took[KA_NSOURCES + 1];
} Times;

static Times
new_times(size_t n)
{
	Times		times;

	for (int i = 0; i <= KA_NSOURCES; i++)
	{
		times.took[i] = calloc(n, sizeof(double));
		if (times.took[i] == NULL)
			die("calloc");
	}
	return times;
}

/* Sorts the times of one source. */
static double
median(const Times *times, int source, size_t n)
{
	qsort(times->took[source], n, sizeof(double), compare);
	return times->took[source][n / 2];
}

/*
 * One sample, each source timed: by the reader, or without one by reading the
 * bare files.  Sources without a file take no time.
 */
static void
sample(KaReader *reader, const int *files, Times *times, size_t i)
{
	static KaCounters counters;
	double		sum = 0;

	for (int source = 0; source < KA_NSOURCES; source++)
	{
		double		start = cpu_us();

		if (files[source] < 0)
			continue;
		if (reader != NULL)
			ka_reader_read_source(reader, (KaCounterSource) source, &counters);
		else
			read_again(files[source]);
		times->took[source][i] = cpu_us() - start;
		sum += times->took[source][i];
	}
	times->took[KA_NSOURCES][i] = sum;
}

/* The file of a source, where it is one of a directory: that of the device, and of the usual pool. */
static int
open_bare(const char *root, KaCounterSource source, const char *device)
{
	char		path[4096];
	const char *file = ka_counter_file[source];

	if (source == KA_SRC_DEVICES)
		snprintf(path, sizeof(path), "%s%s/%s/stat", root, file, device ? device : "");
	else if (source == KA_SRC_HUGEPAGES)
		snprintf(path, sizeof(path), "%s%s/hugepages-2048kB/free_hugepages", root, file);
	else
		snprintf(path, sizeof(path), "%s%s", root, file);
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

	snprintf(path, sizeof(path), "%s/proc/diskstats", root);
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

/*
 * Bare files and reader take turns, each after the pause, so that both find the
 * caches as they are after the machine did something else.
 */
static void
sources(const char *root, KaReader *reader, const char *device, size_t n, useconds_t pause_us)
{
	Times		bare = new_times(n),
				ours = new_times(n);
	int			files[KA_NSOURCES];

	for (int i = 0; i < KA_NSOURCES; i++)
		files[i] = open_bare(root, (KaCounterSource) i, device);
	for (size_t i = 0; i < n + WARM_UP; i++)
	{
		size_t		row = i < WARM_UP ? 0 : i - WARM_UP;

		if (pause_us > 0)
			usleep(pause_us);
		sample(NULL, files, &bare, row);
		if (pause_us > 0)
			usleep(pause_us);
		sample(reader, files, &ours, row);
	}

	for (int i = 0; i < KA_NSOURCES; i++)
	{
		if (files[i] < 0)
		{
			printf("%s\t-\t-\t-\n", ka_counter_file[i]);
			continue;
		}
		if (ka_reader_error(reader, (KaCounterSource) i) != 0)
		{
			errno = ka_reader_error(reader, (KaCounterSource) i);
			die(ka_counter_file[i]);
		}
		printf("%s\t%zu\t%.1f\t%.1f\n", ka_counter_file[i], read_again(files[i]),
			   median(&bare, i, n), median(&ours, i, n));
	}
	printf("total\t-\t%.1f\t%.1f\n", median(&bare, KA_NSOURCES, n), median(&ours, KA_NSOURCES, n));
}

/* Anonymous memory of this process (kB). */
static long
private_kb(void)
{
	FILE	   *file = fopen("/proc/self/smaps_rollup", "r");
	char		line[256];
	long		kb = -1;

	if (file == NULL)
		die("/proc/self/smaps_rollup");
	while (kb < 0 && fgets(line, sizeof(line), file) != NULL)
		sscanf(line, "Anonymous: %ld", &kb);
	fclose(file);
	return kb;
}

static void
flat(KaReader *reader, size_t n)
{
	KaCounters	counters;
	long		before;

	private_kb();				/* its own buffers belong to "before" */
	for (size_t i = 0; i < WARM_UP; i++)
		ka_reader_read(reader, &counters);
	before = private_kb();
	for (size_t i = 0; i < n; i++)
		ka_reader_read(reader, &counters);
	printf("private_kb\t%zu\t%ld\t%ld\n", n, before, private_kb());
}

int
main(int argc, char **argv)
{
	bool		flat_mode = argc == 4 && strcmp(argv[1], "flat") == 0;
	bool		sources_mode = argc == 5 && strcmp(argv[1], "sources") == 0;
	size_t		n = flat_mode || sources_mode ? strtoul(argv[3], NULL, 10) : 0;
	const char *root = n > 0 && strcmp(argv[2], "/") != 0 ? argv[2] : "";
	KaReaderConfig config = {.root = root, .hugepage_size_bytes = KA_UNKNOWN};
	KaReader   *reader;

	if (n == 0)
	{
		fprintf(stderr, "usage: core_cost sources ROOT N PAUSE_MS | flat ROOT N\n");
		return 2;
	}
	config.devices[0] = first_device(root);
	reader = ka_reader_new(&config);
	if (reader == NULL)
		die("ka_reader_new");
	if (flat_mode)
		flat(reader, n);
	else
		sources(root, reader, config.devices[0], n, (useconds_t) strtoul(argv[4], NULL, 10) * 1000);
	ka_reader_free(reader);
	return 0;
}
