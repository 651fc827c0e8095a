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

#endif							/* KA_COUNTER_DELTA_H */
