/*
 * reporter.c: one report.
 *
 * In this order, each step in transactions of its own, so that what fails keeps
 * nothing else from being done:
 *
 *	1.	The rules are asked, and what is news goes to the log (standing.c).
 *	2.	Checkpoints that are in the ring and not in the table are stored.
 *	3.	Advice that stands and is not in the table as such is stored.
 *	4.	Listeners of the channel are notified of what 2 and 3 have stored.
 *	5.	Rows beyond the retention are deleted, in batches, for a short time.
 *
 * While nobody else writes to the server (reporter_idle.c), nothing is written
 * but news of warnings, and checkpoints when half of the ring waits for it.
 *
 * Nothing but the tables says what was stored, so a worker, a server or a
 * machine may die at any time, and the tables may be dropped, emptied or
 * restored.  What cannot be stored stays in the ring until it is overwritten;
 * then it is counted as dropped.  A standby, or a server whose database or
 * extension is missing, does the first step only.
 *
 * The worker connects as the bootstrap superuser, because that is never refused
 * a connection, and does nothing with it: see history_tables.c for who runs the
 * statements.  Every wait is limited: by lock_timeout, by not waiting for
 * synchronous standbys, by PRUNE_US.
 *
 * Locks: the mutex of the shared memory for the status; the list of what stands
 * belongs to the worker that has claimed reporter_pid.
 */
#include "postgres.h"

#include <sys/resource.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "commands/async.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "gather.h"
#include "guc.h"
#include "history_tables.h"
#include "reporter.h"
#include "reporter_news.h"
#include "shared.h"
#include "worker.h"

#define PRUNE_US INT64CONST(1000000)	/* then the next worker goes on */

/* What the session's database or the configuration may have set otherwise. */
static const char *const session_settings[][2] = {
	{"search_path", "pg_catalog, pg_temp"},
	{"lock_timeout", "2s"},
	{"synchronous_commit", "local"},
	{"default_transaction_isolation", "read committed"},
	{"default_transaction_deferrable", "off"},
	{"session_replication_role", "origin"},
	{"application_name", KA_REPORTER_NAME},
};

/* The report of this process. */
typedef struct Report
{
	MemoryContext context;		/* lives as long as the process */
	KaReporterStatus status;
	int			failed_before;	/* the last report's sqlerrcode */
	KaArena		arena;
	KaFacts    *facts;
	KaAdviceList advice;
	KaHistory	history;
	bool		idle;			/* nobody else has written, reporter_idle.c */
	bool		pruning;		/* there is more to prune */
	bool		complete;		/* nothing failed, and nothing is left to be done */
	List	   *payloads;		/* to be notified: char *, in "context" */
} Report;

PGDLLEXPORT void ka_reporter_main(Datum arg);

static void
set_status(Report *report, KaReporterState state, const char *detail, const char *hint)
{
	report->status.state = state;
	strlcpy(report->status.detail, detail, sizeof(report->status.detail));
	strlcpy(report->status.hint, hint ? hint : "", sizeof(report->status.hint));
}

/*
 * ----------------------------------------------------------------
 * Transactions
 * ----------------------------------------------------------------
 */

static void
begin(Report *report, const char *activity)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, activity);
	MemoryContextSwitchTo(report->context);
}

static void
commit(Report *report)
{
	PopActiveSnapshot();
	ka_idle_count(&report->status.idle);
	CommitTransactionCommand();
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, NULL);
	MemoryContextSwitchTo(report->context);
}

/*
 * Runs a step; false when it ended with an error, which the status tells and,
 * unless the last report failed in the same way, the log.  In the same way: the
 * messages may differ, since a full disk names the file that it met.
 */
static bool
attempt(Report *report, void (*step) (Report *report))
{
	volatile bool done = false;

	PG_TRY();
	{
		step(report);
		done = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;
		const char *hint = "The server log has the error.";

		MemoryContextSwitchTo(report->context);
		error = CopyErrorData();
		if (report->status.sqlerrcode == 0)
			report->status.sqlerrcode = error->sqlerrcode;
		if (report->status.sqlerrcode != report->failed_before)
			EmitErrorReport();
		FlushErrorState();
		ka_idle_count(&report->status.idle);
		AbortCurrentTransaction();
		MemoryContextSwitchTo(report->context);
		if (error->sqlerrcode == ERRCODE_DISK_FULL)
			hint = "Make space: what cannot be stored stays in shared memory until it is overwritten.";
		else if (error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE)
			hint = "Grant the role of the reporter what doc/reporter.md lists.";
		set_status(report, KA_REPORTER_FAILING, error->message, hint);
		pgstat_report_activity(STATE_IDLE, NULL);
	}
	PG_END_TRY();
	return done;
}

/*
 * ----------------------------------------------------------------
 * Steps
 * ----------------------------------------------------------------
 */

/* The first report after a start goes on from what the table knows to stand. */
static void
load_standing(Report *report)
{
	KaStandingList *list = ka_shared->standing;
	ListCell   *cell;

	if (list->known)
		return;
	begin(report, "reading what advice stands");
	foreach(cell, ka_history_standing(&report->history))
	{
		const KaStored *stored = lfirst(cell);
		int			severity = KA_CRITICAL;

		while (severity < KA_OK && strcmp(ka_severity_name((KaSeverity) severity), stored->severity) != 0)
			severity++;
		(void) ka_standing_add(list, stored->rule, stored->subject, severity, stored->recommended);
	}
	commit(report);
}

static void
tell_news(Report *report)
{
	int64		hold = (int64) ka_report_interval * USECS_PER_SEC * KA_HOLD_INTERVALS;
	KaNews	   *news = palloc(KA_NEWS_MAX * sizeof(KaNews));
	size_t		n;

	report->facts = ka_gather_facts(&report->arena);
	ka_gather_advice(report->facts, &report->advice);
	n = ka_standing_look(ka_shared->standing, &report->advice, GetCurrentTimestamp(), hold, news);
	for (size_t i = 0; i < n; i++)
		ka_news_log(&news[i]);
}

/*
 * The numbers of the checkpoints in the ring that will not change any more;
 * "end": the position after the last of them; "next_xid" is the last one's.
 */
static int64 *
settled_checkpoints(int *n, uint64 *end, int64 *next_xid)
{
	KaCheckpointRow *rows = palloc(KA_RING_CHUNK * sizeof(KaCheckpointRow));
	int64	   *ids = NULL;
	int			room = 0;
	uint64		next = 0;
	int			copied;

	*n = 0;
	*end = 0;
	while ((copied = ka_ring_copy_checkpoints(next, rows, KA_RING_CHUNK, &next)) > 0)
	{
		for (int i = 0; i < copied; i++)
		{
			if (!rows[i].settled)
				return ids;
			if (*n == room)
			{
				room = Max(64, room * 2);
				ids = ids ? repalloc(ids, room * sizeof(int64)) : palloc(room * sizeof(int64));
			}
			ids[(*n)++] = rows[i].checkpoint_id;
			*end = next - copied + i + 1;
			*next_xid = rows[i].next_xid;
		}
	}
	return ids;
}

/* Checkpoints that the ring has overwritten before they were stored. */
static void
count_dropped(Report *report)
{
	KaReporterStatus *status = &report->status;
	uint64		filled;
	uint64		tail = ka_ring_checkpoints_end(&filled);
	uint64		resets = ka_ring_resets();

	tail -= filled;
	if (!status->positions_known || status->resets != resets)
		status->stored_end = tail;
	else if (tail > status->stored_end)
	{
		status->dropped += tail - status->stored_end;
		status->stored_end = tail;
	}
	status->positions_known = true;
	status->resets = resets;
}

static TimestampTz
oldest_kept(void)
{
	return ka_retention == 0 ? DT_NOBEGIN :
		GetCurrentTimestamp() - (int64) ka_retention * SECS_PER_MINUTE * USECS_PER_SEC;
}

/* What waits must be stored before it is overwritten. */
static bool
ring_fills(const KaReporterStatus *status)
{
	uint64		filled;

	return ka_ring_checkpoints_end(&filled) - status->stored_end > ka_shared->checkpoint_ring.slots / 2;
}

static void
store_checkpoints(Report *report)
{
	List	   *payloads = NIL;
	int			n;
	uint64		end;
	int64		next_xid = KA_UNKNOWN;
	int64	   *ids = settled_checkpoints(&n, &end, &next_xid);
	int64		stored;

	report->status.waiting = 0;
	if (n == 0)
		return;
	if (report->idle && !ring_fills(&report->status))
	{
		report->status.waiting = Max(0, (int64) (end - report->status.stored_end));
		return;
	}
	begin(report, "storing checkpoints");
	stored = ka_history_store(&report->history, ids, n, oldest_kept(), &payloads);
	commit(report);

	report->status.stored += stored;
	if (end > report->status.stored_end)
	{
		report->status.stored_end = end;
		ka_idle_stored(&report->status.idle, next_xid);
	}
	report->payloads = list_concat(report->payloads, payloads);
}

static const KaStored *
find_stored(List *stored, const KaStanding *item)
{
	ListCell   *cell;

	foreach(cell, stored)
	{
		const KaStored *candidate = lfirst(cell);

		if (strcmp(candidate->rule, item->rule) == 0 && strcmp(candidate->subject, item->subject) == 0)
			return candidate;
	}
	return NULL;
}

/* A checkpoint may well bring and take advice of little weight, and what is stored of it brings the next checkpoint. */
static bool
can_wait(const Report *report, const char *severity)
{
	return report->idle && strcmp(severity, ka_severity_name(KA_CRITICAL)) != 0 &&
		strcmp(severity, ka_severity_name(KA_WARNING)) != 0;
}

/* Advice that stands, where the table says otherwise; while it is held there is no row to store, and nothing to say. */
static List *
store_standing(Report *report, TimestampTz at, List *stored)
{
	KaStandingList *list = ka_shared->standing;
	List	   *payloads = NIL;

	for (int i = 0; i < list->count; i++)
	{
		const KaStanding *item = &list->items[i];
		const KaAdvice *row = ka_standing_row(&report->advice, item->rule, item->subject);
		const KaStored *before = find_stored(stored, item);
		KaAdviceEvent event = before ? KA_ADVICE_CHANGED : KA_ADVICE_APPEARED;
		const char *severity;
		bool		changed;

		if (!ka_standing_same(item, row))
			continue;
		severity = ka_severity_name(row->severity);
		changed = before != NULL && strcmp(before->severity, severity) != 0;
		if (before != NULL && !changed && ka_standing_hash(before->recommended) == item->recommended)
			continue;
		if (can_wait(report, severity) && (before == NULL || can_wait(report, before->severity)))
			continue;
		ka_history_add_event(&report->history, at, event, row, report->facts);
		payloads = lappend(payloads,
						   ka_news_json(event, row->rule, row->subject, severity,
										changed ? before->severity : NULL, row));
	}
	return payloads;
}

static List *
store_ends(Report *report, TimestampTz at, List *stored)
{
	List	   *payloads = NIL;
	ListCell   *cell;

	foreach(cell, stored)
	{
		const KaStored *before = lfirst(cell);

		if (ka_standing_find(ka_shared->standing, before->rule, before->subject) != NULL ||
			can_wait(report, before->severity))
			continue;
		ka_history_add_end(&report->history, at, before);
		payloads = lappend(payloads,
						   ka_news_json(KA_ADVICE_DISAPPEARED, before->rule, before->subject,
										before->severity, NULL, NULL));
	}
	return payloads;
}

static void
store_advice(Report *report)
{
	TimestampTz at = GetCurrentTimestamp();
	List	   *stored;
	List	   *payloads;

	begin(report, "storing advice");
	stored = ka_history_standing(&report->history);
	payloads = store_standing(report, at, stored);
	payloads = list_concat(payloads, store_ends(report, at, stored));
	commit(report);

	report->status.events += list_length(payloads);
	report->payloads = list_concat(report->payloads, payloads);
}

/* Not with what it tells of: a queue that is full must not keep history from being stored. */
static void
notify(Report *report)
{
	ListCell   *cell;

	if (report->payloads == NIL)
		return;
	begin(report, "notifying");
	foreach(cell, report->payloads)
		Async_Notify(KA_CHANNEL, lfirst(cell));
	(void) GetTopTransactionId();	/* the commit would take a number that nobody counts */
	commit(report);
}

static void
prune(Report *report)
{
	TimestampTz end = GetCurrentTimestamp() + PRUNE_US;
	TimestampTz before = oldest_kept();

	if (ka_retention == 0 || report->idle)
		return;
	for (int table = 0; table < KA_NHISTORY_TABLES; table++)
	{
		TimestampTz from = DT_NOBEGIN;
		int64		pruned;

		do
		{
			CHECK_FOR_INTERRUPTS();
			begin(report, "pruning");
			pruned = ka_history_prune(&report->history, (KaHistoryTable) table, before, &from);
			commit(report);
			report->status.pruned += pruned;
			if (pruned == KA_PRUNE_ROWS && GetCurrentTimestamp() >= end)
			{
				report->pruning = true;
				report->status.due_at = GetCurrentTimestamp();
				return;
			}
		} while (pruned == KA_PRUNE_ROWS);
	}
}

/* Also sets the status when something is missing. */
static bool
find_tables(Report *report)
{
	const char *why = NULL;
	const char *hint = NULL;
	bool		found;

	begin(report, "looking for the history tables");
	found = ka_history_find(&report->history, &why, &hint);
	if (found && XactReadOnly)
	{
		found = false;
		why = "transactions are read-only (default_transaction_read_only)";
	}
	commit(report);
	if (!found)
		set_status(report, KA_REPORTER_WAITING, why, hint);
	return found;
}

/*
 * ----------------------------------------------------------------
 * The worker
 * ----------------------------------------------------------------
 */

static void
look_at_status(KaReporterStatus *status)
{
	SpinLockAcquire(&ka_shared->mutex);
	*status = ka_shared->reporter_status;
	SpinLockRelease(&ka_shared->mutex);
}

static void
connect_to(const KaReporterOrder *order)
{
	BackgroundWorkerInitializeConnectionByOid(order->database, InvalidOid, 0);
	for (int i = 0; i < (int) lengthof(session_settings); i++)
		SetConfigOption(session_settings[i][0], session_settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
}

/* find_tables as a step; what it found is in the status. */
static void
look_for_tables(Report *report)
{
	report->history.relid[0] = InvalidOid;
	if (!find_tables(report))
		report->history.relid[0] = InvalidOid;
}

/* Steps after one that failed are made all the same: a table that is locked does not keep the other one from being written. */
static void
report_to_tables(Report *report)
{
	static void (*const steps[]) (Report *) = {store_checkpoints, store_advice, notify, prune};

	for (int i = 0; i < (int) lengthof(steps); i++)
		(void) attempt(report, steps[i]);
	if (report->status.sqlerrcode != 0)
		return;
	report->complete = !report->pruning;
	if (report->failed_before != 0)
		ereport(LOG, (errmsg("kernel advisor reporter works again")));
	set_status(report, KA_REPORTER_WORKING, "", NULL);
}

/* Without a database, or on a standby. */
static void
set_absent(Report *report, const KaReporterOrder *order)
{
	if (RecoveryInProgress())
		set_status(report, KA_REPORTER_STANDBY,
				   "log only; history is kept in shared memory and its file, and stored after promotion", NULL);
	else
		set_status(report, KA_REPORTER_WAITING,
				   psprintf("database \"%s\": %s", ka_database, order->why),
				   "Create the database, or set kernel_advisor.database.");
}

static int64
cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (int64) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * USECS_PER_SEC +
		usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static void
publish(Report *report)
{
	ka_idle_end(&report->status.idle, report->complete);
	report->status.at = GetCurrentTimestamp();
	report->status.cpu_us = cpu_us();
	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->reporter_status = report->status;
	SpinLockRelease(&ka_shared->mutex);
}

void
ka_reporter_main(Datum arg)
{
	static Report report;
	KaReporterOrder order;
	bool		connected;

	(void) arg;
	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(order));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	if (!ka_worker_claim(&ka_shared->reporter_pid))
		return;
	look_at_status(&report.status);
	report.failed_before = report.status.sqlerrcode;
	report.status.sqlerrcode = 0;
	connected = OidIsValid(order.database);
	if (connected)
		connect_to(&order);
	report.context = AllocSetContextCreate(TopMemoryContext, KA_REPORTER_NAME, ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(report.context);
	count_dropped(&report);

	report.idle = connected && ka_idle_look(&report.status.idle);
	if (connected && attempt(&report, look_for_tables) && OidIsValid(report.history.relid[0]))
	{
		if ((ka_shared->standing->known || attempt(&report, load_standing)) && attempt(&report, tell_news))
			report_to_tables(&report);
	}
	else
	{
		if (attempt(&report, tell_news) && !connected)
			set_absent(&report, &order);
	}
	publish(&report);
}
