/*
 * stats.c: medians, and whether two values of a setting differ (see stats.h).
 *
 * The means of all pairs of n numbers (Walsh averages) are n (n + 1) / 2
 * values.  They are not stored: the k-th smallest is found by bisection over
 * the numbers that a double can hold, counting in one pass over the sorted n
 * how many averages are not larger.  It is exact: the result is one of them.
 *
 * Locks: none.
 */
#include "stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAD_SCALE	1.4826		/* median absolute deviation to standard deviation, of a normal distribution */
#define OUTSIDE		0.025		/* on each side of the interval */
#define NORMAL_975	1.959963984540054	/* quantile of the normal distribution */

static int
by_value(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

double
ka_median(double *values, size_t count)
{
	if (count == 0)
		return NAN;
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double
ka_spread(double *values, size_t count)
{
	double		median = ka_median(values, count);

	for (size_t i = 0; i < count; i++)
		values[i] = fabs(values[i] - median);
	return MAD_SCALE * ka_median(values, count);
}

/*
 * ----------------------------------------------------------------
 * The signed rank test
 * ----------------------------------------------------------------
 */

/*
 * How many averages lie outside of the interval on each side, and one: the
 * smallest x with P(T <= x) >= 2.5 %, where T is the sum of the ranks with a
 * positive sign.  0: no interval of 95 %.
 *
 * P(T = s) * 2^n is the number of subsets of 1..n with the sum s.
 */
static size_t
exact_bound(size_t n)
{
	double		probability[KA_EXACT_PAIRS * (KA_EXACT_PAIRS + 1) / 4 + 1] = {1};
	size_t		most = n * (n + 1) / 4;	/* the distribution is symmetric: half of it will do */
	double		sum = 0;

	for (size_t rank = 1; rank <= n; rank++)
	{
		for (size_t s = most + 1; s-- > 0;)
			probability[s] = (probability[s] + (s >= rank ? probability[s - rank] : 0)) / 2;
	}
	for (size_t s = 0; s <= most; s++)
	{
		sum += probability[s];
		if (sum >= OUTSIDE)
			return s;
	}
	return most;				/* not reached: half of the distribution is 50 % */
}

static size_t
bound(size_t n)
{
	double		mean = (double) n * (double) (n + 1) / 4;
	double		deviation = sqrt((double) n * (double) (n + 1) * (double) (2 * n + 1) / 24);

	if (n < KA_PAIRS_LEAST)
		return 0;
	if (n <= KA_EXACT_PAIRS)
		return exact_bound(n);
	return (size_t) floor(mean - NORMAL_975 * deviation - 0.5);
}

/* Averages (with themselves as well) of the n sorted values that are <= limit. */
static size_t
count_averages(const double *sorted, size_t n, double limit)
{
	size_t		count = 0;
	size_t		j = n;

	for (size_t i = 0; i < n; i++)
	{
		while (j > 0 && sorted[i] / 2 + sorted[j - 1] / 2 > limit)
			j--;
		if (j <= i)
			break;
		count += j - i;			/* partners i .. j - 1 */
	}
	return count;
}

/* Doubles in their order as integers, and back. */
static uint64_t
to_ordinal(double value)
{
	uint64_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static double
from_ordinal(uint64_t ordinal)
{
	uint64_t	bits = ordinal >> 63 ? ordinal & ~(UINT64_C(1) << 63) : ~ordinal;
	double		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* The k-th smallest average, k from 1. */
static double
nth_average(const double *sorted, size_t n, size_t k)
{
	uint64_t	low = to_ordinal(sorted[0]);
	uint64_t	high = to_ordinal(sorted[n - 1]);

	while (low < high)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (count_averages(sorted, n, from_ordinal(middle)) >= k)
			high = middle;
		else
			low = middle + 1;
	}
	return from_ordinal(low);
}

static double
median_average(const double *sorted, size_t n)
{
	size_t		averages = n * (n + 1) / 2;

	if (averages % 2)
		return nth_average(sorted, n, averages / 2 + 1);
	return (nth_average(sorted, n, averages / 2) + nth_average(sorted, n, averages / 2 + 1)) / 2;
}

/*
 * ----------------------------------------------------------------
 * Pairs
 * ----------------------------------------------------------------
 */

static bool
counts(double value, double least)
{
	return isfinite(value) && value >= 0 && value + least > 0;
}

static KaVerdict
judge(const KaComparison *comparison, KaBetter better)
{
	if (isnan(comparison->low))
		return KA_NO_VERDICT;
	if (comparison->low > 1)
		return better == KA_HIGHER ? KA_BETTER : KA_WORSE;
	if (comparison->high < 1)
		return better == KA_LOWER ? KA_BETTER : KA_WORSE;
	return KA_SAME;
}

void
ka_compare_pairs(const double *old_values, const double *new_values, size_t count,
				 double least, KaBetter better, KaComparison *comparison)
{
	double		logs[KA_PAIRS_MOST];
	double		olds[KA_PAIRS_MOST];
	double		news[KA_PAIRS_MOST];
	size_t		n = 0;
	size_t		outside;

	for (size_t i = 0; i < count && n < KA_PAIRS_MOST; i++)
	{
		if (!counts(old_values[i], least) || !counts(new_values[i], least))
			continue;
		olds[n] = old_values[i];
		news[n] = new_values[i];
		logs[n++] = log((new_values[i] + least) / (old_values[i] + least));
	}

	comparison->pairs = n;
	comparison->old_median = ka_median(olds, n);
	comparison->new_median = ka_median(news, n);
	comparison->ratio = comparison->low = comparison->high = NAN;
	if (n > 0)
	{
		qsort(logs, n, sizeof(*logs), by_value);
		comparison->ratio = exp(median_average(logs, n));
	}
	outside = bound(n);
	if (outside > 0)
	{
		comparison->low = exp(nth_average(logs, n, outside));
		comparison->high = exp(nth_average(logs, n, n * (n + 1) / 2 - outside + 1));
	}
	comparison->verdict = judge(comparison, better);
}

const char *
ka_verdict_name(KaVerdict verdict)
{
	static const char *const names[] = {"undecided", "better", "no difference seen", "worse", "not enough data"};

	return (size_t) verdict < sizeof(names) / sizeof(names[0]) ? names[verdict] : NULL;
}
