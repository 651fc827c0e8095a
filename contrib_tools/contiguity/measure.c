/*
 * measure.c: the requests that a device gets when a file of the page cache is
 * written to it, from memory as it is, and from memory that is not fragmented.
 *
 * A file is made and written past the cache, so that it has its place on the
 * disk and has given no page back; then it is written again, through the cache,
 * and synced: what the device counts meanwhile are the requests of that.  The
 * second time, what the processors' lists keep of recycled pages is first taken
 * by a file that is never synced, and large blocks are made: as many
 * transparent huge pages as it takes are collected, by compacting memory where
 * needed, and freed just before the file asks for pages.  Whether it got them
 * is looked at, page by page, and only then the result is that of unfragmented
 * memory.
 *
 * Locks: none.  Others may write to the device meanwhile: an attempt in which
 * much more was written than the file has is repeated.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "collect.h"
#include "look.h"
#include "scan.h"

/* More than this share beyond the file's size was written by others. */
#define OTHERS_PCT 5
#define ATTEMPTS 3

/* Of what is available, for pages that are only to be out of the way. */
#define BALLAST_SHARE 20

/* The file takes no more of the room on the disk: somebody may live there. */
#define ROOM_SHARE 4

/* A write past the cache. */
#define DIRECT_BYTES (1024 * 1024)
#define DIRECT_ALIGNMENT 4096

/* Since Linux 6.1. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

typedef struct Work
{
	KaWalk	   *walk;
	KaMeasurement *measurement;
	const char *directory;
	int			fd;
	int			ballast_fd;		/* the file that is never synced; -1: none */
	char	   *buffer;			/* of one write */
	KaExtents	extents;
} Work;

static bool
trouble(Work *work, const char **problem, const char *what)
{
	*problem = ka_printf(work->walk->arena, "%s: %s", what, strerror(errno));
	return false;
}

static bool
write_all(Work *work, int fd, int64_t bytes, int64_t piece, const char **problem)
{
	for (int64_t at = 0; at < bytes; at += piece)
	{
		ssize_t		n = pwrite(fd, work->buffer, (size_t) piece, (off_t) at);

		if (n == piece)
			continue;
		if (n >= 0)
			errno = ENOSPC;
		return trouble(work, problem, "writing");
	}
	return true;
}

/* Nothing is said of failures: whether there are large blocks shows in what the file gets. */
static void
make_large_blocks(int64_t bytes)
{
	size_t		size = (size_t) bytes;
	char	   *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return;
	madvise(map, size, MADV_HUGEPAGE);
	madvise(map, size, MADV_POPULATE_WRITE);
	madvise(map, size, MADV_COLLAPSE);
	munmap(map, size);
}

static int64_t
room_on_disk(const Work *work)
{
	struct statvfs system;

	if (statvfs(work->directory, &system) < 0)
		return 0;
	return ka_multiply((int64_t) system.f_bavail, (int64_t) system.f_frsize);
}

/*
 * Pages of the kind that the file asks for, as many as the processors' lists
 * and the small free blocks have, but no more than a twentieth of the memory
 * that is available, since dirty pages beyond that are written in the
 * background, and than a quarter of the room on the disk, which is put aside
 * for it.
 */
static bool
take_recycled(Work *work, const char **problem)
{
	KaRecycled	recycled;
	int64_t		piece = work->measurement->write_bytes;
	int64_t		bytes,
				most;

	if (!ka_recycled(work->walk->arena, work->walk->page_bytes, &recycled))
		return false;
	most = recycled.available_bytes / BALLAST_SHARE;
	bytes = recycled.bytes < most ? recycled.bytes : most;
	most = room_on_disk(work) / ROOM_SHARE;
	bytes = bytes < most ? bytes : most;
	work->ballast_fd = ka_scratch_file(work->directory);
	if (work->ballast_fd < 0)
		return trouble(work, problem, work->directory);
	return write_all(work, work->ballast_fd, bytes - bytes % piece, piece, problem);
}

static void
drop_ballast(Work *work)
{
	/* It has no name: closed, it is gone, and nothing of it is written. */
	if (work->ballast_fd >= 0)
		close(work->ballast_fd);
	work->ballast_fd = -1;
}

/* Twice as much as the file: some of it stays on the lists of the processor that freed it. */
#define BLOCKS_FACTOR 2

static bool
attempt(Work *work, KaPass *pass, bool fresh, const char **problem)
{
	KaMeasurement *m = work->measurement;
	KaCounters	before,
				after;

	*pass = (KaPass) {0};
	if (posix_fadvise(work->fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
		return trouble(work, problem, "dropping the cache of the file");
	if (fresh && !take_recycled(work, problem))
		return false;
	if (fresh)
		make_large_blocks(BLOCKS_FACTOR * m->file_bytes);
	if (!ka_device_counters(&m->device, &before))
	{
		*problem = ka_printf(work->walk->arena, "the counters of %s cannot be read", m->device.name);
		return false;
	}
	if (!write_all(work, work->fd, m->file_bytes, m->write_bytes, problem))
		return false;
	ka_walk_reset(work->walk);
	if (!ka_walk_file(work->walk, work->fd, problem) || !ka_look_of(work->walk, &pass->look))
		return false;
	if (fdatasync(work->fd) < 0)
		return trouble(work, problem, "fdatasync");
	if (!ka_device_counters(&m->device, &after))
		return false;

	ka_predict_requests(&work->walk->runs, work->walk->page_bytes, work->extents.extent, work->extents.count,
						&m->device.limits, &pass->predicted);
	pass->ios = after.write_ios - before.write_ios;
	pass->merges = after.write_merges - before.write_merges;
	pass->device_bytes = after.write_bytes - before.write_bytes;
	pass->mean_bytes = pass->ios > 0 ? (double) pass->device_bytes / (double) pass->ios : 0;
	pass->contiguous = pass->look.present == pass->look.looked && ka_is_contiguous(&pass->predicted, &m->device.limits);
	pass->disturbed = pass->device_bytes > m->file_bytes + m->file_bytes / 100 * OTHERS_PCT;
	pass->done = pass->ios > 0;
	return true;
}

static bool
undisturbed(Work *work, KaPass *pass, bool fresh, const char **problem)
{
	for (int i = 0; i < ATTEMPTS; i++)
	{
		bool		done = attempt(work, pass, fresh, problem);

		drop_ballast(work);
		if (!done)
			return false;
		if (!pass->disturbed && (!fresh || pass->contiguous))
			break;
	}
	return true;
}

/* Past the cache where the file system can: what has been cached leaves recycled pages behind. */
static bool
write_first(Work *work, const char **problem)
{
	KaMeasurement *m = work->measurement;
	int			flags = fcntl(work->fd, F_GETFL);
	int64_t		piece = m->file_bytes % DIRECT_BYTES == 0 ? DIRECT_BYTES : m->write_bytes;
	bool		done;

	if (fcntl(work->fd, F_SETFL, flags | O_DIRECT) == 0)
	{
		done = write_all(work, work->fd, m->file_bytes, piece, problem);
		if (fcntl(work->fd, F_SETFL, flags) < 0)
			return trouble(work, problem, "fcntl");
		if (done)
			return true;
		*problem = NULL;
	}
	return write_all(work, work->fd, m->file_bytes, m->write_bytes, problem);
}

/* The file has its blocks on the disk before anything is counted. */
static bool
prepare(Work *work, const char **problem)
{
	KaMeasurement *m = work->measurement;
	size_t		size = m->write_bytes > DIRECT_BYTES ? (size_t) m->write_bytes : DIRECT_BYTES;

	if (posix_memalign((void **) &work->buffer, DIRECT_ALIGNMENT, size) != 0)
	{
		work->buffer = NULL;
		return false;
	}
	memset(work->buffer, 'k', size);
	if (m->file_bytes > room_on_disk(work) / ROOM_SHARE)
	{
		*problem = ka_printf(work->walk->arena, "%s: the file may take a quarter of the room there, and --size is more", work->directory);
		return false;
	}
	work->fd = ka_scratch_file(work->directory);
	if (work->fd < 0)
		return trouble(work, problem, work->directory);
	errno = posix_fallocate(work->fd, 0, (off_t) m->file_bytes);
	if (errno != 0)
		return trouble(work, problem, "room for the file");
	if (!write_first(work, problem))
		return false;
	if (fsync(work->fd) < 0)
		return trouble(work, problem, "fsync");
	if (!ka_extents_of(work->walk->arena, work->fd, m->file_bytes, &work->extents))
		return false;
	m->extents_mapped = work->extents.mapped;
	return true;
}

/* What rule io.contiguity reads; a figure that was disturbed is none. */
static bool
make_facts(KaMeasurement *m, KaArena *arena)
{
	KaSource	source = {.root = ""};

	m->facts = ka_alloc(arena, sizeof(*m->facts));
	if (m->facts == NULL)
		return false;
	ka_facts_init(m->facts, arena);
	return ka_collect_fragmentation(m->facts, &source);
}

static void
add_means(KaMeasurement *m)
{
	if (m->found.done && !m->found.disturbed)
		ka_set_real(m->facts, KA_W_REQUEST_BYTES, m->found.mean_bytes);
	if (m->fresh.done && !m->fresh.disturbed && m->fresh.contiguous)
		ka_set_real(m->facts, KA_W_REQUEST_BYTES_UNFRAG, m->fresh.mean_bytes);
}

bool
ka_measure(KaWalk *walk, const char *directory, int64_t file_bytes, int64_t write_bytes,
		   KaMeasurement *measurement, const char **problem)
{
	Work		work = {.walk = walk, .measurement = measurement, .directory = directory, .fd = -1, .ballast_fd = -1};
	bool		done;

	*measurement = (KaMeasurement) {.file_bytes = file_bytes, .write_bytes = write_bytes};
	if (!ka_device_of(walk->arena, directory, &measurement->device))
		return false;
	if (measurement->device.name == NULL)
	{
		*problem = ka_printf(walk->arena, "%s: there is no block device below%s%s: nothing to measure", directory,
							 measurement->device.filesystem ? " " : "",
							 measurement->device.filesystem ? measurement->device.filesystem : "");
		return false;
	}
	/* Memory as it is found: before anything here has changed it. */
	ka_stay_on_one_cpu();
	done = make_facts(measurement, walk->arena) && prepare(&work, problem) &&
		undisturbed(&work, &measurement->found, false, problem) &&
		undisturbed(&work, &measurement->fresh, true, problem);
	if (done)
		add_means(measurement);
	if (work.fd >= 0)
		close(work.fd);
	free(work.buffer);
	return done;
}
