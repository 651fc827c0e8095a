/*
 * gather.h: the facts of this server, and the advice that follows from them.
 *
 *	KaArena		arena;
 *	KaFacts    *facts = ka_gather_facts(&arena);
 *	KaAdviceList list;
 *
 *	ka_gather_advice(facts, &list);
 *
 * Everything is allocated in the current memory context and lives as long as
 * that; "arena" has to live as long as the facts.  Callable in any process that
 * has shared memory, inside or outside of a transaction.
 */
#ifndef KA_GATHER_H
#define KA_GATHER_H

#include "datatype/timestamp.h"

#include "advice.h"

/* Initialises the arena and gathers all that is known now; raises out of memory only. */
extern KaFacts *ka_gather_facts(KaArena *arena);

/* The same, with nothing observed before a time: evidence from after a change. */
extern KaFacts *ka_gather_facts_since(KaArena *arena, TimestampTz not_before);

/* The rows that advise() gives for these facts; raises out of memory and cancellation only. */
extern void ka_gather_advice(const KaFacts *facts, KaAdviceList *list);

#endif							/* KA_GATHER_H */
