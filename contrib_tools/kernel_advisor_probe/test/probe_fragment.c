/*
 * probe_fragment.c: leaves free memory in single pages.
 *
 *	probe_fragment MB
 *
 * Touches MB of 4 KiB pages, gives every second one back, says "ready", and
 * holds the others until its standard input ends.
 */
#define _GNU_SOURCE 1

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

int
main(int argc, char **argv)
{
	size_t		bytes = argc == 2 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	char	   *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char		nothing;
	FILE	   *oom = fopen("/proc/self/oom_score_adj", "w");

	/* Where memory runs out, it is this process that has it. */
	if (oom == NULL || fputs("1000", oom) < 0 || fclose(oom) != 0)
		return perror("oom_score_adj"), 1;
	if (map == MAP_FAILED || madvise(map, bytes, MADV_NOHUGEPAGE) < 0)
		return perror("probe_fragment"), 1;
	for (size_t at = 0; at < bytes; at += PAGE)
		map[at] = 1;
	for (size_t at = 0; at < bytes; at += 2 * PAGE)
		madvise(map + at, PAGE, MADV_DONTNEED);
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &nothing, 1) > 0)
		;
	return 0;
}
