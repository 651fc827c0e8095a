/*
 * contiguity_map.c: memory that lies in physical memory in a known way.
 *
 *	contiguity_map reverse FILE		pages of the file, the last one first, one page a mapping
 *	contiguity_map scatter FILE		the same, no two neighbours in the file side by side
 *	contiguity_map hugetlb PAGES	huge pages of the default size, all touched
 *	contiguity_map thp PAGES		transparent huge pages
 *	contiguity_map shared PAGES		shared memory of small pages, all touched by a child that is gone
 *
 * Prints "PID FROM-TO" and holds it until standard input ends.
 */
#define _GNU_SOURCE 1

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PMD_BYTES ((size_t) 2 << 20)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static size_t page;

/* Address space without memory. */
static char *
reserve(size_t bytes)
{
	char	   *map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		err(1, "mmap");
	return map;
}

/* Page i of the mapping is page at(i, n) of the file. */
static char *
map_pages(const char *file, size_t (*at) (size_t i, size_t n), size_t *bytes)
{
	int			fd = open(file, O_RDONLY);
	struct stat status;
	size_t		n;
	char	   *map;

	if (fd < 0 || fstat(fd, &status) < 0)
		err(1, "%s", file);
	n = (size_t) status.st_size / page;
	*bytes = n * page;
	map = reserve(*bytes);
	for (size_t i = 0; i < n; i++)
	{
		if (mmap(map + i * page, page, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t) (at(i, n) * page)) == MAP_FAILED)
			err(1, "mapping page %zu", i);
		(void) *(volatile char *) (map + i * page);
	}
	return map;
}

static size_t
reversed(size_t i, size_t n)
{
	return n - 1 - i;
}

/* n is a power of two: an odd step visits each page once. */
static size_t
scattered(size_t i, size_t n)
{
	return i * 1237 % n;
}

static char *
map_memory(size_t bytes, int how)
{
	char	   *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		err(1, "mmap");
	return map;
}

static char *
map_thp(size_t bytes)
{
	char	   *map = map_memory(bytes + PMD_BYTES, MAP_PRIVATE | MAP_NORESERVE);

	map += PMD_BYTES - (uintptr_t) map % PMD_BYTES;
	madvise(map, bytes, MADV_HUGEPAGE);
	memset(map, 1, bytes);
	madvise(map, bytes, MADV_COLLAPSE);
	return map;
}

static char *
map_shared(size_t bytes)
{
	char	   *map = map_memory(bytes, MAP_SHARED);
	pid_t		pid;

	madvise(map, bytes, MADV_NOHUGEPAGE);
	pid = fork();
	if (pid == 0)
	{
		memset(map, 1, bytes);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		err(1, "a child");
	return map;
}

static size_t
default_huge_page(void)
{
	FILE	   *file = fopen("/proc/meminfo", "r");
	char		line[128];
	size_t		kb = 0;

	while (file && kb == 0 && fgets(line, sizeof(line), file))
		sscanf(line, "Hugepagesize: %zu", &kb);
	if (file)
		fclose(file);
	return kb * 1024;
}

int
main(int argc, char **argv)
{
	const char *kind = argc == 3 ? argv[1] : "";
	size_t		bytes = 0;
	char	   *map;
	char		rest[64];

	page = (size_t) sysconf(_SC_PAGESIZE);
	if (strcmp(kind, "reverse") == 0)
		map = map_pages(argv[2], reversed, &bytes);
	else if (strcmp(kind, "scatter") == 0)
		map = map_pages(argv[2], scattered, &bytes);
	else if (strcmp(kind, "hugetlb") == 0)
	{
		bytes = strtoul(argv[2], NULL, 10) * default_huge_page();
		map = map_memory(bytes, MAP_SHARED | MAP_HUGETLB);
		memset(map, 1, bytes);
	}
	else if (strcmp(kind, "thp") == 0)
		map = map_thp(bytes = strtoul(argv[2], NULL, 10) * PMD_BYTES);
	else if (strcmp(kind, "shared") == 0)
		map = map_shared(bytes = strtoul(argv[2], NULL, 10) * page);
	else
		errx(2, "usage: contiguity_map reverse|scatter FILE, or hugetlb|thp|shared PAGES");

	printf("%d %" PRIxPTR "-%" PRIxPTR "\n", (int) getpid(), (uintptr_t) map, (uintptr_t) map + bytes);
	fflush(stdout);
	while (read(STDIN_FILENO, rest, sizeof(rest)) > 0)
		;
	return 0;
}
