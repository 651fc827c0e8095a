/*
 * sampler.c: the background worker that samples the kernel and the server.
 *
 * Each sample is the difference of two readings of counters that only grow.
 * The first reading after a start or a reset is a baseline and gives no sample;
 * a counter that went backwards gives none for its column.
 *
 * A sample is due every sample_interval, every checkpoint_sample_interval while
 * a checkpoint runs, and at once when one starts or ends: then the checkpointer
 * sets our latch.  The schedule is absolute, so that the time a reading takes
 * does not shift it.
 *
 * The worker is connected to no database.  It needs a connection at all to scan
 * pg_database, a shared catalog, whose databases' statistics it adds up; it
 * runs on a standby as well.  It holds no lock and no snapshot between samples,
 * and after its first reading allocates only in a context that it empties each
 * time.
 */
#include "postgres.h"

#include <signal.h>

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/pg_shmem.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "arena.h"
#include "auto.h"
#include "collect.h"
#include "compat.h"
#include "counter_delta.h"
#include "guc.h"
#include "probe.h"
#include "sampler.h"
#include "shared.h"

#define DATABASES_MS	10000	/* how often pg_database is scanned */
#define BACKENDS_MS		1000	/* how often connections are counted */
#define SAVE_MS			300000	/* how often the history is written */
#define SAVE_LATE_MS	900000	/* ... even while a checkpoint runs */

/* All that is read at one time. */
typedef struct Reading
{
	TimestampTz at;
	KaCounters	kernel;
	KaProbeReading probe;
	int64		transactions;	/* since the reading before; KA_UNKNOWN */
	XLogRecPtr	wal;
	bool		in_recovery;
	int64		backends;
} Reading;

typedef struct Database
{
	Oid			oid;
	int64		transactions;	/* total at the last reading; KA_UNKNOWN: not read yet */
} Database;

static Database *databases;		/* sorted by nothing: a few */
static int	ndatabases;
static int	max_databases;
static TimestampTz databases_at;	/* 0: never scanned */

static KaReader *reader;
static MemoryContext tick_context;
static int	logged_errno[KA_NSOURCES];

PGDLLEXPORT void ka_sampler_main(Datum arg);

bool
ka_sampler_register(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 5;
	strlcpy(worker.bgw_library_name, "pg_kernel_advisor", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "ka_sampler_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, KA_SAMPLER_NAME, sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, KA_SAMPLER_NAME, sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);

	return ka_worker_accepted_compat(KA_SAMPLER_NAME);
}

/*
 * ----------------------------------------------------------------
 * Reading
 * ----------------------------------------------------------------
 */

/* Opens the kernel's files; which devices lie under the data and the WAL is asked once. */
static void
open_reader(void)
{
	MemoryContext old_context = MemoryContextSwitchTo(tick_context);
	KaArena		arena;
	KaSource	source = {.root = ka_machine_root,.data_directory = DataDir};
	KaFacts    *facts = palloc(sizeof(KaFacts));
	KaReaderConfig config = {.root = ka_machine_root,.hugepage_size_bytes = KA_UNKNOWN};

	ka_palloc_arena(&arena);
	ka_facts_init(facts, &arena);
	if (!ka_collect_storage(facts, &source))
		arena.failed = true;
	ka_arena_check(&arena);
	config.devices[0] = ka_text(facts, KA_DATA_DEVICE);
	config.devices[1] = ka_text(facts, KA_WAL_DEVICE);
	if (huge_page_size > 0)
		config.hugepage_size_bytes = (int64) huge_page_size * 1024;

	/* For as long as the worker lives: PostgreSQL's own files make room. */
	for (int i = 0; i < KA_READER_FILES; i++)
		ReserveExternalFD();
	reader = ka_reader_new(&config);	/* keeps copies */
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(tick_context);
	if (reader == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
}

/* A source that cannot be read makes NULLs, one line in the log and one in status(). */
static void
note_source_errors(void)
{
	for (int i = 0; i < KA_NSOURCES; i++)
	{
		int			error = ka_reader_error(reader, i);

		/* Nobody else writes these, so they can be looked at without the lock. */
		if (error == ka_shared->source_errno[i])
			continue;

		SpinLockAcquire(&ka_shared->mutex);
		ka_shared->source_errno[i] = error;
		SpinLockRelease(&ka_shared->mutex);

		if (error != 0 && error != logged_errno[i])
		{
			logged_errno[i] = error;
			errno = error;
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", ka_counter_file[i])));
		}
	}
}

static int64
known_transactions(Oid oid)
{
	for (int i = 0; i < ndatabases; i++)
	{
		if (databases[i].oid == oid)
			return databases[i].transactions;
	}
	return KA_UNKNOWN;
}

/*
 * Which databases there are.  One that is new begins with a baseline, one that
 * was dropped just goes.
 */
static void
scan_databases(void)
{
	Relation	relation;
	TableScanDesc scan;
	HeapTuple	tuple;
	Database   *found;
	int			nfound = 0;
	int			max_found = Max(max_databases, 16);

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();

	/* Samples do not wait for a VACUUM FULL of the catalog. */
	if (!ConditionalLockRelationOid(DatabaseRelationId, AccessShareLock))
	{
		CommitTransactionCommand();
		return;
	}

	found = palloc(max_found * sizeof(Database));
	relation = table_open(DatabaseRelationId, NoLock);
	scan = table_beginscan_catalog(relation, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Oid			oid = ((Form_pg_database) GETSTRUCT(tuple))->oid;

		if (nfound == max_found)
		{
			max_found *= 2;
			found = repalloc(found, max_found * sizeof(Database));
		}
		found[nfound].oid = oid;
		found[nfound++].transactions = known_transactions(oid);
	}
	table_endscan(scan);
	table_close(relation, AccessShareLock);

	if (nfound > max_databases)
	{
		if (databases != NULL)
			pfree(databases);
		databases = NULL;
		max_databases = ndatabases = 0;
		databases = MemoryContextAlloc(TopMemoryContext, max_found * sizeof(Database));
		max_databases = max_found;
	}
	memcpy(databases, found, nfound * sizeof(Database));
	ndatabases = nfound;

	CommitTransactionCommand();
	pgstat_report_stat(true);
}

/*
 * Transactions since the last reading, as far as backends have reported them.
 * Database by database: the sum of the totals would fall when a database is
 * dropped or its statistics are reset.
 */
static int64
read_transactions(void)
{
	int64		sum = 0;
	bool		known = ndatabases > 0;

	for (int i = 0; i < ndatabases; i++)
	{
		Database   *database = &databases[i];
		PgStat_StatDBEntry *entry = pgstat_fetch_stat_dbentry(database->oid);
		int64		total = entry ? ka_transactions_compat(entry) : 0;

		if (database->transactions != KA_UNKNOWN)
		{
			if (total < database->transactions)
				known = false;
			else
				sum += total - database->transactions;
		}
		database->transactions = total;
	}
	return known ? sum : KA_UNKNOWN;
}

static void
read_all(const Reading *before, Reading *reading)
{
	static TimestampTz backends_at = 0;
	static int64 backends = KA_UNKNOWN;

	reading->at = GetCurrentTimestamp();
	ka_reader_read(reader, &reading->kernel);
	note_source_errors();
	ka_probe_sample(&before->probe, &reading->probe);

	reading->in_recovery = RecoveryInProgress();
	reading->wal = reading->in_recovery ? GetXLogReplayRecPtr(NULL) : GetXLogInsertRecPtr();

	if (databases_at == 0 ||
		TimestampDifferenceExceeds(databases_at, reading->at, DATABASES_MS) ||
		reading->at < databases_at)
	{
		databases_at = reading->at;
		scan_databases();
		MemoryContextSwitchTo(tick_context);
	}
	reading->transactions = read_transactions();

	/* Looks at every connection: not at every sample. */
	if (backends_at == 0 ||
		TimestampDifferenceExceeds(backends_at, reading->at, BACKENDS_MS) ||
		reading->at < backends_at)
	{
		backends_at = reading->at;
		backends = CountDBConnections(InvalidOid);
	}
	reading->backends = backends;
}

/*
 * ----------------------------------------------------------------
 * Samples
 * ----------------------------------------------------------------
 */

static void
make_sample(const Reading *before, const Reading *now, KaSample *sample, KaStalls *stalls)
{
	memset(sample, 0, sizeof(*sample));
	sample->at = now->at;
	sample->interval_us = now->at - before->at;

	sample->delta[KA_D_TRANSACTIONS] = now->transactions;
	sample->delta[KA_D_WAL_BYTES] = now->in_recovery == before->in_recovery ?
		ka_counter_delta(before->wal, now->wal) : KA_UNKNOWN;
#define KERNEL(symbol, name) \
	sample->delta[KA_D_##symbol] = ka_counter_delta(before->kernel.name, now->kernel.name);
#define HIDDEN(symbol, name) KERNEL(symbol, name)
#define GAUGE(symbol, name) sample->gauge[KA_G_##symbol] = now->kernel.name;
#include "samples.def"
	ka_probe_delta(&before->probe, &now->probe, sample, stalls);
	ka_drain_estimate(&before->kernel, &now->kernel,
					  &sample->delta[KA_D_PCP_DRAINS_ESTIMATE], &sample->delta[KA_D_PCP_DRAINED_PAGES_ESTIMATE]);
	sample->delta[KA_D_IO_MS] = ka_busy_delta(&before->kernel, &now->kernel);
	sample->gauge[KA_G_BACKENDS] = now->backends;
	sample->unusable_index_order4 = now->kernel.unusable_index_order4;
}

/*
 * One reading; a sample of it unless it is a baseline.  Returns the time of
 * the reading.
 */
static TimestampTz
tick(bool baseline)
{
	static Reading readings[2];
	static int	current = 0;
	const Reading *before = &readings[current];
	Reading    *now = &readings[1 - current];
	KaSample	sample;
	static KaStalls stalls;

	MemoryContextSwitchTo(tick_context);
	read_all(before, now);
	MemoryContextReset(tick_context);

	/* The clock was set back: there is no interval. */
	if (!baseline && now->at <= before->at)
		baseline = true;

	if (baseline)
	{
		ka_statistics_begin();
		ka_join_begin(now->at);
	}
	else
	{
		make_sample(before, now, &sample, &stalls);
		ka_statistics_tick(before->at, now->at);
		ka_join_sample(&sample, &stalls);
	}
	current = 1 - current;

	SpinLockAcquire(&ka_shared->mutex);
	if (!baseline)
		ka_shared->samples++;
	SpinLockRelease(&ka_shared->mutex);
	return now->at;
}

/*
 * ----------------------------------------------------------------
 * The worker
 * ----------------------------------------------------------------
 */

/* At any orderly end, also by pg_terminate_backend and after an error. */
static void
sampler_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;

	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->sampler_latch = NULL;
	ka_shared->sampler_pid = 0;
	SpinLockRelease(&ka_shared->mutex);

	ka_history_save();
}

static void
sampler_attach(void)
{
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->sampler_latch = MyLatch;
	ka_shared->sampler_pid = MyProcPid;
	ka_shared->sampler_since = now;
	ka_shared->sampler_starts++;
	SpinLockRelease(&ka_shared->mutex);

	before_shmem_exit(sampler_exit, (Datum) 0);
}

void
ka_sampler_main(Datum arg)
{
	uint32		wait_event;
	uint64		events = 0;
	uint64		resets;
	TimestampTz last;			/* when the last sample was due */
	TimestampTz saved;

	(void) arg;
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	/* A SIGHUP between the fork and here was ignored (bgworker.c): its settings would never come. */
	ConfigReloadPending = true;

	/* Each look at the statistics sees them as they are, and keeps no copy. */
	SetConfigOption("stats_fetch_consistency", "none", PGC_SUSET, PGC_S_OVERRIDE);

	wait_event = ka_wait_event_compat("KernelAdvisorSampler");
	tick_context = AllocSetContextCreate(TopMemoryContext, "kernel advisor sample",
										 ALLOCSET_DEFAULT_SIZES);
	open_reader();
	sampler_attach();

	resets = ka_ring_resets();
	last = saved = tick(true);

	for (;;)
	{
		TimestampTz now;
		TimestampTz due;
		uint64		new_events;
		bool		checkpoint;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		SpinLockAcquire(&ka_shared->mutex);
		new_events = ka_shared->events;
		checkpoint = ka_shared->running.id != 0;
		SpinLockRelease(&ka_shared->mutex);

		now = GetCurrentTimestamp();
		last = Min(last, now);	/* the clock was set back */
		due = last + INT64CONST(1000) *
			(checkpoint ? ka_checkpoint_sample_interval : ka_sample_interval);

		if (now >= due || new_events != events)
		{
			uint64		new_resets = ka_ring_resets();
			bool		reset = new_resets != resets;

			/* On schedule while we keep up with it; else from now on. */
			last = new_events == events && now < due + (due - last) ? due : now;
			events = new_events;
			resets = new_resets;
			now = tick(reset);
			ka_auto_tick(now);
			ka_trial_tick(now);
			ka_reporter_tick(now);

			if (reset || now < saved ||
				TimestampDifferenceExceeds(saved, now, checkpoint ? SAVE_LATE_MS : SAVE_MS))
			{
				ka_history_save();
				saved = now;
			}
			continue;			/* look again: the interval may be another one now */
		}

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 TimestampDifferenceMilliseconds(now, due), wait_event);
	}
}
