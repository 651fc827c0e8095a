/*
 * trial.h: two values of a kernel knob in turns on the live system.
 *
 * trial() (trial_sql.c) writes a record and starts a background worker
 * (trial_launch.c).  The worker (trial_worker.c) sets the values through the
 * root helper (trial_knob.c), measures blocks by the samples in the ring
 * (trial_measure.c), and writes what it knows after each pair (trial_file.c).
 *
 * The old value comes back whatever happens: at the end, at an error, and when
 * the worker is told to go, by the worker itself; when it had no chance to
 * (killed, helper away), by a worker that the sampler starts, after a crash or
 * a restart of the server as well.  All that this needs is in the file.
 */
#ifndef KA_TRIAL_H
#define KA_TRIAL_H

#include "datatype/timestamp.h"
#include "storage/latch.h"

#include "effect.h"
#include "trials.h"
#include "kernel_advisord/knobs.h"

/* Beside the change log, and left out of base backups like it. */
#define KA_TRIALS_FILE "pg_stat_tmp/pg_kernel_advisor.trials"

#define KA_TRIAL_NAME "kernel advisor trial"

/* In shared memory, under its mutex. */
typedef struct KaTrialShared
{
	bool		open;			/* a trial runs, or its old value is not back yet */
	bool		stop;			/* trial_stop() was called */
	bool		no_worker;		/* there was no room for one */
	int32		owner_pid;		/* backend that starts it, then worker; 0: nobody looks after it */
	int32		failures;		/* attempts in a row to set the old value back */
	int64		trial_id;
	TimestampTz retry_at;		/* no attempt before */
	Latch	   *latch;			/* the worker's */
	char		subject[96];
} KaTrialShared;

/* A copy of it; all zero without preloading. */
extern void ka_trial_look(KaTrialShared *copy);

/* Why the subject may not be changed now; NULL: no trial of it.  Palloc'd. */
extern const char *ka_trial_objection(const char *subject);

/*
 * trial_file.c
 */

/* All records, oldest first, palloc'd; 0 when there is no file, or none that is ours. */
extern int	ka_trials_read(KaTrialRecord **records);

/* False: no such trial. */
extern bool ka_trials_find(int64 trial_id, KaTrialRecord *record);

/* Gives the record an id and writes it; an error when it cannot be written. */
extern void ka_trials_begin(KaTrialRecord *record);

/* Replaces the record of that id; a failure is logged.  Usable while a process exits. */
extern void ka_trials_update(const KaTrialRecord *record);

/* When the last trial that had two values ended, as far as before "before"; 0: none. */
extern TimestampTz ka_trials_last_end(TimestampTz before);

/*
 * trial_knob.c
 */

/* Does it take its values at once, and the old one back?  Otherwise there is no trial of it, and auto_apply leaves it alone. */
extern bool ka_knob_reversible(const KaKnob *knob);

/* Its value now; KA_NO_VALUE: not readable. */
extern int64 ka_trial_knob_value(const KaTrialRecord *record);

/*
 * Sets "from" to "to" through the helper and looks at the kernel.  False: *why
 * says what came of it (palloc'd), *hint what to do (may be NULL).
 */
extern bool ka_trial_set(const KaTrialRecord *record, int64 from, int64 to, int timeout_ms,
						 const char **why, const char **hint);

/* Raises an error unless the helper would set both values. */
extern void ka_trial_require_helper(const KaTrialRecord *record);

/*
 * Sets the old value, unless somebody else has chosen another meanwhile; sets
 * restored, ended_at and what there is to say.  False: not back yet.
 */
extern bool ka_trial_restore(KaTrialRecord *record, int timeout_ms);

/*
 * trial_measure.c
 */

/* One block, or window; what is not known is NaN. */
typedef struct KaTrialBlock
{
	double		value[KA_NTRIAL_MEASURES];
	double		backends;		/* connections, mean */
	double		work;			/* B of WAL per transaction */
	double		checkpoint_share;	/* of the time, in a checkpoint: 0 to 1 */
	int			checkpoints_begun;
	bool		covered;		/* samples cover half of it at least */
} KaTrialBlock;

/* n stretches, in the order of time and without overlap, in one pass. */
extern void ka_trial_measure(const KaStretch *stretches, int n, KaTrialBlock *blocks);

/* When the newest sample ends; 0: there is none. */
extern TimestampTz ka_trial_newest_sample(void);

/* The comparisons of all measures over n pairs of blocks. */
extern void ka_trial_compare(const KaTrialBlock *olds, const KaTrialBlock *news, int n, int64 measured_us,
							 KaComparison *results);

/*
 * trial_launch.c
 */

/* Takes the place of the one trial there can be; false: *copy tells who has it. */
extern bool ka_trial_claim(const char *subject, KaTrialShared *copy);

/* Gives it up again, unless a worker has taken over. */
extern void ka_trial_release(void);

/* Starts the worker that runs it; false: there is no room. */
extern bool ka_trial_start_worker(int64 trial_id);

/* Waits on the latch, with interrupts. */
extern void ka_trial_wait(long ms);

/* In the sampler, after each sample: has somebody look after a trial that nobody does. */
extern void ka_trial_tick(TimestampTz now);

#endif							/* KA_TRIAL_H */
