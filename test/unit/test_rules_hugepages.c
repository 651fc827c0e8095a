/*
 * test_rules_hugepages.c: pools of huge pages, where it takes more than a row
 * of test/fixtures/borders to say what must come out.
 */
#include "rules_test.h"

TEST(thousands_of_nodes)
{
	KaAdvised	a;
	const KaAdvice *row;

	ka_test_facts(&a, "{'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 20000}]}}");
	for (int64_t node = 0; node < 5000; node++)
	{
		KaPool	   *pool = &a.facts.pools[0];

		pool->nodes = ka_append(&a.arena, pool->nodes, &pool->nnodes, sizeof(KaNodePool));
		pool->nodes[node] = (KaNodePool) {node, node == 1234 ? 1 : 4, 0};
		a.facts.numa = ka_append(&a.arena, a.facts.numa, &a.facts.nnuma, sizeof(KaNode));
		a.facts.numa[node] = (KaNode) {node, INT64_MAX, node == 4321 ? 0 : INT64_MAX};
	}
	ka_test_advise(&a);
	row = ka_test_row(&a, "huge_pages.numa", "node1234.hugepages-2048kB.nr_hugepages");
	REQUIRE(row != NULL);
	/* Too many for a row each. */
	CHECK_STR(row->recommended, NULL);
	CHECK(ka_test_row(&a, "huge_pages.numa", "node1235.hugepages-2048kB.nr_hugepages") == NULL);
	row = ka_test_row(&a, "memory.numa", NULL);
	REQUIRE(row != NULL);
	CHECK(strstr(row->reason, "node 4321") != NULL);
	ka_test_done(&a);
}

/* The values of all nodes together are the pool; what does not divide goes to the first. */
TEST(equal_parts_are_the_whole_pool)
{
	static const int64_t totals[] = {1057, 1057, 1057, 0, 0};
	static const int64_t parts[] = {635, 634, 634, 634, 634};	/* of 3171 */
	KaAdvised	a;
	int64_t		sum = 0;

	ka_test_facts(&a, "{'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 3171}]}}");
	for (int64_t node = 0; node < (int64_t) KA_LENGTH(totals); node++)
	{
		KaPool	   *pool = &a.facts.pools[0];

		pool->nodes = ka_append(&a.arena, pool->nodes, &pool->nnodes, sizeof(KaNodePool));
		pool->nodes[node] = (KaNodePool) {node, totals[node], KA_UNKNOWN};
	}
	ka_test_advise(&a);
	for (size_t node = 0; node < KA_LENGTH(totals); node++)
	{
		const KaAdvice *row = ka_test_row(&a, "huge_pages.numa",
										  ka_printf(&a.arena, "node%zu.hugepages-2048kB.nr_hugepages", node));

		REQUIRE(row != NULL && row->recommended != NULL);
		CHECK_INT(atoll(row->recommended), parts[node]);
		sum += atoll(row->recommended);
	}
	CHECK_INT(sum, 3171);
	ka_test_done(&a);
}

/* shared_memory_size as PostgreSQL 15 computes it: the estimate covers it, and not by much. */
TEST(estimate_covers_the_server)
{
	static const struct
	{
		int64_t		buffers_mb,
					connections,
					measured_mb;
	}			measured[] = {
		{128, 100, 143}, {128, 1000, 184},
		{1024, 100, 1074}, {1024, 1000, 1115},
		{6144, 100, 6302}, {6144, 1000, 6344},
		{32768, 100, 33516}, {32768, 1000, 33557},
		{98304, 100, 100369}, {98304, 1000, 100410},
		{122880, 100, 125365}, {122880, 1000, 125406},
		{114688, 100, 117534},	/* case 001 */
	};

	for (size_t i = 0; i < KA_LENGTH(measured); i++)
	{
		KaAdvised	a;
		KaView		view;

		ka_test_facts(&a, "{'hugepages': {'default_size_bytes': 2097152}}");
		CHECK(ka_set_int(&a.facts, KA_PG_SHARED_BUFFERS, measured[i].buffers_mb * MIB));
		CHECK(ka_set_int(&a.facts, KA_PG_MAX_CONNECTIONS, measured[i].connections));
		ka_view_init(&view, &a.facts, &a.arena);
		CHECK(view.shared_plan >= measured[i].measured_mb * MIB);
		CHECK(view.shared_plan <= measured[i].measured_mb * MIB / 100 * 102 + 24 * MIB);
		CHECK(view.need_estimated && view.need == KA_UNKNOWN);
		CHECK_INT(view.need_least, measured[i].buffers_mb / 2 + 1);
		ka_test_done(&a);
	}
}
