/*
 * worker.c: background workers that are started for one piece of work and end
 * with it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "shared.h"
#include "worker.h"

bool
ka_worker_start(const KaWorkerOrder *order, BackgroundWorkerHandle **handle)
{
	MemoryContext old_context = MemoryContextSwitchTo(TopMemoryContext);
	BackgroundWorker registration;
	bool		started;

	memset(&registration, 0, sizeof(registration));
	registration.bgw_flags = BGWORKER_SHMEM_ACCESS | (order->connects ? BGWORKER_BACKEND_DATABASE_CONNECTION : 0);
	registration.bgw_start_time = BgWorkerStart_ConsistentState;
	registration.bgw_restart_time = BGW_NEVER_RESTART;
	registration.bgw_notify_pid = MyProcPid;
	registration.bgw_main_arg = order->arg;
	strlcpy(registration.bgw_library_name, "pg_kernel_advisor", sizeof(registration.bgw_library_name));
	strlcpy(registration.bgw_function_name, order->function, sizeof(registration.bgw_function_name));
	strlcpy(registration.bgw_name, order->name, sizeof(registration.bgw_name));
	strlcpy(registration.bgw_type, order->name, sizeof(registration.bgw_type));
	if (order->extra != NULL)
		memcpy(registration.bgw_extra, order->extra, order->extra_size);
	started = RegisterDynamicBackgroundWorker(&registration, handle);
	MemoryContextSwitchTo(old_context);
	if (!started)
		*handle = NULL;
	return started;
}

bool
ka_worker_lives(BackgroundWorkerHandle **handle)
{
	pid_t		pid;

	if (*handle == NULL)
		return false;
	if (GetBackgroundWorkerPid(*handle, &pid) != BGWH_STOPPED)
		return true;
	pfree(*handle);
	*handle = NULL;
	return false;
}

void
ka_worker_log_missing(const char *who, const char *why)
{
	ereport(LOG,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("%s has no free background worker%s", who, why),
			 errdetail("It tries again every minute."),
			 errhint("Increase max_worker_processes.")));
}

static void
release(int code, Datum arg)
{
	int		   *pid = (int *) DatumGetPointer(arg);

	(void) code;
	SpinLockAcquire(&ka_shared->mutex);
	if (*pid == MyProcPid)
		*pid = 0;
	SpinLockRelease(&ka_shared->mutex);
}

bool
ka_worker_claim(int *pid)
{
	bool		claimed;

	before_shmem_exit(release, PointerGetDatum(pid));
	SpinLockAcquire(&ka_shared->mutex);
	claimed = *pid == 0;
	if (claimed)
		*pid = MyProcPid;
	SpinLockRelease(&ka_shared->mutex);
	return claimed;
}
