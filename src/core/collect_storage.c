/*
 * collect_storage.c: the file system and the block device below the data
 * directory and pg_wal.
 *
 * The device is the one that the file system is mounted from, under its name
 * in /proc/diskstats: a partition as vda1, a logical volume as dm-0, a file as
 * loop0, a RAID as md0.  Its counters are those of the requests that the file
 * system makes; what lies below (the physical volumes of a dm-0) splits and
 * merges them again, and may be shared with others.
 *
 * File systems without a device number of their own (btrfs, overlay) name
 * their source: a device file, or for overlay the upper directory, which lies
 * on another mount.  A network file system, tmpfs or a pool (zfs) has no
 * device here.
 *
 * Locks: none; the facts belong to the caller.
 */
#define _GNU_SOURCE 1

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "collect_priv.h"

/* Overlays on overlays: more are not followed. */
#define MAX_OVERLAYS 4

#define NAME_SIZE 256

/* Does /proc/diskstats have it? */
static bool
is_in_diskstats(KaPath *path, const char *device)
{
	KaSpan		text;

	if (ka_path_read(path, "/proc/diskstats") < 0)
		return false;
	text = ka_path_text(path);
	while (text.length > 0)
	{
		KaSpan		line = ka_next_line(&text);

		ka_next_word(&line);
		ka_next_word(&line);
		if (ka_equals(ka_next_word(&line), device))
			return true;
	}
	return false;
}

/* The last component; sysfs has ! where the device's name has a slash. */
static bool
take_name(const char *file, char *device)
{
	const char *slash = strrchr(file, '/');
	const char *name = slash ? slash + 1 : file;

	if (name[0] == '\0' || strlen(name) >= NAME_SIZE)
		return false;
	strcpy(device, name);
	for (char *c = device; *c; c++)
	{
		if (*c == '!')
			*c = '/';
	}
	return true;
}

/* /sys/dev/block/254:1 is a link to .../block/vda/vda1. */
static bool
device_of_number(KaPath *path, int64_t major, int64_t minor, char *device)
{
	char		name[64];
	char		target[KA_PATH_MAX];

	snprintf(name, sizeof(name), "/sys/dev/block/%" PRId64 ":%" PRId64, major, minor);
	return ka_path_readlink(path->root, name, target, sizeof(target)) == 0 && take_name(target, device);
}

/* A device file, perhaps by a link such as /dev/mapper/vg-data. */
static bool
device_of_file(KaPath *path, const char *file, char *device)
{
	struct stat status;
	char		resolved[KA_PATH_MAX];

	if (strncmp(file, "/dev/", 5) != 0)
		return false;
	if (ka_path_stat(path->root, file, &status) == 0 && S_ISBLK(status.st_mode) && path->root[0] == '\0')
		return device_of_number(path, major(status.st_rdev), minor(status.st_rdev), device);

	/* In a copy, device files are plain files or missing; their names remain. */
	if (path->root[0] == '\0')
		return false;
	if (ka_path_resolve(path->root, file, resolved, sizeof(resolved)) == 0)
		return take_name(resolved, device);
	return take_name(file, device);
}

/* upperdir= of an overlay's options; the kernel escapes commas in it as \, */
static bool
upper_directory(KaSpan options, char *name, size_t size)
{
	while (options.length > 0)
	{
		KaSpan		option = ka_next_field(&options, ',');

		if (ka_starts_with(option, "upperdir=") && !ka_ends_with(option, "\\"))
			return ka_unescape(ka_skip(option, strlen("upperdir=")), name, size);
	}
	return false;
}

/* The device of a mount; "mountinfo" is a text of its own, so path may read. */
static bool
device_of_mount(KaPath *path, KaSpan mountinfo, KaMount mount, char *device)
{
	char		name[KA_PATH_MAX];
	char		resolved[KA_PATH_MAX];

	for (int i = 0; i < MAX_OVERLAYS; i++)
	{
		if (mount.major != 0)
			return device_of_number(path, mount.major, mount.minor, device);
		if (!ka_equals(mount.type, "overlay"))
			return ka_unescape(mount.source, name, sizeof(name)) && device_of_file(path, name, device);
		if (!upper_directory(mount.super_options, name, sizeof(name)) ||
			ka_path_resolve(path->root, name, resolved, sizeof(resolved)) < 0 ||
			!ka_find_mount(mountinfo, resolved, &mount))
			return false;
	}
	return false;
}

/*
 * The mount that a file is on.  On this machine the device number must agree,
 * unless the file system has a number of its own for each of its volumes
 * (btrfs).
 */
static bool
mount_of_directory(const char *root, KaSpan mountinfo, const char *directory, KaMount *mount)
{
	struct stat status;

	if (!ka_find_mount(mountinfo, directory, mount))
		return false;
	if (root[0] != '\0')
		return true;
	if (ka_path_stat(root, directory, &status) < 0)
		return false;
	return major(status.st_dev) == 0 || mount->major == 0 ||
		(major(status.st_dev) == (uint64_t) mount->major && minor(status.st_dev) == (uint64_t) mount->minor);
}

/* Where the mount is not on our list (chroot), the file's own device number still tells the device. */
static bool
device_of_directory(KaPath *path, const char *directory, char *device)
{
	struct stat status;

	return path->root[0] == '\0' && ka_path_stat(path->root, directory, &status) == 0 &&
		device_of_number(path, major(status.st_dev), minor(status.st_dev), device);
}

static void
collect_directory(KaFacts *facts, KaPath *path, KaSpan mountinfo, const char *directory,
				  KaFact filesystem, KaFact device_fact)
{
	char		resolved[KA_PATH_MAX];
	char		type[NAME_SIZE];
	char		device[NAME_SIZE];
	KaMount		mount;
	bool		found;

	if (ka_path_resolve(path->root, directory, resolved, sizeof(resolved)) < 0)
		return;
	if (mount_of_directory(path->root, mountinfo, resolved, &mount))
	{
		if (ka_unescape(mount.type, type, sizeof(type)))
			ka_set_text(facts, filesystem, type);
		found = device_of_mount(path, mountinfo, mount, device);
	}
	else
		found = device_of_directory(path, resolved, device);
	if (found && is_in_diskstats(path, device))
		ka_set_text(facts, device_fact, device);
}

bool
ka_collect_storage(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	KaPath		mounts;
	char		proc[64];
	char		wal[KA_PATH_MAX];
	const char *wal_directory = source->wal_directory;
	bool		collected;

	if (source->data_directory == NULL && wal_directory == NULL)
		return true;
	if (wal_directory == NULL)
	{
		if (snprintf(wal, sizeof(wal), "%s/pg_wal", source->data_directory) >= (int) sizeof(wal))
			return true;
		wal_directory = wal;
	}

	ka_path_init(&path, source->root);
	ka_path_init(&mounts, source->root);
	ka_proc_directory(source, proc, sizeof(proc));
	if (ka_path_readf(&mounts, "%s/mountinfo", proc) == 0)
	{
		if (source->data_directory)
			collect_directory(facts, &path, ka_path_text(&mounts), source->data_directory,
							  KA_DATA_FILESYSTEM, KA_DATA_DEVICE);
		collect_directory(facts, &path, ka_path_text(&mounts), wal_directory,
						  KA_WAL_FILESYSTEM, KA_WAL_DEVICE);
	}
	collected = ka_collected(&path, facts) && !mounts.no_memory;
	ka_path_free(&path);
	ka_path_free(&mounts);
	return collected;
}
