/*
 * pages.c: /proc/PID/pagemap, /proc/kpageflags, mincore().
 *
 * A file is mapped a window at a time, so that its page tables take no memory
 * to speak of; MADV_POPULATE_READ maps cached pages and, unlike a load, gives
 * an error and no signal when the file was cut meanwhile.
 *
 * Locks: none.  What is looked at may move meanwhile: a folio that is split or
 * migrated while it is looked at counts as unknown.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "pages.h"

/* As in linux/magic.h. */
#define HUGETLBFS_MAGIC_NUMBER	0x958458f6

/* Old headers lack it; old kernels (before 5.14) answer EINVAL. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define WINDOW_PAGES	16384	/* 64 MiB of 4 KiB pages */
#define ENTRIES			2048	/* of pagemap, read at once */

/* Entries of /proc/PID/pagemap. */
#define PAGEMAP_PRESENT(entry)	((entry) >> 63 & 1)
#define PAGEMAP_SWAPPED(entry)	((entry) >> 62 & 1)
#define PAGEMAP_PFN(entry)		((int64_t) ((entry) & ((UINT64_C(1) << 55) - 1)))

/* Flags of neighbours are read together: most questions are about neighbours. */
#define FLAGS_AT_ONCE 64

struct KaFlagsCache
{
	int			fd;
	int64_t		first;			/* PFN; -1: empty */
	int64_t		count;
	uint64_t	flags[FLAGS_AT_ONCE];
};

static bool
trouble(KaWalk *walk, const char **problem, const char *what)
{
	*problem = ka_printf(walk->arena, "%s: %s", what, strerror(errno));
	return false;
}

static bool
flags_of(void *ctx, int64_t pfn, uint64_t *flags)
{
	KaFlagsCache *cache = ctx;

	if (cache->first < 0 || pfn < cache->first || pfn >= cache->first + cache->count)
	{
		ssize_t		n;

		cache->first = pfn - pfn % FLAGS_AT_ONCE;
		n = pread(cache->fd, cache->flags, sizeof(cache->flags), cache->first * (off_t) sizeof(uint64_t));
		cache->count = n > 0 ? n / (ssize_t) sizeof(uint64_t) : 0;
		if (pfn >= cache->first + cache->count)
		{
			cache->first = -1;
			return false;
		}
	}
	*flags = cache->flags[pfn - cache->first];
	return true;
}

/* Is the page frame of a page of our own shown? */
static bool
frames_are_shown(KaWalk *walk, const char **problem)
{
	int			fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	volatile char here = 1;
	uint64_t	entry = 0;
	off_t		at = (off_t) ((uintptr_t) &here / (uintptr_t) walk->page_bytes * sizeof(entry));
	ssize_t		n;

	if (fd < 0)
		return trouble(walk, problem, errno == ENOENT ?
					   "/proc/self/pagemap (a kernel without CONFIG_PROC_PAGE_MONITOR, or no /proc here)" :
					   "/proc/self/pagemap");
	n = pread(fd, &entry, sizeof(entry), at);
	close(fd);
	if (n == (ssize_t) sizeof(entry) && PAGEMAP_PRESENT(entry) && PAGEMAP_PFN(entry) != 0)
		return true;
	*problem = ka_strdup(walk->arena, geteuid() == 0 ?
						 "the kernel hides page frame numbers: root in a container or without CAP_SYS_ADMIN does not see them; run this on the host" :
						 "the kernel shows page frame numbers to root only: run this as root (CAP_SYS_ADMIN)");
	return false;
}

bool
ka_walk_open(KaWalk *walk, KaArena *arena, const char **problem)
{
	*walk = (KaWalk) {.arena = arena, .page_bytes = sysconf(_SC_PAGESIZE)};
	if (!frames_are_shown(walk, problem))
		return false;
	walk->flags = ka_alloc(arena, sizeof(*walk->flags));
	if (walk->flags == NULL)
		return false;
	walk->flags->first = -1;
	walk->flags->fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	walk->flags_known = walk->flags->fd >= 0;
	return true;
}

void
ka_walk_reset(KaWalk *walk)
{
	walk->looked = walk->present = walk->swapped = walk->unknown = 0;
	walk->runs.count = 0;
	walk->folios = (KaFolios) {0};
}

void
ka_walk_close(KaWalk *walk)
{
	ka_runs_free(&walk->runs);
	if (walk->flags && walk->flags->fd >= 0)
		close(walk->flags->fd);
	walk->flags = NULL;
}

/* Most pages of a large folio come right after each other: it is looked up once. */
static bool
folio_of(KaWalk *walk, int64_t pfn, KaFolio *folio)
{
	const KaFolio *last = &walk->folios.last;

	if (walk->folios.any && pfn >= last->head && pfn < last->head + (INT64_C(1) << last->order))
	{
		*folio = *last;
		return true;
	}
	if (ka_folio_of(flags_of, walk->flags, pfn, folio))
		return true;
	/* What was read together may be of different moments. */
	walk->flags->first = -1;
	return ka_folio_of(flags_of, walk->flags, pfn, folio);
}

static bool
add_page(KaWalk *walk, int64_t index, int64_t pfn)
{
	KaFolio		folio;

	walk->present++;
	if (!ka_runs_add(&walk->runs, index, pfn))
		return false;
	if (!walk->flags_known)
		return true;
	if (folio_of(walk, pfn, &folio))
		ka_folios_add(&walk->folios, index, pfn, &folio);
	else
		walk->unknown++;
	return true;
}

/* Pages of an address space; index is what the first one is called. */
static bool
add_range(KaWalk *walk, int pagemap, uint64_t from, uint64_t pages, int64_t index, const char **problem)
{
	uint64_t	entries[ENTRIES];
	uint64_t	first = from / (uint64_t) walk->page_bytes;

	while (pages > 0)
	{
		uint64_t	wanted = pages < ENTRIES ? pages : ENTRIES;
		ssize_t		n = pread(pagemap, entries, wanted * sizeof(uint64_t), (off_t) (first * sizeof(uint64_t)));
		int64_t		got = n / (ssize_t) sizeof(uint64_t);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return trouble(walk, problem, "pagemap");
		if (got == 0)
			return true;		/* the process is gone, or the addresses end here */
		for (int64_t i = 0; i < got; i++)
		{
			walk->swapped += PAGEMAP_SWAPPED(entries[i]) && !PAGEMAP_PRESENT(entries[i]);
			if (PAGEMAP_PRESENT(entries[i]) && PAGEMAP_PFN(entries[i]) != 0 &&
				!add_page(walk, index + i, PAGEMAP_PFN(entries[i])))
				return false;
		}
		first += (uint64_t) got;
		index += got;
		pages -= (uint64_t) got;
	}
	return true;
}

/* Maps what is cached of a window into our page tables. */
static bool
map_cached(KaWalk *walk, char *window, size_t pages, const unsigned char *cached, const char **problem)
{
	size_t		page_bytes = (size_t) walk->page_bytes;

	for (size_t i = 0, end; i < pages; i = end + 1)
	{
		for (; i < pages && !(cached[i] & 1); i++)
			;
		for (end = i; end < pages && (cached[end] & 1); end++)
			;
		if (end == i || madvise(window + i * page_bytes, (end - i) * page_bytes, MADV_POPULATE_READ) == 0)
			continue;
		/* Cut, or with bad memory: what could be mapped is looked at. */
		if (errno == EINVAL)
		{
			*problem = ka_strdup(walk->arena, "cached pages of a file can be looked at from Linux 5.14 on");
			return false;
		}
		if (errno != EFAULT && errno != EHWPOISON)
			return trouble(walk, problem, "mapping cached pages");
	}
	return true;
}

static bool
add_window(KaWalk *walk, int fd, int pagemap, int64_t first, size_t pages, unsigned char *cached, const char **problem)
{
	size_t		bytes = pages * (size_t) walk->page_bytes;
	char	   *window = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t) (first * walk->page_bytes));
	bool		done = true;

	if (window == MAP_FAILED)
		return trouble(walk, problem, "mapping the file");
	/* No read-ahead, should a page leave the cache between the question and the mapping. */
	madvise(window, bytes, MADV_RANDOM);
	if (mincore(window, bytes, cached) < 0)
		done = trouble(walk, problem, "mincore");
	/* Page by page: faults map neighbours that are cached, and nothing else is. */
	done = done && map_cached(walk, window, pages, cached, problem) &&
		add_range(walk, pagemap, (uintptr_t) window, pages, first, problem);
	munmap(window, bytes);
	return done;
}

/* There, mincore() tells what we have mapped, not what is in memory. */
static bool
is_hugetlbfs(const struct statfs *system)
{
	return (unsigned long) system->f_type == HUGETLBFS_MAGIC_NUMBER;
}

bool
ka_walk_file(KaWalk *walk, int fd, const char **problem)
{
	unsigned char *cached;
	struct stat status;
	struct statfs system;
	int64_t		pages;
	int			pagemap;
	bool		done = true;

	if (fstat(fd, &status) < 0 || fstatfs(fd, &system) < 0)
		return trouble(walk, problem, "the file");
	if (is_hugetlbfs(&system))
	{
		*problem = ka_strdup(walk->arena, "pages of hugetlbfs cannot be looked at through the file: look at a process that has them mapped");
		return false;
	}
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return trouble(walk, problem, "/proc/self/pagemap");
	cached = malloc(WINDOW_PAGES);
	if (cached == NULL)
		done = false;
	pages = (status.st_size + walk->page_bytes - 1) / walk->page_bytes;
	walk->looked = pages;
	for (int64_t first = 0; done && first < pages; first += WINDOW_PAGES)
	{
		int64_t		left = pages - first;

		done = add_window(walk, fd, pagemap, first, (size_t) (left < WINDOW_PAGES ? left : WINDOW_PAGES), cached, problem);
	}
	free(cached);
	close(pagemap);
	return done;
}

bool
ka_walk_process(KaWalk *walk, int64_t pid, uint64_t from, uint64_t to, const char **problem)
{
	char		name[64] = "/proc/self/pagemap";
	uint64_t	page_bytes = (uint64_t) walk->page_bytes;
	uint64_t	pages = (to - from) / page_bytes;
	int			pagemap;
	bool		done;

	if (pid != 0)
		snprintf(name, sizeof(name), "/proc/%" PRId64 "/pagemap", pid);
	pagemap = open(name, O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return trouble(walk, problem, name);
	walk->looked = (int64_t) pages;
	done = add_range(walk, pagemap, from, pages, (int64_t) (from / page_bytes), problem);
	close(pagemap);
	return done;
}

int
ka_open_mapping(int64_t pid, uint64_t from, uint64_t to)
{
	struct statfs system;
	char		name[96];
	int			fd;

	snprintf(name, sizeof(name), "/proc/%" PRId64 "/map_files/%" PRIx64 "-%" PRIx64, pid, from, to);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && (fstatfs(fd, &system) < 0 || is_hugetlbfs(&system)))
	{
		close(fd);
		fd = -1;
	}
	return fd;
}
