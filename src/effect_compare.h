/*
 * effect_compare.h: before and after a change that needed a restart, as far as
 * their loads are comparable.
 */
#ifndef KA_EFFECT_COMPARE_H
#define KA_EFFECT_COMPARE_H

#include "changes.h"
#include "match.h"
#include "trials.h"

typedef struct KaEffectComparison
{
	int			windows_before; /* with samples */
	int			windows_after;
	int			pairs;			/* of windows with comparable load; fewer than KA_PAIRS_LEAST: not comparable */
	double		window_seconds;
	KaLoad		load_before;	/* medians over the windows; NaN: not known */
	KaLoad		load_after;
	KaEffect	dips_before;	/* for its checkpoints and their dips */
	KaEffect	dips_after;
	KaComparison results[KA_NTRIAL_MEASURES];
} KaEffectComparison;

/*
 * Of record i, which took effect with the server's last start: the ten minutes
 * before it was asked for against the time since that start, up to an hour or
 * the next change.  False: it is not such a change, or nothing is known of the
 * time before or after.
 */
extern bool ka_effect_compare(const KaChangeRecord *records, int n, int i, KaEffectComparison *comparison);

/* {"comparable": ..., "pairs": ..., "tps": {"before": ..., "ratio": ..., "verdict": ...}, ...} */
extern bool ka_effect_compare_encode(const KaEffectComparison *comparison, const KaJsonSink *sink);

#endif							/* KA_EFFECT_COMPARE_H */
