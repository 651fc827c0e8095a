/*
 * device.h: the block device below a file, as the core's collector finds it:
 * the limits of its queue, the pieces of a file on it, what it counts.
 */
#ifndef KA_CONTIGUITY_DEVICE_H
#define KA_CONTIGUITY_DEVICE_H

#include "counters.h"
#include "requests.h"

typedef struct KaDevice
{
	const char *filesystem;		/* NULL: not known */
	const char *name;			/* as in /proc/diskstats; NULL: none (tmpfs, network) or not known */
	KaLimits	limits;
	int64_t		read_ahead_bytes;
	int64_t		nomerges;		/* 0: the block layer merges; 1, 2: less, not */
	const char *scheduler;
} KaDevice;

/* Of an absolute path; false only without memory. */
extern bool ka_device_of(KaArena *arena, const char *path, KaDevice *device);

typedef struct KaExtents
{
	KaExtent   *extent;
	size_t		count;
	bool		mapped;			/* the file system told; otherwise one piece is assumed */
} KaExtents;

/* The pieces of a file.  False: no memory. */
extern bool ka_extents_of(KaArena *arena, int fd, int64_t bytes, KaExtents *extents);

/* The device's counters now; false: it has none. */
extern bool ka_device_counters(const KaDevice *device, KaCounters *counters);

#endif							/* KA_CONTIGUITY_DEVICE_H */
