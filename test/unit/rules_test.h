/*
 * rules_test.h: facts as JSON in single quotes for legibility, as in
 * "{'memory': {'total_bytes': 1}}", and the rows that come out.
 */
#ifndef KA_RULES_TEST_H
#define KA_RULES_TEST_H

#include "json.h"
#include "ka_test.h"
#include "rules.h"

typedef struct KaAdvised
{
	KaArena		arena;
	KaFacts		facts;
	KaAdviceList list;
} KaAdvised;

/* Facts from JSON with single quotes; REQUIREs that they are legal. */
static inline void
ka_test_facts(KaAdvised *a, const char *json)
{
	char	   *text = strdup(json);
	KaJsonSink	sink;
	KaDecoder  *decoder;
	KaDecodeError error = {0};
	json_error_t jerror;
	json_t	   *document;
	bool		good;

	for (char *p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	document = json_loads(text, 0, &jerror);
	if (document == NULL)
		printf("# %s at %d of %s\n", jerror.text, jerror.position, json);
	free(text);
	ka_malloc_arena(&a->arena);
	ka_facts_init(&a->facts, &a->arena);
	decoder = ka_decoder_new(&a->facts, &sink);
	ka_json_feed(document, &sink);
	good = document && ka_decoder_finish(decoder, &error);
	if (!good && document)
		printf("# %s: %s\n", error.path, error.problem);
	json_decref(document);
	REQUIRE(good);
}

static inline void
ka_test_advise(KaAdvised *a)
{
	a->list = (KaAdviceList) {.arena = &a->arena};
	REQUIRE(ka_advise(&a->facts, &a->list));
}

static inline void
ka_test_done(KaAdvised *a)
{
	ka_malloc_free(&a->arena);
}

/* The first row of a rule, and of a subject unless that is NULL. */
static inline const KaAdvice *
ka_test_row(const KaAdvised *a, const char *rule, const char *subject)
{
	for (size_t i = 0; i < a->list.count; i++)
	{
		const KaAdvice *row = &a->list.rows[i];

		if (strcmp(row->rule, rule) == 0 && (subject == NULL || strcmp(row->subject, subject) == 0))
			return row;
	}
	return NULL;
}

#endif							/* KA_RULES_TEST_H */
