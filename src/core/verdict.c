/*
 * verdict.c: medians, noise, and what follows from them.
 *
 * Invariants: an observation that is not known (NaN) never counts, neither for
 * nor against; the verdict does not depend on the order of the observations;
 * arrays are bounded by baseline_most and watched_most, newest first kept.
 *
 * Locks: none.
 */
#include "verdict.h"

#include <math.h>
#include <string.h>

#define MAX_OBSERVATIONS 64

const KaMeasureInfo ka_measure_info[KA_NMEASURES] = {
#define MEASURE(symbol, name, unit, better, floor_pct, floor, formula, source) \
	{name, unit, better, floor_pct, floor, formula, source},
#include "verdict.def"
};

const KaVerdictLimitInfo ka_verdict_limit_info[KA_NVERDICT_LIMITS] = {
#define VERDICT_LIMIT(symbol, value, unit, formula, source) {#symbol, value, unit, formula, source},
#include "verdict.def"
};

/* Appends a value that is known. */
static void
keep(double *values, size_t *count, double value)
{
	if (!isnan(value) && *count < MAX_OBSERVATIONS)
		values[(*count)++] = value;
}

static bool
idle(const KaObservation *observation)
{
	double		tps = fmax(observation->value[KA_M_TPS_OUTSIDE], observation->value[KA_M_TPS_DURING]);

	return !(tps >= KA_VERDICT_LIMIT(IDLE_TPS));	/* also when neither is known */
}

bool
ka_same_load(double backends, double work, double base_backends, double base_work)
{
	double		more = fabs(backends - base_backends);
	double		more_work = fabs(work - base_work);
	double		factor = KA_VERDICT_LIMIT(WORK_FACTOR);

	if (more > KA_VERDICT_LIMIT(BACKENDS_LEAST) && more > base_backends * KA_VERDICT_LIMIT(BACKENDS_PCT) / 100)
		return false;
	return !(more_work > KA_VERDICT_LIMIT(WORK_LEAST) &&
			 (work > base_work * factor || work * factor < base_work));
}

static void
measure_level(const double *known, size_t count, KaMeasure measure, KaLevel *level)
{
	double		values[MAX_OBSERVATIONS];

	memcpy(values, known, count * sizeof(*values));
	level->count = count;
	level->median = ka_median(values, count);
	level->noise = KA_VERDICT_LIMIT(SPREAD) * ka_spread(values, count);
	level->tolerance = fmax(fmax(level->noise, ka_measure_info[measure].floor),
							fabs(level->median) * ka_measure_info[measure].floor_pct / 100);
}

static bool
judged(const KaLevel *level)
{
	return level->count >= (size_t) KA_VERDICT_LIMIT(BASELINE_LEAST);
}

static bool
too_noisy(const KaLevel *level)
{
	return level->noise > level->median * KA_VERDICT_LIMIT(NOISE_PCT) / 100;
}

KaReadiness
ka_baseline(const KaObservation *all, size_t count, KaBaseline *baseline)
{
	const KaObservation *chosen[MAX_OBSERVATIONS];
	double		known[MAX_OBSERVATIONS];
	size_t		most = (size_t) KA_VERDICT_LIMIT(BASELINE_MOST);
	size_t		n = 0;

	memset(baseline, 0, sizeof(*baseline));
	baseline->backends = baseline->work = NAN;
	if (count == 0)
		return KA_TOO_FEW;

	for (size_t i = count; i > 0 && n < most; i--)
	{
		if (!idle(&all[i - 1]) && ka_same_load(all[i - 1].backends, all[i - 1].work, all[count - 1].backends, all[count - 1].work))
			chosen[n++] = &all[i - 1];
	}
	baseline->count = n;

	for (int m = 0; m < KA_NMEASURES; m++)
	{
		size_t		nknown = 0;

		for (size_t i = 0; i < n; i++)
			keep(known, &nknown, chosen[i]->value[m]);
		measure_level(known, nknown, (KaMeasure) m, &baseline->level[m]);
	}
	for (int pass = 0; pass < 2; pass++)
	{
		size_t		nknown = 0;

		for (size_t i = 0; i < n; i++)
			keep(known, &nknown, pass == 0 ? chosen[i]->backends : chosen[i]->work);
		*(pass == 0 ? &baseline->backends : &baseline->work) = ka_median(known, nknown);
	}

	if (idle(&all[count - 1]))
		return KA_IDLE;
	if (!judged(&baseline->level[KA_M_TPS_OUTSIDE]) && !judged(&baseline->level[KA_M_TPS_DURING]))
		return KA_TOO_FEW;
	if ((judged(&baseline->level[KA_M_TPS_OUTSIDE]) && too_noisy(&baseline->level[KA_M_TPS_OUTSIDE])) ||
		(judged(&baseline->level[KA_M_TPS_DURING]) && too_noisy(&baseline->level[KA_M_TPS_DURING])))
		return KA_UNEVEN;
	return KA_READY;
}

bool
ka_comparable(const KaObservation *observation, const KaBaseline *baseline)
{
	return !idle(observation) && ka_same_load(observation->backends, observation->work, baseline->backends, baseline->work);
}

/* How far on the bad side, in tolerances; negative: on the good one. */
static double
badness(double value, const KaLevel *level, KaMeasure measure)
{
	return (level->median - value) * ka_measure_info[measure].better / level->tolerance;
}

static bool
is_throughput(KaMeasure measure)
{
	return measure == KA_M_TPS_OUTSIDE || measure == KA_M_TPS_DURING;
}

/* Of one measure: "after" has "count" values that are known.  True: they decide. */
static bool
judge_measure(double *after, size_t count, const KaLevel *level, KaMeasure measure, KaJudgement *judgement)
{
	size_t		worst = 0;
	double		bad;

	for (size_t i = 1; i < count; i++)
	{
		if (badness(after[i], level, measure) > badness(after[worst], level, measure))
			worst = i;
	}
	judgement->measure = measure;
	judgement->before = level->median;
	judgement->tolerance = level->tolerance;

	if (is_throughput(measure) && count > 0 &&
		badness(after[worst], level, measure) > KA_VERDICT_LIMIT(ALARM))
	{
		judgement->verdict = KA_WORSE;
		judgement->after = after[worst];
		return true;
	}
	if (count < (size_t) KA_VERDICT_LIMIT(WATCHED_LEAST))
		return false;
	judgement->after = ka_median(after, count);
	bad = badness(judgement->after, level, measure);
	judgement->verdict = bad > 1 ? KA_WORSE : bad < -1 ? KA_BETTER : KA_SAME;
	return true;
}

void
ka_judge(const KaBaseline *baseline, const KaObservation *after, size_t count,
		 int64_t seconds, KaJudgement *judgement)
{
	KaJudgement best = {.verdict = KA_UNDECIDED,.measure = KA_NMEASURES};
	bool		throughput = false;

	memset(judgement, 0, sizeof(*judgement));
	judgement->measure = KA_NMEASURES;
	for (size_t i = 0; i < count; i++)
		judgement->comparable += ka_comparable(&after[i], baseline);

	for (int m = 0; m < KA_NMEASURES; m++)
	{
		const KaLevel *level = &baseline->level[m];
		double		known[MAX_OBSERVATIONS];
		size_t		nknown = 0;
		KaJudgement one = *judgement;

		for (size_t i = count; i > 0; i--)
		{
			if (ka_comparable(&after[i - 1], baseline))
				keep(known, &nknown, after[i - 1].value[m]);
		}
		if (!judged(level) || !judge_measure(known, nknown, level, (KaMeasure) m, &one))
			continue;
		if (one.verdict == KA_WORSE)
		{
			*judgement = one;
			return;				/* the first in the table's order: throughput before latency */
		}
		throughput |= is_throughput((KaMeasure) m);
		if (best.verdict == KA_UNDECIDED || (best.verdict == KA_SAME && one.verdict == KA_BETTER))
			best = one;
	}

	/* Latency alone acquits nobody. */
	if (throughput)
		*judgement = best;
	else if (count >= (size_t) KA_VERDICT_LIMIT(WATCHED_MOST) ||
			 (double) seconds >= KA_VERDICT_LIMIT(WATCHED_SECONDS))
		judgement->verdict = KA_NO_VERDICT;
}

double
ka_median_of(const KaObservation *all, size_t count, const KaBaseline *baseline, KaMeasure measure)
{
	double		known[MAX_OBSERVATIONS];
	size_t		nknown = 0;

	for (size_t i = count; i > 0; i--)
	{
		if (ka_comparable(&all[i - 1], baseline))
			keep(known, &nknown, all[i - 1].value[measure]);
	}
	return ka_median(known, nknown);
}

const char *
ka_auto_refusal(const KaAdvice *row)
{
	if (row->recommended == NULL)
		return "it has no value to set";
	if (row->severity > KA_WARNING)
		return "it is neither critical nor a warning";
	if (row->confidence != KA_MEASURED)
		return "it was not measured here";
	if (row->activation != KA_NONE)
		return "it takes effect later only";
	return NULL;
}

const char *
ka_readiness_text(KaReadiness readiness)
{
	static const char *const texts[] = {
		"ready",
		"too few comparable checkpoints yet",
		"the server is idle",
		"the load is too uneven to see an effect",
	};

	return texts[readiness];
}
