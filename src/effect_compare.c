/*
 * effect_compare.c: before and after a change that needed a restart, compared
 * as far as their loads are comparable.
 *
 * Both stretches are cut into windows of the same length; windows with the same
 * kind of load are paired (core/match.c) and the pairs compared as those of a
 * trial (core/stats.c).  Samples survive a restart in the history file.
 *
 * Locks: those of the ring's readers.
 */
#include "postgres.h"

#include <math.h>

#include "utils/timestamp.h"

#include "auto_log.h"
#include "effect_compare.h"
#include "ring.h"
#include "trial.h"

#define MOST_WINDOWS 60
#define WINDOW_MOST_US	INT64CONST(30000000)
#define WINDOW_LEAST_US INT64CONST(2000000)

/* The begin of the time after a restart is not like the rest: caches are empty. */
#define WARM_UP_MOST_US	INT64CONST(60000000)

typedef struct Windows
{
	KaStretch	stretch[MOST_WINDOWS];
	KaTrialBlock block[MOST_WINDOWS];
	KaLoad		load[MOST_WINDOWS];
	int			n;
} Windows;

/* The newest windows of the time before, the oldest of the time after. */
static void
cut(const KaStretch *whole, int64 length_us, bool newest, Windows *windows)
{
	int			n = (int) Min((whole->to - whole->from) / length_us, MOST_WINDOWS);
	TimestampTz from = newest ? whole->to - n * length_us : whole->from;

	for (windows->n = 0; windows->n < n; windows->n++)
	{
		windows->stretch[windows->n].from = from + windows->n * length_us;
		windows->stretch[windows->n].to = from + (windows->n + 1) * length_us - 1;
	}
}

/* Measures them, and drops those without samples. */
static void
measure(Windows *windows)
{
	int			kept = 0;

	ka_trial_measure(windows->stretch, windows->n, windows->block);
	for (int i = 0; i < windows->n; i++)
	{
		const KaTrialBlock *block = &windows->block[i];

		if (!block->covered)
			continue;
		windows->load[kept].tps = block->value[KA_TM_TPS];
		windows->load[kept].backends = block->backends;
		windows->load[kept].work = block->work;
		windows->block[kept++] = *block;
	}
	windows->n = kept;
}

/* Medians of the loads: what the reader is told when they are not comparable. */
static KaLoad
middle(const Windows *windows)
{
	double		values[MOST_WINDOWS];
	KaLoad		load = {NAN, NAN, NAN};
	double	   *fields[] = {&load.tps, &load.backends, &load.work};

	for (size_t f = 0; f < lengthof(fields); f++)
	{
		size_t		known = 0;

		for (int i = 0; i < windows->n; i++)
		{
			const KaLoad *one = &windows->load[i];
			double		value = f == 0 ? one->tps : f == 1 ? one->backends : one->work;

			if (!isnan(value))
				values[known++] = value;
		}
		*fields[f] = ka_median(values, known);
	}
	return load;
}

static void
compare(KaStretch before, KaStretch after, KaEffectComparison *comparison)
{
	Windows    *befores = palloc(sizeof(Windows));
	Windows    *afters = palloc(sizeof(Windows));
	KaTrialBlock *olds = palloc(MOST_WINDOWS * sizeof(KaTrialBlock));
	KaTrialBlock *news = palloc(MOST_WINDOWS * sizeof(KaTrialBlock));
	KaMatch		matches[MOST_WINDOWS];
	int64		length_us = Min(before.to - before.from, after.to - after.from) / 10;

	length_us = Max(WINDOW_LEAST_US, Min(WINDOW_MOST_US, length_us));
	cut(&before, length_us, true, befores);
	cut(&after, length_us, false, afters);
	measure(befores);
	measure(afters);
	comparison->window_seconds = length_us / 1e6;
	comparison->windows_before = befores->n;
	comparison->windows_after = afters->n;
	comparison->load_before = middle(befores);
	comparison->load_after = middle(afters);
	comparison->pairs = (int) ka_match_windows(befores->load, befores->n, afters->load, afters->n, matches);
	for (int i = 0; i < comparison->pairs; i++)
	{
		olds[i] = befores->block[matches[i].before];
		news[i] = afters->block[matches[i].after];
	}
	ka_trial_compare(olds, news, comparison->pairs, length_us, comparison->results);
	ka_effect_measure(before.from, before.to, &comparison->dips_before);
	ka_effect_measure(after.from, after.to, &comparison->dips_after);
	pfree(befores);
	pfree(afters);
	pfree(olds);
	pfree(news);
}

/*
 * Did it change how the server ran before its restart?  A pool that was
 * reserved did not, nor did what waited for the restart as well.
 */
static bool
changed_at_once(const KaChangeRecord *record)
{
	return ka_auto_had_effect(record) && record->action != KA_ACTION_RESERVE && strcmp(record->old, record->asked) != 0;
}

bool
ka_effect_compare(const KaChangeRecord *records, int n, int i, KaEffectComparison *comparison)
{
	const KaChangeRecord *record = &records[i];
	KaStretch	before = {.from = record->at - KA_EFFECT_BEFORE_SECONDS * USECS_PER_SEC,.to = record->at};
	KaStretch	after = {.from = PgStartTime,.to = PgStartTime + KA_EFFECT_AFTER_SECONDS * USECS_PER_SEC};

	memset(comparison, 0, sizeof(*comparison));
	if (!ka_shared_available() || record->state != KA_STATE_PENDING_RESTART || record->ended_at >= PgStartTime)
		return false;
	/* Not beyond the start of the server that was asked: before that, it may have run with something else. */
	before.from = Max(before.from, record->incarnation);
	for (int j = 0; j < n; j++)
	{
		if (j < i && changed_at_once(&records[j]))
			before.from = Max(before.from, Max(records[j].at, records[j].ended_at));
		if (j > i && records[j].at >= PgStartTime)
			after.to = Min(after.to, records[j].at);
	}
	after.to = Min(after.to, GetCurrentTimestamp());
	after.from += Min(WARM_UP_MOST_US, (after.to - after.from) / 4);
	if (before.from >= before.to || after.from >= after.to)
		return false;
	compare(before, after, comparison);
	return comparison->windows_before > 0 && comparison->windows_after > 0;
}

/*
 * ----------------------------------------------------------------
 * As JSON
 * ----------------------------------------------------------------
 */

static bool
encode_result(const KaJsonSink *sink, const char *name, const KaComparison *result)
{
	return sink->key(sink->ctx, name) && sink->begin_object(sink->ctx) &&
		ka_encode_number(sink, "pairs", (double) result->pairs, "%.0f") &&
		ka_encode_number(sink, "before", result->old_median, "%.6g") &&
		ka_encode_number(sink, "after", result->new_median, "%.6g") &&
		ka_encode_number(sink, "ratio", result->ratio, "%.4f") &&
		ka_encode_number(sink, "ratio_low", result->low, "%.4f") &&
		ka_encode_number(sink, "ratio_high", result->high, "%.4f") &&
		sink->key(sink->ctx, "verdict") && sink->string(sink->ctx, ka_verdict_name(result->verdict)) &&
		sink->end_object(sink->ctx);
}

static bool
encode_load(const KaJsonSink *sink, const char *name, const KaLoad *load)
{
	return sink->key(sink->ctx, name) && sink->begin_object(sink->ctx) &&
		ka_encode_number(sink, "backends", load->backends, "%.1f") &&
		ka_encode_number(sink, "wal_bytes_per_transaction", load->work, "%.0f") &&
		ka_encode_number(sink, "tps", load->tps, "%.1f") &&
		sink->end_object(sink->ctx);
}

static bool
encode_dips(const KaJsonSink *sink, const KaEffect *before, const KaEffect *after)
{
	return sink->key(sink->ctx, "checkpoint_dip_pct") && sink->begin_object(sink->ctx) &&
		ka_encode_number(sink, "checkpoints_before", (double) before->checkpoints, "%.0f") &&
		ka_encode_number(sink, "checkpoints_after", (double) after->checkpoints, "%.0f") &&
		ka_encode_number(sink, "before", before->dip_pct, "%.1f") &&
		ka_encode_number(sink, "after", after->dip_pct, "%.1f") &&
		sink->end_object(sink->ctx);
}

bool
ka_effect_compare_encode(const KaEffectComparison *comparison, const KaJsonSink *sink)
{
	bool		comparable = comparison->pairs >= KA_PAIRS_LEAST;
	bool		good = sink->begin_object(sink->ctx) &&
		sink->key(sink->ctx, "comparable") && sink->boolean(sink->ctx, comparable) &&
		ka_encode_number(sink, "pairs", comparison->pairs, "%.0f") &&
		ka_encode_number(sink, "windows_before", comparison->windows_before, "%.0f") &&
		ka_encode_number(sink, "windows_after", comparison->windows_after, "%.0f") &&
		ka_encode_number(sink, "window_seconds", comparison->window_seconds, "%.1f") &&
		encode_load(sink, "load_before", &comparison->load_before) &&
		encode_load(sink, "load_after", &comparison->load_after);

	good = good && encode_dips(sink, &comparison->dips_before, &comparison->dips_after);
	for (int m = 0; m < KA_NTRIAL_MEASURES && good && comparable; m++)
	{
		if (comparison->results[m].pairs > 0)
			good = encode_result(sink, ka_trial_measure_info[m].name, &comparison->results[m]);
	}
	return good && sink->end_object(sink->ctx);
}
