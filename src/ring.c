/*
 * ring.c: shared memory, and the two rings in it.
 *
 * Layout: KaShared, the advice that stands, then the slots of the samples, then those of the
 * checkpoints.  history_size is the size of the slots of both.  See shared.h
 * for who may write what, ring.h for what readers may rely on.
 *
 * The rings are filled from the history file at server start and after a
 * crash, and written to it at shutdown, by the postmaster: no other process has
 * the shared memory then, so it takes no lock (and could not: it has no PGPROC).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "shared.h"

#define TRANCHE "kernel_advisor"

KaShared   *ka_shared = NULL;

const char *const ka_delta_name[KA_NDELTAS] = {
#define SERVER(symbol, name) #name,
#define KERNEL(symbol, name) #name,
#define PROBE(symbol, name) #name,
#define ESTIMATE(symbol, name) #name,
#define HIDDEN(symbol, name) #name,
#define HIDDEN_PROBE(symbol, name) #name,
#include "samples.def"
};

const char *const ka_gauge_name[KA_NGAUGES] = {
#define GAUGE(symbol, name) #name,
#define SERVER_GAUGE(symbol, name) #name,
#include "samples.def"
};

const char *const ka_during_name[KA_NDURING] = {"idle", "checkpoint"};
const char *const ka_phase_name[] = {"idle", "write", "sync", "finish"};
const char *const ka_kind_name[] = {NULL, "timed", "wal", "requested", "shutdown", "end_of_recovery"};
const char *const ka_source_name[] = {"hook", "statistics"};
const char *const ka_stall_name[KA_NSTALLS] = {"direct compaction", "direct reclaim"};

const char *const ka_who_name[KA_NWHOS] = {
#define WHO(symbol, name) name,
	KA_WHOS(WHO)
#undef WHO
};

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;
static bool accepted;			/* in the postmaster, from _PG_init to shared memory */

static void shared_request(void);
static void shared_startup(void);
static void shared_shutdown(int code, Datum arg);

/*
 * ----------------------------------------------------------------
 * Shared memory
 * ----------------------------------------------------------------
 */

void
ka_shared_install(bool sampler_accepted)
{
	accepted = sampler_accepted;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = shared_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shared_startup;
}

/* Bytes for the slots of one ring: "eighths" of history_size. */
static Size
ring_bytes(int eighths)
{
	return mul_size((Size) ka_history_size * 1024 / 8, eighths);
}

static void
ring_init(KaRing *ring, int eighths, Size slot_size, Size *offset)
{
	ring->head = 0;
	ring->tail = 0;
	ring->slots = ring_bytes(eighths) / slot_size;
	ring->slot_size = slot_size;
	ring->offset = *offset;
	*offset = add_size(*offset, MAXALIGN(ring->slots * slot_size));
}

static Size
shared_bytes(void)
{
	return add_size(add_size(MAXALIGN(sizeof(KaShared)), MAXALIGN(sizeof(KaStandingList))),
					add_size(MAXALIGN(ring_bytes(7)), MAXALIGN(ring_bytes(1))));
}

static void
shared_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(shared_bytes());
	RequestNamedLWLockTranche(TRANCHE, 2);
}

static void
shared_startup(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	ka_shared = ShmemInitStruct("kernel_advisor", shared_bytes(), &found);
	if (!found)
	{
		Size		offset = MAXALIGN(sizeof(KaShared));

		memset(ka_shared, 0, sizeof(KaShared));
		ka_shared->standing = (KaStandingList *) ((char *) ka_shared + offset);
		memset(ka_shared->standing, 0, sizeof(KaStandingList));
		offset += MAXALIGN(sizeof(KaStandingList));
		SpinLockInit(&ka_shared->mutex);
		ka_shared->lock = &GetNamedLWLockTranche(TRANCHE)[0].lock;
		ka_shared->changes_lock = &GetNamedLWLockTranche(TRANCHE)[1].lock;
		ka_shared->incarnation = GetCurrentTimestamp();
		ka_shared->sampler_accepted = accepted;
		for (int i = 0; i < KA_NDURING * KA_NDELTAS; i++)
			ka_shared->counted[i / KA_NDELTAS].delta[i % KA_NDELTAS] = KA_UNKNOWN;
		ring_init(&ka_shared->sample_ring, 7, sizeof(KaSample), &offset);
		ring_init(&ka_shared->checkpoint_ring, 1, sizeof(KaCheckpointRow), &offset);
	}
	LWLockRelease(AddinShmemInitLock);

	if (IsUnderPostmaster)
		return;
	if (!found)
		ka_history_load();
	on_shmem_exit(shared_shutdown, (Datum) 0);
}

/*
 * In the postmaster, after the last child has gone: the shutdown checkpoint is
 * in the ring.  An immediate stop ends here as well, with the same code as an
 * orderly one; but its children were killed wherever they were, perhaps with
 * "mutex" held or a slot half written.  pg_control tells the two apart.
 */
static void
shared_shutdown(int code, Datum arg)
{
	(void) arg;

	if (code == 0 && ka_control_shut_down())
		ka_history_save();
}

bool
ka_shared_available(void)
{
	return ka_shared != NULL;
}

void
ka_shared_require(void)
{
	if (ka_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_kernel_advisor is not loaded by the server"),
				 errhint("Add pg_kernel_advisor to shared_preload_libraries and restart the server.")));
}

void
ka_sampler_wake(void)
{
	Latch	   *latch;

	SpinLockAcquire(&ka_shared->mutex);
	ka_shared->events++;
	latch = ka_shared->sampler_latch;
	SpinLockRelease(&ka_shared->mutex);

	/*
	 * The latch is part of a PGPROC, which is never freed: at worst the sampler
	 * is gone and some other process wakes once for nothing.
	 */
	if (latch != NULL)
		SetLatch(latch);
}

/*
 * ----------------------------------------------------------------
 * The rings
 * ----------------------------------------------------------------
 */

/* The postmaster is alone when it gets here, and cannot wait for a lock. */
static void
ring_lock(LWLockMode mode)
{
	if (MyProc != NULL)
		LWLockAcquire(ka_shared->lock, mode);
}

static void
ring_unlock(void)
{
	if (MyProc != NULL)
		LWLockRelease(ka_shared->lock);
}

static inline void *
ring_slot(const KaRing *ring, uint64 position)
{
	return (char *) ka_shared + ring->offset + (position % ring->slots) * ring->slot_size;
}

static int
ring_copy(const KaRing *ring, uint64 from, char *out, int max, uint64 *next)
{
	int			copied = 0;

	while (copied < max)
	{
		int			chunk = 0;

		ring_lock(LW_SHARED);
		if (from < ring->tail)
			from = ring->tail;	/* overtaken, or the first call */
		while (from < ring->head && chunk < KA_RING_CHUNK && copied + chunk < max)
		{
			memcpy(out, ring_slot(ring, from), ring->slot_size);
			out += ring->slot_size;
			from++;
			chunk++;
		}
		ring_unlock();

		if (chunk == 0)
			break;
		copied += chunk;
	}
	*next = from;
	return copied;
}

/* Caller holds the lock. */
static void
ring_append(KaRing *ring, const void *slot)
{
	if (ring->head - ring->tail == ring->slots)
		ring->tail++;
	memcpy(ring_slot(ring, ring->head), slot, ring->slot_size);
	ring->head++;
}

static uint64
ring_end(const KaRing *ring, uint64 *filled)
{
	uint64		end;

	ring_lock(LW_SHARED);
	end = ring->head;
	if (filled != NULL)
		*filled = ring->head - ring->tail;
	ring_unlock();
	return end;
}

int
ka_ring_copy_samples(uint64 from, KaSample *out, int max, uint64 *next)
{
	return ring_copy(&ka_shared->sample_ring, from, (char *) out, max, next);
}

int
ka_ring_copy_checkpoints(uint64 from, KaCheckpointRow *out, int max, uint64 *next)
{
	return ring_copy(&ka_shared->checkpoint_ring, from, (char *) out, max, next);
}

uint64
ka_ring_samples_end(uint64 *filled)
{
	return ring_end(&ka_shared->sample_ring, filled);
}

uint64
ka_ring_checkpoints_end(uint64 *filled)
{
	return ring_end(&ka_shared->checkpoint_ring, filled);
}

/* Caller holds the lock. */
static void
count_sample(const KaSample *sample)
{
	KaCounted  *counted = &ka_shared->counted[sample->checkpoint_id == KA_UNKNOWN ? KA_DURING_IDLE : KA_DURING_CHECKPOINT];

	counted->samples++;
	counted->sampled_us += sample->interval_us;
	counted->until = sample->at;
	for (int i = 0; i < KA_NDELTAS; i++)
	{
		if (sample->delta[i] == KA_UNKNOWN)
			continue;
		if (counted->delta[i] == KA_UNKNOWN)
			counted->delta[i] = 0;
		counted->delta[i] += sample->delta[i];
	}
}

void
ka_ring_append_sample(const KaSample *sample)
{
	ring_lock(LW_EXCLUSIVE);
	ring_append(&ka_shared->sample_ring, sample);
	count_sample(sample);
	ring_unlock();
}

void
ka_ring_restore_sample(const KaSample *sample)
{
	ring_lock(LW_EXCLUSIVE);
	ring_append(&ka_shared->sample_ring, sample);
	ring_unlock();
}

TimestampTz
ka_ring_counted(KaCounted counted[KA_NDURING])
{
	ring_lock(LW_SHARED);
	memcpy(counted, ka_shared->counted, sizeof(ka_shared->counted));
	ring_unlock();
	return ka_shared->incarnation;
}

void
ka_ring_append_checkpoint(const KaCheckpointRow *row)
{
	ring_lock(LW_EXCLUSIVE);
	ring_append(&ka_shared->checkpoint_ring, row);
	ring_unlock();
}

void
ka_ring_change_checkpoint(uint64 position, const KaCheckpointRow *row)
{
	KaRing	   *ring = &ka_shared->checkpoint_ring;

	ring_lock(LW_EXCLUSIVE);
	if (position >= ring->tail && position < ring->head)
		memcpy(ring_slot(ring, position), row, sizeof(*row));
	ring_unlock();
}

const KaSample *
ka_ring_sample(uint64 position)
{
	KaRing	   *ring = &ka_shared->sample_ring;
	const KaSample *sample = NULL;

	ring_lock(LW_SHARED);
	if (position >= ring->tail && position < ring->head)
		sample = ring_slot(ring, position);
	ring_unlock();
	return sample;
}

/* The phase of a sample is where the middle of its interval lies. */
static KaPhase
phase_of(const KaCheckpointRow *row, const KaSample *sample)
{
	TimestampTz middle = sample->at - sample->interval_us / 2;

	if (middle < row->sync_at)
		return KA_PHASE_WRITE;
	return middle < row->finish_at ? KA_PHASE_SYNC : KA_PHASE_FINISH;
}

/*
 * While a checkpoint runs nobody but the checkpointer knows its phase, so the
 * sampler goes by what the checkpointer waits for.  Now that the row tells the
 * times, set that right.
 */
void
ka_ring_set_phases(const KaCheckpointRow *row)
{
	KaRing	   *ring = &ka_shared->sample_ring;
	uint64		position = ka_ring_samples_end(NULL);
	bool		more = true;

	if (row->sync_at == 0 || row->finish_at == 0)
		return;

	while (more)
	{
		ring_lock(LW_EXCLUSIVE);
		for (int i = 0; i < KA_RING_CHUNK && more; i++)
		{
			KaSample   *sample;

			if (position <= ring->tail)
			{
				more = false;
				break;
			}
			sample = ring_slot(ring, --position);
			if (sample->checkpoint_id == row->checkpoint_id)
				sample->phase = phase_of(row, sample);
			more = sample->at > row->started_at;
		}
		ring_unlock();
	}
}

void
ka_ring_reset(void)
{
	ring_lock(LW_EXCLUSIVE);
	ka_shared->sample_ring.tail = ka_shared->sample_ring.head;
	ka_shared->checkpoint_ring.tail = ka_shared->checkpoint_ring.head;
	ka_shared->resets++;
	ring_unlock();
}

uint64
ka_ring_resets(void)
{
	uint64		resets;

	ring_lock(LW_SHARED);
	resets = ka_shared->resets;
	ring_unlock();
	return resets;
}
