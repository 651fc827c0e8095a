/*
 * plan.c: how many pages a server needs, and in which pools.
 *
 * A server that is down has no page of the pool, so every page that is taken
 * belongs to others, and the pool must have as many more as this server needs:
 *
 *	asked = needed + max(taken, wanted by other programs)
 *
 * That is the target of the rule huge_pages.pool_short (view_hugepages.c).
 * With nodes, what is missing is shared out between them, and each node's pool
 * grows from what is taken there.
 *
 * Pure: facts in, numbers out.  Whether the memory is there, and what the
 * administrator allows, is the helper's to judge.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "reserve.h"

#include <inttypes.h>

#include "rules.h"

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
	int			node;

	if (v->facts->npools == 0)
		return "this kernel has no huge pages, or /sys/kernel/mm/hugepages cannot be read";
	if (v->page_size <= 0)
		return "the size of a huge page is not known: Hugepagesize is missing in /proc/meminfo";
	if (v->no_such_size)
		return ka_printf(arena, "the server asks for pages of %s, and this kernel has none of that size",
						 ka_human(arena, v->page_size));
	if (v->need_plan == KA_UNKNOWN)
		return "how many pages the server needs is not known: see the notes";
	if (ka_knob_by_subject(ka_pool_subject(v, v->page_size), &node) == NULL)
		return ka_printf(arena, "pages of %s are of no kernel that kernel_advisord knows", ka_human(arena, v->page_size));
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

bool
ka_plan_reservation(KaArena *arena, KaFacts *facts, bool running, const KaReserveOptions *options,
					KaReservation *r, const char **problem)
{
	KaView		view;

	*r = (KaReservation) {.page_bytes = KA_UNKNOWN,.estimate = options->estimate};
	*problem = NULL;
	/* Of a server that is down this is certain. */
	if (!running)
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
