/*
 * jsonb_sink.h: jsonb as events of the core, in both directions.
 */
#ifndef KA_JSONB_SINK_H
#define KA_JSONB_SINK_H

#include "utils/jsonb.h"

#include "ka_json.h"

/* Sends a document to a sink; false when the sink stopped. */
extern bool ka_jsonb_walk(Jsonb *document, const KaJsonSink *sink);

/* A sink that builds a document; ka_jsonb_result returns it. */
typedef struct KaJsonbBuilder KaJsonbBuilder;

extern KaJsonbBuilder *ka_jsonb_builder(KaJsonSink *sink);
extern Jsonb *ka_jsonb_result(KaJsonbBuilder *builder);

#endif							/* KA_JSONB_SINK_H */
