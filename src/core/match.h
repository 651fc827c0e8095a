/*
 * match.h: stretches of time before and after a change, paired by their load.
 *
 * Where two values cannot be tried in turns, because one of them needs a
 * restart, the windows before and after are all there is.  Only windows with
 * comparable load (ka_same_load) are compared, each with the one on the other
 * side that is most like it.  The pairs go to ka_compare_pairs (stats.h), but
 * without a random order its interval holds only as far as nothing else has
 * changed in between.
 */
#ifndef KA_MATCH_H
#define KA_MATCH_H

#include <stdbool.h>
#include <stddef.h>

/* The load of one window; NaN: not known. */
typedef struct KaLoad
{
	double		tps;
	double		backends;		/* connections, mean */
	double		work;			/* B of WAL per transaction */
} KaLoad;

typedef struct KaMatch
{
	size_t		before;			/* index of the window */
	size_t		after;
} KaMatch;

/*
 * Pairs of windows, each used once; returns how many.  "matches" has room for
 * the smaller of both numbers.  Windows of an idle server match nothing.
 */
extern size_t ka_match_windows(const KaLoad *before, size_t nbefore, const KaLoad *after, size_t nafter,
							   KaMatch *matches);

#endif							/* KA_MATCH_H */
