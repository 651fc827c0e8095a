/*
 * boot.c: persist and unpersist, and which file wins at the next boot.
 *
 * Only the helper's own two files are written.  Whether they win is found out
 * by the core's reader of the boot settings, the same that the advice uses.
 * A persisted value is a change like another: journalled, and rolled back to
 * the value that our file had before, or to none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collect.h"
#include "daemon.h"

/* The name that the core gives to the kernel command line. */
#define CMDLINE "/proc/cmdline"

static void
set_winner(KaReply *reply, const char *ours, const char *file, int64_t value)
{
	if (file == NULL)
	{
		reply->boot_winner = KA_BOOT_NOTHING;
		return;
	}
	reply->boot_value = value;
	reply->boot_winner = strcmp(file, CMDLINE) == 0 ? KA_BOOT_CMDLINE :
		strcmp(file, ours) == 0 ? KA_BOOT_OURS : KA_BOOT_OTHER;
	snprintf(reply->boot_file, sizeof(reply->boot_file), "%s", file);
}

/* What the next boot makes of the knob; stays unknown where the core does not look. */
void
ka_report_boot(KaCall *call)
{
	KaSource	source = {.root = call->daemon->root};
	KaReply    *reply = call->reply;
	KaArena		arena;
	KaFacts		facts;

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	if (ka_collect_boot(&facts, &source) && !arena.failed)
	{
		int			sysctl = ka_sysctl_by_name(call->knob->name);

		if (sysctl >= 0 && facts.boot[sysctl].known)
			set_winner(reply, KA_SYSCTL_DIRECTORY "/" KA_SYSCTL_FILE,
					   facts.boot[sysctl].file, facts.boot[sysctl].value);
		else if (call->knob->number == KA_HK_THP_ENABLED && facts.boot_thp_known)
		{
			const char *word = ka_text(&facts, KA_BOOT_THP_VALUE);
			int64_t		value;

			if (word == NULL || ka_knob_parse(call->knob, word, strlen(word), &value) < 0)
				value = KA_NO_VALUE;
			set_winner(reply, KA_TMPFILES_DIRECTORY "/" KA_TMPFILES_FILE,
					   ka_text(&facts, KA_BOOT_THP_FILE), value);
		}
	}
	ka_malloc_free(&arena);
}

static KaStatus
persist_error(KaCall *call, int result, uint32_t line)
{
	call->reply->line = line;
	return ka_call_error(call, result == -EBADMSG ? KA_ST_FOREIGN_FILE : KA_ST_PERSIST, result);
}

/* Makes our file say "value", or nothing: the common part of the three operations. */
static KaStatus
change_file(KaCall *call, int64_t value)
{
	const KaPersist *persist = &call->daemon->persist;
	KaRecord   *record = &call->record;
	KaReply    *reply = call->reply;
	KaPersisted entry = {.knob = call->knob, .node = call->file->node, .value = value};
	KaStatus	status;
	uint32_t	line;
	int			result;

	reply->asked = value;
	reply->granted = reply->old;
	if (reply->old == value && call->request->operation != KA_OP_ROLLBACK)
	{
		ka_report_boot(call);
		return KA_ST_UNCHANGED;
	}
	if (call->request->flags & KA_FLAG_DRY_RUN)
	{
		ka_report_boot(call);
		return KA_ST_OK;
	}

	record->old = reply->old;
	record->asked = value;
	status = ka_call_begin(call, 2);
	if (status != KA_ST_OK)
		return status;
	entry.change = record->change;
	entry.uid = record->uid;
	entry.at_us = record->at_us;
	status = KA_ST_OK;
	result = ka_persist_put(persist, &entry, &line);
	if (result < 0)
		status = persist_error(call, result, line);
	if (ka_persist_get(persist, call->knob, call->file->node, &record->granted, &line) < 0)
		record->granted = KA_NO_VALUE;
	reply->granted = record->granted;
	if (status != KA_ST_OK && record->granted == record->old)
		reply->state |= KA_CHANGE_NOT_WRITTEN;
	if (ka_call_end(call, status) == KA_ST_JOURNAL && status == KA_ST_OK)
	{
		/* The journal does not know of it, so it is not to be. */
		entry.value = record->old;
		entry.change = 0;
		ka_persist_put(persist, &entry, &line);
		reply->granted = record->old;
		return KA_ST_JOURNAL;
	}
	ka_report_boot(call);
	return status;
}

static KaStatus
read_file_value(KaCall *call)
{
	uint32_t	line;
	int			result;

	if (call->knob->flags & KA_KF_ACTION)
		return KA_ST_NOT_POSSIBLE;
	if (!call->daemon->bounds.persist ||
		(call->daemon->bounds.ranges[call->knob - ka_knobs].off && call->peer->uid != 0))
		return KA_ST_OFF;
	result = ka_persist_get(&call->daemon->persist, call->knob, call->file->node, &call->reply->old, &line);
	return result < 0 ? persist_error(call, result, line) : KA_ST_OK;
}

/* Pages beyond the buddy allocator's largest block are for the kernel command line. */
static bool
is_boot_parameter(KaCall *call)
{
	const KaKernel *kernel = &call->daemon->kernel;
	KaEstimate	estimate;

	return (call->knob->flags & KA_KF_POOL) &&
		ka_kernel_estimate(kernel, KA_ALL_NODES, kernel->page_bytes, &estimate) &&
		ka_kernel_pool_page_bytes(kernel, call->knob) > kernel->page_bytes << estimate.max_order;
}

KaStatus
ka_op_persist(KaCall *call)
{
	KaStatus	status = ka_check_range(call, call->request->value);
	int64_t		current;
	int			result;

	if (status == KA_ST_OK)
		status = read_file_value(call);
	if (status != KA_ST_OK)
		return status;
	if (is_boot_parameter(call))
		return KA_ST_BOOT_PARAMETER;
	result = ka_kernel_read(call->file, &current);
	if (result < 0)
		return ka_call_error(call, KA_ST_UNREADABLE, result);
	status = ka_check_effect(call, current, call->request->value, true);
	if (status != KA_ST_OK)
		return status;
	return change_file(call, call->request->value);
}

KaStatus
ka_op_unpersist(KaCall *call)
{
	KaStatus	status = read_file_value(call);

	if (status == KA_ST_OK && call->reply->old == KA_NO_VALUE)
	{
		ka_report_boot(call);
		return KA_ST_NOT_PERSISTED;
	}
	return status == KA_ST_OK ? change_file(call, KA_NO_VALUE) : status;
}

KaStatus
ka_rollback_persist(KaCall *call, const KaRecord *change)
{
	KaStatus	status = read_file_value(call);

	if (status != KA_ST_OK)
		return status;
	if (call->reply->old != change->old && call->reply->old != change->granted &&
		!(call->request->flags & KA_FLAG_FORCE))
	{
		call->reply->asked = change->old;
		call->reply->granted = call->reply->old;
		return KA_ST_SUPERSEDED;
	}
	return change_file(call, change->old);
}
