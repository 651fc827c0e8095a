/*
 * persist.h: the two files that set our knobs at the next boot (named in
 * the core's own_files.h).
 *
 *	/etc/sysctl.d/60-kernel-advisor.conf	files of /proc/sys
 *	/etc/tmpfiles.d/kernel-advisor.conf		files of /sys
 *
 * The files themselves are the truth, not the journal: what an administrator
 * deleted stays deleted.  A file with a line that is not ours is left alone.
 */
#ifndef KA_PERSIST_H
#define KA_PERSIST_H

#include "knobs.h"
#include "own_files.h"

#define KA_MAX_PERSISTED 256

typedef struct KaPersisted
{
	const KaKnob *knob;
	int			node;
	int64_t		value;
	uint64_t	change;			/* that wrote it; 0: not known */
	uint32_t	uid;
	int64_t		at_us;
} KaPersisted;

typedef struct KaPersistFile
{
	KaPersisted entries[KA_MAX_PERSISTED];
	size_t		n;
} KaPersistFile;

/* Directories, opened while the daemon starts; -1 with an errno when missing. */
typedef struct KaPersist
{
	int			sysctl_fd;
	int			sysctl_error;
	int			tmpfiles_fd;
	int			tmpfiles_error;
} KaPersist;

extern void ka_persist_open(KaPersist *persist, const char *root);
extern void ka_persist_close(KaPersist *persist);

/* Parses a file of ours; false: *line is the first that is not.  sysfs: the tmpfiles form. */
extern bool ka_persist_parse(const char *text, size_t length, bool sysfs, KaPersistFile *file, uint32_t *line);

/* The text of a file; -ENOSPC: too long for the buffer. */
extern int	ka_persist_format(const KaPersistFile *file, char *text, size_t size);

/*
 * The value that our file has for a knob, or KA_NO_VALUE.  -EBADMSG: the file
 * has a foreign line; another negative errno: it cannot be read.
 */
extern int	ka_persist_get(const KaPersist *persist, const KaKnob *knob, int node, int64_t *value, uint32_t *line);

/* Replaces the file by one with this entry; with KA_NO_VALUE, without it. */
extern int	ka_persist_put(const KaPersist *persist, const KaPersisted *entry, uint32_t *line);

#endif							/* KA_PERSIST_H */
