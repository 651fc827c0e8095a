/*
 * trial_knob.c: the knob of a trial, through the root helper.
 *
 * As with apply(), what the kernel shows counts, not what the helper says.  A
 * value that is neither of the two was set by somebody else, and is left alone.
 * The changes of a trial are in its own record and in the helper's journal, not
 * in the change log: two for each pair would push all others out of it.
 *
 * Locks: none.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "changes.h"
#include "kernel_change.h"
#include "trial.h"

/* A pool may not come back once its pages are used; the commit limit fails others without any sign here. */
#define NOT_REVERSIBLE (KA_KF_POOL | KA_KF_SURPLUS | KA_KF_ACTION | KA_KF_INTERNAL | KA_KF_COMMIT)

bool
ka_knob_reversible(const KaKnob *knob)
{
	return (knob->flags & NOT_REVERSIBLE) == 0;
}

static const KaKnob *
knob_of(const KaTrialRecord *record)
{
	return ka_knob_find((uint32) record->knob);
}

int64
ka_trial_knob_value(const KaTrialRecord *record)
{
	const KaKnob *knob = knob_of(record);
	int64		value;

	return knob == NULL || ka_machine_read(knob, record->node, &value) < 0 ? KA_NO_VALUE : value;
}

static const char *
value_text(const KaTrialRecord *record, int64 value)
{
	return value == KA_NO_VALUE ? "unreadable" : ka_machine_value_text(knob_of(record), value);
}

bool
ka_trial_set(const KaTrialRecord *record, int64 from, int64 to, int timeout_ms,
			 const char **why, const char **hint)
{
	const KaKnob *knob = knob_of(record);
	int64		now = ka_trial_knob_value(record);
	KaRequest	request;
	KaReply		reply;
	KaHelperFailure failure;

	*hint = NULL;
	if (knob == NULL)
	{
		*why = "this version has no such setting";
		return false;
	}
	if (now != from && now != to)
	{
		*why = psprintf("somebody else set it to %s meanwhile", value_text(record, now));
		return false;
	}
	request = ka_helper_request(KA_OP_SET, knob, record->node, to);
	if (!ka_helper_call(&request, &reply, timeout_ms, &failure))
	{
		*why = failure.reason;
		*hint = failure.hint;
		return false;
	}
	if (!ka_is_done(reply.status))
	{
		*why = ka_status_detail(knob, &reply);
		*hint = ka_helper_status_hint(reply.status);
		return false;
	}
	now = ka_trial_knob_value(record);
	if (now == to)
		return true;
	*why = psprintf("kernel_advisord was asked for %s, and the kernel shows %s",
					value_text(record, to), value_text(record, now));
	*hint = "Something else changes the value, or kernel_advisord works on another machine or container.";
	return false;
}

/* Error unless there is a helper that may set "value". */
static void
require_value(const KaTrialRecord *record, const char *value, const KaReply *bounds, int64 number)
{
	if (number >= bounds->min && number <= bounds->max)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("there cannot be a trial of \"%s\" with the value \"%s\"", record->subject, value),
			 errdetail("kernel_advisord sets it from " INT64_FORMAT " to " INT64_FORMAT " only.",
					   bounds->min, bounds->max),
			 errhint("/etc/kernel_advisor/bounds.conf can narrow the range: see kernel_advisord(8).")));
}

void
ka_trial_require_helper(const KaTrialRecord *record)
{
	KaApplyOptions options = {.dry_run = true};
	KaRequest	request = ka_helper_request(KA_OP_GET, knob_of(record), record->node, 0);
	KaReply		reply;
	KaChangeRecord change;

	/* All that may keep the helper from it. */
	ka_kernel_apply(record->subject, record->value, &options, &change);
	if (change.state != KA_STATE_DRY_RUN && change.state != KA_STATE_UNCHANGED)
		ka_apply_raise(&change);

	/* The same value needs no change, but a helper all the same; and the old one has to come back. */
	if (!ka_ask_helper(&request, &reply, &change))
		ka_apply_raise(&change);
	if (reply.status != KA_ST_OK)
	{
		ka_refused_by_helper(knob_of(record), &reply, &change);
		ka_apply_raise(&change);
	}
	require_value(record, record->value, &reply, record->new_value);
	require_value(record, record->old, &reply, record->old_value);
}

/* The record's last words; what was said before stays. */
static void
add_detail(KaTrialRecord *record, const char *text)
{
	ka_change_text(record->detail, sizeof(record->detail),
				   record->detail[0] ? psprintf("%s; %s", record->detail, text) : text);
}

bool
ka_trial_restore(KaTrialRecord *record, int timeout_ms)
{
	int64		now = ka_trial_knob_value(record);
	const char *why;
	const char *hint;

	if (now != record->old_value && now != record->new_value && now != KA_NO_VALUE)
		add_detail(record, psprintf("somebody else set it to %s, which is left as it is", value_text(record, now)));
	else if (now != record->old_value &&
			 !ka_trial_set(record, now, record->old_value, timeout_ms, &why, &hint))
	{
		ereport(WARNING,
				(errmsg("kernel advisor trial " INT64_FORMAT " could not set \"%s\" back to %s",
						record->trial_id, record->subject, record->old),
				 errdetail("%s", why),
				 hint ? errhint("%s", hint) : 0));
		ka_change_text(record->hint, sizeof(record->hint),
					   psprintf("The value %s is not back yet: %s. It is tried again.", record->old, why));
		return false;
	}
	record->restored = 1;
	record->ended_at = GetCurrentTimestamp();
	record->hint[0] = '\0';
	return true;
}
