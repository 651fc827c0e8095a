/*
 * sampler.h: the background worker that samples the kernel and the server.
 */
#ifndef KA_SAMPLER_H
#define KA_SAMPLER_H

#include "ring.h"
#include "shared.h"

#define KA_SAMPLER_NAME "kernel advisor sampler"

/* From _PG_init; false when max_worker_processes leaves no room. */
extern bool ka_sampler_register(void);

/*
 * join.c: which checkpoint a sample belongs to, and what a checkpoint's row
 * takes from its samples.  Called by the sampler only.
 */

/* Sampling begins (again) now: no checkpoint that started before can be summed. */
extern void ka_join_begin(TimestampTz baseline);

/*
 * Labels the sample, appends it to the ring and settles checkpoints that ended.
 * "stalls" are those of the sample's interval.
 */
extern void ka_join_sample(KaSample *sample, const KaStalls *stalls);

/* How many checkpoints this sampler has settled: it grows when there is a new one to look at. */
extern uint64 ka_join_settled(void);

/*
 * statistics.c: checkpoints that the hook does not see.  Called before
 * ka_join_sample, with the interval of that sample.
 */
extern void ka_statistics_begin(void);
extern void ka_statistics_tick(TimestampTz begin, TimestampTz now);

#endif							/* KA_SAMPLER_H */
