/*
 * trial_worker.c: the background worker that runs a trial.
 *
 * Pair after pair: a block with each of the two values, which one first is
 * drawn at random.  The begin of a block is thrown away; then it is measured
 * between two samples that the sampler is asked for.  A pair in which
 * checkpoints are not balanced, or without samples, is dropped and another one
 * made instead.  After each pair all that is known is in the file.
 *
 * The ground may change under a trial: a promotion, another change of a
 * setting, somebody else who sets the knob.  It is stopped then, since what
 * follows would compare other things.
 *
 * Invariants:
 *	- the record is in the file before the knob is touched first;
 *	- whatever way the worker ends, short of being killed, it sets the old value
 *	  back first, and while it cannot, "open" stays set in shared memory and
 *	  "restored" unset in the file.
 *
 * Locks: that of the files, in trial_file.c; the mutex of the shared memory.
 * No transaction, no database.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "auto_log.h"
#include "guc.h"
#include "shared.h"
#include "trial.h"

#define EXIT_TIMEOUT_MS 1000	/* for the helper, when the server waits for us to end */
#define SAMPLE_WAIT_US INT64CONST(3000000)	/* for the sample that ends a block */
#define POLL_MS 20
#define FIRST_RETRY_US INT64CONST(10000000) /* doubled with each failure ... */
#define MAX_RETRY_DOUBLINGS 8	/* ... up to 43 minutes */

/* Pairs may be dropped; a trial of which more are than count does not go on for ever. */
#define MOST_DROPPED(pairs) (2 * (pairs) + 10)

typedef struct Run
{
	KaTrialRecord record;
	KaTrialBlock *olds;
	KaTrialBlock *news;
	bool		in_recovery;
	int64		value;			/* the knob's, as we left it */
	bool		over;			/* record.state says why */
} Run;

static Run *active;				/* NULL: nothing to set back */

PGDLLEXPORT void ka_trial_main(Datum arg);

/*
 * ----------------------------------------------------------------
 * The end
 * ----------------------------------------------------------------
 */

static void
end_run(Run *run, KaTrialState state, const char *why, const char *hint)
{
	if (run->over)
		return;
	run->over = true;
	run->record.state = state;
	ka_change_text(run->record.detail, sizeof(run->record.detail), why);
	ka_change_text(run->record.hint, sizeof(run->record.hint), hint);
}

/* Sets the old value back and tells everybody how it stands. */
static void
restore(KaTrialRecord *record, int timeout_ms)
{
	bool		restored = ka_trial_restore(record, timeout_ms);

	ka_trials_update(record);
	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->trial.open = !restored;
	if (!restored)
		ka_shared->trial.retry_at = GetCurrentTimestamp() +
			(FIRST_RETRY_US << Min(ka_shared->trial.failures++, MAX_RETRY_DOUBLINGS));
	SpinLockRelease(&ka_shared->mutex);
	if (restored)
		ereport(LOG,
				(errmsg("kernel advisor trial " INT64_FORMAT " of \"%s\" has ended (%s), and its value is %s again",
						record->trial_id, record->subject, ka_trial_state_name(record->state), record->old),
				 record->detail[0] ? errdetail("%s", record->detail) : 0));
}

/* At any orderly end, also by a stop of the server and after an error. */
static void
trial_exit(int code, Datum arg)
{
	Run		   *run = active;

	(void) code;
	(void) arg;
	active = NULL;
	if (run != NULL)
	{
		end_run(run, KA_TRIAL_INTERRUPTED,
				psprintf("the worker had to end after %d pairs: the server was stopped, or somebody ended it", run->record.pairs_done),
				NULL);
		restore(&run->record, Min(ka_helper_timeout, EXIT_TIMEOUT_MS));
	}
	SpinLockAcquire(&ka_shared->mutex);
	if (ka_shared->trial.owner_pid == MyProcPid)
	{
		ka_shared->trial.owner_pid = 0;
		ka_shared->trial.latch = NULL;
	}
	SpinLockRelease(&ka_shared->mutex);
}

/*
 * ----------------------------------------------------------------
 * Blocks
 * ----------------------------------------------------------------
 */

static void
check_ground(Run *run)
{
	KaTrialShared shared;

	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	ka_trial_look(&shared);
	if (shared.stop)
		end_run(run, KA_TRIAL_STOPPED, "trial_stop() was called", NULL);
	else if (RecoveryInProgress() != run->in_recovery)
		end_run(run, KA_TRIAL_STOPPED, "the server was promoted", NULL);
}

/* Until then, or until the run is over; no longer than a block, should the clock be set back. */
static void
wait_until(Run *run, TimestampTz until)
{
	for (;;)
	{
		TimestampTz now = GetCurrentTimestamp();

		check_ground(run);
		if (run->over || now >= until || until - now > run->record.block_us)
			return;
		ka_trial_wait(TimestampDifferenceMilliseconds(now, until));
	}
}

/* Has the sampler take a sample now, and waits for it; false: there is none. */
static bool
sample_now(Run *run)
{
	TimestampTz asked = GetCurrentTimestamp();

	ka_sampler_wake();
	while (ka_trial_newest_sample() < asked)
	{
		TimestampTz now = GetCurrentTimestamp();

		if (run->over || now > asked + SAMPLE_WAIT_US || now < asked)
			return false;
		wait_until(run, now + POLL_MS * INT64CONST(1000));
	}
	return true;
}

/* False: the run is over. */
static bool
set_value(Run *run, int64 value)
{
	const char *why;
	const char *hint;

	if (!ka_trial_set(&run->record, run->value, value, ka_helper_timeout, &why, &hint))
	{
		end_run(run, KA_TRIAL_FAILED, why, hint);
		return false;
	}
	run->value = value;
	return true;
}

/* One block with this value; false: it cannot be compared, or the run is over. */
static bool
run_block(Run *run, int64 value, KaTrialBlock *block)
{
	TimestampTz begin = GetCurrentTimestamp();
	TimestampTz from;
	KaStretch	measured;

	if (!set_value(run, value))
		return false;
	wait_until(run, begin + run->record.settle_us);
	from = GetCurrentTimestamp();
	if (run->over || !sample_now(run))
		return false;
	wait_until(run, begin + run->record.block_us);
	if (run->over || !sample_now(run))
		return false;
	measured.from = from;
	measured.to = ka_trial_newest_sample();
	ka_trial_measure(&measured, 1, block);
	return block->covered;
}

/* Another change, by whomever, is not part of the comparison. */
static void
check_changes(Run *run)
{
	KaChangeRecord *changes;
	int			n = ka_changes_read(&changes);

	for (int i = 0; i < n; i++)
	{
		if (changes[i].at >= run->record.started_at && ka_auto_had_effect(&changes[i]) &&
			strcmp(changes[i].old, changes[i].asked) != 0)
			end_run(run, KA_TRIAL_STOPPED,
					psprintf("\"%s\" was changed meanwhile (change " INT64_FORMAT ")", changes[i].subject, changes[i].change_id),
					"Changes are part of no comparison: start the trial again.");
	}
}

static void
run_pair(Run *run)
{
	KaTrialRecord *record = &run->record;
	KaTrialBlock *old_block = &run->olds[record->pairs_done];
	KaTrialBlock *new_block = &run->news[record->pairs_done];
	unsigned char coin;
	bool		new_first;
	bool		good;

	if (!pg_strong_random(&coin, sizeof(coin)))
		elog(ERROR, "could not generate random bits");
	new_first = coin & 1;

	good = run_block(run, new_first ? record->new_value : record->old_value, new_first ? new_block : old_block);
	if (!run->over)
		good = run_block(run, new_first ? record->old_value : record->new_value, new_first ? old_block : new_block) && good;
	if (run->over)
		return;
	if (good && ka_trial_balanced(old_block->checkpoint_share, old_block->checkpoints_begun,
								  new_block->checkpoint_share, new_block->checkpoints_begun))
		record->pairs_done++;
	else
		record->pairs_dropped++;
	ka_trial_compare(run->olds, run->news, record->pairs_done, record->block_us - record->settle_us, record->results);
	check_changes(run);
	if (!run->over)
		ka_trials_update(record);
}

static void
run_trial(Run *run)
{
	KaTrialRecord *record = &run->record;
	MemoryContext pair_context = AllocSetContextCreate(CurrentMemoryContext, "kernel advisor pair", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(pair_context);

	while (!run->over && record->pairs_done < record->pairs)
	{
		run_pair(run);
		MemoryContextReset(pair_context);
		if (record->pairs_dropped > MOST_DROPPED(record->pairs))
			end_run(run, KA_TRIAL_FINISHED,
					psprintf("%d of %d pairs count; %d were dropped, because a checkpoint ran in one of their blocks only, or samples were missing",
							 record->pairs_done, record->pairs, record->pairs_dropped),
					"Choose blocks that are much shorter, or longer, than the time between checkpoints.");
	}
	end_run(run, KA_TRIAL_FINISHED, NULL, NULL);
	MemoryContextSwitchTo(old_context);
}

/*
 * ----------------------------------------------------------------
 * The worker
 * ----------------------------------------------------------------
 */

/*
 * From the backend that has started us, as long as it holds the place; to set
 * the old value back, when nobody does.  False: there is somebody else.
 */
static bool
take_over(int64 trial_id)
{
	bool		taken;

	before_shmem_exit(trial_exit, (Datum) 0);
	SpinLockAcquire(&ka_shared->mutex);
	taken = ka_shared->trial.open &&
		ka_shared->trial.owner_pid == (trial_id != 0 ? MyBgworkerEntry->bgw_notify_pid : 0);
	if (taken)
	{
		ka_shared->trial.owner_pid = MyProcPid;
		ka_shared->trial.latch = MyLatch;
	}
	SpinLockRelease(&ka_shared->mutex);
	return taken;
}

static void
run_new(int64 trial_id)
{
	Run		   *run = palloc0(sizeof(Run));

	if (!ka_trials_find(trial_id, &run->record) || run->record.state != KA_TRIAL_RUNNING)
		return;
	run->olds = palloc0(run->record.pairs * sizeof(KaTrialBlock));
	run->news = palloc0(run->record.pairs * sizeof(KaTrialBlock));
	run->in_recovery = RecoveryInProgress();
	run->value = run->record.old_value;
	active = run;
	ereport(LOG,
			(errmsg("kernel advisor trial " INT64_FORMAT " of \"%s\": %s and %s in turns, %d pairs",
					trial_id, run->record.subject, run->record.old, run->record.value, run->record.pairs)));
	PG_TRY();
	{
		run_trial(run);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(TopMemoryContext);
		LWLockReleaseAll();
		error = CopyErrorData();
		EmitErrorReport();
		FlushErrorState();
		end_run(run, KA_TRIAL_FAILED, error->message, error->hint);
	}
	PG_END_TRY();
	restore(&run->record, ka_helper_timeout);
	active = NULL;
}

/* What others left behind, the newest first. */
static void
restore_all(void)
{
	KaTrialRecord *records;
	int			n = ka_trials_read(&records);
	bool		none = true;

	for (int i = n - 1; i >= 0; i--)
	{
		KaTrialRecord *record = &records[i];

		if (record->restored)
			continue;
		none = false;
		if (record->state == KA_TRIAL_RUNNING)
		{
			record->state = KA_TRIAL_INTERRUPTED;
			ka_change_text(record->detail, sizeof(record->detail),
						   psprintf("the server or the worker was killed after %d pairs", record->pairs_done));
		}
		restore(record, ka_helper_timeout);
	}
	if (none)
	{
		SpinLockAcquire(&ka_shared->mutex);
		ka_shared->trial.open = false;
		SpinLockRelease(&ka_shared->mutex);
	}
}

void
ka_trial_main(Datum arg)
{
	int64		trial_id = DatumGetInt64(arg);

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	if (!take_over(trial_id))
		return;
	MemoryContextSwitchTo(AllocSetContextCreate(TopMemoryContext, "kernel advisor trial", ALLOCSET_DEFAULT_SIZES));
	if (trial_id != 0)
		run_new(trial_id);
	else
		restore_all();
}
