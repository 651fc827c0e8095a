/*
 * trial_file.c: the file of the trials.
 *
 * Header, records (oldest first), CRC-32C of all before it; the newest
 * KA_TRIALS_KEPT are kept.  It is replaced as a whole (written beside, synced,
 * renamed), so readers take no lock.  What the file says is checked before it
 * is used (core/trials.c); a file that is not ours is ignored as a whole with
 * one line in the log, and the next trial begins a new one.
 *
 * Lock: ka_shared->changes_lock, exclusive, from reading to renaming, as for
 * the change log.
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"

#include "shared.h"
#include "trial.h"

#define TRIALS_TMP KA_TRIALS_FILE ".tmp"

/* The file in memory; one palloc, with room for one record more. */
typedef struct Trials
{
	KaTrialsHeader header;
	KaTrialRecord records[FLEXIBLE_ARRAY_MEMBER];
} Trials;

#define TRIALS_BYTES(n) (offsetof(Trials, records) + (n) * sizeof(KaTrialRecord))

StaticAssertDecl(offsetof(Trials, records) == sizeof(KaTrialsHeader), "no padding in the file");
StaticAssertDecl(sizeof(KaTrialRecord) % 8 == 0, "records follow each other");

/* Reads all of it into "trials"; returns NULL, or what is wrong with the file. */
static const char *
load(FILE *file, Trials **trials)
{
	const char *truncated = "it is truncated";
	KaTrialsHeader header;
	const char *problem;
	struct stat st;
	Trials	   *loaded;
	pg_crc32c	crc;
	pg_crc32c	stored;

	if (fread(&header, sizeof(header), 1, file) != 1 || fstat(fileno(file), &st) != 0 ||
		(size_t) st.st_size < sizeof(header) + sizeof(crc))
		return truncated;
	problem = ka_trials_header_problem(&header, st.st_size - sizeof(crc), GetSystemIdentifier());
	if (problem != NULL)
		return problem;

	loaded = palloc(TRIALS_BYTES(header.nrecords + 1));
	loaded->header = header;
	if (fread(loaded->records, sizeof(KaTrialRecord), header.nrecords, file) != (size_t) header.nrecords ||
		fread(&stored, sizeof(stored), 1, file) != 1)
		return truncated;
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, loaded, TRIALS_BYTES(header.nrecords));
	FIN_CRC32C(crc);
	if (!EQ_CRC32C(crc, stored))
		return "its checksum does not match";
	*trials = loaded;
	return ka_trials_records_problem(&loaded->header, loaded->records);
}

/* Never NULL: empty when there is no file, or none that is ours. */
static Trials *
read_trials(void)
{
	static char logged[64] = "";
	Trials	   *trials = NULL;
	const char *problem = NULL;
	FILE	   *file = AllocateFile(KA_TRIALS_FILE, PG_BINARY_R);

	if (file != NULL)
	{
		problem = load(file, &trials);
		FreeFile(file);
	}
	else if (errno != ENOENT)
		problem = "it cannot be opened";

	/* Once in each process, not at every look at the view. */
	if (problem != NULL && strcmp(problem, logged) != 0)
	{
		strlcpy(logged, problem, sizeof(logged));
		ereport(LOG,
				(errmsg("ignoring kernel advisor trials in \"%s\": %s", KA_TRIALS_FILE, problem)));
	}
	if (problem != NULL || trials == NULL)
	{
		trials = palloc0(TRIALS_BYTES(1));
		ka_trials_header_init(&trials->header, GetSystemIdentifier());
	}
	return trials;
}

int
ka_trials_read(KaTrialRecord **records)
{
	Trials	   *trials = read_trials();

	*records = trials->records;
	return (int) trials->header.nrecords;
}

static KaTrialRecord *
find(Trials *trials, int64 trial_id)
{
	for (int64 i = 0; i < trials->header.nrecords; i++)
	{
		if (trials->records[i].trial_id == trial_id)
			return &trials->records[i];
	}
	return NULL;
}

bool
ka_trials_find(int64 trial_id, KaTrialRecord *record)
{
	Trials	   *trials = read_trials();
	KaTrialRecord *found = find(trials, trial_id);

	if (found)
		*record = *found;
	pfree(trials);
	return found != NULL;
}

/* 0, or an errno. */
static int
write_trials(const Trials *trials)
{
	Size		bytes = TRIALS_BYTES(trials->header.nrecords);
	pg_crc32c	crc;
	int			error = 0;
	FILE	   *file;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, trials, bytes);
	FIN_CRC32C(crc);

	file = AllocateFile(TRIALS_TMP, PG_BINARY_W);
	if (file == NULL)
		return errno;
	errno = 0;
	if (fwrite(trials, bytes, 1, file) != 1 || fwrite(&crc, sizeof(crc), 1, file) != 1)
		error = errno ? errno : ENOSPC;
	if (FreeFile(file) != 0 && error == 0)
		error = errno;
	/* durable_rename syncs the file first, and logs what goes wrong. */
	if (error == 0 && durable_rename(TRIALS_TMP, KA_TRIALS_FILE, LOG) != 0)
		error = errno ? errno : EIO;
	if (error != 0)
		unlink(TRIALS_TMP);
	return error;
}

void
ka_trials_begin(KaTrialRecord *record)
{
	Trials	   *trials;
	int			error;

	LWLockAcquire(ka_shared->changes_lock, LW_EXCLUSIVE);
	trials = read_trials();
	if (trials->header.nrecords == KA_TRIALS_KEPT)
		memmove(&trials->records[0], &trials->records[1], --trials->header.nrecords * sizeof(KaTrialRecord));
	record->trial_id = ++trials->header.last_id;
	trials->records[trials->header.nrecords++] = *record;
	error = write_trials(trials);
	LWLockRelease(ka_shared->changes_lock);
	pfree(trials);

	if (error != 0)
	{
		errno = error;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", TRIALS_TMP),
				 errdetail("Nothing was changed.")));
	}
}

void
ka_trials_update(const KaTrialRecord *record)
{
	Trials	   *trials;
	KaTrialRecord *stored;
	int			error = 0;

	LWLockAcquire(ka_shared->changes_lock, LW_EXCLUSIVE);
	trials = read_trials();
	stored = find(trials, record->trial_id);
	if (stored)
	{
		*stored = *record;
		error = write_trials(trials);
	}
	LWLockRelease(ka_shared->changes_lock);
	pfree(trials);

	if (error != 0)
	{
		errno = error;
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", TRIALS_TMP)));
	}
}

TimestampTz
ka_trials_last_end(TimestampTz before)
{
	KaTrialRecord *records;
	int			n = ka_trials_read(&records);
	TimestampTz last = 0;

	for (int i = 0; i < n; i++)
	{
		if (records[i].old_value != records[i].new_value && records[i].ended_at <= before)
			last = Max(last, records[i].ended_at);
	}
	return last;
}
