/*
 * facts_shape.h: how the facts look as a JSON document.
 *
 * Private to the decoder and the encoder.  Single values need no description of
 * their own: the path of a fact is the way to it, one object per component, and
 * the rows of one object are neighbours in the table (KaRows).  "sysctl" alone
 * has keys that contain dots.  Lists are described here: a KaList names its
 * place, its struct and the fields of that struct.
 */
#ifndef KA_FACTS_SHAPE_H
#define KA_FACTS_SHAPE_H

#include "facts.h"

#define KA_SCHEMA 1				/* the version of the form */
#define KA_LIST_MAX 4096		/* elements of one list: no machine has more nodes */

/* The facts of one object: rows first .. end - 1 share a path of "prefix" bytes, its dot included. */
typedef struct KaRows
{
	int			first,
				end;
	size_t		prefix;
} KaRows;

typedef struct KaField
{
	const char *name;
	size_t		offset;			/* in the struct of the element: int64_t or const char * */
	KaType		type;			/* KA_INT or KA_TEXT */
	int64_t		min,
				max;
	bool		required;		/* the element means nothing without it */
} KaField;

typedef struct KaList KaList;
struct KaList
{
	const char *section;		/* the object that holds it: "hugepages", "" for the document */
	const char *name;			/* its key there */
	size_t		items,			/* offsets of the array and of its length in the owner */
				count;
	size_t		size;			/* of one element */
	const KaField *fields;
	size_t		nfields;
	const KaList *child;		/* a list within each element, or NULL */
};

extern const KaList ka_lists[];
extern const size_t ka_nlists;

/* A boot.sysctl entry looks like the element of a list. */
extern const KaList ka_boot_entry;

/* All facts; and those below one component, which may be none (first == end). */
extern KaRows ka_rows_all(void);
extern KaRows ka_rows_below(KaRows rows, const char *component, size_t length);

/* True when the keys of this object are whole names with dots. */
extern bool ka_rows_dotted(KaRows rows);

/* The name of a row within its object, and the length of its first component. */
static inline const char *
ka_row_name(KaRows rows, int row)
{
	return ka_fact_info[row].path + rows.prefix;
}
extern size_t ka_row_component(KaRows rows, int row);

/* The array of a list and its length; "owner" is the facts or an element. */
extern void *ka_list_items(const KaList *list, const void *owner, size_t *count);
extern void ka_list_store(const KaList *list, void *owner, void *items, size_t count);

static inline int64_t *
ka_field_int(const KaField *field, void *element)
{
	return (int64_t *) ((char *) element + field->offset);
}

static inline const char **
ka_field_text(const KaField *field, void *element)
{
	return (const char **) ((char *) element + field->offset);
}

/* Every field of an element unknown. */
extern void ka_element_clear(const KaList *list, void *element);

#endif							/* KA_FACTS_SHAPE_H */
