/*
 * test_plan.c: how many huge pages kernel_advisor reserve asks for, of which pools.
 */
#include "reserve.h"
#include "rules_test.h"

/* A server of 1000 pages of 2 MB that is down, and a pool as each test says. */
#define SERVER "'postgres': {'version_num': 170000, 'huge_pages': 'on', 'shared_memory_bytes': 2097152000, " \
	"'shared_memory_type': 'mmap', 'max_connections': 100}"
#define MACHINE "'memory': {'total_bytes': 68719476736}"
#define POOL(numbers) "'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, " numbers "}]}"

/* Plans for a server that is down; *problem when that is not possible. */
static void
plan(KaAdvised *a, const char *facts, const KaReserveOptions *options, KaReservation *r, const char **problem)
{
	ka_test_facts(a, facts);
	if (ka_plan_reservation(&a->arena, &a->facts, false, options, r, problem))
		CHECK(*problem == NULL);
	else
		CHECK(*problem != NULL);
}

TEST(what_others_have_stays_theirs)
{
	static const struct
	{
		const char *facts;
		int64_t		asked;
		int64_t		others;
	}			cases[] = {
		{POOL("'total': 0, 'free': 0"), 1000, 0},
		{POOL("'total': 700, 'free': 700"), 1000, 0},
		{POOL("'total': 5000, 'free': 5000"), 1000, 0}, /* the helper does not shrink it */
		{POOL("'total': 300, 'free': 0"), 1300, 300},
		{POOL("'total': 300, 'free': 100, 'reserved': 50"), 1250, 250},	/* promised pages are taken, too */
		{POOL("'total': 300, 'free': 0, 'surplus': 100, 'overcommit': 100"), 1300, 300},
		{"'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 300, 'free': 0}],"
		"'consumers': [{'what': 'guest', 'pages': 500}]}", 1500, 500},	/* wants more than it has */
		{"'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 300, 'free': 0}],"
		"'consumers': [{'what': 'guest', 'pages': 200}]}", 1300, 300},
	};

	for (size_t i = 0; i < KA_LENGTH(cases); i++)
	{
		KaAdvised	a;
		KaReserveOptions options = {0};
		KaReservation r;
		const char *problem;
		char		facts[1024];

		NOTE("%zu", i);
		snprintf(facts, sizeof(facts), "{" SERVER ", " MACHINE ", %s}", cases[i].facts);
		plan(&a, facts, &options, &r, &problem);
		CHECK_STR(r.nothing, NULL);
		CHECK_INT(r.needed, 1000);
		CHECK_INT(r.others, cases[i].others);
		REQUIRE(r.nparts == 1);
		CHECK_STR(r.parts[0].subject, "vm.nr_hugepages");
		CHECK_INT(r.parts[0].node, KA_ALL_NODES);
		CHECK_INT(r.parts[0].knob->number, KA_HK_NR_HUGEPAGES);
		CHECK_INT(r.parts[0].asked, cases[i].asked);
		ka_test_done(&a);
	}
}

TEST(another_page_size_has_its_own_pool)
{
	KaAdvised	a;
	KaReserveOptions options = {0};
	KaReservation r;
	const char *problem;

	plan(&a, "{'postgres': {'version_num': 170000, 'huge_pages': 'try', 'huge_page_size_bytes': 1073741824,"
		 "'shared_memory_bytes': 2097152000}, " MACHINE ", 'hugepages': {'default_size_bytes': 2097152, 'pools': ["
		 "{'size_bytes': 2097152, 'total': 40, 'free': 0}, {'size_bytes': 1073741824, 'total': 3, 'free': 2}]}}",
		 &options, &r, &problem);
	REQUIRE(r.nparts == 1);
	CHECK_STR(r.parts[0].subject, "hugepages-1048576kB.nr_hugepages");
	CHECK_INT(r.parts[0].knob->number, KA_HK_POOL_1048576KB);
	CHECK_INT(r.needed, 2);
	CHECK_INT(r.parts[0].asked, 3);
	ka_test_done(&a);
}

TEST(nodes_share_what_is_missing)
{
	static const int64_t nodes[] = {2, 0, 1};
	static const int64_t asked[] = {334 + 7, 333 + 100, 333};
	KaAdvised	a;
	KaReserveOptions options = {.nodes = nodes,.nnodes = 3};
	KaReservation r;
	const char *problem;

	plan(&a, "{" SERVER ", " MACHINE ", " POOL("'total': 160, 'free': 53, 'nodes': [{'node': 0, 'total': 110, 'free': 10},"
											   "{'node': 1, 'total': 43, 'free': 43}, {'node': 2, 'total': 7, 'free': 0}]") "}",
		 &options, &r, &problem);
	REQUIRE(r.nparts == 3);
	CHECK_STR(r.parts[0].subject, "node2.hugepages-2048kB.nr_hugepages");
	for (size_t i = 0; i < 3; i++)
	{
		NOTE("node %d", (int) nodes[i]);
		CHECK_INT(r.parts[i].node, nodes[i]);
		CHECK_INT(r.parts[i].asked, asked[i]);
		CHECK_INT(r.parts[i].knob->number, KA_HK_POOL_2048KB);
	}
	ka_test_done(&a);
}

TEST(nodes_that_are_not_there)
{
	static const int64_t nodes[] = {0, 5};
	KaAdvised	a;
	KaReserveOptions options = {.nodes = nodes,.nnodes = 2};
	KaReservation r;
	const char *problem;

	plan(&a, "{" SERVER ", " MACHINE ", " POOL("'total': 0, 'free': 0, 'nodes': [{'node': 0, 'total': 0, 'free': 0}]") "}",
		 &options, &r, &problem);
	REQUIRE(problem != NULL);
	CHECK(strstr(problem, "--node 5") != NULL);
	ka_test_done(&a);
}

TEST(servers_that_take_no_page)
{
	static const struct
	{
		const char *server;
		const char *why;
	}			cases[] = {
		{"'version_num': 170000, 'huge_pages': 'off'", "huge_pages is off"},
		{"'version_num': 90300, 'huge_pages': 'on'", "this release"},
		{"'version_num': 170000, 'huge_pages': 'on', 'shared_memory_type': 'sysv'", "System V"},
	};

	for (size_t i = 0; i < KA_LENGTH(cases); i++)
	{
		KaAdvised	a;
		KaReserveOptions options = {0};
		KaReservation r;
		const char *problem;
		char		facts[1024];

		NOTE("%s", cases[i].server);
		snprintf(facts, sizeof(facts), "{'postgres': {%s, 'shared_memory_bytes': 2097152000}, " MACHINE ", %s}",
				 cases[i].server, POOL("'total': 0, 'free': 0"));
		plan(&a, facts, &options, &r, &problem);
		REQUIRE(r.nothing != NULL);
		CHECK(strstr(r.nothing, cases[i].why) != NULL);
		CHECK_INT((int64_t) r.nparts, 0);
		ka_test_done(&a);
	}
}

/* One that runs on huge pages has them; one that fell back wants them for its next start. */
TEST(a_server_that_runs)
{
	static const char *const status[] = {"on", "off"};

	for (size_t i = 0; i < KA_LENGTH(status); i++)
	{
		KaAdvised	a;
		KaReserveOptions options = {0};
		KaReservation r;
		const char *problem;
		char		facts[1024];

		NOTE("%s", status[i]);
		snprintf(facts, sizeof(facts), "{'postgres': {'version_num': 170000, 'huge_pages': 'try', 'huge_pages_status': '%s',"
				 "'shared_memory_bytes': 2097152000}, " MACHINE ", %s}", status[i], POOL("'total': 1200, 'free': 200"));
		ka_test_facts(&a, facts);
		REQUIRE(ka_plan_reservation(&a.arena, &a.facts, true, &options, &r, &problem));
		CHECK((r.nothing != NULL) == (i == 0));
		if (i == 1)
			CHECK_INT(r.parts[0].asked, 2000);
		ka_test_done(&a);
	}
}

TEST(a_need_that_is_not_known)
{
	static const struct
	{
		const char *facts;
		const char *why;
	}			cases[] = {
		{"'postgres': {'version_num': 170000, 'huge_pages': 'on'}, " POOL("'total': 0, 'free': 0"), "see the notes"},
		{SERVER, "no huge pages"},
		{SERVER ", 'hugepages': {'pools': [{'size_bytes': 2097152, 'total': 0, 'free': 0}]}", "size of a huge page"},
		{SERVER ", " POOL("'total': 10"), "state of the pool"},
		{"'postgres': {'version_num': 170000, 'huge_pages': 'on', 'huge_page_size_bytes': 8388608, 'shared_memory_bytes': 1}, "
		POOL("'total': 0, 'free': 0"), "none of that size"},
		{"'postgres': {'version_num': 170000, 'huge_pages': 'on', 'huge_page_size_bytes': 4194304, 'shared_memory_bytes': 1}, "
		"'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 4194304, 'total': 0, 'free': 0}]}",
		"no kernel that kernel_advisord knows"},
	};

	for (size_t i = 0; i < KA_LENGTH(cases); i++)
	{
		KaAdvised	a;
		KaReserveOptions options = {0};
		KaReservation r;
		const char *problem;
		char		facts[1024];

		NOTE("%s", cases[i].why);
		snprintf(facts, sizeof(facts), "{" MACHINE ", %s}", cases[i].facts);
		plan(&a, facts, &options, &r, &problem);
		REQUIRE(problem != NULL);
		CHECK(strstr(problem, cases[i].why) != NULL);
		if (strstr(problem, cases[i].why) == NULL)
			printf("# %s\n", problem);
		ka_test_done(&a);
	}
}
