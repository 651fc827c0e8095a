/*
 * facts_decode.h: the state of the facts decoder.
 *
 * Private to facts_decode.c (events and problems), facts_target.c (where a
 * value goes) and facts_number.c.
 */
#ifndef KA_FACTS_DECODE_H
#define KA_FACTS_DECODE_H

#include "facts_shape.h"

/* hugepages.pools[].nodes[]: document, object, list, element, list, element. */
#define KA_MAX_DEPTH 6

typedef enum KaTargetKind
{
	TARGET_NONE,				/* a key or an end must come */
	TARGET_SKIP,				/* below an unknown key */
	TARGET_SCHEMA,
	TARGET_FACT,
	TARGET_FIELD,				/* of the element on top of the stack */
	TARGET_FACTS,				/* an object of facts, the document included */
	TARGET_LIST,
	TARGET_ELEMENT,				/* of the list on top of the stack */
	TARGET_BOOT,				/* boot.sysctl */
	TARGET_BOOT_ENTRY			/* one knob in it */
} KaTargetKind;

typedef struct KaTarget
{
	KaTargetKind kind;
	const char *name;			/* for the path of a problem; not terminated */
	size_t		length;
	KaRows		rows;			/* TARGET_FACTS */
	int			fact;			/* TARGET_FACT */
	const KaField *field;		/* TARGET_FIELD */
	const KaList *list;			/* TARGET_LIST, TARGET_ELEMENT, TARGET_BOOT_ENTRY */
	void	   *owner;			/* of that list, or the element that was begun */
	size_t		index;			/* TARGET_ELEMENT: its position */
	bool		null_value;		/* TARGET_BOOT_ENTRY: "value": null was seen */
} KaTarget;

struct KaDecoder
{
	KaFacts    *facts;
	KaClip		clip;
	KaTarget	stack[KA_MAX_DEPTH];	/* open objects and lists */
	size_t		depth;
	KaTarget	target;
	size_t		skipped;		/* open objects and lists below an unknown key */
	bool		finished;		/* the document is closed */
	bool		failed;
	KaDecodeError error;
};

/* facts_target.c: where the value of a key goes; TARGET_SKIP for an unknown one. */
extern KaTarget ka_find_target(KaDecoder *decoder, const char *key);

/* What the target holds becomes unknown: null, or an earlier one of duplicate keys. */
extern void ka_forget_target(KaDecoder *decoder);

typedef enum KaParse
{
	PARSE_OK,
	PARSE_SYNTAX,				/* not a JSON number */
	PARSE_FRACTION,
	PARSE_RANGE					/* beyond 64 bits */
} KaParse;

/* facts_number.c: an integer may be written as 5, 5.0 or 5e0. */
extern KaParse ka_parse_int(const char *text, int64_t *value);

/* LC_NUMERIC is "C" in the server, and in the tools, which never set it. */
extern KaParse ka_parse_real(const char *text, double *value);

#endif							/* KA_FACTS_DECODE_H */
