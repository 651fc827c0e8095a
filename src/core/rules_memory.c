/*
 * rules_memory.c: does it fit at all?  Limits, overcommit, exhaustion, page
 * tables, NUMA nodes, and preemption of backends that fault.
 *
 * Locks: none.
 */
#include "rules.h"

#include <math.h>

/*
 * memory.limit
 */

/* shared_buffers that fits: a share of RAM, in whole steps of 64 MB (or less on tiny machines). */
static const char *
fitting_buffers(const KaView *v, int64_t ceiling)
{
	int64_t		bytes = (int64_t) ((double) ceiling * KA_LIMIT(SHARED_BUFFERS_PCT) / 100);
	int64_t		step = bytes >= 64 * MIB ? 64 * MIB : MIB;

	return ka_setting(v->arena, ka_max(bytes / step * step, MIB));
}

static void
does_not_fit(const KaView *v, KaRows *rows, int64_t ceiling, double left_pct, KaThreshold threshold,
			 const char *what, KaFact fact)
{
	double		share = ka_percent(v->shared, ceiling);
	bool		start_failed = v->failure == KA_FAIL_SEGMENT;
	KaAdvice   *row;

	if (share <= 100 - left_pct)
		return;
	row = ka_row(rows, start_failed && share > 100 ? KA_CRITICAL : KA_WARNING, "shared_buffers");
	ka_reason(rows, row, "%s%s of shared memory%s %s %s of %s%s: make shared_buffers smaller%s.",
			  v->shared_exact ? "" : "More than ", ka_human(v->arena, v->shared),
			  v->on_huge == KA_MAYBE ? " (if it is on small pages)" : "",
			  share > 100 ? "do not fit in the" : "leave too little of the",
			  ka_human(v->arena, ceiling), what,
			  fact == KA_MEM_TOTAL && v->pools_bytes > 0 ?
			  ka_printf(v->arena, " that the huge page pools leave (%s are in pools)", ka_human(v->arena, v->pools_bytes)) : "",
			  fact == KA_CGROUP_MEMORY_LIMIT ? " or raise the limit" : "");
	ka_set_guc(rows, row, "shared_buffers",
			   ka_known(v->facts, KA_PG_SHARED_BUFFERS) ? ka_setting(v->arena, ka_int(v->facts, KA_PG_SHARED_BUFFERS)) : NULL,
			   fitting_buffers(v, ceiling), KA_RESTART);
	ka_observed(rows, row, "shared_memory_bytes", v->shared);
	ka_saw(rows, row, fact);
	ka_observed(rows, row, "pools_bytes", v->pools_bytes);
	ka_saw(rows, row, KA_ERR_BYTES);
	ka_limit(rows, row, threshold);
}

void
ka_rule_memory_limit(const KaView *v, KaRows *rows)
{
	int64_t		limit = ka_int(v->facts, KA_CGROUP_MEMORY_LIMIT);
	bool		on_huge = v->on_huge == KA_YES || v->failure == KA_FAIL_HUGE || v->failure == KA_FAIL_SIGBUS;

	if (v->shared <= 0)
		return;

	/* Pages of a pool are not charged to the cgroup, and are no longer RAM for others. */
	if (limit > 0 && !on_huge && !v->insists && (v->total <= 0 || limit < v->total))
		does_not_fit(v, rows, limit, KA_LIMIT(CGROUP_LEFT_PCT), KA_T_CGROUP_LEFT_PCT,
					 "the cgroup's limit", KA_CGROUP_MEMORY_LIMIT);
	else if (v->total > 0)
		does_not_fit(v, rows, on_huge || v->insists || v->on_huge == KA_MAYBE ? v->total : ka_sub(v->total, v->pools_bytes),
					 KA_LIMIT(RAM_LEFT_PCT), KA_T_RAM_LEFT_PCT, "RAM", KA_MEM_TOTAL);
}

/*
 * memory.overcommit
 *
 * Mode 2: CommitLimit = (RAM - hugetlb) * ratio / 100 + swap, or kbytes + swap.
 * Pages of a pool are neither in the limit nor in Committed_AS; shared memory
 * on small pages is.
 */
typedef struct Commit
{
	int64_t		limit,			/* B, or KA_UNKNOWN */
				committed,		/* B, or KA_UNKNOWN */
				ratio,			/* %, or KA_UNKNOWN */
				kbytes,			/* 0: the ratio counts */
				swap;			/* B */
	int64_t		more_pool;		/* B that are still to be reserved */
	int64_t		asked;			/* B that a failed start asked for */
} Commit;

static Commit
commit_of(const KaView *v)
{
	const KaFacts *f = v->facts;
	Commit		c;

	c.limit = ka_int(f, KA_MEM_COMMIT_LIMIT);
	c.committed = ka_int(f, KA_MEM_COMMITTED);
	c.ratio = ka_int(f, KA_SYSCTL_OVERCOMMIT_RATIO);
	c.kbytes = ka_or_zero(ka_int(f, KA_SYSCTL_OVERCOMMIT_KBYTES));
	c.swap = ka_or_zero(ka_int(f, KA_MEM_SWAP_TOTAL));
	if (c.limit == KA_UNKNOWN && ka_known(f, KA_MEM_SWAP_TOTAL))
	{
		if (c.kbytes > 0)
			c.limit = ka_add(ka_mul(c.kbytes, KIB), c.swap);
		else if (c.ratio != KA_UNKNOWN && v->total > 0)
			c.limit = ka_add(ka_round((double) ka_sub(v->total, v->pools_bytes) * (double) c.ratio / 100), c.swap);
	}
	c.more_pool = !v->reserve ? 0 :
		v->target != KA_UNKNOWN && v->page_size > 0 ?
		ka_mul(ka_sub(v->target, ka_or_zero(v->pool_total)), v->page_size) : ka_or_zero(v->shared_plan);
	c.asked = v->failure == KA_FAIL_SEGMENT ? ka_or_zero(ka_int(f, KA_ERR_BYTES)) : 0;
	return c;
}

/* What will be committed, and the limit, once the pool is reserved. */
static void
commit_after(const KaView *v, const Commit *c, int64_t *committed, int64_t *limit)
{
	*committed = ka_add(c->committed, c->asked);
	*limit = c->limit;
	if (c->more_pool == 0)
		return;
	if (v->running || ka_is(v->facts, KA_PG_HUGE_PAGES_STATUS, "off"))
		*committed = ka_sub(*committed, v->shared);
	if (c->kbytes == 0 && c->ratio != KA_UNKNOWN)
		*limit = ka_sub(*limit, ka_round((double) c->more_pool * (double) c->ratio / 100));
}

/* Room for "committed": as the knob in use takes it, or KA_UNKNOWN. */
static int64_t
sufficient_value(const KaView *v, const Commit *c, int64_t committed)
{
	int64_t		ram = ka_sub(v->total, ka_add(v->pools_bytes, c->more_pool));
	double		wanted = (double) committed * (1 + KA_LIMIT(COMMIT_ROOM_PCT) / 100) - (double) c->swap;

	if (c->kbytes > 0)
		return ka_round(ceil(wanted / (double) KIB));
	return v->total <= 0 || ram == 0 ? KA_UNKNOWN : ka_round(ceil(wanted * 100 / (double) ram));
}

static void
saw_commit(KaRows *rows, KaAdvice *row, const Commit *c, int64_t committed, int64_t limit)
{
	KA_SAW(rows, row, KA_SYSCTL_OVERCOMMIT_MEMORY, KA_SYSCTL_OVERCOMMIT_RATIO, KA_SYSCTL_OVERCOMMIT_KBYTES,
		   KA_MEM_COMMITTED, KA_MEM_SWAP_TOTAL, KA_MEM_TOTAL);
	ka_observed(rows, row, "pools_bytes", rows->view->pools_bytes);
	ka_observed(rows, row, "commit_limit_bytes", c->limit);
	if (c->more_pool > 0)
	{
		ka_observed(rows, row, "pool_to_reserve_bytes", c->more_pool);
		ka_observed(rows, row, "committed_bytes_after", committed);
		ka_observed(rows, row, "commit_limit_bytes_after", limit);
	}
	KA_LIMITS(rows, row, KA_T_COMMIT_PCT, KA_T_COMMIT_ROOM_PCT);
}

void
ka_rule_memory_overcommit(const KaView *v, KaRows *rows)
{
	Commit		c = commit_of(v);
	KaSysctl	knob = c.kbytes > 0 ? KA_KNOB_OVERCOMMIT_KBYTES : KA_KNOB_OVERCOMMIT_RATIO;
	int64_t		committed,
				limit,
				value;
	bool		over,
				meanwhile;
	KaAdvice   *row;

	if (ka_int(v->facts, KA_SYSCTL_OVERCOMMIT_MEMORY) != 2)
		return;
	if (c.limit == KA_UNKNOWN || c.committed == KA_UNKNOWN)
	{
		if (c.more_pool == 0 && c.asked == 0)
			return;
		row = ka_row(rows, c.limit != KA_UNKNOWN && c.asked > c.limit ? KA_CRITICAL : KA_INFO, ka_sysctl_info[knob].name);
		if (c.asked > 0)
			ka_reason(rows, row, "vm.overcommit_memory is 2 and the server asked for %s%s: look at CommitLimit and Committed_AS in /proc/meminfo, the difference is all that can be had.",
					  ka_human(v->arena, c.asked), c.limit == KA_UNKNOWN ? "" :
					  ka_printf(v->arena, " of a CommitLimit of %s", ka_human(v->arena, c.limit)));
		else
			ka_reason(rows, row, "vm.overcommit_memory is 2 and a pool of %s lowers CommitLimit, (RAM - pools) * ratio + swap: look at CommitLimit and Committed_AS in /proc/meminfo before it is reserved.",
					  ka_human(v->arena, c.more_pool));
		ka_set_knob(rows, row, knob, KA_UNKNOWN);
		saw_commit(rows, row, &c, KA_UNKNOWN, KA_UNKNOWN);
		return;
	}

	commit_after(v, &c, &committed, &limit);
	over = committed >= limit || c.committed >= c.limit;
	/* The limit falls when the pool is reserved, what is committed only when the server restarts. */
	meanwhile = c.committed >= limit;
	if (!over && !meanwhile && (double) committed * 100 < (double) limit * KA_LIMIT(COMMIT_PCT) &&
		(double) c.committed * 100 < (double) c.limit * KA_LIMIT(COMMIT_PCT))
	{
		if (c.more_pool == 0 && v->pools_bytes == 0)
			return;
		row = ka_row(rows, KA_OK, ka_sysctl_info[knob].name);
		if (c.more_pool > 0)
			ka_reason(rows, row, "vm.overcommit_memory is 2: the pool lowers CommitLimit from %s to %s, and that suffices for the %s that are committed with it.",
					  ka_human(v->arena, c.limit), ka_human(v->arena, limit), ka_human(v->arena, committed));
		else
			ka_reason(rows, row, "vm.overcommit_memory is 2: the pool is outside of CommitLimit, and %s of %s are committed.",
					  ka_human(v->arena, committed), ka_human(v->arena, limit));
		ka_set_knob(rows, row, knob, KA_UNKNOWN);
		saw_commit(rows, row, &c, committed, limit);
		return;
	}

	value = sufficient_value(v, &c, ka_max(committed, c.more_pool > 0 ? 0 : c.committed));
	if (value != KA_UNKNOWN && value <= ka_int(v->facts, knob == KA_KNOB_OVERCOMMIT_KBYTES ?
											   KA_SYSCTL_OVERCOMMIT_KBYTES : KA_SYSCTL_OVERCOMMIT_RATIO))
		value = KA_UNKNOWN;		/* it is full now and will not be once the pool is there */
	row = ka_row(rows, over && c.asked > 0 ? KA_CRITICAL : KA_WARNING, ka_sysctl_info[knob].name);
	if (c.more_pool > 0)
		ka_reason(rows, row, "vm.overcommit_memory is 2: the pool lowers CommitLimit from %s to %s at once, %s are committed now, and %s once the server has restarted on the pool: %s, or set vm.overcommit_memory = 0.",
				  ka_human(v->arena, c.limit), ka_human(v->arena, limit), ka_human(v->arena, c.committed),
				  ka_human(v->arena, committed),
				  value != KA_UNKNOWN ? "raise the limit together with the pool" :
				  meanwhile ? "stop the server before the pool is reserved, or every process is refused memory meanwhile" :
				  "little room is left");
	else
		ka_reason(rows, row, "vm.overcommit_memory is 2 and %s of a CommitLimit of %s are committed%s: requests for memory %s; raise the limit%s, add swap, or set vm.overcommit_memory = 0; every huge page that is reserved lowers it further.",
				  ka_human(v->arena, committed), ka_human(v->arena, limit),
				  c.asked > 0 ? " with what the server asked for" : "", over ? "fail" : "will soon fail",
				  v->pools_bytes > 0 ? ka_printf(v->arena, " (%s in pools do not count)", ka_human(v->arena, v->pools_bytes)) : "");
	ka_set_knob(rows, row, knob, value);
	if (c.more_pool > 0 && v->default_pool && v->target != KA_UNKNOWN && row && row->recommended)
		ka_host_command(rows, row, "sysctl -w %s=%lld vm.nr_hugepages=%lld && %s && %s && sysctl vm.nr_hugepages  # what was granted",
						ka_sysctl_info[knob].name, (long long) value, (long long) v->target,
						ka_persist(rows, knob, value), ka_persist(rows, KA_KNOB_NR_HUGEPAGES, v->target));
	saw_commit(rows, row, &c, committed, limit);
}

/*
 * memory.exhausted
 */
void
ka_rule_memory_exhausted(const KaView *v, KaRows *rows)
{
	KaAdvice   *row;

	if (v->available_pct < 0 || v->available_pct >= KA_LIMIT(EXHAUSTED_PCT))
		return;
	row = ka_row(rows, KA_WARNING, "memory");
	ka_reason(rows, row, v->exhausted ?
			  "Only %.1f %% of RAM are available: there is no memory left to tune with; lower shared_buffers, work_mem or the number of connections, or add RAM, before any kernel setting." :
			  "Only %.1f %% of RAM are available, and page tables hold much of the rest: huge pages give them back.",
			  v->available_pct);
	KA_SAW(rows, row, KA_MEM_AVAILABLE, KA_MEM_TOTAL, KA_MEM_PAGE_TABLES, KA_MEM_SWAP_TOTAL);
	ka_observed(rows, row, "pools_bytes", v->pools_bytes);
	KA_LIMITS(rows, row, KA_T_EXHAUSTED_PCT, KA_T_EXHAUSTED_TABLES_PCT);
}

/*
 * memory.page_tables
 */
void
ka_rule_memory_page_tables(const KaView *v, KaRows *rows)
{
	KaAdvice   *row;

	if (v->tables_pct < KA_LIMIT(PAGE_TABLES_INFO_PCT))
		return;
	row = ka_row(rows, v->tables_pct >= KA_LIMIT(PAGE_TABLES_WARN_PCT) ? KA_WARNING : KA_INFO, "page_tables");
	ka_current(rows, row, "%s", ka_human(v->arena, ka_int(v->facts, KA_MEM_PAGE_TABLES)));
	ka_reason(rows, row, "Page tables hold %s, %.1f %% of RAM: %s.",
			  ka_human(v->arena, ka_int(v->facts, KA_MEM_PAGE_TABLES)), v->tables_pct,
			  v->on_huge == KA_YES ? "not for shared memory, which is on huge pages, but for the backends' own; a connection pooler helps" :
			  v->gain != KA_UNKNOWN ?
			  ka_printf(v->arena, "each of %lld connections maps shared memory with small pages, %s in all at most; huge pages end that",
						(long long) v->connections, ka_human(v->arena, v->gain)) :
			  "every connection maps shared memory with small pages of its own; huge pages end that");
	KA_SAW(rows, row, KA_MEM_PAGE_TABLES, KA_MEM_TOTAL);
	ka_observed(rows, row, "page_tables_estimate_bytes", v->gain);
	if (v->connections > 0)
		ka_observed(rows, row, "connections", v->connections);
	KA_LIMITS(rows, row, KA_T_PAGE_TABLES_INFO_PCT, KA_T_PAGE_TABLES_WARN_PCT);
}

/*
 * memory.numa
 */
void
ka_rule_memory_numa(const KaView *v, KaRows *rows)
{
	const KaNode *full = NULL,
			   *roomy = NULL;
	double		least = 0,
				most = 0;
	KaAdvice   *row;

	for (size_t i = 0; i < v->facts->nnuma; i++)
	{
		const KaNode *node = &v->facts->numa[i];
		double		free = ka_percent(node->free_bytes, node->total_bytes);

		if (free < 0)
			continue;			/* a node without memory, or not known */
		if (full == NULL || free < least)
			full = node, least = free;
		if (roomy == NULL || free > most)
			roomy = node, most = free;
	}
	if (full == NULL || full == roomy || least >= KA_LIMIT(NODE_FULL_PCT) || most < KA_LIMIT(NODE_FREE_PCT))
		return;

	row = ka_row(rows, KA_WARNING, "numa");
	ka_reason(rows, row, "Memory node %lld is full (%.1f %% free) while node %lld has %.0f %% free: start the server with numactl --interleave=all, and look for a process or a pool of huge pages that fills one node.",
			  (long long) full->node, least, (long long) roomy->node, most);
	ka_observed(rows, row, "full_node", full->node);
	ka_observed(rows, row, "full_node_free_bytes", full->free_bytes);
	ka_observed(rows, row, "other_node", roomy->node);
	ka_observed(rows, row, "other_node_free_bytes", roomy->free_bytes);
	ka_saw(rows, row, KA_SYSCTL_ZONE_RECLAIM_MODE);
	KA_LIMITS(rows, row, KA_T_NODE_FULL_PCT, KA_T_NODE_FREE_PCT);
}

/*
 * reclaim.zone
 */
void
ka_rule_reclaim_zone(const KaView *v, KaRows *rows)
{
	KaAdvice   *row;

	if (ka_int(v->facts, KA_SYSCTL_ZONE_RECLAIM_MODE) <= 0)
		return;
	row = ka_row(rows, v->facts->nnuma == 1 ? KA_INFO : KA_WARNING, ka_sysctl_info[KA_KNOB_ZONE_RECLAIM_MODE].name);
	ka_reason(rows, row, "vm.zone_reclaim_mode is %lld: a node that is full drops its cache and stalls instead of using the memory of another; a database wants the cache of all nodes.",
			  (long long) ka_int(v->facts, KA_SYSCTL_ZONE_RECLAIM_MODE));
	ka_set_knob(rows, row, KA_KNOB_ZONE_RECLAIM_MODE, v->exhausted ? KA_UNKNOWN : 0);
	if (row)
		row->confidence = KA_DOCUMENTED;
	if (v->facts->nnuma > 0)
		ka_observed(rows, row, "nodes", (int64_t) v->facts->nnuma);
	ka_limit_named(rows, row, "vm.zone_reclaim_mode", 0);
}

/*
 * kernel.preempt_lazy
 *
 * A backend that faults on a small page of shared_buffers while it holds a
 * spinlock can be preempted there, and everybody waits.
 */
void
ka_rule_preempt_lazy(const KaView *v, KaRows *rows)
{
	bool		affected;
	KaAdvice   *row;

	if (!ka_is(v->facts, KA_KERNEL_PREEMPT, "lazy") || (v->on_huge != KA_YES && v->shared == KA_UNKNOWN))
		return;
	affected = v->on_huge != KA_YES && (double) v->shared_plan >= KA_LIMIT(LAZY_SHARED);
	row = ka_row(rows, !affected ? KA_OK :
				 v->on_huge == KA_NO && (double) v->connections >= KA_LIMIT(LAZY_CONNECTIONS) &&
				 (v->kernel == 0 || v->kernel >= 7000) ? KA_WARNING : KA_INFO, "preemption");
	ka_current(rows, row, "lazy");
	if (affected)
		ka_reason(rows, row, "With lazy preemption a backend that faults on a small page of its %s of shared memory can be suspended while it holds a spinlock, and all others wait: huge pages remove the faults, and with them the loss.",
				  ka_human(v->arena, v->shared));
	else if (v->on_huge == KA_YES)
		ka_reason(rows, row, "Lazy preemption is no problem here: the server is on huge pages.");
	else
		ka_reason(rows, row, "Lazy preemption is no problem here: %s of shared memory are touched once and done.",
				  ka_human(v->arena, v->shared));
	KA_SAW(rows, row, KA_KERNEL_PREEMPT, KA_KERNEL_RELEASE);
	ka_observed(rows, row, "shared_memory_bytes", v->shared);
	if (v->connections > 0)
		ka_observed(rows, row, "connections", v->connections);
	KA_LIMITS(rows, row, KA_T_LAZY_SHARED, KA_T_LAZY_CONNECTIONS);
	if (row)
		row->confidence = KA_DOCUMENTED;
}
