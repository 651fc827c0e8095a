/*
 * trial_measure.c: blocks of a trial, from the samples in the ring.
 *
 * The worker has the sampler take a sample at both ends of what is measured, so
 * the samples fit the block but for the milliseconds that this takes.
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

#define KA_D_TIME KA_NDELTAS	/* as "whole": the seconds */

static const struct
{
	KaDelta		part;
	KaDelta		whole;
	double		factor;
}			sources[KA_NTRIAL_MEASURES] = {
#define TRIAL_MEASURE(symbol, name, unit, better, part, whole, factor, least) {KA_D_##part, KA_D_##whole, factor},
#include "trials.def"
};

/* The sum of a delta, and the time in which it was known. */
typedef struct Sum
{
	int64		value;
	int64		known_us;
} Sum;

typedef struct Sums
{
	int64		us;
	int64		checkpoint_us;
	int64		checkpoint_id;	/* of the sample before; 0: there is none */
	int			checkpoints_begun;
	Sum			delta[KA_NDELTAS];
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
}

static bool
known(const Sums *sums, const Sum *sum)
{
	return sum->known_us > 0 && sum->known_us >= sums->us * MIN_KNOWN;
}

static double
measure(const Sums *sums, int m)
{
	const Sum  *part = &sums->delta[sources[m].part];
	const Sum  *whole;

	if (!known(sums, part))
		return NAN;
	if (sources[m].whole == KA_D_TIME)
		return sources[m].factor * part->value * 1e6 / part->known_us;
	whole = &sums->delta[sources[m].whole];
	return known(sums, whole) && whole->value > 0 ? sources[m].factor * part->value / whole->value : NAN;
}

bool
ka_trial_measure(TimestampTz from, TimestampTz to, KaTrialBlock *block)
{
	KaSample   *chunk = palloc(KA_RING_CHUNK * sizeof(KaSample));
	Sums		sums = {0};
	uint64		end = ka_ring_samples_end(NULL);
	uint64		position = 0;
	int			n;

	while (position < end && (n = ka_ring_copy_samples(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < n; i++)
		{
			TimestampTz middle = chunk[i].at - chunk[i].interval_us / 2;

			if (middle >= from && middle <= to)
				add_sample(&sums, &chunk[i]);
		}
	}
	pfree(chunk);

	block->seconds = sums.us / 1e6;
	block->checkpoint_share = sums.us > 0 ? (double) sums.checkpoint_us / sums.us : 0;
	block->checkpoints_begun = sums.checkpoints_begun;
	for (int m = 0; m < KA_NTRIAL_MEASURES; m++)
		block->value[m] = measure(&sums, m);
	return sums.us >= (to - from) * MIN_COVERAGE;
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
		if (sources[m].whole == KA_D_TIME)
			least = least * 1e6 / measured_us;
		ka_compare_pairs(old_values, new_values, n, least, info->better, &results[m]);
	}
}
