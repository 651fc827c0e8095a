/*
 * reporter_idle.c: whether anybody but the reporter writes.
 *
 * PostgreSQL skips a timed checkpoint when the newest important record in WAL
 * is the checkpoint before it.  The row of a checkpoint is important WAL, so if
 * each got its row at once, a server that nobody uses would never come to rest:
 * a row, a checkpoint because of the row, its row, and so on.  So while it is
 * idle the reporter writes no such rows (and none about advice of little weight,
 * which a checkpoint may bring).
 *
 * Somebody else has written, if
 *
 *	- a transaction number was given out since the newest checkpoint that is
 *	  stored began, and not to a reporter;
 *	- or a transaction with an older number is open, and the newest important
 *	  record is neither a reporter's nor a checkpoint's: a long load goes on.
 *
 * WAL without a number does not count (vacuum, hint bits with checksums): to read
 * what was just written makes some of it.  The row of a checkpoint after that
 * waits for the next write.  Nor does an open transaction that does nothing.
 *
 * A reporter's number that is not counted as one (a worker that was terminated,
 * a trigger's subtransaction), or got while a checkpoint ran, passes for somebody
 * else's: one more checkpoint has its row at once.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"

#include "compat.h"
#include "reporter_idle.h"
#include "shared.h"

/* Since 17 a checkpoint begins with a record of its own, at its redo pointer. */
static bool
of_checkpoint(XLogRecPtr record)
{
	return record == ka_control_checkpoint() || record == GetRedoRecPtr();
}

/* A transaction whose number tells nothing new. */
static bool
old_one_writes(const KaIdleMark *mark)
{
	XLogRecPtr	newest = GetLastImportantRecPtr();

	return newest != mark->own_record && !of_checkpoint(newest) &&
		TransactionIdPrecedes(ka_oldest_xid_compat(), ReadNextTransactionId());
}

bool
ka_idle_look(KaIdleMark *mark)
{
	uint64		next_xid = U64FromFullTransactionId(ReadNextFullTransactionId());

	mark->own_before = mark->own;
	return mark->known && next_xid - mark->own == mark->others && !old_one_writes(mark);
}

void
ka_idle_count(KaIdleMark *mark)
{
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		mark->own++;
}

void
ka_idle_stored(KaIdleMark *mark, int64 next_xid)
{
	mark->known = next_xid != KA_UNKNOWN;
	mark->others = (uint64) next_xid - mark->own_before;
}

void
ka_idle_end(KaIdleMark *mark, bool complete)
{
	if (!XLogRecPtrIsInvalid(ProcLastRecPtr))
		mark->own_record = ProcLastRecPtr;
	mark->known &= complete;
}
