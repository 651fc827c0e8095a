/*
 * stats.h: medians, and whether two values of a setting differ.
 *
 * Pure functions without memory of their own.  A comparison is of pairs: each
 * pair has one measurement at the old value and one at the new value, taken
 * close to each other in random order, so that what changes slowly (load,
 * caches, neighbours) is the same for both.
 *
 * The figure is the ratio new / old.  Of the logarithms of the pairs' ratios
 * the Hodges-Lehmann estimate is taken (the median of the means of all pairs of
 * them, each with itself included), and the interval is that of the exact
 * paired permutation test on ranks (Wilcoxon's signed rank test): all shifts
 * that this test does not reject.  When a value has no effect, swapping the two
 * sides of a pair changes nothing, whatever the distribution; that is all that
 * the test needs, and the random order provides it.  So the interval contains
 * 1 in at least 95 of 100 trials of a value without effect.  Nothing is drawn at
 * random here: the same pairs give the same interval.
 *
 *	few pairs	below KA_PAIRS_LEAST there is no interval of 95 %: not enough data
 *	unknown		a pair with a side that is NaN, infinite or negative does not count
 *	zeros		"least" is added to both sides before the ratio is taken, for what may
 *				be 0 (counts: half a count; 289 against 0 is a ratio, not an infinity).
 *				With least = 0, a pair with a 0 does not count
 *	ties		equal sides are a ratio of 1 and do count: many of them make the
 *				interval wider than it need be, never narrower
 *	many pairs	above KA_EXACT_PAIRS the bounds come from the normal approximation,
 *				with continuity correction
 */
#ifndef KA_STATS_H
#define KA_STATS_H

#include <stdbool.h>
#include <stddef.h>

#define KA_PAIRS_LEAST	6		/* 2 of 2^6 orders of signs are as extreme as all alike: 3.1 % */
#define KA_PAIRS_MOST	500		/* more are not looked at: the first ones count */
#define KA_EXACT_PAIRS	100

typedef enum KaBetter
{
	KA_HIGHER = 1,
	KA_LOWER = -1
} KaBetter;

typedef enum KaVerdict
{
	KA_UNDECIDED,				/* go on watching */
	KA_BETTER,
	KA_SAME,					/* no difference seen: there may be a smaller one than could be */
	KA_WORSE,
	KA_NO_VERDICT				/* not enough data */
} KaVerdict;

/* Numbers that are not known are NaN. */
typedef struct KaComparison
{
	size_t		pairs;			/* that counted */
	double		old_median;		/* over these pairs, as measured */
	double		new_median;
	double		ratio;			/* new / old; from 1 pair on */
	double		low;			/* 95 % confidence interval; from KA_PAIRS_LEAST pairs on */
	double		high;
	KaVerdict	verdict;		/* the interval does not contain 1: better or worse */
} KaComparison;

/* The mean of the two in the middle where their number is even; NaN of none.  Sorts the values. */
extern double ka_median(double *values, size_t count);

/* Median absolute deviation, scaled to the standard deviation of a normal distribution.  Overwrites the values. */
extern double ka_spread(double *values, size_t count);

/* Compares count pairs; "least": see above, >= 0, in the unit of the measurements. */
extern void ka_compare_pairs(const double *old_values, const double *new_values, size_t count,
							 double least, KaBetter better, KaComparison *comparison);

/* NULL: no such verdict. */
extern const char *ka_verdict_name(KaVerdict verdict);

#endif							/* KA_STATS_H */
