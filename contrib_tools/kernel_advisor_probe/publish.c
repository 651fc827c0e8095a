/*
 * publish.c: the only writer of the file that probe_file.h describes.
 *
 * One probe per path: a lock on PATH.lock, which stays there when the probe has
 * ended, since removing it would let a third one lock another file of that name.
 * The file's blocks are reserved before it is mapped: on a full tmpfs a write
 * to a hole of the mapping would be SIGBUS.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "publish.h"

static bool
fail(char *error, size_t error_size, const char *what)
{
	snprintf(error, error_size, "%s: %s", what, strerror(errno));
	return false;
}

/* False: too long, or no absolute path of a file. */
static bool
directory_of(const char *path, char *directory, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (path[0] != '/' || slash[1] == '\0')
		return false;
	return snprintf(directory, size, "%.*s", slash == path ? 1 : (int) (slash - path), path) < (int) size;
}

bool
ka_make_directory(const char *path, uid_t uid, gid_t gid, char *error, size_t error_size)
{
	char		directory[PATH_MAX];

	if (!directory_of(path, directory, sizeof(directory)))
		return errno = EINVAL, fail(error, error_size, path);
	if (mkdir(directory, 0755) < 0)
		return errno == EEXIST || fail(error, error_size, directory);
	/* The directory that was just made, whatever its path leads to by now. */
	int			fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool		good = fd >= 0 && fchown(fd, uid, gid) == 0 && fchmod(fd, 0755) == 0;

	if (!good)
		fail(error, error_size, directory);
	if (fd >= 0)
		close(fd);
	return good;
}

static bool
take_lock(KaPublisher *publisher, char *error, size_t error_size)
{
	char		lock[NAME_MAX + 1];

	if (snprintf(lock, sizeof(lock), "%s.lock", publisher->name) >= (int) sizeof(lock))
		return errno = ENAMETOOLONG, fail(error, error_size, publisher->name);
	publisher->lock_fd = openat(publisher->directory_fd, lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (publisher->lock_fd < 0)
		return fail(error, error_size, lock);
	if (flock(publisher->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (errno != EWOULDBLOCK)
		return fail(error, error_size, lock);
	snprintf(error, error_size, "another probe publishes this file already");
	return false;
}

static bool
make_file(KaPublisher *publisher, char *error, size_t error_size)
{
	char		temporary[NAME_MAX + 1];
	struct stat status;
	int			fd;
	void	   *map;

	if (snprintf(temporary, sizeof(temporary), "%s.new", publisher->name) >= (int) sizeof(temporary))
		return errno = ENAMETOOLONG, fail(error, error_size, publisher->name);
	unlinkat(publisher->directory_fd, temporary, 0);	/* of a probe that was killed */
	fd = openat(publisher->directory_fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(error, error_size, temporary);
	errno = posix_fallocate(fd, 0, sizeof(KaProbeFile));
	map = errno == 0 && fchmod(fd, 0644) == 0 && fstat(fd, &status) == 0 ?
		mmap(NULL, sizeof(KaProbeFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (map == MAP_FAILED)
	{
		fail(error, error_size, temporary);
		unlinkat(publisher->directory_fd, temporary, 0);
		close(fd);
		return false;
	}
	close(fd);
	publisher->map = map;
	publisher->device = status.st_dev;
	publisher->inode = status.st_ino;
	return true;
}

bool
ka_publisher_open(KaPublisher *publisher, const char *path, char *error, size_t error_size)
{
	char		directory[PATH_MAX];

	*publisher = (KaPublisher) {.directory_fd = -1, .lock_fd = -1};
	if (!directory_of(path, directory, sizeof(directory)))
		return errno = EINVAL, fail(error, error_size, path);
	publisher->name = strrchr(path, '/') + 1;
	publisher->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (publisher->directory_fd < 0)
		return fail(error, error_size, directory);
	return take_lock(publisher, error, error_size) && make_file(publisher, error, error_size);
}

bool
ka_publish(KaPublisher *publisher, const KaProbeFile *file, char *error, size_t error_size)
{
	KaProbeFile *map = publisher->map;
	bool		is_first = map->header.magic == 0;
	uint64_t	sequence = map->header.sequence;
	KaProbeHeader header = file->header;

	__atomic_store_n(&map->header.sequence, sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	header.magic = KA_PROBE_MAGIC;
	header.version = KA_PROBE_VERSION;
	header.size = sizeof(KaProbeFile);
	header.sequence = sequence + 1;
	memcpy(&map->header, &header, sizeof(header));
	memcpy(&map->totals, &file->totals, sizeof(map->totals));
	memcpy(map->groups, file->groups, file->header.ngroups * sizeof(map->groups[0]));
	memcpy(map->processes, file->processes, file->header.nprocesses * sizeof(map->processes[0]));
	__atomic_store_n(&map->header.sequence, sequence + 2, __ATOMIC_RELEASE);

	if (is_first)
	{
		char		temporary[NAME_MAX + 1];

		snprintf(temporary, sizeof(temporary), "%s.new", publisher->name);
		if (renameat(publisher->directory_fd, temporary, publisher->directory_fd, publisher->name) < 0)
			return fail(error, error_size, publisher->name);
	}
	return true;
}

void
ka_publisher_close(KaPublisher *publisher)
{
	struct stat status;

	if (publisher->map)
	{
		if (fstatat(publisher->directory_fd, publisher->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			status.st_dev == publisher->device && status.st_ino == publisher->inode)
			unlinkat(publisher->directory_fd, publisher->name, 0);
		munmap(publisher->map, sizeof(KaProbeFile));
	}
	if (publisher->lock_fd >= 0)
		close(publisher->lock_fd);
	if (publisher->directory_fd >= 0)
		close(publisher->directory_fd);
	*publisher = (KaPublisher) {.directory_fd = -1, .lock_fd = -1};
}
