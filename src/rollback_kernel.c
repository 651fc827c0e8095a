/*
 * rollback_kernel.c: taking back a change of a knob of the kernel.
 *
 * The helper's journal has the old value, also that of a knob that is cleared
 * by its twin, so the helper is asked to roll back its own change.  Whether the
 * change of that number is still ours is looked up first: the journal may have
 * been removed since.  A change whose answer never came is looked for in it.
 *
 * Locks: that of the change log, while a record is written.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "guc.h"
#include "kernel_change.h"

/* How far back a change without an answer is looked for, and how late it may have begun. */
#define RECOVER_CHANGES 64
#define RECOVER_SLACK_MS 60000

/* The helper's first change with this id or a larger one; change 0: there is none. */
static bool
list_change(uint64 id, KaReply *reply, KaChangeRecord *record)
{
	KaRequest	request = ka_helper_request(KA_OP_LIST, NULL, KA_ALL_NODES, (int64) id);

	if (!ka_ask_helper(&request, reply, record))
		return false;
	if (reply->status != KA_ST_DENIED)
		return true;
	ka_refused_by_helper(ka_knob_find((uint32) record->knob), reply, record);
	return false;
}

static void
set_old_value_instead(const KaChangeRecord *change, KaChangeRecord *record)
{
	record->state = KA_STATE_REFUSED;
	record->sqlstate = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
	KA_CHANGE_SET(record, hint, psprintf("Set the old value: SELECT * FROM kernel_advisor.apply('%s', '%s').",
										 change->subject, change->old));
}

/* Is the helper's change of that number the one that we made?  False: the record says why not. */
static bool
journal_knows(const KaChangeRecord *change, uint64 id, int64 at_us, KaChangeRecord *record)
{
	KaReply		reply;

	if (id == 0)
		return true;
	if (!list_change(id, &reply, record))
		return false;
	if (reply.change == id && reply.knob == (uint32) change->knob && reply.node == change->node && reply.at_us == at_us)
		return true;
	ka_change_detail(record, "the journal of kernel_advisord does not have change " INT64_FORMAT " any more", change->change_id);
	set_old_value_instead(change, record);
	return false;
}

/* The id of the helper's newest change, found by bisection; 0: none. */
static bool
newest_change(uint64 *newest, KaChangeRecord *record)
{
	uint64		high = 1;
	KaReply		reply;

	for (*newest = 0;; high = *newest * 2)
	{
		if (!list_change(high, &reply, record))
			return false;
		if (reply.change < high)
			break;				/* none from here on */
		*newest = reply.change;
	}
	while (high - *newest > 1)
	{
		uint64		middle = *newest + (high - *newest) / 2;

		if (!list_change(middle, &reply, record))
			return false;
		if (reply.change >= middle)
			*newest = reply.change;
		else
			high = middle;
	}
	return true;
}

/*
 * An answer never came: looks among the newest changes in the helper's journal
 * for one of this knob to this value, made while we waited.  False: there is no
 * answer now either.
 */
static bool
recover_change(const KaChangeRecord *change, bool persisted, uint64 *id, int64 *at_us, KaChangeRecord *record)
{
	int64		begun_us = change->at + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
	int64		ended_us = begun_us + (2 * ka_helper_timeout + RECOVER_SLACK_MS) * INT64CONST(1000);
	uint64		newest;
	uint64		next;
	int64		asked;
	KaReply		reply;

	if (!ka_machine_parse(ka_knob_find((uint32) change->knob), change->asked, &asked))
		return true;
	if (!newest_change(&newest, record))
		return false;
	for (next = newest > RECOVER_CHANGES ? newest - RECOVER_CHANGES : 1; next <= newest; next = reply.change + 1)
	{
		if (!list_change(next, &reply, record))
			return false;
		if (reply.change < next)
			break;
		if ((persisted ? reply.operation == KA_OP_PERSIST :
			 reply.operation == KA_OP_SET || reply.operation == KA_OP_RESERVE) &&
			reply.knob == (uint32) change->knob && reply.node == change->node && reply.asked == asked &&
			reply.at_us >= begun_us && reply.at_us <= ended_us)
		{
			*id = reply.change;
			*at_us = reply.at_us;
		}
	}
	return true;
}

/* What the helper has of this change, answered or not.  False: the record says why nothing can be done. */
static bool
find_in_journal(KaChangeRecord *change, KaChangeRecord *record)
{
	bool		answered = change->helper_change != 0 || change->helper_persist != 0;

	if (!journal_knows(change, change->helper_change, change->helper_at_us, record) ||
		!journal_knows(change, change->helper_persist, change->helper_persist_at_us, record))
		return false;
	if (!answered && change->state != KA_STATE_UNCHANGED &&
		!recover_change(change, false, &change->helper_change, &change->helper_at_us, record))
		return false;
	if (change->persist_open &&
		!recover_change(change, true, &change->helper_persist, &change->helper_persist_at_us, record))
		return false;
	if (change->helper_change != 0 || change->helper_persist != 0)
		return true;
	ka_change_detail(record, "the outcome of change " INT64_FORMAT " is not known, and the journal of kernel_advisord does not have it",
					 change->change_id);
	set_old_value_instead(change, record);
	return false;
}

/* The file for the next boot goes back as well; a failure of that is told, and no more. */
static void
rollback_persist(const KaChangeRecord *change, const KaKnob *knob, bool dry, KaChangeRecord *record)
{
	KaRequest	request = ka_helper_request(KA_OP_ROLLBACK, NULL, KA_ALL_NODES, (int64) change->helper_persist);
	KaChangeState state = record->state;
	int			sqlstate = record->sqlstate;
	KaReply		reply;

	if (dry)
		request.flags |= KA_FLAG_DRY_RUN;
	if (dry ? !ka_ask_helper(&request, &reply, record) : !ka_ask_recorded(&request, &reply, record, knob, change->node))
	{
		record->state = state;
		record->sqlstate = sqlstate;
		ka_append_detail(record, "whether the value for the next boot was taken back is not known");
		return;
	}
	if (reply.status == KA_ST_OK || reply.status == KA_ST_UNCHANGED)
	{
		ka_take_boot(&reply, record);
		if (!dry)
		{
			record->helper_persist = reply.change;
			record->helper_persist_at_us = reply.at_us;
		}
		if (state == KA_STATE_UNCHANGED && reply.status == KA_ST_OK)
			record->state = KA_STATE_APPLIED;
		return;
	}
	if (change->helper_change == 0)
	{
		ka_refused_by_helper(knob, &reply, record);	/* there was nothing else to take back */
		return;
	}
	ka_append_detail(record, psprintf("%s was not restored: %s", ka_own_file(knob), ka_status_detail(knob, &reply)));
	KA_CHANGE_SET(record, hint, ka_helper_status_hint(reply.status));
}

void
ka_kernel_rollback(KaChangeRecord *change, const KaApplyOptions *options, KaChangeRecord *record)
{
	const KaKnob *knob = ka_knob_find((uint32) change->knob);
	KaRequest	request;
	int64		old;
	KaReply		reply;

	record->knob = change->knob;
	record->node = change->node;
	old = ka_verify_knob(knob, change->node, record);
	KA_CHANGE_SET(record, old, record->verified);
	KA_CHANGE_SET(record, asked, change->old);
	if (ka_refused_by_trial(record))
		return;

	if (!find_in_journal(change, record))
		return;

	request = ka_helper_request(KA_OP_ROLLBACK, NULL, KA_ALL_NODES, (int64) change->helper_change);
	if (options->dry_run)
		request.flags |= KA_FLAG_DRY_RUN;
	else
		ka_changes_begin(record);

	if (change->helper_change == 0)
		record->state = KA_STATE_UNCHANGED; /* only the file was changed */
	else if (options->dry_run ? ka_ask_helper(&request, &reply, record) :
			 ka_ask_recorded(&request, &reply, record, knob, change->node))
	{
		if (!options->dry_run)
		{
			ka_judge_answer(knob, change->node, old, &reply, record);
			ka_warn_of_start(knob, record);
		}
		else if (!ka_is_done(reply.status))
			ka_refused_by_helper(knob, &reply, record);
		else
			record->state = reply.status == KA_ST_UNCHANGED ? KA_STATE_UNCHANGED : KA_STATE_DRY_RUN;
	}
	else
		ka_verify_knob(knob, change->node, record);

	if (change->helper_persist != 0 && (ka_apply_granted(record) || record->state == KA_STATE_DRY_RUN))
		rollback_persist(change, knob, options->dry_run, record);
	if (options->dry_run)
	{
		if (ka_apply_granted(record))
			record->state = KA_STATE_DRY_RUN;
		return;
	}
	ka_changes_finish(record);
}
