/*
 * effect.c: what the samples say about a stretch of time.
 *
 * One pass over each ring, for however many stretches; nothing is kept.  Backends report their transactions
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
#include "stats.h"

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
unknown_effect(KaEffect *effect)
{
	memset(effect, 0, sizeof(*effect));
	effect->tps = effect->compact_stall = effect->allocstall = NAN;
	effect->page_table_bytes = effect->write_latency_us = effect->dip_pct = NAN;
}

/* What the samples of one stretch come to; the sums begin again. */
static void
conclude(Sums *sums, KaEffect *effect)
{
	const Sum  *write_ms = &sums->delta[KA_D_WRITE_MS];
	const Sum  *write_ios = &sums->delta[KA_D_WRITE_IOS];
	Values		rates = sums->rates;

	effect->samples = sums->samples;
	effect->seconds = sums->us / 1e6;
	if (sums->samples > 0)
	{
		effect->tps = ka_median(rates.items, rates.n);
		effect->compact_stall = rate(sums, KA_D_COMPACT_STALL);
		effect->allocstall = rate(sums, KA_D_ALLOCSTALL);
		if (sums->page_tables_known_us > 0)
			effect->page_table_bytes = sums->page_tables_us / sums->page_tables_known_us;
		if (write_ios->value > 0 && write_ms->known_us == write_ios->known_us)
			effect->write_latency_us = write_ms->value * 1000.0 / write_ios->value;
	}
	memset(sums, 0, sizeof(*sums));
	rates.n = 0;
	sums->rates = rates;		/* its memory */
}

/* The first stretch, from "i" on, that ends at "at" or later. */
static int
next_stretch(const KaStretch *stretches, int n, int i, TimestampTz at)
{
	while (i < n && (stretches[i].to < at || stretches[i].from >= stretches[i].to))
		i++;
	return i;
}

static void
measure_samples(const KaStretch *stretches, int n, KaEffect *effects)
{
	KaSample   *chunk = palloc(KA_RING_CHUNK * sizeof(KaSample));
	Sums		sums = {0};
	uint64		end = ka_ring_samples_end(NULL);
	uint64		position = 0;
	int			current = 0;
	int			copied;

	while (position < end && (copied = ka_ring_copy_samples(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < copied; i++)
		{
			int			found = next_stretch(stretches, n, current, chunk[i].at);

			if (found > current && current < n)
				conclude(&sums, &effects[current]);
			current = found;
			if (current < n && chunk[i].at - chunk[i].interval_us >= stretches[current].from)
				add_sample(&sums, &chunk[i]);
		}
	}
	if (current < n)
		conclude(&sums, &effects[current]);
	pfree(chunk);
}

static void
conclude_dips(Values *dips, KaEffect *effect)
{
	effect->checkpoints = dips->n;
	effect->dip_pct = ka_median(dips->items, dips->n);
	dips->n = 0;
}

/* Checkpoints that lie within, by their starts in the order of time. */
static void
measure_dips(const KaStretch *stretches, int n, KaEffect *effects)
{
	KaCheckpointRow *chunk = palloc(KA_RING_CHUNK * sizeof(KaCheckpointRow));
	Values		dips = {0};
	uint64		end = ka_ring_checkpoints_end(NULL);
	uint64		position = 0;
	int			current = 0;
	int			copied;

	while (position < end && (copied = ka_ring_copy_checkpoints(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < copied; i++)
		{
			int			found = next_stretch(stretches, n, current, chunk[i].ended_at);

			if (found > current && current < n)
				conclude_dips(&dips, &effects[current]);
			current = found;
			if (current < n && chunk[i].started_at >= stretches[current].from && !isnan(chunk[i].dip_pct))
				append(&dips, chunk[i].dip_pct);
		}
	}
	if (current < n)
		conclude_dips(&dips, &effects[current]);
	pfree(chunk);
}

void
ka_effects_measure(const KaStretch *stretches, int n, KaEffect *effects)
{
	for (int i = 0; i < n; i++)
		unknown_effect(&effects[i]);
	if (!ka_shared_available() || n == 0)
		return;
	measure_samples(stretches, n, effects);
	measure_dips(stretches, n, effects);
}

void
ka_effect_measure(TimestampTz from, TimestampTz to, KaEffect *effect)
{
	KaStretch	stretch = {.from = from,.to = to};

	ka_effects_measure(&stretch, 1, effect);
}

bool
ka_effect_suffices(const KaEffect *effect)
{
	return effect->seconds >= KA_EFFECT_MIN_SECONDS;
}

bool
ka_encode_number(const KaJsonSink *sink, const char *name, double value, const char *format)
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
		ka_encode_number(sink, "samples", (double) effect->samples, "%.0f") &&
		ka_encode_number(sink, "seconds", effect->seconds, "%.1f") &&
		ka_encode_number(sink, "tps", effect->tps, "%.1f") &&
		ka_encode_number(sink, "compact_stall_per_s", effect->compact_stall, "%.2f") &&
		ka_encode_number(sink, "allocstall_per_s", effect->allocstall, "%.2f") &&
		ka_encode_number(sink, "page_table_bytes", effect->page_table_bytes, "%.0f") &&
		ka_encode_number(sink, "write_latency_us", effect->write_latency_us, "%.0f") &&
		ka_encode_number(sink, "checkpoints", (double) effect->checkpoints, "%.0f") &&
		ka_encode_number(sink, "checkpoint_dip_pct", effect->dip_pct, "%.1f") &&
		sink->end_object(sink->ctx);
}
