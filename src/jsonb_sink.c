/*
 * jsonb_sink.c: jsonb as events of the core, in both directions.
 *
 * The core neither knows jsonb nor raises errors.  A document is sent to it
 * event by event, numbers as their decimal text, so that the core alone
 * decides what fits in a fact.  The builder makes a document of the events
 * that the core sends.  Both run in the caller's memory context.
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "compat.h"
#include "jsonb_sink.h"

struct KaJsonbBuilder
{
	JsonbParseState *state;
	JsonbValue *result;
};

/* ------------------------------------------------------------------------
 * jsonb to events
 * ------------------------------------------------------------------------ */

/* A sink copies what it keeps: a large document costs no more than itself. */
static bool
send_text(bool (*event) (void *ctx, const char *text), const KaJsonSink *sink, char *text)
{
	bool		go_on = event(sink->ctx, text);

	pfree(text);
	return go_on;
}

static bool
send_scalar(const JsonbValue *value, const KaJsonSink *sink)
{
	switch (value->type)
	{
		case jbvNull:
			return sink->null(sink->ctx);
		case jbvBool:
			return sink->boolean(sink->ctx, value->val.boolean);
		case jbvString:
			return send_text(sink->string, sink, pnstrdup(value->val.string.val, value->val.string.len));
		case jbvNumeric:
			return send_text(sink->number, sink,
							 DatumGetCString(DirectFunctionCall1(numeric_out,
																 NumericGetDatum(value->val.numeric))));
		default:
			elog(ERROR, "unexpected jsonb value type: %d", (int) value->type);
			return false;
	}
}

bool
ka_jsonb_walk(Jsonb *document, const KaJsonSink *sink)
{
	JsonbIterator *it = JsonbIteratorInit(&document->root);
	bool		bare = JB_ROOT_IS_SCALAR(document);
	bool		go_on = true;
	JsonbIteratorToken token;
	JsonbValue	value;

	while (go_on && (token = JsonbIteratorNext(&it, &value, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();

		switch (token)
		{
			case WJB_BEGIN_OBJECT:
				go_on = sink->begin_object(sink->ctx);
				break;
			case WJB_END_OBJECT:
				go_on = sink->end_object(sink->ctx);
				break;
			case WJB_BEGIN_ARRAY:
				go_on = bare || sink->begin_array(sink->ctx);
				break;
			case WJB_END_ARRAY:
				go_on = bare || sink->end_array(sink->ctx);
				break;
			case WJB_KEY:
				go_on = send_text(sink->key, sink, pnstrdup(value.val.string.val, value.val.string.len));
				break;
			case WJB_VALUE:
			case WJB_ELEM:
				go_on = send_scalar(&value, sink);
				break;
			default:
				elog(ERROR, "unexpected jsonb token: %d", (int) token);
		}
	}
	return go_on;
}

/* ------------------------------------------------------------------------
 * Events to jsonb
 * ------------------------------------------------------------------------ */

static bool
push(KaJsonbBuilder *builder, JsonbIteratorToken token, JsonbValue *value)
{
	builder->result = pushJsonbValue(&builder->state, token, value);
	return true;
}

/* A scalar belongs to the container that is open: an object's value or an array's element. */
static bool
push_scalar(KaJsonbBuilder *builder, JsonbValue *value)
{
	bool		in_array = builder->state != NULL && builder->state->contVal.type == jbvArray;

	return push(builder, in_array ? WJB_ELEM : WJB_VALUE, value);
}

static JsonbValue
text_value(const char *text)
{
	JsonbValue	value;

	value.type = jbvString;
	value.val.string.val = pstrdup(text);
	value.val.string.len = strlen(text);
	return value;
}

static bool
build_begin_object(void *ctx)
{
	return push(ctx, WJB_BEGIN_OBJECT, NULL);
}

static bool
build_end_object(void *ctx)
{
	return push(ctx, WJB_END_OBJECT, NULL);
}

static bool
build_begin_array(void *ctx)
{
	return push(ctx, WJB_BEGIN_ARRAY, NULL);
}

static bool
build_end_array(void *ctx)
{
	return push(ctx, WJB_END_ARRAY, NULL);
}

static bool
build_key(void *ctx, const char *name)
{
	JsonbValue	value = text_value(name);

	return push(ctx, WJB_KEY, &value);
}

static bool
build_null(void *ctx)
{
	JsonbValue	value = {.type = jbvNull};

	return push_scalar(ctx, &value);
}

static bool
build_boolean(void *ctx, bool boolean)
{
	JsonbValue	value = {.type = jbvBool};

	value.val.boolean = boolean;
	return push_scalar(ctx, &value);
}

static bool
build_number(void *ctx, const char *text)
{
	JsonbValue	value = {.type = jbvNumeric};

	value.val.numeric = DatumGetNumeric(DirectFunctionCall3(numeric_in,
															CStringGetDatum(text),
															ObjectIdGetDatum(InvalidOid),
															Int32GetDatum(-1)));
	return push_scalar(ctx, &value);
}

/* Text from the kernel's files may hold bytes that are no text here. */
static bool
build_string(void *ctx, const char *text)
{
	JsonbValue	value;
	char	   *clean = pstrdup(text);

	if (!pg_verify_mbstr(GetDatabaseEncoding(), clean, strlen(clean), true))
	{
		for (char *at = clean; *at != '\0'; at++)
			if (IS_HIGHBIT_SET(*at))
				*at = '?';
	}
	value = text_value(clean);
	return push_scalar(ctx, &value);
}

KaJsonbBuilder *
ka_jsonb_builder(KaJsonSink *sink)
{
	KaJsonbBuilder *builder = palloc0(sizeof(KaJsonbBuilder));

	*sink = (KaJsonSink)
	{
		.begin_object = build_begin_object,
		.end_object = build_end_object,
		.begin_array = build_begin_array,
		.end_array = build_end_array,
		.key = build_key,
		.null = build_null,
		.boolean = build_boolean,
		.number = build_number,
		.string = build_string,
		.ctx = builder
	};
	return builder;
}

Jsonb *
ka_jsonb_result(KaJsonbBuilder *builder)
{
	return JsonbValueToJsonb(builder->result);
}
