/*
 * join.c: samples and checkpoints, joined.
 *
 * A sample belongs to the checkpoint that ran at the middle of its interval.
 * Since the checkpointer wakes the sampler at start and end, intervals are cut
 * there and the rule is exact but for the time it takes to wake.  A checkpoint
 * so short that no middle lies in it gets the sample that contains it, also when
 * the middle is in one that has other samples: two follow each other at once,
 * and the sampler was woken late.
 *
 * The sums of a checkpoint are collected while it runs, so they are complete
 * even when the ring has dropped its first samples since.  They are unknown
 * when sampling began, or was interrupted, after the checkpoint's start.
 *
 * Runs in the sampler only, once per sample.  "Settled" is a row that has got
 * its part.
 */
#include "postgres.h"

#include <math.h>

#include "pgstat.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "sampler.h"
#include "shared.h"

/*
 * Backends report their transactions once a second (pgstat.c), so a rate over
 * less than a few of these is noise.
 */
#define BEFORE_US	INT64CONST(30000000)	/* how far tps_before looks back */
#define MIN_BEFORE_US INT64CONST(2000000)	/* less is no rate */
#define MIN_DURING_US INT64CONST(1000000)

/* What the checkpoint with the newest samples has got so far. */
typedef struct Join
{
	int64		checkpoint_id;	/* 0: none */
	bool		whole;			/* no gap since its start */
	int64		samples;
	int64		samples_us;
	int64		delta[KA_NDELTAS];
	KaStalls	stalls;
	double		tps_before;
} Join;

/* A checkpoint that the present sample may belong to. */
typedef struct Candidate
{
	uint64		position;		/* in the ring, when it has ended */
	KaCheckpointRow row;		/* while it runs: id and started_at; ended_at is far off */
} Candidate;

static Join join;
static Candidate candidates[KA_RING_CHUNK + 1];
static TimestampTz baseline_at; /* since when samples follow each other without a gap */
static uint64 unsettled;		/* no row before this position waits for us */
static uint64 settled;			/* rows that got their part */

void
ka_checkpoint_unsummed(KaCheckpointRow *row)
{
	row->settled = 0;
	row->samples_us = 0;
	for (int i = 0; i < KA_NDELTAS; i++)
		row->delta[i] = KA_UNKNOWN;
	memset(&row->stalls, 0, sizeof(row->stalls));
	row->tps_before = row->tps_during = row->dip_pct = NAN;
}

/* Rows that wait to be settled, oldest first, then the checkpoint that runs. */
static int
find_candidates(void)
{
	static KaCheckpointRow rows[KA_RING_CHUNK];
	KaMark		running;
	uint64		next;
	uint64		position;
	int			n;
	int			count = 0;

	/* In this order: see checkpoint_end. */
	SpinLockAcquire(&ka_shared->mutex);
	running = ka_shared->running;
	SpinLockRelease(&ka_shared->mutex);
	do
	{
		n = ka_ring_copy_checkpoints(unsettled, rows, KA_RING_CHUNK, &next);
		position = next - n;
		for (int i = 0; i < n; i++, position++)
		{
			if (rows[i].checkpoint_id == running.id)
				running.id = 0;
			if (rows[i].settled)
			{
				if (count == 0)
					unsettled = position + 1;
				continue;
			}
			candidates[count].position = position;
			candidates[count++].row = rows[i];
		}
	} while (n == KA_RING_CHUNK && count == 0);

	if (running.id != 0)
	{
		Candidate  *candidate = &candidates[count++];

		candidate->row.checkpoint_id = running.id;
		candidate->row.started_at = running.started_at;
		candidate->row.ended_at = DT_NOEND;
	}
	return count;
}

static bool
has_sample(const KaCheckpointRow *row)
{
	return row->checkpoint_id == join.checkpoint_id && join.samples > 0;
}

static const Candidate *
owner_of(const KaSample *sample, int count)
{
	TimestampTz begin = sample->at - sample->interval_us;
	TimestampTz middle = sample->at - sample->interval_us / 2;
	const Candidate *owner = NULL;	/* of the middle */
	const Candidate *best = NULL;
	int64		best_overlap = 0;

	for (int i = 0; i < count; i++)
	{
		const KaCheckpointRow *row = &candidates[i].row;

		if (row->started_at <= middle && middle < row->ended_at)
			owner = &candidates[i];
	}
	if (owner != NULL && owner->row.ended_at <= sample->at && !has_sample(&owner->row))
		return owner;

	/* The longest of those that would be left without any sample. */
	for (int i = 0; i < count; i++)
	{
		const KaCheckpointRow *row = &candidates[i].row;
		int64		overlap = Min(row->ended_at, sample->at) - Max(row->started_at, begin);

		if (row->ended_at <= sample->at && overlap > best_overlap && !has_sample(row))
		{
			best = &candidates[i];
			best_overlap = overlap;
		}
	}
	return best ? best : owner;
}

/* The phase for now: ka_ring_set_phases knows better once the checkpoint has ended. */
static KaPhase
live_phase(const KaSample *previous, int64 checkpoint_id)
{
	PGPROC	   *checkpointer = ka_checkpointer_proc_compat();
	uint32		wait = checkpointer ? *(volatile uint32 *) &checkpointer->wait_event_info : 0;

	if (wait == WAIT_EVENT_DATA_FILE_SYNC)
		return KA_PHASE_SYNC;
	/* Between two fsyncs it waits for nothing; writing comes before, not after. */
	if (wait != WAIT_EVENT_CHECKPOINT_WRITE_DELAY && previous != NULL &&
		previous->checkpoint_id == checkpoint_id && previous->phase == KA_PHASE_SYNC)
		return KA_PHASE_SYNC;
	return KA_PHASE_WRITE;
}

/* Transactions per second outside of checkpoints in the time before this one. */
static double
tps_before(TimestampTz started_at)
{
	int64		transactions = 0;
	int64		covered = 0;	/* µs */
	const KaSample *sample;

	for (uint64 position = ka_ring_samples_end(NULL);
		 position > 0 && (sample = ka_ring_sample(position - 1)) != NULL;
		 position--)
	{
		TimestampTz middle = sample->at - sample->interval_us / 2;

		if (middle < started_at - BEFORE_US)
			break;
		if (middle >= started_at || sample->checkpoint_id != KA_UNKNOWN ||
			sample->delta[KA_D_TRANSACTIONS] == KA_UNKNOWN)
			continue;
		transactions += sample->delta[KA_D_TRANSACTIONS];
		covered += sample->interval_us;
	}
	return covered >= MIN_BEFORE_US ? transactions * 1e6 / covered : NAN;
}

static void
join_start(const KaCheckpointRow *row)
{
	memset(&join, 0, sizeof(join));
	join.checkpoint_id = row->checkpoint_id;
	join.whole = baseline_at <= row->started_at;
	join.stalls.known = 1;
	join.tps_before = tps_before(row->started_at);
}

static void
join_add_stalls(const KaStalls *stalls)
{
	if (!stalls->known || !join.stalls.known)
	{
		memset(&join.stalls, 0, sizeof(join.stalls));
		return;
	}
	for (int who = 0; who < KA_NWHOS; who++)
	{
		for (int kind = 0; kind < KA_NSTALLS; kind++)
		{
			const KaStallSum *from = &stalls->by[who][kind];
			KaStallSum *to = &join.stalls.by[who][kind];

			to->count += from->count;
			to->total_us += from->total_us;
			to->longest_us = Max(to->longest_us, from->longest_us);
			for (int i = 0; i < KA_STALL_BUCKETS; i++)
				to->bucket[i] += from->bucket[i];
		}
	}
}

static void
join_add(const KaSample *sample, const KaStalls *stalls)
{
	join.samples++;
	join.samples_us += sample->interval_us;
	for (int i = 0; i < KA_NDELTAS; i++)
	{
		if (sample->delta[i] == KA_UNKNOWN || join.delta[i] == KA_UNKNOWN)
			join.delta[i] = KA_UNKNOWN;
		else
			join.delta[i] += sample->delta[i];
	}
	join_add_stalls(stalls);
}

static void
settle(Candidate *candidate)
{
	KaCheckpointRow *row = &candidate->row;

	row->settled = 1;
	row->tps_before = join.tps_before;
	if (join.whole && join.samples > 0)
	{
		row->samples_us = join.samples_us;
		memcpy(row->delta, join.delta, sizeof(row->delta));
		row->stalls = join.stalls;
		if (row->delta[KA_D_TRANSACTIONS] != KA_UNKNOWN && row->samples_us >= MIN_DURING_US)
			row->tps_during = row->delta[KA_D_TRANSACTIONS] * 1e6 / row->samples_us;
	}
	if (row->tps_before > 0 && !isnan(row->tps_during))
		row->dip_pct = 100 * (1 - row->tps_during / row->tps_before);

	ka_ring_set_phases(row);
	ka_ring_change_checkpoint(candidate->position, row);
	join.checkpoint_id = 0;
	settled++;
}

uint64
ka_join_settled(void)
{
	return settled;
}

void
ka_join_begin(TimestampTz baseline)
{
	int			count;

	baseline_at = baseline;
	join.whole = false;

	/* What has ended by now gets no sample any more. */
	do
	{
		int			done = 0;

		count = find_candidates();
		while (done < count && candidates[done].row.ended_at != DT_NOEND)
		{
			if (join.checkpoint_id != candidates[done].row.checkpoint_id)
				join_start(&candidates[done].row);
			settle(&candidates[done++]);
		}
		count = done;
	} while (count > 0);
}

void
ka_join_sample(KaSample *sample, const KaStalls *stalls)
{
	int			count = find_candidates();
	const Candidate *owner = owner_of(sample, count);
	uint64		end = ka_ring_samples_end(NULL);

	sample->checkpoint_id = KA_UNKNOWN;
	sample->phase = KA_PHASE_IDLE;
	if (owner != NULL)
	{
		sample->checkpoint_id = owner->row.checkpoint_id;
		sample->phase = live_phase(end > 0 ? ka_ring_sample(end - 1) : NULL,
								   sample->checkpoint_id);
	}
	ka_ring_append_sample(sample);

	/*
	 * Oldest first, up to the first one that goes on beyond this sample.  None
	 * of those after it can have had a sample.
	 */
	for (int i = 0; i < count; i++)
	{
		Candidate  *candidate = &candidates[i];

		if (join.checkpoint_id != candidate->row.checkpoint_id)
			join_start(&candidate->row);
		if (candidate == owner)
			join_add(sample, stalls);
		if (candidate->row.ended_at > sample->at)
			break;
		settle(candidate);
	}
}
