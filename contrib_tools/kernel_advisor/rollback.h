/*
 * rollback.h: the changes in the helper's journal, and their undoing.
 */
#ifndef KA_TOOL_ROLLBACK_H
#define KA_TOOL_ROLLBACK_H

#include "helper.h"

typedef struct KaRollbackOptions
{
	const char *socket;			/* NULL: where kernel_advisord listens by default, if it does */
	int64_t		change;			/* 0: only list */
	bool		force;			/* though somebody else has set the value since */
	bool		json;
} KaRollbackOptions;

/* The exit status of the tool. */
extern int	ka_rollback(KaArena *arena, const KaRollbackOptions *options);

#endif							/* KA_TOOL_ROLLBACK_H */
