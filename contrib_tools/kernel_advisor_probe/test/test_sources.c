/*
 * test_sources.c: which tracepoints a kernel has, by its BTF: of kernels made
 * up here, and of this one.
 */
#include <bpf/btf.h>
#include <linux/btf.h>
#include <unistd.h>

#include "ka_test.h"
#include "load.h"

static struct btf *btf;
static int	int_type, unsigned_type, ulong_type, bool_type, void_pointer, gfp_type;

static int
pointer_to(const char *name)
{
	int			id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	if (id < 0)
		id = btf__add_struct(btf, name, 0);
	return btf__add_ptr(btf, id);
}

/* A kernel without tracepoints. */
static void
make_kernel(void)
{
	btf = btf__new_empty();
	REQUIRE(btf != NULL);
	int_type = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	unsigned_type = btf__add_int(btf, "unsigned int", 4, 0);
	ulong_type = btf__add_int(btf, "long unsigned int", 8, 0);
	bool_type = btf__add_int(btf, "_Bool", 1, BTF_INT_BOOL);
	void_pointer = btf__add_ptr(btf, 0);
	gfp_type = btf__add_typedef(btf, "gfp_t", unsigned_type);
}

static void
add_tracepoint(const char *name, int n, const int *types)
{
	char		typedef_name[96];
	int			function = btf__add_func_proto(btf, 0);

	REQUIRE(btf__add_func_param(btf, "__data", void_pointer) == 0);
	for (int i = 0; i < n; i++)
		REQUIRE(btf__add_func_param(btf, "argument", types[i]) == 0);
	snprintf(typedef_name, sizeof(typedef_name), "btf_trace_%s", name);
	REQUIRE(btf__add_typedef(btf, typedef_name, btf__add_ptr(btf, function)) > 0);
}

#define TRACEPOINT(name, ...) \
	do { \
		int types[] = {__VA_ARGS__}; \
		add_tracepoint(#name, sizeof(types) / sizeof(types[0]), types); \
	} while (0)

static const char *
check(KaProbeSource source, unsigned *position)
{
	const char *why = ka_check_source(btf, source, position);

	return why ? why : "good";
}

TEST(a_kernel_without)
{
	unsigned	position = 9;

	make_kernel();
	for (int i = 0; i < KA_SOURCE_COUNT; i++)
		CHECK_STR(check((KaProbeSource) i, &position), "this kernel does not have it");
	CHECK_INT(position, 9);
	btf__free(btf);
}

TEST(as_known)
{
	unsigned	position = 9;

	make_kernel();
	TRACEPOINT(mm_page_pcpu_drain, pointer_to("page"), unsigned_type, int_type);
	TRACEPOINT(mm_compaction_begin, pointer_to("compact_control"), ulong_type, ulong_type, bool_type);
	TRACEPOINT(mm_compaction_end, pointer_to("compact_control"), ulong_type, ulong_type, bool_type, int_type);
	TRACEPOINT(mm_vmscan_direct_reclaim_begin, int_type, gfp_type);
	TRACEPOINT(mm_vmscan_direct_reclaim_end, ulong_type);
	CHECK_STR(check(KA_SOURCE_mm_page_pcpu_drain, NULL), "good");
	CHECK_STR(check(KA_SOURCE_mm_compaction_begin, NULL), "good");
	CHECK_STR(check(KA_SOURCE_mm_compaction_end, NULL), "good");
	CHECK_STR(check(KA_SOURCE_mm_vmscan_direct_reclaim_begin, &position), "good");
	CHECK_INT(position, 0);
	CHECK_STR(check(KA_SOURCE_mm_vmscan_direct_reclaim_end, NULL), "good");
	CHECK_STR(check(KA_SOURCE_sched_process_free, NULL), "this kernel does not have it");
	btf__free(btf);
}

/* More arguments behind, and the order in another place. */
TEST(newer)
{
	unsigned	position = 9;

	make_kernel();
	TRACEPOINT(mm_page_pcpu_drain, pointer_to("page"), unsigned_type, int_type, int_type);
	TRACEPOINT(mm_vmscan_direct_reclaim_begin, gfp_type, int_type, pointer_to("mem_cgroup"));
	TRACEPOINT(mm_vmscan_direct_reclaim_end, ulong_type, pointer_to("mem_cgroup"));
	CHECK_STR(check(KA_SOURCE_mm_page_pcpu_drain, NULL), "good");
	CHECK_STR(check(KA_SOURCE_mm_vmscan_direct_reclaim_begin, &position), "good");
	CHECK_INT(position, 1);
	CHECK_STR(check(KA_SOURCE_mm_vmscan_direct_reclaim_end, NULL), "good");
	btf__free(btf);
}

/* Before 5.19 compaction had numbers only. */
TEST(others)
{
	static const char *const other = "its arguments are not the known ones";
	unsigned	position = 9;

	make_kernel();
	TRACEPOINT(mm_compaction_begin, ulong_type, ulong_type, ulong_type, ulong_type, bool_type);
	TRACEPOINT(mm_compaction_end, pointer_to("compact_control"), ulong_type, ulong_type, bool_type);
	TRACEPOINT(mm_page_pcpu_drain, pointer_to("folio"), unsigned_type);
	TRACEPOINT(mm_compaction_deferred, pointer_to("zone"));
	TRACEPOINT(mm_vmscan_direct_reclaim_begin, gfp_type, gfp_type, int_type);
	TRACEPOINT(mm_vmscan_direct_reclaim_end, int_type);
	CHECK_STR(check(KA_SOURCE_mm_compaction_begin, NULL), other);
	CHECK_STR(check(KA_SOURCE_mm_compaction_end, NULL), other);
	CHECK_STR(check(KA_SOURCE_mm_page_pcpu_drain, NULL), other);
	CHECK_STR(check(KA_SOURCE_mm_compaction_deferred, NULL), other);
	CHECK_STR(check(KA_SOURCE_mm_vmscan_direct_reclaim_begin, &position), other);
	CHECK_STR(check(KA_SOURCE_mm_vmscan_direct_reclaim_end, NULL), other);
	CHECK_INT(position, 9);
	/* A typedef that is no tracepoint's. */
	REQUIRE(btf__add_typedef(btf, "btf_trace_mm_page_alloc_extfrag", int_type) > 0);
	CHECK_STR(check(KA_SOURCE_mm_page_alloc_extfrag, NULL), "this kernel does not have it");
	btf__free(btf);
}

TEST(this_kernel)
{
	unsigned	position = 9;
	int			good = 0;

	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		return;
	btf = btf__parse("/sys/kernel/btf/vmlinux", NULL);
	REQUIRE(btf != NULL);
	for (int i = 0; i < KA_SOURCE_COUNT; i++)
	{
		const char *why = check((KaProbeSource) i, &position);

		printf("# %s: %s\n", ka_probe_source_name((unsigned) i), why);
		good += strcmp(why, "good") == 0;
	}
	CHECK(good > 0);
	btf__free(btf);
}
