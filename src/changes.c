/*
 * changes.c: the file of the change log.
 *
 * Header, records (oldest first), CRC-32C of all before it.  The structs go to
 * the file as they are in memory: the header carries their size, and whatever
 * does not match is ignored as a whole with one line in the log; the next
 * change begins a new file then.  What the file says is checked before it is
 * used: numbers are looked up in tables, texts end.
 *
 * Lock: ka_shared->changes_lock, exclusive, from reading to renaming; readers
 * take none.  It is held across file access and palloc, as AutoFileLock is by
 * ALTER SYSTEM; what cannot be written is reported after its release.
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"

#include "apply.h"
#include "changes.h"
#include "helper.h"
#include "machine.h"
#include "shared.h"

#define CHANGES_TMP KA_CHANGES_FILE ".tmp"
#define MAGIC "KACHNG\r\n"
#define VERSION 1				/* also when only the meaning of a field changes */

typedef struct ChangesHeader
{
	char		magic[8];
	uint32		version;
	uint32		record_size;	/* bytes */
	uint64		system_identifier;
	int64		last_id;		/* newest change_id that was given out */
	int64		nrecords;
} ChangesHeader;

/* The file in memory; one palloc, with room for one record more. */
typedef struct Changes
{
	ChangesHeader header;
	KaChangeRecord records[FLEXIBLE_ARRAY_MEMBER];
} Changes;

#define CHANGES_BYTES(n) (offsetof(Changes, records) + (n) * sizeof(KaChangeRecord))

StaticAssertDecl(offsetof(Changes, records) == sizeof(ChangesHeader), "no padding in the file");
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

/* Reads all of it into "changes"; returns NULL, or what is wrong with the file. */
static const char *
load(FILE *file, Changes **changes)
{
	ChangesHeader header;
	struct stat st;
	Changes    *loaded;
	pg_crc32c	crc;
	pg_crc32c	stored;
	int64		last = 0;

	if (fread(&header, sizeof(header), 1, file) != 1)
		return "it is truncated";
	if (memcmp(header.magic, MAGIC, sizeof(header.magic)) != 0)
		return "it is not a log of changes";
	if (header.version != VERSION || header.record_size != sizeof(KaChangeRecord))
		return "it was written by another version";
	if (header.system_identifier != GetSystemIdentifier())
		return "it belongs to another database cluster";
	if (header.nrecords < 0 || header.nrecords > KA_MAX_CHANGES || header.last_id < 0)
		return "its header is damaged";
	if (fstat(fileno(file), &st) != 0 ||
		(uint64) st.st_size != CHANGES_BYTES(header.nrecords) + sizeof(crc))
		return "it is truncated";

	loaded = palloc(CHANGES_BYTES(header.nrecords + 1));
	loaded->header = header;
	if (fread(loaded->records, sizeof(KaChangeRecord), header.nrecords, file) != (size_t) header.nrecords ||
		fread(&stored, sizeof(stored), 1, file) != 1)
		return "it is truncated";
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, loaded, CHANGES_BYTES(header.nrecords));
	FIN_CRC32C(crc);
	if (!EQ_CRC32C(crc, stored))
		return "its checksum does not match";
	for (int64 i = 0; i < header.nrecords; i++)
	{
		if (!record_valid(&loaded->records[i], last, header.last_id))
			return "it is damaged";
		last = loaded->records[i].change_id;
	}
	*changes = loaded;
	return NULL;
}

/* Never NULL: empty when there is no file, or none that is ours. */
static Changes *
read_changes(void)
{
	Changes    *changes = NULL;
	const char *problem;
	FILE	   *file = AllocateFile(KA_CHANGES_FILE, PG_BINARY_R);

	if (file != NULL)
	{
		static char logged[64] = "";

		problem = load(file, &changes);
		FreeFile(file);
		/* Once in each process, not at every look at the view. */
		if (problem != NULL && strcmp(problem, logged) != 0)
		{
			strlcpy(logged, problem, sizeof(logged));
			ereport(LOG,
					(errmsg("ignoring kernel advisor change log \"%s\": %s",
							KA_CHANGES_FILE, problem)));
		}
	}
	else if (errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", KA_CHANGES_FILE)));

	if (changes == NULL)
	{
		changes = palloc0(CHANGES_BYTES(1));
		memcpy(changes->header.magic, MAGIC, sizeof(changes->header.magic));
		changes->header.version = VERSION;
		changes->header.record_size = sizeof(KaChangeRecord);
		changes->header.system_identifier = GetSystemIdentifier();
	}
	return changes;
}

int
ka_changes_read(KaChangeRecord **records)
{
	Changes    *changes = read_changes();

	*records = changes->records;
	return (int) changes->header.nrecords;
}

static KaChangeRecord *
find(Changes *changes, int64 change_id)
{
	for (int64 i = 0; i < changes->header.nrecords; i++)
	{
		if (changes->records[i].change_id == change_id)
			return &changes->records[i];
	}
	return NULL;
}

bool
ka_changes_find(int64 change_id, KaChangeRecord *record)
{
	Changes    *changes = read_changes();
	KaChangeRecord *found = find(changes, change_id);

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

/* 0, or an errno. */
static int
write_changes(const Changes *changes)
{
	Size		bytes = CHANGES_BYTES(changes->header.nrecords);
	pg_crc32c	crc;
	int			error = 0;
	FILE	   *file;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, changes, bytes);
	FIN_CRC32C(crc);

	file = AllocateFile(CHANGES_TMP, PG_BINARY_W);
	if (file == NULL)
		return errno;
	errno = 0;
	if (fwrite(changes, bytes, 1, file) != 1 || fwrite(&crc, sizeof(crc), 1, file) != 1)
		error = errno ? errno : ENOSPC;
	if (FreeFile(file) != 0 && error == 0)
		error = errno;
	/* durable_rename syncs the file first, and logs what goes wrong. */
	if (error == 0 && durable_rename(CHANGES_TMP, KA_CHANGES_FILE, LOG) != 0)
		error = errno ? errno : EIO;
	if (error != 0)
		unlink(CHANGES_TMP);
	return error;
}

void
ka_changes_begin(KaChangeRecord *record)
{
	TimestampTz since = record->at - KA_EFFECT_BEFORE_SECONDS * USECS_PER_SEC;
	Changes    *changes;
	int			error;

	ka_shared_require();
	record->incarnation = ka_shared->incarnation;
	record->pid = MyProcPid;
	record->state = KA_STATE_IN_PROGRESS;

	/* What it was like before: not beyond the change before this one. */
	changes = read_changes();
	if (changes->header.nrecords > 0)
	{
		const KaChangeRecord *last = &changes->records[changes->header.nrecords - 1];

		since = Max(since, Max(last->at, last->ended_at));
	}
	ka_effect_measure(since, record->at, &record->before);
	pfree(changes);

	LWLockAcquire(ka_shared->changes_lock, LW_EXCLUSIVE);
	changes = read_changes();
	if (changes->header.nrecords == KA_MAX_CHANGES)
		memmove(&changes->records[0], &changes->records[1],
				--changes->header.nrecords * sizeof(KaChangeRecord));
	record->change_id = ++changes->header.last_id;
	changes->records[changes->header.nrecords++] = *record;
	error = write_changes(changes);
	LWLockRelease(ka_shared->changes_lock);
	pfree(changes);

	if (error != 0)
	{
		record->change_id = 0;
		errno = error;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", CHANGES_TMP),
				 errdetail("Nothing was changed.")));
	}
}

void
ka_changes_finish(KaChangeRecord *record)
{
	Changes    *changes;
	KaChangeRecord *stored;
	int			error = 0;

	if (record->change_id == 0 || ka_shared == NULL)
		return;
	if (record->ended_at == 0)
		record->ended_at = GetCurrentTimestamp();

	LWLockAcquire(ka_shared->changes_lock, LW_EXCLUSIVE);
	changes = read_changes();
	stored = find(changes, record->change_id);
	if (stored)
	{
		/* Somebody may have undone it while the caller had its copy. */
		if (record->rolled_back_by == 0)
			record->rolled_back_by = stored->rolled_back_by;
		*stored = *record;
		if (record->action == KA_ACTION_ROLLBACK && ka_apply_granted(record) &&
			(stored = find(changes, record->refers)) != NULL)
			stored->rolled_back_by = record->change_id;
		error = write_changes(changes);
	}
	LWLockRelease(ka_shared->changes_lock);
	pfree(changes);

	if (error != 0)
	{
		errno = error;
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", CHANGES_TMP),
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
