/*
 * test_collect.c: facts of copied machines: kernel, memory, pools, THP,
 * sysctls, nodes, fragmentation, mappings.
 *
 * Expected values come from the tables in test/fixtures/make_machine.py.
 */
#define _GNU_SOURCE 1

#include <sys/utsname.h>
#include <unistd.h>

#include "collect.h"
#include "ka_test.h"

static KaArena arena;
static KaFacts facts;

static void
collect(const char *machine)
{
	KaSource	source = {.root = ka_machine(machine)};

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	CHECK(ka_collect(&facts, &source));
}

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)

TEST(kernels)
{
	static const struct
	{
		const char *machine,
				   *release,
				   *arch,
				   *preempt;
		int64_t		page_size,
					container,
					sandbox,
					writable;
	}			rows[] = {
		{"el8-4.18", "4.18.0-513.el8.x86_64", "x86_64", NULL, 4096, 0, 0, 1},
		{"container-5.15", "5.15.0-118-generic", NULL, NULL, 4096, 1, KA_UNKNOWN, 0},
		/* dynamic, no argument: the configuration's default */
		{"debian-6.1", "6.1.0-21-amd64", "x86_64", "voluntary", 4096, 0, 0, 1},
		/* dynamic, preempt=full */
		{"server-6.8", "6.8.12-0-lts", "x86_64", "full", 4096, 0, 0, 1},
		/* debugfs says what preempt=none became on 7.0 */
		{"arm64-7.0", "7.0.0-64k", "aarch64", "full", 65536, 0, 0, KA_UNKNOWN},
		/* real-time before 6.13 */
		{"appliance-5.15", "5.15.71-rt51", NULL, "full", 4096, 0, 0, KA_UNKNOWN},
		/* a disk made from a container image; nothing tells the mode; a balloon hides the page size */
		{"vm-6.18", "6.18.44", "x86_64", NULL, KA_UNKNOWN, 0, 0, 1},
		{"gvisor", "4.4.0", NULL, NULL, KA_UNKNOWN, KA_UNKNOWN, 1, KA_UNKNOWN},
		{"garbage", NULL, NULL, NULL, KA_UNKNOWN, KA_UNKNOWN, KA_UNKNOWN, KA_UNKNOWN},
	};

	for (size_t i = 0; i < KA_LENGTH(rows); i++)
	{
		NOTE("%s", rows[i].machine);
		collect(rows[i].machine);
		CHECK_STR(ka_text(&facts, KA_KERNEL_RELEASE), rows[i].release);
		CHECK_STR(ka_text(&facts, KA_KERNEL_MACHINE), rows[i].arch);
		CHECK_STR(ka_text(&facts, KA_KERNEL_PREEMPT), rows[i].preempt);
		CHECK_STR(ka_text(&facts, KA_KERNEL_OS), rows[i].release ? "linux" : NULL);
		CHECK_INT(ka_int(&facts, KA_KERNEL_PAGE_SIZE), rows[i].page_size);
		CHECK_INT(ka_int(&facts, KA_KERNEL_CONTAINER), rows[i].container);
		CHECK_INT(ka_int(&facts, KA_KERNEL_SANDBOX), rows[i].sandbox);
		CHECK_INT(ka_int(&facts, KA_KERNEL_SYSCTL_WRITABLE), rows[i].writable);
		ka_malloc_free(&arena);
	}
}

TEST(preemption)
{
	static const struct
	{
		const char *machine,
				   *mode;
	}			rows[] = {
		{"preempt-7.2-lazy", "lazy"},	/* the argument is refused, the default stands */
		{"preempt-6.18-lazy", "lazy"},	/* the last argument */
		{"preempt-6.12-full", "full"},	/* not dynamic: the argument means nothing */
		{"preempt-6.18-either", NULL},	/* full or lazy */
		{"preempt-6.18-rt", NULL},
		{"preempt-6.1-none", "none"},
		{"preempt-6.4-usr", "voluntary"},
		{"preempt-unreal", NULL},
	};

	for (size_t i = 0; i < KA_LENGTH(rows); i++)
	{
		NOTE("%s", rows[i].machine);
		collect(rows[i].machine);
		CHECK_STR(ka_text(&facts, KA_KERNEL_PREEMPT), rows[i].mode);
		ka_malloc_free(&arena);
	}
}

TEST(memory)
{
	collect("el8-4.18");
	/* 3976 + 719000 + 12 GiB in pages of 4 KiB */
	CHECK_INT(ka_int(&facts, KA_MEM_TOTAL), (3976 + 719000 + INT64_C(12) * 262144) * 4096);
	CHECK_INT(ka_int(&facts, KA_MEM_FREE), INT64_C(17931) * 4096);
	CHECK_INT(ka_int(&facts, KA_MEM_AVAILABLE), INT64_C(2048000000));
	CHECK_INT(ka_int(&facts, KA_MEM_PAGE_TABLES), INT64_C(807948288));
	CHECK_INT(ka_int(&facts, KA_MEM_DIRTY), 1265664);
	CHECK_INT(ka_int(&facts, KA_MEM_COMMIT_LIMIT), INT64_C(11264000000));
	CHECK_INT(ka_int(&facts, KA_MEM_COMMITTED), INT64_C(9216000000));
	CHECK_INT(ka_int(&facts, KA_MEM_SWAP_TOTAL), INT64_C(4294963200));
	CHECK_INT(facts.nnuma, 2);
	REQUIRE(facts.nnuma == 2);
	CHECK_INT(facts.numa[1].node, 1);
	CHECK_INT(facts.numa[1].total_bytes, 8 * GIB);
	CHECK_INT(facts.numa[1].free_bytes, INT64_C(10458) * 4096);	/* 410 + 10048 pages */
	CHECK_INT(ka_int(&facts, KA_FRAG_FREE_COSTLY), 80);
	CHECK_REAL(ka_real(&facts, KA_FRAG_UNUSABLE_4, -1), 3211.0 / 17931.0, 1e-12);
	ka_malloc_free(&arena);
}

TEST(pools_of_two_nodes)
{
	KaPool	   *pool;

	collect("el8-4.18");
	CHECK_INT(ka_int(&facts, KA_HP_DEFAULT_SIZE), 2 * MIB);
	CHECK_INT(facts.npools, 2);
	pool = ka_pool(&facts, 2 * MIB);
	REQUIRE(pool != NULL);
	CHECK_INT(pool->total, 500);
	CHECK_INT(pool->free, 120);
	CHECK_INT(pool->reserved, 20);
	CHECK_INT(pool->surplus, 0);
	CHECK_INT(pool->overcommit, 0);
	CHECK_INT(pool->asked, 600);	/* hugepages=600 on the command line */

	/* order 9 and 10: DMA 1 + 2 * 3, node 1 5 + 2 * 4 */
	CHECK_INT(pool->grantable, 7 + 13);
	REQUIRE(pool->nnodes == 2);
	CHECK_INT(pool->nodes[0].total, 200);
	CHECK_INT(pool->nodes[0].free, 100);
	CHECK_INT(pool->nodes[1].node, 1);
	CHECK_INT(pool->nodes[1].total, 300);
	CHECK_INT(pool->nodes[1].free, 20);
	pool = ka_pool(&facts, GIB);
	REQUIRE(pool != NULL);
	CHECK_INT(pool->total, 0);
	CHECK_INT(pool->asked, KA_UNKNOWN);
	CHECK_INT(pool->grantable, KA_UNKNOWN); /* larger than any block */
	ka_malloc_free(&arena);
}

TEST(pools_of_arm64_with_64k_pages)
{
	collect("arm64-7.0");
	CHECK_INT(ka_int(&facts, KA_HP_DEFAULT_SIZE), 512 * MIB);
	REQUIRE(facts.npools == 3);
	CHECK_INT(facts.pools[0].size_bytes, 2 * MIB);
	CHECK_INT(facts.pools[1].size_bytes, 512 * MIB);
	CHECK_INT(facts.pools[2].size_bytes, 16 * GIB);
	CHECK_INT(facts.pools[1].total, 8);
	CHECK_INT(facts.pools[1].free, 3);
	CHECK_INT(facts.pools[1].reserved, 1);
	CHECK_INT(facts.pools[1].asked, KA_UNKNOWN);	/* got what was asked for */

	/* order 5 and above: 8160 + 16384 pages and 5 * 8192, by 32 */
	CHECK_INT(facts.pools[0].grantable, 767 + 1280);
	CHECK_INT(facts.pools[1].grantable, 2 + 5);
	CHECK_INT(facts.pools[2].grantable, KA_UNKNOWN);
	CHECK_INT(ka_int(&facts, KA_THP_PMD_SIZE), 512 * MIB);
	ka_malloc_free(&arena);
}

TEST(pools_by_node)
{
	static const int64_t free_pages[] = {0, 250, 250, 500};
	KaPool	   *pool;

	collect("server-6.8");
	CHECK_INT(facts.nnuma, 4);
	pool = ka_pool(&facts, 2 * MIB);
	REQUIRE(pool != NULL && pool->nnodes == 4);
	for (int node = 0; node < 4; node++)
	{
		CHECK_INT(pool->nodes[node].node, node);
		CHECK_INT(pool->nodes[node].total, 1000);
		CHECK_INT(pool->nodes[node].free, free_pages[node]);
	}
	/* DMA 1 + 6, DMA32 2 * 100, node 2 40 + 2 * 50, node 3 1 + 2 */
	CHECK_INT(pool->grantable, 7 + 200 + 140 + 3);
	ka_malloc_free(&arena);
}

TEST(no_hugetlb_no_thp)
{
	collect("appliance-5.15");
	CHECK_INT(facts.npools, 0);
	CHECK(!ka_known(&facts, KA_HP_DEFAULT_SIZE));
	CHECK(!ka_known(&facts, KA_THP_ENABLED));
	CHECK(!ka_known(&facts, KA_THP_DEFRAG));
	CHECK(!ka_known(&facts, KA_THP_SHMEM));
	CHECK(!ka_known(&facts, KA_THP_PMD_SIZE));
	ka_malloc_free(&arena);
}

TEST(transparent_huge_pages)
{
	collect("server-6.8");
	CHECK_STR(ka_text(&facts, KA_THP_ENABLED), "always");
	CHECK_STR(ka_text(&facts, KA_THP_DEFRAG), "defer+madvise");
	CHECK_STR(ka_text(&facts, KA_THP_SHMEM), "within_size");
	CHECK_INT(ka_int(&facts, KA_THP_PMD_SIZE), 2 * MIB);
	ka_malloc_free(&arena);
}

TEST(sysctls)
{
	collect("el8-4.18");
	CHECK_INT(ka_int(&facts, KA_SYSCTL_NR_HUGEPAGES), 500);
	CHECK_INT(ka_int(&facts, KA_SYSCTL_OVERCOMMIT_MEMORY), 2);
	CHECK_INT(ka_int(&facts, KA_SYSCTL_DIRTY_RATIO), 40);
	CHECK_INT(ka_int(&facts, KA_SYSCTL_ZONE_RECLAIM_MODE), 0);
	CHECK(!ka_known(&facts, KA_SYSCTL_COMPACTION_PROACTIVENESS));	/* since 5.9 */
	CHECK(!ka_known(&facts, KA_SYSCTL_DEFRAG_MODE));
	ka_malloc_free(&arena);
}

TEST(garbage_leaves_all_unknown)
{
	collect("garbage");
	for (int fact = 0; fact < KA_NFACTS; fact++)
	{
		if (facts.v[fact].known)
			printf("# %s is known\n", ka_fact_info[fact].path);
		CHECK(!facts.v[fact].known || fact == KA_KERNEL_CMDLINE);
	}
	REQUIRE(facts.npools == 1);	/* the directory with a legal name */
	CHECK_INT(facts.pools[0].total, KA_UNKNOWN);
	CHECK_INT(facts.pools[0].free, KA_UNKNOWN);
	CHECK_INT(facts.nhugetlb, 0);
	CHECK_INT(facts.nboot_pools, 0);
	for (size_t i = 0; i < facts.nnuma; i++)
		CHECK_INT(facts.numa[i].total_bytes, KA_UNKNOWN);
	ka_malloc_free(&arena);
}

TEST(an_empty_root)
{
	collect("no-such-machine");
	for (int fact = 0; fact < KA_NFACTS; fact++)
		CHECK(!facts.v[fact].known);
	for (int knob = 0; knob < KA_NSYSCTLS; knob++)
		CHECK(!facts.boot[knob].known);
	CHECK(!facts.boot_thp_known);
	ka_malloc_free(&arena);
}

TEST(this_machine)
{
	KaSource	source = {.root = ""};
	struct utsname name;

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	CHECK(ka_collect(&facts, &source));
	uname(&name);
	CHECK_STR(ka_text(&facts, KA_KERNEL_RELEASE), name.release);
	CHECK_STR(ka_text(&facts, KA_KERNEL_MACHINE), name.machine);
	CHECK_INT(ka_int(&facts, KA_KERNEL_PAGE_SIZE), sysconf(_SC_PAGESIZE));
	CHECK(ka_int(&facts, KA_MEM_TOTAL) > ka_int(&facts, KA_MEM_FREE));
	ka_malloc_free(&arena);
}

/* The first allocation, the second ... fails: no crash, and it is said. */
static int	allocations_left;

static void *
failing_alloc(void *ctx, size_t size)
{
	return allocations_left-- > 0 ? arena.alloc(ctx, size) : NULL;
}

TEST(without_memory)
{
	KaSource	source = {.root = ka_machine("debian-6.1"),.data_directory = "/srv/pg/data"};
	int			needed = 0;
	bool		collected;

	do
	{
		KaArena		failing;

		ka_malloc_arena(&arena);
		failing = (KaArena) {failing_alloc, arena.ctx, false};
		allocations_left = needed;
		ka_facts_init(&facts, &failing);
		collected = ka_collect(&facts, &source);
		CHECK_INT(collected, !failing.failed);
		ka_malloc_free(&arena);
	} while (!collected && ++needed < 10000);
	CHECK(collected);
	CHECK(needed > 50);
}

TEST(mappings)
{
	KaSource	source = {.root = ka_machine("el8-4.18"),.pid = 4242};
	KaMapping	mapping;

	/* two parts of one mapping; dynamic segments and private memory are others */
	CHECK(ka_find_mapping(&source, 0, &mapping));
	CHECK_INT(mapping.start, 0x7f0000000000);
	CHECK_INT(mapping.bytes, 2 * GIB);
	CHECK(mapping.huge);
	CHECK(!mapping.sysv);
	CHECK(ka_find_mapping(&source, 0x7f0000001000, &mapping));
	CHECK_INT(mapping.bytes, 2 * GIB);
	CHECK(ka_find_mapping(&source, 0x7f0050000000, &mapping));
	CHECK_INT(mapping.bytes, 2 * GIB);
	CHECK(ka_find_mapping(&source, 0x7f0090000fff, &mapping));
	CHECK_INT(mapping.bytes, 4096);
	CHECK(mapping.sysv && !mapping.huge);
	CHECK(!ka_find_mapping(&source, 0x7f0080000000, &mapping));	/* a hole */
	CHECK_INT(mapping.bytes, KA_UNKNOWN);

	source.pid = 4243;
	CHECK(ka_find_mapping(&source, 0, &mapping));
	CHECK_INT(mapping.bytes, INT64_C(143654912));	/* 0x8900000 */
	CHECK(!mapping.huge && !mapping.sysv);

	source.pid = 1;				/* no such file in the copy */
	CHECK(!ka_find_mapping(&source, 0, &mapping));
	source = (KaSource) {.root = ka_machine("garbage")};
	CHECK(!ka_find_mapping(&source, 0, &mapping));
}

TEST(own_mapping)
{
	KaSource	source = {.root = ""};
	KaMapping	mapping;
	int			on_the_stack = 0;

	CHECK(ka_find_mapping(&source, (uintptr_t) &on_the_stack, &mapping));
	CHECK(mapping.bytes >= sysconf(_SC_PAGESIZE));
	CHECK(!mapping.huge);
}
