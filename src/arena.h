/*
 * arena.h: memory of the server for the core.
 */
#ifndef KA_ARENA_H
#define KA_ARENA_H

#include "ka_base.h"

/* An arena in the memory context that is current at each allocation. */
extern void ka_palloc_arena(KaArena *arena);

/* Raises "out of memory" when an allocation of the arena has failed. */
extern void ka_arena_check(const KaArena *arena);

#endif							/* KA_ARENA_H */
