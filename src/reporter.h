/*
 * reporter.h: the part of the advisor that keeps what would be forgotten, and
 * tells what is new.
 *
 * The sampler launches a short-lived background worker for each report
 * (reporter_launch.c): it connects to one database, stores what is new and ends
 * (reporter.c, history_tables.c).  So nothing is connected between two reports:
 * databases can be dropped and used as templates, and a worker that dies is
 * replaced by the next one.
 *
 * What was stored is known from the tables alone.  What was told (log lines) is
 * in shared memory: which advice stands (standing.h).
 */
#ifndef KA_REPORTER_H
#define KA_REPORTER_H

#include "datatype/timestamp.h"

#include "reporter_idle.h"
#include "standing.h"

#define KA_REPORTER_NAME "kernel advisor reporter"
#define KA_HOLD_INTERVALS 5		/* advice that goes must stay away for so many report intervals */

/* REPORTER_STATE(symbol, name): what status() says. */
#define KA_REPORTER_STATES(REPORTER_STATE) \
	REPORTER_STATE(STARTING, "starting")	/* no report was made yet */ \
	REPORTER_STATE(OFF, "off") \
	REPORTER_STATE(WORKING, "working") \
	REPORTER_STATE(STANDBY, "standby")	/* log only */ \
	REPORTER_STATE(WAITING, "waiting")	/* something is missing: log only */ \
	REPORTER_STATE(FAILING, "failing")	/* an error, retried */

typedef enum KaReporterState
{
#define REPORTER_STATE(symbol, name) KA_REPORTER_##symbol,
	KA_REPORTER_STATES(REPORTER_STATE)
#undef REPORTER_STATE
	KA_NREPORTER_STATES
} KaReporterState;

/* What came of the last report; in shared memory, under its mutex. */
typedef struct KaReporterStatus
{
	int32		state;			/* KaReporterState */
	int32		sqlerrcode;		/* of the first step that failed in the last report; 0: none */
	bool		positions_known;	/* the next two */
	uint64		resets;			/* of the ring, when "stored_end" was true */
	uint64		stored_end;		/* position in the ring before which all is stored, or counted as dropped */
	TimestampTz at;				/* when the report ended; 0: never */
	TimestampTz due_at;			/* when to go on without an event; DT_NOEND: after report_interval */
	int64		stored;			/* checkpoints, since server start */
	int64		dropped;		/* checkpoints that left the ring before they could be stored */
	int64		waiting;		/* checkpoints that wait for somebody else's write; reporter_idle.c */
	int64		pruned;			/* rows of both tables */
	int64		events;			/* rows of advice_history */
	int64		cpu_us;			/* of the last report's process, µs */
	KaIdleMark	idle;
	char		detail[256];
	char		hint[192];
} KaReporterStatus;

/* Which database a worker is to connect to, in its bgw_extra. */
typedef struct KaReporterOrder
{
	Oid			database;		/* InvalidOid: none, see "why" */
	char		why[96];
} KaReporterOrder;

extern const char *const ka_reporter_state_name[KA_NREPORTER_STATES];

/* In the sampler, after each sample: launches a report when one is due. */
extern void ka_reporter_tick(TimestampTz now);

#endif							/* KA_REPORTER_H */
