/*
 * ring.h: samples and checkpoints in shared memory, as their readers see them.
 *
 * Two rings of fixed slots share history_size.  A position is the number of
 * slots ever filled before it: it never wraps and is never reused, so a reader
 * that was overtaken finds out (the copy starts later than it asked).
 *
 * One LWLock guards both rings.  It is held for the copy of one slot by a
 * writer and of KA_RING_CHUNK slots by a reader, never across an allocation,
 * an error or I/O.
 */
#ifndef KA_RING_H
#define KA_RING_H

#include "ka_base.h"
#include "datatype/timestamp.h"

#define KA_RING_CHUNK 64		/* slots copied under one hold of the lock */

typedef enum KaDelta
{
#define SERVER(symbol, name) KA_D_##symbol,
#define KERNEL(symbol, name) KA_D_##symbol,
#define PROBE(symbol, name) KA_D_##symbol,
#define ESTIMATE(symbol, name) KA_D_##symbol,
#define HIDDEN(symbol, name) KA_D_##symbol,
#define HIDDEN_PROBE(symbol, name) KA_D_##symbol,
#include "samples.def"
	KA_NDELTAS
} KaDelta;

#define KA_D_FIRST_KERNEL	KA_D_COMPACT_STALL	/* summed per checkpoint from here ... */
#define KA_NSHOWN_DELTAS	KA_D_COMPACT_DAEMON_MIGRATE_SCANNED	/* ... columns up to here */

typedef enum KaGauge
{
#define GAUGE(symbol, name) KA_G_##symbol,
#define SERVER_GAUGE(symbol, name) KA_G_##symbol,
#include "samples.def"
	KA_NGAUGES
} KaGauge;

typedef enum KaPhase
{
	KA_PHASE_IDLE,				/* no checkpoint */
	KA_PHASE_WRITE,				/* start, then writing buffers */
	KA_PHASE_SYNC,				/* fsyncs */
	KA_PHASE_FINISH				/* control file, WAL files, slots */
} KaPhase;

typedef enum KaKind
{
	KA_KIND_UNKNOWN,			/* the statistics do not tell it */
	KA_KIND_TIMED,
	KA_KIND_WAL,
	KA_KIND_REQUESTED,
	KA_KIND_SHUTDOWN,
	KA_KIND_END_OF_RECOVERY
} KaKind;

typedef enum KaCaptureSource
{
	KA_SOURCE_HOOK,
	KA_SOURCE_STATISTICS
} KaCaptureSource;

/*
 * Who waited for memory: this server's processes by what they are, then all
 * others.  The names are those of pg_stat_activity.backend_type, where it has one.
 *	WHO(symbol, name)
 */
#define KA_WHOS(WHO) \
	WHO(CHECKPOINTER, "checkpointer") \
	WHO(WALWRITER, "walwriter") \
	WHO(BGWRITER, "background writer") \
	WHO(BACKEND, "client backend") \
	WHO(SERVER, "other server process") \
	WHO(OTHER, "other process") \
	WHO(KERNEL, "kernel thread")

typedef enum KaWho
{
#define WHO(symbol, name) KA_WHO_##symbol,
	KA_WHOS(WHO)
#undef WHO
	KA_NWHOS
} KaWho;

typedef enum KaStallKind
{
	KA_STALL_COMPACTION,		/* direct compaction */
	KA_STALL_RECLAIM,			/* direct reclaim */
	KA_NSTALLS
} KaStallKind;

/* Durations below 1 us, [1, 2), [2, 4) ... the last one without an end. */
#define KA_STALL_BUCKETS 24

/* 112 bytes: there are 14 of them in each checkpoint's row. */
typedef struct KaStallSum
{
	uint32		count;			/* begin to end; compaction has one per zone */
	uint32		longest_us;		/* us */
	int64		total_us;		/* us */
	uint32		bucket[KA_STALL_BUCKETS];
} KaStallSum;

/* The stalls of an interval, or a checkpoint. */
typedef struct KaStalls
{
	int64		known;			/* 0: nothing is known, and the rest is 0 */
	KaStallSum	by[KA_NWHOS][KA_NSTALLS];
} KaStalls;

/* Integers: KA_UNKNOWN is NULL. */
typedef struct KaSample
{
	TimestampTz at;				/* end of the interval */
	int64		interval_us;	/* µs, always > 0 */
	int64		checkpoint_id;	/* KA_UNKNOWN: outside of checkpoints */
	int32		phase;			/* KaPhase */
	int32		unused;			/* 0 */
	int64		delta[KA_NDELTAS];
	int64		gauge[KA_NGAUGES];
	double		unusable_index_order4;	/* 0 to 1; -1: unknown */
} KaSample;

typedef struct KaCheckpointRow
{
	int64		checkpoint_id;	/* > 0, grows, has gaps where a checkpoint failed */
	TimestampTz started_at;		/* statistics: begin of the sample in which it started */
	TimestampTz sync_at;		/* start of the fsyncs; 0: unknown (statistics) */
	TimestampTz finish_at;		/* end of the fsyncs; 0: unknown (statistics) */
	TimestampTz ended_at;		/* statistics: when the sampler noticed it */
	int32		kind;			/* KaKind */
	int16		restartpoint;	/* 0, 1 */
	int16		source;			/* KaCaptureSource */
	int64		settled;		/* 1: joined with its samples, will not change any more */
	int64		write_ms;		/* ms, as the server logs them */
	int64		sync_ms;		/* ms */
	int64		total_ms;		/* ms */
	int64		buffers_written;
	int64		files_synced;
	int64		longest_sync_ms;	/* ms */
	int64		wal_added;		/* WAL files */
	int64		wal_removed;
	int64		wal_recycled;
	int64		distance_bytes;
	int64		next_xid;		/* transaction number that was next when it began; KA_UNKNOWN */
	int64		samples_us;		/* µs covered by its samples */
	int64		delta[KA_NDELTAS];	/* sums over its samples; unknown when one of them is */
	double		tps_before;		/* 1/s; NaN: unknown */
	double		tps_during;		/* 1/s; NaN: unknown */
	double		dip_pct;		/* %; NaN: unknown, negative: a gain */
	KaStalls	stalls;			/* sums over its samples */
} KaCheckpointRow;

/*
 * What the samples add up to since the server started: it only grows, whatever
 * leaves the ring.  Readers take the difference of two of them.
 */
typedef struct KaCounted
{
	int64		samples;
	int64		sampled_us;		/* µs covered by them */
	TimestampTz until;			/* end of the newest; 0: none */
	int64		delta[KA_NDELTAS];	/* of the samples in which it was known; KA_UNKNOWN: in none */
} KaCounted;

typedef enum KaDuring
{
	KA_DURING_IDLE,				/* samples outside of checkpoints */
	KA_DURING_CHECKPOINT,
	KA_NDURING
} KaDuring;

extern const char *const ka_during_name[KA_NDURING];
extern const char *const ka_delta_name[KA_NDELTAS];
extern const char *const ka_gauge_name[KA_NGAUGES];
extern const char *const ka_phase_name[];
extern const char *const ka_kind_name[];	/* NULL for KA_KIND_UNKNOWN */
extern const char *const ka_source_name[];
extern const char *const ka_who_name[KA_NWHOS];
extern const char *const ka_stall_name[KA_NSTALLS];

/* Whether the library was preloaded, so that there is shared memory. */
extern bool ka_shared_available(void);

/*
 * Copy up to "max" slots, oldest first, beginning at position "from" or at the
 * oldest that is still there.  Returns how many; "next" is the position to go
 * on from.  Call until it returns 0.  A loop that wants an end in a busy server
 * stops at the position that the ..._end function gave before.
 */
extern int	ka_ring_copy_samples(uint64 from, KaSample *out, int max, uint64 *next);
extern int	ka_ring_copy_checkpoints(uint64 from, KaCheckpointRow *out, int max, uint64 *next);

/* The sums, and since when; both rows are of the same moment. */
extern TimestampTz ka_ring_counted(KaCounted counted[KA_NDURING]);

/* The position after the newest slot, and how many slots are filled now. */
extern uint64 ka_ring_samples_end(uint64 *filled);
extern uint64 ka_ring_checkpoints_end(uint64 *filled);

#endif							/* KA_RING_H */
