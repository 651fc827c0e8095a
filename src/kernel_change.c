/*
 * kernel_change.c: what setting a knob and taking it back have in common:
 * asking the helper, and what of its answer goes into the record.
 *
 * What the helper says it was granted is compared with what the kernel shows;
 * when they differ the change has failed, whatever the helper says.
 *
 * Locks: that of the change log, when a record is written after a cancel.
 */
#include "postgres.h"

#include "guc.h"
#include "kernel_change.h"
#include "own_files.h"
#include "trial.h"

/*
 * ----------------------------------------------------------------
 * What the record says
 * ----------------------------------------------------------------
 */

void
ka_append_detail(KaChangeRecord *record, const char *text)
{
	if (text == NULL)
		return;
	if (record->detail[0] == '\0')
		KA_CHANGE_SET(record, detail, text);
	else
		ka_change_detail(record, "%s; %s", record->detail, text);
}

void
ka_set_value_text(char *field, const KaKnob *knob, int64 value)
{
	ka_change_text(field, KA_CHANGE_VALUE, value < 0 ? NULL : ka_machine_value_text(knob, value));
}

/* Reads the kernel; KA_NO_VALUE when it cannot be read, or there is nothing to read. */
int64
ka_verify_knob(const KaKnob *knob, int node, KaChangeRecord *record)
{
	int64		now = KA_NO_VALUE;

	if (!(knob->flags & KA_KF_ACTION) && ka_machine_read(knob, node, &now) < 0)
		now = KA_NO_VALUE;
	ka_set_value_text(record->verified, knob, now);
	return now;
}

static void
no_answer(KaChangeRecord *record, const KaHelperFailure *failure)
{
	record->state = ka_helper_outcome_unknown(failure->trouble) && record->change_id != 0 ?
		KA_STATE_UNKNOWN : KA_STATE_FAILED;
	record->sqlstate = ka_helper_failure_sqlstate(failure->trouble);
	ka_append_detail(record, failure->reason);
	KA_CHANGE_SET(record, hint, failure->hint);
}

/* "outside the bounds: 4096 to 1234 kB" */
const char *
ka_status_detail(const KaKnob *knob, const KaReply *reply)
{
	const char *text = ka_status_text(reply->status);

	if (reply->status == KA_ST_RANGE && reply->min >= 0)
	{
		const char *min = ka_machine_value_text(knob, reply->min);
		const char *max = ka_machine_value_text(knob, reply->max);

		if (min && max)
			text = psprintf("%s: %s to %s", text, min, max);
	}
	if (reply->status == KA_ST_FOREIGN_FILE && reply->line > 0)
		text = psprintf("%s: line %u", text, reply->line);
	if (reply->error != 0)
		text = psprintf("%s: %s", text, strerror(reply->error));
	return text;
}

/* The helper, its journal or its files failed; else it, or the kernel, said no. */
KaChangeState
ka_refusal_state(uint32 status)
{
	return status == KA_ST_DENIED || ka_helper_status_sqlstate(status) == ERRCODE_SYSTEM_ERROR ?
		KA_STATE_FAILED : KA_STATE_REFUSED;
}

void
ka_refused_by_helper(const KaKnob *knob, const KaReply *reply, KaChangeRecord *record)
{
	record->state = ka_refusal_state(reply->status);
	record->sqlstate = ka_helper_status_sqlstate(reply->status);
	ka_append_detail(record, ka_status_detail(knob, reply));
	KA_CHANGE_SET(record, hint, ka_helper_status_hint(reply->status));
}

bool
ka_is_done(uint32 status)
{
	return status == KA_ST_OK || status == KA_ST_PARTIAL || status == KA_ST_UNDONE || status == KA_ST_UNCHANGED;
}

/* A pool that is smaller now than what huge_pages = on needs. */
void
ka_warn_of_start(const KaKnob *knob, KaChangeRecord *record)
{
	const char *huge_pages = ka_setting_now("huge_pages");
	KaPoolProof proof;

	if (!(knob->flags & KA_KF_POOL) || huge_pages == NULL || strcmp(huge_pages, "on") != 0)
		return;
	ka_machine_prove_pool(&proof);
	if (!proof.proven)
		KA_CHANGE_SET(record, hint,
					  psprintf("huge_pages is on, and the server will not start again: %s.", proof.problem));
}

/* The answer to set, reserve or rollback, against what the kernel shows. */
void
ka_judge_answer(const KaKnob *knob, int node, int64 old, const KaReply *reply, KaChangeRecord *record)
{
	int64		now = ka_verify_knob(knob, node, record);
	bool		readable = !(knob->flags & KA_KF_ACTION);

	record->status = reply->status;
	record->helper_change = reply->change;
	record->helper_at_us = reply->at_us;
	ka_set_value_text(record->granted, knob, reply->granted);

	if (readable && ka_is_done(reply->status) && now != reply->granted)
	{
		record->state = KA_STATE_FAILED;
		record->sqlstate = ERRCODE_SYSTEM_ERROR;
		ka_append_detail(record, psprintf("kernel_advisord says that %s is %s now, and the kernel shows %s",
									   record->subject, record->granted[0] ? record->granted : "unknown",
									   now == KA_NO_VALUE ? "nothing" : record->verified));
		KA_CHANGE_SET(record, hint,
					  "Something else changed the value, or kernel_advisord works on another machine or container.");
	}
	else if (reply->status == KA_ST_UNCHANGED)
		record->state = KA_STATE_UNCHANGED;
	else if (reply->status == KA_ST_OK)
		record->state = KA_STATE_APPLIED;
	else if (ka_is_done(reply->status) || (readable && now != KA_NO_VALUE && now != old))
	{
		record->state = now == old ? KA_STATE_REFUSED : KA_STATE_PARTIAL;
		record->sqlstate = now == old ? ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE : 0;
		ka_append_detail(record, ka_status_detail(knob, reply));
	}
	else
		ka_refused_by_helper(knob, reply, record);
}

bool
ka_refused_by_trial(KaChangeRecord *record)
{
	const char *objection = ka_trial_objection(record->subject);

	if (objection == NULL)
		return false;
	ka_change_refuse(record, ERRCODE_OBJECT_IN_USE, objection,
					 "Wait until it has ended, or end it: SELECT * FROM kernel_advisor.trial_stop().");
	return true;
}

/*
 * ----------------------------------------------------------------
 * Asking
 * ----------------------------------------------------------------
 */

/* False: the record says why there is no answer. */
bool
ka_ask_helper(const KaRequest *request, KaReply *reply, KaChangeRecord *record)
{
	KaHelperFailure failure;

	if (ka_helper_call(request, reply, ka_helper_timeout, &failure))
		return true;
	no_answer(record, &failure);
	return false;
}

/*
 * The same for a change that is in the log: an error that comes while we wait,
 * a cancel above all, is written into the record before it goes on.
 */
bool
ka_ask_recorded(const KaRequest *request, KaReply *reply, KaChangeRecord *record, const KaKnob *knob, int node)
{
	volatile bool answered = false;
	volatile KaChangeState state = record->state;

	PG_TRY();
	{
		answered = ka_ask_helper(request, reply, record);
	}
	PG_CATCH();
	{
		/* Once the kernel's value is settled only the file for the next boot is open. */
		record->state = state == KA_STATE_IN_PROGRESS ? KA_STATE_UNKNOWN : state;
		ka_append_detail(record, psprintf("cancelled while kernel_advisord was asked to %s",
									   ka_operation_name(request->operation)));
		if (record->state == KA_STATE_UNKNOWN)
			KA_CHANGE_SET(record, hint, "The column \"verified\" shows the value; rollback() finds out whether it was this change.");
		ka_verify_knob(knob, node, record);
		ka_changes_finish(record);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return answered;
}

/*
 * ----------------------------------------------------------------
 * The next boot
 * ----------------------------------------------------------------
 */

const char *
ka_own_file(const KaKnob *knob)
{
	return (knob->flags & KA_KF_SYSFS) ? KA_TMPFILES_DIRECTORY "/" KA_TMPFILES_FILE :
		KA_SYSCTL_DIRECTORY "/" KA_SYSCTL_FILE;
}

void
ka_take_boot(const KaReply *reply, KaChangeRecord *record)
{
	record->boot_winner = reply->boot_winner;
	record->boot_value = reply->boot_value;
	KA_CHANGE_SET(record, boot_file, reply->boot_file);
}
