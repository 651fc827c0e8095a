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

#include "miscadmin.h"

#include "apply.h"
#include "guc.h"
#include "helper.h"
#include "machine.h"
#include "own_files.h"

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

/*
 * ----------------------------------------------------------------
 * What the record says
 * ----------------------------------------------------------------
 */

static void
append_detail(KaChangeRecord *record, const char *text)
{
	if (text == NULL)
		return;
	if (record->detail[0] == '\0')
		KA_CHANGE_SET(record, detail, text);
	else
		ka_change_detail(record, "%s; %s", record->detail, text);
}

static void
set_value(char *field, const KaKnob *knob, int64 value)
{
	ka_change_text(field, KA_CHANGE_VALUE, value < 0 ? NULL : ka_machine_value_text(knob, value));
}

/* Reads the kernel; KA_NO_VALUE when it cannot be read, or there is nothing to read. */
static int64
verify(const KaKnob *knob, int node, KaChangeRecord *record)
{
	int64		now = KA_NO_VALUE;

	if (!(knob->flags & KA_KF_ACTION) && ka_machine_read(knob, node, &now) < 0)
		now = KA_NO_VALUE;
	set_value(record->verified, knob, now);
	return now;
}

static void
no_answer(KaChangeRecord *record, const KaHelperFailure *failure)
{
	record->state = ka_helper_outcome_unknown(failure->trouble) && record->change_id != 0 ?
		KA_STATE_UNKNOWN : KA_STATE_FAILED;
	record->sqlstate = ka_helper_failure_sqlstate(failure->trouble);
	append_detail(record, failure->reason);
	KA_CHANGE_SET(record, hint, failure->hint);
}

/* "outside the bounds: 4096 to 1234 kB" */
static const char *
status_detail(const KaKnob *knob, const KaReply *reply)
{
	const char *text = ka_status_text(reply->status);

	if (reply->status == KA_ST_RANGE && reply->min >= 0)
	{
		const char *min = ka_machine_value_text(knob, reply->min);
		const char *max = ka_machine_value_text(knob, reply->max);

		if (min && max)
			text = psprintf("%s: %s to %s", text, min, max);
	}
	if (reply->status == KA_ST_FOREIGN_FILE && reply->line > 0)
		text = psprintf("%s: line %u", text, reply->line);
	if (reply->error != 0)
		text = psprintf("%s: %s", text, strerror(reply->error));
	return text;
}

/* The helper, its journal or its files failed; else it, or the kernel, said no. */
static KaChangeState
state_of_refusal(uint32 status)
{
	return status == KA_ST_DENIED || ka_helper_status_sqlstate(status) == ERRCODE_SYSTEM_ERROR ?
		KA_STATE_FAILED : KA_STATE_REFUSED;
}

static void
refused(const KaKnob *knob, const KaReply *reply, KaChangeRecord *record)
{
	record->state = state_of_refusal(reply->status);
	record->sqlstate = ka_helper_status_sqlstate(reply->status);
	append_detail(record, status_detail(knob, reply));
	KA_CHANGE_SET(record, hint, ka_helper_status_hint(reply->status));
}

static bool
is_done(uint32 status)
{
	return status == KA_ST_OK || status == KA_ST_PARTIAL || status == KA_ST_UNDONE || status == KA_ST_UNCHANGED;
}

/* What a reservation came to, and what is left. */
static void
report_reservation(const Target *target, const KaReply *reply, KaChangeRecord *record)
{
	if (target->operation != KA_OP_RESERVE)
		return;
	append_detail(record, psprintf("granted " INT64_FORMAT " of " INT64_FORMAT " pages, at most " INT64_FORMAT ", in %u ms; rounds: %u",
								   reply->granted, reply->asked, reply->reached, reply->elapsed_ms, reply->rounds));
	if (reply->free_costly_blocks >= 0)
		append_detail(record, psprintf(INT64_FORMAT " free blocks of order 4 and more are left", reply->free_costly_blocks));
	if (reply->granted < reply->asked)
		KA_CHANGE_SET(record, hint,
					  "Memory is fragmented or in use: try again after other programs ended, or reboot with the value that is kept for the next boot.");
}

static void
report_commit_limit(const KaReply *reply, KaChangeRecord *record)
{
	if (reply->commit_limit_bytes >= 0)
		append_detail(record, psprintf("with vm.overcommit_memory = 2, CommitLimit is " INT64_FORMAT " bytes with this value",
									   reply->commit_limit_bytes));
}

/* A pool that is smaller now than what huge_pages = on needs. */
static void
warn_of_start(const KaKnob *knob, KaChangeRecord *record)
{
	const char *huge_pages = ka_setting_now("huge_pages");
	KaPoolProof proof;

	if (!(knob->flags & KA_KF_POOL) || huge_pages == NULL || strcmp(huge_pages, "on") != 0)
		return;
	ka_machine_prove_pool(&proof);
	if (!proof.proven)
		KA_CHANGE_SET(record, hint,
					  psprintf("huge_pages is on, and the server will not start again: %s.", proof.problem));
}

/* The answer to set, reserve or rollback, against what the kernel shows. */
static void
judge(const KaKnob *knob, int node, int64 old, const KaReply *reply, KaChangeRecord *record)
{
	int64		now = verify(knob, node, record);
	bool		readable = !(knob->flags & KA_KF_ACTION);

	record->status = reply->status;
	record->helper_change = reply->change;
	record->helper_at_us = reply->at_us;
	set_value(record->granted, knob, reply->granted);

	if (readable && is_done(reply->status) && now != reply->granted)
	{
		record->state = KA_STATE_FAILED;
		record->sqlstate = ERRCODE_SYSTEM_ERROR;
		append_detail(record, psprintf("kernel_advisord says that %s is %s now, and the kernel shows %s",
									   record->subject, record->granted[0] ? record->granted : "unknown",
									   now == KA_NO_VALUE ? "nothing" : record->verified));
		KA_CHANGE_SET(record, hint,
					  "Something else changed the value, or kernel_advisord works on another machine or container.");
	}
	else if (reply->status == KA_ST_UNCHANGED)
		record->state = KA_STATE_UNCHANGED;
	else if (reply->status == KA_ST_OK)
		record->state = KA_STATE_APPLIED;
	else if (is_done(reply->status) || (readable && now != KA_NO_VALUE && now != old))
	{
		record->state = now == old ? KA_STATE_REFUSED : KA_STATE_PARTIAL;
		record->sqlstate = now == old ? ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE : 0;
		append_detail(record, status_detail(knob, reply));
	}
	else
		refused(knob, reply, record);
}

/*
 * ----------------------------------------------------------------
 * Asking
 * ----------------------------------------------------------------
 */

/* False: the record says why there is no answer. */
static bool
ask(const KaRequest *request, KaReply *reply, KaChangeRecord *record)
{
	KaHelperFailure failure;

	if (ka_helper_call(request, reply, ka_helper_timeout, &failure))
		return true;
	no_answer(record, &failure);
	return false;
}

/*
 * The same for a change that is in the log: an error that comes while we wait,
 * a cancel above all, is written into the record before it goes on.
 */
static bool
ask_recorded(const KaRequest *request, KaReply *reply, KaChangeRecord *record, const KaKnob *knob, int node)
{
	volatile bool answered = false;
	volatile KaChangeState state = record->state;

	PG_TRY();
	{
		answered = ask(request, reply, record);
	}
	PG_CATCH();
	{
		/* Once the kernel's value is settled only the file for the next boot is open. */
		record->state = state == KA_STATE_IN_PROGRESS ? KA_STATE_UNKNOWN : state;
		append_detail(record, psprintf("cancelled while kernel_advisord was asked to %s",
									   ka_operation_name(request->operation)));
		if (record->state == KA_STATE_UNKNOWN)
			KA_CHANGE_SET(record, hint, "The column \"verified\" shows the value; set the one that you want with apply().");
		verify(knob, node, record);
		ka_changes_finish(record);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return answered;
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
	if (!ask(&request, &reply, record))
		return false;
	record->status = reply.status;
	if (reply.status == KA_ST_OK)
		return true;
	refused(target->knob, &reply, record);
	return false;
}

/*
 * ----------------------------------------------------------------
 * The next boot
 * ----------------------------------------------------------------
 */

static const char *
own_file(const KaKnob *knob)
{
	return (knob->flags & KA_KF_SYSFS) ? KA_TMPFILES_DIRECTORY "/" KA_TMPFILES_FILE :
		KA_SYSCTL_DIRECTORY "/" KA_SYSCTL_FILE;
}

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

static void
take_boot(const KaReply *reply, KaChangeRecord *record)
{
	record->boot_winner = reply->boot_winner;
	record->boot_value = reply->boot_value;
	KA_CHANGE_SET(record, boot_file, reply->boot_file);
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
	if (dry_run ? !ask(&request, &reply, record) :
		!ask_recorded(&request, &reply, record, target->knob, target->node))
	{
		/* The kernel's value is settled, whatever became of the file. */
		if (!unchanged)
		{
			record->state = state;
			record->sqlstate = sqlstate;
		}
		append_detail(record, "whether the value is kept for the next boot is not known");
		return;
	}
	if (reply.status == KA_ST_OK || reply.status == KA_ST_UNCHANGED)
	{
		KA_CHANGE_SET(record, persisted_in, own_file(target->knob));
		take_boot(&reply, record);
		if (reply.status == KA_ST_OK && !dry_run)
		{
			record->helper_persist = reply.change;
			record->helper_persist_at_us = reply.at_us;
			if (unchanged)
			{
				record->state = KA_STATE_APPLIED;
				append_detail(record, "the value was there already, and is now kept for the next boot");
			}
		}
		if (reply.boot_winner == KA_BOOT_OTHER || reply.boot_winner == KA_BOOT_CMDLINE)
			KA_CHANGE_SET(record, hint,
						  psprintf("%s wins over %s at the next boot: change the value there.",
								   reply.boot_winner == KA_BOOT_CMDLINE ? "The kernel command line" : reply.boot_file,
								   own_file(target->knob)));
		return;
	}

	if (reply.status == KA_ST_BOOT_PARAMETER)
	{
		const char *parameter = boot_parameter(target);

		append_detail(record, parameter ? psprintf("for the next boot, add to the kernel command line: %s", parameter) :
					  ka_status_text(reply.status));
		return;
	}
	append_detail(record, psprintf("not kept for the next boot: %s", status_detail(target->knob, &reply)));
	if (unchanged)
	{
		record->state = state_of_refusal(reply.status);
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
dry_run(const Target *target, const KaApplyOptions *options, KaChangeRecord *record)
{
	KaRequest	request = make_request(target, true);
	KaReply		reply;

	if (!ask(&request, &reply, record))
		return;
	record->status = reply.status;
	if (!is_done(reply.status))
	{
		refused(target->knob, &reply, record);
		report_commit_limit(&reply, record);
		return;
	}
	record->state = KA_STATE_DRY_RUN;
	if (target->operation == KA_OP_RESERVE)
	{
		set_value(record->granted, target->knob, reply.granted);
		if (reply.pages_free >= 0)
			append_detail(record, psprintf("free blocks of this size now: " INT64_FORMAT " pages; compaction could make " INT64_FORMAT " more",
										   reply.pages_free, Max(reply.pages_compaction, 0)));
		if (reply.state & KA_REPLY_BOOT_SAFER)
			KA_CHANGE_SET(record, hint, "The boot is the safer moment for this reservation.");
	}
	else
		set_value(record->granted, target->knob, target->asked);
	report_commit_limit(&reply, record);
	if (options->persist)
		persist(target, true, record);
	if (record->state == KA_STATE_DRY_RUN)
		append_detail(record, "nothing was changed");
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
	set_value(record->asked, target->knob, target->asked);
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
	set_value(record->old, target->knob, target->old);
	set_value(record->verified, target->knob, target->old);
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
	if (!find_target(subject, value, &target, record))
		return;
	if (target.old == target.asked && !options->persist)
	{
		record->state = KA_STATE_UNCHANGED;
		set_value(record->granted, target.knob, target.old);
		return;
	}
	if (options->dry_run)
	{
		dry_run(&target, options, record);
		return;
	}
	if (!helper_knows(&target, record))
		return;

	ka_changes_begin(record);
	if (target.old == target.asked)
	{
		record->state = KA_STATE_UNCHANGED;
		set_value(record->granted, target.knob, target.old);
	}
	else
	{
		request = make_request(&target, false);
		if (ask_recorded(&request, &reply, record, target.knob, target.node))
		{
			judge(target.knob, target.node, target.old, &reply, record);
			report_reservation(&target, &reply, record);
			report_commit_limit(&reply, record);
			warn_of_start(target.knob, record);
		}
		else
			verify(target.knob, target.node, record);
	}

	/*
	 * What was granted in part is asked for in full at the next boot, when
	 * memory is not fragmented.
	 */
	if (options->persist && (ka_apply_granted(record) || record->state == KA_STATE_PARTIAL))
		persist(&target, false, record);
	ka_changes_finish(record);
}

/*
 * ----------------------------------------------------------------
 * Rolling back
 * ----------------------------------------------------------------
 */

/* Is the helper's change of that number the one that we made?  False: the record says why not. */
static bool
journal_knows(const KaChangeRecord *change, uint64 id, int64 at_us, KaChangeRecord *record)
{
	KaRequest	request = ka_helper_request(KA_OP_LIST, NULL, KA_ALL_NODES, (int64) id);
	KaReply		reply;

	if (id == 0)
		return true;
	if (!ask(&request, &reply, record))
		return false;
	if (reply.status == KA_ST_DENIED)
	{
		refused(ka_knob_find((uint32) change->knob), &reply, record);
		return false;
	}
	if (reply.change == id && reply.knob == (uint32) change->knob && reply.node == change->node && reply.at_us == at_us)
		return true;
	record->state = KA_STATE_REFUSED;
	record->sqlstate = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
	ka_change_detail(record, "the journal of kernel_advisord does not have change " INT64_FORMAT " any more", change->change_id);
	KA_CHANGE_SET(record, hint, psprintf("Set the old value: SELECT * FROM kernel_advisor.apply('%s', '%s').",
										 change->subject, change->old));
	return false;
}

/* The file for the next boot goes back as well; a failure of that is told, and no more. */
static void
rollback_persist(const KaChangeRecord *change, const KaKnob *knob, bool dry, KaChangeRecord *record)
{
	KaRequest	request = ka_helper_request(KA_OP_ROLLBACK, NULL, KA_ALL_NODES, (int64) change->helper_persist);
	KaChangeState state = record->state;
	int			sqlstate = record->sqlstate;
	KaReply		reply;

	if (dry)
		request.flags |= KA_FLAG_DRY_RUN;
	if (dry ? !ask(&request, &reply, record) : !ask_recorded(&request, &reply, record, knob, change->node))
	{
		record->state = state;
		record->sqlstate = sqlstate;
		append_detail(record, "whether the value for the next boot was taken back is not known");
		return;
	}
	if (reply.status == KA_ST_OK || reply.status == KA_ST_UNCHANGED)
	{
		take_boot(&reply, record);
		if (!dry)
		{
			record->helper_persist = reply.change;
			record->helper_persist_at_us = reply.at_us;
		}
		if (state == KA_STATE_UNCHANGED && reply.status == KA_ST_OK)
			record->state = KA_STATE_APPLIED;
		return;
	}
	if (change->helper_change == 0)
	{
		refused(knob, &reply, record);	/* there was nothing else to take back */
		return;
	}
	append_detail(record, psprintf("%s was not restored: %s", own_file(knob), status_detail(knob, &reply)));
	KA_CHANGE_SET(record, hint, ka_helper_status_hint(reply.status));
}

void
ka_kernel_rollback(const KaChangeRecord *change, const KaApplyOptions *options, KaChangeRecord *record)
{
	const KaKnob *knob = ka_knob_find((uint32) change->knob);
	KaRequest	request = ka_helper_request(KA_OP_ROLLBACK, NULL, KA_ALL_NODES, (int64) change->helper_change);
	int64		old;
	KaReply		reply;

	record->knob = change->knob;
	record->node = change->node;
	old = verify(knob, change->node, record);
	KA_CHANGE_SET(record, old, record->verified);
	KA_CHANGE_SET(record, asked, change->old);

	if (!journal_knows(change, change->helper_change, change->helper_at_us, record) ||
		!journal_knows(change, change->helper_persist, change->helper_persist_at_us, record))
		return;

	if (options->dry_run)
		request.flags |= KA_FLAG_DRY_RUN;
	else
		ka_changes_begin(record);

	if (change->helper_change == 0)
		record->state = KA_STATE_UNCHANGED; /* only the file was changed */
	else if (options->dry_run ? ask(&request, &reply, record) :
			 ask_recorded(&request, &reply, record, knob, change->node))
	{
		if (!options->dry_run)
		{
			judge(knob, change->node, old, &reply, record);
			warn_of_start(knob, record);
		}
		else if (!is_done(reply.status))
			refused(knob, &reply, record);
		else
			record->state = reply.status == KA_ST_UNCHANGED ? KA_STATE_UNCHANGED : KA_STATE_DRY_RUN;
	}
	else
		verify(knob, change->node, record);

	if (change->helper_persist != 0 && (ka_apply_granted(record) || record->state == KA_STATE_DRY_RUN))
		rollback_persist(change, knob, options->dry_run, record);
	if (options->dry_run)
	{
		if (ka_apply_granted(record))
			record->state = KA_STATE_DRY_RUN;
		return;
	}
	ka_changes_finish(record);
}
