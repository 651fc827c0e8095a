/*
 * test_rules_memory.c: limits, overcommit, exhaustion, nodes, boot, platform.
 */
#include "rules_test.h"

TEST(memory_limit)
{
	/* 90 % of 10 GiB are 9663676416 B */
#define SMALL_PAGES(bytes, more) "{'postgres': {'huge_pages': 'off', 'shared_memory_bytes': " #bytes "}, 'memory': {'total_bytes': 10737418240}" more "}"
	static const KaRuleCase cases[] = {
		{"leaves a tenth", "memory.limit", NULL, SMALL_PAGES(9663676416, ""), NO_FACT, 0, SILENT, NULL},
		/* 25 % of 10 GiB, 2560 MiB */
		{"a byte more", "memory.limit", "shared_buffers", SMALL_PAGES(9663676417, ""), NO_FACT, 0, KA_WARNING, "2560MB"},
		{"pools are no RAM for it", "memory.limit", "shared_buffers", SMALL_PAGES(5368709120, ", 'hugepages': {'pools': [{'size_bytes': 1073741824, 'total': 5, 'free': 5}]}"), NO_FACT, 0, KA_WARNING, "1280MB"},
		{"the cgroup's limit", "memory.limit", "shared_buffers", SMALL_PAGES(4294967296, ""), KA_CGROUP_MEMORY_LIMIT, 4294967296, KA_WARNING, "1GB"},
		{"a limit above RAM is none", "memory.limit", NULL, SMALL_PAGES(4294967296, ""), KA_CGROUP_MEMORY_LIMIT, 1e15, SILENT, NULL},
		{"pages of a pool are not charged", "memory.limit", NULL, "{'postgres': {'huge_pages_status': 'on', 'shared_memory_bytes': 4294967296}, 'memory': {'total_bytes': 10737418240}, 'cgroup': {'memory_limit_bytes': 2147483648}}", NO_FACT, 0, SILENT, NULL},
		{"did not start", "memory.limit", NULL, "{'postgres': {'huge_pages': 'off', 'last_error': {'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 4294967297}}, 'memory': {'total_bytes': 4294967296}}", NO_FACT, 0, KA_CRITICAL, "1GB"},
		{"shared memory unknown", "memory.limit", NULL, "{'memory': {'total_bytes': 1}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(memory_overcommit)
{
	/* Limit 1000 MiB; 90 % are 943718400 B; ratio 50, RAM 2000 MiB, no swap. */
#define COMMITTED(bytes, mode, more) "{'memory': {'total_bytes': 2097152000, 'commit_limit_bytes': 1048576000, 'swap_total_bytes': 0, 'committed_bytes': " #bytes "}, 'sysctl': {'vm.overcommit_memory': " #mode more "}}"
	static const KaRuleCase cases[] = {
		{"nine tenths less a byte", "memory.overcommit", NULL, COMMITTED(943718399, 2, ", 'vm.overcommit_ratio': 50"), NO_FACT, 0, SILENT, NULL},
		/* 900 MiB * 1.05 / 2000 MiB = 47.25 %: less than 50, the limit is full for another reason (none to raise it) */
		{"nine tenths", "memory.overcommit", "vm.overcommit_ratio", COMMITTED(943718400, 2, ", 'vm.overcommit_ratio': 50"), NO_FACT, 0, KA_WARNING, NULL},
		/* 1200 MiB * 1.05 / 2000 MiB = 63 % */
		{"beyond the limit", "memory.overcommit", "vm.overcommit_ratio", COMMITTED(1258291200, 2, ", 'vm.overcommit_ratio': 50"), NO_FACT, 0, KA_WARNING, "63"},
		/* 1200 MiB * 1.05 = 1290240 kB */
		{"kbytes exclude the ratio", "memory.overcommit", "vm.overcommit_kbytes", COMMITTED(1258291200, 2, ", 'vm.overcommit_kbytes': 1024000"), NO_FACT, 0, KA_WARNING, "1290240"},
		{"mode 0", "memory.overcommit", NULL, COMMITTED(1258291200, 0, ", 'vm.overcommit_ratio': 50"), NO_FACT, 0, SILENT, NULL},
		{"mode 1", "memory.overcommit", NULL, COMMITTED(1258291200, 1, ", 'vm.overcommit_ratio': 50"), NO_FACT, 0, SILENT, NULL},
		{"mode unknown", "memory.overcommit", NULL, "{'memory': {'commit_limit_bytes': 1, 'committed_bytes': 2}}", NO_FACT, 0, SILENT, NULL},
		/* 600 MiB committed and 500 MiB asked for: 1100 * 1.05 / 2000 = 57.75 % */
		{"the start failed on it", "memory.overcommit", "vm.overcommit_ratio", "{'postgres': {'huge_pages': 'off', 'last_error': {'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 524288000}}, 'memory': {'total_bytes': 2097152000, 'commit_limit_bytes': 1048576000, 'swap_total_bytes': 0, 'committed_bytes': 629145600}, 'sysctl': {'vm.overcommit_memory': 2, 'vm.overcommit_ratio': 50}}", NO_FACT, 0, KA_CRITICAL, "58"},
		/* 4 GiB go to a pool of 16 GiB of RAM, ratio 50: 8 GiB fall to 6, and with the pool 6 - 4 GiB are committed */
#define PLANNED(committed) "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'off', 'shared_memory_bytes': 4294967296}, 'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 0, 'free': 0}]}, " \
	"'memory': {'total_bytes': 17179869184, 'commit_limit_bytes': 8589934592, 'swap_total_bytes': 0, 'committed_bytes': " #committed "}, 'sysctl': {'vm.overcommit_memory': 2, 'vm.overcommit_ratio': 50}}"
		{"too much only until the server restarts", "memory.overcommit", "vm.overcommit_ratio", PLANNED(6442450944), NO_FACT, 0, KA_WARNING, NULL},
		{"never too much", "memory.overcommit", "vm.overcommit_ratio", PLANNED(6442450943), NO_FACT, 0, KA_OK, NULL},
		{"a pool is planned, the limit unknown", "memory.overcommit", NULL, "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'off', 'shared_memory_bytes': 4294967296}, 'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 0, 'free': 0}]}, 'sysctl': {'vm.overcommit_memory': 2}}", NO_FACT, 0, KA_INFO, NULL},
	};

	RUN_CASES(cases);
}

TEST(memory_exhausted)
{
#define AVAILABLE(bytes, tables) "{'memory': {'total_bytes': 10000000000, 'available_bytes': " #bytes ", 'page_tables_bytes': " #tables "}}"
	static const KaRuleCase cases[] = {
		{"5 %", "memory.exhausted", NULL, AVAILABLE(500000000, 0), NO_FACT, 0, SILENT, NULL},
		{"a byte less", "memory.exhausted", NULL, AVAILABLE(499999999, 0), NO_FACT, 0, KA_WARNING, NULL},
		{"unknown", "memory.exhausted", NULL, "{'memory': {'total_bytes': 10000000000, 'free_bytes': 1}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

/* Exhausted by page tables: the pool is the cure and stays recommended. */
TEST(exhausted_by_page_tables)
{
#define STARVED(tables) "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'off', 'shared_memory_bytes': 2147483648}, " \
	"'memory': {'total_bytes': 10000000000, 'available_bytes': 100000000, 'page_tables_bytes': " #tables "}, " \
	"'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 0, 'free': 0}]}}"
	static const KaRuleCase cases[] = {
		{"page tables at a tenth", "huge_pages.use", "vm.nr_hugepages", STARVED(1000000000), NO_FACT, 0, KA_WARNING, "1024"},
		{"a byte less", "huge_pages.use", "vm.nr_hugepages", STARVED(999999999), NO_FACT, 0, KA_INFO, NULL},
	};

	RUN_CASES(cases);
}

TEST(memory_page_tables)
{
#define TABLES(bytes) "{'memory': {'total_bytes': 10000000000, 'page_tables_bytes': " #bytes "}}"
	static const KaRuleCase cases[] = {
		{"below 2 %", "memory.page_tables", NULL, TABLES(199999999), NO_FACT, 0, SILENT, NULL},
		{"2 %", "memory.page_tables", NULL, TABLES(200000000), NO_FACT, 0, KA_INFO, NULL},
		{"below 5 %", "memory.page_tables", NULL, TABLES(499999999), NO_FACT, 0, KA_INFO, NULL},
		{"5 %", "memory.page_tables", NULL, TABLES(500000000), NO_FACT, 0, KA_WARNING, NULL},
		{"RAM unknown", "memory.page_tables", NULL, "{'memory': {'page_tables_bytes': 500000000}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(memory_numa)
{
#define TWO_NODES(a, b) "{'numa': [{'node': 0, 'total_bytes': 10000, 'free_bytes': " #a "}, {'node': 1, 'total_bytes': 10000, 'free_bytes': " #b "}]}"
	static const KaRuleCase cases[] = {
		{"below 2 % and 10 %", "memory.numa", NULL, TWO_NODES(199, 1000), NO_FACT, 0, KA_WARNING, NULL},
		{"2 %", "memory.numa", NULL, TWO_NODES(200, 1000), NO_FACT, 0, SILENT, NULL},
		{"the other one below 10 %", "memory.numa", NULL, TWO_NODES(199, 999), NO_FACT, 0, SILENT, NULL},
		{"both full", "memory.numa", NULL, TWO_NODES(10, 20), NO_FACT, 0, SILENT, NULL},
		{"one node", "memory.numa", NULL, "{'numa': [{'node': 0, 'total_bytes': 10000, 'free_bytes': 0}]}", NO_FACT, 0, SILENT, NULL},
		{"free unknown", "memory.numa", NULL, "{'numa': [{'node': 0, 'total_bytes': 10000}, {'node': 1, 'total_bytes': 10000, 'free_bytes': 9000}]}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(reclaim_zone)
{
	static const KaRuleCase cases[] = {
		{"off", "reclaim.zone", NULL, "{}", KA_SYSCTL_ZONE_RECLAIM_MODE, 0, SILENT, NULL},
		{"on", "reclaim.zone", "vm.zone_reclaim_mode", "{}", KA_SYSCTL_ZONE_RECLAIM_MODE, 1, KA_WARNING, "0"},
		{"on, one node", "reclaim.zone", "vm.zone_reclaim_mode", "{'numa': [{'node': 0}]}", KA_SYSCTL_ZONE_RECLAIM_MODE, 7, KA_INFO, "0"},
		{"unknown", "reclaim.zone", NULL, "{}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(preempt_lazy)
{
#define LAZY(status, bytes, n) "{'postgres': {'huge_pages': 'try', 'huge_pages_status': '" status "', 'shared_memory_bytes': " #bytes ", 'backends': " #n "}, 'kernel': {'release': '7.0.1', 'preempt': 'lazy'}}"
	static const KaRuleCase cases[] = {
		{"8 GiB and 100", "kernel.preempt_lazy", NULL, LAZY("off", 8589934592, 100), NO_FACT, 0, KA_WARNING, NULL},
		{"99", "kernel.preempt_lazy", NULL, LAZY("off", 8589934592, 99), NO_FACT, 0, KA_INFO, NULL},
		{"a byte less", "kernel.preempt_lazy", NULL, LAZY("off", 8589934591, 1000), NO_FACT, 0, KA_OK, NULL},
		{"on huge pages", "kernel.preempt_lazy", NULL, LAZY("on", 8589934592, 1000), NO_FACT, 0, KA_OK, NULL},
		{"another mode", "kernel.preempt_lazy", NULL, "{'postgres': {'huge_pages_status': 'off', 'shared_memory_bytes': 8589934592, 'backends': 1000}, 'kernel': {'preempt': 'full'}}", NO_FACT, 0, SILENT, NULL},
		{"shared memory unknown", "kernel.preempt_lazy", NULL, "{'kernel': {'preempt': 'lazy'}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(boot_persist)
{
#define RUNS(mode) "'postgres': {'huge_pages': '" mode "', 'huge_pages_status': 'on', 'shared_memory_bytes': 6617563136}, " \
	"'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 3200, 'free': 44, 'reserved': 0, 'surplus': 0, 'overcommit': 0}]}, 'sysctl': {'vm.nr_hugepages': 3200}"
	/* 6617563136 B are 7 pages of 1 GiB. */
#define GIGABYTE(boot) "'postgres': {'huge_pages': 'on', 'huge_pages_status': 'on', 'huge_page_size_bytes': 1073741824, 'shared_memory_bytes': 6617563136}, " \
	"'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 1073741824, 'total': 8, 'free': 1, 'reserved': 0}]}, " \
	"'boot': {'cmdline_hugepages': [{'size_bytes': 1073741824, 'pages': " #boot "}]}"
#define BOOTS(value) "'boot': {'sysctl': {'vm.nr_hugepages': {'value': " value ", 'file': '/etc/sysctl.d/x.conf'}}}"
	static const KaRuleCase cases[] = {
		{"the need will be there", "boot.persist", "vm.nr_hugepages", "{" RUNS("on") "," BOOTS("3156") "}", NO_FACT, 0, KA_OK, NULL},
		{"one page less: on will not start", "boot.persist", "vm.nr_hugepages", "{" RUNS("on") "," BOOTS("3155") "}", NO_FACT, 0, KA_CRITICAL, "3200"},
		{"one page less: try will fall back", "boot.persist", "vm.nr_hugepages", "{" RUNS("try") "," BOOTS("3155") "}", NO_FACT, 0, KA_WARNING, "3200"},
		{"nobody looked", "boot.persist", NULL, "{" RUNS("on") "}", NO_FACT, 0, SILENT, NULL},
		{"no file, but a boot argument", "boot.persist", "vm.nr_hugepages", "{" RUNS("on") ", 'boot': {'sysctl': {'vm.nr_hugepages': {'value': null, 'file': null}}, 'cmdline_hugepages': [{'size_bytes': 2097152, 'pages': 3156}]}}", NO_FACT, 0, KA_OK, NULL},
		{"the file comes after the boot argument", "boot.persist", "vm.nr_hugepages", "{" RUNS("on") ", 'boot': {'sysctl': {'vm.nr_hugepages': {'value': 10, 'file': '/etc/sysctl.d/x.conf'}}, 'cmdline_hugepages': [{'size_bytes': 2097152, 'pages': 3156}]}}", NO_FACT, 0, KA_CRITICAL, "3200"},
		{"more than RAM can bear", "boot.persist", "vm.nr_hugepages", "{" RUNS("on") "," BOOTS("5000") "}", KA_MEM_TOTAL, 11000000000, KA_WARNING, ANY_VALUE},
		{"a boot argument that was granted", "boot.persist", NULL, "{'hugepages': {'pools': [{'size_bytes': 1073741824, 'total': 8}]}, 'boot': {'cmdline_hugepages': [{'size_bytes': 1073741824, 'pages': 8}]}}", NO_FACT, 0, SILENT, NULL},
		{"and one that was not", "boot.persist", "hugepages-1048576kB.nr_hugepages", "{'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 1073741824, 'total': 7}]}, 'boot': {'cmdline_hugepages': [{'size_bytes': 1073741824, 'pages': 8}]}}", NO_FACT, 0, KA_WARNING, NULL},
		{"thp comes back", "boot.persist", "thp.enabled", "{'thp': {'enabled': 'madvise'}, 'boot': {'thp_enabled': {'value': 'always', 'file': '/x'}}}", NO_FACT, 0, KA_WARNING, "madvise"},
		{"thp goes", "boot.persist", NULL, "{'thp': {'enabled': 'always'}, 'boot': {'thp_enabled': {'value': 'never', 'file': '/x'}}}", NO_FACT, 0, SILENT, NULL},
		{"nothing sets thp, which may be the kernel's default", "boot.persist", NULL, "{'thp': {'enabled': 'madvise'}, 'boot': {'thp_enabled': {'value': null, 'file': null}}}", NO_FACT, 0, SILENT, NULL},
		{"gigabyte pages: the boot argument suffices", "boot.persist", NULL, "{" GIGABYTE(7) "}", NO_FACT, 0, SILENT, NULL},
		{"gigabyte pages: it does not", "boot.persist", "hugepages-1048576kB.nr_hugepages", "{" GIGABYTE(6) "}", NO_FACT, 0, KA_WARNING, "8"},
		{"nothing sets thp", "boot.persist", "thp.enabled", "{'thp': {'enabled': 'never'}, 'boot': {'thp_enabled': {'value': null, 'file': null}}}", NO_FACT, 0, KA_INFO, NULL},
		{"the policy is lost", "boot.persist", "vm.extfrag_threshold", "{'sysctl': {'vm.extfrag_threshold': 1000}, 'boot': {'sysctl': {'vm.extfrag_threshold': {'value': null, 'file': null}}}}", NO_FACT, 0, KA_WARNING, "1000"},
		{"the default needs no file", "boot.persist", NULL, "{'sysctl': {'vm.extfrag_threshold': 500}, 'boot': {'sysctl': {'vm.extfrag_threshold': {'value': null, 'file': null}}}}", NO_FACT, 0, SILENT, NULL},
		{"another value is set", "boot.persist", "vm.overcommit_memory", "{'sysctl': {'vm.overcommit_memory': 0}, 'boot': {'sysctl': {'vm.overcommit_memory': {'value': 2, 'file': '/x'}}}}", NO_FACT, 0, KA_INFO, "0"},
		{"what another rule wants is what to persist", "boot.persist", "vm.zone_reclaim_mode", "{'boot': {'sysctl': {'vm.zone_reclaim_mode': {'value': 3, 'file': '/x'}}}}", KA_SYSCTL_ZONE_RECLAIM_MODE, 1, KA_INFO, "0"},
		{"sized at boot: no default to compare with", "boot.persist", NULL, "{'sysctl': {'vm.min_free_kbytes': 67584}, 'boot': {'sysctl': {'vm.min_free_kbytes': {'value': null, 'file': null}}}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(platform)
{
	static const KaRuleCase cases[] = {
		{"managed", "platform.managed", NULL, "{'postgres': {'managed': 'cloudsql'}}", NO_FACT, 0, KA_INFO, NULL},
		{"not managed", "platform.managed", NULL, "{'postgres': {'huge_pages': 'on'}}", NO_FACT, 0, SILENT, NULL},
		{"another system", "platform.unsupported", NULL, "{'kernel': {'os': 'darwin'}}", NO_FACT, 0, KA_INFO, NULL},
		{"linux", "platform.unsupported", NULL, "{'kernel': {'os': 'linux', 'sysctl_writable': true, 'container': true}}", NO_FACT, 0, SILENT, NULL},
		{"sandbox", "platform.unsupported", NULL, "{'kernel': {'os': 'linux'}}", KA_KERNEL_SANDBOX, 1, KA_INFO, NULL},
		{"no sandbox", "platform.unsupported", NULL, "{'kernel': {'os': 'linux'}}", KA_KERNEL_SANDBOX, 0, SILENT, NULL},
		{"not writable", "platform.unsupported", NULL, "{}", KA_KERNEL_SYSCTL_WRITABLE, 0, KA_INFO, NULL},
		{"on without huge pages", "platform.unsupported", "huge_pages", "{'postgres': {'huge_pages': 'on'}, 'kernel': {'os': 'openbsd'}}", NO_FACT, 0, KA_CRITICAL, "try"},
		{"windows has them", "platform.unsupported", "huge_pages", "{'postgres': {'huge_pages': 'on'}, 'kernel': {'os': 'windows'}}", NO_FACT, 0, SILENT, NULL},
		{"kernel rules are silent elsewhere", "reclaim.zone", NULL, "{'kernel': {'os': 'freebsd'}}", KA_SYSCTL_ZONE_RECLAIM_MODE, 1, SILENT, NULL},
		{"no value on a managed service", "reclaim.zone", NULL, "{'postgres': {'managed': 'rds'}}", KA_SYSCTL_ZONE_RECLAIM_MODE, 1, KA_WARNING, NULL},
		{"nor where it cannot be written", "reclaim.zone", NULL, "{'kernel': {'sysctl_writable': false}}", KA_SYSCTL_ZONE_RECLAIM_MODE, 1, KA_WARNING, NULL},
	};

	RUN_CASES(cases);
}
