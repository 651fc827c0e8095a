/*
 * observe.h: checkpoints from the ring, as auto_apply compares them.
 */
#ifndef KA_OBSERVE_H
#define KA_OBSERVE_H

#include "datatype/timestamp.h"

#include "verdict.h"

typedef struct KaObserved
{
	KaObservation *items;		/* palloc'd, oldest first */
	size_t		count;
	bool		restartpoints;	/* the newest one is a restartpoint; all are of one kind ... */
	bool		mixed;			/* ... unless the server was promoted in between */
} KaObserved;

/*
 * The checkpoints that began in [since, until) and have got their samples, each
 * with the samples since the one before it, but none from before "since".
 * Those at shutdown and at the end of recovery are left out.
 */
extern void ka_observe(TimestampTz since, TimestampTz until, KaObserved *observed);

#endif							/* KA_OBSERVE_H */
