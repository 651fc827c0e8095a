/*
 * rules_hugepages.c: should this server use huge pages, does it, and is its
 * pool large enough?
 *
 * The arithmetic is in view_hugepages.c.  Each state of the server makes one
 * of these rules speak on the pool: "use" where none was reserved, "pool_short"
 * where one was and does not suffice, "fallback" says why a server that asks
 * runs without, "not_worth" that it may stay so.
 *
 * Locks: none.
 */
#include "rules.h"

#include <string.h>

/* "3156 huge pages of 2 MB", or "huge pages" as far as is known. */
static const char *
pages_text(const KaView *v, int64_t pages)
{
	if (pages == KA_UNKNOWN)
		return "a pool of huge pages";
	if (v->page_size <= 0)
		return ka_printf(v->arena, "%lld huge pages", (long long) pages);
	return ka_printf(v->arena, "%lld huge page%s of %s", (long long) pages, pages == 1 ? "" : "s",
					 ka_human(v->arena, v->page_size));
}

/* What a pool saves, as a clause. */
static const char *
gain_text(const KaView *v)
{
	if (v->gain != KA_UNKNOWN)
		return ka_printf(v->arena, "up to %s of page tables with %lld connections",
						 ka_human(v->arena, v->gain), (long long) v->connections);
	return ka_printf(v->arena, "up to %s of page tables for each connection",
					 ka_human(v->arena, v->backend_tables));
}

static void
saw_gain(KaRows *rows, KaAdvice *row)
{
	const KaView *v = rows->view;

	ka_observed(rows, row, "shared_memory_bytes", v->shared);
	ka_observed(rows, row, "small_page_bytes", v->base_page);
	ka_observed(rows, row, "page_tables_per_backend_bytes", v->backend_tables);
	ka_observed(rows, row, "page_tables_saved_bytes", v->gain);
	if (v->connections > 0)
		ka_observed(rows, row, "connections", v->connections);
	KA_LIMITS(rows, row, KA_T_WORTH_ALWAYS, KA_T_WORTH_NEVER);
}

/* Can a reservation of the target be expected to fall short at run time? */
static bool
hard_to_reserve(const KaView *v)
{
	int64_t		more = ka_sub(v->target, ka_or_zero(v->pool_total));

	return (v->pool_asked != KA_UNKNOWN && v->pool_asked > ka_or_zero(v->pool_total)) ||
		(v->pool_grantable != KA_UNKNOWN && v->pool_grantable < more) ||
		v->page_size >= GIB;
}

/* The pool as it should be, with the order of steps that works. */
static void
recommend_pool(KaRows *rows, KaAdvice *row)
{
	const KaView *v = rows->view;
	bool		possible = v->fits && !v->exhausted;

	ka_set_pool(rows, row, v->page_size, possible ? v->target : KA_UNKNOWN);
	if (!possible || row == NULL)
		return;
	row->activation = KA_RESTART;	/* of the server, when the pages are there */
	if (ka_int(v->facts, KA_SYSCTL_EXTFRAG_THRESHOLD) > 500)
		ka_command_before(rows, row, "sysctl -w vm.extfrag_threshold=500  # a pool grows badly above; set it back afterwards");
	if (hard_to_reserve(v))
		ka_command_before(rows, row, "sync; sysctl -w vm.drop_caches=3; sysctl -w vm.compact_memory=1  # then ask, read back, repeat while it grows");
}

/* Why the pool is not recommended although it would pay. */
static const char *
obstacle(const KaView *v)
{
	if (!v->fits)
		return ka_printf(v->arena, "; but they leave less than %.0f %% of the %s of RAM: make shared_buffers smaller first",
						 KA_LIMIT(RAM_LEFT_PCT), ka_human(v->arena, v->total));
	if (v->exhausted)
		return "; but there is no memory left to reserve: see memory.exhausted";
	if (v->need_plan == KA_UNKNOWN)
		return "; look at Hugepagesize in /proc/meminfo and at shared_memory_size_in_huge_pages for their number";
	if (v->need_estimated)
		return "; the number is estimated from shared_buffers, `postgres -C shared_memory_size_in_huge_pages` (15 and later) gives the exact one";
	if (v->pool_grantable != KA_UNKNOWN && v->pool_grantable < ka_sub(v->target, ka_or_zero(v->pool_total)))
		return ka_printf(v->arena, "; the kernel could give only %lld now: compact first, or reserve at boot",
						 (long long) v->pool_grantable);
	return "";
}

/*
 * huge_pages.pool_short
 */

static KaSeverity
short_severity(const KaView *v)
{
	if (v->insists || v->failure == KA_FAIL_HUGE)
		return KA_CRITICAL;		/* it does not start */
	return v->asks == KA_YES && v->worth == KA_YES ? KA_WARNING : KA_INFO;
}

static const char *
short_reason(const KaView *v)
{
	const char *asked = "";
	int64_t		idle = v->pool_available != KA_UNKNOWN ? v->pool_available : v->pool_total;
	const char *outcome = v->insists || v->failure == KA_FAIL_HUGE ? "the server does not start with huge_pages = on" :
		idle > 0 ? "the server falls back to small pages, and the pages of this pool stay idle" :
		"the server falls back to small pages";

	if (v->pool_asked != KA_UNKNOWN && v->pool_asked > ka_or_zero(v->pool_total))
		asked = ka_printf(v->arena, " (%lld were asked for, the kernel granted %lld: drop caches, compact, ask again, read back)",
						  (long long) v->pool_asked, (long long) v->pool_total);
	if (v->pool_available != KA_UNKNOWN)
		return ka_printf(v->arena, "The server needs %s and %lld are available%s: %s%s.",
						 pages_text(v, v->need_plan), (long long) v->pool_available, asked, outcome, obstacle(v));
	if (v->pool_known)
		return ka_printf(v->arena, "The server needs %s and the pool has %lld%s: %s%s.",
						 pages_text(v, v->need_plan), (long long) v->pool_total, asked, outcome, obstacle(v));
	return ka_printf(v->arena, "The server asked for %s and did not get them: %s%s.",
					 pages_text(v, v->need_plan), outcome, obstacle(v));
}

static bool
short_for_server(const KaView *v, KaRows *rows)
{
	const char *subject = ka_pool_subject(v, v->page_size);
	KaAdvice   *row;

	/* A mapping of small pages that failed is not for want of huge ones: not_cause. */
	if (v->asks == KA_NO || !v->mmap || v->failure == KA_FAIL_SIGBUS || v->failure == KA_FAIL_HUGE_SIZE ||
		v->failure == KA_FAIL_SEGMENT)
		return false;
	if (v->enough == KA_YES && v->failure == KA_FAIL_HUGE)
	{
		if (v->cgroup_short)
			return true;		/* cgroup_limit says why */
		row = ka_row(rows, KA_INFO, subject);
		ka_reason(rows, row, "The server did not get its huge pages, but %lld are available now and it needs %lld: start it again, and look at the hugetlb limits of its cgroup if that fails.",
				  (long long) v->pool_available, (long long) v->need_plan);
		ka_set_pool(rows, row, v->page_size, KA_UNKNOWN);
		ka_saw_pool(rows, row);
		return true;
	}
	if (v->enough != KA_NO && v->failure != KA_FAIL_HUGE)
	{
		/* Pages are taken, but by whom? */
		if (v->on_huge == KA_MAYBE && v->pool_taken > 0 && v->pool_available >= 0 && v->need_least > v->pool_available)
		{
			row = ka_row(rows, KA_INFO, subject);
			ka_reason(rows, row, "The server needs %s and %lld are left, while %lld are taken, perhaps by itself: huge_pages_status (17 and later) or the page size of its mapping in /proc/PID/smaps tells.",
					  pages_text(v, v->need_plan), (long long) v->pool_available, (long long) v->pool_taken);
			ka_set_pool(rows, row, v->page_size, KA_UNKNOWN);
			ka_saw_pool(rows, row);
			return true;
		}
		return false;
	}
	/* A pool that nobody reserved is not short: "use" and "not_worth" speak on it. */
	if (v->pool_total == 0 && !v->insists && v->failure != KA_FAIL_HUGE)
		return false;

	row = ka_row(rows, short_severity(v), subject);
	ka_reason(rows, row, "%s", short_reason(v));
	recommend_pool(rows, row);
	ka_saw_pool(rows, row);
	KA_SAW(rows, row, KA_ERR_BYTES, KA_ERR_ERRNO);
	ka_observed(rows, row, "pool_asked", v->pool_asked);
	ka_observed(rows, row, "pool_grantable", v->pool_grantable);
	return true;
}

/* This server's part in the demand on a pool. */
static int64_t
own_demand(const KaView *v, int64_t size_bytes)
{
	if (size_bytes != v->page_size || v->asks == KA_NO || !v->mmap || v->need_least == KA_UNKNOWN)
		return 0;
	if (v->on_huge != KA_YES && !v->insists && v->worth != KA_YES)
		return 0;
	return v->need_least;
}

/* All servers and programs together, whoever has its pages already. */
static bool
short_for_all(const KaView *v, KaRows *rows, const KaPool *pool)
{
	int64_t		room = ka_sub(ka_or_zero(pool->overcommit), ka_or_zero(pool->surplus));
	int64_t		others = ka_consumers(v, pool->size_bytes);
	int64_t		demand;
	KaAdvice   *row;

	demand = ka_add(others, own_demand(v, pool->size_bytes));
	if (others == 0 || pool->total == KA_UNKNOWN || demand <= ka_add(pool->total, room))
		return false;

	row = ka_row(rows, KA_WARNING, ka_pool_subject(v, pool->size_bytes));
	ka_reason(rows, row, "Together this server and the other users of this pool want %lld pages of %s and it has %lld: the last to start does without.",
			  (long long) demand, ka_human(v->arena, pool->size_bytes), (long long) ka_add(pool->total, room));
	ka_set_pool(rows, row, pool->size_bytes,
				v->exhausted || (v->total > 0 && ka_percent(ka_mul(demand, pool->size_bytes), v->total) >
								 100 - KA_LIMIT(RAM_LEFT_PCT)) ? KA_UNKNOWN :
				ka_max(demand, pool->size_bytes == v->page_size ? v->target : 0));
	ka_observed(rows, row, "pool_total", pool->total);
	ka_observed(rows, row, "consumers_pages", others);
	ka_observed(rows, row, "needed_pages", own_demand(v, pool->size_bytes));
	return true;
}

/* A reservation that was granted in part, although nobody here misses the rest. */
static void
granted_in_part(const KaView *v, KaRows *rows, const KaPool *pool)
{
	KaAdvice   *row;

	if (pool->asked == KA_UNKNOWN || pool->total == KA_UNKNOWN || pool->asked <= pool->total)
		return;
	row = ka_row(rows, KA_INFO, ka_pool_subject(v, pool->size_bytes));
	ka_reason(rows, row, "%lld pages of %s were asked for and the kernel granted %lld without an error: read the pool back after each reservation.",
			  (long long) pool->asked, ka_human(v->arena, pool->size_bytes), (long long) pool->total);
	ka_set_pool(rows, row, pool->size_bytes, KA_UNKNOWN);
	ka_observed(rows, row, "pool_asked", pool->asked);
	ka_observed(rows, row, "pool_total", pool->total);
}

void
ka_rule_pool_short(const KaView *v, KaRows *rows)
{
	bool		own = short_for_server(v, rows);

	for (size_t i = 0; i < v->facts->npools; i++)
	{
		const KaPool *pool = &v->facts->pools[i];

		ka_interrupt(rows);
		if ((own && pool->size_bytes == v->page_size) || pool->size_bytes <= 0)
			continue;
		if (!short_for_all(v, rows, pool))
			granted_in_part(v, rows, pool);
	}
}

/*
 * huge_pages.page_size
 */

/* The largest page of an ordinary size that the kernel offers, or KA_UNKNOWN. */
static int64_t
ordinary_size(const KaView *v)
{
	int64_t		best = KA_UNKNOWN;

	for (size_t i = 0; i < v->facts->npools; i++)
	{
		int64_t		size = v->facts->pools[i].size_bytes;

		if ((double) size < KA_LIMIT(LARGE_PAGE) && size != v->page_size)
			best = ka_max(best, size);
	}
	return best;
}

static void
recommend_size(KaRows *rows, KaAdvice *row, int64_t size_bytes)
{
	const KaView *v = rows->view;
	bool		settable = v->version == KA_UNKNOWN || v->version >= 140000;
	int64_t		current = ka_int(v->facts, KA_PG_HUGE_PAGE_SIZE);

	ka_set_guc(rows, row, "huge_page_size",
			   current > 0 ? ka_setting(rows->arena, current) : settable ? "0" : NULL,
			   settable && size_bytes > 0 ? ka_setting(rows->arena, size_bytes) : NULL, KA_RESTART);
	KA_SAW(rows, row, KA_PG_HUGE_PAGE_SIZE, KA_HP_DEFAULT_SIZE);
	ka_observed(rows, row, "page_size_bytes", v->page_size);
	ka_observed(rows, row, "shared_memory_bytes", v->shared);
}

/* Before 14 only the kernel's default counts. */
static const char *
before_14(const KaView *v)
{
	return v->version != KA_UNKNOWN && v->version < 140000 ?
		"; huge_page_size came with 14, before it only the boot argument default_hugepagesz chooses" : "";
}

static bool
size_mismatch(const KaView *v, KaRows *rows)
{
	const KaPool *other = v->other_pool;
	bool		missing = v->no_such_size && v->on_huge != KA_YES;
	KaAdvice   *row;

	if (other == NULL && !missing)
		return false;
	row = ka_row(rows, v->insists && v->on_huge != KA_YES ? KA_CRITICAL : v->worth == KA_NO ? KA_INFO : KA_WARNING,
				 "huge_page_size");
	if (other)
		ka_reason(rows, row, "The server asks for pages of %s, but the pages that are reserved and free are of %s: it never looks at another pool%s.",
				  ka_human(v->arena, v->page_size), ka_human(v->arena, other->size_bytes), before_14(v));
	else
		ka_reason(rows, row, "The server asks for pages of %s and the kernel has none of that size%s.",
				  ka_human(v->arena, v->page_size), before_14(v));
	recommend_size(rows, row, other ? other->size_bytes :
				   v->default_size > 0 && v->default_size != v->page_size ? v->default_size : ordinary_size(v));
	ka_saw_pool(rows, row);
	if (other)
		ka_observed(rows, row, "other_pool_free", other->free);
	return true;
}

/* Whole gigabytes for a server that needs a part of one. */
static void
large_pages(const KaView *v, KaRows *rows)
{
	int64_t		lost = v->shared_exact && v->need != KA_UNKNOWN ?
		ka_sub(ka_mul(v->need, v->page_size), v->shared) : KA_UNKNOWN;
	double		lost_pct = ka_percent(lost, v->shared);
	KaAdvice   *row;

	if ((double) v->page_size < KA_LIMIT(LARGE_PAGE))
		return;
	/* Asked for by name, the size is a choice: only a loss that is known is a finding. */
	if (lost_pct < 0 ? !v->default_pool : lost_pct <= KA_LIMIT(ROUNDING_PCT))
		return;

	row = ka_row(rows, KA_INFO, "huge_page_size");
	if (lost > 0)
		ka_reason(rows, row, "With pages of %s the server takes %s for %s of shared memory: %s are lost to rounding%s.",
				  ka_human(v->arena, v->page_size), ka_human(v->arena, ka_mul(v->need, v->page_size)),
				  ka_human(v->arena, v->shared), ka_human(v->arena, lost), before_14(v));
	else
		ka_reason(rows, row, "The kernel's default huge page is %s, so the server takes whole ones and never looks at smaller pages that are reserved: set huge_page_size, or expect the rounding%s.",
				  ka_human(v->arena, v->page_size), before_14(v));
	recommend_size(rows, row, ordinary_size(v));
	ka_observed(rows, row, "lost_bytes", lost);
	ka_limit(rows, row, KA_T_LARGE_PAGE);
	if (lost_pct >= 0)
		ka_limit(rows, row, KA_T_ROUNDING_PCT);
}

void
ka_rule_page_size(const KaView *v, KaRows *rows)
{
	if (v->asks == KA_NO || !v->mmap || v->page_size <= 0)
		return;
	if (!size_mismatch(v, rows))
		large_pages(v, rows);
}

/*
 * huge_pages.fallback
 */

/* Only the mmap segment is ever asked for huge pages; with "on" sysv is refused. */
static void
wrong_segment(const KaView *v, KaRows *rows)
{
	KaAdvice   *row = ka_row(rows, v->insists && !v->running ? KA_CRITICAL :
							 v->worth == KA_NO ? KA_INFO : KA_WARNING, "shared_memory_type");

	ka_reason(rows, row, "shared_memory_type is %s, and only mmap segments use huge pages: %s.",
			  ka_text(v->facts, KA_PG_SHARED_MEMORY_TYPE),
			  v->insists ? "with huge_pages = on the server refuses to start" :
			  v->enough == KA_YES ? "the pool is large enough, more pages change nothing" : "no pool helps before that");
	ka_set_guc(rows, row, "shared_memory_type", ka_text(v->facts, KA_PG_SHARED_MEMORY_TYPE), "mmap", KA_RESTART);
	ka_saw(rows, row, KA_PG_SHARED_MEMORY_TYPE);
	ka_saw_pool(rows, row);
}

void
ka_rule_fallback(const KaView *v, KaRows *rows)
{
	KaAdvice   *row;

	if (v->asks == KA_NO)
		return;
	if (!v->mmap)
	{
		wrong_segment(v, rows);
		return;
	}
	if (v->asks != KA_YES || v->on_huge != KA_NO || (!v->running && !ka_is(v->facts, KA_PG_HUGE_PAGES_STATUS, "off")))
		return;
	if (v->insists && v->enough != KA_YES)
		return;					/* pool_short: it will not start */

	row = ka_row(rows, v->worth == KA_YES ? KA_WARNING : KA_INFO, "huge_pages");
	ka_set_guc(rows, row, "huge_pages", ka_text(v->facts, KA_PG_HUGE_PAGES), NULL, KA_NONE);
	if (v->enough == KA_YES && v->cgroup_short)
		ka_reason(rows, row, "huge_pages is %s and the server runs on small pages: the pool is large enough, but its cgroup may not have that many.",
				  ka_text(v->facts, KA_PG_HUGE_PAGES));
	else if (v->enough == KA_YES)
	{
		ka_reason(rows, row, "huge_pages is %s, the server runs on small pages, and by now %s are available: a restart takes them.",
				  ka_text(v->facts, KA_PG_HUGE_PAGES), pages_text(v, v->pool_available));
		if (row)
			row->activation = KA_RESTART;
		ka_command(rows, row, "pg_ctl restart -D \"$PGDATA\"");
	}
	else
		ka_reason(rows, row, "huge_pages is try and the server runs on small pages: it fell back without a message%s.",
				  v->need_plan == KA_UNKNOWN ? "" :
				  v->pool_available == KA_UNKNOWN ? ka_printf(v->arena, ", it needs %s", pages_text(v, v->need_plan)) :
				  ka_printf(v->arena, ", since it needs %s and %lld are available",
							pages_text(v, v->need_plan), (long long) v->pool_available));
	ka_saw_pool(rows, row);
}

/*
 * huge_pages.use
 */

/* huge_pages = off: `on' only where it is certain that the server starts with it. */
static void
switch_on(const KaView *v, KaRows *rows, KaSeverity severity)
{
	const KaBootSysctl *boot = &v->facts->boot[KA_KNOB_NR_HUGEPAGES];
	bool		certain = v->enough == KA_YES && v->default_pool && boot->known && boot->value >= v->target;
	KaAdvice   *row = ka_row(rows, severity, "huge_pages");

	ka_reason(rows, row, "huge_pages is off%s: %s starts the server %s.",
			  v->enough == KA_YES ? " while the pages that it needs are reserved and free" : "",
			  certain ? "on" : "try", certain ? "on them now and after a reboot" : "in any case and takes the pool when it is large enough");
	ka_set_guc(rows, row, "huge_pages", ka_text(v->facts, KA_PG_HUGE_PAGES), certain ? "on" : "try", KA_RESTART);
	ka_saw_pool(rows, row);
	saw_gain(rows, row);
}

/* Between the two bounds it depends on the number of connections. */
static void
depends_on_connections(const KaView *v, KaRows *rows)
{
	KaAdvice   *row = ka_row(rows, KA_INFO, ka_pool_subject(v, v->page_size));
	double		gain = KA_LIMIT(WORTH_GAIN);

	if ((double) v->total * KA_LIMIT(WORTH_GAIN_PCT) / 100 > gain)
		gain = (double) v->total * KA_LIMIT(WORTH_GAIN_PCT) / 100;
	ka_reason(rows, row, "The server needs %s; they pay from about %lld connections on, each saves up to %s of page tables.",
			  pages_text(v, v->need_plan),
			  (long long) ka_ceil_div(ka_round(gain), ka_max(v->backend_tables, 1)),
			  ka_human(v->arena, v->backend_tables));
	ka_set_pool(rows, row, v->page_size, KA_UNKNOWN);
	saw_gain(rows, row);
	ka_limit(rows, row, KA_T_WORTH_GAIN);
}

static void
reserve_pool(const KaView *v, KaRows *rows)
{
	bool		possible = v->fits && !v->exhausted;
	KaAdvice   *row = ka_row(rows, possible ? KA_WARNING : KA_INFO,
							 ka_pool_subject(v, v->page_size));

	ka_reason(rows, row, "The server is not on huge pages; %s (%s of RAM, which shared memory takes anyway) would save %s%s.",
			  pages_text(v, v->target),
			  ka_human(v->arena, v->target != KA_UNKNOWN && v->page_size > 0 ? ka_mul(v->target, v->page_size) : v->shared_plan),
			  gain_text(v), obstacle(v));
	recommend_pool(rows, row);
	ka_saw_pool(rows, row);
	saw_gain(rows, row);
	KA_SAW(rows, row, KA_MEM_TOTAL, KA_MEM_PAGE_TABLES);
	ka_observed(rows, row, "pool_grantable", v->pool_grantable);
	ka_observed(rows, row, "pool_bytes", v->target != KA_UNKNOWN && v->page_size > 0 ?
				ka_mul(v->target, v->page_size) : KA_UNKNOWN);
}

/* Large enough, but whether its pages are free is not known. */
static void
look_at_pool(const KaView *v, KaRows *rows)
{
	KaAdvice   *row = ka_row(rows, KA_INFO, ka_pool_subject(v, v->page_size));

	ka_reason(rows, row, "The server is not on huge pages, and a pool of %lld is there while it needs %lld: look at HugePages_Free and HugePages_Rsvd in /proc/meminfo, whether it could have them.",
			  (long long) v->pool_total, (long long) v->need_plan);
	ka_set_pool(rows, row, v->page_size, KA_UNKNOWN);
	ka_saw_pool(rows, row);
	saw_gain(rows, row);
}

void
ka_rule_use(const KaView *v, KaRows *rows)
{
	KaAdvice   *row;

	if (!v->supports || !v->mmap || v->down || v->failure == KA_FAIL_SIGBUS)
		return;
	if (v->on_huge == KA_YES)
	{
		row = ka_row(rows, KA_OK, "huge_pages");
		ka_reason(rows, row, "The server is on huge pages: %s.", v->on_huge_why);
		if (ka_known(v->facts, KA_PG_HUGE_PAGES))
			ka_current(rows, row, "%s", ka_text(v->facts, KA_PG_HUGE_PAGES));
		ka_saw_pool(rows, row);
		return;
	}
	if (v->shared == KA_UNKNOWN || v->worth == KA_NO)
		return;
	if (v->worth == KA_MAYBE)
	{
		depends_on_connections(v, rows);
		return;
	}
	if (v->on_huge == KA_MAYBE)
	{
		row = ka_row(rows, KA_INFO, "huge_pages");
		ka_reason(rows, row, "Huge pages pay for %s of shared memory, but the facts do not tell whether the server is on them: look at huge_pages_status (17 and later), or at the page size of its mapping in /proc/PID/smaps.",
				  ka_human(v->arena, v->shared));
		saw_gain(rows, row);
		return;
	}
	if (v->enough == KA_YES)
	{
		if (v->asks != KA_YES)	/* else "fallback" says: restart */
			switch_on(v, rows, KA_WARNING);
		return;
	}
	if (v->asks == KA_YES && v->enough == KA_NO && v->pool_total > 0)
		return;					/* pool_short */
	if (v->asks != KA_NO && (v->other_pool || v->no_such_size))
		return;					/* page_size: the pages are there, or can be had in another size only */
	if (v->pool_known && v->pool_free == KA_UNKNOWN && v->target != KA_UNKNOWN && v->pool_total >= v->target)
		look_at_pool(v, rows);
	else
		reserve_pool(v, rows);
	if (v->asks == KA_NO && v->fits && !v->exhausted)
		switch_on(v, rows, KA_INFO);
}

void
ka_rule_not_worth(const KaView *v, KaRows *rows)
{
	KaAdvice   *row;

	if (!v->supports || v->worth != KA_NO || v->on_huge == KA_YES || (v->insists && v->down))
		return;
	row = ka_row(rows, KA_OK, "huge_pages");
	if (v->gain != KA_UNKNOWN)
		ka_reason(rows, row, "A pool of huge pages is not worth it: with %s of shared memory and %lld connections it saves %.1f MB of page tables at the very most.",
				  ka_human(v->arena, v->shared), (long long) v->connections, (double) v->gain / (double) MIB);
	else
		ka_reason(rows, row, "A pool of huge pages is not worth it: with %s of shared memory it saves %.2f MB of page tables for each connection at most, less than a backend's own memory.",
				  ka_human(v->arena, v->shared), (double) v->backend_tables / (double) MIB);
	if (ka_known(v->facts, KA_PG_HUGE_PAGES))
		ka_current(rows, row, "%s", ka_text(v->facts, KA_PG_HUGE_PAGES));
	saw_gain(rows, row);
	ka_limit(rows, row, KA_T_WORTH_GAIN);
}
