/*
 * test_cgroup.c: limits of this cgroup and its ancestors, versions 1 and 2.
 */
#define _GNU_SOURCE 1

#include <sys/stat.h>
#include <unistd.h>

#include "collect.h"
#include "ka_test.h"

static KaArena arena;
static KaFacts facts;

static void
collect(const char *root)
{
	KaSource	source = {.root = root};

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	CHECK(ka_collect_cgroup(&facts, &source));
}

TEST(version_1_limit_of_an_ancestor)
{
	collect(ka_machine("el8-4.18"));
	CHECK_INT(ka_int(&facts, KA_CGROUP_VERSION), 1);
	CHECK_INT(ka_int(&facts, KA_CGROUP_MEMORY_LIMIT), INT64_C(17179869184));
	REQUIRE(facts.nhugetlb == 1);	/* pages of 1 GiB have no limit */
	CHECK_INT(facts.hugetlb[0].size_bytes, 2097152);
	CHECK_INT(facts.hugetlb[0].limit_bytes, INT64_C(1073741824));
	CHECK_INT(facts.hugetlb[0].rsvd_limit_bytes, KA_UNKNOWN);
	CHECK_INT(facts.hugetlb[0].usage_bytes, 838860800);
	CHECK_STR(facts.hugetlb[0].at, "/system.slice");
	ka_malloc_free(&arena);
}

TEST(version_2_in_a_namespace)
{
	collect(ka_machine("container-5.15"));
	CHECK_INT(ka_int(&facts, KA_CGROUP_VERSION), 2);
	CHECK_INT(ka_int(&facts, KA_CGROUP_MEMORY_LIMIT), INT64_C(8589934592));
	REQUIRE(facts.nhugetlb == 1);
	CHECK_INT(facts.hugetlb[0].limit_bytes, KA_UNKNOWN);	/* max */
	CHECK_INT(facts.hugetlb[0].rsvd_limit_bytes, 0);
	CHECK_INT(facts.hugetlb[0].usage_bytes, 0);
	CHECK_STR(facts.hugetlb[0].at, "/");
	ka_malloc_free(&arena);
}

TEST(version_2_minimum_over_three_levels)
{
	collect(ka_machine("debian-6.1"));
	CHECK_INT(ka_int(&facts, KA_CGROUP_VERSION), 2);
	CHECK_INT(ka_int(&facts, KA_CGROUP_MEMORY_LIMIT), INT64_C(8589934592));
	REQUIRE(facts.nhugetlb == 1);
	CHECK_INT(facts.hugetlb[0].limit_bytes, INT64_C(2147483648));
	CHECK_INT(facts.hugetlb[0].rsvd_limit_bytes, INT64_C(1610612736));
	CHECK_INT(facts.hugetlb[0].usage_bytes, 734003200);
	CHECK_STR(facts.hugetlb[0].at, "/kubepods.slice");
	ka_malloc_free(&arena);
}

TEST(hybrid)
{
	collect(ka_machine("server-6.8"));
	CHECK_INT(ka_int(&facts, KA_CGROUP_VERSION), 1);
	CHECK_INT(ka_int(&facts, KA_CGROUP_MEMORY_LIMIT), INT64_C(68719476736));
	REQUIRE(facts.nhugetlb == 1);
	CHECK_INT(facts.hugetlb[0].size_bytes, INT64_C(1) << 30);
	CHECK_INT(facts.hugetlb[0].limit_bytes, INT64_C(42949672960));
	CHECK_INT(facts.hugetlb[0].rsvd_limit_bytes, KA_UNKNOWN);
	CHECK_INT(facts.hugetlb[0].usage_bytes, INT64_C(40802189312));
	CHECK_STR(facts.hugetlb[0].at, "/pg");
	ka_malloc_free(&arena);
}

TEST(no_limit_no_cgroup_garbage)
{
	static const char *const machines[] = {"appliance-5.15", "gvisor", "garbage", "no-such-machine"};

	for (size_t i = 0; i < KA_LENGTH(machines); i++)
	{
		collect(ka_machine(machines[i]));
		CHECK(!ka_known(&facts, KA_CGROUP_VERSION));
		CHECK(!ka_known(&facts, KA_CGROUP_MEMORY_LIMIT));
		CHECK_INT(facts.nhugetlb, 0);
		ka_malloc_free(&arena);
	}
	collect(ka_machine("vm-6.18"));
	CHECK_INT(ka_int(&facts, KA_CGROUP_VERSION), 1);
	CHECK(!ka_known(&facts, KA_CGROUP_MEMORY_LIMIT));
	ka_malloc_free(&arena);
}

/* A tree of its own for each way that a path and a mount's root can relate. */
static char top[] = "/tmp/ka_cgroup.XXXXXX";

static void
put(const char *name, const char *text)
{
	char		full[1024];
	FILE	   *file;

	snprintf(full, sizeof(full), "%s%s", top, name);
	for (char *slash = full + strlen(top) + 1; (slash = strchr(slash, '/')) != NULL; slash++)
	{
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "w");
	REQUIRE(file != NULL);
	fputs(text, file);
	fclose(file);
}

static void
put_cgroup(const char *path, const char *mount_root)
{
	char		text[512];

	snprintf(text, sizeof(text), "0::%s\n", path);
	put("/proc/self/cgroup", text);
	snprintf(text, sizeof(text), "30 20 0:26 %s /cg rw - cgroup2 cgroup rw\n", mount_root);
	put("/proc/self/mountinfo", text);
}

TEST(paths_and_mount_roots)
{
	static const struct
	{
		const char *path,
				   *mount_root;
		int64_t		limit;		/* 100 at the mount point, 50 in /a, 70 in /a/b */
	}			rows[] = {
		{"/", "/", 100},
		{"/a", "/", 50},
		{"/a/b", "/", 50},
		{"/a/b/gone", "/", 50},
		/* a part of the tree is mounted */
		{"/outer/a/b", "/outer", 50},
		{"/outer", "/outer", 100},
		{"/other", "/outer", KA_UNKNOWN},
		{"/outermost", "/outer", KA_UNKNOWN},
		/* the mount begins above our namespace's root: only its top is an ancestor for sure */
		{"/", "/..", 100},
		{"/x", "/../..", 100},
		{"/", "/../sibling", KA_UNKNOWN},
		/* our process is outside of the namespace whose root is mounted */
		{"/../other", "/", KA_UNKNOWN},
		{"/../outer/a", "/../outer", 50},
		/* not a step up, only a strange name */
		{"/..a", "/", 100},
	};

	REQUIRE(mkdtemp(top) != NULL);
	put("/cg/memory.max", "100\n");
	put("/cg/a/memory.max", "50\n");
	put("/cg/a/b/memory.max", "70\n");
	for (size_t i = 0; i < KA_LENGTH(rows); i++)
	{
		NOTE("path %s, mount root %s", rows[i].path, rows[i].mount_root);
		put_cgroup(rows[i].path, rows[i].mount_root);
		collect(top);
		CHECK_INT(ka_int(&facts, KA_CGROUP_MEMORY_LIMIT), rows[i].limit);
		ka_malloc_free(&arena);
	}

	/* no limit at any level, in the words of both versions and page sizes */
	put("/cg/a/memory.max", "max\n");
	put_cgroup("/a", "/");
	put("/cg/memory.max", "9223372036854771712\n");
	collect(top);
	CHECK_INT(ka_int(&facts, KA_CGROUP_MEMORY_LIMIT), KA_UNKNOWN);
	ka_malloc_free(&arena);
	put("/cg/memory.max", "9223372036854710272\n");
	collect(top);
	CHECK_INT(ka_int(&facts, KA_CGROUP_MEMORY_LIMIT), KA_UNKNOWN);
	ka_malloc_free(&arena);

	{
		char		command[64];

		snprintf(command, sizeof(command), "rm -r %s", top);
		CHECK_INT(system(command), 0);
	}
}
