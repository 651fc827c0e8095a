/*
 * apply_kernel.c: knobs of the kernel, through the root helper.
 *
 * The order is: ask whether the helper is there and knows the knob, write the
 * intent into the change log, ask for the change, read the kernel, write what
 * came of it, and then the same for the next boot.  What the helper says it was
 * granted is compared with what the kernel shows; when they differ the change
 * has failed, whatever the helper says.
 *
 * A cancel may come while the helper works.  The record then says so and the
 * helper, which sees its client leave, stops where it is.
 *
 * Locks: that of the change log, while a record is written.
 */
#include "postgres.h"

#include "guc.h"
#include "kernel_change.h"

/* A reservation ends by itself well before we stop waiting for it. */
#define RESERVE_LIMIT_MS 30000

typedef struct Target
{
	const KaKnob *knob;
	int			node;
	int64		old;
	int64		asked;
	KaOperation operation;		/* set or reserve */
} Target;

/* What a reservation came to, and what is left. */
static void
report_reservation(const Target *target, const KaReply *reply, KaChangeRecord *record)
{
	if (target->operation != KA_OP_RESERVE)
		return;
	ka_append_detail(record, psprintf("granted " INT64_FORMAT " of " INT64_FORMAT " pages, at most " INT64_FORMAT ", in %u ms; rounds: %u",
								   reply->granted, reply->asked, reply->reached, reply->elapsed_ms, reply->rounds));
	if (reply->free_costly_blocks >= 0)
		ka_append_detail(record, psprintf(INT64_FORMAT " free blocks of order 4 and more are left", reply->free_costly_blocks));
	if (reply->granted < reply->asked)
		KA_CHANGE_SET(record, hint,
					  "Memory is fragmented or in use: try again after other programs ended, or reboot with the value that is kept for the next boot.");
}

static void
report_commit_limit(const KaReply *reply, KaChangeRecord *record)
{
	if (reply->commit_limit_bytes >= 0)
		ka_append_detail(record, psprintf("with vm.overcommit_memory = 2, CommitLimit is " INT64_FORMAT " bytes with this value",
									   reply->commit_limit_bytes));
}

static KaRequest
make_request(const Target *target, bool dry_run)
{
	KaRequest	request = ka_helper_request(target->operation, target->knob, target->node, target->asked);

	if (dry_run)
		request.flags |= KA_FLAG_DRY_RUN;
	if (target->operation == KA_OP_RESERVE)
		request.time_limit_ms = Min(RESERVE_LIMIT_MS, Max(ka_helper_timeout / 2, 1));
	return request;
}

/* Is the helper there, and does it know the knob?  Nothing is in the log yet. */
static bool
helper_knows(const Target *target, KaChangeRecord *record)
{
	KaRequest	request = ka_helper_request(KA_OP_GET, target->knob, target->node, 0);
	KaReply		reply;

	if (target->knob->flags & KA_KF_ACTION)
		return true;			/* there is nothing to get */
	if (!ka_ask_helper(&request, &reply, record))
		return false;
	record->status = reply.status;
	if (reply.status == KA_ST_OK)
		return true;
	ka_refused_by_helper(target->knob, &reply, record);
	return false;
}

/*
 * ----------------------------------------------------------------
 * The next boot
 * ----------------------------------------------------------------
 */

/* "hugepagesz=1G hugepages=4" */
static const char *
boot_parameter(const Target *target)
{
	int64		kb = target->knob->page_bytes / 1024;

	if (kb <= 0)
		return NULL;			/* the default size: default_hugepagesz= says which */
	if (kb % (1024 * 1024) == 0)
		return psprintf("hugepagesz=" INT64_FORMAT "G hugepages=" INT64_FORMAT, kb / (1024 * 1024), target->asked);
	return psprintf("hugepagesz=" INT64_FORMAT "M hugepages=" INT64_FORMAT, kb / 1024, target->asked);
}

/* A value that is set and not kept is no failure of the setting: the detail says it. */
static void
persist(const Target *target, bool dry_run, KaChangeRecord *record)
{
	KaRequest	request = ka_helper_request(KA_OP_PERSIST, target->knob, target->node, target->asked);
	KaChangeState state = record->state;
	int			sqlstate = record->sqlstate;
	bool		unchanged = state == KA_STATE_UNCHANGED;
	KaReply		reply;

	if (target->knob->flags & KA_KF_ACTION)
		return;
	if (dry_run)
		request.flags |= KA_FLAG_DRY_RUN;
	record->persist_open = !dry_run;
	if (dry_run ? !ka_ask_helper(&request, &reply, record) :
		!ka_ask_recorded(&request, &reply, record, target->knob, target->node))
	{
		/* The kernel's value is settled, whatever became of the file. */
		if (!unchanged)
		{
			record->state = state;
			record->sqlstate = sqlstate;
		}
		ka_append_detail(record, "whether the value is kept for the next boot is not known");
		return;
	}
	record->persist_open = false;
	if (reply.status == KA_ST_OK || reply.status == KA_ST_UNCHANGED)
	{
		KA_CHANGE_SET(record, persisted_in, ka_own_file(target->knob));
		ka_take_boot(&reply, record);
		if (reply.status == KA_ST_OK && !dry_run)
		{
			record->helper_persist = reply.change;
			record->helper_persist_at_us = reply.at_us;
			if (unchanged)
			{
				record->state = KA_STATE_APPLIED;
				ka_append_detail(record, "the value was there already, and is now kept for the next boot");
			}
		}
		if (reply.boot_winner == KA_BOOT_OTHER || reply.boot_winner == KA_BOOT_CMDLINE)
			KA_CHANGE_SET(record, hint,
						  psprintf("%s wins over %s at the next boot: change the value there.",
								   reply.boot_winner == KA_BOOT_CMDLINE ? "The kernel command line" : reply.boot_file,
								   ka_own_file(target->knob)));
		return;
	}

	if (reply.status == KA_ST_BOOT_PARAMETER)
	{
		const char *parameter = boot_parameter(target);

		ka_append_detail(record, parameter ? psprintf("for the next boot, add to the kernel command line: %s", parameter) :
					  ka_status_text(reply.status));
		return;
	}
	ka_append_detail(record, psprintf("not kept for the next boot: %s", ka_status_detail(target->knob, &reply)));
	if (unchanged)
	{
		record->state = ka_refusal_state(reply.status);
		record->sqlstate = ka_helper_status_sqlstate(reply.status);
	}
	if (record->hint[0] == '\0')
		KA_CHANGE_SET(record, hint, ka_helper_status_hint(reply.status));
}

/*
 * ----------------------------------------------------------------
 * Applying
 * ----------------------------------------------------------------
 */

static void
apply_dry_run(const Target *target, const KaApplyOptions *options, KaChangeRecord *record)
{
	KaRequest	request = make_request(target, true);
	KaReply		reply;

	if (!ka_ask_helper(&request, &reply, record))
		return;
	record->status = reply.status;
	if (!ka_is_done(reply.status))
	{
		ka_refused_by_helper(target->knob, &reply, record);
		report_commit_limit(&reply, record);
		return;
	}
	record->state = KA_STATE_DRY_RUN;
	if (target->operation == KA_OP_RESERVE)
	{
		ka_set_value_text(record->granted, target->knob, reply.granted);
		if (reply.pages_free >= 0)
			ka_append_detail(record, psprintf("free blocks of this size now: " INT64_FORMAT " pages; compaction could make " INT64_FORMAT " more",
										   reply.pages_free, Max(reply.pages_compaction, 0)));
		if (reply.state & KA_REPLY_BOOT_SAFER)
			KA_CHANGE_SET(record, hint, "The boot is the safer moment for this reservation.");
	}
	else
		ka_set_value_text(record->granted, target->knob, target->asked);
	report_commit_limit(&reply, record);
	if (options->persist)
		persist(target, true, record);
	if (record->state == KA_STATE_DRY_RUN)
		ka_append_detail(record, "nothing was changed");
}

static const char *
list_words(const KaKnob *knob)
{
	const char *text = knob->words[0];

	for (int i = 1; knob->words[i]; i++)
		text = psprintf("%s, %s", text, knob->words[i]);
	return text;
}

/* False: a change of that value is none, or the record says why there cannot be one. */
static bool
find_target(const char *subject, const char *value, Target *target, KaChangeRecord *record)
{
	int			error;

	target->knob = ka_knob_by_subject(subject, &target->node);
	if (!ka_machine_parse(target->knob, value, &target->asked))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for \"%s\": \"%s\"", subject, value),
				 target->knob->words ?
				 errhint("Available values: %s.", list_words(target->knob)) :
				 errhint("It takes a number%s%s.", target->knob->unit[0] ? " in " : "", target->knob->unit)));

	record->knob = (int32) target->knob->number;
	record->node = target->node;
	target->old = KA_NO_VALUE;
	target->operation = KA_OP_SET;
	ka_set_value_text(record->asked, target->knob, target->asked);
	if (target->knob->flags & KA_KF_ACTION)
		return true;

	error = ka_machine_read(target->knob, target->node, &target->old);
	if (error < 0)
	{
		record->state = KA_STATE_REFUSED;
		record->sqlstate = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
		ka_change_detail(record, error == -ENOENT ? "the running kernel does not have %s" : "%s cannot be read: %s",
						 subject, strerror(-error));
		return false;
	}
	ka_set_value_text(record->old, target->knob, target->old);
	ka_set_value_text(record->verified, target->knob, target->old);
	/* A reservation never takes pages away; a pool shrinks by being set. */
	if ((target->knob->flags & KA_KF_POOL) && target->asked > target->old)
	{
		target->operation = KA_OP_RESERVE;
		record->action = KA_ACTION_RESERVE;
	}
	return true;
}

void
ka_kernel_apply(const char *subject, const char *value, const KaApplyOptions *options, KaChangeRecord *record)
{
	Target		target;
	KaRequest	request;
	KaReply		reply;

	ka_change_init(record, KA_ACTION_SET, subject, options->who);
	if (!find_target(subject, value, &target, record) || ka_refused_by_trial(record))
		return;
	if (target.old == target.asked && !options->persist)
	{
		record->state = KA_STATE_UNCHANGED;
		ka_set_value_text(record->granted, target.knob, target.old);
		return;
	}
	if (options->dry_run)
	{
		apply_dry_run(&target, options, record);
		return;
	}
	if (!helper_knows(&target, record))
		return;

	ka_changes_begin(record);
	if (target.old == target.asked)
	{
		record->state = KA_STATE_UNCHANGED;
		ka_set_value_text(record->granted, target.knob, target.old);
	}
	else
	{
		request = make_request(&target, false);
		if (ka_ask_recorded(&request, &reply, record, target.knob, target.node))
		{
			ka_judge_answer(target.knob, target.node, target.old, &reply, record);
			report_reservation(&target, &reply, record);
			report_commit_limit(&reply, record);
			ka_warn_of_start(target.knob, record);
		}
		else
			ka_verify_knob(target.knob, target.node, record);
	}

	/*
	 * What was granted in part is asked for in full at the next boot, when
	 * memory is not fragmented.
	 */
	if (options->persist && (ka_apply_granted(record) || record->state == KA_STATE_PARTIAL))
		persist(&target, false, record);
	ka_changes_finish(record);
}
