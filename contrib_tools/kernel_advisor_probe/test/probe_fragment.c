/*
 * probe_fragment.c: leaves free memory in single pages.
 *
 *	probe_fragment MB		touches MB of 4 KiB pages and gives every second one back
 *	probe_fragment MB large		takes up to MB in large pages (as the kernel's settings allow, madvise), as long as
 *					there are free blocks of order 4 and more; and goes on when there are again
 *
 * Says "ready", and holds what it has until its standard input ends.
 */
#define _GNU_SOURCE 1

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

/* Free blocks of order 4 and more, but for the first 16 MB of the machine. */
static long
large_blocks(void)
{
	FILE	   *file = fopen("/proc/buddyinfo", "r");
	char		line[512];
	char		zone[32];
	long		sum = 0;
	int			at;

	while (file && fgets(line, sizeof(line), file))
	{
		char	   *next = line;

		if (sscanf(line, "Node %*d, zone %31s%n", zone, &at) != 1 || strcmp(zone, "DMA") == 0)
			continue;
		next += at;
		for (int order = 0; *next != '\0' && *next != '\n'; order++)
			sum += strtol(next, &next, 10) * (order >= 4), next += strspn(next, " ");
	}
	if (file)
		fclose(file);
	return sum;
}

/* The next of the memory, as long as there are large blocks, and enough is free for everybody. */
static size_t
take_large(char *map, size_t bytes, size_t at)
{
	const size_t step = 4 << 20;

	while (at + step <= bytes && large_blocks() > 100 && sysconf(_SC_AVPHYS_PAGES) > (400 << 20) / PAGE)
	{
		for (size_t page = 0; page < step; page += PAGE)
			map[at + page] = 1;
		at += step;
	}
	return at;
}

int
main(int argc, char **argv)
{
	size_t		bytes = argc >= 2 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	int			large = argc == 3 && strcmp(argv[2], "large") == 0;
	char	   *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct pollfd end = {.fd = STDIN_FILENO,.events = POLLIN};
	size_t		taken = 0;
	FILE	   *oom = fopen("/proc/self/oom_score_adj", "w");

	/* Where memory runs out, it is this process that has it. */
	if (oom == NULL || fputs("1000", oom) < 0 || fclose(oom) != 0)
		return perror("oom_score_adj"), 1;
	if (map == MAP_FAILED || madvise(map, bytes, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) < 0)
		return perror("probe_fragment"), 1;
	if (large)
		taken = take_large(map, bytes, 0);
	else if (madvise(map, bytes, MADV_POPULATE_WRITE) < 0)
		return perror("populating"), 1;
	for (size_t at = 0; at < bytes && !large; at += 2 * PAGE)
		madvise(map + at, PAGE, MADV_DONTNEED);
	puts("ready");
	fflush(stdout);
	/* Memory that others give back comes in large blocks. */
	while (poll(&end, 1, large ? 5 : -1) == 0)
		taken = take_large(map, bytes, taken);
	return 0;
}
