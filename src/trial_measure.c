/*
 * trial_measure.c: blocks of a trial, and windows around a change, from the
 * samples in the ring.
 *
 * A sample belongs to the stretch in which its middle lies.  The worker of a
 * trial has the sampler take a sample at both ends of what is measured, so the
 * samples fit the block but for the milliseconds that this takes.
 *
 * Locks: that of the ring's readers, one chunk at a time.
 */
#include "postgres.h"

#include <math.h>

#include "utils/timestamp.h"

#include "ring.h"
#include "trial.h"

#define MIN_COVERAGE	0.5		/* of a block by samples */
#define MIN_KNOWN		0.9		/* of their time by samples that know the value */

/* As "whole", beside the deltas. */
#define KA_D_TIME KA_NDELTAS
#define WHOLE_OF_GAUGE (KA_NDELTAS + 1)

static const struct
{
	int			part;			/* KaDelta, or KaGauge */
	int			whole;			/* KaDelta, KA_D_TIME, or WHOLE_OF_GAUGE */
	double		factor;
}			sources[KA_NTRIAL_MEASURES] = {
#define TRIAL_MEASURE(symbol, name, unit, better, part, whole, factor, least) {KA_D_##part, KA_D_##whole, factor},
#define TRIAL_GAUGE(symbol, name, unit, better, gauge, least) {KA_G_##gauge, WHOLE_OF_GAUGE, 1},
#include "trials.def"
};

/* The sum of a delta, and the time in which it was known; of a gauge, the integral. */
typedef struct Sum
{
	double		value;
	int64		known_us;
} Sum;

typedef struct Sums
{
	int64		us;
	int64		checkpoint_us;
	int64		checkpoint_id;	/* of the sample before; 0: there is none */
	int			checkpoints_begun;
	Sum			delta[KA_NDELTAS];
	Sum			gauge[KA_NGAUGES];
} Sums;

static void
add_sample(Sums *sums, const KaSample *sample)
{
	sums->us += sample->interval_us;
	if (sample->checkpoint_id != KA_UNKNOWN)
	{
		sums->checkpoint_us += sample->interval_us;
		if (sums->checkpoint_id != 0 && sums->checkpoint_id != sample->checkpoint_id)
			sums->checkpoints_begun++;
	}
	sums->checkpoint_id = sample->checkpoint_id;
	for (int i = 0; i < KA_NDELTAS; i++)
	{
		if (sample->delta[i] == KA_UNKNOWN)
			continue;
		sums->delta[i].value += sample->delta[i];
		sums->delta[i].known_us += sample->interval_us;
	}
	for (int i = 0; i < KA_NGAUGES; i++)
	{
		if (sample->gauge[i] == KA_UNKNOWN)
			continue;
		sums->gauge[i].value += (double) sample->gauge[i] * sample->interval_us;
		sums->gauge[i].known_us += sample->interval_us;
	}
}

static bool
known(const Sums *sums, const Sum *sum)
{
	return sum->known_us > 0 && sum->known_us >= sums->us * MIN_KNOWN;
}

static double
mean_of_gauge(const Sums *sums, int gauge)
{
	const Sum  *sum = &sums->gauge[gauge];

	return known(sums, sum) ? sum->value / sum->known_us : NAN;
}

static double
quotient(const Sums *sums, int part, int whole)
{
	return known(sums, &sums->delta[part]) && known(sums, &sums->delta[whole]) && sums->delta[whole].value > 0 ?
		sums->delta[part].value / sums->delta[whole].value : NAN;
}

static double
measure(const Sums *sums, int m)
{
	const Sum  *part;

	if (sources[m].whole == WHOLE_OF_GAUGE)
		return mean_of_gauge(sums, sources[m].part);
	if (sources[m].whole != KA_D_TIME)
		return sources[m].factor * quotient(sums, sources[m].part, sources[m].whole);
	part = &sums->delta[sources[m].part];
	return known(sums, part) ? sources[m].factor * part->value * 1e6 / part->known_us : NAN;
}

/* What the samples of one stretch come to; the sums begin again. */
static void
conclude(Sums *sums, const KaStretch *stretch, KaTrialBlock *block)
{
	block->covered = sums->us > 0 && sums->us >= (stretch->to - stretch->from) * MIN_COVERAGE;
	block->checkpoint_share = sums->us > 0 ? (double) sums->checkpoint_us / sums->us : 0;
	block->checkpoints_begun = sums->checkpoints_begun;
	block->backends = mean_of_gauge(sums, KA_G_BACKENDS);
	block->work = quotient(sums, KA_D_WAL_BYTES, KA_D_TRANSACTIONS);
	for (int m = 0; m < KA_NTRIAL_MEASURES; m++)
		block->value[m] = measure(sums, m);
	memset(sums, 0, sizeof(*sums));
}

void
ka_trial_measure(const KaStretch *stretches, int n, KaTrialBlock *blocks)
{
	KaSample   *chunk = palloc(KA_RING_CHUNK * sizeof(KaSample));
	Sums	   *sums = palloc0(sizeof(Sums));
	uint64		end = ka_ring_samples_end(NULL);
	uint64		position = 0;
	int			current = 0;
	int			copied;

	while (current < n && position < end && (copied = ka_ring_copy_samples(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < copied; i++)
		{
			TimestampTz middle = chunk[i].at - chunk[i].interval_us / 2;

			for (; current < n && stretches[current].to < middle; current++)
				conclude(sums, &stretches[current], &blocks[current]);
			if (current < n && middle >= stretches[current].from)
				add_sample(sums, &chunk[i]);
		}
	}
	for (; current < n; current++)
		conclude(sums, &stretches[current], &blocks[current]);
	pfree(sums);
	pfree(chunk);
}

TimestampTz
ka_trial_newest_sample(void)
{
	KaSample	sample;
	uint64		end = ka_ring_samples_end(NULL);
	uint64		next;

	return end > 0 && ka_ring_copy_samples(end - 1, &sample, 1, &next) == 1 ? sample.at : 0;
}

void
ka_trial_compare(const KaTrialBlock *olds, const KaTrialBlock *news, int n, int64 measured_us,
				 KaComparison *results)
{
	double		old_values[KA_PAIRS_MOST];
	double		new_values[KA_PAIRS_MOST];

	for (int m = 0; m < KA_NTRIAL_MEASURES; m++)
	{
		const KaTrialMeasureInfo *info = &ka_trial_measure_info[m];
		double		least = info->least;

		for (int i = 0; i < n; i++)
		{
			old_values[i] = olds[i].value[m];
			new_values[i] = news[i].value[m];
		}
		if (sources[m].whole == KA_D_TIME && measured_us > 0)
			least = least * 1e6 / measured_us;
		ka_compare_pairs(old_values, new_values, n, least, info->better, &results[m]);
	}
}
