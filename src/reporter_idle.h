/*
 * reporter_idle.h: whether anybody but the reporter writes.
 *
 * A mark is kept in shared memory from one report to the next, and is lost when
 * the server stops: a server without one counts as not idle.
 *
 *	idle = ka_idle_look(&mark);			at the beginning of a report
 *	ka_idle_count(&mark);				before each end of a transaction of the report
 *	ka_idle_stored(&mark, next_xid);	when checkpoints were stored that were not yet
 *	ka_idle_end(&mark, complete);		at its end
 */
#ifndef KA_REPORTER_IDLE_H
#define KA_REPORTER_IDLE_H

#include "access/xlogdefs.h"

typedef struct KaIdleMark
{
	bool		known;			/* "others" is */
	uint64		others;			/* transaction numbers of others, when the newest checkpoint that is stored began */
	uint64		own;			/* transaction numbers that reporters got since the server started */
	uint64		own_before;		/* the same, when the running report began */
	XLogRecPtr	own_record;		/* newest WAL record of a reporter; invalid: none */
} KaIdleMark;

/* Whether nobody else has written since the newest stored checkpoint began.  Not during recovery. */
extern bool ka_idle_look(KaIdleMark *mark);

/* Inside of a transaction that is about to commit or to abort: counts its number, if it got one. */
extern void ka_idle_count(KaIdleMark *mark);

/* The newest of those that were stored; its row's next_xid. */
extern void ka_idle_stored(KaIdleMark *mark, int64 next_xid);

/* "complete": nothing was left to be written, so that the next report may wait for others. */
extern void ka_idle_end(KaIdleMark *mark, bool complete);

#endif							/* KA_REPORTER_IDLE_H */
