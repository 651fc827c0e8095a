/*
 * effect.h: what the samples say about a stretch of time.
 *
 * One measure for the change log ("before", "after") and for everybody who has
 * to decide whether a change was good.
 */
#ifndef KA_EFFECT_H
#define KA_EFFECT_H

#include "ka_json.h"
#include "datatype/timestamp.h"

/* A stretch that has less than this says nothing. */
#define KA_EFFECT_MIN_SECONDS 10

/* "before": at most so far back from the change, and not beyond the change before it. */
#define KA_EFFECT_BEFORE_SECONDS 600

/* "after": at most so far from it. */
#define KA_EFFECT_AFTER_SECONDS 3600

/* Numbers that are not known are NaN.  Stored in the change log: fixed layout. */
typedef struct KaEffect
{
	int64		samples;		/* 0: nothing was measured */
	int64		checkpoints;	/* with a known dip */
	double		seconds;		/* that the samples cover */
	double		tps;			/* median of transactions/s over slices of a second and more */
	double		compact_stall;	/* 1/s */
	double		allocstall;		/* 1/s */
	double		page_table_bytes;	/* mean */
	double		write_latency_us;	/* mean time of a write on the devices */
	double		dip_pct;		/* median of the checkpoints' dips */
} KaEffect;

/* A stretch of time; one that does not begin before it ends is empty. */
typedef struct KaStretch
{
	TimestampTz from;
	TimestampTz to;
} KaStretch;

/* Samples whose whole interval lies within; all zero and NaN without preloading. */
extern void ka_effect_measure(TimestampTz from, TimestampTz to, KaEffect *effect);

/* Several, in one pass: in the order of time, of two that overlap the first has the samples. */
extern void ka_effects_measure(const KaStretch *stretches, int n, KaEffect *effects);

/* Whether it is long enough to say anything. */
extern bool ka_effect_suffices(const KaEffect *effect);

/* {"samples": ..., "seconds": ..., "tps": ..., ...}; what is not known is left out. */
extern bool ka_effect_encode(const KaEffect *effect, const KaJsonSink *sink);

/* "name": value, in that printf format; nothing when it is NaN. */
extern bool ka_encode_number(const KaJsonSink *sink, const char *name, double value, const char *format);

#endif							/* KA_EFFECT_H */
