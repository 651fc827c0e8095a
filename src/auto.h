/*
 * auto.h: auto_apply, the part of the advisor that acts by itself.
 *
 * The sampler launches a short-lived background worker for each step
 * (auto_launch.c); the step looks at the change log and the ring, does one
 * thing and ends (auto.c).  Nothing but the change log is remembered from step
 * to step, so a worker, a server or a machine may die at any time.
 */
#ifndef KA_AUTO_H
#define KA_AUTO_H

#include "datatype/timestamp.h"

#define KA_AUTO_NAME "kernel advisor auto-apply"

typedef enum KaAutoApply
{
	KA_AUTO_APPLY_OFF,
	KA_AUTO_APPLY_SAFE
} KaAutoApply;

/* AUTO_STATE(symbol, name): what status() says. */
#define KA_AUTO_STATES(AUTO_STATE) \
	AUTO_STATE(STARTING, "starting")	/* no step was made yet */ \
	AUTO_STATE(OFF, "off") \
	AUTO_STATE(WAITING, "waiting")		/* for load, for checkpoints, for advice */ \
	AUTO_STATE(WATCHING, "watching") \
	AUTO_STATE(CANNOT_KEEP, "cannot keep")	/* retried */ \
	AUTO_STATE(CANNOT_ROLL_BACK, "cannot roll back")	/* retried */ \
	AUTO_STATE(FAILING, "failing")		/* a step ended with an error */

typedef enum KaAutoState
{
#define AUTO_STATE(symbol, name) KA_AUTO_##symbol,
	KA_AUTO_STATES(AUTO_STATE)
#undef AUTO_STATE
	KA_NAUTOSTATES
} KaAutoState;

/* What came of the last step; in shared memory, under its mutex. */
typedef struct KaAutoStatus
{
	int32		state;			/* KaAutoState */
	int32		failures;		/* in a row */
	TimestampTz at;				/* when the step ended; 0: never */
	TimestampTz due_at;			/* when to step without a checkpoint; 0: at once, DT_NOEND: never */
	char		subject[96];	/* being watched or tried; "": none */
	char		detail[320];
} KaAutoStatus;

extern const char *const ka_auto_state_name[KA_NAUTOSTATES];

/* In the sampler, after each sample: launches a step when one is due. */
extern void ka_auto_tick(TimestampTz now);

#endif							/* KA_AUTO_H */
