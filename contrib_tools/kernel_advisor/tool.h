/*
 * tool.h: what the commands of the tool share.
 */
#ifndef KA_TOOL_H
#define KA_TOOL_H

#include "ka_base.h"

/* facts, advise, doctor. */
enum
{
	KA_EXIT_NOTHING = 0,		/* nothing to do */
	KA_EXIT_ADVICE = 1			/* advice of severity warning or critical */
};

/* reserve, rollback. */
enum
{
	KA_EXIT_FULL = 0,			/* done, or there was nothing to do */
	KA_EXIT_PARTIAL = 1,		/* a part of it */
	KA_EXIT_NONE = 3			/* refused, or nothing was granted: all is as it was */
};

/* Every command: wrong usage, or what it needs could not be read, reached or written. */
#define KA_EXIT_TROUBLE 2

/* Prints a message to stderr (NULL: out of memory) and returns KA_EXIT_TROUBLE. */
extern int	ka_trouble(const char *text);

/* The same, with the word "note", and the tool goes on; NULL prints nothing. */
extern void ka_note(const char *text);

#endif							/* KA_TOOL_H */
