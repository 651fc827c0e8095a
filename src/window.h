/*
 * window.h: the facts that were observed over a time, from the sampler's ring.
 */
#ifndef KA_WINDOW_H
#define KA_WINDOW_H

#include "datatype/timestamp.h"

#include "facts.h"

/*
 * Sets the window.* facts: the samples and checkpoints of this run of the
 * server, the last hour of them, or four checkpoint_timeouts where that is
 * longer, and none from before "not_before".  Sets nothing when the library was
 * not preloaded or nothing was sampled yet.
 */
extern void ka_collect_window(KaFacts *facts, TimestampTz not_before);

#endif							/* KA_WINDOW_H */
