/*
 * ka_json.h: JSON as a stream of events.
 *
 * The core neither parses nor prints JSON text.  Whoever has a document (jsonb
 * in the server, jansson in the command line tool) sends its events to a sink;
 * whoever wants one passes a sink to the encoder.  The facts decoder is a sink,
 * the facts and evidence encoders are sources.
 *
 * Every callback returns true to go on and false to stop.  Texts are the
 * caller's: a sink copies what it keeps.
 */
#ifndef KA_JSON_H
#define KA_JSON_H

#include "ka_base.h"

typedef struct KaJsonSink
{
	bool		(*begin_object) (void *ctx);
	bool		(*end_object) (void *ctx);
	bool		(*begin_array) (void *ctx);
	bool		(*end_array) (void *ctx);
	bool		(*key) (void *ctx, const char *name);
	bool		(*null) (void *ctx);
	bool		(*boolean) (void *ctx, bool value);
	bool		(*number) (void *ctx, const char *text);	/* JSON number token */
	bool		(*string) (void *ctx, const char *text);	/* unescaped; UTF-8, in the server its own encoding */
	void	   *ctx;
} KaJsonSink;

#endif							/* KA_JSON_H */
