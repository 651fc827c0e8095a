/*
 * window.c: the facts that were observed over a time.
 *
 * One pass over the two rings, slot by slot into sums; nothing is kept.  Only
 * samples of this run of the server count, so that neither a restart's own
 * checkpoints nor the load before it colour the picture.
 *
 * What a sample does not know is left out of the sum, and a sum that covers
 * less than MIN_COVERAGE of the window's time is no fact.
 */
#include "postgres.h"

#include <math.h>

#include "postmaster/bgwriter.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "ring.h"
#include "window.h"

#define WINDOW_US			INT64CONST(3600000000)	/* an hour: several checkpoints at the usual timeouts */
#define WINDOW_TIMEOUTS		4	/* checkpoint_timeouts, where those are longer than the hour */
#define MIN_COVERAGE		0.9

/*
 * The mean request of unfragmented memory is taken from all samples there are,
 * in which at least half of the free memory is in blocks of order 4 and more.
 */
#define UNFRAGMENTED_INDEX	0.5
#define MIN_REQUESTS		1000

/* Sums of samples that are facts as they stand: over all, and inside checkpoints. */
static const struct
{
	KaDelta		delta;
	KaFact		fact;
	bool		in_checkpoint;
}			sum_facts[] = {
	{KA_D_COMPACT_STALL, KA_W_COMPACT_STALL, false},
	{KA_D_COMPACT_STALL, KA_W_COMPACT_STALL_CKPT, true},
	{KA_D_COMPACT_FAIL, KA_W_COMPACT_FAIL, false},
	{KA_D_COMPACT_DAEMON_WAKE, KA_W_DAEMON_WAKE, false},
	{KA_D_COMPACT_DAEMON_MIGRATE_SCANNED, KA_W_DAEMON_MIGRATE, false},
	{KA_D_ALLOCSTALL, KA_W_ALLOCSTALL, false},
	{KA_D_ALLOCSTALL, KA_W_ALLOCSTALL_CKPT, true},
	{KA_D_PCP_DRAINS, KA_W_PCP_DRAINS, false},
	{KA_D_PCP_DRAINED_PAGES, KA_W_PCP_DRAINED, false},
	{KA_D_PCP_DRAIN_ALL_PAGES, KA_W_PCP_DRAIN_ALL, false},
	{KA_D_DIRECT_COMPACT_US, KA_W_COMPACT_US, false},
	{KA_D_DIRECT_RECLAIM_US, KA_W_RECLAIM_US, false},
	{KA_D_SERVER_COMPACT_US, KA_W_SERVER_COMPACT_US, false},
	{KA_D_SERVER_RECLAIM_US, KA_W_SERVER_RECLAIM_US, false},
	{KA_D_PRESSURE_FULL_US, KA_W_PRESSURE_FULL_US, false},
	{KA_D_THP_FAULT_ALLOC, KA_W_THP_ALLOC, false},
	{KA_D_THP_FAULT_FALLBACK, KA_W_THP_FALLBACK, false},
	{KA_D_THP_FILE_ALLOC, KA_W_THP_FILE_ALLOC, false},
	{KA_D_THP_FILE_FALLBACK, KA_W_THP_FILE_FALLBACK, false},
};

/* Sums over those checkpoints during which the probe ran. */
static const struct
{
	KaWho		who;
	KaStallKind kind;
	KaFact		fact;
}			stall_facts[] = {
	{KA_WHO_CHECKPOINTER, KA_STALL_COMPACTION, KA_W_CHECKPOINTER_COMPACT_US},
	{KA_WHO_CHECKPOINTER, KA_STALL_RECLAIM, KA_W_CHECKPOINTER_RECLAIM_US},
	{KA_WHO_WALWRITER, KA_STALL_COMPACTION, KA_W_WALWRITER_COMPACT_US},
	{KA_WHO_WALWRITER, KA_STALL_RECLAIM, KA_W_WALWRITER_RECLAIM_US},
	{KA_WHO_BACKEND, KA_STALL_COMPACTION, KA_W_BACKENDS_COMPACT_US},
	{KA_WHO_BACKEND, KA_STALL_RECLAIM, KA_W_BACKENDS_RECLAIM_US},
};

/* A sum, and the time in which it was known. */
typedef struct Sum
{
	int64		value;
	int64		known_us;
} Sum;

typedef struct SampleSums
{
	int64		us,				/* time of all samples, and of those inside checkpoints */
				checkpoint_us;
	Sum			all[KA_NDELTAS];
	Sum			checkpoint[KA_NDELTAS];
	Sum			pcp_pages;		/* value: sum of pages, weighted by known_us / 1000 */
	int64		pcp_pages_max;
	int64		unfragmented_ios;
	int64		unfragmented_bytes;
} SampleSums;

/* A mean over those checkpoints that know the value. */
typedef struct Mean
{
	double		sum;
	double		weight;
} Mean;

/* Transactions per second around one checkpoint. */
typedef struct Throughput
{
	double		before;
	double		during;
} Throughput;

typedef struct CheckpointSums
{
	int64		count,
				timed,
				requested;
	bool		recovered;		/* the server came back from a crash */
	Mean		write_ms,
				sync_ms,
				sync_files,
				distance;
	int64		sync_ms_max;
	int64		stall_checkpoints;
	int64		stall_us[lengthof(stall_facts)];
	Throughput *throughput;		/* of those checkpoints that know it */
	int			nthroughput;
} CheckpointSums;

static void
add(Sum *sum, int64 value, int64 us)
{
	if (value == KA_UNKNOWN)
		return;
	sum->value += value;
	sum->known_us += us;
}

static void
add_sample(SampleSums *sums, const KaSample *sample)
{
	bool		in_checkpoint = sample->checkpoint_id != KA_UNKNOWN;
	int64		pcp_pages = sample->gauge[KA_G_PCP_PAGES];

	sums->us += sample->interval_us;
	if (in_checkpoint)
		sums->checkpoint_us += sample->interval_us;
	for (int i = 0; i < KA_NDELTAS; i++)
	{
		add(&sums->all[i], sample->delta[i], sample->interval_us);
		if (in_checkpoint)
			add(&sums->checkpoint[i], sample->delta[i], sample->interval_us);
	}
	if (pcp_pages != KA_UNKNOWN)
	{
		/* ms: pages times microseconds could overflow in a long window */
		sums->pcp_pages.value += pcp_pages * (sample->interval_us / 1000);
		sums->pcp_pages.known_us += sample->interval_us / 1000 * 1000;
		sums->pcp_pages_max = Max(sums->pcp_pages_max, pcp_pages);
	}
}

static void
add_unfragmented(SampleSums *sums, const KaSample *sample)
{
	int64		ios = sample->delta[KA_D_WRITE_IOS];
	int64		bytes = sample->delta[KA_D_WRITE_BYTES];

	if (ios == KA_UNKNOWN || bytes == KA_UNKNOWN ||
		sample->unusable_index_order4 < 0 || sample->unusable_index_order4 > UNFRAGMENTED_INDEX)
		return;
	sums->unfragmented_ios += ios;
	sums->unfragmented_bytes += bytes;
}

/* Sums the samples whose interval began at "since" or later. */
static void
sum_samples(SampleSums *sums, TimestampTz since)
{
	KaSample   *chunk = palloc(sizeof(KaSample) * KA_RING_CHUNK);
	uint64		filled;
	uint64		end = ka_ring_samples_end(&filled);
	uint64		position = 0;
	int			n;

	while (position < end && (n = ka_ring_copy_samples(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < n; i++)
		{
			if (chunk[i].at - chunk[i].interval_us >= since)
				add_sample(sums, &chunk[i]);
			add_unfragmented(sums, &chunk[i]);
		}
	}
	pfree(chunk);
}

static void
add_mean(Mean *mean, double value, double weight)
{
	mean->sum += value * weight;
	mean->weight += weight;
}

static void
add_known(Mean *mean, int64 value)
{
	if (value != KA_UNKNOWN)
		add_mean(mean, value, 1);
}

static void
add_checkpoint(CheckpointSums *sums, const KaCheckpointRow *row)
{
	if (row->kind == KA_KIND_END_OF_RECOVERY)
		sums->recovered = true;
	if (row->kind == KA_KIND_END_OF_RECOVERY || row->kind == KA_KIND_SHUTDOWN)
		return;					/* they say nothing about the load */

	sums->count++;
	if (row->kind == KA_KIND_TIMED)
		sums->timed++;
	if (row->kind == KA_KIND_WAL || row->kind == KA_KIND_REQUESTED)
		sums->requested++;
	add_known(&sums->write_ms, row->write_ms);
	add_known(&sums->sync_ms, row->sync_ms);
	add_known(&sums->sync_files, row->files_synced);
	add_known(&sums->distance, row->distance_bytes);
	sums->sync_ms_max = Max(sums->sync_ms_max, row->sync_ms);
	if (row->stalls.known)
	{
		sums->stall_checkpoints++;
		for (size_t i = 0; i < lengthof(stall_facts); i++)
			sums->stall_us[i] += row->stalls.by[stall_facts[i].who][stall_facts[i].kind].total_us;
	}
	if (row->tps_before > 0 && !isnan(row->tps_during))
	{
		sums->throughput[sums->nthroughput].before = row->tps_before;
		sums->throughput[sums->nthroughput++].during = row->tps_during;
	}
}

static void
sum_checkpoints(CheckpointSums *sums, TimestampTz since)
{
	KaCheckpointRow *chunk = palloc(sizeof(KaCheckpointRow) * KA_RING_CHUNK);
	uint64		filled;
	uint64		end = ka_ring_checkpoints_end(&filled);
	uint64		position = end - filled;
	int			n;

	sums->throughput = palloc(sizeof(Throughput) * (filled + 1));
	while (position < end && (n = ka_ring_copy_checkpoints(position, chunk, KA_RING_CHUNK, &position)) > 0)
	{
		for (int i = 0; i < n && position - n + i < end; i++)
			if (chunk[i].started_at >= since)
				add_checkpoint(sums, &chunk[i]);
	}
	pfree(chunk);
}

static void
set_mean(KaFacts *facts, KaFact fact, const Mean *mean)
{
	if (mean->weight > 0)
		ka_set_real(facts, fact, mean->sum / mean->weight);
}

static bool
covered(const Sum *sum, int64 us)
{
	return sum->known_us > 0 && sum->known_us >= us * MIN_COVERAGE;
}

static void
set_sample_facts(KaFacts *facts, const SampleSums *sums)
{
	const Sum  *ios = &sums->all[KA_D_WRITE_IOS];
	const Sum  *bytes = &sums->all[KA_D_WRITE_BYTES];
	const Sum  *write_ms = &sums->all[KA_D_WRITE_MS];
	const Sum  *io_ms = &sums->all[KA_D_IO_MS];

	ka_set_real(facts, KA_W_SECONDS, sums->us / 1e6);
	ka_set_real(facts, KA_W_CHECKPOINT_SECONDS, sums->checkpoint_us / 1e6);

	for (size_t i = 0; i < lengthof(sum_facts); i++)
	{
		KaDelta		delta = sum_facts[i].delta;

		if (!covered(&sums->all[delta], sums->us))
			continue;
		ka_set_int(facts, sum_facts[i].fact,
				   sum_facts[i].in_checkpoint ? sums->checkpoint[delta].value : sums->all[delta].value);
	}

	if (sums->pcp_pages.known_us > 0)
	{
		ka_set_real(facts, KA_W_PCP_AVG, (double) sums->pcp_pages.value / (sums->pcp_pages.known_us / 1000));
		ka_set_int(facts, KA_W_PCP_MAX, sums->pcp_pages_max);
	}
	if (covered(ios, sums->us) && covered(bytes, sums->us) && ios->value > 0)
		ka_set_real(facts, KA_W_REQUEST_BYTES, (double) bytes->value / ios->value);
	if (sums->unfragmented_ios >= MIN_REQUESTS)
		ka_set_real(facts, KA_W_REQUEST_BYTES_UNFRAG, (double) sums->unfragmented_bytes / sums->unfragmented_ios);
	if (covered(write_ms, sums->us) && ios->value > 0)
		ka_set_real(facts, KA_W_LATENCY, write_ms->value * 1000.0 / ios->value);
	if (covered(io_ms, sums->us))
		ka_set_real(facts, KA_W_UTIL, Min(100.0, io_ms->value * 1e5 / io_ms->known_us));
}

static int
by_ratio(const void *a, const void *b)
{
	const Throughput *x = a;
	const Throughput *y = b;
	double		left = x->during * y->before;
	double		right = y->during * x->before;

	return (left > right) - (left < right);
}

/*
 * The dip is that of the median checkpoint, each compared with the time just
 * before it: a load that begins or ends around one of them does not count.
 */
static void
set_throughput_facts(KaFacts *facts, const CheckpointSums *sums)
{
	const Throughput *median;

	if (sums->nthroughput == 0)
		return;
	qsort(sums->throughput, sums->nthroughput, sizeof(Throughput), by_ratio);
	median = &sums->throughput[sums->nthroughput / 2];
	ka_set_real(facts, KA_W_TPS_IDLE, median->before);
	ka_set_real(facts, KA_W_TPS_CHECKPOINT, median->during);
	ka_set_real(facts, KA_W_DIP, 100 * (1 - median->during / median->before));
}

static void
set_checkpoint_facts(KaFacts *facts, const CheckpointSums *sums)
{
	ka_set_bool(facts, KA_W_SPANS_RESTART, sums->recovered);
	ka_set_int(facts, KA_W_CHECKPOINTS, sums->count);
	ka_set_int(facts, KA_W_TIMED, sums->timed);
	ka_set_int(facts, KA_W_REQUESTED, sums->requested);
	set_mean(facts, KA_W_WRITE_MS, &sums->write_ms);
	set_mean(facts, KA_W_SYNC_MS, &sums->sync_ms);
	set_mean(facts, KA_W_SYNC_FILES, &sums->sync_files);
	set_mean(facts, KA_W_DISTANCE, &sums->distance);
	if (sums->sync_ms.weight > 0)
		ka_set_real(facts, KA_W_SYNC_MAX_MS, sums->sync_ms_max);

	if (sums->stall_checkpoints > 0)
	{
		ka_set_int(facts, KA_W_STALL_CHECKPOINTS, sums->stall_checkpoints);
		for (size_t i = 0; i < lengthof(stall_facts); i++)
			ka_set_int(facts, stall_facts[i].fact, sums->stall_us[i]);
	}

	set_throughput_facts(facts, sums);
}

void
ka_collect_window(KaFacts *facts, TimestampTz not_before)
{
	SampleSums	samples = {0};
	CheckpointSums checkpoints = {0};
	TimestampTz since;

	if (!ka_shared_available())
		return;

	since = GetCurrentTimestamp() - Max(WINDOW_US, WINDOW_TIMEOUTS * (int64) CheckPointTimeout * USECS_PER_SEC);
	since = Max(since, Max(PgStartTime, not_before));

	sum_samples(&samples, since);
	if (samples.us == 0)
		return;
	sum_checkpoints(&checkpoints, since);
	set_sample_facts(facts, &samples);
	set_checkpoint_facts(facts, &checkpoints);
}
