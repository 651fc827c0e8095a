/*
 * child.h: runs a program and reads what it prints.
 */
#ifndef KA_TOOL_CHILD_H
#define KA_TOOL_CHILD_H

#include <sys/types.h>

#include "ka_base.h"

#define KA_CHILD_SECONDS 10		/* enough for a program that only prints something */

typedef struct KaChildResult
{
	int			status;			/* exit code; -1: killed, timed out or not started */
	const char *output;			/* stdout without its last newline, in the arena */
	const char *problem;		/* last line of stderr, or why there is no result; NULL: none */
} KaChildResult;

/*
 * Runs argv[0], an absolute path, as a user (with that user's groups; must be
 * the caller itself unless that is root).  No shell, a clean environment, no
 * inherited descriptors, no terminal; killed after "seconds".
 */
extern bool ka_child_run(KaArena *arena, const char *const *argv, uid_t uid, int seconds, KaChildResult *result);

#endif							/* KA_TOOL_CHILD_H */
