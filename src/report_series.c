/*
 * report_series.c: samples, many, as lines of a chart, few.
 *
 * Time is cut into buckets, at most REPORT_BUCKETS of a length that people
 * count in.  A sample is valid for its whole interval: it counts in each bucket
 * that it touches, weighted by how long.  So a bucket has the average over the
 * time that was sampled, and beside it the least and the largest value that a
 * sample in it had: a dip of a second is seen in a chart of a day.
 *
 * Rates are taken over a second at least, since backends report transactions
 * about that often: shorter samples show lumps and holes that are none.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "report.h"
#include "ring.h"

#define REPORT_BUCKETS 1500
#define RATE_SPAN_US INT64CONST(1000000)

/* Lengths of a bucket, s; longer ones are whole days. */
static const int bucket_lengths[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400};

typedef struct Line
{
	const char *key;
	const char *unit;
	bool		rate;
	int			index;			/* KaDelta or KaGauge */
	double		divisor;
} Line;

static const Line lines[] = {
#define RATE(key, delta, divisor, unit) {#key, unit, true, KA_D_##delta, divisor},
#define LEVEL(key, gauge, divisor, unit) {#key, unit, false, KA_G_##gauge, divisor},
#include "report_series.def"
};

#define NLINES ((int) lengthof(lines))

/* What a line did in a bucket. */
typedef struct Bucket
{
	double		sum;			/* of value * µs */
	double		weight;			/* µs; 0: not known */
	double		min;
	double		max;
} Bucket;

/* A rate in the making: samples that are shorter than RATE_SPAN_US together. */
typedef struct Span
{
	TimestampTz begin;
	TimestampTz end;
	int64		known_us[NLINES];
	int64		delta[NLINES];
} Span;

typedef struct Series
{
	TimestampTz origin;			/* begin of the first bucket */
	int64		length;			/* µs */
	int			nbuckets;
	uint64		samples;
	Bucket	   *buckets;		/* [nbuckets][NLINES] */
	Span		span;
} Series;

static int64
bucket_length(int64 range_us)
{
	int64		day = INT64CONST(86400) * USECS_PER_SEC;

	for (int i = 0; i < (int) lengthof(bucket_lengths); i++)
	{
		if (range_us / (bucket_lengths[i] * USECS_PER_SEC) < REPORT_BUCKETS)
			return bucket_lengths[i] * USECS_PER_SEC;
	}
	return (range_us / day / (REPORT_BUCKETS - 1) + 1) * day;
}

/* A line had this value from "begin" to "end". */
static void
count(Series *series, int line, TimestampTz begin, TimestampTz end, double value)
{
	int64		first = Max(begin - series->origin, 0) / series->length;
	int64		last = (end - 1 - series->origin) / series->length;

	if (end <= series->origin)
		return;
	for (int64 i = first; i <= last && i < series->nbuckets; i++)
	{
		Bucket	   *bucket = &series->buckets[i * NLINES + line];
		TimestampTz from = series->origin + i * series->length;
		double		weight = Min(end, from + series->length) - Max(begin, from);

		if (bucket->weight == 0 || value < bucket->min)
			bucket->min = value;
		if (bucket->weight == 0 || value > bucket->max)
			bucket->max = value;
		bucket->sum += value * weight;
		bucket->weight += weight;
	}
}

/* The rates of the span that was gathered, and a new one. */
static void
end_span(Series *series)
{
	Span	   *span = &series->span;

	for (int i = 0; i < NLINES; i++)
	{
		if (lines[i].rate && span->known_us[i] > 0)
			count(series, i, span->begin, span->end,
				  span->delta[i] * (double) USECS_PER_SEC / span->known_us[i] / lines[i].divisor);
	}
	memset(span, 0, sizeof(*span));
}

static void
count_sample(Series *series, const KaSample *sample)
{
	Span	   *span = &series->span;
	TimestampTz begin = sample->at - sample->interval_us;

	if (span->begin != 0 && begin > span->end)
		end_span(series);		/* nothing was sampled in between */
	if (span->begin == 0)
		span->begin = begin;
	span->end = sample->at;

	for (int i = 0; i < NLINES; i++)
	{
		int64		value = lines[i].rate ? sample->delta[lines[i].index] : sample->gauge[lines[i].index];

		if (value == KA_UNKNOWN)
			continue;
		if (lines[i].rate)
		{
			span->known_us[i] += sample->interval_us;
			span->delta[i] += value;
		}
		else
			count(series, i, begin, sample->at, value / lines[i].divisor);
	}
	series->samples++;
	if (span->end - span->begin >= RATE_SPAN_US)
		end_span(series);
}

static void
count_ring(Series *series, const KaReportRange *range)
{
	KaSample   *samples = palloc(KA_RING_CHUNK * sizeof(KaSample));
	uint64		end = ka_ring_samples_end(NULL);
	uint64		next = 0;
	int			n;

	while (next < end && (n = ka_ring_copy_samples(next, samples, KA_RING_CHUNK, &next)) > 0)
	{
		for (int i = 0; i < n; i++)
		{
			if (samples[i].at > range->from && samples[i].at - samples[i].interval_us < range->to)
				count_sample(series, &samples[i]);
		}
		CHECK_FOR_INTERRUPTS();
	}
	end_span(series);
	pfree(samples);
}

/* As short as a chart needs: five digits. */
static void
put_number(StringInfo json, double value)
{
	if (value == rint(value) && fabs(value) < 1e15)
		appendStringInfo(json, "%.0f", value);
	else
		appendStringInfo(json, "%.5g", value);
}

static void
put_array(StringInfo json, const char *name, const Series *series, int line, double (*value) (const Bucket *))
{
	appendStringInfo(json, "\"%s\":[", name);
	for (int i = 0; i < series->nbuckets; i++)
	{
		const Bucket *bucket = &series->buckets[i * NLINES + line];

		if (i > 0)
			appendStringInfoChar(json, ',');
		if (bucket->weight > 0)
			put_number(json, value(bucket));
		else
			appendStringInfoString(json, "null");
	}
	appendStringInfoChar(json, ']');
}

static double
bucket_avg(const Bucket *bucket)
{
	return bucket->sum / bucket->weight;
}

static double
bucket_min(const Bucket *bucket)
{
	return bucket->min;
}

static double
bucket_max(const Bucket *bucket)
{
	return bucket->max;
}

static void
put_line(StringInfo json, const Series *series, int line)
{
	bool		known = false;

	for (int i = 0; i < series->nbuckets && !known; i++)
		known = series->buckets[i * NLINES + line].weight > 0;
	appendStringInfo(json, ",\"%s\":", lines[line].key);
	if (!known)
	{
		appendStringInfoString(json, "null");
		return;
	}
	appendStringInfo(json, "{\"unit\":\"%s\",", lines[line].unit);
	put_array(json, "avg", series, line, bucket_avg);
	appendStringInfoChar(json, ',');
	put_array(json, "min", series, line, bucket_min);
	appendStringInfoChar(json, ',');
	put_array(json, "max", series, line, bucket_max);
	appendStringInfoChar(json, '}');
}

static int64
unix_seconds(TimestampTz at)
{
	return at / USECS_PER_SEC + (int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
}

void
ka_report_series(StringInfo json, const KaReportRange *range)
{
	Series		series = {0};

	series.length = bucket_length(range->to - range->from);
	series.origin = range->from - (range->from % series.length + series.length) % series.length;
	series.nbuckets = (int) ((range->to - series.origin + series.length - 1) / series.length);
	series.buckets = palloc0(mul_size(sizeof(Bucket) * NLINES, Max(series.nbuckets, 1)));
	if (ka_shared_available())
		count_ring(&series, range);

	appendStringInfo(json, "{\"bucket_s\":" INT64_FORMAT ",\"samples\":" UINT64_FORMAT ",\"at\":[",
					 series.length / USECS_PER_SEC, series.samples);
	for (int i = 0; i < series.nbuckets; i++)
		appendStringInfo(json, "%s" INT64_FORMAT, i > 0 ? "," : "", unix_seconds(series.origin + i * series.length));
	appendStringInfoChar(json, ']');
	for (int i = 0; i < NLINES; i++)
		put_line(json, &series, i);
	appendStringInfoChar(json, '}');
	pfree(series.buckets);
}

bool
ka_report_oldest_sample(TimestampTz *oldest)
{
	KaSample	sample;
	uint64		next;

	if (!ka_shared_available() || ka_ring_copy_samples(0, &sample, 1, &next) == 0)
		return false;
	*oldest = sample.at - sample.interval_us;
	return true;
}
