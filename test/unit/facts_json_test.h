/*
 * facts_json_test.h: facts from JSON texts and back, for the tests of the decoder.
 */
#ifndef KA_FACTS_JSON_TEST_H
#define KA_FACTS_JSON_TEST_H

#include "facts.h"
#include "json.h"
#include "ka_test.h"

static KaArena arena;
static KaFacts facts;
static KaDecodeError error;

/* Decodes a text into fresh facts. */
static inline bool
decode(const char *text)
{
	KaJsonSink	sink;
	KaDecoder  *decoder;
	const char *problem = NULL;
	json_t	   *document = ka_json_parse(&arena, text, &problem);
	bool		good;

	error = (KaDecodeError) {0};
	ka_facts_init(&facts, &arena);
	if (document == NULL)
	{
		printf("# %s: %s\n", text, problem);
		return false;
	}
	decoder = ka_decoder_new(&facts, &sink);
	(void) ka_json_feed(document, &sink);
	good = ka_decoder_finish(decoder, &error);
	json_decref(document);
	return good;
}

static inline char *
encode(const KaFacts *source)
{
	KaJsonSink	sink;
	KaJsonBuilder *builder = ka_json_builder(&arena, &sink);
	bool		encoded = ka_facts_encode(source, &sink);
	json_t	   *document = ka_json_finish(builder);
	char	   *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	char	   *copy = text ? ka_strdup(&arena, text) : NULL;

	free(text);
	json_decref(document);
	return encoded ? copy : NULL;
}

static inline void
expect_good(const char *text, int line)
{
	if (!decode(text))
	{
		printf("# line %d: %s: refused: %s: %s\n", line, text, error.path, error.problem);
		ka_test_failures++;
	}
}

static inline void
expect_bad(const char *text, const char *path, const char *problem, int line)
{
	if (decode(text))
		printf("# line %d: %s: accepted\n", line, text);
	else if (error.path == NULL || strcmp(error.path, path) != 0 || strcmp(error.problem, problem) != 0)
		printf("# line %d: %s: \"%s: %s\", expected \"%s: %s\"\n", line, text,
			   error.path, error.problem, path, problem);
	else
		return;
	ka_test_failures++;
}

#define GOOD(text) expect_good((text), __LINE__)
#define BAD(text, path, problem) expect_bad((text), (path), (problem), __LINE__)

#define WITH_ARENA(body) \
	do { ka_malloc_arena(&arena); body; ka_malloc_free(&arena); } while (0)

#endif							/* KA_FACTS_JSON_TEST_H */
