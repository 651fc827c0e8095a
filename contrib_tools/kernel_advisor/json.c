/*
 * json.c: JSON text for the tools, by way of jansson.
 *
 * Invariants: integers keep all 64 bits; of duplicate keys the last one counts;
 * members keep their order.  jansson refuses more than 2048 levels, so that
 * walking a document may recurse.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A facts file has some KiB; whatever is larger than this is something else. */
#define FILE_MAX (64 * 1024 * 1024)

static json_t *
parsed(KaArena *arena, json_t *document, const json_error_t *error, const char **problem)
{
	if (document == NULL && error->line < 0)
		*problem = ka_printf(arena, "not JSON: %s", error->text);
	else if (document == NULL)
		*problem = ka_printf(arena, "not JSON: line %d, column %d: %s",
							 error->line, error->column, error->text);
	return document;
}

json_t *
ka_json_parse(KaArena *arena, const char *text, const char **problem)
{
	json_error_t error;

	return parsed(arena, json_loads(text, JSON_DECODE_ANY, &error), &error, problem);
}

/* The source of json_load_callback: a file that may not be endless. */
typedef struct Input
{
	FILE	   *file;
	size_t		left;
	int			failure;		/* errno of a read, EFBIG */
} Input;

static size_t
read_input(void *buffer, size_t size, void *data)
{
	Input	   *input = data;
	size_t		n;

	if (input->left == 0)
	{
		input->failure = EFBIG;
		return (size_t) -1;
	}
	n = fread(buffer, 1, size < input->left ? size : input->left, input->file);
	input->left -= n;
	if (n == 0 && ferror(input->file))
	{
		input->failure = errno ? errno : EIO;
		return (size_t) -1;
	}
	return n;
}

json_t *
ka_json_load(KaArena *arena, const char *path, const char **problem)
{
	bool		standard = strcmp(path, "-") == 0;
	Input		input = {.left = FILE_MAX};
	json_error_t error;
	json_t	   *document;

	input.file = standard ? stdin : fopen(path, "re");
	if (input.file == NULL)
	{
		*problem = ka_strdup(arena, strerror(errno));
		return NULL;
	}

	document = json_load_callback(read_input, &input, JSON_DECODE_ANY, &error);
	if (document == NULL && input.failure != 0)
		*problem = ka_strdup(arena, strerror(input.failure));
	else
		document = parsed(arena, document, &error, problem);

	if (!standard)
		fclose(input.file);
	return document;
}

static bool
feed_number(const json_t *number, const KaJsonSink *sink)
{
	char		text[32];

	if (json_is_integer(number))
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(number));
	else
	{
		/* As it was written, where 15 digits are enough: messages repeat it. */
		snprintf(text, sizeof(text), "%.15g", json_real_value(number));
		if (strtod(text, NULL) != json_real_value(number))
			snprintf(text, sizeof(text), "%.17g", json_real_value(number));
	}
	return sink->number(sink->ctx, text);
}

static bool
feed_object(const json_t *object, const KaJsonSink *sink)
{
	const char *key;
	json_t	   *value;

	if (!sink->begin_object(sink->ctx))
		return false;
	json_object_foreach((json_t *) object, key, value)
	{
		if (!(sink->key(sink->ctx, key) && ka_json_feed(value, sink)))
			return false;
	}
	return sink->end_object(sink->ctx);
}

static bool
feed_array(const json_t *array, const KaJsonSink *sink)
{
	if (!sink->begin_array(sink->ctx))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++)
	{
		if (!ka_json_feed(json_array_get(array, i), sink))
			return false;
	}
	return sink->end_array(sink->ctx);
}

bool
ka_json_feed(const json_t *document, const KaJsonSink *sink)
{
	switch (json_typeof(document))
	{
		case JSON_OBJECT:
			return feed_object(document, sink);
		case JSON_ARRAY:
			return feed_array(document, sink);
		case JSON_STRING:
			return sink->string(sink->ctx, json_string_value(document));
		case JSON_INTEGER:
		case JSON_REAL:
			return feed_number(document, sink);
		case JSON_TRUE:
			return sink->boolean(sink->ctx, true);
		case JSON_FALSE:
			return sink->boolean(sink->ctx, false);
		default:
			return sink->null(sink->ctx);
	}
}

/*
 * Building a document.
 *
 * The builder owns the root; every open container belongs to its parent.
 */

/* Facts have six levels, evidence three. */
#define MAX_DEPTH 16

struct KaJsonBuilder
{
	json_t	   *root;
	json_t	   *open[MAX_DEPTH];
	int			depth;
	char	   *key;			/* of the next value, malloc'd by strdup */
	bool		failed;
};

/* Takes over "value", which may be NULL when jansson had no memory. */
static bool
add(KaJsonBuilder *builder, json_t *value)
{
	json_t	   *top = builder->depth > 0 ? builder->open[builder->depth - 1] : NULL;

	if (value == NULL || builder->failed)
		builder->failed = true;
	else if (top == NULL)
	{
		builder->failed = builder->root != NULL;
		if (!builder->failed)
			builder->root = json_incref(value);
	}
	else if (json_is_array(top))
		builder->failed = json_array_append(top, value) != 0;
	else
	{
		builder->failed = builder->key == NULL || json_object_set(top, builder->key, value) != 0;
		free(builder->key);
		builder->key = NULL;
	}
	json_decref(value);
	return !builder->failed;
}

static bool
open_container(KaJsonBuilder *builder, json_t *container)
{
	if (builder->depth == MAX_DEPTH)
	{
		builder->failed = true;
		json_decref(container);
		return false;
	}
	if (!add(builder, container))
		return false;
	builder->open[builder->depth++] = container;	/* kept alive by its parent */
	return true;
}

static bool
close_container(KaJsonBuilder *builder, json_type type)
{
	if (builder->failed || builder->depth == 0 || builder->key != NULL ||
		json_typeof(builder->open[builder->depth - 1]) != type)
	{
		builder->failed = true;
		return false;
	}
	builder->depth--;
	return true;
}

static bool
build_begin_object(void *ctx)
{
	return open_container(ctx, json_object());
}

static bool
build_end_object(void *ctx)
{
	return close_container(ctx, JSON_OBJECT);
}

static bool
build_begin_array(void *ctx)
{
	return open_container(ctx, json_array());
}

static bool
build_end_array(void *ctx)
{
	return close_container(ctx, JSON_ARRAY);
}

static bool
build_key(void *ctx, const char *name)
{
	KaJsonBuilder *builder = ctx;

	if (builder->failed || builder->key != NULL)
		builder->failed = true;
	else
		builder->failed = (builder->key = strdup(name)) == NULL;
	return !builder->failed;
}

static bool
build_null(void *ctx)
{
	return add(ctx, json_null());
}

static bool
build_boolean(void *ctx, bool value)
{
	return add(ctx, json_boolean(value));
}

static bool
build_number(void *ctx, const char *text)
{
	char	   *end;
	long long	integer;

	errno = 0;
	integer = strtoll(text, &end, 10);
	if (*end == '\0' && errno == 0)
		return add(ctx, json_integer(integer));
	return add(ctx, json_real(strtod(text, NULL)));
}

/* Text of a kernel file need not be UTF-8: what is not is replaced, byte by byte. */
static json_t *
string_of_bytes(const char *text)
{
	char	   *copy = strdup(text);
	json_t	   *string;

	if (copy == NULL)
		return NULL;
	for (char *p = copy; *p != '\0'; p++)
	{
		if ((unsigned char) *p >= 0x80)
			*p = '?';
	}
	string = json_string(copy);
	free(copy);
	return string;
}

static bool
build_string(void *ctx, const char *text)
{
	json_t	   *string = json_string(text);

	return add(ctx, string ? string : string_of_bytes(text));
}

KaJsonBuilder *
ka_json_builder(KaArena *arena, KaJsonSink *sink)
{
	KaJsonBuilder *builder = ka_alloc(arena, sizeof(*builder));

	if (builder == NULL)
		return NULL;
	*sink = (KaJsonSink) {
		.begin_object = build_begin_object,
			.end_object = build_end_object,
			.begin_array = build_begin_array,
			.end_array = build_end_array,
			.key = build_key,
			.null = build_null,
			.boolean = build_boolean,
			.number = build_number,
			.string = build_string,
			.ctx = builder,
	};
	return builder;
}

json_t *
ka_json_finish(KaJsonBuilder *builder)
{
	json_t	   *root = builder->root;

	free(builder->key);
	builder->key = NULL;
	builder->root = NULL;
	if (builder->failed || builder->depth > 0)
	{
		json_decref(root);
		return NULL;
	}
	return root;
}

bool
ka_json_print(json_t *document)
{
	bool		good;

	if (document == NULL)
		return false;
	/* 15 digits: what the encoder wrote comes out as it went in, 0.9 and not 0.90000000000000002. */
	good = json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) == 0 &&
		fputc('\n', stdout) != EOF && fflush(stdout) == 0;
	json_decref(document);
	return good;
}
