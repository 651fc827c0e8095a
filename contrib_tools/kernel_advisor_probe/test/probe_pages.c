/*
 * probe_pages.c: a load that does nothing but allocate and free pages, for the
 * benchmark: the worst case for a probe on drained pages, since nearly every
 * page that is freed leaves a per-CPU list sooner or later.
 *
 *	probe_pages MB SECONDS
 *
 * Maps MB of 4 KiB pages, touches each, unmaps, again and again; prints pages,
 * wall-clock and CPU nanoseconds per page.
 */
#define _GNU_SOURCE 1

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define PAGE 4096

static double
now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

int
main(int argc, char **argv)
{
	size_t		bytes;
	double		seconds, start, cpu, pages = 0;

	if (argc != 3)
		return fprintf(stderr, "usage: probe_pages MB SECONDS\n"), 2;
	bytes = strtoul(argv[1], NULL, 10) << 20;
	seconds = strtod(argv[2], NULL);
	start = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	while (now_ns(CLOCK_MONOTONIC) - start < seconds * 1e9)
	{
		char	   *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED || (madvise(map, bytes, MADV_NOHUGEPAGE) < 0))
			return perror("mmap"), 1;
		for (size_t at = 0; at < bytes; at += PAGE)
			map[at] = 1;
		munmap(map, bytes);
		pages += (double) bytes / PAGE;
	}
	printf("pages %.0f wall_ns %.2f cpu_ns %.2f\n", pages, (now_ns(CLOCK_MONOTONIC) - start) / pages,
		   (now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / pages);
	return 0;
}
