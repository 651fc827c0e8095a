/*
 * auto_log.c: what the change log says about a change of auto_apply and about
 * its subject: everything that a step remembers.
 *
 * Pure but for the kernel's value now, which "in effect" is about, and for
 * ka_auto_mark, which writes.  Records are in the order in which they began.
 *
 * Locks: that of the change log, in ka_auto_mark.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "auto_log.h"
#include "trial.h"
#include "verdict.h"

static bool
same_subject(const KaChangeRecord *a, const KaChangeRecord *b)
{
	return strcmp(a->subject, b->subject) == 0;
}

bool
ka_auto_had_effect(const KaChangeRecord *record)
{
	switch (record->state)
	{
		case KA_STATE_IN_PROGRESS:
		case KA_STATE_UNKNOWN:
		case KA_STATE_APPLIED:
		case KA_STATE_PARTIAL:
		case KA_STATE_ROLLED_BACK:
		case KA_STATE_SUPERSEDED:
			return true;
		default:
			return false;
	}
}

/* Not the file for the next boot alone. */
static bool
changed_value(const KaChangeRecord *record)
{
	return ka_auto_had_effect(record) && strcmp(record->old, record->asked) != 0;
}

/*
 * A decision about its subject; also a person's that it is right as it is, and
 * an attempt of ours that came to nothing.
 */
static bool
decides(const KaChangeRecord *record)
{
	return ka_auto_had_effect(record) ||
		(record->automatic ? record->watch == KA_WATCH_NO_VERDICT : record->state == KA_STATE_UNCHANGED);
}

TimestampTz
ka_auto_end_of(const KaChangeRecord *record)
{
	return record->ended_at != 0 ? record->ended_at : record->at;
}

TimestampTz
ka_auto_undisturbed_since(const KaAutoLog *log, int i)
{
	TimestampTz before = i < log->n ? log->records[i].at : DT_NOEND;
	TimestampTz since = PgStartTime;

	while (i-- > 0)
	{
		if (changed_value(&log->records[i]))
			since = Max(since, ka_auto_end_of(&log->records[i]));
	}
	return Max(since, ka_trials_last_end(before));
}

bool
ka_auto_touched_since(const KaAutoLog *log, int i)
{
	for (int j = i + 1; j < log->n; j++)
	{
		if (!log->records[j].automatic && decides(&log->records[j]) &&
			same_subject(&log->records[j], &log->records[i]))
			return true;
	}
	return false;
}

bool
ka_auto_disturbed_since(const KaAutoLog *log, int i)
{
	for (int j = i + 1; j < log->n; j++)
	{
		if (!log->records[j].automatic && changed_value(&log->records[j]))
			return true;
	}
	return false;
}

bool
ka_auto_in_effect(const KaChangeRecord *change)
{
	const char *value = ka_change_verified_now(change);

	if (value == NULL)
		return true;
	return strcmp(value, change->old) != 0 &&
		(strcmp(value, change->asked) == 0 || strcmp(value, change->verified) == 0);
}

/* Condemned, and still there: the rollback did not work yet. */
static bool
awaits_rollback(const KaAutoLog *log, int i)
{
	const KaChangeRecord *change = &log->records[i];

	if ((change->watch != KA_WATCH_WORSE && change->watch != KA_WATCH_NO_VERDICT) ||
		change->rolled_back_by != 0 || ka_auto_touched_since(log, i))
		return false;
	for (int j = i + 1; j < log->n; j++)
	{
		if (log->records[j].state == KA_STATE_APPLIED && changed_value(&log->records[j]) &&
			same_subject(&log->records[j], change))
			return false;		/* set back in another way */
	}
	return ka_auto_in_effect(change);
}

int
ka_auto_find_watched(const KaAutoLog *log)
{
	for (int i = log->n - 1; i >= 0; i--)
	{
		const KaChangeRecord *record = &log->records[i];

		if (record->automatic && record->action == KA_ACTION_SET && changed_value(record) &&
			(record->watch == KA_WATCH_OPEN || awaits_rollback(log, i)))
			return i;
	}
	return -1;
}

const char *
ka_auto_hands_off(const KaAutoLog *log, const char *subject, const char *value, const char *release, TimestampTz now)
{
	const KaChangeRecord *last = NULL;
	const KaChangeRecord *undone;

	for (int i = log->n - 1; i >= 0 && last == NULL; i--)
	{
		if (decides(&log->records[i]) && strcmp(log->records[i].subject, subject) == 0)
			last = &log->records[i];
	}
	if (last == NULL)
		return NULL;
	if (!last->automatic)
	{
		if (last->action == KA_ACTION_ROLLBACK)
			return "a person took it back";
		return strcmp(last->asked, value) == 0 ? NULL : "a person chose another value";
	}

	undone = last;
	for (int i = 0; i < log->n && last->refers != 0; i++)
	{
		if (log->records[i].change_id == last->refers)
			undone = &log->records[i];
	}
	if (release != NULL && strcmp(undone->release, release) != 0)
		return NULL;
	switch (undone->watch)
	{
		case KA_WATCH_WORSE:
			return "it made things worse on this kernel";
		case KA_WATCH_LEFT:
			return "somebody set it in another way";
		case KA_WATCH_NO_VERDICT:
			return now - ka_auto_end_of(last) < (int64) KA_VERDICT_LIMIT(RETRY_SECONDS) * USECS_PER_SEC ?
				"it was tried lately, without a verdict" : NULL;
		default:
			return NULL;
	}
}

void
ka_auto_mark(int64 change_id, KaWatch watch, const char *why)
{
	KaChangeRecord record;

	if (!ka_changes_find(change_id, &record) || record.watch == (int32) watch)
		return;
	record.watch = watch;
	ka_change_detail(&record, "%s", why);
	ka_changes_finish(&record);
}
