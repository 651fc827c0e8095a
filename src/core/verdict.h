/*
 * verdict.h: what auto_apply may do, and whether it did good.
 *
 * Pure functions: which row of advice may be applied without asking, what the
 * checkpoints before a change say about the noise, and what those after it say
 * about the change.  Neither clocks nor kernels nor servers in here: all times
 * and observations are arguments.
 *
 * A checkpoint with the time since the one before it is one observation.  Of
 * the baseline each measure keeps median and spread; a change is worse when the
 * median of the observations after it is farther from that median, on the bad
 * side, than noise and a least difference that matters explain.
 */
#ifndef KA_VERDICT_H
#define KA_VERDICT_H

#include "advice.h"
#include "stats.h"

typedef enum KaMeasure
{
#define MEASURE(symbol, name, unit, better, floor_pct, floor, formula, source) KA_M_##symbol,
#include "verdict.def"
	KA_NMEASURES
} KaMeasure;

typedef enum KaVerdictLimit
{
#define VERDICT_LIMIT(symbol, value, unit, formula, source) KA_VL_##symbol,
#include "verdict.def"
	KA_NVERDICT_LIMITS
} KaVerdictLimit;

typedef struct KaMeasureInfo
{
	const char *name;
	const char *unit;
	KaBetter	better;
	double		floor_pct;		/* % of the baseline's median */
	double		floor;			/* in the unit */
	const char *formula;
	const char *source;
} KaMeasureInfo;

typedef struct KaVerdictLimitInfo
{
	const char *symbol;
	double		value;
	const char *unit;
	const char *formula;
	const char *source;
} KaVerdictLimitInfo;

extern const KaMeasureInfo ka_measure_info[KA_NMEASURES];
extern const KaVerdictLimitInfo ka_verdict_limit_info[KA_NVERDICT_LIMITS];

#define KA_VERDICT_LIMIT(symbol) (ka_verdict_limit_info[KA_VL_##symbol].value)

/* NaN: not known. */
typedef struct KaObservation
{
	double		value[KA_NMEASURES];
	double		backends;		/* connections, mean over the samples */
	double		work;			/* B of WAL per transaction */
} KaObservation;

/* Median and noise of one measure, from "count" observations. */
typedef struct KaLevel
{
	size_t		count;			/* fewer than baseline_least: not judged */
	double		median;
	double		noise;			/* >= 0, in the unit */
	double		tolerance;		/* the larger of noise and floors */
} KaLevel;

typedef enum KaReadiness
{
	KA_READY,
	KA_TOO_FEW,					/* not enough comparable checkpoints yet */
	KA_IDLE,					/* the newest checkpoint saw no load */
	KA_UNEVEN					/* more noise than an effect would be seen through */
} KaReadiness;

typedef struct KaBaseline
{
	KaLevel		level[KA_NMEASURES];
	double		backends;		/* median; NaN: not known */
	double		work;			/* the same */
	size_t		count;			/* observations that were comparable */
} KaBaseline;

typedef struct KaJudgement
{
	KaVerdict	verdict;
	KaMeasure	measure;		/* the one that decided; KA_NMEASURES: none */
	double		before;			/* its median in the baseline */
	double		after;			/* and after the change */
	double		tolerance;		/* the difference up to which nothing is said */
	size_t		comparable;		/* observations after the change that counted */
} KaJudgement;

/*
 * The newest observations of "all" (oldest first) that are comparable with the
 * newest one.
 */
extern KaReadiness ka_baseline(const KaObservation *all, size_t count, KaBaseline *baseline);

/*
 * Is a load (connections, B of WAL per transaction) like that of the base?
 * What is not known on either side is no difference.
 */
extern bool ka_same_load(double backends, double work, double base_backends, double base_work);

/* Enough load, of the kind of the baseline? */
extern bool ka_comparable(const KaObservation *observation, const KaBaseline *baseline);

/* "after" are all observations since the change, oldest first; "seconds" since it. */
extern void ka_judge(const KaBaseline *baseline, const KaObservation *after, size_t count,
					 int64_t seconds, KaJudgement *judgement);

/* The median of one measure over comparable observations, NaN without any: for the record. */
extern double ka_median_of(const KaObservation *all, size_t count, const KaBaseline *baseline, KaMeasure measure);

/* Why a row of advice is not applied by itself; NULL: it may be. */
extern const char *ka_auto_refusal(const KaAdvice *row);

extern const char *ka_readiness_text(KaReadiness readiness);

#endif							/* KA_VERDICT_H */
