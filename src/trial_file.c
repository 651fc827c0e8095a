/*
 * trial_file.c: the file of the trials (record_file.h); the newest
 * KA_TRIALS_KEPT are kept.
 */
#include "postgres.h"

#include "record_file.h"
#include "shared.h"
#include "trial.h"

static KaRecordFile file = {
	.path = KA_TRIALS_FILE,
	.temporary = KA_TRIALS_FILE ".tmp",
	.noun = "trials in",
	.format = &ka_trials_format,
	.problem = ka_trials_problem,
};

int
ka_trials_read(KaTrialRecord **records)
{
	KaRecords  *trials = ka_records_read(&file);

	*records = (KaTrialRecord *) trials->data;
	return (int) trials->header.nrecords;
}

bool
ka_trials_find(int64 trial_id, KaTrialRecord *record)
{
	KaRecords  *trials = ka_records_read(&file);
	KaTrialRecord *found = ka_records_find(trials, trial_id);

	if (found)
		*record = *found;
	pfree(trials);
	return found != NULL;
}

void
ka_trials_begin(KaTrialRecord *record)
{
	ka_records_add(&file, record);
}

void
ka_trials_update(const KaTrialRecord *record)
{
	KaRecords  *trials;
	KaTrialRecord *stored;
	int			error = 0;

	LWLockAcquire(ka_shared->changes_lock, LW_EXCLUSIVE);
	trials = ka_records_read(&file);
	stored = ka_records_find(trials, record->trial_id);
	if (stored)
	{
		*stored = *record;
		error = ka_records_write(&file, trials);
	}
	LWLockRelease(ka_shared->changes_lock);
	pfree(trials);

	if (error != 0)
	{
		errno = error;
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", file.temporary)));
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
