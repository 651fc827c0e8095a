/*
 * observe.c: one observation per checkpoint, from its row and the samples of
 * the time since the checkpoint before it.
 *
 * The row knows what happened while the checkpoint ran.  The throughput between
 * checkpoints, the number of connections and the kind of work (WAL per
 * transaction) come from one pass over the samples.
 *
 * Both rings move on meanwhile; what is gone is unknown.  No lock but theirs.
 */
#include "postgres.h"

#include <math.h>

#include "observe.h"
#include "ring.h"

/* Backends report their transactions once a second: less is no rate (see join.c). */
#define MIN_OUTSIDE_US	INT64CONST(2000000)
#define MIN_DURING_US	INT64CONST(1000000)

/* What the samples of one checkpoint's time say. */
typedef struct Cycle
{
	TimestampTz begin;
	TimestampTz end;
	int64		outside_us;
	int64		outside_transactions;
	int64		transactions;
	int64		wal_bytes;
	double		backends;		/* times µs */
	int64		backends_us;
} Cycle;

static bool
says_something(const KaCheckpointRow *row)
{
	return row->settled && row->kind != KA_KIND_SHUTDOWN && row->kind != KA_KIND_END_OF_RECOVERY;
}

static double
quotient(int64 part, int64 whole, double factor)
{
	return part == KA_UNKNOWN || whole <= 0 ? NAN : part * factor / whole;
}

static void
observe_row(const KaCheckpointRow *row, KaObservation *observation)
{
	double	   *value = observation->value;
	bool		sampled = row->samples_us >= MIN_DURING_US;
	bool		wrote = row->delta[KA_D_WRITE_IOS] >= KA_VERDICT_LIMIT(WRITE_REQUESTS);

	for (int m = 0; m < KA_NMEASURES; m++)
		value[m] = NAN;
	value[KA_M_TPS_DURING] = row->tps_during;
	if (row->sync_ms != KA_UNKNOWN)
		value[KA_M_SYNC] = row->sync_ms;
	if (wrote)
		value[KA_M_WRITE_LATENCY] = quotient(row->delta[KA_D_WRITE_MS], row->delta[KA_D_WRITE_IOS], 1000);
	if (sampled)
		value[KA_M_MEMORY_STALL] = quotient(row->delta[KA_D_PRESSURE_SOME_US], row->samples_us, 100);
}

static void
observe_cycle(const Cycle *cycle, KaObservation *observation)
{
	if (cycle->outside_us >= MIN_OUTSIDE_US)
		observation->value[KA_M_TPS_OUTSIDE] = quotient(cycle->outside_transactions, cycle->outside_us, 1e6);
	observation->work = quotient(cycle->wal_bytes, cycle->transactions, 1);
	observation->backends = cycle->backends_us > 0 ? cycle->backends / cycle->backends_us : NAN;
}

static void
add_sample(Cycle *cycle, const KaSample *sample)
{
	int64		transactions = sample->delta[KA_D_TRANSACTIONS];
	int64		wal_bytes = sample->delta[KA_D_WAL_BYTES];
	int64		backends = sample->gauge[KA_G_BACKENDS];

	if (transactions != KA_UNKNOWN && sample->checkpoint_id == KA_UNKNOWN)
	{
		cycle->outside_us += sample->interval_us;
		cycle->outside_transactions += transactions;
	}
	if (transactions != KA_UNKNOWN && wal_bytes != KA_UNKNOWN)
	{
		cycle->transactions += transactions;
		cycle->wal_bytes += wal_bytes;
	}
	if (backends != KA_UNKNOWN)
	{
		cycle->backends += (double) backends * sample->interval_us;
		cycle->backends_us += sample->interval_us;
	}
}

/* Both in the order of time: each sample belongs to the checkpoint that ended next. */
static void
add_samples(Cycle *cycles, size_t count)
{
	KaSample   *chunk = palloc(sizeof(KaSample) * KA_RING_CHUNK);
	uint64		filled;
	uint64		end = ka_ring_samples_end(&filled);
	uint64		position = 0;
	size_t		c = 0;
	int			n;

	while (position < end && (n = ka_ring_copy_samples(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < n; i++)
		{
			TimestampTz middle = chunk[i].at - chunk[i].interval_us / 2;

			while (c < count && cycles[c].end < middle)
				c++;
			if (c < count && chunk[i].at - chunk[i].interval_us >= cycles[c].begin)
				add_sample(&cycles[c], &chunk[i]);
		}
	}
	pfree(chunk);
}

void
ka_observe(TimestampTz since, TimestampTz until, KaObserved *observed)
{
	KaCheckpointRow *chunk = palloc(sizeof(KaCheckpointRow) * KA_RING_CHUNK);
	uint64		filled;
	uint64		end = ka_ring_checkpoints_end(&filled);
	uint64		position = end - filled;
	TimestampTz begin = since;
	Cycle	   *cycles = palloc0(sizeof(Cycle) * (filled + 1));
	int			n;

	memset(observed, 0, sizeof(*observed));
	observed->items = palloc(sizeof(KaObservation) * (filled + 1));
	while (position < end && observed->count < filled &&
		   (n = ka_ring_copy_checkpoints(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < n && observed->count < filled; i++)
		{
			const KaCheckpointRow *row = &chunk[i];

			if (row->started_at >= since && row->started_at < until && says_something(row))
			{
				if (observed->count > 0 && observed->restartpoints != (row->restartpoint != 0))
					observed->mixed = true;
				observed->restartpoints = row->restartpoint != 0;
				cycles[observed->count].begin = begin;
				cycles[observed->count].end = row->ended_at;
				observe_row(row, &observed->items[observed->count++]);
			}
			begin = Max(begin, row->ended_at);
		}
	}

	add_samples(cycles, observed->count);
	for (size_t i = 0; i < observed->count; i++)
		observe_cycle(&cycles[i], &observed->items[i]);
	pfree(cycles);
	pfree(chunk);
}
