/*
 * test_rules_kernel.c: stalls, transparent huge pages, checkpoints, devices.
 *
 * Windows of 100 s, so that a count of 100 is one a second.
 */
#include "rules_test.h"

#define ON_HUGE "'postgres': {'huge_pages': 'on', 'huge_pages_status': 'on'}"
#define FS(data, wal) "'storage': {'data': {'filesystem': '" data "'}, 'wal': {'filesystem': '" wal "'}}"
/* "checkpoints take 20 s" */
#define WINDOW(more) "'window': {'seconds': 100, 'checkpoints': 2, 'checkpoint_seconds': 20" more "}"
#define KERNEL(release) "'kernel': {'release': '" release "'}"

TEST(compaction_policy)
{
#define XFS(release, more) "{" ON_HUGE "," KERNEL(release) "," FS("xfs", "xfs") "," WINDOW(", 'thp_fault_fallback': 0" more) "}"
	static const KaRuleCase cases[] = {
		{"one a second", "compaction.policy", "vm.extfrag_threshold", XFS("6.12.1", ""), KA_W_COMPACT_STALL, 100, KA_INFO, "1000"},
		{"less", "compaction.policy", NULL, XFS("6.12.1", ""), KA_W_COMPACT_STALL, 99, SILENT, NULL},
		{"ten a second", "compaction.policy", NULL, XFS("6.12.1", ""), KA_W_COMPACT_STALL, 1000, KA_WARNING, "1000"},
		{"a little less", "compaction.policy", NULL, XFS("6.12.1", ""), KA_W_COMPACT_STALL, 999, KA_INFO, "1000"},
		{"6.6 is the first", "compaction.policy", NULL, XFS("6.6.0", ""), KA_W_COMPACT_STALL, 5000, KA_WARNING, "1000"},
		{"6.5 is not", "compaction.policy", NULL, XFS("6.5.13", ""), KA_W_COMPACT_STALL, 5000, SILENT, NULL},
		{"6.19 is the last", "compaction.policy", NULL, XFS("6.19.3", ""), KA_W_COMPACT_STALL, 5000, KA_WARNING, "1000"},
		{"7.0 needs a trial", "compaction.policy", NULL, XFS("7.0.0", ""), KA_W_COMPACT_STALL, 5000, KA_INFO, "1000"},
		{"kernel unknown", "compaction.policy", NULL, "{" FS("xfs", "xfs") "," WINDOW("") "}", KA_W_COMPACT_STALL, 5000, SILENT, NULL},
		{"file system unknown", "compaction.policy", NULL, "{" KERNEL("6.12.1") "," WINDOW("") "}", KA_W_COMPACT_STALL, 5000, SILENT, NULL},
		{"length unknown", "compaction.policy", NULL, "{" KERNEL("6.12.1") "," FS("xfs", "xfs") ", 'window': {'checkpoints': 1}}", KA_W_COMPACT_STALL, 5000, SILENT, NULL},
		{"ext4 from 6.16", "compaction.policy", NULL, "{" ON_HUGE "," KERNEL("6.16.0") "," FS("ext4", "ext4") "," WINDOW(", 'thp_fault_fallback': 0") "}", KA_W_COMPACT_STALL, 5000, KA_WARNING, "1000"},
		{"ext4 before", "compaction.policy", NULL, "{" ON_HUGE "," KERNEL("6.15.9") "," FS("ext4", "ext4") "," WINDOW(", 'thp_fault_fallback': 0") "}", KA_W_COMPACT_STALL, 5000, SILENT, NULL},
		{"WAL on xfs will do", "compaction.policy", NULL, "{" ON_HUGE "," KERNEL("6.12.0") "," FS("ext4", "xfs") "," WINDOW(", 'thp_fault_fallback': 0") "}", KA_W_COMPACT_STALL, 5000, KA_WARNING, "1000"},
		/* 5000 stalls, 1000 in a fifth of the time: the clock; 2500 fallbacks explain half of them */
		{"THP explains them", "compaction.policy", NULL, XFS("6.12.1", ", 'compact_stall_checkpoint': 1000, 'compact_stall': 5000"), KA_W_THP_FALLBACK, 2500, SILENT, NULL},
		{"not quite", "compaction.policy", NULL, XFS("6.12.1", ", 'compact_stall_checkpoint': 1000, 'compact_stall': 5000"), KA_W_THP_FALLBACK, 2499, KA_WARNING, "1000"},
		/* 1500 of 5000 in a fifth of the time: 1.5 times as many */
		{"but they follow the checkpoints", "compaction.policy", NULL, XFS("6.12.1", ", 'compact_stall_checkpoint': 1500, 'compact_stall': 5000"), KA_W_THP_FALLBACK, 4000, KA_WARNING, "1000"},
		{"fallbacks unknown: less sure", "compaction.policy", NULL, "{" ON_HUGE "," KERNEL("6.12.1") "," FS("xfs", "xfs") "," WINDOW("") "}", KA_W_COMPACT_STALL, 5000, KA_INFO, "1000"},
		{"no THP, no fallbacks", "compaction.policy", NULL, "{" ON_HUGE "," KERNEL("6.12.1") ", 'thp': {'enabled': 'never'}," FS("xfs", "xfs") "," WINDOW("") "}", KA_W_COMPACT_STALL, 5000, KA_WARNING, "1000"},
		{"set already", "compaction.policy", NULL, XFS("6.12.1", ", 'compact_stall': 5000"), KA_SYSCTL_EXTFRAG_THRESHOLD, 1000, KA_INFO, NULL},
		{"both knobs", "compaction.policy", "vm.compaction_proactiveness", XFS("6.12.1", ", 'compact_stall': 5000"), KA_SYSCTL_COMPACTION_PROACTIVENESS, 0, KA_WARNING, "20"},
		{"the other one is set", "compaction.policy", "vm.compaction_proactiveness", XFS("6.12.1", ", 'compact_stall': 5000"), KA_SYSCTL_COMPACTION_PROACTIVENESS, 1, SILENT, NULL},
		/* half of the stalls have a fallback, in step with the clock, but with defer no fault compacts */
		{"faults that cannot stall explain nothing", "compaction.policy", NULL, "{" ON_HUGE "," KERNEL("6.12.1") ", 'thp': {'defrag': 'defer'}," FS("xfs", "xfs") "," WINDOW(", 'compact_stall_checkpoint': 1000, 'compact_stall': 5000") "}", KA_W_THP_FALLBACK, 5000, KA_WARNING, "1000"},
		{"at 1000 somebody must keep a stock", "compaction.policy", "vm.compaction_proactiveness", "{" KERNEL("6.12.1") "," FS("xfs", "xfs") ", 'sysctl': {'vm.extfrag_threshold': 1000}}", KA_SYSCTL_COMPACTION_PROACTIVENESS, 0, KA_INFO, "20"},
		{"at 500 without stalls nobody needs to", "compaction.policy", NULL, "{" KERNEL("6.12.1") "," FS("xfs", "xfs") ", 'sysctl': {'vm.extfrag_threshold': 500}}", KA_SYSCTL_COMPACTION_PROACTIVENESS, 0, SILENT, NULL},
		{"managed", "compaction.policy", NULL, "{'postgres': {'managed': 'x'}," KERNEL("6.12.1") "," FS("xfs", "xfs") "," WINDOW(", 'thp_fault_fallback': 0") "}", KA_W_COMPACT_STALL, 5000, KA_WARNING, NULL},
	};

	RUN_CASES(cases);
}

TEST(compaction_percpu)
{
#define DRAINS(release, drains, pages, more) "{" KERNEL(release) ", 'memory': {'total_bytes': 25769803776}" more "," WINDOW(", 'pcp_drains': " #drains ", 'pcp_drained_pages': " #pages) "}"
	static const KaRuleCase cases[] = {
		/* 24 GiB / 64 MiB */
		{"one a second of 8192 pages", "compaction.percpu", "vm.percpu_pagelist_high_fraction", DRAINS("6.8.0", 100, 819200, ""), NO_FACT, 0, KA_INFO, "384"},
		{"99", "compaction.percpu", NULL, DRAINS("6.8.0", 99, 819200, ""), NO_FACT, 0, SILENT, NULL},
		{"8191 pages", "compaction.percpu", NULL, DRAINS("6.8.0", 100, 819199, ""), NO_FACT, 0, SILENT, NULL},
		{"5.14 has the knob", "compaction.percpu", NULL, DRAINS("5.14.0", 100, 819200, ""), NO_FACT, 0, KA_INFO, "384"},
		{"5.13 has not", "compaction.percpu", NULL, DRAINS("5.13.0", 100, 819200, ""), NO_FACT, 0, SILENT, NULL},
		{"set already", "compaction.percpu", NULL, DRAINS("6.8.0", 100, 819200, ", 'sysctl': {'vm.percpu_pagelist_high_fraction': 384}"), NO_FACT, 0, SILENT, NULL},
		{"set, and the lists still large", "compaction.percpu", NULL, DRAINS("6.8.0", 100, 819200, ", 'sysctl': {'vm.percpu_pagelist_high_fraction': 383}"), NO_FACT, 0, KA_INFO, "384"},
		{"set, on an unknown amount of RAM", "compaction.percpu", NULL, "{" KERNEL("6.8.0") ", 'sysctl': {'vm.percpu_pagelist_high_fraction': 8}," WINDOW(", 'pcp_drains': 100, 'pcp_drained_pages': 819200") "}", NO_FACT, 0, SILENT, NULL},
		{"no probe", "compaction.percpu", NULL, "{" KERNEL("6.8.0") "," WINDOW("") "}", KA_W_PCP_MAX, 1e6, SILENT, NULL},
		{"the policy comes first", "compaction.percpu", NULL, DRAINS("6.8.0", 100, 819200, "," FS("xfs", "xfs")), NO_FACT, 0, KA_INFO, "384"},
	};

	RUN_CASES(cases);
}

TEST(compaction_background)
{
	/* 1 % of 64 GiB is 655.36 MiB: factor 100; 2 GiB of 256 GiB: 78 */
#define RECLAIM(total, available, more) "{" KERNEL("6.1.0") ", 'memory': {'total_bytes': " #total ", 'available_bytes': " #available "}, 'sysctl': {'vm.watermark_scale_factor': 10}," WINDOW(", 'compact_stall': 0" more) "}"
	static const KaRuleCase cases[] = {
		{"one a second", "compaction.background", "vm.watermark_scale_factor", RECLAIM(68719476736, 34359738368, ""), KA_W_ALLOCSTALL, 100, KA_INFO, "100"},
		{"less", "compaction.background", NULL, RECLAIM(68719476736, 34359738368, ""), KA_W_ALLOCSTALL, 99, SILENT, NULL},
		{"ten a second", "compaction.background", NULL, RECLAIM(68719476736, 34359738368, ""), KA_W_ALLOCSTALL, 1000, KA_WARNING, "100"},
		{"pressure of 1 %", "compaction.background", NULL, RECLAIM(68719476736, 34359738368, ", 'pressure_full_us': 1000000"), KA_W_ALLOCSTALL, 100, KA_WARNING, "100"},
		{"a little less pressure", "compaction.background", NULL, RECLAIM(68719476736, 34359738368, ", 'pressure_full_us': 999999"), KA_W_ALLOCSTALL, 100, KA_INFO, "100"},
		{"a large host", "compaction.background", NULL, RECLAIM(274877906944, 137438953472, ""), KA_W_ALLOCSTALL, 1000, KA_WARNING, "78"},
		/* 20 % of 64 GiB are 13743895347.2 */
		{"nothing to reclaim", "compaction.background", NULL, RECLAIM(68719476736, 13743895347, ""), KA_W_ALLOCSTALL, 1000, KA_INFO, NULL},
		{"just enough to reclaim", "compaction.background", NULL, RECLAIM(68719476736, 13743895348, ""), KA_W_ALLOCSTALL, 1000, KA_WARNING, "100"},
		{"it comes with compaction", "compaction.background", NULL, RECLAIM(68719476736, 34359738368, ", 'allocstall': 1000"), KA_W_COMPACT_STALL, 100, SILENT, NULL},
		{"MemAvailable unknown: look", "compaction.background", NULL, "{" WINDOW(", 'compact_stall': 0") "}", KA_W_ALLOCSTALL, 1000, KA_INFO, NULL},
		{"raised already", "compaction.background", NULL, RECLAIM(68719476736, 34359738368, ", 'allocstall': 1000"), KA_SYSCTL_WATERMARK_SCALE_FACTOR, 100, KA_WARNING, NULL},
		{"nobody keeps a stock", "compaction.background", "vm.compaction_proactiveness", "{" KERNEL("5.15.0") "," WINDOW(", 'compact_stall': 100") "}", KA_SYSCTL_COMPACTION_PROACTIVENESS, 0, KA_INFO, "20"},
		{"somebody does", "compaction.background", NULL, "{" KERNEL("5.15.0") "," WINDOW(", 'compact_stall': 100") "}", KA_SYSCTL_COMPACTION_PROACTIVENESS, 20, SILENT, NULL},
		{"before 5.9", "compaction.background", NULL, "{" KERNEL("5.8.0") "," WINDOW(", 'compact_stall': 100") "}", KA_SYSCTL_COMPACTION_PROACTIVENESS, 0, SILENT, NULL},
		{"nobody knows who stalls", "compaction.background", "compaction", "{" WINDOW("") "}", KA_W_COMPACT_STALL, 1000, KA_INFO, NULL},
		{"less often", "compaction.background", NULL, "{" WINDOW("") "}", KA_W_COMPACT_STALL, 999, SILENT, NULL},
		{"faults explain a tenth", "compaction.background", NULL, "{" WINDOW(", 'compact_stall': 1000") "}", KA_W_THP_FALLBACK, 100, SILENT, NULL},
		{"not with defer", "compaction.background", "compaction", "{'thp': {'defrag': 'defer'}," WINDOW(", 'compact_stall': 1000") "}", KA_W_THP_FALLBACK, 100, KA_INFO, NULL},
		{"from 7.0 on large writes reclaim at 1000", "compaction.background", "vm.watermark_scale_factor", "{" KERNEL("7.0.0") "," FS("xfs", "xfs") ", 'memory': {'total_bytes': 68719476736, 'available_bytes': 34359738368}, 'sysctl': {'vm.watermark_scale_factor': 10, 'vm.extfrag_threshold': 1000}," WINDOW(", 'compact_stall': 0") "}", KA_W_ALLOCSTALL, 1000, KA_INFO, NULL},
		{"before that they do not", "compaction.background", "vm.watermark_scale_factor", "{" KERNEL("6.19.0") "," FS("xfs", "xfs") ", 'memory': {'total_bytes': 68719476736, 'available_bytes': 34359738368}, 'sysctl': {'vm.watermark_scale_factor': 10, 'vm.extfrag_threshold': 1000}," WINDOW(", 'compact_stall': 0") "}", KA_W_ALLOCSTALL, 1000, KA_WARNING, "100"},
		{"defrag_mode with stalls", "compaction.background", "vm.defrag_mode", "{" WINDOW(", 'compact_stall': 100") "}", KA_SYSCTL_DEFRAG_MODE, 1, KA_INFO, "0"},
		{"without", "compaction.background", NULL, "{" WINDOW(", 'compact_stall': 99") "}", KA_SYSCTL_DEFRAG_MODE, 1, SILENT, NULL},
		/* 5 % of 1000000 KiB are 50000; sqrt(16 * 1000000) = 4000 */
		{"min_free of 5 %", "compaction.background", NULL, "{'memory': {'total_bytes': 1024000000}}", KA_SYSCTL_MIN_FREE_KBYTES, 50000, SILENT, NULL},
		{"more", "compaction.background", "vm.min_free_kbytes", "{'memory': {'total_bytes': 1024000000}}", KA_SYSCTL_MIN_FREE_KBYTES, 50001, KA_INFO, "4000"},
	};

	RUN_CASES(cases);
}

TEST(compaction_not_cause)
{
#define DIP(more) "{" WINDOW(", 'dip_pct': 10" more) "}"
	static const KaRuleCase cases[] = {
		{"a dip of 10 %", "compaction.not_cause", NULL, DIP(", 'allocstall': 0"), KA_W_COMPACT_STALL, 0, KA_OK, NULL},
		{"less", "compaction.not_cause", NULL, "{" WINDOW(", 'dip_pct': 9.9, 'allocstall': 0") "}", KA_W_COMPACT_STALL, 0, SILENT, NULL},
		{"computed: 1000 to 900", "compaction.not_cause", NULL, "{" WINDOW(", 'tps_idle': 1000, 'tps_checkpoint': 900, 'allocstall': 0") "}", KA_W_COMPACT_STALL, 0, KA_OK, NULL},
		{"one in ten seconds", "compaction.not_cause", NULL, DIP(", 'allocstall': 0"), KA_W_COMPACT_STALL, 10, SILENT, NULL},
		{"less often", "compaction.not_cause", NULL, DIP(", 'allocstall': 0"), KA_W_COMPACT_STALL, 9, KA_OK, NULL},
		{"reclaim moved", "compaction.not_cause", NULL, DIP(", 'compact_stall': 0"), KA_W_ALLOCSTALL, 10, SILENT, NULL},
		{"reclaims are not counted", "compaction.not_cause", NULL, DIP(""), KA_W_COMPACT_STALL, 0, KA_OK, NULL},
		{"compactions are not counted", "compaction.not_cause", NULL, DIP(""), KA_W_ALLOCSTALL, 0, SILENT, NULL},
		{"zero needs no length", "compaction.not_cause", NULL, "{'window': {'dip_pct': 50, 'allocstall': 0}}", KA_W_COMPACT_STALL, 0, KA_OK, NULL},
		{"one does", "compaction.not_cause", NULL, "{'window': {'dip_pct': 50, 'allocstall': 0}}", KA_W_COMPACT_STALL, 1, SILENT, NULL},
		{"lists are drained", "compaction.not_cause", NULL, DIP(", 'compact_stall': 0, 'allocstall': 0"), KA_W_PCP_DRAINS, 100, SILENT, NULL},
		{"less often drained", "compaction.not_cause", NULL, DIP(", 'compact_stall': 0, 'allocstall': 0"), KA_W_PCP_DRAINS, 99, KA_OK, NULL},
		{"1 % of the time waits for memory", "compaction.not_cause", NULL, DIP(", 'compact_stall': 0, 'allocstall': 0"), KA_W_PRESSURE_FULL_US, 1000000, SILENT, NULL},
		{"less", "compaction.not_cause", NULL, DIP(", 'compact_stall': 0, 'allocstall': 0"), KA_W_PRESSURE_FULL_US, 999999, KA_OK, NULL},
		{"faster during checkpoints", "compaction.not_cause", NULL, "{" WINDOW(", 'dip_pct': -30, 'allocstall': 0") "}", KA_W_COMPACT_STALL, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(thp_defrag)
{
#define FAULTS(defrag, stalls, fallbacks) "{'thp': {'enabled': 'always', 'defrag': '" defrag "'}," WINDOW(", 'compact_stall': " #stalls ", 'thp_fault_fallback': " #fallbacks) "}"
	static const KaRuleCase cases[] = {
		{"five a second", "thp.defrag", NULL, FAULTS("always", 500, 50), NO_FACT, 0, KA_WARNING, "defer"},
		{"less", "thp.defrag", NULL, FAULTS("always", 499, 50), NO_FACT, 0, KA_INFO, "defer"},
		{"one in ten seconds", "thp.defrag", NULL, FAULTS("madvise", 10, 10), NO_FACT, 0, KA_INFO, "defer"},
		{"less often", "thp.defrag", NULL, FAULTS("madvise", 9, 9), NO_FACT, 0, SILENT, NULL},
		{"fallbacks below a tenth", "thp.defrag", NULL, FAULTS("always", 500, 49), NO_FACT, 0, SILENT, NULL},
		{"defer+madvise stalls as well", "thp.defrag", NULL, FAULTS("defer+madvise", 500, 500), NO_FACT, 0, KA_WARNING, "defer"},
		{"defer does not", "thp.defrag", NULL, FAULTS("defer", 500, 500), NO_FACT, 0, SILENT, NULL},
		{"never does not", "thp.defrag", NULL, FAULTS("never", 500, 500), NO_FACT, 0, SILENT, NULL},
		{"THP is off", "thp.defrag", NULL, "{'thp': {'enabled': 'never', 'defrag': 'always'}," WINDOW(", 'compact_stall': 500, 'thp_fault_fallback': 500") "}", NO_FACT, 0, SILENT, NULL},
		{"no memory left to tune with", "thp.defrag", NULL, "{'memory': {'total_bytes': 1000000000, 'available_bytes': 49999999}, 'thp': {'enabled': 'always', 'defrag': 'always'}," WINDOW(", 'compact_stall': 500, 'thp_fault_fallback': 500") "}", NO_FACT, 0, KA_WARNING, NULL},
		{"before defer", "thp.defrag", NULL, "{" KERNEL("3.10.0") ", 'thp': {'enabled': 'always', 'defrag': 'always'}," WINDOW(", 'compact_stall': 500, 'thp_fault_fallback': 500") "}", NO_FACT, 0, KA_WARNING, "never"},
		{"fallbacks unknown: look", "thp.defrag", NULL, "{'thp': {'enabled': 'always', 'defrag': 'always'}," WINDOW("") "}", KA_W_COMPACT_STALL, 100, KA_INFO, NULL},
	};

	RUN_CASES(cases);
}

TEST(thp_enabled)
{
#define THP(enabled, pmd) "{'thp': {'enabled': '" enabled "', 'pmd_size_bytes': " #pmd "}}"
	static const KaRuleCase cases[] = {
		{"64 MiB", "thp.enabled", NULL, THP("always", 67108864), NO_FACT, 0, KA_INFO, "madvise"},
		{"32 MiB", "thp.enabled", NULL, THP("always", 33554432), NO_FACT, 0, SILENT, NULL},
		{"madvise", "thp.enabled", NULL, THP("madvise", 536870912), NO_FACT, 0, SILENT, NULL},
		/* 65536 / 8 * 65536 = 512 MiB */
		{"from the page size", "thp.enabled", NULL, "{'thp': {'enabled': 'always'}}", KA_KERNEL_PAGE_SIZE, 65536, KA_INFO, "madvise"},
		{"from the page size: 2 MiB", "thp.enabled", NULL, "{'thp': {'enabled': 'always'}}", KA_KERNEL_PAGE_SIZE, 4096, SILENT, NULL},
		{"stalls, defrag unknown", "thp.enabled", NULL, "{'thp': {'enabled': 'always'}," WINDOW(", 'compact_stall': 500, 'thp_fault_fallback': 500") "}", NO_FACT, 0, KA_WARNING, "madvise"},
		{"stalls, defrag spares it", "thp.enabled", NULL, "{'thp': {'enabled': 'always', 'defrag': 'madvise'}," WINDOW(", 'compact_stall': 500, 'thp_fault_fallback': 500") "}", NO_FACT, 0, SILENT, NULL},
		{"no stall: said", "thp.enabled", NULL, "{'thp': {'enabled': 'always'}," WINDOW(", 'compact_stall': 0, 'thp_fault_fallback': 0") "}", NO_FACT, 0, KA_OK, NULL},
	};

	RUN_CASES(cases);
}

TEST(thp_shmem)
{
	/* 5000 stalls; checkpoints take a fifth of the time */
#define SHMEM_ON_XFS(inside) "{'postgres': {'huge_pages': 'off', 'shared_memory_bytes': 6617563136}, 'thp': {'shmem_enabled': 'always'}, " \
	"'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 0, 'free': 0}]}, " \
	KERNEL("6.12.1") "," FS("xfs", "xfs") "," WINDOW(", 'compact_stall': 5000, 'compact_stall_checkpoint': " #inside) "}"
#define SHMEM(value, status, more) "{'postgres': {'huge_pages': 'try', 'huge_pages_status': '" status "', 'shared_memory_bytes': 6617563136}, 'thp': {'shmem_enabled': '" value "', 'pmd_size_bytes': 2097152}, " \
	"'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 0, 'free': 0" more "}]}, " WINDOW("") "}"
	static const KaRuleCase cases[] = {
		{"always with stalls", "thp.shmem", NULL, SHMEM("always", "off", ""), KA_W_COMPACT_STALL, 10, KA_INFO, "never"},
		{"fewer", "thp.shmem", NULL, SHMEM("always", "off", ""), KA_W_COMPACT_STALL, 9, SILENT, NULL},
		{"five a second", "thp.shmem", NULL, SHMEM("always", "off", ""), KA_W_COMPACT_STALL, 500, KA_WARNING, "never"},
		{"defrag is not always: nobody's fault here", "thp.shmem", NULL, "{'thp': {'shmem_enabled': 'always', 'defrag': 'madvise'}, 'postgres': {'huge_pages_status': 'off'}," WINDOW("") "}", KA_W_COMPACT_STALL, 500, KA_INFO, NULL},
		{"which counted from 5.12 on", "thp.shmem", NULL, "{'kernel': {'release': '5.11.0'}, 'thp': {'shmem_enabled': 'always', 'defrag': 'madvise'}, 'postgres': {'huge_pages_status': 'off'}," WINDOW("") "}", KA_W_COMPACT_STALL, 500, KA_WARNING, NULL},
		{"writes of large folios hide it", "thp.shmem", NULL, "{'kernel': {'release': '6.8.0'}, 'storage': {'wal': {'filesystem': 'xfs'}}, 'thp': {'shmem_enabled': 'always', 'defrag': 'always'}, 'postgres': {'huge_pages_status': 'off'}," WINDOW(", 'compact_stall': 500") "}", KA_W_THP_FILE_FALLBACK, 49, SILENT, NULL},
		{"unless its own faults are counted", "thp.shmem", NULL, "{'kernel': {'release': '6.8.0'}, 'storage': {'wal': {'filesystem': 'xfs'}}, 'thp': {'shmem_enabled': 'always', 'defrag': 'always'}, 'postgres': {'huge_pages_status': 'off'}," WINDOW(", 'compact_stall': 500") "}", KA_W_THP_FILE_FALLBACK, 50, KA_WARNING, NULL},
		{"within_size as well", "thp.shmem", NULL, SHMEM("within_size", "off", ""), KA_W_COMPACT_STALL, 10, KA_INFO, "never"},
		{"write path with large folios, in step with the checkpoints", "thp.shmem", NULL, SHMEM_ON_XFS(1500), NO_FACT, 0, SILENT, NULL},
		{"with the clock", "thp.shmem", NULL, SHMEM_ON_XFS(1499), NO_FACT, 0, KA_WARNING, "never"},
		{"on huge pages", "thp.shmem", NULL, SHMEM("always", "on", ""), KA_W_COMPACT_STALL, 500, SILENT, NULL},
		{"advise has no effect", "thp.shmem", NULL, SHMEM("advise", "off", ""), NO_FACT, 0, KA_INFO, NULL},
		{"never, and a pool can be had", "thp.shmem", NULL, SHMEM("never", "off", ", 'grantable': 3156"), NO_FACT, 0, SILENT, NULL},
		{"never, and no pool can be had", "thp.shmem", NULL, SHMEM("never", "off", ", 'grantable': 3155"), NO_FACT, 0, KA_INFO, "always"},
	};

	RUN_CASES(cases);
}

TEST(checkpoint_spacing)
{
	/*
	 * 628604928 B of WAL in 46 s: 4.10e9 B in 300 s, times 1.9 times 1.1 is
	 * 8.57e9 B, 7.98 GiB.
	 */
#define SPACED(timed, requested, seconds, more) "{'postgres': {'version_num': 170000, 'checkpoint_timeout_s': 300, 'max_wal_size_bytes': 1073741824, 'checkpoint_completion_target': 0.9" more "}, " \
	"'window': {'checkpoints_timed': " #timed ", 'checkpoints_requested': " #requested ", 'seconds': " #seconds ", 'distance_bytes_avg': 628604928}}"
	static const KaRuleCase cases[] = {
		{"four of four", "checkpoint.spacing", "max_wal_size", SPACED(0, 4, 184, ""), NO_FACT, 0, KA_WARNING, "8GB"},
		{"two are no ratio", "checkpoint.spacing", NULL, SPACED(0, 2, 92, ""), NO_FACT, 0, SILENT, NULL},
		{"three are", "checkpoint.spacing", NULL, SPACED(0, 3, 138, ""), NO_FACT, 0, KA_WARNING, "8GB"},
		{"half of them", "checkpoint.spacing", NULL, SPACED(2, 2, 184, ""), NO_FACT, 0, KA_WARNING, "8GB"},
		{"less than half", "checkpoint.spacing", NULL, SPACED(3, 2, 230, ""), NO_FACT, 0, SILENT, NULL},
		/* an interval of 150 s is half of the timeout: 628604928 * 2 * 1.9 * 1.1 = 2.63e9, 2.45 GiB */
		{"half of the timeout", "checkpoint.spacing", NULL, SPACED(0, 4, 600, ""), NO_FACT, 0, KA_INFO, "3GB"},
		{"a little less", "checkpoint.spacing", NULL, SPACED(0, 4, 599, ""), NO_FACT, 0, KA_WARNING, "3GB"},
		{"spans a restart", "checkpoint.spacing", NULL, SPACED(0, 4, 184, ""), KA_W_SPANS_RESTART, 1, SILENT, NULL},
		{"a standby", "checkpoint.spacing", NULL, SPACED(0, 4, 184, ""), KA_PG_IN_RECOVERY, 1, SILENT, NULL},
		/* before 11 the divisor is 2 + 0.9: 4.10e9 * 2.9 * 1.1 = 1.308e10, 12.2 GiB */
		{"before 11", "checkpoint.spacing", NULL, SPACED(0, 4, 184, ""), KA_PG_VERSION_NUM, 100000, KA_WARNING, "13GB"},
		/* half of the trigger distance, 1 GiB / 1.9 / 2 = 282563638 */
		/* 10 MiB in 46 s: 300 s of it take less than the default of 1 GB */
		{"max_wal_size unknown, hardly any WAL", "checkpoint.spacing", "max_wal_size", "{'window': {'checkpoints_timed': 0, 'checkpoints_requested': 4, 'seconds': 184, 'distance_bytes_avg': 10485760}}", NO_FACT, 0, KA_WARNING, NULL},
		{"max_wal_size unknown", "checkpoint.spacing", "max_wal_size", "{'window': {'checkpoints_timed': 0, 'checkpoints_requested': 4, 'seconds': 184, 'distance_bytes_avg': 628604928}}", NO_FACT, 0, KA_WARNING, "8GB"},
		{"hardly any WAL: commands", "checkpoint.spacing", NULL, SPACED(0, 4, 184, ""), KA_W_DISTANCE, 282563637, KA_INFO, NULL},
		{"enough WAL", "checkpoint.spacing", NULL, SPACED(0, 4, 184, ""), KA_W_DISTANCE, 282563639, KA_WARNING, "4GB"},
		{"target of 0.5", "checkpoint.spacing", "checkpoint_completion_target", "{}", KA_PG_COMPLETION_TARGET, 0.5, KA_INFO, "0.9"},
		{"target of 0.7", "checkpoint.spacing", NULL, "{}", KA_PG_COMPLETION_TARGET, 0.7, SILENT, NULL},
		{"target of 0.5, felt", "checkpoint.spacing", "checkpoint_completion_target", "{'window': {'dip_pct': 10}}", KA_PG_COMPLETION_TARGET, 0.5, KA_WARNING, "0.9"},
	};

	RUN_CASES(cases);
}

TEST(checkpoint_sync)
{
#define SYNC(more) "{'window': {'seconds': 100" more "}, 'memory': {'total_bytes': 107374182400, 'available_bytes': 107374182400}, 'sysctl': {'vm.dirty_background_ratio': 10}}"
	static const KaRuleCase cases[] = {
		/* 1 % of 100 GiB is 1 GiB; 10 GiB in 1 s or less allow it */
		{"half a second", "checkpoint.sync", "vm.dirty_background_bytes", SYNC(""), KA_W_SYNC_MS, 500, KA_INFO, "1073741824"},
		{"less", "checkpoint.sync", NULL, SYNC(""), KA_W_SYNC_MS, 499, SILENT, NULL},
		{"a second", "checkpoint.sync", NULL, SYNC(""), KA_W_SYNC_MS, 1000, KA_WARNING, "1073741824"},
		{"longest of 2 s", "checkpoint.sync", NULL, SYNC(""), KA_W_SYNC_MAX_MS, 2000, KA_INFO, "1073741824"},
		{"longest of less", "checkpoint.sync", NULL, SYNC(""), KA_W_SYNC_MAX_MS, 1999, SILENT, NULL},
		{"longest of 5 s", "checkpoint.sync", NULL, SYNC(""), KA_W_SYNC_MAX_MS, 5000, KA_WARNING, "1073741824"},
		/* 10 GiB in 40 s: 256 MiB a second */
		{"a slow device", "checkpoint.sync", NULL, SYNC(""), KA_W_SYNC_MS, 40000, KA_WARNING, "268435456"},
		/* 10 GiB in 400 s: 25.6 MiB a second, at least 64 MiB */
		{"a very slow device", "checkpoint.sync", NULL, SYNC(""), KA_W_SYNC_MS, 400000, KA_WARNING, "67108864"},
		{"written back early already", "checkpoint.sync", NULL, "{'window': {'sync_ms_avg': 1000}, 'memory': {'total_bytes': 107374182400}}", KA_SYSCTL_DIRTY_BACKGROUND_BYTES, 67108864, KA_WARNING, NULL},
		{"RAM unknown", "checkpoint.sync", NULL, "{}", KA_W_SYNC_MS, 9000, KA_WARNING, NULL},
		{"spans a restart", "checkpoint.sync", NULL, SYNC(", 'sync_ms_avg': 9000"), KA_W_SPANS_RESTART, 1, SILENT, NULL},
		{"flush_after 0", "checkpoint.sync", "checkpoint_flush_after", SYNC(", 'sync_ms_avg': 9000"), KA_PG_FLUSH_AFTER, 0, KA_INFO, "256kB"},
		{"flush_after at its default", "checkpoint.sync", "checkpoint_flush_after", SYNC(", 'sync_ms_avg': 9000"), KA_PG_FLUSH_AFTER, 262144, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(checkpoint_visibility)
{
	static const KaRuleCase cases[] = {
		{"off", "checkpoint.visibility", "log_checkpoints", "{}", KA_PG_LOG_CHECKPOINTS, 0, KA_INFO, "on"},
		{"on", "checkpoint.visibility", NULL, "{}", KA_PG_LOG_CHECKPOINTS, 1, SILENT, NULL},
		{"unknown", "checkpoint.visibility", NULL, "{}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(storage_saturated)
{
	static const KaRuleCase cases[] = {
		{"90 % and 10 ms", "storage.saturated", NULL, "{'window': {'write_latency_us_avg': 10000}}", KA_W_UTIL, 90, KA_WARNING, NULL},
		{"less busy", "storage.saturated", NULL, "{'window': {'write_latency_us_avg': 10000}}", KA_W_UTIL, 89.9, SILENT, NULL},
		{"faster", "storage.saturated", NULL, "{'window': {'device_util_pct': 90}}", KA_W_LATENCY, 9999, SILENT, NULL},
		{"latency unknown", "storage.saturated", NULL, "{}", KA_W_UTIL, 90, KA_INFO, NULL},
		{"latency unknown, and throughput dips", "storage.saturated", NULL, "{'window': {'dip_pct': 10}}", KA_W_UTIL, 90, KA_WARNING, NULL},
		{"utilisation unknown, 50 ms", "storage.saturated", NULL, "{}", KA_W_LATENCY, 50000, KA_INFO, NULL},
		{"less", "storage.saturated", NULL, "{}", KA_W_LATENCY, 49999, SILENT, NULL},
		{"nothing known", "storage.saturated", NULL, "{}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(io_contiguity)
{
#define REQUESTS(mean, fragmented) "{'window': {'write_request_bytes_avg': " #mean ", 'write_request_bytes_unfragmented': 400000}, 'fragmentation': {" fragmented "}}"
	static const KaRuleCase cases[] = {
		{"half, index 0.9", "io.contiguity", NULL, REQUESTS(200000, "'unusable_index_order4': 0.9"), NO_FACT, 0, KA_INFO, NULL},
		{"more than half", "io.contiguity", NULL, REQUESTS(200001, "'unusable_index_order4': 0.9"), NO_FACT, 0, SILENT, NULL},
		{"index below", "io.contiguity", NULL, REQUESTS(200000, "'unusable_index_order4': 0.89"), NO_FACT, 0, SILENT, NULL},
		{"no block free", "io.contiguity", NULL, REQUESTS(200000, "'free_costly_blocks': 0"), NO_FACT, 0, KA_INFO, NULL},
		{"one block free", "io.contiguity", NULL, REQUESTS(200000, "'free_costly_blocks': 1"), NO_FACT, 0, SILENT, NULL},
		{"fragmentation unknown", "io.contiguity", NULL, REQUESTS(200000, ""), NO_FACT, 0, SILENT, NULL},
		{"nothing to compare with", "io.contiguity", NULL, "{'window': {'write_request_bytes_avg': 8192}, 'fragmentation': {'unusable_index_order4': 1}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}
