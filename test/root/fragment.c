/*
 * fragment.c: gives memory the look of a host that has been up for long.
 *
 *	fragment KIND MB EVERY
 *
 *	movable	anonymous pages: MB are touched, then all but one page in EVERY given back
 *	pinned	the same, and what is left is registered with io_uring: it cannot be moved,
 *			like the buffers of RDMA, VFIO and io_uring
 *	huge	MB are put aside in huge pages where there are any: the fastest way (EVERY is not used)
 *	tables	page tables: EVERY processes map the same MB and touch one page of each 2 MB,
 *			like the backends of a database on small pages
 *	cache	clean page cache: MB of a sparse file in the current directory are read in
 *			random order, then all but one page in EVERY dropped
 *
 * Prints "ready" and holds all of it until standard input ends, so that nothing
 * outlives the test that started it.  Pages are 4 KiB throughout.
 */
#define _GNU_SOURCE 1

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096
#define PMD_BYTES (2 << 20)

/* The kernel's IORING_MAX_REG_BUFFERS. */
#define BUFFERS_OF_RING 16384

static char *
map_small_pages(size_t bytes, int how)
{
	char	   *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		err(1, "mmap");
	if (madvise(map, bytes, MADV_NOHUGEPAGE) < 0)
		err(1, "madvise");
	return map;
}

static char *
movable(size_t bytes, size_t every)
{
	char	   *map = map_small_pages(bytes, MAP_PRIVATE);

	if (madvise(map, bytes, MADV_POPULATE_WRITE) < 0)
		err(1, "populating %zu MB", bytes >> 20);
	for (size_t at = 0; at < bytes; at += every * PAGE)
	{
		size_t		end = at + every * PAGE < bytes ? at + every * PAGE : bytes;

		if (end > at + PAGE && madvise(map + at + PAGE, end - at - PAGE, MADV_DONTNEED) < 0)
			err(1, "madvise");
	}
	return map;
}

static void
huge(size_t bytes)
{
	char	   *map = map_small_pages(bytes, MAP_PRIVATE);

	/* Where the kernel has no transparent huge pages small ones do as well. */
	madvise(map, bytes, MADV_HUGEPAGE);
	if (madvise(map, bytes, MADV_POPULATE_WRITE) < 0)
		err(1, "populating %zu MB", bytes >> 20);
}

/* Each page that is left is a registered buffer of its own. */
static void
pinned(size_t bytes, size_t every)
{
	char	   *map = movable(bytes, every);
	struct iovec *buffers = calloc(BUFFERS_OF_RING, sizeof(*buffers));
	size_t		at = 0;

	if (buffers == NULL)
		err(1, "calloc");
	while (at < bytes)
	{
		struct io_uring_params parameters = {0};
		long		ring = syscall(SYS_io_uring_setup, 1, &parameters);
		unsigned	n = 0;

		if (ring < 0)
			err(1, "io_uring_setup");
		for (; n < BUFFERS_OF_RING && at < bytes; at += every * PAGE)
			buffers[n++] = (struct iovec) {.iov_base = map + at, .iov_len = PAGE};
		if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, buffers, n) < 0)
			err(1, "registering buffers");
	}
	free(buffers);
}

static void
tables(size_t bytes, size_t processes)
{
	char	   *map = map_small_pages(bytes, MAP_SHARED);
	int			done[2];
	pid_t		parent = getpid();

	if (pipe(done) < 0)
		err(1, "pipe");
	for (size_t i = 0; i < processes; i++)
	{
		pid_t		pid = fork();

		if (pid < 0)
			err(1, "fork");
		if (pid > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		for (size_t at = 0; at < bytes; at += PMD_BYTES)
			((volatile char *) map)[at] = 1;
		if (write(done[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	for (size_t i = 0; i < processes; i++)
	{
		char		byte;

		if (read(done[0], &byte, 1) != 1)
			err(1, "a process");
	}
}

static void
cache(size_t bytes, size_t every)
{
	char		name[] = "fragment.XXXXXX";
	char		page[PAGE];
	size_t		pages = bytes / PAGE;
	int			fd = mkstemp(name);

	if (fd < 0 || unlink(name) < 0 || ftruncate(fd, (off_t) bytes) < 0)
		err(1, "%s", name);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* single pages, not large folios */
	/* A step that has no factor in common with any number of pages below 2^31 visits each once. */
	for (size_t i = 0, at = 0; i < pages; i++, at = (at + 2147483647) % pages)
	{
		if (pread(fd, page, PAGE, (off_t) (at * PAGE)) != PAGE)
			err(1, "reading %s", name);
	}
	for (size_t at = 0; at < pages; at += every)
	{
		if (every > 1)
			posix_fadvise(fd, (off_t) ((at + 1) * PAGE), (off_t) ((every - 1) * PAGE), POSIX_FADV_DONTNEED);
	}
}

int
main(int argc, char **argv)
{
	size_t		bytes = argc == 4 ? (size_t) strtoul(argv[2], NULL, 10) << 20 : 0;
	size_t		every = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	char		rest[64];

	if (bytes == 0 || every == 0)
		errx(2, "usage: fragment movable|pinned|huge|tables|cache MB EVERY");
	if (strcmp(argv[1], "movable") == 0)
		movable(bytes, every);
	else if (strcmp(argv[1], "pinned") == 0)
		pinned(bytes, every);
	else if (strcmp(argv[1], "huge") == 0)
		huge(bytes);
	else if (strcmp(argv[1], "tables") == 0)
		tables(bytes, every);
	else if (strcmp(argv[1], "cache") == 0)
		cache(bytes, every);
	else
		errx(2, "no kind \"%s\"", argv[1]);

	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, rest, sizeof(rest)) > 0)
		;
	return 0;
}
