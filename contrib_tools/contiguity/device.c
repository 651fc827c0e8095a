/*
 * device.c: /sys/class/block, FIEMAP.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "collect.h"
#include "device.h"
#include "path.h"

/* Pieces asked for at once. */
#define EXTENTS_AT_ONCE 512

/* Holes of a file are on no disk, nor is what is in the inode or encoded. */
#define NOT_ON_DISK (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_INLINE)

/* In /sys a slash of a device's name is an exclamation mark. */
static char *
sys_name(KaArena *arena, const char *device)
{
	char	   *name = ka_strdup(arena, device);

	for (char *c = name; c && *c; c++)
	{
		if (*c == '/')
			*c = '!';
	}
	return name;
}

/* A partition has the queue of its disk, a directory above. */
static const char *
queue_of(KaArena *arena, const char *device)
{
	char	   *name = sys_name(arena, device);
	const char *own = ka_printf(arena, "/sys/class/block/%s/queue", name ? name : "");

	if (own && ka_path_exists("", own))
		return own;
	return ka_printf(arena, "/sys/class/block/%s/../queue", name ? name : "");
}

/* KA_UNKNOWN stays; what does not fit is no limit. */
static int64_t
scaled(int64_t value, int64_t unit)
{
	return value == KA_UNKNOWN ? KA_UNKNOWN : ka_multiply(value, unit);
}

static const char *
in_brackets(KaArena *arena, const char *line)
{
	const char *start = line ? strchr(line, '[') : NULL;
	const char *end = start ? strchr(start, ']') : NULL;

	return end ? ka_printf(arena, "%.*s", (int) (end - start - 1), start + 1) : NULL;
}

static void
read_queue(KaArena *arena, KaDevice *device)
{
	const char *queue = queue_of(arena, device->name);
	KaPath		path;

	ka_path_init(&path, "");
	if (queue)
	{
		device->limits.max_segments = ka_path_numberf(&path, "%s/max_segments", queue);
		device->limits.max_segment_bytes = ka_path_numberf(&path, "%s/max_segment_size", queue);
		device->limits.max_request_bytes = scaled(ka_path_numberf(&path, "%s/max_sectors_kb", queue), 1024);
		device->read_ahead_bytes = scaled(ka_path_numberf(&path, "%s/read_ahead_kb", queue), 1024);
		device->nomerges = ka_path_numberf(&path, "%s/nomerges", queue);
		device->scheduler = in_brackets(arena, ka_path_linef(&path, "%s/scheduler", queue));
	}
	ka_path_free(&path);
}

bool
ka_device_of(KaArena *arena, const char *path, KaDevice *device)
{
	KaSource	source = {.root = "", .data_directory = path, .wal_directory = path};
	KaFacts    *facts = ka_alloc(arena, sizeof(*facts));

	*device = (KaDevice) {
		.limits = {KA_UNKNOWN, KA_UNKNOWN, KA_UNKNOWN},
		.read_ahead_bytes = KA_UNKNOWN,
		.nomerges = KA_UNKNOWN,
	};
	if (facts == NULL)
		return false;
	ka_facts_init(facts, arena);
	if (!ka_collect_storage(facts, &source))
		return false;
	device->filesystem = ka_text(facts, KA_DATA_FILESYSTEM);
	device->name = ka_text(facts, KA_DATA_DEVICE);
	if (device->name)
		read_queue(arena, device);
	return !arena->failed;
}

/* As one piece, where the file system does not tell. */
static bool
assume_one(KaArena *arena, int64_t bytes, KaExtents *extents)
{
	extents->count = 0;
	extents->mapped = false;
	extents->extent = ka_append(arena, NULL, &extents->count, sizeof(KaExtent));
	if (extents->extent == NULL)
		return false;
	extents->extent[0] = (KaExtent) {.bytes = bytes, .disk = KA_UNKNOWN};
	return true;
}

static bool
take_extent(KaArena *arena, const struct fiemap_extent *from, KaExtents *extents)
{
	KaExtent   *grown;

	/* Memory that waits for a place on the disk gets one when it is written. */
	if ((from->fe_flags & NOT_ON_DISK) && !(from->fe_flags & FIEMAP_EXTENT_DELALLOC))
		return true;
	grown = ka_append(arena, extents->extent, &extents->count, sizeof(KaExtent));
	if (grown == NULL)
		return false;
	extents->extent = grown;
	grown[extents->count - 1] = (KaExtent) {
		.offset = (int64_t) from->fe_logical,
		.bytes = (int64_t) from->fe_length,
		.disk = from->fe_flags & FIEMAP_EXTENT_DELALLOC ? KA_UNKNOWN : (int64_t) from->fe_physical,
	};
	return true;
}

bool
ka_extents_of(KaArena *arena, int fd, int64_t bytes, KaExtents *extents)
{
	struct fiemap *map = calloc(1, sizeof(*map) + EXTENTS_AT_ONCE * sizeof(struct fiemap_extent));
	uint64_t	start = 0;
	bool		last = false;
	bool		done = map != NULL;

	*extents = (KaExtents) {.mapped = true};
	while (done && !last)
	{
		*map = (struct fiemap) {.fm_start = start, .fm_length = FIEMAP_MAX_OFFSET - start, .fm_extent_count = EXTENTS_AT_ONCE};
		if (ioctl(fd, FS_IOC_FIEMAP, map) < 0)
		{
			free(map);
			return assume_one(arena, bytes, extents);
		}
		last = map->fm_mapped_extents == 0;
		for (unsigned i = 0; done && i < map->fm_mapped_extents; i++)
		{
			const struct fiemap_extent *extent = &map->fm_extents[i];

			done = take_extent(arena, extent, extents);
			last = (extent->fe_flags & FIEMAP_EXTENT_LAST) != 0;
			start = extent->fe_logical + extent->fe_length;
		}
	}
	free(map);
	return done;
}

bool
ka_device_counters(const KaDevice *device, KaCounters *counters)
{
	KaReaderConfig config = {.root = "", .hugepage_size_bytes = KA_UNKNOWN, .devices = {device->name}};
	KaReader   *reader = device->name ? ka_reader_new(&config) : NULL;
	bool		read;

	if (reader == NULL)
		return false;
	ka_reader_read_source(reader, KA_SRC_DEVICES, counters);
	read = ka_reader_error(reader, KA_SRC_DEVICES) == 0 && counters->write_ios != KA_UNKNOWN;
	ka_reader_free(reader);
	return read;
}
