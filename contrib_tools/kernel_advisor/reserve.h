/*
 * reserve.h: huge pages for a server, before it starts.
 */
#ifndef KA_TOOL_RESERVE_H
#define KA_TOOL_RESERVE_H

#include "helper.h"
#include "pgconf.h"

typedef struct KaReserveOptions
{
	const char *socket;			/* NULL: where kernel_advisord listens by default, if it does */
	bool		estimate;		/* say what could be had, and reserve nothing */
	bool		drop_caches;
	bool		undo;			/* all or nothing */
	bool		json;
	int64_t		time_limit_ms;	/* 0: the helper's own */
	const int64_t *nodes;		/* none: the kernel spreads the pages */
	size_t		nnodes;
} KaReserveOptions;

/* One pool that grows: the machine's, or that of a node. */
typedef struct KaReservePart
{
	const char *subject;		/* "vm.nr_hugepages" */
	const KaKnob *knob;
	int			node;
	int64_t		asked;			/* pages that the pool should have */
	bool		answered;
	KaReply		reply;
	uint64_t	undone_by;		/* the change that took it back, 0: none */
} KaReservePart;

typedef enum KaOutcome
{
	KA_OUTCOME_FULL,
	KA_OUTCOME_PARTIAL,
	KA_OUTCOME_NONE,
	KA_OUTCOME_UNKNOWN			/* of an estimate: the kernel does not tell */
} KaOutcome;

typedef struct KaReservation
{
	const char *nothing;		/* why there is nothing to reserve, or NULL */
	int64_t		page_bytes;
	int64_t		needed;			/* pages, by this server */
	bool		need_estimated; /* from shared_buffers */
	bool		estimate;		/* nothing was reserved: the answers say what could be */
	int64_t		others;			/* pages that others have, or want */
	KaReservePart *parts;
	size_t		nparts;
	KaOutcome	outcome;
	const char *helper;			/* who did it */
} KaReservation;

/* plan.c; false: *problem, or (NULL) no memory. */
extern bool ka_plan_reservation(KaArena *arena, KaFacts *facts, bool running, const KaReserveOptions *options,
								KaReservation *reservation, const char **problem);

/* Facts of this machine and of the cluster in; the exit status of the tool out. */
extern int	ka_reserve(KaArena *arena, KaFacts *facts, const KaCluster *cluster, const KaReserveOptions *options);

/* reservetext.c */
extern bool ka_print_reservation(KaArena *arena, const KaReservation *reservation, const KaReserveOptions *options);
extern const char *ka_outcome_name(KaOutcome outcome);

/* What a part has, or would have: its pool afterwards, where that is known. */
extern int64_t ka_part_before(const KaReservePart *part);
extern int64_t ka_part_after(const KaReservePart *part);

#endif							/* KA_TOOL_RESERVE_H */
