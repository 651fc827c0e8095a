/*
 * auto.c: one step of auto_apply.
 *
 * A step begins with the change log.  Is there a change of ours that nobody has
 * judged yet?  Then the checkpoints after it are compared with those before it
 * (verdict.c), and it is kept, taken back, or watched further.  Otherwise, with
 * auto_apply = safe and a baseline to compare with, the first row of advice
 * that may be applied is.  So there is one change at a time, and a change is
 * only made where its effect could be seen.
 *
 * What may be applied: ka_auto_refusal (severity, confidence, activation), a
 * knob of the kernel that takes its old value back at once, within the bounds
 * of the helper (it is asked first), and nothing that a person decided about or
 * that was tried before and failed.  The rules hold the policy back until the
 * pool of huge pages is right, and their evidence is from after the last
 * change.
 *
 * Invariants:
 *	- the verdict is written to the log before it is carried out, so that
 *	  whoever comes next carries it out;
 *	- no attempt leaves a record unless the helper could be asked;
 *	- a change made by somebody else meanwhile wins: hands off;
 *	- the file for the next boot has nothing that was not judged.
 *
 * Locks: that of the change log, inside its functions; the mutex of the shared
 * memory for the status.  No transaction, no database.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "apply.h"
#include "auto.h"
#include "auto_log.h"
#include "changes.h"
#include "gather.h"
#include "guc.h"
#include "observe.h"
#include "shared.h"
#include "worker.h"
#include "verdict.h"
#include "kernel_advisord/knobs.h"
#include "kernel_advisord/protocol.h"

#define FIRST_RETRY_US	INT64CONST(10000000)	/* doubled with each failure ... */
#define MAX_RETRY_DOUBLINGS 8	/* ... up to 43 minutes */

static int	failed_before;		/* steps in a row that failed, before this one */

PGDLLEXPORT void ka_auto_main(Datum arg);

/*
 * ----------------------------------------------------------------
 * Watching
 * ----------------------------------------------------------------
 */

static void
set_status(KaAutoStatus *status, KaAutoState state, const char *subject, const char *detail)
{
	status->state = state;
	strlcpy(status->subject, subject ? subject : "", sizeof(status->subject));
	strlcpy(status->detail, detail, sizeof(status->detail));
}

/* It is tried again: later each time. */
static void
retry_later(KaAutoStatus *status)
{
	status->due_at = GetCurrentTimestamp() + (FIRST_RETRY_US << Min(failed_before, MAX_RETRY_DOUBLINGS));
	status->failures = failed_before + 1;
}

/* The verdict could not be carried out; said in the log once. */
static void
set_failed(KaAutoStatus *status, KaAutoState state, const char *subject, const char *detail, const char *hint)
{
	bool		same = status->state == (int32) state &&
		strncmp(status->detail, detail, sizeof(status->detail) - 1) == 0;

	set_status(status, state, subject, detail);
	retry_later(status);
	if (!same)
		ereport(WARNING,
				(errmsg("kernel advisor auto-apply %s \"%s\"",
						state == KA_AUTO_CANNOT_KEEP ? "cannot persist" : "cannot roll back", subject),
				 errdetail("%s", detail),
				 hint && hint[0] ? errhint("%s", hint) : 0));
}

/* "tps_outside was 812 1/s before and is 411 1/s after the change, tolerance 81.2" */
static const char *
judgement_text(const KaJudgement *judgement)
{
	const KaMeasureInfo *info = &ka_measure_info[judgement->measure];

	return psprintf("%s was %.4g %s before and is %.4g %s after the change, tolerance %.3g",
					info->name, judgement->before, info->unit, judgement->after, info->unit, judgement->tolerance);
}

/*
 * Where the change cannot be rolled back as such (its outcome was never known,
 * or the helper has a new journal): the old value is set like any other.
 */
static void
set_old_value(const KaChangeRecord *change, KaChangeRecord *record)
{
	KaApplyOptions options = {.who = KA_AUTO_APPLY};

	ka_apply_one(change->subject, change->old, &options, record);
	record->refers = change->change_id;
	record->watch = KA_WATCH_KEPT;	/* nobody has to watch this one */
	ka_changes_finish(record);
}

/* Takes the change back; the verdict is in the log first. */
static void
take_back(const KaChangeRecord *change, KaWatch watch, const char *why, KaAutoStatus *status)
{
	KaApplyOptions options = {.who = KA_AUTO_APPLY,.dry_run = true};
	KaChangeRecord record;

	ka_auto_mark(change->change_id, watch, why);

	/* Asked without effect first: a refusal leaves no record then. */
	ka_rollback_one(change->change_id, &options, &record);
	if (record.state == KA_STATE_DRY_RUN)
	{
		options.dry_run = false;
		ka_rollback_one(change->change_id, &options, &record);
	}
	else if (record.state == KA_STATE_REFUSED && ka_auto_in_effect(change))
		set_old_value(change, &record);

	if (ka_apply_granted(&record))
	{
		ereport(LOG,
				(errmsg("kernel advisor auto-apply has set \"%s\" back from %s to %s (change " INT64_FORMAT ")",
						change->subject, change->asked, change->old, record.change_id),
				 errdetail("%s", why)));
		set_status(status, KA_AUTO_WAITING, change->subject,
				   psprintf("rolled back change " INT64_FORMAT ": %s", change->change_id, why));
	}
	else if (!ka_auto_in_effect(change))
	{
		/* Somebody was faster. */
		ka_auto_mark(change->change_id, KA_WATCH_LEFT, record.detail);
		set_status(status, KA_AUTO_WAITING, change->subject, record.detail);
	}
	else
		set_failed(status, KA_AUTO_CANNOT_ROLL_BACK, change->subject, record.detail, record.hint);
}

/* Also for the next boot, and done. */
static void
keep(const KaChangeRecord *change, const KaJudgement *judgement, KaAutoStatus *status)
{
	KaApplyOptions options = {.who = KA_AUTO_APPLY,.persist = true};
	const char *why = psprintf("%s: %s", ka_verdict_name(judgement->verdict), judgement_text(judgement));
	KaChangeRecord record;

	ka_apply_one(change->subject, change->asked, &options, &record);
	if (record.state == KA_STATE_FAILED || record.state == KA_STATE_UNKNOWN)
	{
		set_failed(status, KA_AUTO_CANNOT_KEEP, change->subject, record.detail, record.hint);
		return;
	}

	ka_auto_mark(record.change_id, KA_WATCH_KEPT, why);
	ka_auto_mark(change->change_id, KA_WATCH_KEPT, why);
	ereport(LOG,
			(errmsg("kernel advisor auto-apply keeps \"%s\" at %s (change " INT64_FORMAT ")",
					change->subject, change->asked, change->change_id),
			 errdetail("%s; %s", why,
					   record.persisted_in[0] ? psprintf("persisted in \"%s\"", record.persisted_in) :
					   psprintf("not persisted: %s", record.detail))));
	set_status(status, KA_AUTO_WAITING, change->subject,
			   psprintf("kept change " INT64_FORMAT ": %s", change->change_id, why));
}

/* A person or a reboot came first: true, and there is nothing more to watch. */
static bool
overtaken(const KaAutoLog *log, int i, KaAutoStatus *status)
{
	const KaChangeRecord *change = &log->records[i];
	KaWatch		watch = KA_WATCH_LEFT;
	const char *why;

	if (change->rolled_back_by != 0)
		why = "somebody took it back while it was watched";
	else if (ka_auto_touched_since(log, i))
		why = "somebody changed it while it was watched";
	else if (ka_auto_in_effect(change))
		return false;
	else if (PgStartTime > change->at || change->state != KA_STATE_APPLIED)
	{
		watch = KA_WATCH_NO_VERDICT;
		why = "the value did not survive a restart, or never came into effect";
	}
	else
		why = "somebody changed the value while it was watched";

	ka_auto_mark(change->change_id, watch, why);
	ereport(LOG,
			(errmsg("kernel advisor auto-apply no longer watches \"%s\" (change " INT64_FORMAT ")",
					change->subject, change->change_id),
			 errdetail("%s", why)));
	set_status(status, KA_AUTO_WAITING, change->subject, why);
	return true;
}

/* What the verdict is, with the reason; "judgement" is that of verdict.c where it was asked. */
static KaVerdict
judge(const KaAutoLog *log, int i, TimestampTz now, KaJudgement *judgement, const char **why)
{
	const KaChangeRecord *change = &log->records[i];
	KaObserved	before;
	KaObserved	after;
	KaBaseline	baseline;

	memset(judgement, 0, sizeof(*judgement));
	if (ka_auto_apply == KA_AUTO_APPLY_OFF)
	{
		*why = "auto_apply was switched off before there was a verdict";
		return KA_NO_VERDICT;
	}
	if (PgStartTime > change->at)
	{
		*why = "the server was restarted before there was a verdict";
		return KA_NO_VERDICT;
	}
	if (change->state != KA_STATE_APPLIED)
	{
		*why = "the kernel did not take the value as it was asked for, or nobody knows";
		return KA_NO_VERDICT;
	}

	if (ka_auto_disturbed_since(log, i))
	{
		*why = "something else was changed before there was a verdict";
		return KA_NO_VERDICT;
	}

	ka_observe(ka_auto_undisturbed_since(log, i), change->at, &before);
	ka_observe(ka_auto_end_of(change), now, &after);
	if (after.count > 0 && (after.mixed || before.mixed || before.restartpoints != after.restartpoints))
	{
		*why = "the server was promoted before there was a verdict";
		return KA_NO_VERDICT;
	}
	(void) ka_baseline(before.items, before.count, &baseline);
	ka_judge(&baseline, after.items, after.count, (now - change->at) / USECS_PER_SEC, judgement);
	*why = judgement->verdict == KA_NO_VERDICT ?
		psprintf("of %zu checkpoints %zu had a load like before: no verdict", after.count, judgement->comparable) :
		judgement->verdict == KA_UNDECIDED ?
		psprintf("%zu checkpoints since the change, %zu with a load like before; a verdict needs %.0f",
				 after.count, judgement->comparable, KA_VERDICT_LIMIT(WATCHED_LEAST)) :
		psprintf("%s: %s", ka_verdict_name(judgement->verdict), judgement_text(judgement));
	return judgement->verdict;
}

static void
watch_step(const KaAutoLog *log, int i, KaAutoStatus *status)
{
	const KaChangeRecord *change = &log->records[i];
	TimestampTz now = GetCurrentTimestamp();
	KaJudgement judgement;
	const char *why;

	if (change->watch != KA_WATCH_OPEN)
	{
		take_back(change, (KaWatch) change->watch, change->detail, status);
		return;
	}
	if (overtaken(log, i, status))
		return;
	switch (judge(log, i, now, &judgement, &why))
	{
		case KA_UNDECIDED:
			set_status(status, KA_AUTO_WATCHING, change->subject,
					   psprintf("change " INT64_FORMAT " from %s to %s: %s",
								change->change_id, change->old, change->asked, why));
			status->due_at = change->at + (int64) KA_VERDICT_LIMIT(WATCHED_SECONDS) * USECS_PER_SEC;
			break;
		case KA_BETTER:
		case KA_SAME:
			keep(change, &judgement, status);
			break;
		case KA_WORSE:
			take_back(change, KA_WATCH_WORSE, why, status);
			break;
		case KA_NO_VERDICT:
			take_back(change, KA_WATCH_NO_VERDICT, why, status);
			break;
	}
}

/*
 * ----------------------------------------------------------------
 * Choosing
 * ----------------------------------------------------------------
 */

/* Sets it, for now only. */
static void
set(const KaAdvice *row, const char *release, KaAutoStatus *status)
{
	KaApplyOptions options = {.who = KA_AUTO_APPLY};
	KaChangeRecord record;

	ka_apply_one(row->subject, row->recommended, &options, &record);
	KA_CHANGE_SET(&record, release, release);
	if (!ka_auto_had_effect(&record))
		record.watch = KA_WATCH_NO_VERDICT; /* nothing to watch, and not to be tried at each checkpoint */
	ka_changes_finish(&record);
	if (!ka_apply_granted(&record))
	{
		ereport(WARNING,
				(errmsg("kernel advisor auto-apply could not set \"%s\" to %s (change " INT64_FORMAT ")",
						row->subject, row->recommended, record.change_id),
				 errdetail("%s", record.detail),
				 record.hint[0] ? errhint("%s", record.hint) : 0));
		set_status(status, KA_AUTO_WAITING, row->subject, record.detail);
		/* Whatever did happen is looked at, and taken back. */
		status->due_at = GetCurrentTimestamp() + FIRST_RETRY_US;
		return;
	}
	ereport(LOG,
			(errmsg("kernel advisor auto-apply has set \"%s\" from %s to %s (change " INT64_FORMAT ")",
					row->subject, record.old, record.asked, record.change_id),
			 errdetail("%s", row->reason)));
	set_status(status, KA_AUTO_WATCHING, row->subject,
			   psprintf("change " INT64_FORMAT " from %s to %s: no checkpoint yet",
						record.change_id, record.old, record.asked));
	status->due_at = record.at + (int64) KA_VERDICT_LIMIT(WATCHED_SECONDS) * USECS_PER_SEC;
}

/* NULL: the helper would set it. */
static const char *
refusal_of_helper(const KaAdvice *row)
{
	KaApplyOptions options = {.who = KA_AUTO_APPLY,.dry_run = true};
	KaChangeRecord record;

	ka_apply_one(row->subject, row->recommended, &options, &record);
	if (record.state == KA_STATE_DRY_RUN)
		return NULL;
	return record.detail[0] ? pstrdup(record.detail) : ka_change_state_name(record.state);
}

/* Why this row is not applied; NULL: it can be. */
static const char *
refusal(const KaAutoLog *log, const KaAdvice *row, const char *release)
{
	const char *why = ka_auto_refusal(row);
	const KaKnob *knob;
	int			node;

	if (why != NULL)
		return why;
	knob = ka_knob_by_subject(row->subject, &node);
	if (knob == NULL || !ka_knob_reversible(knob))
		return "it is not a kernel setting that could be set back at once";
	why = ka_auto_hands_off(log, row->subject, row->recommended, release, GetCurrentTimestamp());
	return why ? why : refusal_of_helper(row);
}

static void
choose_step(const KaAutoLog *log, KaAutoStatus *status)
{
	TimestampTz since = ka_auto_undisturbed_since(log, log->n);
	StringInfoData refused;
	KaObserved	observed;
	KaBaseline	baseline;
	KaReadiness readiness;
	KaAdviceList list;
	KaFacts    *facts;
	KaArena		arena;
	KaTrialShared trial;

	if (ka_auto_apply == KA_AUTO_APPLY_OFF)
	{
		set_status(status, KA_AUTO_OFF, NULL, "");
		return;
	}
	ka_trial_look(&trial);		/* one that begins later waits for this step to end */
	if (trial.open)
	{
		set_status(status, KA_AUTO_WAITING, trial.subject,
				   psprintf("trial " INT64_FORMAT " of it has not ended", trial.trial_id));
		return;
	}
	ka_observe(since, GetCurrentTimestamp(), &observed);
	readiness = ka_baseline(observed.items, observed.count, &baseline);
	if (observed.mixed)
		readiness = KA_TOO_FEW;
	if (readiness != KA_READY)
	{
		set_status(status, KA_AUTO_WAITING, NULL,
				   psprintf("%s: %zu checkpoints to compare with since %s, at least %.0f are needed",
							ka_readiness_text(readiness), baseline.count, timestamptz_to_str(since),
							KA_VERDICT_LIMIT(BASELINE_LEAST)));
		return;
	}

	facts = ka_gather_facts_since(&arena, since);
	ka_gather_advice(facts, &list);
	initStringInfo(&refused);
	for (size_t i = 0; i < list.count; i++)
	{
		const KaAdvice *row = &list.rows[i];
		const char *why = refusal(log, row, ka_text(facts, KA_KERNEL_RELEASE));

		if (why == NULL)
		{
			set(row, ka_text(facts, KA_KERNEL_RELEASE), status);
			return;
		}
		/* Rows of advice that it would be about are worth a word. */
		if (ka_auto_refusal(row) == NULL)
			appendStringInfo(&refused, "; not %s: %s", row->subject, why);
	}
	set_status(status, KA_AUTO_WAITING, NULL, psprintf("no advice to apply%s", refused.data));
}

/*
 * ----------------------------------------------------------------
 * The worker
 * ----------------------------------------------------------------
 */

static void
look_at_status(KaAutoStatus *status)
{
	SpinLockAcquire(&ka_shared->mutex);
	*status = ka_shared->auto_status;
	SpinLockRelease(&ka_shared->mutex);
}

static void
step(KaAutoStatus *status)
{
	KaAutoLog	log;
	int			i;

	log.n = ka_changes_read(&log.records);
	status->due_at = DT_NOEND;
	i = ka_auto_find_watched(&log);
	if (i >= 0)
		watch_step(&log, i, status);
	else
		choose_step(&log, status);
}

void
ka_auto_main(Datum arg)
{
	MemoryContext context;
	KaAutoStatus status;

	(void) arg;
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	if (!ka_worker_claim(&ka_shared->auto_pid))
		return;
	look_at_status(&status);
	failed_before = status.failures;
	status.failures = 0;
	context = AllocSetContextCreate(TopMemoryContext, "kernel advisor auto-apply", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);

	PG_TRY();
	{
		step(&status);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		EmitErrorReport();
		FlushErrorState();
		set_status(&status, KA_AUTO_FAILING, NULL, error->message);
		retry_later(&status);
	}
	PG_END_TRY();

	status.at = GetCurrentTimestamp();
	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->auto_status = status;
	SpinLockRelease(&ka_shared->mutex);
}
