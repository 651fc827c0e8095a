/*
 * json.h: JSON text for the tools, by way of jansson.
 */
#ifndef KA_TOOL_JSON_H
#define KA_TOOL_JSON_H

#include <jansson.h>

#include "ka_json.h"

/*
 * A document from a text or a file ("-": standard input), or NULL, with the
 * reason in *problem (in the arena).
 */
extern json_t *ka_json_parse(KaArena *arena, const char *text, const char **problem);
extern json_t *ka_json_load(KaArena *arena, const char *path, const char **problem);

/* Sends a document to a sink; false when the sink stopped. */
extern bool ka_json_feed(const json_t *document, const KaJsonSink *sink);

/* Builds a document from events.  ka_json_finish returns it, or NULL when it is not whole. */
typedef struct KaJsonBuilder KaJsonBuilder;

extern KaJsonBuilder *ka_json_builder(KaArena *arena, KaJsonSink *sink);
extern json_t *ka_json_finish(KaJsonBuilder *builder);

/* Prints a document, indented, with a line feed, and releases it; false when it is NULL or cannot be written. */
extern bool ka_json_print(json_t *document);

#endif							/* KA_TOOL_JSON_H */
