/*
 * helper.h: asking kernel_advisord, the root helper, from a server process.
 *
 * Waiting is done on the process's latch: interrupts, statement_timeout and a
 * dying postmaster end it at once.  Nothing that the helper does or fails to do
 * raises an error here; the caller gets a reason and decides.  Usable in
 * backends and in background workers, also without a database.
 *
 * What the helper says is a claim: callers read the kernel themselves
 * (machine.h) before they believe it.
 */
#ifndef KA_HELPER_H
#define KA_HELPER_H

#include "kernel_advisord/knobs.h"
#include "kernel_advisord/protocol.h"

/* Why there is no answer. */
typedef enum KaHelperTrouble
{
	KA_HELPER_ANSWERED,
	KA_HELPER_NOT_CONFIGURED,	/* helper_socket is empty */
	KA_HELPER_ABSENT,			/* no socket, or nobody listens: nothing was asked */
	KA_HELPER_REFUSES,			/* the socket may not be opened: nothing was asked */
	KA_HELPER_BUSY,				/* its queue stayed full: nothing was asked */
	KA_HELPER_SILENT,			/* asked, and no answer in time: the outcome is unknown */
	KA_HELPER_GONE,				/* asked, and the connection ended: the outcome is unknown */
	KA_HELPER_LYING				/* an answer that is not one: the outcome is unknown */
} KaHelperTrouble;

typedef struct KaHelperFailure
{
	KaHelperTrouble trouble;
	int			error;			/* errno behind it, or 0 */
	const char *reason;			/* one phrase, for errmsg or detail; palloc'd */
	const char *hint;			/* a sentence; constant, or NULL */
} KaHelperFailure;

/* A request in which nothing is asked for yet. */
extern KaRequest ka_helper_request(KaOperation operation, const KaKnob *knob, int node, int64 value);

/*
 * Asks, and waits for the answer at most timeout_ms.  True: *reply is an
 * answer in the protocol (its status may be any, KA_ST_DENIED for instance).
 * False: *failure says why there is none.
 */
extern bool ka_helper_call(const KaRequest *request, KaReply *reply, int timeout_ms,
						   KaHelperFailure *failure);

/* May the helper have done what it was asked, though there was no answer? */
extern bool ka_helper_outcome_unknown(KaHelperTrouble trouble);

/* SQLSTATE (as errcode() takes it) and hint for a failure, and for a status of the helper. */
extern int	ka_helper_failure_sqlstate(KaHelperTrouble trouble);
extern int	ka_helper_status_sqlstate(uint32 status);
extern const char *ka_helper_status_hint(uint32 status);	/* NULL: none */

/*
 * For status(): the state in one word, and a sentence; asks for one knob with a
 * short timeout.
 */
extern void ka_helper_status(const char **state, const char **detail, const char **hint);

/*
 * For facts(): pages of a size that free blocks and compaction could give to
 * its pool now.  False: no helper that answers at once, or not known.
 */
extern bool ka_helper_grantable(int64 size_bytes, bool default_size, int64 *pages);

#endif							/* KA_HELPER_H */
