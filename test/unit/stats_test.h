/*
 * stats_test.h: what the tests of comparisons share: numbers drawn at random,
 * the same in every run, and how sure a rate is.
 */
#ifndef KA_STATS_TEST_H
#define KA_STATS_TEST_H

#include "stats.h"
#include "ka_test.h"

/* The same numbers in every run: splitmix64. */
static uint64_t random_state;

static inline double
uniform(void)
{
	uint64_t	z = random_state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (double) ((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

/* 95 % interval (Wilson) of a rate. */
static inline void
rate_interval(int hits, int runs, double *low, double *high)
{
	double		z = 1.959964;
	double		rate = (double) hits / runs;
	double		middle = rate + z * z / (2 * runs);
	double		width = z * sqrt(rate * (1 - rate) / runs + z * z / (4.0 * runs * runs));

	*low = (middle - width) / (1 + z * z / runs);
	*high = (middle + width) / (1 + z * z / runs);
}

#endif							/* KA_STATS_TEST_H */
