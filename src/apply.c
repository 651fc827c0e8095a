/*
 * apply.c: one change, or one rollback, whatever kind of subject it has.
 *
 * One subject at a time; apply_sql.c puts several in order.
 *
 * Locks: none of its own.
 */
#include "postgres.h"

#include "utils/guc.h"

#include "apply.h"
#include "helper.h"
#include "machine.h"
#include "shared.h"

bool
ka_apply_granted(const KaChangeRecord *record)
{
	return record->state == KA_STATE_APPLIED || record->state == KA_STATE_UNCHANGED ||
		record->state == KA_STATE_PENDING_RESTART;
}

/*
 * A detail as a sentence: with a capital, unless it begins with a name, and
 * with what the kernel shows where nothing else is known.
 */
static const char *
sentence(const KaChangeRecord *record)
{
	char	   *text = psprintf("%s.", record->detail);
	size_t		word = strcspn(text, " ");

	if (strcspn(text, "_.\"") >= word)
		text[0] = pg_toupper((unsigned char) text[0]);
	if (record->state == KA_STATE_UNKNOWN && record->verified[0])
		text = psprintf("%s The kernel shows %s.", text, record->verified);
	return text;
}

void
ka_apply_raise(const KaChangeRecord *record)
{
	ereport(ERROR,
			(errcode(record->sqlstate ? record->sqlstate : ERRCODE_SYSTEM_ERROR),
			 record->action == KA_ACTION_ROLLBACK ?
			 errmsg("could not roll back change " INT64_FORMAT " of \"%s\"", record->refers, record->subject) :
			 errmsg("could not set \"%s\" to \"%s\"", record->subject, record->asked),
			 record->detail[0] ? errdetail("%s", sentence(record)) : 0,
			 record->hint[0] ? errhint("%s", record->hint) : 0));
}

void
ka_subject_require(const char *subject)
{
	if (ka_subject_kind(subject) == KA_SUBJECT_UNKNOWN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is nothing to set by the name of \"%s\"", subject),
				 errhint("The column \"subject\" of kernel_advisor.advice has the names.")));
}

void
ka_apply_one(const char *subject, const char *value, const KaApplyOptions *options, KaChangeRecord *record)
{
	if (!options->dry_run)
		ka_shared_require();
	switch (ka_subject_kind(subject))
	{
		case KA_SUBJECT_KERNEL:
			ka_kernel_apply(subject, value, options, record);
			return;
		case KA_SUBJECT_SETTING:
			ka_setting_apply(subject, value, options, record);
			return;
		case KA_SUBJECT_UNKNOWN:
			ka_subject_require(subject);
			return;
	}
}

void
ka_rollback_one(int64 change_id, const KaApplyOptions *options, KaChangeRecord *record)
{
	KaChangeRecord change;

	if (!options->dry_run)
		ka_shared_require();
	ka_change_init(record, KA_ACTION_ROLLBACK, "", options->who);
	record->refers = change_id;
	if (!ka_changes_find(change_id, &change))
	{
		ka_change_refuse(record, ERRCODE_INVALID_PARAMETER_VALUE,
			   psprintf("the change log has no change " INT64_FORMAT, change_id),
			   "The view kernel_advisor.changes lists them; the oldest are dropped beyond a thousand.");
		return;
	}
	KA_CHANGE_SET(record, subject, change.subject);

	if (change.action == KA_ACTION_ROLLBACK)
		ka_change_refuse(record, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
			   "it is a rollback itself", "Apply the change again.");
	else if (change.rolled_back_by != 0)
		ka_change_refuse(record, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
			   psprintf("it was rolled back already, by change " INT64_FORMAT, change.rolled_back_by), NULL);
	else
	{
		switch (ka_change_state_now(&change))
		{
			case KA_STATE_APPLIED:
			case KA_STATE_PARTIAL:
			case KA_STATE_PENDING_RESTART:
			case KA_STATE_SUPERSEDED:	/* the helper, or the file, tells by what */
			case KA_STATE_UNKNOWN:	/* and whether it was made at all */
				if (change.knob)
					ka_kernel_rollback(&change, options, record);
				else
					ka_setting_rollback(&change, options, record);
				break;
			case KA_STATE_IN_PROGRESS:
				ka_change_refuse(record, ERRCODE_OBJECT_IN_USE, "it is still in progress", NULL);
				break;
			default:
				ka_change_refuse(record, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
					   psprintf("it had no effect: its state is \"%s\"", ka_change_state_name(change.state)), NULL);
				break;
		}
	}
}
