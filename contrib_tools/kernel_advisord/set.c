/*
 * set.c: get, set, rollback, list, and the recovery after a kill.
 *
 * A set is: save the old value, journal the intent, write, read back, journal
 * the result, reply.  The kernel's answer to the write is not trusted, what it
 * says when read is.  When the result cannot be journalled the old value goes
 * back: no client is told of a change that the journal does not know.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon.h"
#include "log.h"

/* Reads the knob, and its twin where it has one. */
static int
read_both(const KaCall *call, int64_t *value, int64_t *twin_value)
{
	int			result = 0;

	*value = *twin_value = KA_NO_VALUE;
	if (call->knob->flags & KA_KF_ACTION)
		return 0;
	result = ka_kernel_read(call->file, value);
	if (result == 0 && call->twin)
		result = ka_kernel_read(call->twin, twin_value);
	return result;
}

/*
 * Writes a value that was there before.  Writing a knob clears its twin (a
 * ratio, when bytes are set), and a value of 0 is the mark that the twin ruled:
 * the kernel takes 0 for none of them, so the twin is written instead.
 */
int
ka_put_back(const KaKnobFile *file, const KaKnobFile *twin, int64_t old, int64_t old_twin)
{
	if (old == KA_NO_VALUE)
		return 0;
	if (twin && old == 0 && old_twin != KA_NO_VALUE && (old_twin > 0 || file->knob->min > 0))
		return ka_kernel_write(twin, old_twin, KA_DEFAULT_TIME_LIMIT_MS);
	return ka_kernel_write(file, old, KA_DEFAULT_TIME_LIMIT_MS);
}

KaStatus
ka_op_get(KaCall *call)
{
	int64_t		twin_value;
	int			result;

	if (call->knob->flags & KA_KF_ACTION)
		return KA_ST_NOT_POSSIBLE;
	result = read_both(call, &call->reply->granted, &twin_value);
	if (result < 0)
		return ka_call_error(call, KA_ST_UNREADABLE, result);
	call->reply->old = call->reply->granted;
	return KA_ST_OK;
}

/*
 * The second half of set and rollback, between intent and result: writes,
 * reads back, says what came of it.
 */
static KaStatus
write_and_verify(KaCall *call, bool put_back)
{
	KaRecord   *record = &call->record;
	KaReply    *reply = call->reply;
	int			limit_ms = call->request->time_limit_ms ? (int) call->request->time_limit_ms : KA_DEFAULT_TIME_LIMIT_MS;
	KaStatus	status = KA_ST_OK;
	int64_t		twin_value;
	int			result;

	if (put_back)
		result = ka_put_back(call->file, call->twin, record->asked, record->old_twin);
	else
		result = ka_kernel_write(call->file, record->asked, limit_ms);
	if (result < 0)
		status = ka_call_error(call, KA_ST_REFUSED, result);

	result = read_both(call, &record->granted, &twin_value);
	if (result < 0)
	{
		record->granted = KA_NO_VALUE;
		if (status == KA_ST_OK)
			status = ka_call_error(call, KA_ST_UNREADABLE, result);
	}
	else if (status == KA_ST_REFUSED && record->granted == record->old)
		reply->state |= KA_CHANGE_NOT_WRITTEN;
	else if (status == KA_ST_OK && !(call->knob->flags & KA_KF_ACTION) && record->granted != record->asked)
		status = KA_ST_PARTIAL;
	reply->granted = record->granted;
	return status;
}

KaStatus
ka_op_set(KaCall *call)
{
	KaRecord   *record = &call->record;
	KaReply    *reply = call->reply;
	KaStatus	status = ka_check_range(call, call->request->value);
	int64_t		old_twin;
	int			result;

	if (status != KA_ST_OK)
		return status;
	result = read_both(call, &reply->old, &old_twin);
	if (result < 0)
		return ka_call_error(call, KA_ST_UNREADABLE, result);
	reply->granted = reply->old;
	status = ka_check_effect(call, reply->old, reply->asked, false);
	if (status != KA_ST_OK)
		return status;
	if (call->file->write_error)
		return ka_call_error(call, KA_ST_READ_ONLY, -call->file->write_error);
	if (reply->old == reply->asked)
		return KA_ST_UNCHANGED;
	if (call->request->flags & KA_FLAG_DRY_RUN)
		return KA_ST_OK;

	record->old = reply->old;
	record->old_twin = old_twin;
	record->asked = reply->asked;
	status = ka_call_begin(call, 2);
	if (status != KA_ST_OK)
		return status;
	status = ka_call_end(call, write_and_verify(call, false));
	if (status == KA_ST_JOURNAL)
	{
		ka_put_back(call->file, call->twin, record->old, record->old_twin);
		read_both(call, &reply->granted, &old_twin);
	}
	if (call->knob->flags & (KA_KF_POOL | KA_KF_ACTION))
		ka_report_blocks(call);
	return status;
}

KaStatus
ka_op_list(KaCall *call)
{
	const KaDaemon *daemon = call->daemon;
	const KaChanges *changes = &daemon->journal.changes;
	KaReply    *reply = call->reply;
	size_t		low = 0;
	size_t		high = changes->n;
	const KaChange *change;
	const KaRecord *record;

	/* The first change with this id or a larger one. */
	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (call->request->value > 0 && changes->items[middle].record.change < (uint64_t) call->request->value)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == changes->n)
		return KA_ST_END;
	change = &changes->items[low];
	record = &change->record;
	reply->change = record->change;
	reply->refers = record->refers;
	reply->operation = record->operation;
	reply->knob = record->knob;
	reply->node = record->node;
	reply->uid = record->uid;
	reply->at_us = record->at_us;
	reply->old = record->old;
	reply->asked = record->asked;
	reply->granted = record->granted;
	reply->error = record->error;
	reply->state = record->state & (KA_CHANGE_INTERRUPTED | KA_CHANGE_NOT_WRITTEN);
	if (change->rolled_back_by)
		reply->state |= KA_CHANGE_ROLLED_BACK;
	if (memcmp(record->boot_id, daemon->kernel.boot_id, sizeof(record->boot_id)) == 0)
		reply->state |= KA_CHANGE_THIS_BOOT;
	/* How that change ended; a change that has not ended is interrupted. */
	return change->open ? KA_ST_INTERRUPTED : (KaStatus) record->status;
}

/*
 * The value that a change left behind: what was granted, or, when a rollback of
 * it was tried already and got part of the way, what that one left.
 */
static int64_t
value_left(const KaChanges *changes, const KaChange *change)
{
	for (size_t i = changes->n; i > 0 && changes->items[i - 1].record.change > change->record.change; i--)
	{
		const KaRecord *record = &changes->items[i - 1].record;

		if (record->operation == KA_OP_ROLLBACK && record->refers == change->record.change &&
			!changes->items[i - 1].open && record->granted != KA_NO_VALUE)
			return record->granted;
	}
	return change->record.granted;
}

/* May "value" come back, though nobody asked for it as a value?  The range does not count. */
static KaStatus
check_rollback(KaCall *call, int64_t current, int64_t value)
{
	if (call->daemon->bounds.ranges[call->knob - ka_knobs].off && call->peer->uid != 0)
		return KA_ST_OFF;
	return ka_check_effect(call, current, value, false);
}

KaStatus
ka_op_rollback(KaCall *call)
{
	const KaChanges *changes = &call->daemon->journal.changes;
	bool		force = (call->request->flags & KA_FLAG_FORCE) != 0;
	KaRecord   *record = &call->record;
	KaReply    *reply = call->reply;
	const KaChange *change = call->request->value > 0 ? ka_changes_find(changes, (uint64_t) call->request->value) : NULL;
	KaRecord	undone;
	KaStatus	status;
	int64_t		current_twin;
	int			result;

	if (change == NULL)
		return KA_ST_NO_CHANGE;
	if (force && call->peer->uid != 0)
		return KA_ST_BAD_FLAGS;
	undone = change->record;	/* appending moves the array */
	reply->refers = undone.change;
	if (undone.operation != KA_OP_SET && undone.operation != KA_OP_RESERVE &&
		undone.operation != KA_OP_PERSIST && undone.operation != KA_OP_UNPERSIST)
		return KA_ST_NOT_POSSIBLE;
	status = ka_call_knob(call, undone.knob, undone.node);
	if (status != KA_ST_OK)
		return status;
	if (call->knob->flags & KA_KF_ACTION)
		return KA_ST_NOT_POSSIBLE;
	if (change->rolled_back_by || change->open || (undone.state & KA_CHANGE_NOT_WRITTEN) ||
		undone.granted == undone.old)
		return KA_ST_NOT_IN_EFFECT;
	record->refers = undone.change;
	if (undone.operation == KA_OP_PERSIST || undone.operation == KA_OP_UNPERSIST)
		return ka_rollback_persist(call, &undone);

	reply->asked = undone.old;
	result = read_both(call, &reply->old, &current_twin);
	if (result < 0)
		return ka_call_error(call, KA_ST_UNREADABLE, result);
	reply->granted = reply->old;
	if (reply->old != undone.old && reply->old != value_left(changes, change) && !force)
		return KA_ST_SUPERSEDED;
	status = check_rollback(call, reply->old, undone.old);
	if (status != KA_ST_OK)
		return status;
	if (call->file->write_error)
		return ka_call_error(call, KA_ST_READ_ONLY, -call->file->write_error);
	if (call->request->flags & KA_FLAG_DRY_RUN)
		return reply->old == undone.old ? KA_ST_UNCHANGED : KA_ST_OK;

	record->old = reply->old;
	record->old_twin = undone.old_twin;
	record->asked = undone.old;
	status = ka_call_begin(call, 2);
	if (status != KA_ST_OK)
		return status;
	if (reply->old == undone.old)
	{
		/* A reboot, or somebody else, was first: only the journal learns of it. */
		record->granted = reply->old;
		return ka_call_end(call, KA_ST_UNCHANGED);
	}
	status = ka_call_end(call, write_and_verify(call, true));
	if (status == KA_ST_JOURNAL)
	{
		ka_put_back(call->file, call->twin, record->old, current_twin);
		read_both(call, &reply->granted, &current_twin);
	}
	return status;
}

/*
 * What a change left in the kernel when nobody is there to tell: the value now,
 * in this boot; after a reboot, what the reboot made of it.
 */
static int
resolve(KaDaemon *daemon, const KaRecord *intent)
{
	KaRecord	record = *intent;
	KaPeer		nobody = {.fd = -1, .uid = intent->uid, .pid = intent->pid};
	KaRequest	request = {.operation = intent->operation, .flags = intent->flags};
	KaReply		reply = {0};
	KaCall		call = {.daemon = daemon, .peer = &nobody, .request = &request, .reply = &reply};
	uint32_t	line;

	record.kind = KA_RECORD_RESULT;
	record.status = KA_ST_INTERRUPTED;
	record.state |= KA_CHANGE_INTERRUPTED;
	record.granted = KA_NO_VALUE;
	call.record = record;
	if (ka_call_knob(&call, intent->knob, intent->node) == KA_ST_OK)
	{
		bool		for_boot = intent->operation == KA_OP_PERSIST || intent->operation == KA_OP_UNPERSIST;
		const KaChange *target = intent->refers ? ka_changes_find(&daemon->journal.changes, intent->refers) : NULL;

		if (target)
			for_boot = target->record.operation == KA_OP_PERSIST || target->record.operation == KA_OP_UNPERSIST;
		if (for_boot)
		{
			if (ka_persist_get(&daemon->persist, call.knob, intent->node, &record.granted, &line) < 0)
				record.error = EIO;
		}
		else if (!(call.knob->flags & KA_KF_ACTION))
		{
			/* A reservation that was to be all or nothing. */
			if (intent->operation == KA_OP_RESERVE && (intent->flags & KA_FLAG_UNDO) &&
				memcmp(intent->boot_id, daemon->kernel.boot_id, sizeof(intent->boot_id)) == 0 &&
				ka_kernel_read(call.file, &record.granted) == 0 &&
				record.granted > record.old && record.granted < record.asked)
				ka_put_back(call.file, NULL, record.old, KA_NO_VALUE);
			if (ka_kernel_read(call.file, &record.granted) < 0)
				record.granted = KA_NO_VALUE;
		}
	}
	if (record.granted == record.asked && record.operation == KA_OP_ROLLBACK)
		record.status = KA_ST_OK;	/* the old value is back: the change is undone */
	if (record.granted == record.old)
		record.state |= KA_CHANGE_NOT_WRITTEN;
	ka_log(KA_LOG_WARNING, "change %" PRIu64 " was interrupted: asked %" PRId64 ", now %" PRId64,
		   record.change, record.asked, record.granted);
	return ka_journal_append(&daemon->journal, &record);
}

int
ka_recover(KaDaemon *daemon)
{
	KaChanges  *changes = &daemon->journal.changes;
	int			result = ka_resume_policy(daemon);

	for (size_t i = 0; i < changes->n && result >= 0; i++)
	{
		if (!changes->items[i].open)
			continue;
		result = ka_journal_provide(&daemon->journal, 1);
		if (result == -EFBIG)
			result = 0;			/* one more record than the limit is no harm */
		if (result >= 0)
			result = resolve(daemon, &changes->items[i].record);
	}
	return result;
}
