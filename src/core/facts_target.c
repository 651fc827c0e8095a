/*
 * facts_target.c: where a value of the facts document goes.
 *
 * Invariants: a key is looked up among the rows, lists and fields of the object
 * that is open, never by its path, so that {"postgres.version_num": 1} is an
 * unknown key; names in a target come from the tables, never from the document.
 *
 * Locks: none.
 */
#include "facts_decode.h"

#include <string.h>

/* The last of duplicate keys wins: what an earlier one set is forgotten. */
static void
forget_rows(KaFacts *facts, KaRows rows)
{
	for (int row = rows.first; row < rows.end; row++)
		facts->v[row] = (KaValue) {0};
	if (rows.first <= KA_BOOT_THP_VALUE && KA_BOOT_THP_VALUE < rows.end)
		facts->boot_thp_known = false;
}

static void
forget_boot(KaFacts *facts)
{
	for (int i = 0; i < KA_NSYSCTLS; i++)
		facts->boot[i] = (KaBootSysctl) {.value = KA_UNKNOWN};
}

/* A whole section: its rows, its lists, and what boot holds besides. */
static void
forget_section(KaFacts *facts, const KaTarget *section)
{
	forget_rows(facts, section->rows);
	for (size_t i = 0; i < ka_nlists; i++)
	{
		const KaList *list = &ka_lists[i];

		if (strlen(list->section) == section->length &&
			strncmp(list->section, section->name, section->length) == 0)
			ka_list_store(list, facts, NULL, 0);
	}
	if (section->length == strlen(ka_boot_entry.section) &&
		strncmp(section->name, ka_boot_entry.section, section->length) == 0)
		forget_boot(facts);
}

void
ka_forget_target(KaDecoder *decoder)
{
	KaTarget   *target = &decoder->target;
	KaFacts    *facts = decoder->facts;

	switch (target->kind)
	{
		case TARGET_FACT:
			facts->v[target->fact] = (KaValue) {0};
			break;
		case TARGET_FIELD:
			{
				void	   *element = decoder->stack[decoder->depth - 1].owner;

				if (target->field->type == KA_INT)
					*ka_field_int(target->field, element) = KA_UNKNOWN;
				else
					*ka_field_text(target->field, element) = NULL;
				break;
			}
		case TARGET_FACTS:
			if (decoder->depth == 1)
				forget_section(facts, target);
			else
				forget_rows(facts, target->rows);
			break;
		case TARGET_LIST:
			ka_list_store(target->list, target->owner, NULL, 0);
			break;
		case TARGET_BOOT:
			forget_boot(facts);
			break;
		case TARGET_BOOT_ENTRY:
			*(KaBootSysctl *) target->owner = (KaBootSysctl) {.value = KA_UNKNOWN};
			break;
		default:
			break;
	}
}

/* The list with this key in a section of the facts, or in an element. */
static const KaList *
find_list(const KaTarget *top, const char *name)
{
	if (top->kind == TARGET_ELEMENT)
	{
		const KaList *child = top->list->child;

		return child && strcmp(child->name, name) == 0 ? child : NULL;
	}
	for (size_t i = 0; i < ka_nlists; i++)
	{
		const KaList *list = &ka_lists[i];

		if (strcmp(list->name, name) == 0 && strlen(list->section) == top->length &&
			strncmp(list->section, top->name, top->length) == 0)
			return list;
	}
	return NULL;
}

static KaTarget
find_in_facts(KaDecoder *decoder, const char *name)
{
	const KaTarget *top = &decoder->stack[decoder->depth - 1];
	size_t		length = strlen(name);
	const KaList *list;
	KaRows		below;

	for (int row = top->rows.first; row < top->rows.end; row++)
	{
		const char *own = ka_row_name(top->rows, row);

		if (strcmp(own, name) == 0 && ka_row_component(top->rows, row) == length)
			return (KaTarget) {.kind = TARGET_FACT,.name = own,.length = length,.fact = row};
	}

	/* Lists belong to the document or to one of its sections, no deeper. */
	if (decoder->depth <= 2 && (list = find_list(top, name)) != NULL)
		return (KaTarget) {.kind = TARGET_LIST,.name = list->name,.length = length,
			.list = list,.owner = decoder->facts};

	if (decoder->depth == 1 && strcmp(name, "schema") == 0)
		return (KaTarget) {.kind = TARGET_SCHEMA,.name = "schema",.length = length};

	if (decoder->depth == 2 && strcmp(name, ka_boot_entry.name) == 0 &&
		top->length == strlen(ka_boot_entry.section) &&
		strncmp(top->name, ka_boot_entry.section, top->length) == 0)
		return (KaTarget) {.kind = TARGET_BOOT,.name = ka_boot_entry.name,.length = length};

	if (!ka_rows_dotted(top->rows) && strchr(name, '.') == NULL)
	{
		below = ka_rows_below(top->rows, name, length);
		if (below.first < below.end)
			return (KaTarget) {.kind = TARGET_FACTS,.length = length,.rows = below,
				.name = ka_row_name(top->rows, below.first)};
	}
	return (KaTarget) {.kind = TARGET_SKIP};
}

static KaTarget
find_in_element(const KaTarget *top, const char *name)
{
	const KaList *child;

	for (size_t i = 0; i < top->list->nfields; i++)
	{
		const KaField *field = &top->list->fields[i];

		if (strcmp(field->name, name) == 0)
			return (KaTarget) {.kind = TARGET_FIELD,.field = field,
				.name = field->name,.length = strlen(field->name)};
	}
	if (top->kind == TARGET_ELEMENT && (child = find_list(top, name)) != NULL)
		return (KaTarget) {.kind = TARGET_LIST,.list = child,.owner = top->owner,
			.name = child->name,.length = strlen(child->name)};
	return (KaTarget) {.kind = TARGET_SKIP};
}

static KaTarget
find_in_boot(KaDecoder *decoder, const char *name)
{
	int			knob = ka_sysctl_by_name(name);

	if (knob < 0)
		return (KaTarget) {.kind = TARGET_SKIP};
	return (KaTarget) {.kind = TARGET_BOOT_ENTRY,.list = &ka_boot_entry,
		.owner = &decoder->facts->boot[knob],
		.name = ka_sysctl_info[knob].name,.length = strlen(name)};
}

KaTarget
ka_find_target(KaDecoder *decoder, const char *key)
{
	const KaTarget *top = &decoder->stack[decoder->depth - 1];

	switch (top->kind)
	{
		case TARGET_FACTS:
			return find_in_facts(decoder, key);
		case TARGET_BOOT:
			return find_in_boot(decoder, key);
		default:
			return find_in_element(top, key);
	}
}
