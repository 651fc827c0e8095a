/*
 * rules_pools.c: the pools themselves: limits on them, idle pages, NUMA nodes.
 *
 * Locks: none.
 */
#include "rules.h"

/*
 * huge_pages.cgroup_limit
 *
 * .max counts faults: mmap succeeds, and the first touch beyond the limit
 * raises SIGBUS.  .rsvd.max counts reservations: mmap fails, `try' falls back
 * and `on' does not start.
 */

/* "2MB", as the cgroup's files are named. */
static const char *
size_name(const KaView *v, int64_t bytes)
{
	return bytes == KA_UNKNOWN ? "<size>" : ka_setting(v->arena, bytes);
}

/* The limit on the server's page size; after a SIGBUS with an unknown size, the smallest one. */
static const KaHugetlbLimit *
relevant_limit(const KaView *v)
{
	const KaHugetlbLimit *best = NULL;

	for (size_t i = 0; i < v->facts->nhugetlb; i++)
	{
		const KaHugetlbLimit *limit = &v->facts->hugetlb[i];

		if (v->page_size > 0 ? limit->size_bytes == v->page_size :
			v->failure == KA_FAIL_SIGBUS && limit->limit_bytes != KA_UNKNOWN &&
			(best == NULL || limit->limit_bytes < best->limit_bytes))
			best = limit;
	}
	return best;
}

/* Less than the need?  A limit that is not known limits nothing. */
static bool
is_below(int64_t limit_bytes, int64_t used_by_others, int64_t needed_bytes)
{
	return limit_bytes != KA_UNKNOWN && ka_sub(limit_bytes, used_by_others) < needed_bytes;
}

static void
recommend_limit(KaRows *rows, KaAdvice *row, const char *file, int64_t needed_bytes)
{
	const KaView *v = rows->view;

	if (needed_bytes == KA_UNKNOWN)
		return;
	ka_recommend(rows, row, "%lld", (long long) needed_bytes);
	if (v->container)
		ka_command(rows, row, "# in the container's resources, limits and requests:\nhugepages-%s: %lldMi",
				   v->page_size % GIB == 0 ? ka_printf(v->arena, "%lldGi", (long long) (v->page_size / GIB)) :
				   ka_printf(v->arena, "%lldMi", (long long) ka_ceil_div(v->page_size, MIB)),
				   (long long) ka_ceil_div(needed_bytes, MIB));
	else
		ka_command(rows, row, "echo %lld > \"/sys/fs/cgroup/$CGROUP/%s\"  # and in each of its ancestors",
				   (long long) needed_bytes, file);
}

/* No page may be had at all, or it is not known how many are needed: do without. */
static void
do_without(const KaView *v, KaRows *rows, KaSeverity severity, const KaHugetlbLimit *limit)
{
	KaAdvice   *row = ka_row(rows, severity, "huge_pages");

	ka_reason(rows, row, "Until the cgroup is granted huge pages, huge_pages = off starts the server on small ones (for initdb: --set huge_pages=off, 16 and later).");
	ka_set_guc(rows, row, "huge_pages", ka_text(v->facts, KA_PG_HUGE_PAGES), "off", KA_RESTART);
	KA_SAW(rows, row, KA_ERR_SIGNAL, KA_PG_HUGE_PAGES);
	if (limit)
	{
		ka_observed(rows, row, "limit_bytes", limit->limit_bytes);
		ka_observed(rows, row, "rsvd_limit_bytes", limit->rsvd_limit_bytes);
	}
}

static void
after_sigbus(const KaView *v, KaRows *rows, const KaHugetlbLimit *limit, int64_t needed, int64_t planned)
{
	bool		likely = v->container || limit != NULL;
	bool		suffices = limit && limit->limit_bytes != KA_UNKNOWN && planned != KA_UNKNOWN && limit->limit_bytes >= planned;
	KaSeverity	severity = suffices ? KA_WARNING : likely ? KA_CRITICAL : KA_INFO;
	int64_t		size = limit ? limit->size_bytes : v->page_size;
	const char *file = ka_printf(v->arena, "hugetlb.%s.max", size_name(v, size));
	KaAdvice   *row;

	row = ka_row(rows, severity, file);
	if (suffices)
	{
		ka_current(rows, row, "%lld", (long long) limit->limit_bytes);
		ka_reason(rows, row, "The server died of SIGBUS, perhaps at the touch of a huge page: its cgroup may have %s of them%s, which suffices for the %s that it needs unless others in the cgroup take the rest; look at hugetlb.*.current and hugetlb.*.events of each ancestor, and for memory errors in dmesg.",
				  ka_human(v->arena, limit->limit_bytes),
				  limit->at ? ka_printf(v->arena, " (set at %s)", limit->at) : "", ka_human(v->arena, needed));
	}
	else if (limit && limit->limit_bytes != KA_UNKNOWN)
	{
		ka_current(rows, row, "%lld", (long long) limit->limit_bytes);
		ka_reason(rows, row, "The server died of SIGBUS at the touch of a huge page: its cgroup may have %s of them%s%s, mmap does not check that, so a successful start proves nothing.",
				  ka_human(v->arena, limit->limit_bytes),
				  limit->at ? ka_printf(v->arena, " (set at %s)", limit->at) : "",
				  needed == KA_UNKNOWN ? "" : ka_printf(v->arena, " and the server needs %s", ka_human(v->arena, needed)));
	}
	else
		ka_reason(rows, row, likely ?
				  "SIGBUS in a container means that a huge page was mapped and the cgroup refused it: request enough of them, or set huge_pages = off; hugetlb.*.max of this cgroup and of every ancestor tells." :
				  "SIGBUS can be a huge page that the cgroup refused: look at hugetlb.*.max of its cgroup and every ancestor, at the pool of each NUMA node, and for memory errors in dmesg.");
	recommend_limit(rows, row, file, likely && !suffices ? planned : KA_UNKNOWN);
	KA_SAW(rows, row, KA_ERR_SIGNAL, KA_ERR_AFTER, KA_ERR_BYTES);
	ka_observed(rows, row, "limit_bytes", limit ? limit->limit_bytes : KA_UNKNOWN);
	ka_observed(rows, row, "rsvd_limit_bytes", limit ? limit->rsvd_limit_bytes : KA_UNKNOWN);
	ka_observed(rows, row, "usage_bytes", limit ? limit->usage_bytes : KA_UNKNOWN);
	if (needed != KA_UNKNOWN)
		ka_limit_named(rows, row, "needed_bytes", (double) needed);
	if (likely && (limit == NULL || limit->limit_bytes <= 0 || (v->down && planned == KA_UNKNOWN)))
		do_without(v, rows, severity, limit);
}

void
ka_rule_cgroup_limit(const KaView *v, KaRows *rows)
{
	const KaHugetlbLimit *limit = relevant_limit(v);
	int64_t		needed = v->need_least != KA_UNKNOWN && v->page_size > 0 ? ka_mul(v->need_least, v->page_size) : KA_UNKNOWN;
	int64_t		planned = needed != KA_UNKNOWN ? ka_mul(v->need_plan, v->page_size) : KA_UNKNOWN;
	int64_t		others;
	bool		refused,
				killed;
	KaSeverity	severity;
	const char *file;
	KaAdvice   *row;

	if (v->asks == KA_NO || !v->mmap || v->failure == KA_FAIL_SEGMENT)
		return;
	if (v->failure == KA_FAIL_SIGBUS)
	{
		after_sigbus(v, rows, limit, needed, planned);
		return;
	}
	if (limit == NULL || needed == KA_UNKNOWN)
		return;

	/* Its own pages are in the usage when it is on huge pages, perhaps when that is not known. */
	others = v->on_huge == KA_NO ? ka_or_zero(limit->usage_bytes) : 0;
	refused = is_below(limit->rsvd_limit_bytes, others, needed);
	killed = is_below(limit->limit_bytes, others, needed) && !refused;
	if (!refused && !killed)
		return;

	if (v->insists || (killed && v->on_huge == KA_YES) || (killed && v->asks == KA_YES && v->enough == KA_YES))
		severity = KA_CRITICAL;
	else if (v->enough == KA_NO)
		severity = KA_INFO;		/* no pages to be refused: it falls back before */
	else
		severity = KA_WARNING;
	file = ka_printf(v->arena, "hugetlb.%s.%s", size_name(v, v->page_size), refused ? "rsvd.max" : "max");
	row = ka_row(rows, severity, file);
	ka_current(rows, row, "%lld", (long long) (refused ? limit->rsvd_limit_bytes : limit->limit_bytes));
	ka_reason(rows, row, "The server needs %s%s of huge pages and its cgroup may %s %s%s%s: %s.",
			  v->shared_exact ? "" : "at least ", ka_human(v->arena, needed), refused ? "reserve" : "use",
			  ka_human(v->arena, refused ? limit->rsvd_limit_bytes : limit->limit_bytes),
			  limit->at ? ka_printf(v->arena, " (set at %s)", limit->at) : "",
			  others > 0 ? ka_printf(v->arena, ", of which others have %s", ka_human(v->arena, others)) : "",
			  refused ? (v->insists ? "it does not start" : "it falls back to small pages, however large the pool is") :
			  "it starts, and dies of SIGBUS at the first page beyond, so a successful start proves nothing");
	recommend_limit(rows, row, file, ka_add(planned, others));
	ka_observed(rows, row, "limit_bytes", limit->limit_bytes);
	ka_observed(rows, row, "rsvd_limit_bytes", limit->rsvd_limit_bytes);
	ka_observed(rows, row, "usage_bytes", limit->usage_bytes);
	ka_limit_named(rows, row, "needed_bytes", (double) needed);
	ka_saw_pool(rows, row);
	if (limit->limit_bytes == 0 && severity != KA_INFO)
		do_without(v, rows, severity, limit);
}

/*
 * huge_pages.pool_wasted
 */

/* Pages of this pool that this server will take: it asks, and is not on them yet. */
static int64_t
waiting_pages(const KaView *v, const KaPool *pool)
{
	if (pool->size_bytes != v->page_size || v->on_huge == KA_YES || v->need_plan == KA_UNKNOWN)
		return 0;
	if (v->asks == KA_YES)
		return v->on_huge == KA_MAYBE && v->pool_taken >= v->need_least ? 0 : v->need_plan;
	return v->worth == KA_YES ? v->need_plan : 0;
}

/* The server's own pool, large enough, worth it, and huge_pages is off: "use" says what to do. */
static bool
is_unused_by_choice(const KaView *v, const KaPool *pool)
{
	return pool->size_bytes == v->page_size && v->asks == KA_NO && v->supports && v->mmap &&
		v->worth == KA_YES && v->enough == KA_YES;
}

/* Idle only because the pool is too small, or for all that is known. */
static bool
is_short_or_unknown(const KaView *v, const KaPool *pool)
{
	if (pool == v->other_pool)
		return true;			/* huge_pages.page_size says how to use it */
	if (pool->size_bytes != v->page_size || v->on_huge == KA_YES)
		return false;
	/* A server that its cgroup refuses pages cannot tell for whom they are. */
	if (v->cgroup_short || v->failure == KA_FAIL_SIGBUS)
		return v->asks != KA_NO;
	if (v->enough == KA_NO)
		return v->asks != KA_NO || v->worth == KA_YES;
	return v->asks == KA_YES && v->need_plan == KA_UNKNOWN && v->mmap;
}

/* More than a margin, and worth a word. */
static bool
is_much(int64_t pages, int64_t of, int64_t size_bytes)
{
	return (double) pages >= KA_LIMIT(POOL_WASTED_PAGES) &&
		(double) ka_mul(pages, size_bytes) >= KA_LIMIT(POOL_WASTED_BYTES) &&
		(double) pages * 100 > (double) of * KA_LIMIT(POOL_WASTED_PCT);
}

/*
 * Several users share the pool, and these pages of it are for one that does not
 * take them now.  Surplus pages, made on demand, are the other way to have
 * them.  An offer with its price and no recommendation: no value.
 */
static void
offer_surplus(const KaView *v, KaRows *rows, const KaPool *pool, int64_t pages)
{
	bool		is_default = pool->size_bytes == v->default_size;
	const char *subject = is_default ? "vm.nr_overcommit_hugepages" :
		ka_printf(v->arena, "hugepages-%lldkB.nr_overcommit_hugepages", (long long) (pool->size_bytes / 1024));
	KaAdvice   *row;

	if (!v->may_set || pool->size_bytes >= GIB || ka_or_zero(pool->overcommit) >= pages)
		return;					/* no kernel finds 1 GB in one piece when it is asked for */
	row = ka_row(rows, KA_INFO, subject);
	ka_reason(rows, row, "%lld pages of %s are kept for other users of the pool and taken by nobody now. Where these run at times only, "
			  "%s = %lld with a pool smaller by as much costs no RAM in between; its price: they are made when they are asked for, "
			  "so a start may fail or fall back in fragmented memory.",
			  (long long) pages, ka_human(v->arena, pool->size_bytes), subject, (long long) pages);
	if (pool->overcommit != KA_UNKNOWN)
		ka_current(rows, row, "%lld", (long long) pool->overcommit);
	ka_observed(rows, row, "pages_kept", pages);
	ka_observed(rows, row, "bytes_kept", ka_mul(pages, pool->size_bytes));
	KA_LIMITS(rows, row, KA_T_POOL_WASTED_PCT, KA_T_POOL_WASTED_PAGES, KA_T_POOL_WASTED_BYTES);
}

void
ka_rule_pool_wasted(const KaView *v, KaRows *rows)
{
	for (size_t i = 0; i < v->facts->npools; i++)
	{
		const KaPool *pool = &v->facts->pools[i];
		int64_t		consumers = ka_consumers(v, pool->size_bytes);
		bool		unused_by_choice,
					unsure;
		int64_t		waiting,
					taken,
					own,
					busy,
					kept,
					idle,
					bytes;
		KaAdvice   *row;

		ka_interrupt(rows);
		if (pool->size_bytes <= 0 || pool->total == KA_UNKNOWN || pool->free == KA_UNKNOWN ||
			is_short_or_unknown(v, pool))
			continue;
		unused_by_choice = is_unused_by_choice(v, pool);
		waiting = unused_by_choice ? 0 : waiting_pages(v, pool);
		taken = ka_add(ka_sub(pool->total, pool->free), ka_or_zero(pool->reserved));
		own = pool->size_bytes == v->page_size && v->on_huge == KA_YES ? ka_max(v->need_plan, 0) : waiting;
		busy = ka_max(ka_add(taken, waiting), own);
		kept = ka_max(busy, ka_add(consumers, own));
		idle = ka_sub(pool->total, kept);
		bytes = ka_mul(idle, pool->size_bytes);
		if (is_much(ka_sub(ka_min(kept, pool->total), busy), busy, pool->size_bytes))
			offer_surplus(v, rows, pool, ka_sub(ka_min(kept, pool->total), busy));
		if (!is_much(idle, kept, pool->size_bytes))
			continue;

		/* Pages are taken, too few are left, and by whom they are taken is not known. */
		unsure = pool->size_bytes == v->page_size && v->asks != KA_NO && v->mmap && v->on_huge == KA_MAYBE &&
			v->need_least > ka_sub(pool->free, ka_or_zero(pool->reserved)) && v->pool_taken > 0;
		/* In a container it is the host's pool, and its other users are not seen. */
		row = ka_row(rows, (double) bytes >= KA_LIMIT(POOL_WASTED_WARN) && !unused_by_choice && !unsure && !v->container ?
					 KA_WARNING : KA_INFO,
					 ka_pool_subject(v, pool->size_bytes));
		ka_reason(rows, row, "%lld of %lld pages of %s are idle, reserved by nobody: %s of RAM that nothing else can use%s.",
				  (long long) idle, (long long) pool->total, ka_human(v->arena, pool->size_bytes), ka_human(v->arena, bytes),
				  unused_by_choice ? ", while this server could (huge_pages is off)" :
				  unsure ? ", and too few for this server if it is not on huge pages yet" : "");
		ka_set_pool(rows, row, pool->size_bytes, unused_by_choice || unsure ? KA_UNKNOWN :
					ka_min(kept, ka_sub(pool->total, ka_or_zero(pool->surplus))));
		ka_observed(rows, row, "pool_total", pool->total);
		ka_observed(rows, row, "pool_free", pool->free);
		ka_observed(rows, row, "pool_reserved", pool->reserved);
		ka_observed(rows, row, "idle_pages", idle);
		ka_observed(rows, row, "idle_bytes", bytes);
		KA_LIMITS(rows, row, KA_T_POOL_WASTED_PCT, KA_T_POOL_WASTED_PAGES, KA_T_POOL_WASTED_BYTES);
	}
}

/*
 * huge_pages.numa
 *
 * Equal parts, and the last page of them is accounted for: the values of all
 * nodes together make the pool as large as it is.  How large it should be is
 * for the other rules; where one of them wants another size, that comes first,
 * because it changes the split.
 */

/* More nodes than any machine with pools by node has: no row for each. */
#define SPLIT_NODES 64

/* How a pool is spread over the nodes that have memory. */
typedef struct Split
{
	const KaPool *pool;
	const KaNodePool *least,
			   *most;
	int64_t		nodes;
	int64_t		pages;			/* on all of them */
	bool		ordered;		/* each node once */
} Split;

/* Does this node count, as far as is known? */
static bool
takes_part(const KaView *v, const KaNodePool *node)
{
	const KaNode *memory = ka_node(v, node->node);

	return node->total != KA_UNKNOWN && (memory == NULL || memory->total_bytes != 0);
}

static Split
split_of(const KaView *v, const KaPool *pool)
{
	Split		split = {.pool = pool,.ordered = true};
	int64_t		last = KA_UNKNOWN;

	for (size_t i = 0; i < pool->nnodes; i++)
	{
		const KaNodePool *node = &pool->nodes[i];

		if (!takes_part(v, node))
			continue;
		split.ordered &= node->node > last;
		last = node->node;
		split.nodes++;
		split.pages = ka_add(split.pages, node->total);
		if (split.least == NULL || node->total < split.least->total)
			split.least = node;
		if (split.most == NULL || node->total > split.most->total)
			split.most = node;
	}
	return split;
}

/* Fewer than two pages a node cannot be spread any better. */
static bool
is_uneven(const Split *split)
{
	return split->nodes >= 2 && split->pool->size_bytes > 0 && split->pages / 2 >= split->nodes &&
		(double) split->most->total >= KA_LIMIT(NUMA_POOL_RATIO) * (double) split->least->total;
}

/* Part of the node at this position among those that count: the first ones take what does not divide. */
static int64_t
equal_part(const Split *split, int64_t position)
{
	return split->pages / split->nodes + (position < split->pages % split->nodes);
}

/* The first node that has no room for an equal part, or NULL. */
static const KaNode *
too_small(const KaView *v, const Split *split)
{
	int64_t		bytes = ka_mul(equal_part(split, 0), split->pool->size_bytes);

	for (size_t i = 0; i < split->pool->nnodes; i++)
	{
		const KaNode *memory = ka_node(v, split->pool->nodes[i].node);

		if (memory && memory->total_bytes > 0 && ka_percent(bytes, memory->total_bytes) > 100 - KA_LIMIT(RAM_LEFT_PCT))
			return memory;
	}
	return NULL;
}

static KaAdvice *
node_row(const KaView *v, KaRows *rows, const Split *split, const KaNodePool *node, int64_t pages)
{
	long long	kb = (long long) (split->pool->size_bytes / KIB);
	KaAdvice   *row = ka_row(rows, node->total == 0 ? KA_WARNING : KA_INFO,
							 ka_printf(v->arena, "node%lld.hugepages-%lldkB.nr_hugepages", (long long) node->node, kb));

	ka_current(rows, row, "%lld", (long long) node->total);
	if (pages != KA_UNKNOWN)
	{
		ka_recommend(rows, row, "%lld", (long long) pages);
		ka_host_command(rows, row, "echo %lld > /sys/devices/system/node/node%lld/hugepages/hugepages-%lldkB/nr_hugepages",
						(long long) pages, (long long) node->node, kb);
		/* Pages in use move with those who use them. */
		if (row && split->pool->size_bytes == v->page_size && v->on_huge == KA_YES)
			row->activation = KA_RESTART;
	}
	ka_observed(rows, row, "node_pages", node->total);
	ka_observed(rows, row, "least_pages", split->least->total);
	ka_observed(rows, row, "most_pages", split->most->total);
	ka_observed(rows, row, "all_pages", split->pages);
	ka_observed(rows, row, "nodes", split->nodes);
	ka_limit(rows, row, KA_T_NUMA_POOL_RATIO);
	return row;
}

static void
even_out(const KaView *v, KaRows *rows, const Split *split)
{
	const KaNode *small = too_small(v, split);
	bool		resized = ka_is_recommended(rows, ka_pool_subject(v, split->pool->size_bytes));
	bool		settable = v->may_set && !v->exhausted && !small && !resized && split->ordered &&
		split->nodes <= SPLIT_NODES;
	const char *size = ka_human(v->arena, split->pool->size_bytes);
	int64_t		position = 0;

	for (size_t i = 0; i < split->pool->nnodes; i++)
	{
		const KaNodePool *node = &split->pool->nodes[i];
		int64_t		part;
		KaAdvice   *row;

		if (!takes_part(v, node))
			continue;
		part = equal_part(split, position++);
		if (node != split->least && (!settable || node->total == part))
			continue;
		row = node_row(v, rows, split, node, settable ? part : KA_UNKNOWN);
		if (node != split->least)
			ka_reason(rows, row, "An equal part of the %lld pages of %s is %lld for node %lld: together these values leave the pool as large as it is, so take from the nodes with too many first.",
					  (long long) split->pages, size, (long long) part, (long long) node->node);
		else
			ka_reason(rows, row, "The pool of %s pages is uneven: node %lld has %lld and node %lld has %lld of them; what the one lacks is read from the other's memory, and only the per-node files under /sys keep such a split%s.",
					  size, (long long) node->node, (long long) node->total,
					  (long long) split->most->node, (long long) split->most->total,
					  resized ? "; set the size of the pool first, which is spread anew" :
					  small ? ka_printf(v->arena, "; node %lld has no room for an equal part", (long long) small->node) : "");
	}
}

void
ka_rule_pool_numa(const KaView *v, KaRows *rows)
{
	for (size_t i = 0; i < v->facts->npools; i++)
	{
		Split		split = split_of(v, &v->facts->pools[i]);

		ka_interrupt(rows);
		if (is_uneven(&split))
			even_out(v, rows, &split);
	}
}
