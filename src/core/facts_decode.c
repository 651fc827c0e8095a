/*
 * facts_decode.c: facts from a stream of JSON events.
 *
 * A state machine: a short stack of the known objects and lists that are open,
 * and a target, the place where the next value goes.  A key chooses the target;
 * in a list it is the next element.  Whatever lies below an unknown key is only
 * counted, so that no depth of nesting costs memory or stack.
 *
 * Invariants: the stack never grows beyond the depth of the known form; after
 * the first problem every event is refused and the first problem stands; events
 * in an impossible order are a problem like any other, never undefined.
 *
 * Locks: none.
 */
#include "facts_decode.h"

#include <inttypes.h>
#include <string.h>

/* Bytes of a foreign text that a message repeats. */
#define EXCERPT 40

/*
 * Problems
 */

static void
append_name(KaArena *arena, const char **path, const KaTarget *target)
{
	if (target->kind == TARGET_ELEMENT)
		*path = ka_printf(arena, "%s[%zu]", *path ? *path : "", target->index);
	else if (target->length > 0)
		*path = ka_printf(arena, "%s%s%.*s", *path ? *path : "", *path ? "." : "",
						  (int) target->length, target->name);
}

/* The path of the target; of the object itself when there is none. */
static const char *
target_path(const KaDecoder *decoder)
{
	KaArena    *arena = decoder->facts->arena;
	const char *path = NULL;

	for (size_t i = 0; i < decoder->depth; i++)
		append_name(arena, &path, &decoder->stack[i]);
	if (decoder->target.kind != TARGET_NONE)
		append_name(arena, &path, &decoder->target);
	return path ? path : "facts";
}

static bool
fail(KaDecoder *decoder, bool syntax, const char *problem)
{
	decoder->failed = true;
	decoder->error.path = target_path(decoder);
	decoder->error.problem = problem ? problem : "out of memory";
	decoder->error.syntax = syntax;
	return false;
}

static bool
out_of_order(KaDecoder *decoder)
{
	return fail(decoder, true, "JSON events out of order");
}

static size_t
clip_utf8(const char *text, size_t limit)
{
	while (limit > 0 && ((unsigned char) text[limit] & 0xC0) == 0x80)
		limit--;
	return limit;
}

static const char *
excerpt(KaDecoder *decoder, const char *text)
{
	const char *copy;

	if (strlen(text) <= EXCERPT)
		return text;
	copy = ka_printf(decoder->facts->arena, "%.*s...", (int) decoder->clip(text, EXCERPT), text);
	return copy ? copy : "...";
}

/* What a target takes: the name of a JSON type. */
static const char *
expected(const KaTarget *target)
{
	static const char *const names[] = {
		[KA_INT] = "an integer",
		[KA_REAL] = "a number",
		[KA_BOOL] = "true or false",
		[KA_TEXT] = "a string",
		[KA_ENUM] = "a string",
	};

	switch (target->kind)
	{
		case TARGET_SCHEMA:
			return names[KA_INT];
		case TARGET_FACT:
			return names[ka_fact_info[target->fact].type];
		case TARGET_FIELD:
			return names[target->field->type];
		case TARGET_LIST:
			return "a list";
		default:
			return "an object";
	}
}

static bool
wrong_type(KaDecoder *decoder, const char *found)
{
	return fail(decoder, false,
				ka_printf(decoder->facts->arena, "expected %s, found %s",
						  expected(&decoder->target), found));
}

static bool
bad_number(KaDecoder *decoder, KaParse parse, const char *text, int64_t min, int64_t max)
{
	KaArena    *arena = decoder->facts->arena;
	const char *number = excerpt(decoder, text);

	if (parse == PARSE_SYNTAX)
		return fail(decoder, true, ka_printf(arena, "\"%s\" is not a number", number));
	if (parse == PARSE_FRACTION)
		return fail(decoder, false, ka_printf(arena, "expected an integer, found %s", number));
	return fail(decoder, false,
				ka_printf(arena, "%s is out of range (%" PRId64 " to %" PRId64 ")",
						  number, min, max));
}

/* The value went where it belongs: what may come next? */
static bool
next_target(KaDecoder *decoder)
{
	const KaTarget *top;
	size_t		count;

	decoder->target = (KaTarget) {.kind = TARGET_NONE};
	if (decoder->depth == 0)
	{
		decoder->finished = true;
		return true;
	}
	top = &decoder->stack[decoder->depth - 1];
	if (top->kind == TARGET_LIST)
	{
		(void) ka_list_items(top->list, top->owner, &count);
		decoder->target = (KaTarget) {.kind = TARGET_ELEMENT,.list = top->list,.index = count};
	}
	return true;
}

static bool
push(KaDecoder *decoder)
{
	if (decoder->depth == KA_MAX_DEPTH)
		return out_of_order(decoder);	/* cannot happen: the form is no deeper */
	decoder->stack[decoder->depth++] = decoder->target;
	decoder->target = (KaTarget) {.kind = TARGET_NONE};
	return true;
}

/* The last check of an element: "field: is missing". */
static bool
check_required(KaDecoder *decoder, const KaTarget *element)
{
	for (size_t i = 0; i < element->list->nfields; i++)
	{
		const KaField *field = &element->list->fields[i];

		if (field->required && *ka_field_int(field, element->owner) == KA_UNKNOWN)
		{
			decoder->target = (KaTarget) {.kind = TARGET_FIELD,.field = field,
				.name = field->name,.length = strlen(field->name)};
			return fail(decoder, false, "is missing");
		}
	}
	return true;
}

/*
 * Events
 */

/* Common to every event: false when it is refused; *skip when it only counts. */
static bool
admit(KaDecoder *decoder, bool *skip)
{
	if (decoder->failed)
		return false;
	*skip = decoder->skipped > 0;
	if (!*skip && decoder->finished)
		return out_of_order(decoder);
	return true;
}

static bool
begin(KaDecoder *decoder, const char *found, bool object)
{
	KaTarget   *target = &decoder->target;
	bool		skip;

	if (!admit(decoder, &skip))
		return false;
	if (skip || target->kind == TARGET_SKIP)
	{
		decoder->skipped++;
		return true;
	}

	switch (target->kind)
	{
		case TARGET_NONE:
			return out_of_order(decoder);
		case TARGET_LIST:
			if (object)
				return wrong_type(decoder, found);
			ka_forget_target(decoder);
			if (!push(decoder))
				return false;
			return next_target(decoder);
		case TARGET_ELEMENT:
			{
				const KaTarget *top = &decoder->stack[decoder->depth - 1];
				size_t		count;
				char	   *items = ka_list_items(top->list, top->owner, &count);

				if (!object)
					return wrong_type(decoder, found);
				if (count >= KA_LIST_MAX)
					return fail(decoder, false,
								ka_printf(decoder->facts->arena, "more than %d elements", KA_LIST_MAX));
				items = ka_append(decoder->facts->arena, items, &count, top->list->size);
				if (items == NULL)
					return fail(decoder, false, NULL);
				ka_list_store(top->list, top->owner, items, count);
				target->owner = items + (count - 1) * top->list->size;
				ka_element_clear(top->list, target->owner);
				return push(decoder);
			}
		case TARGET_FACTS:
		case TARGET_BOOT:
		case TARGET_BOOT_ENTRY:
			if (!object)
				return wrong_type(decoder, found);
			ka_forget_target(decoder);
			return push(decoder);
		default:
			return wrong_type(decoder, found);
	}
}

static bool
end(KaDecoder *decoder, bool object)
{
	KaTarget   *top;
	bool		skip;

	if (!admit(decoder, &skip))
		return false;
	if (skip)
	{
		if (--decoder->skipped > 0)
			return true;
		return next_target(decoder);
	}
	if (decoder->depth == 0)
		return out_of_order(decoder);

	top = &decoder->stack[decoder->depth - 1];
	if (object != (top->kind != TARGET_LIST) ||
		decoder->target.kind != (object ? TARGET_NONE : TARGET_ELEMENT))
		return out_of_order(decoder);

	if (top->kind == TARGET_ELEMENT && !check_required(decoder, top))
		return false;
	if (top->kind == TARGET_BOOT_ENTRY)
	{
		KaBootSysctl *boot = top->owner;

		/* Two nulls say that no file sets it; a file without a value says nothing. */
		boot->known = boot->value != KA_UNKNOWN || (top->null_value && boot->file == NULL);
	}
	decoder->depth--;
	return next_target(decoder);
}

static bool
on_begin_object(void *ctx)
{
	return begin(ctx, "an object", true);
}

static bool
on_end_object(void *ctx)
{
	return end(ctx, true);
}

static bool
on_begin_array(void *ctx)
{
	return begin(ctx, "a list", false);
}

static bool
on_end_array(void *ctx)
{
	return end(ctx, false);
}

static bool
on_key(void *ctx, const char *name)
{
	KaDecoder  *decoder = ctx;
	bool		skip;

	if (!admit(decoder, &skip))
		return false;
	if (skip)
		return true;
	if (decoder->depth == 0 || decoder->target.kind != TARGET_NONE)
		return out_of_order(decoder);

	decoder->target = ka_find_target(decoder, name);
	return true;
}

/* A value that is not an object or a list: true when the target wants it. */
static bool
admit_scalar(KaDecoder *decoder, bool *skip)
{
	if (!admit(decoder, skip))
		return false;
	if (!*skip && decoder->target.kind == TARGET_NONE)
		return out_of_order(decoder);
	if (!*skip && decoder->target.kind == TARGET_SKIP)
	{
		*skip = true;
		return next_target(decoder);
	}
	return true;
}

static bool
on_null(void *ctx)
{
	KaDecoder  *decoder = ctx;
	KaTarget   *target = &decoder->target;
	bool		skip;

	if (!admit_scalar(decoder, &skip))
		return false;
	if (skip)
		return true;
	if (decoder->depth == 0 || target->kind == TARGET_ELEMENT)
		return wrong_type(decoder, "null");

	ka_forget_target(decoder);
	if (target->kind == TARGET_FACT && target->fact == KA_BOOT_THP_VALUE)
		decoder->facts->boot_thp_known = true;
	if (target->kind == TARGET_FIELD && target->field->type == KA_INT)
		decoder->stack[decoder->depth - 1].null_value = true;
	return next_target(decoder);
}

static bool
on_boolean(void *ctx, bool value)
{
	KaDecoder  *decoder = ctx;
	bool		skip;

	if (!admit_scalar(decoder, &skip))
		return false;
	if (skip)
		return true;
	if (decoder->target.kind != TARGET_FACT ||
		!ka_set_bool(decoder->facts, decoder->target.fact, value))
		return wrong_type(decoder, "a boolean");
	return next_target(decoder);
}

static bool
on_number(void *ctx, const char *text)
{
	KaDecoder  *decoder = ctx;
	KaTarget   *target = &decoder->target;
	KaFacts    *facts = decoder->facts;
	KaType		type = KA_INT;
	int64_t		min = 0,
				max = INT64_MAX,
				value = 0;
	double		real = 0;
	KaParse		parse;
	bool		skip;

	if (!admit_scalar(decoder, &skip))
		return false;
	if (skip)
		return true;

	switch (target->kind)
	{
		case TARGET_SCHEMA:
			break;
		case TARGET_FACT:
			type = ka_fact_info[target->fact].type;
			min = ka_fact_info[target->fact].min;
			max = ka_fact_info[target->fact].max;
			break;
		case TARGET_FIELD:
			type = target->field->type;
			min = target->field->min;
			max = target->field->max;
			break;
		default:
			return wrong_type(decoder, "a number");
	}
	if (type != KA_INT && type != KA_REAL)
		return wrong_type(decoder, "a number");

	parse = type == KA_INT ? ka_parse_int(text, &value) : ka_parse_real(text, &real);
	if (parse == PARSE_OK)
	{
		bool		legal;

		if (type == KA_REAL)
			legal = ka_set_real(facts, target->fact, real);
		else
			legal = value >= min && value <= max;
		if (!legal)
			parse = PARSE_RANGE;
	}
	if (parse != PARSE_OK)
		return bad_number(decoder, parse, text, min, max);

	if (target->kind == TARGET_SCHEMA && value != KA_SCHEMA)
		return fail(decoder, false,
					ka_printf(facts->arena, "%" PRId64 " is not known here, only %d is", value, KA_SCHEMA));
	if (target->kind == TARGET_FACT && type == KA_INT)
		ka_set_int(facts, target->fact, value);
	if (target->kind == TARGET_FIELD)
		*ka_field_int(target->field, decoder->stack[decoder->depth - 1].owner) = value;
	return next_target(decoder);
}

/* "one of try, on, off" from "try|on|off" */
static bool
bad_enum(KaDecoder *decoder, const char *values, const char *text)
{
	KaArena    *arena = decoder->facts->arena;
	const char *list = "";

	for (const char *v = values; *v != '\0';)
	{
		size_t		length = strcspn(v, "|");

		list = ka_printf(arena, "%s%s%.*s", list ? list : "", v == values ? "" : ", ", (int) length, v);
		v += length + (v[length] == '|');
	}
	return fail(decoder, false,
				ka_printf(arena, "\"%s\" is not one of %s", excerpt(decoder, text), list ? list : ""));
}

static bool
on_string(void *ctx, const char *text)
{
	KaDecoder  *decoder = ctx;
	KaTarget   *target = &decoder->target;
	KaFacts    *facts = decoder->facts;
	bool		skip;

	if (!admit_scalar(decoder, &skip))
		return false;
	if (skip)
		return true;

	if (target->kind == TARGET_FIELD && target->field->type == KA_TEXT)
	{
		const char *copy = ka_strdup(facts->arena, text);

		if (copy == NULL)
			return fail(decoder, false, NULL);
		*ka_field_text(target->field, decoder->stack[decoder->depth - 1].owner) = copy;
		return next_target(decoder);
	}
	if (target->kind == TARGET_FACT)
	{
		const KaFactInfo *info = &ka_fact_info[target->fact];

		if (ka_set_text(facts, target->fact, text))
			return next_target(decoder);
		if (facts->arena->failed)
			return fail(decoder, false, NULL);
		if (info->type == KA_ENUM)
			return bad_enum(decoder, info->values, text);
	}
	return wrong_type(decoder, "a string");
}

KaDecoder *
ka_decoder_new(KaFacts *facts, KaJsonSink *sink)
{
	KaDecoder  *decoder = ka_alloc(facts->arena, sizeof(*decoder));

	if (decoder == NULL)
		return NULL;
	decoder->facts = facts;
	decoder->clip = clip_utf8;
	decoder->target = (KaTarget) {.kind = TARGET_FACTS,.name = "",.rows = ka_rows_all()};

	*sink = (KaJsonSink) {
		.begin_object = on_begin_object,
			.end_object = on_end_object,
			.begin_array = on_begin_array,
			.end_array = on_end_array,
			.key = on_key,
			.null = on_null,
			.boolean = on_boolean,
			.number = on_number,
			.string = on_string,
			.ctx = decoder,
	};
	return decoder;
}

void
ka_decoder_clip(KaDecoder *decoder, KaClip clip)
{
	decoder->clip = clip;
}

bool
ka_decoder_finish(KaDecoder *decoder, KaDecodeError *error)
{
	KaFacts    *facts = decoder->facts;

	if (!decoder->failed && facts->arena->failed)
		fail(decoder, false, NULL);
	if (!decoder->failed && !decoder->finished)
		fail(decoder, true, "the document is not complete");
	if (decoder->failed)
	{
		*error = decoder->error;
		return false;
	}

	if (ka_known(facts, KA_BOOT_THP_VALUE))
		facts->boot_thp_known = true;
	else if (ka_known(facts, KA_BOOT_THP_FILE))
		facts->boot_thp_known = false;	/* a file without a value says nothing */
	return true;
}
