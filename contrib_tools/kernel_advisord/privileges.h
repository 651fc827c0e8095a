/*
 * privileges.h: giving up what the daemon does not need.
 */
#ifndef KA_PRIVILEGES_H
#define KA_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>

/* What the process may still do with a directory or file after the drop. */
typedef enum KaAccess
{
	KA_ACCESS_READ,				/* read files, list the directory */
	KA_ACCESS_REPLACE			/* and create, write, rename and remove files in it */
} KaAccess;

typedef struct KaAllowedPath
{
	const char *path;			/* below the root directory */
	KaAccess	access;
	bool		directory;
} KaAllowedPath;

/*
 * Keeps uid 0 and drops everything else: supplementary groups, all capability
 * sets, the ways to get them back, file access beyond the paths, and system
 * calls beyond the list.  Then reads /proc/self/status and compares.  False:
 * *error says what there is too much or too little of, and the process must end.
 */
extern bool ka_privileges_drop(const char *root, const KaAllowedPath *paths, size_t npaths,
							   char *error, size_t error_size);

/* What the kernel says in /proc/self/status, for the log: "Landlock ABI 4" or why not. */
extern const char *ka_landlock_state(void);

#endif							/* KA_PRIVILEGES_H */
