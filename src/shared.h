/*
 * shared.h: the shared memory of the library, for the files that write it.
 *
 * Everything is in one struct, reached through one pointer, which is NULL
 * unless the library was preloaded.  Who may touch what:
 *
 *	mutex	(spinlock) what the checkpointer, the sampler and status() exchange:
 *			a few assignments under it, never a call.
 *	lock	(LWLock) both rings and the sums.  Held for the copy of at most KA_RING_CHUNK
 *			slots; nobody takes another lock under it.
 *	changes_lock	(LWLock) the file of the change log and that of the trials, from
 *			reading one to renaming a new one (changes.c, trial_file.c).
 *
 * The sampler alone appends samples and changes slots that are filled; the
 * checkpointer and the sampler append checkpoints.  The postmaster runs while
 * nobody else does (start, end) and takes no lock.
 */
#ifndef KA_SHARED_H
#define KA_SHARED_H

#include "access/xlogdefs.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#include "auto.h"
#include "counters.h"
#include "reporter.h"
#include "ring.h"
#include "trial.h"

typedef struct KaRing
{
	uint64		head;			/* position after the newest slot */
	uint64		tail;			/* position of the oldest, head - slots at least */
	uint64		slots;			/* number of slots; constant */
	Size		slot_size;		/* bytes; constant */
	Size		offset;			/* of slot 0 from the start of KaShared; constant */
} KaRing;

/* A checkpoint that is running now. */
typedef struct KaMark
{
	int64		id;				/* 0: none */
	TimestampTz started_at;
	XLogRecPtr	redo;			/* redo pointer of this checkpoint */
	XLogRecPtr	prior_redo;		/* of the one before; invalid: unknown */
	int32		kind;			/* KaKind */
	bool		restartpoint;
	bool		hooked;			/* the hook saw its start: started_at is exact */
} KaMark;

typedef struct KaShared
{
	LWLock	   *lock;
	LWLock	   *changes_lock;
	TimestampTz incarnation;	/* constant: when this shared memory was made */
	bool		sampler_accepted;	/* constant: the postmaster took our worker */
	KaStandingList *standing;	/* constant; the list itself is for the reporter alone */

	slock_t		mutex;			/* from here on under "mutex" */
	uint64		events;			/* checkpoint starts and ends, resets: the sampler is due */
	KaMark		running;
	int64		last_id;		/* newest checkpoint_id that was given out */
	XLogRecPtr	hooked_redo;	/* redo pointer of the newest checkpoint that ended in the hook */
	int64		captured[2];	/* rows of each KaCaptureSource since server start */
	int64		failed;			/* checkpoints that began and did not end */
	Latch	   *sampler_latch;	/* NULL: no sampler */
	int			sampler_pid;	/* 0: no sampler */
	TimestampTz sampler_since;	/* when the sampler started last */
	int64		sampler_starts;
	int64		samples;		/* since server start */
	int			source_errno[KA_NSOURCES];	/* 0: readable */
	TimestampTz saved_at;		/* when the history file was written; 0: not yet */
	int			save_errno;		/* of the last attempt, 0: it worked */
	int			auto_pid;		/* of the auto_apply worker; 0: none */
	bool		auto_no_worker; /* there was no room for one */
	KaAutoStatus auto_status;
	int			reporter_pid;	/* of the reporter; 0: none */
	bool		reporter_no_worker; /* there was no room for one */
	KaReporterStatus reporter_status;
	uint32		probe_server_pid;	/* the postmaster's number on the host, as the probe counts; 0: not known */
	KaTrialShared trial;

	uint64		resets;			/* from here on under "lock" */
	KaCounted	counted[KA_NDURING];	/* reset() leaves them */
	KaRing		sample_ring;
	KaRing		checkpoint_ring;
} KaShared;

extern KaShared *ka_shared;

/* ring.c: hooks for shared memory; from _PG_init. */
extern void ka_shared_install(bool sampler_accepted);

/* Raises an error with a hint when the library was not preloaded. */
extern void ka_shared_require(void);

/* Wakes the sampler for an event; no allocation, no error, no lock but "mutex". */
extern void ka_sampler_wake(void);

/* ring.c: writing */
extern void ka_ring_append_sample(const KaSample *sample);	/* and counts it */
extern void ka_ring_restore_sample(const KaSample *sample); /* of an earlier start: not counted */
extern void ka_ring_append_checkpoint(const KaCheckpointRow *row);
extern void ka_ring_change_checkpoint(uint64 position, const KaCheckpointRow *row);
extern void ka_ring_set_phases(const KaCheckpointRow *row);
extern void ka_ring_reset(void);
extern uint64 ka_ring_resets(void);

/*
 * A sample in place, for the sampler, which alone changes samples; NULL beyond
 * the ends of the ring.
 */
extern const KaSample *ka_ring_sample(uint64 position);

/* A row without anything from samples. */
extern void ka_checkpoint_unsummed(KaCheckpointRow *row);

/* checkpoint.c */
extern void ka_checkpoint_hook_install(void);
extern XLogRecPtr ka_control_redo(void);	/* of the last checkpoint that completed; invalid: unreadable */
extern XLogRecPtr ka_control_checkpoint(void);	/* its record, likewise */
extern int64 ka_control_next_xid(void); /* the transaction number that was next when it began; KA_UNKNOWN */
extern bool ka_control_shut_down(void); /* the server has written its shutdown checkpoint */

/* history.c */
#define KA_HISTORY_FILE "pg_stat_tmp/pg_kernel_advisor.history"

extern void ka_history_load(void);
extern void ka_history_save(void);

#endif							/* KA_SHARED_H */
