/*
 * call.c: from a decoded request to an operation, and what operations share.
 *
 * The table says for each operation which flags it has and whether it needs a
 * knob; everything else about a request is checked by the operation.  Every
 * path out of here leaves a complete reply.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon.h"
#include "log.h"

typedef struct Operation
{
	uint32_t	number;
	KaStatus	(*run) (KaCall *call);
	uint32_t	flags;			/* that it accepts */
	bool		needs_knob;
} Operation;

static const Operation operations[] = {
	{KA_OP_GET, ka_op_get, 0, true},
	{KA_OP_SET, ka_op_set, KA_FLAG_DRY_RUN, true},
	{KA_OP_RESERVE, ka_op_reserve, KA_FLAG_DRY_RUN | KA_FLAG_DROP_CACHES | KA_FLAG_UNDO, true},
	{KA_OP_PERSIST, ka_op_persist, KA_FLAG_DRY_RUN, true},
	{KA_OP_UNPERSIST, ka_op_unpersist, KA_FLAG_DRY_RUN, true},
	{KA_OP_ROLLBACK, ka_op_rollback, KA_FLAG_DRY_RUN | KA_FLAG_FORCE, false},
	{KA_OP_LIST, ka_op_list, 0, false},
	{KA_OP_ESTIMATE, ka_op_estimate, KA_FLAG_DROP_CACHES, true},
};

int64_t
ka_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

KaStatus
ka_call_error(KaCall *call, KaStatus status, int negative_errno)
{
	call->reply->error = -negative_errno;
	return status;
}

/* The client hung up, or the daemon is asked to end. */
bool
ka_call_interrupted(const KaCall *call)
{
	struct pollfd peer = {.fd = call->peer->fd, .events = 0};

	if (call->daemon->stop && *call->daemon->stop)
		return true;
	return call->peer->fd >= 0 && poll(&peer, 1, 0) > 0 && (peer.revents & (POLLHUP | POLLERR));
}

/* Finds the knob and its files, and the range that holds for it now. */
KaStatus
ka_call_knob(KaCall *call, uint32_t number, int node)
{
	const KaKernel *kernel = &call->daemon->kernel;
	KaReply    *reply = call->reply;
	KaMemory	memory;
	KaRange		range;
	int			result;

	call->knob = ka_knob_find(number);
	if (call->knob == NULL || (call->knob->flags & KA_KF_INTERNAL))
		return KA_ST_NO_KNOB;
	call->file = ka_kernel_file(kernel, number, node);
	if (call->file == NULL)
		return KA_ST_NO_NODE;
	reply->knob = number;
	reply->node = node;
	if (call->file->fd < 0)
		return ka_call_error(call, call->file->open_error == ENOENT ? KA_ST_ABSENT :
							 (call->knob->flags & KA_KF_ACTION) ? KA_ST_READ_ONLY : KA_ST_UNREADABLE,
							 -call->file->open_error);
	call->twin = call->knob->twin ? ka_kernel_file(kernel, call->knob->twin, KA_ALL_NODES) : NULL;

	result = ka_kernel_memory(kernel, &memory);
	if (result < 0)
		return ka_call_error(call, KA_ST_UNREADABLE, result);
	range = ka_bounds_range(&call->daemon->bounds, call->knob, memory.total_bytes,
							ka_kernel_pool_page_bytes(kernel, call->knob));
	reply->min = range.min;
	reply->max = range.max;
	return KA_ST_OK;
}

/* One change of a user other than root costs one token. */
static bool
take_token(KaDaemon *daemon, uint32_t uid)
{
	int64_t		now_ms = ka_now_ms();
	double		limit = (double) daemon->bounds.changes_per_hour;

	if (uid == 0)
		return true;
	daemon->tokens += (double) (now_ms - daemon->tokens_at_ms) * limit / 3600000.0;
	daemon->tokens_at_ms = now_ms;
	if (daemon->tokens > limit)
		daemon->tokens = limit;
	if (daemon->tokens < 1.0)
		return false;
	daemon->tokens -= 1.0;
	return true;
}

/*
 * Journals the intent: call->record has old, old_twin, asked.  After this the
 * kernel may be written, and ka_call_end must follow.
 */
KaStatus
ka_call_begin(KaCall *call, size_t records)
{
	KaDaemon   *daemon = call->daemon;
	KaRecord   *record = &call->record;
	int			result;

	if (!take_token(daemon, call->peer->uid))
		return KA_ST_RATE;
	result = ka_journal_provide(&daemon->journal, records);
	if (result < 0)
		return ka_call_error(call, result == -EFBIG ? KA_ST_JOURNAL_FULL : KA_ST_JOURNAL, result);

	record->kind = KA_RECORD_INTENT;
	record->change = ka_journal_next_change(&daemon->journal);
	record->operation = call->request->operation;
	record->knob = call->knob->number;
	record->node = call->file->node;
	record->flags = call->request->flags;
	record->uid = call->peer->uid;
	record->pid = call->peer->pid;
	record->at_us = ka_now_us();
	record->granted = KA_NO_VALUE;
	memcpy(record->boot_id, daemon->kernel.boot_id, sizeof(record->boot_id));
	result = ka_journal_append(&daemon->journal, record);
	if (result < 0)
		return ka_call_error(call, KA_ST_JOURNAL, result);
	call->reply->change = record->change;
	call->reply->at_us = record->at_us;
	return KA_ST_OK;
}

/*
 * Journals the result: call->record.granted is what was read back.  When that
 * fails the caller must undo, and the open intent is resolved at the next start.
 */
KaStatus
ka_call_end(KaCall *call, KaStatus status)
{
	KaRecord   *record = &call->record;
	char		node[32] = "";
	int			result;

	record->kind = KA_RECORD_RESULT;
	record->status = status;
	record->error = call->reply->error;
	if (call->reply->state & KA_CHANGE_NOT_WRITTEN)
		record->state |= KA_CHANGE_NOT_WRITTEN;
	result = ka_journal_append(&call->daemon->journal, record);
	if (result < 0)
		return ka_call_error(call, KA_ST_JOURNAL, result);

	if (record->node != KA_ALL_NODES)
		snprintf(node, sizeof(node), " node %" PRId32, record->node);
	ka_log(KA_LOG_INFO, "change %" PRIu64 ": %s %s%s by uid %" PRIu32 " pid %" PRId32
		   ": old %" PRId64 ", asked %" PRId64 ", granted %" PRId64 ": %s",
		   record->change, ka_operation_name(record->operation), call->knob->name,
		   node, record->uid, record->pid, record->old, record->asked, record->granted, ka_status_text(status));
	return status;
}

void
ka_reply_start(KaReply *reply, uint32_t operation, uint32_t uid)
{
	memset(reply, 0, sizeof(*reply));
	reply->version = KA_PROTOCOL_VERSION;
	reply->operation = operation;
	reply->node = KA_ALL_NODES;
	reply->uid = uid;
	reply->old = reply->asked = reply->granted = reply->reached = KA_NO_VALUE;
	reply->min = reply->max = KA_NO_VALUE;
	reply->free_costly_blocks = KA_NO_VALUE;
	reply->pages_free = reply->pages_compaction = reply->pages_reclaim = KA_NO_VALUE;
	reply->commit_limit_bytes = reply->boot_value = KA_NO_VALUE;
}

void
ka_handle(KaDaemon *daemon, const KaPeer *peer, const KaRequest *request, KaReply *reply)
{
	KaCall		call = {.daemon = daemon, .peer = peer, .request = request, .reply = reply};
	const Operation *operation = NULL;
	int64_t		start_ms = ka_now_ms();
	KaStatus	status;

	ka_reply_start(reply, request->operation, peer->uid);
	call.record.old_twin = KA_NO_VALUE;

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
	{
		if (operations[i].number == request->operation)
			operation = &operations[i];
	}
	if (!ka_bounds_allow_user(&daemon->bounds, peer->uid))
		status = KA_ST_DENIED;
	else if (operation == NULL)
		status = KA_ST_BAD_OPERATION;
	else if ((request->flags & ~operation->flags) || request->time_limit_ms > KA_MAX_TIME_LIMIT_MS ||
			 request->node < KA_ALL_NODES)
		status = KA_ST_BAD_FLAGS;
	else
	{
		status = operation->needs_knob ? ka_call_knob(&call, request->knob, request->node) : KA_ST_OK;
		if (status == KA_ST_OK)
			status = operation->run(&call);
	}
	if (request->flags & KA_FLAG_DRY_RUN)
		reply->state |= KA_REPLY_DRY_RUN;
	reply->status = status;
	reply->elapsed_ms = (uint32_t) (ka_now_ms() - start_ms);
}
