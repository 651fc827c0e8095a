/*
 * rules_thp.c: transparent huge pages.
 *
 * "enabled" governs private anonymous memory, "shmem_enabled" shared_buffers
 * (a shared anonymous mapping), "defrag" whether a fault of either compacts
 * by itself.  None of them is judged by the kernel's version: only by stalls
 * that were measured, and by the size of a page.
 *
 * Locks: none.
 */
#include "rules.h"

#include <string.h>

static bool
is_one_of(const char *text, const char *const *values, size_t count)
{
	for (size_t i = 0; text && i < count; i++)
	{
		if (strcmp(text, values[i]) == 0)
			return true;
	}
	return false;
}

static void
saw_faults(KaRows *rows, KaAdvice *row)
{
	const KaView *v = rows->view;

	KA_SAW(rows, row, KA_W_COMPACT_STALL, KA_W_ALLOCSTALL, KA_W_THP_ALLOC, KA_W_THP_FALLBACK,
		   KA_W_THP_FILE_ALLOC, KA_W_THP_FILE_FALLBACK, KA_W_COMPACT_STALL_CKPT);
	ka_observed_real(rows, row, "compact_stalls_per_s", v->stall_rate);
	ka_observed_real(rows, row, "thp_fallbacks_per_s", v->fallback_rate);
}

/* No kernel value while memory is exhausted: memory.exhausted says why. */
static void
set_thp(KaRows *rows, KaAdvice *row, const char *file, KaFact current, const char *value)
{
	ka_set_thp(rows, row, file, current, rows->view->exhausted ? NULL : value);
}

/* Do faults of anonymous memory ask for the blocks that stall? */
static bool
faults_stall(const KaView *v)
{
	return v->stall_rate >= KA_LIMIT(STALL_IDLE) && v->fallback_rate > 0 &&
		v->fallback_rate >= KA_LIMIT(FALLBACK_SHARE) * v->stall_rate;
}

/* Size of a transparent huge page: a page of entries of 8 B, each for one page. */
static int64_t
thp_size(const KaView *v)
{
	int64_t		size = ka_int(v->facts, KA_THP_PMD_SIZE);

	if (size != KA_UNKNOWN || !ka_known(v->facts, KA_KERNEL_PAGE_SIZE))
		return size;
	return ka_mul(v->base_page / 8, v->base_page);
}

/*
 * thp.defrag
 */
void
ka_rule_thp_defrag(const KaView *v, KaRows *rows)
{
	static const char *const stalling[] = {"always", "madvise", "defer+madvise"};
	const char *defrag = ka_text(v->facts, KA_THP_DEFRAG);
	bool		possible = is_one_of(defrag, stalling, KA_LENGTH(stalling)) && !ka_is(v->facts, KA_THP_ENABLED, "never");
	KaAdvice   *row;

	if (!possible)
		return;
	if (!faults_stall(v))
	{
		/* The usual suspect, and nobody counted. */
		if (strcmp(defrag, "always") != 0 || v->fallback_rate >= 0 || v->stall_rate < KA_LIMIT(STALL_POLICY) ||
			v->stall_share >= KA_LIMIT(STALL_SHARE))
			return;
		row = ka_row(rows, KA_INFO, "thp.defrag");
		ka_reason(rows, row, "%.1f direct compactions a second, and defrag = always lets each fault of a large page compact: thp_fault_fallback in /proc/vmstat tells whether it is them.",
				  v->stall_rate);
		set_thp(rows, row, "defrag", KA_THP_DEFRAG, NULL);
		saw_faults(rows, row);
		return;
	}

	row = ka_row(rows, v->stall_rate >= KA_LIMIT(STALL_THP) ? KA_WARNING : KA_INFO, "thp.defrag");
	ka_reason(rows, row, "%.1f times a second a process compacts memory itself, and %.1f faults a second get no large page after all: defrag = %s makes %s wait for one, defer leaves that to the background.",
			  v->stall_rate, v->fallback_rate, defrag,
			  strcmp(defrag, "always") == 0 ? "every fault" : "programs that ask (madvise)");
	/* defer came with 4.6; before, only never does not stall. */
	set_thp(rows, row, "defrag", KA_THP_DEFRAG, v->kernel > 0 && v->kernel < 4006 ? "never" : "defer");
	ka_saw(rows, row, KA_THP_ENABLED);
	saw_faults(rows, row);
	KA_LIMITS(rows, row, KA_T_STALL_IDLE, KA_T_STALL_THP, KA_T_FALLBACK_SHARE);
}

/*
 * thp.enabled
 */
void
ka_rule_thp_enabled(const KaView *v, KaRows *rows)
{
	const char *defrag = ka_text(v->facts, KA_THP_DEFRAG);
	int64_t		size = thp_size(v);
	KaAdvice   *row;

	if (!ka_is(v->facts, KA_THP_ENABLED, "always"))
		return;
	if ((double) size >= KA_LIMIT(LARGE_PAGE))
	{
		row = ka_row(rows, faults_stall(v) && v->stall_rate >= KA_LIMIT(STALL_THP) ? KA_WARNING : KA_INFO, "thp.enabled");
		ka_reason(rows, row, "A transparent huge page is %s here: with always one touch can make that much resident, and the kernel has to find it in one piece.",
				  ka_human(v->arena, size));
		set_thp(rows, row, "enabled", KA_THP_ENABLED, "madvise");
		ka_observed(rows, row, "thp_size_bytes", size);
		ka_limit(rows, row, KA_T_LARGE_PAGE);
	}
	else if (faults_stall(v) && (defrag == NULL || strcmp(defrag, "always") == 0))
	{
		row = ka_row(rows, defrag == NULL && v->stall_rate >= KA_LIMIT(STALL_THP) ? KA_WARNING : KA_INFO, "thp.enabled");
		ka_reason(rows, row, "With enabled = always every backend asks for large pages, and %.1f faults a second do not get one: madvise leaves that to programs that want them.",
				  v->fallback_rate);
		set_thp(rows, row, "enabled", KA_THP_ENABLED, "madvise");
		KA_LIMITS(rows, row, KA_T_STALL_IDLE, KA_T_FALLBACK_SHARE);
	}
	else if (v->stall_rate >= 0 && v->stall_rate < KA_LIMIT(STALL_IDLE) && v->fallback_rate >= 0)
	{
		row = ka_row(rows, KA_OK, "thp.enabled");
		ka_reason(rows, row, "Transparent huge pages are on and do no harm: %lld direct compactions in %.0f s.",
				  (long long) ka_int(v->facts, KA_W_COMPACT_STALL), v->seconds);
		set_thp(rows, row, "enabled", KA_THP_ENABLED, NULL);
		ka_limit(rows, row, KA_T_STALL_IDLE);
	}
	else
		return;
	ka_saw(rows, row, KA_THP_DEFRAG);
	saw_faults(rows, row);
}

/*
 * thp.shmem
 */

/* Can a pool for this server be had at all? */
static bool
pool_out_of_reach(const KaView *v)
{
	return !v->fits || (v->pool_grantable != KA_UNKNOWN && v->target != KA_UNKNOWN && v->enough == KA_NO &&
						v->pool_grantable < ka_sub(v->target, ka_or_zero(v->pool_total)));
}

/* Stalls of a write path with large folios, unless they are known to follow the clock. */
static bool
writes_explain(const KaView *v)
{
	return v->large_folios == KA_YES && (v->stall_share < 0 || v->stall_share >= KA_LIMIT(STALL_SHARE));
}

void
ka_rule_thp_shmem(const KaView *v, KaRows *rows)
{
	static const char *const large[] = {"always", "within_size", "force"};
	const char *shmem = ka_text(v->facts, KA_THP_SHMEM);
	bool		asks = is_one_of(shmem, large, KA_LENGTH(large));
	const char *defrag = ka_text(v->facts, KA_THP_DEFRAG);
	/* From 5.12 on defrag holds for shared memory too, and PostgreSQL never asks with madvise. */
	bool		compacts = defrag == NULL || strcmp(defrag, "always") == 0 || (v->kernel > 0 && v->kernel < 5012);
	bool		file_faults = v->stall_rate > 0 &&
		ka_real(v->facts, KA_W_THP_FILE_FALLBACK, 0) >= KA_LIMIT(FALLBACK_SHARE) * v->stall_rate * v->seconds;
	KaAdvice   *row;

	if (shmem == NULL || v->on_huge != KA_NO || v->down)
		return;
	if (asks && v->stall_rate >= KA_LIMIT(STALL_IDLE) && !v->thp_explains &&
		(compacts ? !writes_explain(v) || file_faults : v->large_folios != KA_YES))
	{
		row = ka_row(rows, compacts && v->stall_rate >= KA_LIMIT(STALL_THP) ? KA_WARNING : KA_INFO, "thp.shmem_enabled");
		if (compacts)
			ka_reason(rows, row, "shared_buffers is shared memory, so shmem_enabled = %s counts and not enabled: each first touch tries a large page, and %.1f times a second a process compacts for one%s; a reserved pool is the cure, thp.defrag = defer takes the stalls alone.",
					  shmem, v->stall_rate,
					  ka_is(v->facts, KA_THP_DEFRAG, "always") ? " since defrag is always" : "");
		else
			ka_reason(rows, row, "shared_buffers is shared memory, so shmem_enabled = %s counts and not enabled; but with defrag = %s its faults do not compact by themselves (5.12 and later): of the %.1f direct compactions a second others are the more likely cause, a reserved pool makes an end of the question.",
					  shmem, defrag, v->stall_rate);
		/* Where a pool is worth it large pages come from there, and these are for nothing. */
		set_thp(rows, row, "shmem_enabled", KA_THP_SHMEM, v->worth == KA_NO || v->reserve ? "never" : NULL);
		ka_limit(rows, row, KA_T_STALL_IDLE);
	}
	else if (v->worth == KA_YES && strcmp(shmem, "advise") == 0)
	{
		row = ka_row(rows, KA_INFO, "thp.shmem_enabled");
		ka_reason(rows, row, "shmem_enabled = advise changes nothing for shared_buffers: PostgreSQL never asks with madvise.");
		set_thp(rows, row, "shmem_enabled", KA_THP_SHMEM, NULL);
		if (row)
			row->confidence = KA_DOCUMENTED;
	}
	else if (v->worth == KA_YES && !asks && pool_out_of_reach(v) && !v->exhausted &&
			 thp_size(v) > 0 && (double) thp_size(v) < KA_LIMIT(LARGE_PAGE))
	{
		row = ka_row(rows, KA_INFO, "thp.shmem_enabled");
		ka_reason(rows, row, "Where no pool of huge pages can be reserved, shmem_enabled = always is the half-way house: shared_buffers gets large pages as memory allows, without a reservation.");
		set_thp(rows, row, "shmem_enabled", KA_THP_SHMEM, "always");
		ka_observed(rows, row, "pool_grantable", v->pool_grantable);
	}
	else
		return;
	KA_SAW(rows, row, KA_THP_ENABLED, KA_THP_DEFRAG);
	saw_faults(rows, row);
	ka_saw_pool(rows, row);
}
