/*
 * checkpoint.c: checkpoints and restartpoints, seen from inside the checkpointer.
 *
 * The server tells nobody about a checkpoint but its log, and keeps the figures
 * in CheckpointStats, which is private to the checkpointer.  So the log hook
 * looks, in that process only, for the four messages that mark a start or an
 * end.  It knows them by their message id, which is never translated, and takes
 * nothing from the text but the flag words at its end, which are not, either.
 *
 * The start message is emitted inside a critical section: what runs there must
 * not allocate, raise an error or wait; it reads pg_control once and copies a
 * few values under a spinlock.  The end message is emitted outside of it, with
 * no lock held: the finished row goes to the ring there.
 *
 * The row is complete as far as the server's figures go, even when no sampler
 * runs (the shutdown checkpoint comes after its end).  The sampler, which is
 * woken at start and end, adds the kernel's part.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "catalog/pg_control.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "utils/elog.h"
#include "utils/timestamp.h"

#include "shared.h"

static emit_log_hook_type prev_emit_log_hook = NULL;

static void log_hook(ErrorData *edata);
static void checkpoint_start(const char *message, bool restartpoint);
static void checkpoint_end(const char *message, bool restartpoint);
static void checkpoint_failed(void);

static const struct
{
	const char *message_id;		/* how the message id begins */
	bool		restartpoint;
	void		(*report) (const char *message, bool restartpoint);
}			milestones[] = {
	{"checkpoint starting:", false, checkpoint_start},
	{"checkpoint complete:", false, checkpoint_end},
	{"restartpoint starting:", true, checkpoint_start},
	{"restartpoint complete:", true, checkpoint_end},
};

/* The flag words of the start message; of those present the first counts. */
static const struct
{
	const char *word;
	KaKind		kind;
}			flags[] = {
	{"shutdown", KA_KIND_SHUTDOWN},
	{"end-of-recovery", KA_KIND_END_OF_RECOVERY},
	{"wal", KA_KIND_WAL},
	{"time", KA_KIND_TIMED},
	{"force", KA_KIND_REQUESTED},
	{"immediate", KA_KIND_REQUESTED},
	{"fast", KA_KIND_REQUESTED},	/* 19: was immediate */
	{"wait", KA_KIND_REQUESTED},
	{"flush-all", KA_KIND_REQUESTED},
	{"flush-unlogged", KA_KIND_REQUESTED},	/* 19: was flush-all */
};

void
ka_checkpoint_hook_install(void)
{
	prev_emit_log_hook = emit_log_hook;
	emit_log_hook = log_hook;
}

static void
log_hook(ErrorData *edata)
{
	if (prev_emit_log_hook)
		prev_emit_log_hook(edata);

	if (MyBackendType != B_CHECKPOINTER || ka_shared == NULL)
		return;

	if (edata->elevel >= ERROR)
		checkpoint_failed();
	else if (edata->message_id != NULL && edata->message != NULL)
	{
		for (size_t i = 0; i < lengthof(milestones); i++)
		{
			if (strncmp(edata->message_id, milestones[i].message_id,
						strlen(milestones[i].message_id)) == 0)
			{
				milestones[i].report(edata->message, milestones[i].restartpoint);
				break;
			}
		}
	}
}

/*
 * The words at the end of the message, from the last one backwards, up to the
 * first that is no flag: that one belongs to the (translated) sentence.
 */
static KaKind
kind_of(const char *message)
{
	const char *end = message + strlen(message);
	size_t		found = lengthof(flags);

	for (;;)
	{
		const char *word;
		size_t		i;

		while (end > message && end[-1] == ' ')
			end--;
		for (word = end; word > message && word[-1] != ' '; word--)
			;
		for (i = 0; i < lengthof(flags); i++)
		{
			if (strlen(flags[i].word) == (size_t) (end - word) &&
				strncmp(flags[i].word, word, end - word) == 0)
				break;
		}
		if (i == lengthof(flags))
			break;
		found = Min(found, i);
		end = word;
	}
	return found < lengthof(flags) ? flags[found].kind : KA_KIND_REQUESTED;
}

/*
 * pg_control as it is on disk.  The server's own function allocates and raises
 * errors, which a critical section forbids.  A reader without ControlFileLock
 * can meet a write in progress, and then the CRC does not match: it tries again.
 */
static bool
read_control(ControlFileData *control)
{
	for (int attempt = 0; attempt < 3; attempt++)
	{
		pg_crc32c	crc;
		ssize_t		length;
		int			fd = BasicOpenFile(XLOG_CONTROL_FILE, O_RDONLY | PG_BINARY);

		if (fd < 0)
			return false;
		length = read(fd, control, sizeof(*control));
		close(fd);
		if (length != sizeof(*control))
			return false;

		INIT_CRC32C(crc);
		COMP_CRC32C(crc, control, offsetof(ControlFileData, crc));
		FIN_CRC32C(crc);
		if (EQ_CRC32C(crc, control->crc))
			return true;
	}
	return false;
}

XLogRecPtr
ka_control_redo(void)
{
	ControlFileData control;

	return read_control(&control) ? control.checkPointCopy.redo : InvalidXLogRecPtr;
}

XLogRecPtr
ka_control_checkpoint(void)
{
	ControlFileData control;

	return read_control(&control) ? control.checkPoint : InvalidXLogRecPtr;
}

int64
ka_control_next_xid(void)
{
	ControlFileData control;

	return read_control(&control) ? (int64) U64FromFullTransactionId(control.checkPointCopy.nextXid) : KA_UNKNOWN;
}

bool
ka_control_shut_down(void)
{
	ControlFileData control;

	return read_control(&control) &&
		(control.state == DB_SHUTDOWNED || control.state == DB_SHUTDOWNED_IN_RECOVERY);
}

/* In a critical section. */
static void
checkpoint_start(const char *message, bool restartpoint)
{
	KaMark		mark;
	KaMark	   *running = &ka_shared->running;

	mark.started_at = CheckpointStats.ckpt_start_t;
	mark.redo = GetRedoRecPtr();
	mark.prior_redo = ka_control_redo();
	mark.kind = kind_of(message);
	mark.restartpoint = restartpoint;
	mark.hooked = true;

	SpinLockAcquire(&ka_shared->mutex);
	if (running->id != 0 && !running->hooked && running->redo == mark.redo)
		mark.id = running->id;	/* the sampler noticed it a moment ago */
	else
	{
		if (running->id != 0)
			ka_shared->failed++;
		mark.id = ++ka_shared->last_id;
	}
	*running = mark;
	SpinLockRelease(&ka_shared->mutex);

	ka_sampler_wake();
}

static void
checkpoint_end(const char *message, bool restartpoint)
{
	const CheckpointStatsData *stats = &CheckpointStats;
	KaMark	   *running = &ka_shared->running;
	KaMark		mark;
	KaCheckpointRow row;
	XLogRecPtr	redo = GetRedoRecPtr();

	(void) message;				/* tells nothing that the statistics do not */

	SpinLockAcquire(&ka_shared->mutex);
	mark = *running;
	if (mark.id == 0 || mark.redo != redo)
	{
		/* log_checkpoints was turned on since it began, and no sampler saw it. */
		if (mark.id != 0)
			ka_shared->failed++;
		memset(&mark, 0, sizeof(mark));
		mark.id = ++ka_shared->last_id;
		mark.kind = KA_KIND_UNKNOWN;
		mark.prior_redo = InvalidXLogRecPtr;
	}
	SpinLockRelease(&ka_shared->mutex);

	memset(&row, 0, sizeof(row));
	row.checkpoint_id = mark.id;
	row.started_at = stats->ckpt_start_t;
	row.sync_at = stats->ckpt_sync_t;
	row.finish_at = stats->ckpt_sync_end_t;
	row.ended_at = stats->ckpt_end_t;
	row.kind = mark.kind;
	row.restartpoint = restartpoint;
	row.source = KA_SOURCE_HOOK;
	/* rounded as the server does for its message */
	row.write_ms = TimestampDifferenceMilliseconds(stats->ckpt_write_t, stats->ckpt_sync_t);
	row.sync_ms = TimestampDifferenceMilliseconds(stats->ckpt_sync_t, stats->ckpt_sync_end_t);
	row.total_ms = TimestampDifferenceMilliseconds(stats->ckpt_start_t, stats->ckpt_end_t);
	row.longest_sync_ms = (stats->ckpt_longest_sync + 999) / 1000;
	row.buffers_written = stats->ckpt_bufs_written;
	row.files_synced = stats->ckpt_sync_rels;
	row.wal_added = stats->ckpt_segs_added;
	row.wal_removed = stats->ckpt_segs_removed;
	row.wal_recycled = stats->ckpt_segs_recycled;
	row.distance_bytes = !XLogRecPtrIsInvalid(mark.prior_redo) && redo >= mark.prior_redo ?
		(int64) (redo - mark.prior_redo) : KA_UNKNOWN;
	row.next_xid = ka_control_next_xid();
	ka_checkpoint_unsummed(&row);

	/*
	 * The row must be there before the mark goes: the sampler then sees the
	 * checkpoint in one of the two places at any time.
	 */
	ka_ring_append_checkpoint(&row);

	SpinLockAcquire(&ka_shared->mutex);
	memset(running, 0, sizeof(*running));
	ka_shared->hooked_redo = redo;
	ka_shared->captured[KA_SOURCE_HOOK]++;
	SpinLockRelease(&ka_shared->mutex);

	ka_sampler_wake();
}

/* An error in the checkpointer ends the checkpoint that it was busy with. */
static void
checkpoint_failed(void)
{
	SpinLockAcquire(&ka_shared->mutex);
	if (ka_shared->running.id != 0)
		ka_shared->failed++;
	memset(&ka_shared->running, 0, sizeof(ka_shared->running));
	SpinLockRelease(&ka_shared->mutex);

	ka_sampler_wake();
}
