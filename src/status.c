/*
 * status.c: one row per part of the advisor: what works, what does not, and
 * what to do about it.
 *
 * A source of the kernel that cannot be read has a row of its own, named after
 * its file, because what is missing and the remedy differ.  Works without
 * shared memory, too: then it says how to get it.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "auto.h"
#include "changes.h"
#include "compat.h"
#include "counters.h"
#include "guc.h"
#include "helper.h"
#include "probe.h"
#include "sampler.h"
#include "shared.h"

PG_FUNCTION_INFO_V1(ka_status);

#define STATUS_COLS 4
#define STARTING_MS 10000		/* a sampler that takes longer than this needs help */

/* What stays NULL without a source, and what may bring it back. */
static const struct
{
	const char *columns;
	const char *hint;
}			sources[KA_NSOURCES] = {
	[KA_SRC_VMSTAT] = {"compact_*, allocstall, thp_*, free_bytes, page_table_bytes, dirty_bytes, writeback_bytes", NULL},
	[KA_SRC_DEVICES] = {"write_ios, write_merges, write_bytes", NULL},
	[KA_SRC_ZONEINFO] = {"pcp_pages", NULL},
	[KA_SRC_BUDDYINFO] = {"free_costly_blocks", NULL},
	[KA_SRC_PRESSURE] = {"pressure_some_us, pressure_full_us",
	"Pressure stall information needs CONFIG_PSI and, where it is off by default, the boot argument psi=1."},
	[KA_SRC_HUGEPAGES] = {"hugepages_free", NULL},
};

static void
put_status(ReturnSetInfo *result, const char *component, const char *state,
		   const char *detail, const char *hint)
{
	const char *texts[STATUS_COLS] = {component, state, detail, hint};
	Datum		values[STATUS_COLS] = {0};
	bool		nulls[STATUS_COLS];

	for (int i = 0; i < STATUS_COLS; i++)
	{
		nulls[i] = texts[i] == NULL;
		if (!nulls[i])
			values[i] = ka_server_text(texts[i]);
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
status_sampler(ReturnSetInfo *result, const KaShared *shared)
{
	uint64		samples;
	uint64		checkpoints;
	StringInfoData detail;

	if (!IsPostmasterEnvironment)
	{
		put_status(result, "sampler", "absent", "single-user mode has no background workers", NULL);
		return;
	}
	if (!shared->sampler_accepted)
	{
		put_status(result, "sampler", "absent",
				   "there was no room for the background worker when the server started",
				   "Increase max_worker_processes and restart the server.");
		return;
	}

	initStringInfo(&detail);
	if (shared->sampler_pid == 0)
	{
		if (shared->sampler_starts == 0)
			appendStringInfo(&detail, "the background worker \"%s\" has not started yet", KA_SAMPLER_NAME);
		else
			appendStringInfo(&detail, "the background worker \"%s\" ended; the server starts it again",
							 KA_SAMPLER_NAME);
		put_status(result, "sampler",
				   shared->sampler_starts == 0 ? "starting" : "restarting", detail.data,
				   TimestampDifferenceExceeds(PgStartTime, GetCurrentTimestamp(), STARTING_MS) ?
				   "If this lasts, the server log says why." : NULL);
		return;
	}

	(void) ka_ring_samples_end(&samples);
	(void) ka_ring_checkpoints_end(&checkpoints);
	appendStringInfo(&detail,
					 "a sample every %d ms, every %d ms in a checkpoint; "
					 UINT64_FORMAT " samples and " UINT64_FORMAT " checkpoints kept, room for "
					 UINT64_FORMAT " and " UINT64_FORMAT "; started " INT64_FORMAT " times, last at %s",
					 ka_sample_interval, ka_checkpoint_sample_interval,
					 samples, checkpoints,
					 shared->sample_ring.slots, shared->checkpoint_ring.slots,
					 shared->sampler_starts, timestamptz_to_str(shared->sampler_since));
	if (shared->saved_at != 0)
		appendStringInfo(&detail, "; history written at %s", timestamptz_to_str(shared->saved_at));
	put_status(result, "sampler", "running", detail.data, NULL);

	for (int i = 0; i < KA_NSOURCES; i++)
	{
		if (shared->source_errno[i] != 0)
			put_status(result, ka_counter_file[i], "unreadable",
					   psprintf("%s; these columns stay null: %s",
								strerror(shared->source_errno[i]), sources[i].columns),
					   sources[i].hint);
	}

	if (shared->save_errno != 0)
		put_status(result, "history file", "not written",
				   psprintf("%s: %s", KA_HISTORY_FILE, strerror(shared->save_errno)),
				   "Samples and checkpoints are lost when the server restarts.");
}

static void
status_checkpoint_hook(ReturnSetInfo *result, const KaShared *shared)
{
	int64		hooked = shared->captured[KA_SOURCE_HOOK];
	int64		statistics = shared->captured[KA_SOURCE_STATISTICS];
	const char *state = "listening";
	const char *hint = NULL;

	if (!log_checkpoints)
	{
		state = "statistics only";
		hint = "Set log_checkpoints to on: exact times, files and WAL segments of checkpoints come with its messages.";
	}
	else if (!ka_checkpointer_logs_compat())
	{
		state = "statistics only";
		hint = "Set log_min_messages to log or lower: the server does not produce the messages of log_checkpoints.";
	}
	else if (hooked == 0 && statistics > 0)
	{
		state = "statistics only";
		hint = "Checkpoints happened and no message arrived: another library's log hook may keep them; load pg_kernel_advisor after it.";
	}
	else if (hooked > 0)
		state = "working";

	put_status(result, "checkpoint hook", state,
			   psprintf("since server start " INT64_FORMAT " checkpoints from the hook, "
						INT64_FORMAT " from statistics, " INT64_FORMAT " not completed",
						hooked, statistics, shared->failed),
			   hint);
}

static void
status_helper(ReturnSetInfo *result)
{
	const char *state;
	const char *detail;
	const char *hint;

	ka_helper_status(&state, &detail, &hint);
	put_status(result, "helper", state, detail, hint);
}

static void
status_probe(ReturnSetInfo *result)
{
	const char *state;
	const char *detail;
	const char *hint;

	ka_probe_status(&state, &detail, &hint);
	put_status(result, "probe", state, detail, hint);
}

/* What the reports have done since the server started. */
static char *
reporter_counts(const KaReporterStatus *last)
{
	StringInfoData counts;

	initStringInfo(&counts);
	appendStringInfo(&counts, INT64_FORMAT " checkpoints and " INT64_FORMAT " events of advice stored since server start, "
					 INT64_FORMAT " rows pruned, " INT64_FORMAT " checkpoints dropped",
					 last->stored, last->events, last->pruned, last->dropped);
	if (last->waiting > 0)
		appendStringInfo(&counts, ", " INT64_FORMAT " waiting: nobody else writes", last->waiting);
	if (last->at != 0)
		appendStringInfo(&counts, "; last report at %s, %.1f ms of CPU",
						 timestamptz_to_str(last->at), last->cpu_us / 1000.0);
	return counts.data;
}

static void
status_reporter(ReturnSetInfo *result, const KaShared *shared)
{
	const KaReporterStatus *last = &shared->reporter_status;
	const char *detail;

	if (shared->sampler_starts == 0)
	{
		put_status(result, "reporter", "waiting", "it is launched by the sampler", NULL);
		return;
	}
	if (shared->reporter_no_worker)
	{
		put_status(result, "reporter", "no worker",
				   "there is no free background worker; tried again every minute",
				   "Increase max_worker_processes and restart the server.");
		return;
	}
	if (last->state == KA_REPORTER_OFF)
	{
		put_status(result, "reporter", ka_reporter_state_name[last->state],
				   "history is kept in shared memory and its file only",
				   "Set kernel_advisor.report_interval.");
		return;
	}
	detail = reporter_counts(last);
	if (last->detail[0])
		detail = psprintf("%s; %s", last->detail, detail);
	put_status(result, "reporter", ka_reporter_state_name[last->state], detail,
			   last->hint[0] ? last->hint : NULL);
}

static void
status_auto_apply(ReturnSetInfo *result, const KaShared *shared)
{
	const KaAutoStatus *last = &shared->auto_status;
	const char *detail = last->detail;
	const char *hint = NULL;

	if (last->subject[0])
		detail = psprintf("%s: %s", last->subject, detail);
	if (last->at != 0)
		detail = psprintf("%s (at %s)", detail, timestamptz_to_str(last->at));
	if (last->failures > 0 && !TIMESTAMP_NOT_FINITE(last->due_at))
		detail = psprintf("%s; next attempt at %s", detail, timestamptz_to_str(last->due_at));

	if (shared->auto_no_worker)
	{
		put_status(result, KA_AUTO_APPLY, "no worker",
				   psprintf("there is no free background worker; tried again every minute%s%s",
							detail[0] ? "; before: " : "", detail),
				   "Increase max_worker_processes and restart the server.");
		return;
	}
	if (last->state == KA_AUTO_OFF)
		detail = "nothing is applied without asking";
	if (last->state == KA_AUTO_CANNOT_KEEP || last->state == KA_AUTO_CANNOT_ROLL_BACK)
		hint = "See the row of the helper and the change log.";
	else if (last->state == KA_AUTO_FAILING)
		hint = "The server log has the error.";
	put_status(result, KA_AUTO_APPLY, ka_auto_state_name[last->state], detail[0] ? detail : NULL, hint);
}

static void
status_trial(ReturnSetInfo *result, const KaShared *shared)
{
	const KaTrialShared *trial = &shared->trial;
	const char *which = psprintf("trial " INT64_FORMAT " of \"%s\"; see kernel_advisor.trials", trial->trial_id, trial->subject);

	if (!trial->open)
		put_status(result, "trial", "none", NULL, NULL);
	else if (trial->owner_pid != 0)
		put_status(result, "trial", "running", which, NULL);
	else if (trial->no_worker)
		put_status(result, "trial", "no worker", which, "The old value is not back yet: increase max_worker_processes and restart the server.");
	else
		put_status(result, "trial", "restoring",
				   trial->retry_at ? psprintf("%s; next attempt at %s", which, timestamptz_to_str(trial->retry_at)) : which,
				   "The old value is not back yet: see the row of the helper; trial_stop() makes an attempt at once.");
}

Datum
ka_status(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != STATUS_COLS)
		elog(ERROR, "incorrect number of output columns: %d, expected %d",
			 result->setDesc->natts, STATUS_COLS);

	if (!ka_shared_available())
		put_status(result, "sampler", "absent",
				   "the library is not loaded by the server: no samples, no checkpoints; facts() and advise() work",
				   "Add pg_kernel_advisor to shared_preload_libraries and restart the server.");
	else
	{
		KaShared	shared;

		SpinLockAcquire(&ka_shared->mutex);
		memcpy(&shared, ka_shared, sizeof(shared));
		SpinLockRelease(&ka_shared->mutex);

		status_sampler(result, &shared);
		status_checkpoint_hook(result, &shared);
		status_auto_apply(result, &shared);
		status_trial(result, &shared);
		status_reporter(result, &shared);
	}
	status_helper(result);
	status_probe(result);
	return (Datum) 0;
}
