/*
 * effect.c: what the samples say about a stretch of time.
 *
 * One pass over each ring; nothing is kept.  Backends report their transactions
 * about once a second, so short samples show lumps: the median is taken over
 * slices of a second and more.  A rate is left unknown unless its counter was
 * known during most of the stretch.
 *
 * Locks: those of the ring's readers, one chunk at a time.
 */
#include "postgres.h"

#include <math.h>

#include "utils/timestamp.h"

#include "effect.h"
#include "ring.h"

#define SLICE_US		INT64CONST(1000000)
#define MIN_COVERAGE	0.9

/* The sum of a delta, and the time in which it was known. */
typedef struct Sum
{
	int64		value;
	int64		known_us;
} Sum;

typedef struct Values
{
	double	   *items;
	int			n;
	int			max;
} Values;

typedef struct Sums
{
	int64		samples;
	int64		us;
	Sum			delta[KA_NDELTAS];
	double		page_tables_us; /* bytes, weighted by µs */
	int64		page_tables_known_us;
	Values		rates;			/* transactions/s of the slices */
	int64		slice_us;		/* of the slice that is being filled */
	int64		slice_transactions;
} Sums;

static void
append(Values *values, double value)
{
	if (values->n == values->max)
	{
		values->max = Max(values->max * 2, 64);
		values->items = values->items ? repalloc(values->items, values->max * sizeof(double)) :
			palloc(values->max * sizeof(double));
	}
	values->items[values->n++] = value;
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Of an even number of values the mean of the two in the middle; NaN of none. */
static double
median(Values *values)
{
	int			n = values->n;

	if (n == 0)
		return NAN;
	qsort(values->items, n, sizeof(double), compare_doubles);
	return n % 2 == 1 ? values->items[n / 2] : (values->items[n / 2 - 1] + values->items[n / 2]) / 2;
}

static void
add_sample(Sums *sums, const KaSample *sample)
{
	int64		transactions = sample->delta[KA_D_TRANSACTIONS];
	int64		page_tables = sample->gauge[KA_G_PAGE_TABLE_BYTES];

	sums->samples++;
	sums->us += sample->interval_us;
	for (int i = 0; i < KA_NDELTAS; i++)
	{
		if (sample->delta[i] == KA_UNKNOWN)
			continue;
		sums->delta[i].value += sample->delta[i];
		sums->delta[i].known_us += sample->interval_us;
	}
	if (page_tables != KA_UNKNOWN)
	{
		sums->page_tables_us += (double) page_tables * sample->interval_us;
		sums->page_tables_known_us += sample->interval_us;
	}

	/* A slice with a hole is no slice. */
	if (transactions == KA_UNKNOWN)
	{
		sums->slice_us = sums->slice_transactions = 0;
		return;
	}
	sums->slice_us += sample->interval_us;
	sums->slice_transactions += transactions;
	if (sums->slice_us >= SLICE_US)
	{
		append(&sums->rates, sums->slice_transactions * 1e6 / sums->slice_us);
		sums->slice_us = sums->slice_transactions = 0;
	}
}

static double
rate(const Sums *sums, KaDelta delta)
{
	const Sum  *sum = &sums->delta[delta];

	return sum->known_us > 0 && sum->known_us >= sums->us * MIN_COVERAGE ?
		sum->value * 1e6 / sum->known_us : NAN;
}

static void
sum_samples(Sums *sums, TimestampTz from, TimestampTz to)
{
	KaSample   *chunk = palloc(KA_RING_CHUNK * sizeof(KaSample));
	uint64		end = ka_ring_samples_end(NULL);
	uint64		position = 0;
	int			n;

	while (position < end && (n = ka_ring_copy_samples(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < n; i++)
		{
			if (chunk[i].at - chunk[i].interval_us >= from && chunk[i].at <= to)
				add_sample(sums, &chunk[i]);
		}
	}
	pfree(chunk);
}

static double
median_dip(TimestampTz from, TimestampTz to, int64 *known)
{
	KaCheckpointRow *chunk = palloc(KA_RING_CHUNK * sizeof(KaCheckpointRow));
	uint64		end = ka_ring_checkpoints_end(NULL);
	uint64		position = 0;
	Values		dips = {0};
	int			n;

	while (position < end && (n = ka_ring_copy_checkpoints(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < n; i++)
		{
			if (chunk[i].started_at >= from && chunk[i].ended_at <= to && !isnan(chunk[i].dip_pct))
				append(&dips, chunk[i].dip_pct);
		}
	}
	pfree(chunk);
	*known = dips.n;
	return median(&dips);
}

void
ka_effect_measure(TimestampTz from, TimestampTz to, KaEffect *effect)
{
	Sums		sums = {0};
	const Sum  *write_ms = &sums.delta[KA_D_WRITE_MS];
	const Sum  *write_ios = &sums.delta[KA_D_WRITE_IOS];

	memset(effect, 0, sizeof(*effect));
	effect->tps = effect->compact_stall = effect->allocstall = NAN;
	effect->page_table_bytes = effect->write_latency_us = effect->dip_pct = NAN;
	if (!ka_shared_available() || from >= to)
		return;

	sum_samples(&sums, from, to);
	effect->samples = sums.samples;
	effect->seconds = sums.us / 1e6;
	if (sums.samples == 0)
		return;
	effect->tps = median(&sums.rates);
	effect->compact_stall = rate(&sums, KA_D_COMPACT_STALL);
	effect->allocstall = rate(&sums, KA_D_ALLOCSTALL);
	if (sums.page_tables_known_us > 0)
		effect->page_table_bytes = sums.page_tables_us / sums.page_tables_known_us;
	if (write_ios->value > 0 && write_ms->known_us == write_ios->known_us)
		effect->write_latency_us = write_ms->value * 1000.0 / write_ios->value;
	effect->dip_pct = median_dip(from, to, &effect->checkpoints);
}

bool
ka_effect_suffices(const KaEffect *effect)
{
	return effect->seconds >= KA_EFFECT_MIN_SECONDS;
}

static bool
encode_number(const KaJsonSink *sink, const char *name, double value, const char *format)
{
	char		text[64];

	if (isnan(value))
		return true;
	snprintf(text, sizeof(text), format, value);
	return sink->key(sink->ctx, name) && sink->number(sink->ctx, text);
}

bool
ka_effect_encode(const KaEffect *effect, const KaJsonSink *sink)
{
	return sink->begin_object(sink->ctx) &&
		encode_number(sink, "samples", (double) effect->samples, "%.0f") &&
		encode_number(sink, "seconds", effect->seconds, "%.1f") &&
		encode_number(sink, "tps", effect->tps, "%.1f") &&
		encode_number(sink, "compact_stall_per_s", effect->compact_stall, "%.2f") &&
		encode_number(sink, "allocstall_per_s", effect->allocstall, "%.2f") &&
		encode_number(sink, "page_table_bytes", effect->page_table_bytes, "%.0f") &&
		encode_number(sink, "write_latency_us", effect->write_latency_us, "%.0f") &&
		encode_number(sink, "checkpoints", (double) effect->checkpoints, "%.0f") &&
		encode_number(sink, "checkpoint_dip_pct", effect->dip_pct, "%.1f") &&
		sink->end_object(sink->ctx);
}
