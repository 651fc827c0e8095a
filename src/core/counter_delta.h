/*
 * counter_delta.h: what happened between two readings of counters.c.
 *
 * A total since boot that went backwards was reset, or its device came anew:
 * what it grew by is not known.
 */
#ifndef KA_COUNTER_DELTA_H
#define KA_COUNTER_DELTA_H

#include "counters.h"

static inline int64_t
ka_counter_delta(int64_t before, int64_t now)
{
	return before == KA_UNKNOWN || now == KA_UNKNOWN || now < before ? KA_UNKNOWN : now - before;
}

/*
 * Time doing I/O (ms) of the busier of the two devices.  Which one that is may
 * change from one interval to the next, so the larger of the deltas counts, not
 * the delta of the larger total; KA_UNKNOWN is below any time.
 */
static inline int64_t
ka_busy_delta(const KaCounters *before, const KaCounters *now)
{
	int64_t		first = ka_counter_delta(before->io_ms, now->io_ms);
	int64_t		second = ka_counter_delta(before->io_ms_second, now->io_ms_second);

	return first > second ? first : second;
}

/*
 * Without the probe: what the gauge of the per-CPU lists says of their drains.
 * A sum that is smaller than at the reading before, after a direct compaction
 * or reclaim, was drained of at least the difference; lists that filled up
 * again since hide the rest.  A drain of all lists follows a direct reclaim, so
 * there were that many at most; it is taken for one when the sum fell to half.
 */
static inline void
ka_drain_estimate(const KaCounters *before, const KaCounters *now, int64_t *drains, int64_t *pages)
{
	int64_t		reclaims = ka_counter_delta(before->allocstall, now->allocstall);
	int64_t		compactions = ka_counter_delta(before->compact_stall, now->compact_stall);

	*drains = *pages = KA_UNKNOWN;
	if (before->pcp_pages == KA_UNKNOWN || now->pcp_pages == KA_UNKNOWN || reclaims == KA_UNKNOWN || compactions == KA_UNKNOWN)
		return;
	*pages = reclaims + compactions > 0 && now->pcp_pages < before->pcp_pages ? before->pcp_pages - now->pcp_pages : 0;
	*drains = reclaims > 0 && now->pcp_pages <= before->pcp_pages / 2 ? 1 : 0;
}

#endif							/* KA_COUNTER_DELTA_H */
