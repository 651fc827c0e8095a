/*
 * fuzz_facts.c: the facts decoder, through JSON text and through raw events.
 *
 * The first byte chooses.  Whatever is accepted must come out of the encoder
 * again, be accepted again, and give the same text twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "json.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keys that lead somewhere, so that events get below the first level. */
static const char *const words[] = {
	"schema", "postgres", "last_error", "bytes", "errno", "huge_pages", "on", "max_connections",
	"hugepages", "pools", "size_bytes", "total", "free", "nodes", "node", "consumers", "what",
	"sysctl", "vm.nr_hugepages", "boot", "value", "file", "thp_enabled", "never", "cmdline_hugepages",
	"pages", "storage", "data", "device", "cgroup", "hugetlb", "at", "numa", "window", "seconds",
	"kernel", "page_size_bytes", "postgres.version_num", "unknown", "",
};

static const char *const numbers[] = {
	"0", "1", "-1", "4096", "5.0", "5e0", "5.5", "1e400", "-1e400", "1e-400", "9223372036854775807",
	"9223372036854775808", "100000000000000000000e-2", "0e9999999999", "1.5", "-", "", "1e", "0x1", "nan",
};

static void
play(const KaJsonSink *s, const uint8_t *data, size_t size)
{
	while (size >= 2)
	{
		uint8_t		what = data[0];
		uint8_t		which = data[1];
		char		text[8];

		data += 2;
		size -= 2;
		switch (what % 12)
		{
			case 0:
			case 1:
				(void) s->begin_object(s->ctx);
				break;
			case 2:
				(void) s->end_object(s->ctx);
				break;
			case 3:
				(void) s->begin_array(s->ctx);
				break;
			case 4:
				(void) s->end_array(s->ctx);
				break;
			case 5:
				(void) s->null(s->ctx);
				break;
			case 6:
				(void) s->boolean(s->ctx, which & 1);
				break;
			case 7:
				(void) s->number(s->ctx, numbers[which % KA_LENGTH(numbers)]);
				break;
			case 8:
				(void) s->string(s->ctx, words[which % KA_LENGTH(words)]);
				break;
			case 9:
				memset(text, 0, sizeof(text));
				memcpy(text, data, size < sizeof(text) - 1 ? size : sizeof(text) - 1);
				if (which & 1)
					(void) s->number(s->ctx, text);
				else
					(void) s->string(s->ctx, text);
				break;
			default:
				(void) s->key(s->ctx, words[which % KA_LENGTH(words)]);
				break;
		}
	}
}

static char *
encode(KaArena *arena, const KaFacts *facts)
{
	KaJsonSink	sink;
	KaJsonBuilder *builder = ka_json_builder(arena, &sink);
	bool		good = ka_facts_encode(facts, &sink);
	json_t	   *document = ka_json_finish(builder);
	char	   *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

	if (!good || text == NULL)
		abort();
	json_decref(document);
	return text;
}

static bool
decode(KaArena *arena, KaFacts *facts, const char *text, const uint8_t *events, size_t size)
{
	KaJsonSink	sink;
	KaDecoder  *decoder;
	KaDecodeError error = {0};
	json_t	   *document = NULL;
	const char *problem = NULL;

	if (text != NULL && (document = ka_json_parse(arena, text, &problem)) == NULL)
	{
		if (problem == NULL)
			abort();
		return false;
	}

	ka_facts_init(facts, arena);
	decoder = ka_decoder_new(facts, &sink);
	if (document != NULL)
		(void) ka_json_feed(document, &sink);
	else
		play(&sink, events, size);
	json_decref(document);
	if (ka_decoder_finish(decoder, &error))
		return true;
	if (error.path == NULL || error.problem == NULL)
		abort();
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaArena		arena;
	KaFacts		facts;
	KaFacts		again;
	char	   *text = NULL;
	bool		good;

	if (size == 0)
		return 0;
	ka_malloc_arena(&arena);
	if (data[0] & 1)
		good = decode(&arena, &facts, NULL, data + 1, size - 1);
	else
	{
		text = malloc(size);
		if (text == NULL)
			abort();
		memcpy(text, data + 1, size - 1);
		text[size - 1] = '\0';
		good = decode(&arena, &facts, text, NULL, 0);
		free(text);
	}

	if (good)
	{
		char	   *first = encode(&arena, &facts);
		char	   *second;

		if (!decode(&arena, &again, first, NULL, 0))
			abort();
		second = encode(&arena, &again);
		if (strcmp(first, second) != 0)
		{
			fprintf(stderr, "%s\n%s\n", first, second);
			abort();
		}
		free(first);
		free(second);
	}
	ka_malloc_free(&arena);
	return 0;
}
