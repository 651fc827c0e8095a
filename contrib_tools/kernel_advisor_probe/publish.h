/*
 * publish.h: the only writer of the file that probe_file.h describes.
 */
#ifndef KA_PUBLISH_H
#define KA_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "probe_file.h"

typedef struct KaPublisher
{
	int			directory_fd;
	int			lock_fd;		/* held as long as the probe runs */
	const char *name;			/* in the directory */
	KaProbeFile *map;
	dev_t		device;
	ino_t		inode;
} KaPublisher;

/* The directory of "path", made if it is not there, for this user. */
extern bool ka_make_directory(const char *path, uid_t uid, gid_t gid, char *error, size_t error_size);

/*
 * Takes the lock of this path (another probe has it: false) and makes a new
 * file, which nobody sees before the first ka_publish().  "path" is kept.
 */
extern bool ka_publisher_open(KaPublisher *publisher, const char *path, char *error, size_t error_size);

/* Writes the rows that there are; the first time, puts the file into its place. */
extern bool ka_publish(KaPublisher *publisher, const KaProbeFile *file, char *error, size_t error_size);

/* Removes the file, unless it is another one by now. */
extern void ka_publisher_close(KaPublisher *publisher);

#endif							/* KA_PUBLISH_H */
