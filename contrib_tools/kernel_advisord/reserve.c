/*
 * reserve.c: growing a pool of huge pages, and saying beforehand how far.
 *
 * A pool grows only as far as there are free blocks of its order.  In order:
 * write dirty pages back, drop clean ones (when asked), compact, ask, read
 * back, and again while it still grows and there is time.  When the free blocks
 * suffice already, asking comes first and nothing is disturbed.
 *
 * vm.extfrag_threshold above its default keeps the kernel from compacting for
 * costly orders, so the policy is put aside while a pool grows.  The journal
 * has that as a record of its own: a daemon that was killed in between puts the
 * policy back when it starts again.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "log.h"

/* extfrag_threshold as released (mm/compaction.c). */
#define DEFAULT_EXTFRAG_THRESHOLD 500

/* drop_caches: page cache and reclaimable slab; inodes and dentries sit in the way, too. */
#define DROP_ALL 3

/* A round without a page more may be followed by one that brings many. */
#define FRUITLESS_ROUNDS 2

/* Intent, suspend, resume, result. */
#define RESERVE_RECORDS 4

static const KaKnobFile *
machine_file(const KaDaemon *daemon, uint32_t number)
{
	const KaKnobFile *file = ka_kernel_file(&daemon->kernel, number, KA_ALL_NODES);

	return file && file->fd >= 0 && file->write_error == 0 ? file : NULL;
}

void
ka_report_blocks(KaCall *call)
{
	KaEstimate	estimate;

	if (ka_kernel_estimate(&call->daemon->kernel, KA_ALL_NODES, call->daemon->kernel.page_bytes, &estimate))
		call->reply->free_costly_blocks = estimate.free_costly_blocks;
}

/* Sets the policy to its default for a while; what was done is in the journal first. */
static KaStatus
suspend_policy(KaCall *call)
{
	KaDaemon   *daemon = call->daemon;
	const KaKnobFile *file = machine_file(daemon, KA_HK_EXTFRAG_THRESHOLD);
	KaRecord	record = call->record;
	int			result;

	if (file == NULL || ka_kernel_read(file, &record.old) < 0 || record.old <= DEFAULT_EXTFRAG_THRESHOLD)
		return KA_ST_OK;		/* nothing holds compaction back */
	record.kind = KA_RECORD_SUSPEND;
	record.knob = KA_HK_EXTFRAG_THRESHOLD;
	record.node = KA_ALL_NODES;
	record.asked = DEFAULT_EXTFRAG_THRESHOLD;
	result = ka_journal_append(&daemon->journal, &record);
	if (result < 0)
		return ka_call_error(call, KA_ST_JOURNAL, result);
	result = ka_kernel_write(file, DEFAULT_EXTFRAG_THRESHOLD, 0);
	return result < 0 ? ka_call_error(call, KA_ST_REFUSED, result) : KA_ST_OK;
}

/* Puts it back, unless somebody else has set it meanwhile, or the machine was rebooted. */
int
ka_resume_policy(KaDaemon *daemon)
{
	KaChanges  *changes = &daemon->journal.changes;
	const KaKnobFile *file = machine_file(daemon, KA_HK_EXTFRAG_THRESHOLD);
	KaRecord	record = changes->suspend;
	int64_t		now;

	if (!changes->suspended)
		return 0;
	if (file && ka_kernel_read(file, &now) == 0 && now == record.asked &&
		memcmp(record.boot_id, daemon->kernel.boot_id, sizeof(record.boot_id)) == 0)
	{
		int			result = ka_kernel_write(file, record.old, 0);

		if (result < 0)
			ka_log(KA_LOG_ERROR, "vm.extfrag_threshold cannot be set back to %" PRId64 ": %s",
				   record.old, strerror(-result));
	}
	record.kind = KA_RECORD_RESUME;
	record.at_us = ka_now_us();
	return ka_journal_append(&daemon->journal, &record);
}

/*
 * Makes room: each step is a wish, and how far it got is seen in the pool.
 * Dirty pages can neither be dropped nor, by most file systems, be moved: with
 * some of them in its way compaction was seen to end after a few pages.
 */
static void
make_room(const KaDaemon *daemon, bool drop_caches)
{
	const KaKnobFile *drop = drop_caches ? machine_file(daemon, KA_HK_DROP_CACHES) : NULL;
	const KaKnobFile *compact = machine_file(daemon, KA_HK_COMPACT_MEMORY);

	sync();
	if (drop)
		ka_kernel_write(drop, DROP_ALL, 0);
	if (compact)
		ka_kernel_write(compact, 1, 0);
}

/* Free blocks of this size beyond what is asked for: no need to disturb anybody. */
static bool
has_room(const KaCall *call, int64_t pages, int64_t page_bytes)
{
	KaEstimate	estimate;

	return ka_kernel_estimate(&call->daemon->kernel, call->file->node, page_bytes, &estimate) &&
		estimate.pages_free > pages + pages / 8;
}

/* Grows the pool in rounds; call->record.granted is what it has at the end. */
static KaStatus
grow(KaCall *call, int64_t page_bytes)
{
	const KaRequest *request = call->request;
	KaReply    *reply = call->reply;
	int64_t		asked = call->record.asked;
	int64_t		have = call->record.old;
	int64_t		deadline_ms = ka_now_ms() + (request->time_limit_ms ? request->time_limit_ms : KA_DEFAULT_TIME_LIMIT_MS);
	bool		room = has_room(call, asked - have, page_bytes);
	int			fruitless = 0;

	for (;;)
	{
		int64_t		before = have;
		int64_t		left_ms;
		int			result;

		if (!room)
			make_room(call->daemon, (request->flags & KA_FLAG_DROP_CACHES) && reply->rounds == 0);
		left_ms = deadline_ms - ka_now_ms();
		if (left_ms < 1)
			left_ms = 1;		/* one question is always asked */
		result = ka_kernel_write(call->file, asked, (int) left_ms);
		reply->rounds++;
		if (ka_kernel_read(call->file, &have) < 0)
			return ka_call_error(call, KA_ST_UNREADABLE, -EIO);
		call->record.granted = have;
		if (have > reply->reached)
			reply->reached = have;
		if (result < 0)
			return ka_call_error(call, KA_ST_REFUSED, result);
		if (have >= asked)
			return KA_ST_OK;
		if (ka_call_interrupted(call))
			return KA_ST_INTERRUPTED;
		fruitless = have > before || room ? 0 : fruitless + 1;
		if (ka_now_ms() >= deadline_ms || fruitless == FRUITLESS_ROUNDS)
			return KA_ST_PARTIAL;
		room = false;
	}
}

KaStatus
ka_op_reserve(KaCall *call)
{
	KaDaemon   *daemon = call->daemon;
	KaRecord   *record = &call->record;
	KaReply    *reply = call->reply;
	int64_t		page_bytes = ka_kernel_pool_page_bytes(&daemon->kernel, call->knob);
	KaStatus	status;
	int			result;

	if (!(call->knob->flags & KA_KF_POOL))
		return KA_ST_NOT_POSSIBLE;
	status = ka_check_range(call, call->request->value);
	if (status != KA_ST_OK)
		return status;
	if ((call->request->flags & KA_FLAG_DROP_CACHES) && !daemon->bounds.drop_caches)
		return KA_ST_OFF;
	result = ka_kernel_read(call->file, &reply->old);
	if (result < 0)
		return ka_call_error(call, KA_ST_UNREADABLE, result);
	reply->granted = reply->reached = reply->old;
	ka_report_blocks(call);
	if (reply->asked <= reply->old)
		return KA_ST_UNCHANGED; /* a reservation never takes pages away */
	status = ka_check_effect(call, reply->old, reply->asked, false);
	if (status != KA_ST_OK)
		return status;
	if (call->file->write_error)
		return ka_call_error(call, KA_ST_READ_ONLY, -call->file->write_error);
	if (call->request->flags & KA_FLAG_DRY_RUN)
		return ka_op_estimate(call);

	record->old = reply->old;
	record->asked = reply->asked;
	status = ka_call_begin(call, RESERVE_RECORDS);
	if (status != KA_ST_OK)
		return status;
	record->granted = record->old;
	status = suspend_policy(call);
	if (status == KA_ST_OK)
		status = grow(call, page_bytes);
	result = ka_resume_policy(daemon);
	if (result < 0)
		status = ka_call_error(call, KA_ST_JOURNAL, result);

	if (record->granted > record->old && record->granted < record->asked &&
		((call->request->flags & KA_FLAG_UNDO) || status == KA_ST_JOURNAL))
	{
		ka_put_back(call->file, NULL, record->old, KA_NO_VALUE);
		ka_kernel_read(call->file, &record->granted);
		if (status == KA_ST_PARTIAL)
			status = KA_ST_UNDONE;
	}
	reply->granted = record->granted;
	if (record->granted == record->old)
		reply->state |= KA_CHANGE_NOT_WRITTEN;
	ka_report_blocks(call);
	if (ka_call_end(call, status) == KA_ST_JOURNAL)
	{
		ka_put_back(call->file, NULL, record->old, KA_NO_VALUE);
		ka_kernel_read(call->file, &reply->granted);
		return KA_ST_JOURNAL;
	}
	return status;
}

/*
 * How many pages the pool could have: those that it has, those that are free
 * blocks, and those that compaction could make.  Pages beyond the buddy
 * allocator's largest block (1 GB on x86) are looked for in another way, of
 * which the free lists say nothing.
 */
KaStatus
ka_op_estimate(KaCall *call)
{
	KaDaemon   *daemon = call->daemon;
	KaReply    *reply = call->reply;
	int64_t		page_bytes = ka_kernel_pool_page_bytes(&daemon->kernel, call->knob);
	KaEstimate	estimate;
	KaMemory	memory;
	KaStatus	status;
	int64_t		more;
	int			result;

	if (!(call->knob->flags & KA_KF_POOL) || page_bytes <= 0)
		return KA_ST_NOT_POSSIBLE;
	status = ka_check_range(call, call->request->value);
	if (status != KA_ST_OK)
		return status;
	result = ka_kernel_read(call->file, &reply->old);
	if (result == 0)
		result = ka_kernel_memory(&daemon->kernel, &memory);
	if (result < 0)
		return ka_call_error(call, KA_ST_UNREADABLE, result);
	if (!ka_kernel_estimate(&daemon->kernel, call->file->node, page_bytes, &estimate))
		return ka_call_error(call, KA_ST_UNREADABLE, -EBADMSG);

	more = reply->asked - reply->old;
	reply->free_costly_blocks = estimate.free_costly_blocks;
	if (page_bytes > daemon->kernel.page_bytes << estimate.max_order)
	{
		if (more > 0)
			reply->state |= KA_REPLY_BOOT_SAFER;
	}
	else
	{
		reply->pages_free = estimate.pages_free;
		reply->pages_compaction = estimate.pages_compaction;
		/* A machine's caches are not counted per node. */
		if (call->file->node == KA_ALL_NODES)
		{
			int64_t		listed_bytes = estimate.listed_pages * daemon->kernel.page_bytes;

			reply->pages_reclaim = (int64_t) ((double) ((memory.active_file_bytes + memory.inactive_file_bytes) / page_bytes) *
											  estimate.unpinned);
			/* Memory that a kernel has not come to initialise yet is on no list. */
			if (memory.free_bytes > listed_bytes)
				reply->pages_free += (memory.free_bytes - listed_bytes) / page_bytes;
		}
		reply->granted = reply->old + reply->pages_free;
		if (reply->pages_compaction != KA_NO_VALUE)
			reply->granted += reply->pages_compaction + (reply->pages_reclaim > 0 ? reply->pages_reclaim : 0);
		if (reply->granted > reply->asked)
			reply->granted = more > 0 ? reply->asked : reply->old;
		/* What needs compaction may be granted in part only. */
		if (more > estimate.pages_free)
			reply->state |= KA_REPLY_BOOT_SAFER;
	}
	return ka_check_effect(call, reply->old, reply->asked, false);
}
