/*
 * auto_launch.c: when a step of auto_apply is due, and its worker.
 *
 * Runs in the sampler, once per sample, and never waits: the step has a process
 * of its own because the helper may be slow, or hang.  A step is due
 *
 *	- when a checkpoint has ended and got its samples: there is something to see;
 *	- when the setting was changed;
 *	- at the time that the last step asked for: a limit, or another attempt.
 *
 * With auto_apply = off nothing is launched unless a change is still being
 * watched; after a server start the change log has to be looked at for that,
 * if there is one.
 *
 * Two samplers never live at once, but a worker may outlive the sampler that
 * launched it: the worker claims its place in shared memory (auto.c).
 */
#include "postgres.h"

#include <unistd.h>

#include "utils/timestamp.h"

#include "auto.h"
#include "changes.h"
#include "guc.h"
#include "sampler.h"
#include "shared.h"
#include "worker.h"

#define RETRY_US INT64CONST(60000000)	/* after a step that never said anything, too */

const char *const ka_auto_state_name[KA_NAUTOSTATES] = {
#define AUTO_STATE(symbol, name) name,
	KA_AUTO_STATES(AUTO_STATE)
#undef AUTO_STATE
};

static BackgroundWorkerHandle *worker;	/* NULL: none that we launched */
static uint64 seen_settled;		/* checkpoints that were there at the last launch */
static int	seen_setting = -1;	/* auto_apply at the last launch */
static TimestampTz retry_at;	/* not before; there was no worker */

/* Nothing is, or may be, in progress that a step would have to look after. */
static bool
nothing_to_do(const KaAutoStatus *status)
{
	if (ka_auto_apply != KA_AUTO_APPLY_OFF)
		return false;
	if (status->state == KA_AUTO_STARTING && access(KA_CHANGES_FILE, F_OK) != 0 && errno == ENOENT)
	{
		/* Nothing was ever changed: no need to look again. */
		SpinLockAcquire(&ka_shared->mutex);
		ka_shared->auto_status.state = KA_AUTO_OFF;
		SpinLockRelease(&ka_shared->mutex);
		return true;
	}
	return status->state == KA_AUTO_OFF;
}

static bool
step_is_due(TimestampTz now, uint64 settled)
{
	KaAutoStatus status;

	SpinLockAcquire(&ka_shared->mutex);
	status = ka_shared->auto_status;
	SpinLockRelease(&ka_shared->mutex);

	return !nothing_to_do(&status) &&
		(settled != seen_settled || ka_auto_apply != seen_setting || now >= status.due_at);
}

static bool
launch(TimestampTz now)
{
	const KaWorkerOrder order = {.function = "ka_auto_main",.name = KA_AUTO_NAME};
	bool		launched = ka_worker_start(&order, &worker);
	bool		was_missing;

	SpinLockAcquire(&ka_shared->mutex);
	was_missing = ka_shared->auto_no_worker;
	ka_shared->auto_no_worker = !launched;
	if (launched)
		ka_shared->auto_status.due_at = now + RETRY_US; /* the step knows better, if it lives */
	SpinLockRelease(&ka_shared->mutex);

	if (launched)
		return true;
	retry_at = now + RETRY_US;
	if (!was_missing)
		ka_worker_log_missing("kernel advisor auto-apply", "");
	return false;
}

void
ka_auto_tick(TimestampTz now)
{
	uint64		settled = ka_join_settled();

	if (ka_worker_lives(&worker))
		return;
	if (now < retry_at && retry_at - now <= RETRY_US) /* else the clock was set back */
		return;
	if (!step_is_due(now, settled))
		return;

	if (launch(now))
	{
		seen_settled = settled;
		seen_setting = ka_auto_apply;
	}
}
