/*
 * writes.c: buffered writes as a server's WAL and checkpoints make them, timed one by one.
 *
 *	writes FILE KIB COUNT
 *
 * Writes COUNT times KIB KiB into FILE, made anew, and prints as JSON the
 * number of writes and the mean, median, 99th percentile and maximum of the
 * time of one, in µs.  The file is removed again, so that its pages are free.
 */
#define _GNU_SOURCE 1

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static int
by_time(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
	size_t		bytes = argc == 4 ? strtoul(argv[2], NULL, 10) << 10 : 0;
	size_t		count = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	double		sum = 0;
	double	   *took;
	char	   *buffer;
	int			fd;

	if (bytes == 0 || count == 0)
		errx(2, "usage: writes FILE KIB COUNT");
	/* Memory of its own is there before the first write. */
	buffer = malloc(bytes);
	took = calloc(count, sizeof(*took));
	if (buffer == NULL || took == NULL)
		err(1, "malloc");
	memset(buffer, 'x', bytes);
	memset(took, 0xff, count * sizeof(*took));
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		err(1, "%s", argv[1]);
	for (size_t i = 0; i < count; i++)
	{
		double		start = now_us();

		if (write(fd, buffer, bytes) != (ssize_t) bytes)
			err(1, "%s", argv[1]);
		took[i] = now_us() - start;
		sum += took[i];
	}
	close(fd);
	unlink(argv[1]);
	qsort(took, count, sizeof(*took), by_time);
	printf("{\"writes\":%zu,\"mean_us\":%.0f,\"median_us\":%.0f,\"p99_us\":%.0f,\"max_us\":%.0f}\n",
		   count, sum / (double) count, took[count / 2], took[(count * 99 - 1) / 100], took[count - 1]);
	return 0;
}
