/*
 * trial_launch.c: who looks after a trial.
 *
 * There is one trial at most.  trial() claims the place in shared memory, then
 * starts the worker, which takes the place over.  When the worker is gone and
 * the old value is not back, the sampler starts another one, which does no more
 * than that: at once, then at doubling intervals.  After a start of the server
 * the file is looked at for a trial that was not ended.
 *
 * Locks: the mutex of the shared memory, for a few assignments.
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "shared.h"
#include "trial.h"
#include "worker.h"

#define POLL_MS 10
#define NO_WORKER_RETRY_US INT64CONST(60000000)
#define MOST_RETRY_US INT64CONST(3600000000)	/* more than the worker ever asks for */

static BackgroundWorkerHandle *worker;	/* in the sampler; NULL: none that we started */

void
ka_trial_look(KaTrialShared *copy)
{
	memset(copy, 0, sizeof(*copy));
	if (ka_shared == NULL)
		return;
	SpinLockAcquire(&ka_shared->mutex);
	*copy = ka_shared->trial;
	SpinLockRelease(&ka_shared->mutex);
}

const char *
ka_trial_objection(const char *subject)
{
	KaTrialShared trial;

	ka_trial_look(&trial);
	if (!trial.open || strcmp(trial.subject, subject) != 0)
		return NULL;
	return psprintf("trial " INT64_FORMAT " sets it to two values in turns", trial.trial_id);
}

bool
ka_trial_claim(const char *subject, KaTrialShared *copy)
{
	bool		claimed;

	SpinLockAcquire(&ka_shared->mutex);
	*copy = ka_shared->trial;
	claimed = !ka_shared->trial.open;
	if (claimed)
	{
		memset(&ka_shared->trial, 0, sizeof(ka_shared->trial));
		ka_shared->trial.open = true;
		ka_shared->trial.owner_pid = MyProcPid;
		strlcpy(ka_shared->trial.subject, subject, sizeof(ka_shared->trial.subject));
	}
	SpinLockRelease(&ka_shared->mutex);
	return claimed;
}

void
ka_trial_release(void)
{
	SpinLockAcquire(&ka_shared->mutex);
	if (ka_shared->trial.owner_pid == MyProcPid)
	{
		/* With a number there is a record, which somebody has to end. */
		ka_shared->trial.owner_pid = 0;
		ka_shared->trial.open = ka_shared->trial.trial_id != 0;
	}
	SpinLockRelease(&ka_shared->mutex);
}

void
ka_trial_wait(long ms)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = ka_wait_event_compat("KernelAdvisorTrial");
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/* trial_id 0: only to set the old value back. */
static bool
launch(int64 trial_id, BackgroundWorkerHandle **handle)
{
	const KaWorkerOrder order = {.function = "ka_trial_main",.name = KA_TRIAL_NAME,.arg = Int64GetDatum(trial_id)};

	return ka_worker_start(&order, handle);
}

bool
ka_trial_start_worker(int64 trial_id)
{
	BackgroundWorkerHandle *handle;
	KaTrialShared trial;

	if (!launch(trial_id, &handle))
		return false;
	/* The place must not be without an owner in between: somebody else would take it. */
	do
	{
		ka_trial_wait(POLL_MS);
		ka_trial_look(&trial);
	} while (trial.owner_pid == MyProcPid && ka_worker_lives(&handle));
	return true;
}

/* After a start: is there a trial that was not ended? */
static void
look_into_file(void)
{
	KaTrialRecord *records;
	int			n;

	if (access(KA_TRIALS_FILE, F_OK) != 0 && errno == ENOENT)
		return;
	n = ka_trials_read(&records);
	for (int i = n - 1; i >= 0; i--)
	{
		if (records[i].restored)
			continue;
		SpinLockAcquire(&ka_shared->mutex);
		if (!ka_shared->trial.open)
		{
			ka_shared->trial.open = true;
			ka_shared->trial.trial_id = records[i].trial_id;
			strlcpy(ka_shared->trial.subject, records[i].subject, sizeof(ka_shared->trial.subject));
		}
		SpinLockRelease(&ka_shared->mutex);
		break;
	}
}

static void
note_launch(bool launched, TimestampTz now)
{
	bool		was_missing;

	SpinLockAcquire(&ka_shared->mutex);
	was_missing = ka_shared->trial.no_worker;
	ka_shared->trial.no_worker = !launched;
	if (!launched)
		ka_shared->trial.retry_at = now + NO_WORKER_RETRY_US;
	SpinLockRelease(&ka_shared->mutex);
	if (!launched && !was_missing)
		ka_worker_log_missing("kernel advisor trial", " to set the old value back");
}

void
ka_trial_tick(TimestampTz now)
{
	static bool looked = false;
	KaTrialShared trial;
	bool		launched;

	if (!looked)
	{
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "kernel advisor trials", ALLOCSET_DEFAULT_SIZES);
		MemoryContext old_context = MemoryContextSwitchTo(context);

		look_into_file();
		looked = true;
		MemoryContextSwitchTo(old_context);
		MemoryContextDelete(context);
	}
	if (ka_worker_lives(&worker))
		return;
	ka_trial_look(&trial);
	if (!trial.open || trial.owner_pid != 0 ||
		(now < trial.retry_at && trial.retry_at - now <= MOST_RETRY_US))	/* else the clock was set back */
		return;
	launched = launch(0, &worker);
	note_launch(launched, now);
}
