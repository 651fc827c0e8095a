/*
 * probe.c: how the running kernel hands out pages, seen by asking for some.
 *
 * Memory is asked for page by page, the way that each kind of it is used by a
 * server: its own, its shared memory, its files.  What was freed lately comes
 * first, last in, first out, and says nothing about the kernel; so the first
 * row is taken as memory is, and all others after a ballast as large as the
 * processors' lists and the small free blocks together: from there on large
 * blocks have to be split, and the order of their pages is the kernel's.
 *
 * All of it is kept until the end, so that no row gets the pages of another.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "look.h"

/* The ballast never takes more of what is available than a quarter. */
#define BALLAST_SHARE 4

/* PostgreSQL's block: what it reads and writes at once. */
#define BLOCK_BYTES 8192

/* Read-ahead is a matter of large sequential reads. */
#define READ_BYTES (128 * 1024)

typedef struct Probe
{
	KaWalk	   *walk;
	const char *directory;
	size_t		bytes;			/* of each row */
	void	   *map[KA_PROBE_ROWS + 1]; /* what to release */
	size_t		map_bytes[KA_PROBE_ROWS + 1];
	int			nmaps;
	int			fd[KA_PROBE_ROWS];
	int			nfds;
} Probe;

/* Maps and touches memory, a page at a time. */
static char *
take_memory(Probe *probe, size_t bytes, int how)
{
	char	   *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return NULL;
	probe->map[probe->nmaps] = map;
	probe->map_bytes[probe->nmaps++] = bytes;
	/* Fails where the kernel has no huge pages: then there are none to be refused. */
	madvise(map, bytes, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < bytes; at += (size_t) probe->walk->page_bytes)
		((volatile char *) map)[at] = 1;
	return map;
}

static bool
look_at_memory(Probe *probe, int how, const char **problem)
{
	char	   *map = take_memory(probe, probe->bytes, how);

	if (map == NULL)
	{
		*problem = ka_strdup(probe->walk->arena, strerror(errno));
		return false;
	}
	return ka_walk_process(probe->walk, 0, (uintptr_t) map, (uintptr_t) map + probe->bytes, problem);
}

static bool
get_anonymous(Probe *probe, const char **problem)
{
	return look_at_memory(probe, MAP_PRIVATE, problem);
}

static bool
get_shared(Probe *probe, const char **problem)
{
	return look_at_memory(probe, MAP_SHARED, problem);
}

/* Reads or writes a sparse file, so that its cache alone is at work; "advice" as of posix_fadvise. */
static bool
look_at_file(Probe *probe, int advice, size_t piece, bool writes, const char **problem)
{
	char	   *buffer = calloc(1, piece);
	int			fd = ka_scratch_file(probe->directory);
	bool		done = buffer != NULL && fd >= 0 && ftruncate(fd, (off_t) probe->bytes) == 0;

	if (fd >= 0)
		probe->fd[probe->nfds++] = fd;
	if (done)
		posix_fadvise(fd, 0, 0, advice);
	for (size_t at = 0; done && at < probe->bytes; at += piece)
		done = writes ? pwrite(fd, buffer, piece, (off_t) at) == (ssize_t) piece :
			pread(fd, buffer, piece, (off_t) at) == (ssize_t) piece;
	free(buffer);
	if (!done)
	{
		*problem = ka_printf(probe->walk->arena, "%s: %s", probe->directory, strerror(errno));
		return false;
	}
	return ka_walk_file(probe->walk, fd, problem);
}

static bool
get_read(Probe *probe, const char **problem)
{
	return look_at_file(probe, POSIX_FADV_RANDOM, (size_t) probe->walk->page_bytes, false, problem);
}

static bool
get_read_ahead(Probe *probe, const char **problem)
{
	return look_at_file(probe, POSIX_FADV_SEQUENTIAL, READ_BYTES, false, problem);
}

static bool
get_written(Probe *probe, const char **problem)
{
	return look_at_file(probe, POSIX_FADV_NORMAL, BLOCK_BYTES, true, problem);
}

/* The first two are the same memory before and after the ballast. */
static const struct
{
	const char *memory;
	bool		(*get) (Probe *probe, const char **problem);
	bool		single;			/* page by page, whatever the kernel's version */
}			rows[KA_PROBE_ROWS] = {
	{"anonymous", get_anonymous, true},
	{"anonymous", get_anonymous, true},
	{"shared", get_shared, true},
	{"file, read by pages", get_read, true},
	{"file, read ahead", get_read_ahead, false},
	{"file, written by 8 kB", get_written, false},
};

static void
release(Probe *probe)
{
	for (int i = 0; i < probe->nmaps; i++)
		munmap(probe->map[i], probe->map_bytes[i]);
	for (int i = 0; i < probe->nfds; i++)
		close(probe->fd[i]);
}

/* Of the rows of single pages together: the ballast is an estimate, and the first of them may still get recycled ones. */
static KaPfnOrder
order_of_fresh(const KaKernelLook *kernel)
{
	int64_t		after = 0,
				before = 0,
				elsewhere = 0;

	for (int i = 0; i < KA_PROBE_ROWS; i++)
	{
		const KaFolios *folios = &kernel->row[i].look.folios;

		if (!rows[i].single || !kernel->row[i].emptied || kernel->row[i].missing)
			continue;
		after += folios->after;
		before += folios->before;
		elsewhere += folios->elsewhere;
	}
	return ka_pfn_order(after, before, elsewhere);
}

bool
ka_probe_kernel(KaWalk *walk, const char *directory, int64_t bytes, KaKernelLook *kernel, const char **problem)
{
	Probe		probe = {.walk = walk, .directory = directory, .bytes = (size_t) bytes};
	KaRecycled	recycled;
	int64_t		most;
	bool		done = true;

	*kernel = (KaKernelLook) {0};
	if (!ka_recycled(walk->arena, walk->page_bytes, &recycled))
		return false;
	kernel->unusable_index = recycled.unusable_index;
	kernel->wanted_pages = recycled.bytes / walk->page_bytes;
	most = recycled.available_bytes / BALLAST_SHARE / walk->page_bytes;
	if (bytes / walk->page_bytes * KA_PROBE_ROWS > most)
	{
		*problem = ka_printf(walk->arena, "%d times --size is more than a quarter of the memory that is available", KA_PROBE_ROWS);
		return false;
	}
	kernel->ballast_pages = kernel->wanted_pages < most ? kernel->wanted_pages : most;
	ka_stay_on_one_cpu();

	for (int i = 0; done && i < KA_PROBE_ROWS; i++)
	{
		KaProbeRow *row = &kernel->row[i];

		if (i == 1 && kernel->ballast_pages > 0)
			take_memory(&probe, (size_t) (kernel->ballast_pages * walk->page_bytes), MAP_PRIVATE);
		*row = (KaProbeRow) {.memory = rows[i].memory, .emptied = i > 0 && kernel->ballast_pages == kernel->wanted_pages};
		ka_walk_reset(walk);
		if (!rows[i].get(&probe, &row->missing))
			done = row->missing != NULL;	/* else there is no memory at all */
		else
			done = ka_look_of(walk, &row->look);
	}
	release(&probe);
	if (done)
		kernel->order = order_of_fresh(kernel);
	return done;
}
