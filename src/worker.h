/*
 * worker.h: background workers that are started for one piece of work and end
 * with it: a step of auto_apply, a report, a trial.
 */
#ifndef KA_WORKER_H
#define KA_WORKER_H

#include "postmaster/bgworker.h"

/* What to start: it has shared memory, and begins when the server is consistent. */
typedef struct KaWorkerOrder
{
	const char *function;		/* in this library */
	const char *name;			/* and type, in pg_stat_activity and the log */
	bool		connects;		/* to a database, or to shared catalogs */
	Datum		arg;
	const void *extra;			/* for bgw_extra; NULL: nothing */
	Size		extra_size;		/* bytes, BGW_EXTRALEN at most */
} KaWorkerOrder;

/* False: there is no free worker, and *handle is NULL.  Else a handle in TopMemoryContext. */
extern bool ka_worker_start(const KaWorkerOrder *order, BackgroundWorkerHandle **handle);

/* Whether it is there still, or will be; else it is forgotten: *handle is NULL then. */
extern bool ka_worker_lives(BackgroundWorkerHandle **handle);

/* One line for the log: "who" has no free worker ("why": for what, or ""), and tries again every minute. */
extern void ka_worker_log_missing(const char *who, const char *why);

/*
 * In a worker: takes its place in shared memory, *pid (under the mutex; 0: free), up to the end of
 * the process.  One of each kind at a time, also when the sampler that started the other one is gone.
 */
extern bool ka_worker_claim(int *pid);

#endif							/* KA_WORKER_H */
