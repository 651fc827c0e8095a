/*
 * match.c: stretches of time before and after a change, paired by their load.
 *
 * Greedy, and the same whatever the order of the windows: of all pairs that are
 * comparable and not used yet, the most alike comes first.  A distance is the
 * sum of the logarithms' differences, so that half and twice are equally far.
 * Throughput is no part of it: that is what is to be compared.
 *
 * Locks: none.
 */
#include "match.h"

#include <math.h>

#include "verdict.h"

static bool
idle(const KaLoad *load)
{
	return !(load->tps >= KA_VERDICT_LIMIT(IDLE_TPS));
}

/* One connection, or one byte, more or less is no difference at the low end. */
static double
apart(double a, double b, double least)
{
	return isnan(a) || isnan(b) ? 0 : fabs(log((a + least) / (b + least)));
}

/* Negative: not comparable. */
static double
distance(const KaLoad *before, const KaLoad *after)
{
	if (idle(before) || idle(after) || !ka_same_load(after->backends, after->work, before->backends, before->work))
		return -1;
	return apart(before->backends, after->backends, 1) + apart(before->work, after->work, 100);
}

static bool
used(const KaMatch *matches, size_t n, size_t before, size_t after)
{
	for (size_t i = 0; i < n; i++)
	{
		if (matches[i].before == before || matches[i].after == after)
			return true;
	}
	return false;
}

size_t
ka_match_windows(const KaLoad *before, size_t nbefore, const KaLoad *after, size_t nafter, KaMatch *matches)
{
	size_t		n = 0;

	while (n < nbefore && n < nafter)
	{
		double		least = INFINITY;

		for (size_t b = 0; b < nbefore; b++)
			for (size_t a = 0; a < nafter; a++)
			{
				double		d = distance(&before[b], &after[a]);

				if (d < 0 || d >= least || used(matches, n, b, a))
					continue;
				least = d;
				matches[n] = (KaMatch) {.before = b,.after = a};
			}
		if (isinf(least))
			break;
		n++;
	}
	return n;
}
