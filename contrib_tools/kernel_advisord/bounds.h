/*
 * bounds.h: what the administrator allows, from a file that only root can write.
 *
 *	# /etc/kernel_advisor/bounds.conf
 *	allowed_users = postgres
 *	pool_max_percent = 75
 *	min_available = 512MB
 *	changes_per_hour = 720
 *	persist = on
 *	drop_caches = on
 *	vm.overcommit_memory = off
 *	vm.swappiness = 0..100
 *
 * The file can only narrow the table of knobs.def.  It is read once, before the
 * privileges are dropped: user names cannot be looked up afterwards.
 */
#ifndef KA_BOUNDS_H
#define KA_BOUNDS_H

#include <stddef.h>
#include <sys/types.h>

#include "knobs.h"

#define KA_BOUNDS_FILE "/etc/kernel_advisor/bounds.conf"
#define KA_MAX_USERS 16

typedef struct KaRange
{
	bool		off;
	int64_t		min;
	int64_t		max;
} KaRange;

typedef struct KaBounds
{
	uid_t		users[KA_MAX_USERS];	/* beside root */
	size_t		nusers;
	int64_t		pool_max_percent;	/* of RAM, pools of all sizes with their surplus */
	int64_t		min_available_bytes;	/* MemAvailable left by a larger pool */
	int64_t		changes_per_hour;	/* of all users but root; 0: none */
	bool		persist;
	bool		drop_caches;
	KaRange    *ranges;			/* one per row of ka_knobs, in its order */
} KaBounds;

/* Without a file; false: no memory. */
extern bool ka_bounds_default(KaBounds *bounds);
extern void ka_bounds_free(KaBounds *bounds);

/*
 * Reads settings over the defaults.  False: *error says why, as "file:line: ...".
 * "name" is for the messages.
 */
extern bool ka_bounds_parse(KaBounds *bounds, const char *name, const char *text, size_t length,
							char *error, size_t error_size);

/*
 * The file below "root".  A missing file is no error (*found false).  Refused:
 * a file or directory not owned by root, or writable by group or others.
 */
extern bool ka_bounds_load(KaBounds *bounds, const char *root, const char *path, bool *found,
						   char *error, size_t error_size);

extern bool ka_bounds_allow_user(const KaBounds *bounds, uid_t uid);

/* The range of a knob on a machine with so much memory; page_bytes is that of a pool, or 0. */
extern KaRange ka_bounds_range(const KaBounds *bounds, const KaKnob *knob, int64_t total_bytes, int64_t page_bytes);

#endif							/* KA_BOUNDS_H */
