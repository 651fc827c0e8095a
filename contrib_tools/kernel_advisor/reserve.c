/*
 * reserve.c: growing the pools as planned (plan.c), through the helper.
 *
 * A pool never shrinks: the helper leaves one that is larger alone.  With
 * several nodes each is a request, and a change in the journal, of its own.
 *
 * Locks: the journal's, while a helper is open in this process.
 */
#define _GNU_SOURCE 1

#include "reserve.h"

#include "tool.h"

int64_t
ka_part_before(const KaReservePart *part)
{
	return part->answered ? part->reply.old : KA_UNKNOWN;
}

int64_t
ka_part_after(const KaReservePart *part)
{
	if (!part->answered)
		return KA_UNKNOWN;
	return part->undone_by ? part->reply.old : part->reply.granted;
}

/* Answers to a request that was not carried out because of who asks, or how. */
static bool
is_trouble(uint32_t status)
{
	return (status >= KA_ST_DENIED && status <= KA_ST_NOT_POSSIBLE) || status == KA_ST_UNREADABLE;
}

static bool
ask(KaHelper *helper, KaReservePart *part, const KaReserveOptions *options, const char **problem)
{
	KaRequest	request = {
		.operation = options->estimate ? KA_OP_ESTIMATE : KA_OP_RESERVE,
		.node = part->node,
		.knob = part->knob->number,
		.value = part->asked,
		.flags = options->drop_caches ? KA_FLAG_DROP_CACHES : 0,
	};

	if (!options->estimate)
	{
		request.flags |= options->undo ? KA_FLAG_UNDO : 0;
		request.time_limit_ms = (uint32_t) options->time_limit_ms;
	}
	part->answered = ka_helper_call(helper, &request, &part->reply, problem);
	return part->answered;
}

/* Full when every pool has its pages; nothing when none grew.  What an estimate does not know it does not guess. */
static KaOutcome
outcome_of(const KaReservation *r)
{
	bool		full = true,
				grew = false,
				known = true;

	for (size_t i = 0; i < r->nparts; i++)
	{
		const KaReservePart *part = &r->parts[i];
		int64_t		before = ka_part_before(part);
		int64_t		after = ka_part_after(part);

		/* What the kernel could give counts for nothing where it may not be asked. */
		if (r->estimate && part->reply.status >= KA_ST_RATE)
			after = before;
		else if (r->estimate && after == KA_UNKNOWN)
			known = false;
		full = full && after >= part->asked;
		grew = grew || after > before;
	}
	return !known ? KA_OUTCOME_UNKNOWN : full ? KA_OUTCOME_FULL : grew ? KA_OUTCOME_PARTIAL : KA_OUTCOME_NONE;
}

/* All or nothing: a node that fell short takes the others with it. */
static bool
undo_parts(KaHelper *helper, KaReservation *r, const char **problem)
{
	for (size_t i = r->nparts; i-- > 0;)
	{
		KaReservePart *part = &r->parts[i];
		KaRequest	request = {.operation = KA_OP_ROLLBACK,.node = KA_ALL_NODES,.value = (int64_t) part->reply.change};
		KaReply		reply;

		if (!part->answered || part->reply.change == 0 || part->reply.granted <= part->reply.old)
			continue;
		if (!ka_helper_call(helper, &request, &reply, problem))
			return false;
		if (reply.status == KA_ST_OK || reply.status == KA_ST_UNCHANGED)
			part->undone_by = reply.change;
	}
	return true;
}

static bool
carry_out(KaHelper *helper, KaReservation *r, const KaReserveOptions *options, const char **problem)
{
	for (size_t i = 0; i < r->nparts; i++)
	{
		if (!ask(helper, &r->parts[i], options, problem))
			return false;
		if (is_trouble(r->parts[i].reply.status))
		{
			*problem = ka_status_text(r->parts[i].reply.status);
			return false;
		}
	}
	r->outcome = outcome_of(r);
	if (options->undo && !options->estimate && r->nparts > 1 && r->outcome == KA_OUTCOME_PARTIAL)
	{
		if (!undo_parts(helper, r, problem))
			return false;
		r->outcome = outcome_of(r);
	}
	return true;
}

int
ka_reserve(KaArena *arena, KaFacts *facts, const KaCluster *cluster, const KaReserveOptions *options)
{
	static const int exit_codes[] = {
		[KA_OUTCOME_FULL] = KA_EXIT_FULL,
		[KA_OUTCOME_PARTIAL] = KA_EXIT_PARTIAL,
		[KA_OUTCOME_NONE] = KA_EXIT_NONE,
		[KA_OUTCOME_UNKNOWN] = KA_EXIT_TROUBLE,
	};
	KaReservation r;
	KaHelper   *helper = NULL;
	const char *problem = NULL;
	bool		good;

	if (!ka_plan_reservation(arena, facts, cluster->pid != 0, options, &r, &problem))
		return ka_trouble(problem);
	if (r.nothing == NULL)
	{
		helper = ka_helper_open(arena, options->socket, options->estimate ? KA_HELPER_READ : KA_HELPER_CHANGE, &problem);
		if (helper == NULL)
			return ka_trouble(problem);
		ka_note(ka_helper_note(helper));
		r.helper = ka_helper_name(helper);
		good = carry_out(helper, &r, options, &problem);
		ka_helper_close(helper);
		if (!good)
			return ka_trouble(problem);
	}
	if (!ka_print_reservation(arena, &r, options))
		return ka_trouble("the result could not be written");
	return exit_codes[r.outcome];
}
