/*
 * test_facts_json.c: documents of facts: there and back, and every way to get
 * one wrong.  Single events and numbers: test_facts_events.c.
 */
#include "facts_json_test.h"

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
