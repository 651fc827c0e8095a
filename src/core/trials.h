/*
 * trials.h: what is remembered of a trial, and whether bytes are that.
 *
 * A trial sets a knob of the kernel to its old value and to another one in
 * turns, in blocks, and compares what was measured (stats.h).  The records go
 * to a file as they are in memory; whatever it says is checked here before it
 * is used, without a server.
 */
#ifndef KA_TRIALS_H
#define KA_TRIALS_H

#include <stdint.h>

#include "records.h"
#include "stats.h"

typedef enum KaTrialMeasure
{
#define TRIAL_MEASURE(symbol, name, unit, better, part, whole, factor, least) KA_TM_##symbol,
#include "trials.def"
	KA_NTRIAL_MEASURES
} KaTrialMeasure;

typedef struct KaTrialMeasureInfo
{
	const char *name;
	const char *unit;
	KaBetter	better;
	double		least;			/* per block */
} KaTrialMeasureInfo;

extern const KaTrialMeasureInfo ka_trial_measure_info[KA_NTRIAL_MEASURES];

/* TRIAL_STATE(number, symbol, name): numbers are in the file. */
#define KA_TRIAL_STATES(TRIAL_STATE) \
	TRIAL_STATE(1, RUNNING, "running") \
	TRIAL_STATE(2, FINISHED, "finished") \
	TRIAL_STATE(3, STOPPED, "stopped")		/* by somebody, or because the ground changed under it */ \
	TRIAL_STATE(4, FAILED, "failed")		/* the helper, or an error */ \
	TRIAL_STATE(5, INTERRUPTED, "interrupted")	/* the server or the worker ended */

typedef enum KaTrialState
{
#define TRIAL_STATE(number, symbol, name) KA_TRIAL_##symbol = number,
	KA_TRIAL_STATES(TRIAL_STATE)
#undef TRIAL_STATE
} KaTrialState;

/* The name in the view; NULL: no such state. */
extern const char *ka_trial_state_name(int32_t state);

#define KA_TRIALS_KEPT 100

#define KA_TRIAL_BLOCK_LEAST_US	INT64_C(2000000)
#define KA_TRIAL_BLOCK_MOST_US	INT64_C(3600000000)

/* Times are µs since 2000, as the server counts them; 0: not yet.  Empty text: NULL. */
typedef struct KaTrialRecord
{
	int64_t		trial_id;		/* > 0 */
	int64_t		started_at;
	int64_t		ended_at;		/* when the old value was back, or was given up */
	int64_t		incarnation;	/* of the shared memory that it ran in */
	int64_t		block_us;
	int64_t		settle_us;		/* of each block, thrown away */
	int64_t		old_value;
	int64_t		new_value;
	int32_t		state;			/* KaTrialState */
	int32_t		knob;			/* number of the helper */
	int32_t		node;
	int32_t		pairs;			/* asked for */
	int32_t		pairs_done;		/* that count */
	int32_t		pairs_dropped;
	int32_t		restored;		/* 1: nothing is left to be set back */
	int32_t		unused;			/* 0 */
	char		subject[96];
	char		old[64];
	char		value[64];
	char		who[64];
	char		detail[512];
	char		hint[256];
	KaComparison results[KA_NTRIAL_MEASURES];
} KaTrialRecord;

/* The file; its records are looked at by ka_trials_problem. */
extern const KaRecordFormat ka_trials_format;

/* What is wrong with the records of a file with this header; NULL: nothing. */
extern const char *ka_trials_problem(const KaRecordsHeader *header, const void *records);

/* The part of a block that is thrown away: a quarter, one second at least and thirty at most. */
extern int64_t ka_trial_settle_us(int64_t block_us);

/*
 * Whether two blocks may be compared: a checkpoint ran during about the same
 * share of the time of each, and as many began.
 */
extern bool ka_trial_balanced(double old_share, int old_begun, double new_share, int new_begun);

#endif							/* KA_TRIALS_H */
