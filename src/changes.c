/*
 * changes.c: the file of the change log (record_file.h), and what its records
 * say by now.
 *
 * Lock: ka_shared->changes_lock; what cannot be written is reported after its
 * release.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"

#include "apply.h"
#include "changes.h"
#include "helper.h"
#include "machine.h"
#include "record_file.h"
#include "shared.h"

static const char *changes_problem(const KaRecordsHeader *header, const void *stored);

static const KaRecordFormat format = {
	.magic = "KACHNG\r\n",
	.version = 1,
	.record_size = sizeof(KaChangeRecord),
	.most = KA_MAX_CHANGES,
	.not_ours = "it is not a log of changes",
};

static KaRecordFile file = {
	.path = KA_CHANGES_FILE,
	.temporary = KA_CHANGES_FILE ".tmp",
	.noun = "change log",
	.format = &format,
	.problem = changes_problem,
};

StaticAssertDecl(sizeof(KaChangeRecord) % 8 == 0, "records follow each other");

/*
 * ----------------------------------------------------------------
 * Names and texts
 * ----------------------------------------------------------------
 */

typedef struct NumberName
{
	int32		number;
	const char *name;
} NumberName;

static const NumberName states[] = {
#define STATE(number, symbol, name) {number, name},
	KA_CHANGE_STATES(STATE)
#undef STATE
};

static const NumberName actions[] = {
#define ACTION(number, symbol, name) {number, name},
	KA_CHANGE_ACTIONS(ACTION)
#undef ACTION
};

static const char *
find_name(const NumberName *names, size_t n, int32 number)
{
	for (size_t i = 0; i < n; i++)
	{
		if (names[i].number == number)
			return names[i].name;
	}
	return NULL;
}

const char *
ka_change_state_name(int32 state)
{
	return find_name(states, lengthof(states), state);
}

const char *
ka_change_action_name(int32 action)
{
	return find_name(actions, lengthof(actions), action);
}

/* Not cut within a character, which would be no text in the database's encoding. */
void
ka_change_text(char *field, size_t size, const char *text)
{
	int			length = text ? pg_mbcliplen(text, strlen(text), size - 1) : 0;

	memset(field, 0, size);
	if (text)
		memcpy(field, text, length);
}

void
ka_change_detail(KaChangeRecord *record, const char *format,...)
{
	char		text[2 * KA_CHANGE_DETAIL];
	va_list		args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	KA_CHANGE_SET(record, detail, text);
}

void
ka_change_refuse(KaChangeRecord *record, int sqlstate, const char *detail, const char *hint)
{
	record->state = KA_STATE_REFUSED;
	record->sqlstate = sqlstate;
	KA_CHANGE_SET(record, detail, detail);
	KA_CHANGE_SET(record, hint, hint);
}

void
ka_change_init(KaChangeRecord *record, KaChangeAction action, const char *subject, const char *who)
{
	memset(record, 0, sizeof(*record));
	record->action = action;
	record->at = GetCurrentTimestamp();
	record->node = KA_ALL_NODES;
	record->boot_value = KA_NO_VALUE;
	ka_effect_measure(0, 0, &record->before);
	KA_CHANGE_SET(record, subject, subject);
	record->automatic = who != NULL;
	KA_CHANGE_SET(record, who, who ? who : GetUserNameFromId(GetSessionUserId(), false));
}

/*
 * ----------------------------------------------------------------
 * Reading
 * ----------------------------------------------------------------
 */

static bool
ends(const char *field, size_t size)
{
	return memchr(field, '\0', size) != NULL;
}

#define ENDS(record, field) ends((record)->field, sizeof((record)->field))

static bool
record_valid(const KaChangeRecord *record, int64 after_id, int64 last_id)
{
	return record->change_id > after_id && record->change_id <= last_id &&
		ka_change_state_name(record->state) != NULL &&
		ka_change_action_name(record->action) != NULL &&
		(record->knob == 0 || ka_knob_find((uint32) record->knob) != NULL) &&
		ENDS(record, prior) && ENDS(record, who) && ENDS(record, subject) && ENDS(record, release) &&
		ENDS(record, old) && ENDS(record, asked) && ENDS(record, granted) && ENDS(record, verified) &&
		ENDS(record, persisted_in) && ENDS(record, boot_file) && ENDS(record, detail) && ENDS(record, hint);
}

static const char *
changes_problem(const KaRecordsHeader *header, const void *stored)
{
	const KaChangeRecord *records = stored;
	int64		last = 0;

	for (int64 i = 0; i < header->nrecords; i++)
	{
		if (!record_valid(&records[i], last, header->last_id))
			return "it is damaged";
		last = records[i].change_id;
	}
	return NULL;
}

int
ka_changes_read(KaChangeRecord **records)
{
	KaRecords  *changes = ka_records_read(&file);

	*records = (KaChangeRecord *) changes->data;
	return (int) changes->header.nrecords;
}

bool
ka_changes_find(int64 change_id, KaChangeRecord *record)
{
	KaRecords  *changes = ka_records_read(&file);
	KaChangeRecord *found = ka_records_find(changes, change_id);

	if (found)
		*record = *found;
	pfree(changes);
	return found != NULL;
}

/*
 * ----------------------------------------------------------------
 * Writing
 * ----------------------------------------------------------------
 */

void
ka_changes_begin(KaChangeRecord *record)
{
	TimestampTz since = record->at - KA_EFFECT_BEFORE_SECONDS * USECS_PER_SEC;
	KaChangeRecord *changes;
	int			n;

	ka_shared_require();
	record->incarnation = ka_shared->incarnation;
	record->pid = MyProcPid;
	record->state = KA_STATE_IN_PROGRESS;

	/* What it was like before: not beyond the change before this one. */
	n = ka_changes_read(&changes);
	if (n > 0)
		since = Max(since, Max(changes[n - 1].at, changes[n - 1].ended_at));
	ka_effect_measure(since, record->at, &record->before);
	ka_records_add(&file, record);
}

void
ka_changes_finish(KaChangeRecord *record)
{
	KaRecords  *changes;
	KaChangeRecord *stored;
	int			error = 0;

	if (record->change_id == 0 || ka_shared == NULL)
		return;
	if (record->ended_at == 0)
		record->ended_at = GetCurrentTimestamp();

	LWLockAcquire(ka_shared->changes_lock, LW_EXCLUSIVE);
	changes = ka_records_read(&file);
	stored = ka_records_find(changes, record->change_id);
	if (stored)
	{
		/* Somebody may have undone it while the caller had its copy. */
		if (record->rolled_back_by == 0)
			record->rolled_back_by = stored->rolled_back_by;
		*stored = *record;
		if (record->action == KA_ACTION_ROLLBACK && ka_apply_granted(record) &&
			(stored = ka_records_find(changes, record->refers)) != NULL)
			stored->rolled_back_by = record->change_id;
		error = ka_records_write(&file, changes);
	}
	LWLockRelease(ka_shared->changes_lock);
	pfree(changes);

	if (error != 0)
	{
		errno = error;
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", file.temporary),
				 errdetail("Change " INT64_FORMAT " of \"%s\" was: %s.",
						   record->change_id, record->subject, ka_change_state_name(record->state))));
	}
}

/*
 * ----------------------------------------------------------------
 * What is so now
 * ----------------------------------------------------------------
 */

const char *
ka_change_verified_now(const KaChangeRecord *record)
{
	const KaKnob *knob = record->knob ? ka_knob_find((uint32) record->knob) : NULL;
	int64		value;

	if (knob == NULL)
		return ka_setting_now(record->subject);
	if ((knob->flags & KA_KF_ACTION) || ka_machine_read(knob, record->node, &value) < 0)
		return NULL;
	return ka_machine_value_text(knob, value);
}

static bool
same_value(const KaChangeRecord *record, const char *a, const char *b)
{
	return record->knob ? strcmp(a, b) == 0 : ka_setting_same(record->subject, a, b);
}

KaChangeState
ka_change_state_now(const KaChangeRecord *record)
{
	const char *now;

	if (record->rolled_back_by != 0)
		return KA_STATE_ROLLED_BACK;
	switch (record->state)
	{
		case KA_STATE_IN_PROGRESS:
			if (ka_shared != NULL && record->incarnation == ka_shared->incarnation &&
				BackendPidGetProc(record->pid) != NULL)
				return KA_STATE_IN_PROGRESS;
			return KA_STATE_UNKNOWN;
		case KA_STATE_APPLIED:
		case KA_STATE_PARTIAL:
		case KA_STATE_PENDING_RESTART:
			break;
		default:
			return record->state;
	}
	now = ka_change_verified_now(record);
	if (now == NULL)
		return record->state;
	if (record->state == KA_STATE_PENDING_RESTART)
		return same_value(record, now, record->asked) ? KA_STATE_APPLIED :
			record->verified[0] == '\0' || same_value(record, now, record->verified) ? KA_STATE_PENDING_RESTART :
			KA_STATE_SUPERSEDED;
	return record->verified[0] == '\0' || same_value(record, now, record->verified) ?
		(KaChangeState) record->state : KA_STATE_SUPERSEDED;
}

void
ka_changes_after(const KaChangeRecord *records, int n, KaEffect *after)
{
	KaStretch  *stretches = palloc(Max(n, 1) * sizeof(KaStretch));

	for (int i = 0; i < n; i++)
	{
		TimestampTz from = records[i].ended_at;

		if (records[i].state == KA_STATE_PENDING_RESTART)
			from = from < PgStartTime ? PgStartTime : 0;
		stretches[i].from = from;
		stretches[i].to = from == 0 ? 0 : from + KA_EFFECT_AFTER_SECONDS * USECS_PER_SEC;
		if (i + 1 < n)
			stretches[i].to = Min(stretches[i].to, records[i + 1].at);
	}
	ka_effects_measure(stretches, n, after);
	pfree(stretches);
}
