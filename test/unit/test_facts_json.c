/*
 * test_facts_json.c: facts to JSON and back, and every way to get them wrong.
 */
#include "ka_test.h"

#include "facts.h"
#include "json.h"

static KaArena arena;
static KaFacts facts;
static KaDecodeError error;

/* Decodes a text into fresh facts. */
static bool
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

static char *
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

static void
expect_good(const char *text, int line)
{
	if (!decode(text))
	{
		printf("# line %d: %s: refused: %s: %s\n", line, text, error.path, error.problem);
		ka_test_failures++;
	}
}

static void
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

static void
set_some(KaFacts *f, int i, int variant)
{
	const KaFactInfo *info = &ka_fact_info[i];

	switch (info->type)
	{
		case KA_INT:
			CHECK(ka_set_int(f, i, variant ? info->max : info->min));
			break;
		case KA_REAL:
			CHECK(ka_set_real(f, i, variant ? 0.1 + 0.2 : (double) info->max));
			break;
		case KA_BOOL:
			CHECK(ka_set_bool(f, i, variant != 0));
			break;
		case KA_TEXT:
			CHECK(ka_set_text(f, i, variant ? "Zeichen \xc3\xa4 \" \\ /" : ""));
			break;
		case KA_ENUM:
			if (variant)
				CHECK(ka_set_text(f, i, strrchr(info->values, '|') + 1));
			else
				CHECK(ka_set_text(f, i, "on") || ka_set_text(f, i, "start") || ka_set_text(f, i, "mmap") ||
					  ka_set_text(f, i, "guc") || ka_set_text(f, i, "none") || ka_set_text(f, i, "never"));
			break;
	}
}

static bool
same_value(const KaValue *a, const KaValue *b)
{
	return a->known == b->known && a->i == b->i && a->r == b->r &&
		(a->s == NULL || b->s == NULL ? a->s == b->s : strcmp(a->s, b->s) == 0);
}

static void
check_same(const KaFacts *a, const KaFacts *b)
{
	for (int i = 0; i < KA_NFACTS; i++)
	{
		if (!same_value(&a->v[i], &b->v[i]))
		{
			printf("# differs: %s\n", ka_fact_info[i].path);
			ka_test_failures++;
		}
	}
}

TEST(every_fact_alone)
{
	for (int variant = 0; variant < 2; variant++)
	{
		for (int i = 0; i < KA_NFACTS; i++)
		{
			KaFacts		before;
			char	   *text;

			ka_malloc_arena(&arena);
			ka_facts_init(&before, &arena);
			set_some(&before, i, variant);
			text = encode(&before);
			/* A file without a value would say nothing: it is not written. */
			if (i == KA_BOOT_THP_FILE)
				CHECK_STR(text, "{\"schema\":1}");
			else if (CHECK(text != NULL && decode(text)))
				check_same(&before, &facts);
			ka_malloc_free(&arena);
		}
	}
}

TEST(all_facts_together)
{
	KaFacts		before;
	KaNodePool	nodes[2] = {{0, 5, 3}, {3, KA_UNKNOWN, 0}};
	KaPool		pools[2] = {
		{.size_bytes = 2097152,.total = 8,.free = 3,.reserved = 1,.surplus = 2,.overcommit = 4,.asked = 9,
		.grantable = 77,.nodes = nodes,.nnodes = 2},
		{.size_bytes = 1073741824,.total = 0,.free = KA_UNKNOWN,.reserved = KA_UNKNOWN,.surplus = KA_UNKNOWN,
		.overcommit = KA_UNKNOWN,.asked = KA_UNKNOWN,.grantable = KA_UNKNOWN}
	};
	KaConsumer	consumers[2] = {{"qemu", 2097152, 12}, {NULL, KA_UNKNOWN, 7}};
	KaHugetlbLimit limits[1] = {{2097152, 1048576, KA_UNKNOWN, 0, "/system.slice"}};
	KaNode		numa[2] = {{0, 100, 50}, {1, 200, KA_UNKNOWN}};
	KaBootPool	boot_pools[1] = {{1073741824, 16}};

	ka_malloc_arena(&arena);
	ka_facts_init(&before, &arena);
	for (int i = 0; i < KA_NFACTS; i++)
		set_some(&before, i, 1);
	before.pools = pools;
	before.npools = 2;
	before.consumers = consumers;
	before.nconsumers = 2;
	before.hugetlb = limits;
	before.nhugetlb = 1;
	before.numa = numa;
	before.nnuma = 2;
	before.boot_pools = boot_pools;
	before.nboot_pools = 1;
	before.boot[KA_KNOB_NR_HUGEPAGES] = (KaBootSysctl) {true, 1024, "/etc/sysctl.d/80-vpp.conf"};
	before.boot[KA_KNOB_SWAPPINESS] = (KaBootSysctl) {true, KA_UNKNOWN, NULL};

	REQUIRE(decode(encode(&before)));
	check_same(&before, &facts);
	REQUIRE(facts.npools == 2 && facts.pools[0].nnodes == 2 && facts.nconsumers == 2);
	REQUIRE(facts.nhugetlb == 1 && facts.nnuma == 2 && facts.nboot_pools == 1);
	CHECK_INT(facts.pools[0].size_bytes, 2097152);
	CHECK_INT(facts.pools[0].total, 8);
	CHECK_INT(facts.pools[0].free, 3);
	CHECK_INT(facts.pools[0].reserved, 1);
	CHECK_INT(facts.pools[0].surplus, 2);
	CHECK_INT(facts.pools[0].overcommit, 4);
	CHECK_INT(facts.pools[0].asked, 9);
	CHECK_INT(facts.pools[0].grantable, 77);
	CHECK_INT(facts.pools[0].nodes[0].total, 5);
	CHECK_INT(facts.pools[0].nodes[1].node, 3);
	CHECK_INT(facts.pools[0].nodes[1].total, KA_UNKNOWN);
	CHECK_INT(facts.pools[0].nodes[1].free, 0);
	CHECK_INT(facts.pools[1].total, 0);
	CHECK_INT(facts.pools[1].free, KA_UNKNOWN);
	CHECK_INT(facts.pools[1].nnodes, 0);
	CHECK_STR(facts.consumers[0].what, "qemu");
	CHECK_INT(facts.consumers[0].size_bytes, 2097152);
	CHECK_STR(facts.consumers[1].what, NULL);
	CHECK_INT(facts.consumers[1].size_bytes, KA_UNKNOWN);
	CHECK_INT(facts.consumers[1].pages, 7);
	CHECK_INT(facts.hugetlb[0].limit_bytes, 1048576);
	CHECK_INT(facts.hugetlb[0].rsvd_limit_bytes, KA_UNKNOWN);
	CHECK_INT(facts.hugetlb[0].usage_bytes, 0);
	CHECK_STR(facts.hugetlb[0].at, "/system.slice");
	CHECK_INT(facts.numa[1].total_bytes, 200);
	CHECK_INT(facts.numa[1].free_bytes, KA_UNKNOWN);
	CHECK_INT(facts.boot_pools[0].pages, 16);
	CHECK(facts.boot[KA_KNOB_NR_HUGEPAGES].known);
	CHECK_INT(facts.boot[KA_KNOB_NR_HUGEPAGES].value, 1024);
	CHECK_STR(facts.boot[KA_KNOB_NR_HUGEPAGES].file, "/etc/sysctl.d/80-vpp.conf");
	CHECK(facts.boot[KA_KNOB_SWAPPINESS].known);
	CHECK_INT(facts.boot[KA_KNOB_SWAPPINESS].value, KA_UNKNOWN);
	CHECK(!facts.boot[KA_KNOB_DIRTY_RATIO].known);
	CHECK(facts.boot_thp_known);
	/* and once more: the second text is the first */
	CHECK_STR(encode(&facts), encode(&before));
	ka_malloc_free(&arena);
}

/* What a collector should not have stored is not written, rather than refused by the reader. */
TEST(illegal_members_are_not_written)
{
	KaPool		pools[2] = {{.size_bytes = KA_UNKNOWN,.total = 4}, {.size_bytes = 4096,.total = -9,.free = 2}};
	KaFacts		before;

	WITH_ARENA({
		ka_facts_init(&before, &arena);
		before.pools = pools;
		before.npools = 2;
		CHECK(decode(encode(&before)));
		CHECK_INT(facts.npools, 1);
		CHECK_INT(facts.pools[0].total, KA_UNKNOWN);
		CHECK_INT(facts.pools[0].free, 2);
	});
}

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

TEST(paths_and_problems)
{
	WITH_ARENA({
		BAD("[]", "facts", "expected an object, found a list");
		BAD("5", "facts", "expected an object, found a number");
		BAD("null", "facts", "expected an object, found null");
		BAD("{\"schema\": 2}", "schema", "2 is not known here, only 1 is");
		BAD("{\"schema\": \"1\"}", "schema", "expected an integer, found a string");
		BAD("{\"postgres\": 5}", "postgres", "expected an object, found a number");
		BAD("{\"postgres\": []}", "postgres", "expected an object, found a list");
		BAD("{\"postgres\": {\"huge_pages\": \"maybe\"}}", "postgres.huge_pages",
			"\"maybe\" is not one of try, on, off");
		BAD("{\"postgres\": {\"huge_pages\": true}}", "postgres.huge_pages", "expected a string, found a boolean");
		BAD("{\"postgres\": {\"max_connections\": \"100\"}}", "postgres.max_connections",
			"expected an integer, found a string");
		BAD("{\"postgres\": {\"max_connections\": 5.5}}", "postgres.max_connections",
			"expected an integer, found 5.5");
		BAD("{\"postgres\": {\"max_connections\": -1}}", "postgres.max_connections",
			"-1 is out of range (0 to 2147483647)");
		BAD("{\"postgres\": {\"max_connections\": 2147483648}}", "postgres.max_connections",
			"2147483648 is out of range (0 to 2147483647)");
		BAD("{\"postgres\": {\"wal_recycle\": 1}}", "postgres.wal_recycle", "expected true or false, found a number");
		BAD("{\"postgres\": {\"wal_recycle\": \"on\"}}", "postgres.wal_recycle",
			"expected true or false, found a string");
		BAD("{\"postgres\": {\"managed\": false}}", "postgres.managed", "expected a string, found a boolean");
		BAD("{\"postgres\": {\"last_error\": \"ENOMEM\"}}", "postgres.last_error", "expected an object, found a string");
		BAD("{\"postgres\": {\"last_error\": {\"bytes\": -5}}}", "postgres.last_error.bytes",
			"-5 is out of range (0 to 4611686018427387904)");
		BAD("{\"postgres\": {\"checkpoint_timeout_s\": {}}}", "postgres.checkpoint_timeout_s",
			"expected a number, found an object");
		BAD("{\"storage\": {\"data\": {\"filesystem\": 1}}}", "storage.data.filesystem", "expected a string, found a number");
		BAD("{\"cgroup\": {\"version\": 3}}", "cgroup.version", "3 is out of range (1 to 2)");
		BAD("{\"sysctl\": {\"vm.swappiness\": 201}}", "sysctl.vm.swappiness", "201 is out of range (0 to 200)");
		BAD("{\"sysctl\": {\"vm.swappiness\": [1]}}", "sysctl.vm.swappiness", "expected an integer, found a list");
		BAD("{\"hugepages\": {\"pools\": {}}}", "hugepages.pools", "expected a list, found an object");
		BAD("{\"hugepages\": {\"pools\": [5]}}", "hugepages.pools[0]", "expected an object, found a number");
		BAD("{\"hugepages\": {\"pools\": [{\"size_bytes\": 4096}, null]}}", "hugepages.pools[1]",
			"expected an object, found null");
		BAD("{\"hugepages\": {\"pools\": [{\"size_bytes\": 4096}, {\"size_bytes\": 8192, \"free\": -1}]}}",
			"hugepages.pools[1].free", "-1 is out of range (0 to 4611686018427387904)");
		BAD("{\"hugepages\": {\"pools\": [{\"size_bytes\": 4096, \"nodes\": [{\"node\": 0}, {\"node\": 1, \"total\": \"x\"}]}]}}",
			"hugepages.pools[0].nodes[1].total", "expected an integer, found a string");
		BAD("{\"hugepages\": {\"pools\": [{\"total\": 1}]}}", "hugepages.pools[0].size_bytes", "is missing");
		BAD("{\"hugepages\": {\"pools\": [{\"size_bytes\": null}]}}", "hugepages.pools[0].size_bytes", "is missing");
		BAD("{\"hugepages\": {\"pools\": [{\"size_bytes\": 0}]}}", "hugepages.pools[0].size_bytes",
			"0 is out of range (1 to 4611686018427387904)");
		BAD("{\"hugepages\": {\"consumers\": [{\"what\": 5}]}}", "hugepages.consumers[0].what",
			"expected a string, found a number");
		BAD("{\"cgroup\": {\"hugetlb\": [{\"limit_bytes\": 5}]}}", "cgroup.hugetlb[0].size_bytes", "is missing");
		BAD("{\"numa\": {\"node\": 1}}", "numa", "expected a list, found an object");
		BAD("{\"numa\": [{\"node\": 0, \"free_bytes\": 1.5}]}", "numa[0].free_bytes", "expected an integer, found 1.5");
		BAD("{\"numa\": [{\"free_bytes\": 1}]}", "numa[0].node", "is missing");
		BAD("{\"boot\": {\"cmdline_hugepages\": [{\"pages\": 1}]}}", "boot.cmdline_hugepages[0].size_bytes", "is missing");
		BAD("{\"boot\": {\"sysctl\": []}}", "boot.sysctl", "expected an object, found a list");
		BAD("{\"boot\": {\"sysctl\": {\"vm.swappiness\": 5}}}", "boot.sysctl.vm.swappiness",
			"expected an object, found a number");
		BAD("{\"boot\": {\"sysctl\": {\"vm.swappiness\": {\"value\": -5}}}}", "boot.sysctl.vm.swappiness.value",
			"-5 is out of range (0 to 9223372036854775807)");
		BAD("{\"boot\": {\"sysctl\": {\"vm.swappiness\": {\"file\": 5}}}}", "boot.sysctl.vm.swappiness.file",
			"expected a string, found a number");
		BAD("{\"boot\": {\"thp_enabled\": {\"value\": \"sometimes\"}}}", "boot.thp_enabled.value",
			"\"sometimes\" is not one of always, madvise, never");
	});
}

/* A cut never leaves half a character. */
TEST(a_long_text_is_cut_in_the_message)
{
	WITH_ARENA({
		BAD("{\"thp\": {\"enabled\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xe2\x82\xac\xe2\x82\xac\"}}", "thp.enabled",
			"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" is not one of always, madvise, never");
	});
}

TEST(unknown_keys_are_ignored)
{
	WITH_ARENA({
		GOOD("{\"x\": 1, \"y\": {\"postgres\": {\"huge_pages\": 7}}, \"z\": [[[{\"a\": [null, true, 1.5, \"s\"]}]]],"
			 " \"postgres\": {\"w\": {\"v\": []}, \"max_connections\": 7, \"u\": [1, {}]}}");
		CHECK_INT(ka_int(&facts, KA_PG_MAX_CONNECTIONS), 7);
		CHECK(!ka_known(&facts, KA_PG_HUGE_PAGES));
		GOOD("{\"sysctl\": {\"vm.unheard_of\": \"x\", \"kernel.pid_max\": -1, \"vm\": {\"nr_hugepages\": 5}}}");
		CHECK(!ka_known(&facts, KA_SYSCTL_NR_HUGEPAGES));
		GOOD("{\"sysctl.vm.nr_hugepages\": 5, \"postgres.max_connections\": 5, \"postgres\": {\"last_error.bytes\": 5}}");
		CHECK(!ka_known(&facts, KA_SYSCTL_NR_HUGEPAGES));
		CHECK(!ka_known(&facts, KA_PG_MAX_CONNECTIONS));
		CHECK(!ka_known(&facts, KA_ERR_BYTES));
		GOOD("{\"hugepages\": {\"pools\": [{\"size_bytes\": 4096, \"name\": {\"free\": -1}, \"free\": 3}]}}");
		CHECK_INT(facts.pools[0].free, 3);
		GOOD("{\"boot\": {\"sysctl\": {\"kernel.x\": 5, \"vm.swappiness\": {\"value\": 1, \"file\": \"f\", \"more\": []}}}}");
		CHECK_INT(facts.boot[KA_KNOB_SWAPPINESS].value, 1);
		GOOD("{\"pools\": 5, \"nodes\": 5, \"postgres\": {\"pools\": 5, \"numa\": 5}, \"hugepages\": {\"numa\": 5}}");
		GOOD("{\"\": 5, \"postgres\": {\"\": 5}, \"storage\": {\"data\": {\"\": 1, \"pools\": 1}}}");
		GOOD("{}");
	});
}

TEST(null_is_an_absent_key)
{
	WITH_ARENA({
		GOOD("{\"schema\": null, \"postgres\": null, \"numa\": null, \"hugepages\": {\"pools\": null, \"default_size_bytes\": null},"
			 " \"sysctl\": {\"vm.swappiness\": null}, \"thp\": {\"enabled\": null}, \"window\": {\"seconds\": null,"
			 " \"spans_restart\": null}, \"boot\": null}");
		for (int i = 0; i < KA_NFACTS; i++)
			CHECK(!ka_known(&facts, i));
		GOOD("{\"hugepages\": {\"pools\": [{\"size_bytes\": 4096, \"free\": null, \"nodes\": null}]}}");
		CHECK_INT(facts.pools[0].free, KA_UNKNOWN);
		CHECK_INT(facts.pools[0].nnodes, 0);
	});
}

TEST(nulls_of_boot_are_knowledge)
{
	WITH_ARENA({
		GOOD("{\"boot\": {\"sysctl\": {\"vm.nr_hugepages\": {\"value\": null, \"file\": null}},"
			 " \"thp_enabled\": {\"value\": null, \"file\": null}}}");
		CHECK(facts.boot[KA_KNOB_NR_HUGEPAGES].known);
		CHECK_INT(facts.boot[KA_KNOB_NR_HUGEPAGES].value, KA_UNKNOWN);
		CHECK(!facts.boot[KA_KNOB_SWAPPINESS].known);
		CHECK(facts.boot_thp_known);
		CHECK_STR(encode(&facts), "{\"schema\":1,\"boot\":{\"sysctl\":{\"vm.nr_hugepages\":{\"value\":null,\"file\":null}},"
				  "\"thp_enabled\":{\"value\":null,\"file\":null}}}");

		GOOD("{\"boot\": {\"sysctl\": {\"vm.nr_hugepages\": {\"value\": 5, \"file\": null}}}}");
		CHECK(facts.boot[KA_KNOB_NR_HUGEPAGES].known);

		/* Nothing is known from an empty object, a file alone, or null in its place. */
		GOOD("{\"boot\": {\"sysctl\": {\"vm.nr_hugepages\": {}}, \"thp_enabled\": {}}}");
		CHECK(!facts.boot[KA_KNOB_NR_HUGEPAGES].known && !facts.boot_thp_known);
		GOOD("{\"boot\": {\"sysctl\": {\"vm.nr_hugepages\": {\"value\": null, \"file\": \"f\"}},"
			 " \"thp_enabled\": {\"value\": null, \"file\": \"f\"}}}");
		CHECK(!facts.boot[KA_KNOB_NR_HUGEPAGES].known && !facts.boot_thp_known);
		GOOD("{\"boot\": {\"sysctl\": {\"vm.nr_hugepages\": null}, \"thp_enabled\": null}}");
		CHECK(!facts.boot[KA_KNOB_NR_HUGEPAGES].known && !facts.boot_thp_known);
	});
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

TEST(text_that_is_not_json)
{
	const char *problem = NULL;

	ka_malloc_arena(&arena);
	CHECK(ka_json_parse(&arena, "{\"a\": ", &problem) == NULL);
	CHECK(problem != NULL && strncmp(problem, "not JSON: line 1, column", 24) == 0);
	problem = NULL;
	CHECK(ka_json_parse(&arena, "", &problem) == NULL && problem != NULL);
	problem = NULL;
	CHECK(ka_json_parse(&arena, "{\"sysctl\": {\"vm.nr_hugepages\": 1e400}}", &problem) == NULL && problem != NULL);
	problem = NULL;
	CHECK(ka_json_load(&arena, "/does/not/exist", &problem) == NULL);
	CHECK_STR(problem, "No such file or directory");
	problem = NULL;
	CHECK(ka_json_load(&arena, "/", &problem) == NULL && problem != NULL);
	ka_malloc_free(&arena);
}
