/*
 * jsonb_sink.h: jsonb as events of the core, in both directions, and the
 * core's memory on PostgreSQL's.
 */
#ifndef KA_JSONB_SINK_H
#define KA_JSONB_SINK_H

#include "utils/jsonb.h"

#include "ka_json.h"

/* The current memory context as an arena; running out of it raises no error. */
extern void ka_palloc_arena(KaArena *arena);

/* Raises an out-of-memory error when the arena has failed. */
extern void ka_arena_check(const KaArena *arena);

/* Sends a document to a sink; false when the sink stopped. */
extern bool ka_jsonb_walk(Jsonb *document, const KaJsonSink *sink);

/* A sink that builds a document; ka_jsonb_result returns it. */
typedef struct KaJsonbBuilder KaJsonbBuilder;

extern KaJsonbBuilder *ka_jsonb_builder(KaJsonSink *sink);
extern Jsonb *ka_jsonb_result(KaJsonbBuilder *builder);

#endif							/* KA_JSONB_SINK_H */
