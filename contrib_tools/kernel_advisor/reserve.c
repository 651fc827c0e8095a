/*
 * reserve.c: how many pages a server needs, and growing the pool to it.
 *
 * A server that is down has no page of the pool, so every page that is taken
 * belongs to others, and the pool must have as many more as this server needs:
 *
 *	asked = needed + max(taken, wanted by other programs)
 *
 * That is the target of the rule huge_pages.pool_short (view_hugepages.c).
 * With nodes, what is missing is shared out between them, and each node's pool
 * grows from what is taken there.  A pool never shrinks: the helper leaves one
 * that is larger alone.
 *
 * The memory that is really there, and what the administrator allows, are the
 * helper's to judge.
 *
 * Locks: the journal's, while a helper is open in this process.
 */
#define _GNU_SOURCE 1

#include "reserve.h"

#include <inttypes.h>
#include <string.h>

#include "rules.h"
#include "tool.h"

/*
 * The need
 */

/* Why this server takes no page from the pool, or NULL. */
static const char *
why_nothing(const KaView *v)
{
	if (v->asks == KA_NO)
		return v->supports ? "huge_pages is off: the server asks for no huge page" :
			"this release of PostgreSQL has no huge pages";
	if (!v->mmap)
		return "shared_memory_type is not mmap: a System V segment never uses the pool";
	if (v->on_huge == KA_YES)
		return "the server is running on huge pages already";
	return NULL;
}

/* Why the need cannot be told, or NULL. */
static const char *
why_unknown(KaArena *arena, const KaView *v)
{
	if (v->facts->npools == 0)
		return "this kernel has no huge pages, or /sys/kernel/mm/hugepages cannot be read";
	if (v->page_size <= 0)
		return "the size of a huge page is not known: Hugepagesize is missing in /proc/meminfo";
	if (v->no_such_size)
		return ka_printf(arena, "the server asks for pages of %s, and this kernel has none of that size",
						 ka_human(arena, v->page_size));
	if (v->need_plan == KA_UNKNOWN)
		return "how many pages the server needs is not known: see the notes";
	if (!v->pool_known || v->pool_taken == KA_UNKNOWN)
		return "the state of the pool cannot be read below /sys/kernel/mm/hugepages";
	return NULL;
}

static KaReservePart *
add_part(KaArena *arena, KaReservation *r, const char *subject, int64_t asked)
{
	KaReservePart *parts = ka_append(arena, r->parts, &r->nparts, sizeof(*parts));
	KaReservePart *part;

	if (parts == NULL || subject == NULL)
		return NULL;
	r->parts = parts;
	part = &parts[r->nparts - 1];
	part->subject = subject;
	part->asked = asked;
	part->knob = ka_knob_by_subject(subject, &part->node);
	return part;
}

static const KaNodePool *
find_node(const KaPool *pool, int64_t node)
{
	for (size_t i = 0; pool && i < pool->nnodes; i++)
	{
		if (pool->nodes[i].node == node)
			return &pool->nodes[i];
	}
	return NULL;
}

/* What is missing, in equal shares; the first nodes take the pages that remain. */
static bool
plan_nodes(KaArena *arena, KaReservation *r, const KaView *v, const KaReserveOptions *options, const char **problem)
{
	const KaPool *pool = ka_pool(v->facts, v->page_size);
	/* Taken pages that are only promised yet are on no node. */
	int64_t		missing = ka_sub(v->target, ka_sub(v->pool_total, v->pool_free));
	int64_t		n = (int64_t) options->nnodes;

	for (int64_t i = 0; i < n; i++)
	{
		const KaNodePool *node = find_node(pool, options->nodes[i]);
		int64_t		taken;

		if (node == NULL || node->total == KA_UNKNOWN || node->free == KA_UNKNOWN)
		{
			*problem = ka_printf(arena, "--node %" PRId64 ": this machine has no such memory node with pages of %s",
								 options->nodes[i], ka_human(arena, v->page_size));
			return false;
		}
		taken = ka_sub(node->total, node->free);
		if (add_part(arena, r, ka_printf(arena, "node%" PRId64 ".hugepages-%" PRId64 "kB.nr_hugepages",
										 node->node, v->page_size / KIB),
					 ka_add(taken, missing / n + (i < missing % n))) == NULL)
			return false;
	}
	return true;
}

/* False: *problem, or no memory. */
static bool
plan(KaArena *arena, KaFacts *facts, const KaCluster *cluster, const KaReserveOptions *options,
	 KaReservation *r, const char **problem)
{
	KaView		view;

	/* Of a server that is down this is certain. */
	if (cluster->pid == 0)
		ka_set_text(facts, KA_PG_HUGE_PAGES_STATUS, "off");
	ka_view_init(&view, facts, arena);
	r->page_bytes = view.page_size;
	r->nothing = why_nothing(&view);
	if (r->nothing != NULL)
		return true;
	*problem = why_unknown(arena, &view);
	if (*problem != NULL)
		return false;

	r->needed = view.need_plan;
	r->need_estimated = view.need_estimated;
	r->others = ka_sub(view.target, view.need_plan);
	if (options->nnodes > 0)
		return plan_nodes(arena, r, &view, options, problem);
	return add_part(arena, r, ka_pool_subject(&view, view.page_size), view.target) != NULL;
}

/*
 * The reservation
 */

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
	KaReservation r = {.page_bytes = KA_UNKNOWN,.estimate = options->estimate};
	KaHelper   *helper = NULL;
	const char *problem = NULL;
	bool		good;

	if (!plan(arena, facts, cluster, options, &r, &problem))
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
