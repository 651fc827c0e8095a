/*
 * facts_shape.c: the tables of the lists, and walking along the paths of facts.
 *
 * Invariants: facts.def keeps the rows of one object together (the round trip
 * of every fact in the unit tests fails otherwise).
 *
 * Locks: none.  Everything here is constant.
 */
#include "facts_shape.h"

#include <string.h>

#define BYTES_MAX INT64_C(4611686018427387904)	/* 4 EiB, as in facts.def */
#define PAGES_MAX BYTES_MAX
#define NODE_MAX INT64_C(2147483647)

#define INTEGER(struct_name, member, min, max, required) \
	{#member, offsetof(struct_name, member), KA_INT, min, max, required}
#define TEXT(struct_name, member) \
	{#member, offsetof(struct_name, member), KA_TEXT, 0, 0, false}
#define LIST(section, name, owner, items, count, element, fields, child) \
	{section, name, offsetof(owner, items), offsetof(owner, count), \
	 sizeof(element), fields, KA_LENGTH(fields), child}

static const KaField node_pool_fields[] = {
	INTEGER(KaNodePool, node, 0, NODE_MAX, true),
	INTEGER(KaNodePool, total, 0, PAGES_MAX, false),
	INTEGER(KaNodePool, free, 0, PAGES_MAX, false),
};

static const KaField pool_fields[] = {
	INTEGER(KaPool, size_bytes, 1, BYTES_MAX, true),
	INTEGER(KaPool, total, 0, PAGES_MAX, false),
	INTEGER(KaPool, free, 0, PAGES_MAX, false),
	INTEGER(KaPool, reserved, 0, PAGES_MAX, false),
	INTEGER(KaPool, surplus, 0, PAGES_MAX, false),
	INTEGER(KaPool, overcommit, 0, PAGES_MAX, false),
	INTEGER(KaPool, asked, 0, PAGES_MAX, false),
	INTEGER(KaPool, grantable, 0, PAGES_MAX, false),
};

static const KaField consumer_fields[] = {
	TEXT(KaConsumer, what),
	INTEGER(KaConsumer, size_bytes, 1, BYTES_MAX, false),
	INTEGER(KaConsumer, pages, 0, PAGES_MAX, false),
};

static const KaField hugetlb_fields[] = {
	INTEGER(KaHugetlbLimit, size_bytes, 1, BYTES_MAX, true),
	INTEGER(KaHugetlbLimit, limit_bytes, 0, BYTES_MAX, false),
	INTEGER(KaHugetlbLimit, rsvd_limit_bytes, 0, BYTES_MAX, false),
	INTEGER(KaHugetlbLimit, usage_bytes, 0, BYTES_MAX, false),
	TEXT(KaHugetlbLimit, at),
};

static const KaField numa_fields[] = {
	INTEGER(KaNode, node, 0, NODE_MAX, true),
	INTEGER(KaNode, total_bytes, 0, BYTES_MAX, false),
	INTEGER(KaNode, free_bytes, 0, BYTES_MAX, false),
};

static const KaField boot_pool_fields[] = {
	INTEGER(KaBootPool, size_bytes, 1, BYTES_MAX, true),
	INTEGER(KaBootPool, pages, 0, PAGES_MAX, false),
};

/*
 * What a file says, not what the kernel took: the bounds of the knob do not
 * hold here.
 */
static const KaField boot_fields[] = {
	INTEGER(KaBootSysctl, value, 0, INT64_MAX, false),
	TEXT(KaBootSysctl, file),
};

static const KaList node_pools =
LIST("", "nodes", KaPool, nodes, nnodes, KaNodePool, node_pool_fields, NULL);

const KaList ka_lists[] = {
	LIST("hugepages", "pools", KaFacts, pools, npools, KaPool, pool_fields, &node_pools),
	LIST("hugepages", "consumers", KaFacts, consumers, nconsumers, KaConsumer, consumer_fields, NULL),
	LIST("boot", "cmdline_hugepages", KaFacts, boot_pools, nboot_pools, KaBootPool, boot_pool_fields, NULL),
	LIST("cgroup", "hugetlb", KaFacts, hugetlb, nhugetlb, KaHugetlbLimit, hugetlb_fields, NULL),
	LIST("", "numa", KaFacts, numa, nnuma, KaNode, numa_fields, NULL),
};
const size_t ka_nlists = KA_LENGTH(ka_lists);

const KaList ka_boot_entry = {
	.section = "boot",
	.name = "sysctl",
	.size = sizeof(KaBootSysctl),
	.fields = boot_fields,
	.nfields = KA_LENGTH(boot_fields),
};

KaRows
ka_rows_all(void)
{
	return (KaRows) {.first = 0,.end = KA_NFACTS,.prefix = 0};
}

KaRows
ka_rows_below(KaRows rows, const char *component, size_t length)
{
	KaRows		below = {.prefix = rows.prefix + length + 1};
	int			row = rows.first;

#define BELOW(row) \
	(strncmp(ka_row_name(rows, row), component, length) == 0 && \
	 ka_row_name(rows, row)[length] == '.')

	while (row < rows.end && !BELOW(row))
		row++;
	below.first = row;
	while (row < rows.end && BELOW(row))
		row++;
	below.end = row;
#undef BELOW
	return below;
}

bool
ka_rows_dotted(KaRows rows)
{
	return rows.first >= KA_NFACTS - KA_NSYSCTLS && rows.first < rows.end;
}

size_t
ka_row_component(KaRows rows, int row)
{
	const char *name = ka_row_name(rows, row);

	return ka_rows_dotted(rows) ? strlen(name) : strcspn(name, ".");
}

/* Through memcpy: the members have pointer types of their own. */
void *
ka_list_items(const KaList *list, const void *owner, size_t *count)
{
	void	   *items;

	memcpy(&items, (const char *) owner + list->items, sizeof(items));
	memcpy(count, (const char *) owner + list->count, sizeof(*count));
	return items;
}

void
ka_list_store(const KaList *list, void *owner, void *items, size_t count)
{
	memcpy((char *) owner + list->items, &items, sizeof(items));
	memcpy((char *) owner + list->count, &count, sizeof(count));
}

void
ka_element_clear(const KaList *list, void *element)
{
	for (size_t i = 0; i < list->nfields; i++)
	{
		const KaField *field = &list->fields[i];

		if (field->type == KA_INT)
			*ka_field_int(field, element) = KA_UNKNOWN;
		else
			*ka_field_text(field, element) = NULL;
	}
}
