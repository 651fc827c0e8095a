/*
 * view_hugepages.c: the arithmetic of the pool that the server asks.
 *
 *	taken     = total - free + reserved
 *	available = free - reserved + (overcommit - surplus)
 *	            + this server's own pages, when it is on huge pages
 *	capacity  = total + (overcommit - surplus)
 *
 * A segment is mapped from one pool, whole, and all of its pages are reserved
 * at mmap; touched ones leave "free" and "reserved" alike.  So a server on
 * huge pages has at least its need among the pages taken, and one whose need
 * is larger than those taken is not on huge pages, whatever it was told.
 *
 * Everything saturates (rules.h); KA_UNKNOWN where the facts do not tell.
 *
 * Locks: none.
 */
#include "rules.h"

/* The largest number of pages that is still explained by a need of "pages". */
static int64_t
with_margin(int64_t pages)
{
	return ka_add(pages, ka_max(1, pages / 100 * (int64_t) KA_LIMIT(POOL_MARGIN_PCT)));
}

/* How many pages the server needs: exactly, at least, and to plan with. */
static void
view_need(KaView *v)
{
	int64_t		told = ka_int(v->facts, KA_PG_SHARED_MEMORY_HUGE_PAGES);

	v->need = v->need_least = v->need_plan = KA_UNKNOWN;
	if (v->page_size > 0 && v->shared > 0)
	{
		if (v->shared_exact)
			v->need = v->need_least = v->need_plan = ka_ceil_div(v->shared, v->page_size);
		else
		{
			/* Shared memory is always larger than shared_buffers. */
			v->need_least = ka_add(v->shared / v->page_size, 1);
			v->need_plan = ka_max(v->need_least, ka_ceil_div(v->shared_plan, v->page_size));
			v->need_estimated = true;
		}
	}

	/* The server's own figure is 1 + size / page: right, or one too many. */
	if (told > 0 && v->need == KA_UNKNOWN && told >= v->need_least)
	{
		v->need_least = ka_max(told - 1, ka_max(v->need_least, 1));
		v->need_plan = told;
		v->need_estimated = false;
	}
	else if (told > 0 && v->need != KA_UNKNOWN && told >= v->need && told <= with_margin(v->need))
		v->need_plan = told;
}

int64_t
ka_consumers(const KaView *v, int64_t size_bytes)
{
	int64_t		pages = 0;

	for (size_t i = 0; i < v->facts->nconsumers; i++)
	{
		const KaConsumer *consumer = &v->facts->consumers[i];

		if ((consumer->size_bytes == KA_UNKNOWN ? v->default_size : consumer->size_bytes) == size_bytes)
			pages = ka_add(pages, ka_or_zero(consumer->pages));
	}
	return pages;
}

static void
view_pool(KaView *v)
{
	const KaFacts *f = v->facts;
	const KaPool *pool = v->page_size > 0 ? ka_pool(f, v->page_size) : NULL;
	int64_t		overcommit,
				surplus;

	v->pool_asked = v->pool_grantable = KA_UNKNOWN;
	v->pool_free = v->pool_taken = v->pool_total = KA_UNKNOWN;
	overcommit = v->default_pool ? ka_int(f, KA_SYSCTL_NR_OVERCOMMIT_HUGEPAGES) : KA_UNKNOWN;
	surplus = 0;
	if (pool && pool->total != KA_UNKNOWN)
	{
		v->pool_total = pool->total;
		v->pool_free = pool->free;
		v->pool_reserved = ka_or_zero(pool->reserved);
		v->pool_asked = pool->asked;
		v->pool_grantable = pool->grantable;
		surplus = ka_or_zero(pool->surplus);
		if (pool->overcommit != KA_UNKNOWN)
			overcommit = pool->overcommit;
	}
	else if (v->default_pool && ka_known(f, KA_SYSCTL_NR_HUGEPAGES))
		v->pool_total = ka_int(f, KA_SYSCTL_NR_HUGEPAGES);
	v->pool_known = v->pool_total != KA_UNKNOWN;
	if (!v->pool_known)
		return;

	if (v->pool_total == 0)
		v->pool_free = 0;
	v->pool_room = ka_sub(ka_or_zero(overcommit), surplus);
	v->pool_capacity = ka_add(v->pool_total, v->pool_room);
	if (v->pool_free != KA_UNKNOWN)
		v->pool_taken = ka_add(ka_sub(v->pool_total, v->pool_free), v->pool_reserved);
}

/* Is what others and this server have taken this server's need, and no more? */
static bool
taken_matches(const KaView *v, int64_t taken)
{
	int64_t		most = with_margin(v->need_plan);

	/* What extensions allocate is not in an estimate from shared_buffers. */
	if (v->need_estimated)
		most = ka_max(most, ka_add(v->need_plan, v->need_plan / 100 * (int64_t) KA_LIMIT(POOL_WASTED_PCT)));
	return taken >= v->need_least && taken <= most;
}

/*
 * Is the server on huge pages?  Its own status first; else what must be so:
 * with `on' a running server is, and pages taken that match the need are its.
 */
static void
view_status(KaView *v)
{
	const KaFacts *f = v->facts;

	v->on_huge = KA_MAYBE;
	if (v->down)
		v->on_huge = KA_NO, v->on_huge_why = "it is not running";
	else if (ka_is(f, KA_PG_HUGE_PAGES_STATUS, "on"))
		v->on_huge = KA_YES, v->on_huge_why = "its status says so";
	else if (ka_is(f, KA_PG_HUGE_PAGES_STATUS, "off"))
		v->on_huge = KA_NO, v->on_huge_why = "its status says so";
	else if (v->asks == KA_NO || !v->mmap)
		v->on_huge = KA_NO, v->on_huge_why = "it does not ask for them";
	else if (v->pool_taken != KA_UNKNOWN && (v->pool_taken == 0 || v->pool_taken < v->need_least))
		v->on_huge = KA_NO, v->on_huge_why = "fewer pages are taken than it needs";
	else if (v->insists && v->running)
		v->on_huge = KA_YES, v->on_huge_why = "it runs with huge_pages = on";
	else if (v->pool_taken != KA_UNKNOWN && v->need_least != KA_UNKNOWN &&
			 (taken_matches(v, v->pool_taken) ||
			  (v->consumers > 0 && taken_matches(v, ka_sub(v->pool_taken, v->consumers)))))
		v->on_huge = KA_YES, v->on_huge_why = "its need, and no more, is taken from the pool";
}

/* This server's pages among those taken. */
static int64_t
own_pages(const KaView *v)
{
	if (v->on_huge != KA_YES)
		return 0;
	if (v->need != KA_UNKNOWN)
		return v->need;
	return v->pool_taken == KA_UNKNOWN ? ka_or_zero(v->need_plan) :
		ka_min(ka_sub(v->pool_taken, v->consumers), ka_max(v->need_plan, 0));
}

static void
view_enough(KaView *v)
{
	int64_t		unowned;

	v->enough = v->on_huge == KA_YES ? KA_YES : KA_MAYBE;
	v->pool_available = KA_UNKNOWN;
	if (!v->pool_known)
		return;
	if (v->pool_free == KA_UNKNOWN)
	{
		if (v->on_huge != KA_YES && v->pool_capacity < v->need_least)
			v->enough = KA_NO;
		return;
	}

	unowned = ka_add(ka_sub(v->pool_free, v->pool_reserved), v->pool_room);
	v->pool_available = ka_add(unowned, own_pages(v));
	if (v->on_huge == KA_YES || v->need_least == KA_UNKNOWN)
		return;
	if (unowned >= (v->need != KA_UNKNOWN ? v->need : v->need_plan))
		v->enough = KA_YES;
	else if (v->on_huge == KA_NO && unowned < v->need_least)
		v->enough = KA_NO;
}

/* The pool that is recommended: the need, and what others take or want. */
static void
view_target(KaView *v)
{
	int64_t		others = 0;
	int64_t		bytes;

	v->target = KA_UNKNOWN;
	v->fits = true;
	if (v->need_plan == KA_UNKNOWN)
		return;
	if (v->pool_taken != KA_UNKNOWN && v->on_huge != KA_MAYBE)
		others = ka_sub(v->pool_taken, own_pages(v));
	v->target = ka_add(v->need_plan, ka_max(v->consumers, others));

	bytes = v->page_size > 0 ? ka_mul(v->target, v->page_size) : v->shared_plan;
	if (v->total > 0 && bytes != KA_UNKNOWN)
		v->fits = ka_percent(bytes, v->total) <= 100 - KA_LIMIT(RAM_LEFT_PCT);
}

/* Another pool that has the whole segment free, when the server's own has not. */
static const KaPool *
other_pool(const KaView *v)
{
	if (v->asks == KA_NO || !v->mmap || v->on_huge == KA_YES || v->enough == KA_YES)
		return NULL;
	for (size_t i = 0; i < v->facts->npools; i++)
	{
		const KaPool *pool = &v->facts->pools[i];

		if (pool->size_bytes > 0 && pool->size_bytes != v->page_size && v->shared_plan > 0 && pool->free > 0 &&
			ka_sub(pool->free, ka_or_zero(pool->reserved)) >= ka_ceil_div(v->shared_plan, pool->size_bytes))
			return pool;
	}
	return NULL;
}

static bool
is_limited(const KaView *v)
{
	int64_t		needed = ka_mul(v->need_least, v->page_size);

	for (size_t i = 0; i < v->facts->nhugetlb && v->need_least != KA_UNKNOWN; i++)
	{
		const KaHugetlbLimit *limit = &v->facts->hugetlb[i];

		int64_t		others = v->on_huge == KA_NO ? ka_or_zero(limit->usage_bytes) : 0;

		if (limit->size_bytes == v->page_size &&
			((limit->limit_bytes != KA_UNKNOWN && ka_sub(limit->limit_bytes, others) < needed) ||
			 (limit->rsvd_limit_bytes != KA_UNKNOWN && ka_sub(limit->rsvd_limit_bytes, others) < needed)))
			return true;
	}
	return false;
}

void
ka_view_hugepages(KaView *v)
{
	view_need(v);
	v->consumers = ka_consumers(v, v->page_size);
	view_pool(v);
	view_status(v);
	view_enough(v);
	view_target(v);
	v->other_pool = other_pool(v);
	v->no_such_size = v->failure == KA_FAIL_HUGE_SIZE ||
		(v->page_size > 0 && v->facts->npools > 0 && ka_pool(v->facts, v->page_size) == NULL);
	v->cgroup_short = is_limited(v);

	v->reserve = !v->managed && v->supports && v->fits && !v->exhausted && !v->no_such_size && v->on_huge == KA_NO &&
		v->enough != KA_YES && (v->worth == KA_YES || v->insists || v->failure == KA_FAIL_HUGE);
}
