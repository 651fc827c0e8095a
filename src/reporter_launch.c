/*
 * reporter_launch.c: when a report is due, and its worker.
 *
 * Runs in the sampler, once per sample, and never waits.  A report is due
 *
 *	- report_interval after the last one;
 *	- when a checkpoint has ended and got its samples, at most every ten seconds:
 *	  a report is a process of its own, some 30 ms of CPU;
 *	- when a setting of the reporter was changed, or the server was promoted;
 *	- at the time that the last report asked for: it had more to prune.
 *
 * A worker that asks for a database that is not there ends with a line in the
 * log, so the database is looked up here first: the sampler is connected to no
 * database, but sees the shared catalogs.  Without one, and on a standby, the
 * worker is launched all the same: it tells in the log what is new.
 *
 * Two samplers never live at once, but a worker may outlive the sampler that
 * launched it: the worker claims its place in shared memory (reporter.c).
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "reporter.h"
#include "sampler.h"
#include "shared.h"
#include "worker.h"

#define RETRY_US INT64CONST(60000000)	/* there was no worker */
#define LEAST_US INT64CONST(500000) /* between two launches */
#define AFTER_CHECKPOINT_S 10	/* least time since the last report; report_interval where that is shorter */
#define INVALID_DATABASE (-2)	/* datconnlimit of a database whose DROP was interrupted */

const char *const ka_reporter_state_name[KA_NREPORTER_STATES] = {
#define REPORTER_STATE(symbol, name) name,
	KA_REPORTER_STATES(REPORTER_STATE)
#undef REPORTER_STATE
};

StaticAssertDecl(sizeof(KaReporterOrder) <= BGW_EXTRALEN, "an order must fit into bgw_extra");

static BackgroundWorkerHandle *worker;	/* NULL: none that we launched */
static uint64 seen_settled;		/* checkpoints that were there at the last launch */
static uint32 seen_settings;	/* hash of what a report depends on */
static TimestampTz launched_at; /* 0: never */
static TimestampTz retry_at;	/* not before; there was no worker */

static uint32
settings_hash(void)
{
	return ka_standing_hash(ka_database) * 31 + ka_standing_hash(ka_reporter_role) * 17 +
		(uint32) ka_report_interval * 7 + (uint32) ka_retention * 3 + (RecoveryInProgress() ? 1 : 0);
}

/* Nothing is looked at, and nothing counts as dropped, while reports are off. */
static void
note_off(void)
{
	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->reporter_status.state = KA_REPORTER_OFF;
	ka_shared->reporter_status.positions_known = false;
	ka_shared->reporter_status.waiting = 0;
	SpinLockRelease(&ka_shared->mutex);
}

/* Another place, or another retention: there may be something to write, whoever else writes. */
static void
forget_idle(void)
{
	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->reporter_status.idle.known = false;
	SpinLockRelease(&ka_shared->mutex);
}

static bool
is_due(TimestampTz now, uint64 settled, uint32 settings)
{
	TimestampTz due_at;

	SpinLockAcquire(&ka_shared->mutex);
	due_at = ka_shared->reporter_status.due_at;
	SpinLockRelease(&ka_shared->mutex);

	if (launched_at == 0 || now < launched_at || settings != seen_settings) /* the clock may have been set back */
		return true;
	if (now < launched_at + LEAST_US)
		return false;
	return (settled != seen_settled &&
			now >= launched_at + (int64) Min(AFTER_CHECKPOINT_S, ka_report_interval) * USECS_PER_SEC) ||
		now >= launched_at + (int64) ka_report_interval * USECS_PER_SEC ||
		(due_at != 0 && now >= due_at);
}

/* The database that the settings name, or why there is none to connect to. */
static void
find_database(KaReporterOrder *order)
{
	Relation	relation;
	TableScanDesc scan;
	HeapTuple	tuple;

	order->database = InvalidOid;
	strlcpy(order->why, "the database does not exist", sizeof(order->why));

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	/* Samples do not wait for a VACUUM FULL of the catalog. */
	if (!ConditionalLockRelationOid(DatabaseRelationId, AccessShareLock))
	{
		strlcpy(order->why, "the catalog pg_database is locked", sizeof(order->why));
		CommitTransactionCommand();
		return;
	}
	relation = table_open(DatabaseRelationId, NoLock);
	scan = table_beginscan_catalog(relation, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);

		if (strcmp(NameStr(database->datname), ka_database) != 0)
			continue;
		if (!database->datallowconn || database->datconnlimit == INVALID_DATABASE)
			strlcpy(order->why, "the database does not accept connections", sizeof(order->why));
		else
			order->database = database->oid;
		break;
	}
	table_endscan(scan);
	table_close(relation, AccessShareLock);
	CommitTransactionCommand();
	pgstat_report_stat(true);
}

static bool
launch(TimestampTz now)
{
	KaReporterOrder order = {.database = InvalidOid};
	const KaWorkerOrder worker_order = {
		.function = "ka_reporter_main",.name = KA_REPORTER_NAME,.connects = true,
		.extra = &order,.extra_size = sizeof(order)
	};
	bool		launched;
	bool		was_missing;

	if (!RecoveryInProgress())
		find_database(&order);
	launched = ka_worker_start(&worker_order, &worker);

	SpinLockAcquire(&ka_shared->mutex);
	was_missing = ka_shared->reporter_no_worker;
	ka_shared->reporter_no_worker = !launched;
	ka_shared->reporter_status.due_at = DT_NOEND;
	SpinLockRelease(&ka_shared->mutex);

	if (launched)
		return true;
	retry_at = now + RETRY_US;
	if (!was_missing)
		ka_worker_log_missing("kernel advisor reporter", "");
	return false;
}

void
ka_reporter_tick(TimestampTz now)
{
	uint64		settled = ka_join_settled();
	uint32		settings;

	if (IsBinaryUpgrade)
		return;
	if (ka_worker_lives(&worker))
		return;
	if (ka_report_interval == 0)
	{
		launched_at = 0;
		note_off();
		return;
	}
	if (now < retry_at && retry_at - now <= RETRY_US)	/* else the clock was set back */
		return;
	settings = settings_hash();
	if (!is_due(now, settled, settings))
		return;
	if (settings != seen_settings)
		forget_idle();
	if (launch(now))
	{
		launched_at = now;
		seen_settled = settled;
		seen_settings = settings;
	}
}
