/*
 * test_facts_events.c: the decoder of facts, event by event: numbers as a
 * source may write them, duplicate keys, depth and length without bounds,
 * events in an impossible order, memory that runs out.
 */
#include "facts_json_test.h"

TEST(integers_as_they_may_be_written)
{
	WITH_ARENA({
		GOOD("{\"schema\": 1.0, \"sysctl\": {\"vm.nr_hugepages\": 5}}");
		CHECK_INT(ka_int(&facts, KA_SYSCTL_NR_HUGEPAGES), 5);
		GOOD("{\"sysctl\": {\"vm.nr_hugepages\": 5.0}}");
		CHECK_INT(ka_int(&facts, KA_SYSCTL_NR_HUGEPAGES), 5);
		GOOD("{\"sysctl\": {\"vm.nr_hugepages\": 5e0}}");
		CHECK_INT(ka_int(&facts, KA_SYSCTL_NR_HUGEPAGES), 5);
		GOOD("{\"sysctl\": {\"vm.nr_hugepages\": 9223372036854775807}}");
		CHECK_INT(ka_int(&facts, KA_SYSCTL_NR_HUGEPAGES), INT64_MAX);
		GOOD("{\"sysctl\": {\"vm.nr_hugepages\": -0}}");
		CHECK_INT(ka_int(&facts, KA_SYSCTL_NR_HUGEPAGES), 0);
		GOOD("{\"memory\": {\"total_bytes\": 4611686018427387904}}");
		CHECK_INT(ka_int(&facts, KA_MEM_TOTAL), INT64_C(1) << 62);
	});
}

/* Tokens as jsonb writes them, which jansson would round or refuse. */
static bool
decode_number(const char *key, const char *token)
{
	KaJsonSink	sink;
	KaDecoder  *decoder;
	const char *dot = strchr(key, '.');
	char		section[64];

	snprintf(section, sizeof(section), "%.*s", (int) (dot - key), key);
	ka_facts_init(&facts, &arena);
	decoder = ka_decoder_new(&facts, &sink);
	(void) (sink.begin_object(sink.ctx) && sink.key(sink.ctx, section) && sink.begin_object(sink.ctx) &&
			sink.key(sink.ctx, dot + 1) && sink.number(sink.ctx, token) &&
			sink.end_object(sink.ctx) && sink.end_object(sink.ctx));
	error = (KaDecodeError) {0};
	return ka_decoder_finish(decoder, &error);
}

TEST(number_tokens)
{
	static const struct
	{
		const char *token;
		int64_t		value;			/* KA_UNKNOWN: refused */
		bool		syntax;
	}			cases[] = {
		{"0", 0, false}, {"7", 7, false}, {"-0", 0, false}, {"-0.0", 0, false}, {"0e99999999999", 0, false},
		{"0.0000e-5", 0, false}, {"5.000", 5, false}, {"5E0", 5, false}, {"50e-1", 5, false}, {"0.5e1", 5, false},
		{"5e+0", 5, false}, {"500000e-5", 5, false}, {"12.50e2", 1250, false}, {"100", 100, false},
		{"9223372036854775807", INT64_MAX, false}, {"9223372036854775807.0", INT64_MAX, false},
		{"922337203685477580.7e1", INT64_MAX, false}, {"92233720368547758070e-1", INT64_MAX, false},
		{"9223372036854775808", KA_UNKNOWN, false}, {"1e19", KA_UNKNOWN, false}, {"1e400", KA_UNKNOWN, false},
		{"1e99999999999999999999", KA_UNKNOWN, false}, {"5.5", KA_UNKNOWN, false}, {"5e-1", KA_UNKNOWN, false},
		{"1e-99999999999999999999", KA_UNKNOWN, false}, {"-1", KA_UNKNOWN, false}, {"-1e400", KA_UNKNOWN, false},
		{"", KA_UNKNOWN, true}, {"-", KA_UNKNOWN, true}, {"+5", KA_UNKNOWN, true}, {"05", KA_UNKNOWN, true},
		{"5.", KA_UNKNOWN, true}, {".5", KA_UNKNOWN, true}, {"5e", KA_UNKNOWN, true}, {"5e+", KA_UNKNOWN, true},
		{"0x10", KA_UNKNOWN, true}, {"5 ", KA_UNKNOWN, true}, {" 5", KA_UNKNOWN, true}, {"NaN", KA_UNKNOWN, true},
		{"Infinity", KA_UNKNOWN, true}, {"5a", KA_UNKNOWN, true}, {"1.2.3", KA_UNKNOWN, true}, {"--5", KA_UNKNOWN, true},
	};

	ka_malloc_arena(&arena);
	for (size_t i = 0; i < KA_LENGTH(cases); i++)
	{
		bool		good = decode_number("sysctl.vm.nr_hugepages", cases[i].token);
		bool		right = good ? ka_int(&facts, KA_SYSCTL_NR_HUGEPAGES) == cases[i].value && cases[i].value != KA_UNKNOWN
			: cases[i].value == KA_UNKNOWN && error.syntax == cases[i].syntax &&
			strcmp(error.path, "sysctl.vm.nr_hugepages") == 0;

		if (!CHECK(right))
			printf("# token \"%s\": %s\n", cases[i].token, good ? "accepted" : error.problem);
	}

	CHECK(decode_number("window.seconds", "0.25"));
	CHECK_REAL(ka_real(&facts, KA_W_SECONDS, -1), 0.25, 0);
	CHECK(decode_number("window.dip_pct", "-12.5"));
	CHECK_REAL(ka_real(&facts, KA_W_DIP, 0), -12.5, 0);
	CHECK_INT(ka_int(&facts, KA_W_DIP), -12);
	CHECK(decode_number("window.seconds", "1e-400"));
	CHECK(!decode_number("window.seconds", "1e400"));
	CHECK_STR(error.path, "window.seconds");
	CHECK_STR(error.problem, "1e400 is out of range (0 to 9007199254740992)");
	CHECK(!decode_number("window.seconds", "nan"));
	CHECK(error.syntax);
	ka_malloc_free(&arena);
}

TEST(a_long_token_is_cut_in_the_message)
{
	char		token[2001];

	memset(token, '9', 2000);
	token[2000] = '\0';
	ka_malloc_arena(&arena);
	CHECK(!decode_number("sysctl.vm.nr_hugepages", token));
	CHECK_STR(error.problem, "9999999999999999999999999999999999999999... is out of range (0 to 9223372036854775807)");
	ka_malloc_free(&arena);
}

/* Every character has two bytes, as in EUC-JP, whatever the bytes look like. */
static size_t
clip_pairs(const char *text, size_t limit)
{
	(void) text;
	return limit / 2 * 2;
}

TEST(the_cut_knows_the_encoding)
{
	static char text[] = "\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1"
		"\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1\xb0\xa1";
	KaJsonSink	s;
	KaDecoder  *decoder;
	char		expected[128];

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	decoder = ka_decoder_new(&facts, &s);
	ka_decoder_clip(decoder, clip_pairs);
	CHECK(s.begin_object(s.ctx) && s.key(s.ctx, "thp") && s.begin_object(s.ctx) && s.key(s.ctx, "enabled"));
	CHECK(!s.string(s.ctx, text));
	CHECK(!ka_decoder_finish(decoder, &error));
	snprintf(expected, sizeof(expected), "\"%.40s...\" is not one of always, madvise, never", text);
	CHECK_STR(error.problem, expected);
	ka_malloc_free(&arena);
}

/* Events as a source that keeps duplicates would send them. */
TEST(the_last_of_duplicate_keys_wins)
{
	KaJsonSink	s;
	KaDecoder  *decoder;

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	decoder = ka_decoder_new(&facts, &s);
	REQUIRE(s.begin_object(s.ctx));
	for (int round = 0; round < 2; round++)
	{
		REQUIRE(s.key(s.ctx, "postgres") && s.begin_object(s.ctx));
		if (round == 0)
			REQUIRE(s.key(s.ctx, "max_connections") && s.number(s.ctx, "5"));
		REQUIRE(s.key(s.ctx, "backends") && s.number(s.ctx, "6") && s.key(s.ctx, "backends") && s.number(s.ctx, "7"));
		REQUIRE(s.end_object(s.ctx));

		REQUIRE(s.key(s.ctx, "numa") && s.begin_array(s.ctx) && s.begin_object(s.ctx) &&
				s.key(s.ctx, "node") && s.number(s.ctx, round ? "1" : "0") && s.end_object(s.ctx) && s.end_array(s.ctx));

		REQUIRE(s.key(s.ctx, "hugepages") && s.begin_object(s.ctx));
		if (round == 0)
			REQUIRE(s.key(s.ctx, "pools") && s.begin_array(s.ctx) && s.begin_object(s.ctx) &&
					s.key(s.ctx, "size_bytes") && s.number(s.ctx, "4096") && s.end_object(s.ctx) && s.end_array(s.ctx));
		REQUIRE(s.end_object(s.ctx));

		REQUIRE(s.key(s.ctx, "boot") && s.begin_object(s.ctx) && s.key(s.ctx, "sysctl") && s.begin_object(s.ctx) &&
				s.key(s.ctx, round ? "vm.swappiness" : "vm.dirty_ratio") && s.begin_object(s.ctx) &&
				s.key(s.ctx, "value") && s.number(s.ctx, "3") && s.end_object(s.ctx) && s.end_object(s.ctx) &&
				s.end_object(s.ctx));
	}
	REQUIRE(s.key(s.ctx, "thp") && s.begin_object(s.ctx) && s.key(s.ctx, "enabled") && s.string(s.ctx, "never") &&
			s.key(s.ctx, "enabled") && s.null(s.ctx) && s.end_object(s.ctx) && s.end_object(s.ctx));
	CHECK(ka_decoder_finish(decoder, &error));

	CHECK(!ka_known(&facts, KA_PG_MAX_CONNECTIONS));
	CHECK_INT(ka_int(&facts, KA_PG_BACKENDS), 7);
	CHECK_INT(facts.nnuma, 1);
	CHECK_INT(facts.numa[0].node, 1);
	CHECK_INT(facts.npools, 0);
	CHECK(facts.boot[KA_KNOB_SWAPPINESS].known && !facts.boot[KA_KNOB_DIRTY_RATIO].known);
	CHECK(!ka_known(&facts, KA_THP_ENABLED));
	ka_malloc_free(&arena);
}

/* Far deeper than any stack: only a counter grows. */
TEST(depth_below_unknown_keys_costs_nothing)
{
	enum
	{
		DEPTH = 10000000
	};
	KaJsonSink	s;
	KaDecoder  *decoder;
	bool		good;

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	decoder = ka_decoder_new(&facts, &s);
	good = s.begin_object(s.ctx) && s.key(s.ctx, "unknown");
	for (int i = 0; good && i < DEPTH; i++)
		good = s.begin_array(s.ctx);
	for (int i = 0; good && i < DEPTH; i++)
		good = s.end_array(s.ctx);
	CHECK(good && s.key(s.ctx, "numa") && s.begin_array(s.ctx) && s.end_array(s.ctx) && s.end_object(s.ctx));
	CHECK(ka_decoder_finish(decoder, &error));
	ka_malloc_free(&arena);
}

TEST(lists_are_bounded)
{
	KaJsonSink	s;
	KaDecoder  *decoder;
	bool		good;
	int			n = 0;

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	decoder = ka_decoder_new(&facts, &s);
	good = s.begin_object(s.ctx) && s.key(s.ctx, "numa") && s.begin_array(s.ctx);
	for (; good && n < 5000; n++)
		good = s.begin_object(s.ctx) && s.key(s.ctx, "node") && s.number(s.ctx, "1") && s.end_object(s.ctx);
	CHECK(!good);
	CHECK_INT(n, 4097);
	CHECK(!ka_decoder_finish(decoder, &error));
	CHECK_STR(error.path, "numa[4096]");
	CHECK_STR(error.problem, "more than 4096 elements");
	ka_malloc_free(&arena);
}

/* One letter per event: what no parser would send is refused, not believed. */
static bool
play(const char *events)
{
	KaJsonSink	s;
	KaDecoder  *decoder;

	ka_facts_init(&facts, &arena);
	decoder = ka_decoder_new(&facts, &s);
	for (const char *e = events; *e != '\0'; e++)
	{
		switch (*e)
		{
			case '{':
				(void) s.begin_object(s.ctx);
				break;
			case '}':
				(void) s.end_object(s.ctx);
				break;
			case '[':
				(void) s.begin_array(s.ctx);
				break;
			case ']':
				(void) s.end_array(s.ctx);
				break;
			case 'n':
				(void) s.key(s.ctx, "numa");
				break;
			case 'p':
				(void) s.key(s.ctx, "postgres");
				break;
			case 'm':
				(void) s.key(s.ctx, "max_connections");
				break;
			case 'u':
				(void) s.key(s.ctx, "unknown");
				break;
			case '5':
				(void) s.number(s.ctx, "5");
				break;
			case '0':
				(void) s.null(s.ctx);
				break;
			default:
				abort();
		}
	}
	return ka_decoder_finish(decoder, &error);
}

TEST(events_out_of_order)
{
	static const char *const good[] = {"{}", "{p{}}", "{p{m5}}", "{n[]}", "{u[[]]}", "{u5}", "{p0}", "{u{p5}}"};
	static const char *const bad[] = {
		"", "{", "}", "]", "{{", "{5}", "{p", "{p}", "{pp{}}", "{p{m}}", "{p{m5}", "{n[}", "{n[]]}", "{n[n]}",
		"{}}", "{}{", "{}5", "n", "5", "{u", "{u}", "{u[}", "{u[]", "{]", "{p{]}", "{}0", "{0}", "{mm5}"
	};

	ka_malloc_arena(&arena);
	for (size_t i = 0; i < KA_LENGTH(good); i++)
	{
		if (!CHECK(play(good[i])))
			printf("# %s: %s: %s\n", good[i], error.path, error.problem);
	}
	for (size_t i = 0; i < KA_LENGTH(bad); i++)
	{
		if (!CHECK(!play(bad[i])))
			printf("# accepted: %s\n", bad[i]);
		else
			CHECK(error.path != NULL && error.problem != NULL);
	}
	ka_malloc_free(&arena);
}

/* An arena that fails at its nth allocation, for every n. */
static int	allocations_left;

static void *
failing(void *ctx, size_t size)
{
	KaArena    *real = ctx;

	return allocations_left-- > 0 ? real->alloc(real->ctx, size) : NULL;
}

TEST(without_memory_it_says_so)
{
	const char *text = "{\"kernel\": {\"release\": \"6.18\"}, \"numa\": [{\"node\": 0}], \"hugepages\": {\"pools\":"
		" [{\"size_bytes\": 4096, \"nodes\": [{\"node\": 0}]}]}, \"boot\": {\"sysctl\": {\"vm.swappiness\":"
		" {\"value\": 1, \"file\": \"f\"}}}, \"thp\": {\"enabled\": \"never\"}}";
	int			n = 0;
	bool		good = false;

	for (; !good && n < 100; n++)
	{
		KaArena		real;
		KaArena		fragile = {.alloc = failing,.ctx = &real};
		const char *problem = NULL;
		json_t	   *document;
		KaJsonSink	sink;
		KaDecoder  *decoder;

		ka_malloc_arena(&real);
		document = ka_json_parse(&real, text, &problem);
		REQUIRE(document != NULL);
		allocations_left = n;
		ka_facts_init(&facts, &fragile);
		decoder = ka_decoder_new(&facts, &sink);
		if (decoder != NULL)
		{
			(void) ka_json_feed(document, &sink);
			good = ka_decoder_finish(decoder, &error);
			if (!good)
				CHECK_STR(error.problem, "out of memory");
		}
		json_decref(document);
		ka_malloc_free(&real);
	}
	CHECK(good);
	CHECK(n > 6);
}
