/*
 * trial_sql.c: trial(), trial_stop(), and what is known of trials as rows.
 *
 * trial() checks all that can be checked before anything is changed, writes the
 * record, starts the worker and returns.
 *
 * Locks: that of the files, in trial_file.c; the mutex of the shared memory.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "apply.h"
#include "auto_log.h"
#include "guc.h"
#include "machine.h"
#include "row.h"
#include "shared.h"
#include "trial.h"

PG_FUNCTION_INFO_V1(ka_trial_sql);
PG_FUNCTION_INFO_V1(ka_trial_stop_sql);
PG_FUNCTION_INFO_V1(ka_trials_sql);
PG_FUNCTION_INFO_V1(ka_trial_results_sql);

#define AUTO_WAIT_MS 5000		/* for a step of auto_apply that is being made */
#define POLL_MS 50

/*
 * ----------------------------------------------------------------
 * Rows
 * ----------------------------------------------------------------
 */

/* As it is now: a trial that nobody runs any more is not running. */
static const char *
state_now(const KaTrialRecord *record, const KaTrialShared *shared)
{
	bool		cared_for = shared->open && shared->trial_id == record->trial_id && shared->owner_pid != 0;

	if (record->restored || (record->state == KA_TRIAL_RUNNING && cared_for))
		return ka_trial_state_name(record->state);
	return "restoring";
}

static void
put_trial(KaRow *row, const KaTrialRecord *record, const KaTrialShared *shared)
{
	const char *state = state_now(record, shared);
	bool		running = strcmp(state, "running") == 0;
	const KaComparison *tps = &record->results[KA_TM_TPS];
	Interval   *block = palloc0(sizeof(Interval));

	block->time = record->block_us;
	ka_row_int64(row, record->trial_id);
	ka_row_time(row, record->started_at);
	ka_row_time(row, record->ended_at);
	ka_row_text(row, record->who);
	ka_row_text(row, record->subject);
	ka_row_text(row, record->old);
	ka_row_text(row, record->value);
	ka_row_put(row, true, IntervalPGetDatum(block));
	ka_row_int32(row, record->pairs);
	ka_row_int32(row, record->pairs_done);
	ka_row_int32(row, record->pairs_dropped);
	ka_row_text(row, state);
	ka_row_time(row, running ? GetCurrentTimestamp() + 2 * (record->pairs - record->pairs_done) * record->block_us : 0);
	ka_row_text(row, ka_verdict_name(tps->verdict));
	ka_row_number(row, tps->ratio);
	ka_row_number(row, tps->low);
	ka_row_number(row, tps->high);
	ka_row_text(row, record->detail);
	ka_row_text(row, record->hint);
	ka_row_store(row);
}

/* trials(): oldest first */
Datum
ka_trials_sql(PG_FUNCTION_ARGS)
{
	KaRow		row;
	KaTrialRecord *records;
	int			n = ka_trials_read(&records);
	KaTrialShared shared;

	ka_row_begin(&row, fcinfo);
	ka_trial_look(&shared);
	for (int i = 0; i < n; i++)
		put_trial(&row, &records[i], &shared);
	return (Datum) 0;
}

/* trial_results(): a row for each trial and measure */
Datum
ka_trial_results_sql(PG_FUNCTION_ARGS)
{
	KaRow		row;
	KaTrialRecord *records;
	int			n = ka_trials_read(&records);

	ka_row_begin(&row, fcinfo);
	for (int i = 0; i < n; i++)
		for (int m = 0; m < KA_NTRIAL_MEASURES; m++)
		{
			const KaTrialMeasureInfo *info = &ka_trial_measure_info[m];
			const KaComparison *compared = &records[i].results[m];

			ka_row_int64(&row, records[i].trial_id);
			ka_row_text(&row, info->name);
			ka_row_text(&row, info->unit);
			ka_row_text(&row, info->better == KA_HIGHER ? "higher" : "lower");
			ka_row_int32(&row, compared->pairs);
			ka_row_number(&row, compared->old_median);
			ka_row_number(&row, compared->new_median);
			ka_row_number(&row, compared->ratio);
			ka_row_number(&row, compared->low);
			ka_row_number(&row, compared->high);
			ka_row_text(&row, ka_verdict_name(compared->verdict));
			ka_row_store(&row);
		}
	return (Datum) 0;
}

/*
 * ----------------------------------------------------------------
 * Starting
 * ----------------------------------------------------------------
 */

static int64
block_argument(const Interval *block)
{
	int64		us = block->month == 0 && block->day == 0 ? block->time : -1;

	if (us < KA_TRIAL_BLOCK_LEAST_US || us > KA_TRIAL_BLOCK_MOST_US)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a block takes from 2 seconds to 1 hour"),
				 errhint("The first quarter of each block, one second at least, is thrown away; ten seconds and more give quieter rates.")));
	return us;
}

static int
pairs_argument(int pairs)
{
	if (pairs < KA_PAIRS_LEAST || pairs > KA_PAIRS_MOST)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a trial has from %d to %d pairs", KA_PAIRS_LEAST, KA_PAIRS_MOST),
				 errhint("Fewer give no confidence interval of 95 %%.")));
	return pairs;
}

/* The knob that a trial can be of. */
static const KaKnob *
knob_argument(const char *subject, int *node)
{
	const KaKnob *knob;

	ka_subject_require(subject);
	knob = ka_knob_by_subject(subject, node);
	if (knob == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("there cannot be a trial of the server setting \"%s\"", subject),
				 errdetail("A trial takes kernel settings that take effect at once and can be taken back at once."),
				 errhint("Set it with apply() and restart where needed; the column \"effect\" of kernel_advisor.changes compares before and after.")));
	if (!ka_knob_reversible(knob))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("there cannot be a trial of \"%s\"", subject),
				 errdetail("A trial takes kernel settings that can be taken back at once: not pools, whose pages may be in use by then, nor commit limits, nor what has no value.")));
	return knob;
}

static void
fill_record(KaTrialRecord *record, const char *subject, const char *value)
{
	const KaKnob *knob = knob_argument(subject, &record->node);
	int			error;

	record->knob = (int32) knob->number;
	if (!ka_machine_parse(knob, value, &record->new_value))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for \"%s\": \"%s\"", subject, value)));
	error = ka_machine_read(knob, record->node, &record->old_value);
	if (error < 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 error == -ENOENT ? errmsg("the running kernel does not have %s", subject) :
				 errmsg("%s cannot be read: %s", subject, strerror(-error))));
	record->state = KA_TRIAL_RUNNING;
	record->started_at = GetCurrentTimestamp();
	record->settle_us = ka_trial_settle_us(record->block_us);
	ka_change_text(record->subject, sizeof(record->subject), subject);
	ka_change_text(record->old, sizeof(record->old), ka_machine_value_text(knob, record->old_value));
	ka_change_text(record->value, sizeof(record->value), ka_machine_value_text(knob, record->new_value));
	ka_change_text(record->who, sizeof(record->who), GetUserNameFromId(GetSessionUserId(), false));
	ka_trial_compare(NULL, NULL, 0, record->block_us - record->settle_us, record->results);
}

/* auto_apply makes no change while there is a trial; is one being watched that it made before? */
static void
require_no_auto_apply(void)
{
	KaAutoLog	log;
	int			i;

	for (int waited_ms = 0;; waited_ms += POLL_MS)
	{
		int			pid;

		SpinLockAcquire(&ka_shared->mutex);
		pid = ka_shared->auto_pid;
		SpinLockRelease(&ka_shared->mutex);
		if (pid == 0)
			break;
		if (waited_ms >= AUTO_WAIT_MS)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("auto_apply is making a step"),
					 errhint("Try again.")));
		ka_trial_wait(POLL_MS);
	}
	log.n = ka_changes_read(&log.records);
	i = ka_auto_find_watched(&log);
	if (i >= 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("auto_apply watches change " INT64_FORMAT " of \"%s\"", log.records[i].change_id, log.records[i].subject),
				 errhint("Wait for its verdict: kernel_advisor.status tells how far it is.")));
}

static void
release(int code, Datum arg)
{
	(void) code;
	(void) arg;
	ka_trial_release();
}

static void
start(KaTrialRecord *record)
{
	require_no_auto_apply();
	ka_trials_begin(record);
	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->trial.trial_id = record->trial_id;
	SpinLockRelease(&ka_shared->mutex);
	if (ka_trial_start_worker(record->trial_id))
		return;

	record->state = KA_TRIAL_FAILED;
	record->restored = 1;
	record->ended_at = GetCurrentTimestamp();
	ka_change_text(record->detail, sizeof(record->detail), "there was no free background worker");
	ka_trials_update(record);
	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->trial.trial_id = 0;
	SpinLockRelease(&ka_shared->mutex);
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("there is no free background worker for a trial"),
			 errdetail("Nothing was changed."),
			 errhint("Increase max_worker_processes.")));
}

static void
return_trial(FunctionCallInfo fcinfo, int64 trial_id)
{
	KaTrialRecord record;
	KaTrialShared shared;
	KaRow		row;

	ka_row_begin(&row, fcinfo);
	ka_trial_look(&shared);
	if (ka_trials_find(trial_id, &record))
		put_trial(&row, &record, &shared);
}

/* trial(subject text, value text, block interval, pairs integer) */
Datum
ka_trial_sql(PG_FUNCTION_ARGS)
{
	const char *subject = text_to_cstring(PG_GETARG_TEXT_PP(0));
	const char *value = text_to_cstring(PG_GETARG_TEXT_PP(1));
	KaTrialRecord *record = palloc0(sizeof(KaTrialRecord));
	KaTrialShared other;

	record->block_us = block_argument(PG_GETARG_INTERVAL_P(2));
	record->pairs = pairs_argument(PG_GETARG_INT32(3));
	fill_record(record, subject, value);
	ka_shared_require();
	record->incarnation = ka_shared->incarnation;
	ka_trial_look(&other);
	if (!other.open)
		ka_trial_require_helper(record);
	if (other.open || !ka_trial_claim(subject, &other))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 other.owner_pid != 0 ?
				 errmsg("trial " INT64_FORMAT " of \"%s\" is running", other.trial_id, other.subject) :
				 errmsg("trial " INT64_FORMAT " of \"%s\" has ended, and its old value is not back yet", other.trial_id, other.subject),
				 errhint("The view kernel_advisor.trials shows how far it is; trial_stop() ends it.")));

	PG_ENSURE_ERROR_CLEANUP(release, (Datum) 0);
	{
		/* Read before the place was ours: it may have been another trial's. */
		if (ka_trial_knob_value(record) != record->old_value)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("\"%s\" was changed just now", subject),
					 errhint("Try again.")));
		start(record);
	}
	PG_END_ENSURE_ERROR_CLEANUP(release, (Datum) 0);
	/* If the worker did not live to take over. */
	ka_trial_release();
	return_trial(fcinfo, record->trial_id);
	return (Datum) 0;
}

/* trial_stop(): returns when the old value is back, or was not to be had in time */
Datum
ka_trial_stop_sql(PG_FUNCTION_ARGS)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ka_helper_timeout + 1000);
	KaTrialShared trial;
	int64		trial_id;

	ka_shared_require();
	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->trial.stop = true;
	ka_shared->trial.retry_at = 0;
	trial = ka_shared->trial;
	SpinLockRelease(&ka_shared->mutex);
	if (!trial.open)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no trial is running")));
	if (trial.latch)
		SetLatch(trial.latch);

	trial_id = trial.trial_id;
	while (trial.open && trial.trial_id == trial_id && GetCurrentTimestamp() < deadline)
	{
		ka_trial_wait(POLL_MS);
		ka_trial_look(&trial);
	}
	return_trial(fcinfo, trial_id);
	return (Datum) 0;
}
