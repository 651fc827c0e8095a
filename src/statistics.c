/*
 * statistics.c: checkpoints that leave no message, told by their traces.
 *
 * Without log_checkpoints, with log_min_messages above LOG, or behind another
 * hook that keeps the message to itself, three things still show a checkpoint:
 *
 *	- the redo pointer in shared memory moves when it starts (one that is
 *	  skipped because the server is idle moves nothing);
 *	- the redo pointer in pg_control follows when it has completed;
 *	- the checkpointer reports its times and buffers to the statistics system
 *	  before it goes back to sleep in its main loop.
 *
 * The sampler looks at each sample, so the times of start and end are as exact
 * as its intervals, and what only the checkpointer knows stays unknown.  The
 * figures are differences of totals; they are unknown, too, when the totals
 * were reset or count more than this one checkpoint.
 *
 * The mark in shared memory is the same that the hook uses.  Whoever is first
 * sets it; the hook, which knows more, takes over a mark of ours.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "storage/proc.h"

#include "compat.h"
#include "sampler.h"
#include "shared.h"

static XLogRecPtr seen_redo;	/* redo pointer at the last look */
static XLogRecPtr completed_redo;	/* of the last checkpoint known to have completed */
static KaCheckpointerTotals before; /* when the checkpointer last slept */
static bool before_known;

void
ka_statistics_begin(void)
{
	seen_redo = GetRedoRecPtr();
	completed_redo = ka_control_redo();
	before_known = false;
}

/* It sleeps: whatever it did last is complete, and reported. */
static bool
checkpointer_sleeps(void)
{
	PGPROC	   *checkpointer = ka_checkpointer_proc_compat();

	return checkpointer != NULL &&
		*(volatile uint32 *) &checkpointer->wait_event_info == WAIT_EVENT_CHECKPOINTER_MAIN;
}

static KaMark
running_mark(void)
{
	KaMark		mark;

	SpinLockAcquire(&ka_shared->mutex);
	mark = ka_shared->running;
	SpinLockRelease(&ka_shared->mutex);
	return mark;
}

/* The figures of one checkpoint, if the totals moved by exactly that one. */
static void
fill_figures(KaCheckpointRow *row)
{
	KaCheckpointerTotals after;
	bool		known;

	ka_checkpointer_totals_compat(&after);
	known = before_known &&
		after.reset_at == before.reset_at &&
		(after.timed - before.timed) + (after.requested - before.requested) == 1 &&
		after.write_ms >= before.write_ms &&
		after.sync_ms >= before.sync_ms &&
		after.buffers_written >= before.buffers_written;
	if (known)
	{
		row->write_ms = after.write_ms - before.write_ms;
		row->sync_ms = after.sync_ms - before.sync_ms;
		row->buffers_written = after.buffers_written - before.buffers_written;
		if (row->kind == KA_KIND_UNKNOWN)
			row->kind = after.timed > before.timed ? KA_KIND_TIMED : KA_KIND_REQUESTED;
	}

	/* Else part of the next one may be in it already: wait until it sleeps. */
	before = after;
	before_known = known;
}

/* The checkpoint of this mark is over, and no hook said so. */
static void
end_mark(const KaMark *mark, TimestampTz now)
{
	KaCheckpointRow row;
	XLogRecPtr	control = ka_control_redo();
	bool		completed = control >= mark->redo;
	bool		ours;

	if (XLogRecPtrIsInvalid(control))
		return;					/* unreadable now: ask again at the next sample */

	SpinLockAcquire(&ka_shared->mutex);
	ours = ka_shared->running.id == mark->id;
	if (ours)
	{
		memset(&ka_shared->running, 0, sizeof(ka_shared->running));
		if (completed)
			ka_shared->captured[KA_SOURCE_STATISTICS]++;
		else
			ka_shared->failed++;
	}
	SpinLockRelease(&ka_shared->mutex);
	if (!ours || !completed)
		return;

	completed_redo = mark->redo;
	memset(&row, 0, sizeof(row));
	row.checkpoint_id = mark->id;
	row.started_at = mark->started_at;
	row.ended_at = now;
	row.kind = mark->kind;
	row.restartpoint = mark->restartpoint;
	row.source = KA_SOURCE_STATISTICS;
	row.write_ms = row.sync_ms = row.total_ms = row.longest_sync_ms = KA_UNKNOWN;
	row.buffers_written = row.files_synced = KA_UNKNOWN;
	row.wal_added = row.wal_removed = row.wal_recycled = KA_UNKNOWN;
	row.distance_bytes = !XLogRecPtrIsInvalid(mark->prior_redo) && mark->redo >= mark->prior_redo ?
		(int64) (mark->redo - mark->prior_redo) : KA_UNKNOWN;
	fill_figures(&row);
	row.next_xid = ka_control_next_xid();
	ka_checkpoint_unsummed(&row);
	ka_ring_append_checkpoint(&row);
}

/* The redo pointer moved between "begin" and "now". */
static void
notice(XLogRecPtr redo, TimestampTz begin, TimestampTz now)
{
	KaMark	   *running = &ka_shared->running;
	KaMark		mark = running_mark();

	if (mark.id != 0 && mark.redo != redo)
		end_mark(&mark, now);	/* the checkpointer did not sleep in between */

	mark.started_at = begin;
	mark.redo = redo;
	mark.prior_redo = completed_redo;
	mark.kind = KA_KIND_UNKNOWN;
	mark.restartpoint = RecoveryInProgress();
	mark.hooked = false;

	SpinLockAcquire(&ka_shared->mutex);
	if (running->id == 0 && ka_shared->hooked_redo != redo)
	{
		mark.id = ++ka_shared->last_id;
		*running = mark;
	}
	SpinLockRelease(&ka_shared->mutex);
}

void
ka_statistics_tick(TimestampTz begin, TimestampTz now)
{
	XLogRecPtr	redo = GetRedoRecPtr();
	KaMark		mark;

	if (redo != seen_redo)
	{
		notice(redo, begin, now);
		seen_redo = redo;
	}

	/*
	 * In this order: a checkpointer that sleeps after the mark was read has
	 * either ended that checkpoint in the hook, and the mark is gone by the
	 * time end_mark looks again, or will never tell.
	 */
	mark = running_mark();
	if (!checkpointer_sleeps())
		return;
	if (mark.id != 0)
		end_mark(&mark, now);
	else
	{
		ka_checkpointer_totals_compat(&before);
		before_known = true;
		if (completed_redo != redo)
			completed_redo = ka_control_redo();
	}
}
