/*
 * daemon.h: the state of kernel_advisord, and its operations.
 *
 * One process, one thread, one request at a time: that is how concurrent
 * clients are serialised.
 */
#ifndef KA_DAEMON_H
#define KA_DAEMON_H

#include <signal.h>

#include "bounds.h"
#include "journal.h"
#include "kernel.h"
#include "persist.h"
#include "protocol.h"

typedef struct KaDaemon
{
	const char *root;			/* "" for this machine */
	KaKernel	kernel;
	KaBounds	bounds;
	KaJournal	journal;
	KaPersist	persist;
	double		tokens;			/* changes that the rate limit still has */
	int64_t		tokens_at_ms;
	volatile sig_atomic_t *stop;	/* SIGTERM came */
} KaDaemon;

/* From SO_PEERCRED, as of connect(). */
typedef struct KaPeer
{
	int			fd;				/* to see that the client left; -1: none */
	uint32_t	uid;
	int32_t		pid;
} KaPeer;

/* What an operation works on; filled from the table while it is checked. */
typedef struct KaCall
{
	KaDaemon   *daemon;
	const KaPeer *peer;
	const KaRequest *request;
	KaReply    *reply;
	const KaKnob *knob;
	const KaKnobFile *file;
	const KaKnobFile *twin;		/* or NULL */
	KaRecord	record;			/* of the change that is being made */
} KaCall;

/* A reply in which nothing is known yet. */
extern void ka_reply_start(KaReply *reply, uint32_t operation, uint32_t uid);

/* Answers one request.  Never fails: the reply says what happened. */
extern void ka_handle(KaDaemon *daemon, const KaPeer *peer, const KaRequest *request, KaReply *reply);

/* After the journal was replayed: finishes what a killed daemon left open.  A negative errno: cannot. */
extern int	ka_recover(KaDaemon *daemon);

/* call.c: what operations share. */
extern KaStatus ka_call_knob(KaCall *call, uint32_t number, int node);
extern KaStatus ka_call_begin(KaCall *call, size_t records);
extern KaStatus ka_call_end(KaCall *call, KaStatus status);
extern bool ka_call_interrupted(const KaCall *call);
extern KaStatus ka_call_error(KaCall *call, KaStatus status, int negative_errno);
extern int64_t ka_now_us(void);

/* limits.c: may this value be written?  growing pools, CommitLimit, ranges. */
extern KaStatus ka_check_range(KaCall *call, int64_t value);
extern KaStatus ka_check_effect(KaCall *call, int64_t current, int64_t value, bool for_boot);

/* set.c */
extern KaStatus ka_op_get(KaCall *call);
extern KaStatus ka_op_set(KaCall *call);
extern KaStatus ka_op_list(KaCall *call);
extern KaStatus ka_op_rollback(KaCall *call);
extern int	ka_put_back(const KaKnobFile *file, const KaKnobFile *twin, int64_t old, int64_t old_twin);

/* boot.c */
extern KaStatus ka_op_persist(KaCall *call);
extern KaStatus ka_op_unpersist(KaCall *call);
extern KaStatus ka_rollback_persist(KaCall *call, const KaRecord *change);
extern void ka_report_boot(KaCall *call);

/* reserve.c */
extern KaStatus ka_op_reserve(KaCall *call);
extern KaStatus ka_op_estimate(KaCall *call);
extern void ka_report_blocks(KaCall *call);
extern int	ka_resume_policy(KaDaemon *daemon);

#endif							/* KA_DAEMON_H */
