/*
 * compat.h: every difference between PostgreSQL versions, and nothing else.
 *
 * No other file tests PG_VERSION_NUM.  Names end in _compat where they stand
 * for a function of the server.
 */
#ifndef KA_COMPAT_H
#define KA_COMPAT_H

#include "postgres.h"

#include "fmgr.h"
#include "lib/ilist.h"
#include "pgstat.h"
#include "postmaster/bgworker_internals.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "pg_kernel_advisor needs PostgreSQL 15 or later"
#endif

/* 16: fmgr.h declares it. */
#if PG_VERSION_NUM < 160000
extern PGDLLEXPORT void _PG_init(void);
#endif

/* 18: a module can tell its name and version. */
#if PG_VERSION_NUM >= 180000
#define KA_MODULE_MAGIC(module, release) PG_MODULE_MAGIC_EXT(.name = module, .version = release)
#else
#define KA_MODULE_MAGIC(module, release) PG_MODULE_MAGIC
#endif

/* 17: an extension can name its wait events (in a process with shared memory). */
static inline uint32
ka_wait_event_compat(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	(void) name;
	return PG_WAIT_EXTENSION;
#endif
}

/* All settings; their flags in "status" are the server's own (16: one function gives both). */
static inline struct config_generic **
ka_settings_compat(int *n)
{
#if PG_VERSION_NUM >= 160000
	return get_guc_variables(n);
#else
	*n = GetNumConfigOptions();
	return get_guc_variables();
#endif
}

/* The checkpointer's entry in the process array; NULL while there is none. */
static inline PGPROC *
ka_checkpointer_proc_compat(void)
{
#if PG_VERSION_NUM >= 180000
	ProcNumber	number = *(volatile ProcNumber *) &ProcGlobal->checkpointerProc;

	return number == INVALID_PROC_NUMBER ? NULL : &ProcGlobal->allProcs[number];
#else
	Latch	   *latch = *(Latch *volatile *) &ProcGlobal->checkpointerLatch;

	return latch == NULL ? NULL : (PGPROC *) ((char *) latch - offsetof(PGPROC, procLatch));
#endif
}

/* The oldest transaction number that is in use, or the next one (19: more may be asked for). */
static inline TransactionId
ka_oldest_xid_compat(void)
{
#if PG_VERSION_NUM >= 190000
	return GetOldestActiveTransactionId(false, true);
#else
	return GetOldestActiveTransactionId();
#endif
}

/* Transactions of a database, as far as its backends have reported them. */
static inline int64
ka_transactions_compat(const PgStat_StatDBEntry *entry)
{
#if PG_VERSION_NUM >= 160000
	return entry->xact_commit + entry->xact_rollback;
#else
	return entry->n_xact_commit + entry->n_xact_rollback;
#endif
}

/* What the checkpointer has reported, in one form. */
typedef struct KaCheckpointerTotals
{
	int64		timed;			/* checkpoints and restartpoints, skipped ones too up to 17 */
	int64		requested;
	int64		write_ms;
	int64		sync_ms;
	int64		buffers_written;	/* without SLRU pages */
	TimestampTz reset_at;		/* when the statistics were reset last */
} KaCheckpointerTotals;

static inline void
ka_checkpointer_totals_compat(KaCheckpointerTotals *totals)
{
	PgStat_CheckpointerStats *stats = pgstat_fetch_stat_checkpointer();

#if PG_VERSION_NUM >= 170000
	totals->timed = stats->num_timed + stats->restartpoints_timed;
	totals->requested = stats->num_requested + stats->restartpoints_requested;
	totals->write_ms = stats->write_time;
	totals->sync_ms = stats->sync_time;
	totals->buffers_written = stats->buffers_written;
	totals->reset_at = stats->stat_reset_timestamp;
#else
	totals->timed = stats->timed_checkpoints;
	totals->requested = stats->requested_checkpoints;
	totals->write_ms = stats->checkpoint_write_time;
	totals->sync_ms = stats->checkpoint_sync_time;
	totals->buffers_written = stats->buf_written_checkpoints;
	totals->reset_at = pgstat_fetch_stat_bgwriter()->stat_reset_timestamp;
#endif
}

/* Whether the checkpointer logs messages of level LOG (19: a level per process type). */
static inline bool
ka_checkpointer_logs_compat(void)
{
#if PG_VERSION_NUM >= 190000
	return log_min_messages[B_CHECKPOINTER] != FATAL && log_min_messages[B_CHECKPOINTER] != PANIC;
#else
	return log_min_messages != FATAL && log_min_messages != PANIC;
#endif
}

/*
 * In the postmaster: whether a worker of that name was accepted.  Registering
 * one beyond max_worker_processes only logs a line.
 */
static inline bool
ka_worker_accepted_compat(const char *name)
{
#if PG_VERSION_NUM >= 180000
	dlist_iter	iter;

	dlist_foreach(iter, &BackgroundWorkerList)
	{
		RegisteredBgWorker *worker = dlist_container(RegisteredBgWorker, rw_lnode, iter.cur);
#else
	slist_iter	iter;

	slist_foreach(iter, &BackgroundWorkerList)
	{
		RegisteredBgWorker *worker = slist_container(RegisteredBgWorker, rw_lnode, iter.cur);
#endif

		if (strcmp(worker->rw_worker.bgw_name, name) == 0)
			return true;
	}
	return false;
}

#endif							/* KA_COMPAT_H */
