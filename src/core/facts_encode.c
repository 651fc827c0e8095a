/*
 * facts_encode.c: facts as a stream of JSON events.
 *
 * Invariants: what is not known leaves no key, with one exception: in "boot" a
 * null is knowledge (no file sets it).  Nothing is written that the decoder
 * would refuse: a number of a list outside its bounds counts as unknown.
 *
 * Locks: none.
 */
#include "facts_shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sections in the order of the documentation. */
static const char *const sections[] = {
	"postgres", "kernel", "memory", "hugepages", "thp", "sysctl", "boot",
	"storage", "cgroup", "numa", "fragmentation", "window",
};

/* Room for any int64_t, and for a double with 17 digits. */
#define NUMBER_SIZE 32

static bool
put_int(const KaJsonSink *sink, int64_t value)
{
	char		text[NUMBER_SIZE];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return sink->number(sink->ctx, text);
}

/* The shorter of two forms that both read back as the same number. */
static bool
put_real(const KaJsonSink *sink, double value)
{
	char		text[NUMBER_SIZE];

	snprintf(text, sizeof(text), "%.15g", value);
	if (strtod(text, NULL) != value)
		snprintf(text, sizeof(text), "%.17g", value);
	return sink->number(sink->ctx, text);
}

static bool
put_value(const KaJsonSink *sink, KaType type, const KaValue *value)
{
	switch (type)
	{
		case KA_INT:
			return put_int(sink, value->i);
		case KA_REAL:
			return put_real(sink, value->r);
		case KA_BOOL:
			return sink->boolean(sink->ctx, value->i != 0);
		default:
			return sink->string(sink->ctx, value->s);
	}
}

static bool
any_known(const KaFacts *facts, KaRows rows)
{
	for (int row = rows.first; row < rows.end; row++)
	{
		if (facts->v[row].known)
			return true;
	}
	return false;
}

/* The members of one object; objects within it are neighbours in the table. */
static bool
put_rows(const KaFacts *facts, const KaJsonSink *sink, KaRows rows)
{
	for (int row = rows.first; row < rows.end; row++)
	{
		const char *name = ka_row_name(rows, row);
		size_t		length = ka_row_component(rows, row);
		char		component[64];
		KaRows		below;

		if (name[length] == '\0')
		{
			if (facts->v[row].known &&
				!(sink->key(sink->ctx, name) &&
				  put_value(sink, ka_fact_info[row].type, &facts->v[row])))
				return false;
			continue;
		}

		below = ka_rows_below(rows, name, length);
		snprintf(component, sizeof(component), "%.*s", (int) length, name);
		if (any_known(facts, below) &&
			!(sink->key(sink->ctx, component) &&
			  sink->begin_object(sink->ctx) &&
			  put_rows(facts, sink, below) &&
			  sink->end_object(sink->ctx)))
			return false;
		row = below.end - 1;
	}
	return true;
}

static bool
put_list(const KaList *list, const void *owner, const KaJsonSink *sink);

static bool
put_element(const KaList *list, void *element, const KaJsonSink *sink)
{
	size_t		count;

	if (!sink->begin_object(sink->ctx))
		return false;
	for (size_t i = 0; i < list->nfields; i++)
	{
		const KaField *field = &list->fields[i];

		if (field->type == KA_INT)
		{
			int64_t		value = *ka_field_int(field, element);

			if (value >= field->min && value <= field->max &&
				!(sink->key(sink->ctx, field->name) && put_int(sink, value)))
				return false;
		}
		else
		{
			const char *text = *ka_field_text(field, element);

			if (text != NULL &&
				!(sink->key(sink->ctx, field->name) && sink->string(sink->ctx, text)))
				return false;
		}
	}
	if (list->child != NULL)
	{
		(void) ka_list_items(list->child, element, &count);
		if (count > 0 && !put_list(list->child, element, sink))
			return false;
	}
	return sink->end_object(sink->ctx);
}

/* An element without what makes it one would be refused by the decoder. */
static bool
complete(const KaList *list, void *element)
{
	for (size_t i = 0; i < list->nfields; i++)
	{
		const KaField *field = &list->fields[i];

		if (field->required &&
			(*ka_field_int(field, element) < field->min ||
			 *ka_field_int(field, element) > field->max))
			return false;
	}
	return true;
}

static bool
put_list(const KaList *list, const void *owner, const KaJsonSink *sink)
{
	size_t		count;
	char	   *items = ka_list_items(list, owner, &count);

	if (!(sink->key(sink->ctx, list->name) && sink->begin_array(sink->ctx)))
		return false;
	for (size_t i = 0; i < count && i < KA_LIST_MAX; i++)
	{
		void	   *element = items + i * list->size;

		if (complete(list, element) && !put_element(list, element, sink))
			return false;
	}
	return sink->end_array(sink->ctx);
}

/* {"value": ..., "file": ...}, nulls included. */
static bool
put_boot(const KaJsonSink *sink, const char *name, const char *value_text, int64_t value, const char *file)
{
	return sink->key(sink->ctx, name) &&
		sink->begin_object(sink->ctx) &&
		sink->key(sink->ctx, "value") &&
		(value_text ? sink->string(sink->ctx, value_text) :
		 value != KA_UNKNOWN ? put_int(sink, value) : sink->null(sink->ctx)) &&
		sink->key(sink->ctx, "file") &&
		(file ? sink->string(sink->ctx, file) : sink->null(sink->ctx)) &&
		sink->end_object(sink->ctx);
}

static bool
boot_known(const KaFacts *facts)
{
	for (int i = 0; i < KA_NSYSCTLS; i++)
	{
		if (facts->boot[i].known)
			return true;
	}
	return false;
}

static bool
boot_thp_known(const KaFacts *facts)
{
	return facts->boot_thp_known || ka_known(facts, KA_BOOT_THP_VALUE);
}

static bool
put_boot_members(const KaFacts *facts, const KaJsonSink *sink)
{
	if (boot_known(facts))
	{
		if (!(sink->key(sink->ctx, ka_boot_entry.name) && sink->begin_object(sink->ctx)))
			return false;
		for (int i = 0; i < KA_NSYSCTLS; i++)
		{
			const KaBootSysctl *boot = &facts->boot[i];

			if (boot->known &&
				!put_boot(sink, ka_sysctl_info[i].name, NULL, boot->value,
						  boot->value != KA_UNKNOWN ? boot->file : NULL))
				return false;
		}
		if (!sink->end_object(sink->ctx))
			return false;
	}

	if (boot_thp_known(facts))
	{
		const char *value = ka_text(facts, KA_BOOT_THP_VALUE);

		return put_boot(sink, "thp_enabled", value, KA_UNKNOWN,
						value ? ka_text(facts, KA_BOOT_THP_FILE) : NULL);
	}
	return true;
}

/*
 * The lists of a section; with a name only that one.  An empty list is left
 * out: nothing is known of it.
 */
static bool
put_lists(const KaFacts *facts, const KaJsonSink *sink, const char *section, const char *name)
{
	for (size_t i = 0; i < ka_nlists; i++)
	{
		const KaList *list = &ka_lists[i];
		size_t		count;

		(void) ka_list_items(list, facts, &count);
		if (count > 0 && strcmp(list->section, section) == 0 &&
			(name == NULL || strcmp(list->name, name) == 0) &&
			!put_list(list, facts, sink))
			return false;
	}
	return true;
}

static bool
any_list(const KaFacts *facts, const char *section)
{
	for (size_t i = 0; i < ka_nlists; i++)
	{
		size_t		count;

		(void) ka_list_items(&ka_lists[i], facts, &count);
		if (count > 0 && strcmp(ka_lists[i].section, section) == 0)
			return true;
	}
	return false;
}

static bool
put_section(const KaFacts *facts, const KaJsonSink *sink, const char *section)
{
	KaRows		rows = ka_rows_below(ka_rows_all(), section, strlen(section));
	bool		boot = strcmp(section, ka_boot_entry.section) == 0;

	if (!any_list(facts, section) &&
		!(boot ? boot_known(facts) || boot_thp_known(facts) : any_known(facts, rows)))
		return put_lists(facts, sink, "", section); /* a list of the document's own */

	return sink->key(sink->ctx, section) &&
		sink->begin_object(sink->ctx) &&
		(boot ? put_boot_members(facts, sink) : put_rows(facts, sink, rows)) &&
		put_lists(facts, sink, section, NULL) &&
		sink->end_object(sink->ctx);
}

bool
ka_facts_encode(const KaFacts *facts, const KaJsonSink *sink)
{
	if (!(sink->begin_object(sink->ctx) &&
		  sink->key(sink->ctx, "schema") && put_int(sink, KA_SCHEMA)))
		return false;

	for (size_t i = 0; i < KA_LENGTH(sections); i++)
	{
		if (!put_section(facts, sink, sections[i]))
			return false;
	}
	return sink->end_object(sink->ctx);
}
