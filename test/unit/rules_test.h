/*
 * rules_test.h: rules as tables of "these facts, and this one with that value".
 *
 * A KaRuleCase is JSON facts (in single quotes for legibility, as
 * "{'memory': {'total_bytes': 1}}"), optionally one single-valued fact that is
 * set on top, and the row that must come out: severity and recommendation, or
 * SILENT.  Every expected number is computed by hand, beside the case.
 */
#ifndef KA_RULES_TEST_H
#define KA_RULES_TEST_H

#include "json.h"
#include "ka_test.h"
#include "rules.h"

#define SILENT (-1)
#define ANY_VALUE "*"			/* a recommendation of whatever value */
#define NO_FACT KA_NFACTS

typedef struct KaRuleCase
{
	const char *label;
	const char *rule;
	const char *subject;		/* NULL: any */
	const char *facts;
	KaFact		fact;			/* NO_FACT: none on top */
	double		value;
	int			severity;		/* or SILENT: no such row */
	const char *recommended;	/* NULL: none; ANY_VALUE */
} KaRuleCase;

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

static inline void
ka_test_rule_case(const KaRuleCase *c)
{
	KaAdvised	a;
	const KaAdvice *row;
	int			before = ka_test_failures;

	ka_test_facts(&a, c->facts);
	if (c->fact != NO_FACT)
		CHECK(ka_fact_info[c->fact].type == KA_BOOL ? ka_set_bool(&a.facts, c->fact, c->value != 0) :
			  ka_fact_info[c->fact].type == KA_INT ? ka_set_int(&a.facts, c->fact, (int64_t) c->value) :
			  ka_set_real(&a.facts, c->fact, c->value));
	ka_test_advise(&a);
	row = ka_test_row(&a, c->rule, c->subject);
	if (c->severity == SILENT)
		CHECK(row == NULL);
	else if (row == NULL)
		CHECK(row != NULL);
	else
	{
		CHECK_STR(ka_severity_name(row->severity), ka_severity_name((KaSeverity) c->severity));
		if (c->recommended && strcmp(c->recommended, ANY_VALUE) == 0)
			CHECK(row->recommended != NULL);
		else
			CHECK_STR(row->recommended, c->recommended);
		CHECK(row->nevidence > 0);
	}
	if (ka_test_failures > before)
	{
		printf("# in \"%s\" (%s)\n", c->label, c->rule);
		if (row)
			printf("#   %s %s -> %s: %s\n", ka_severity_name(row->severity), row->subject,
				   row->recommended ? row->recommended : "-", row->reason);
	}
	ka_test_done(&a);
}

#define RUN_CASES(cases) \
	do { \
		for (size_t i_ = 0; i_ < KA_LENGTH(cases); i_++) \
			ka_test_rule_case(&(cases)[i_]); \
	} while (0)

#endif							/* KA_RULES_TEST_H */
