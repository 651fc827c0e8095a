/*
 * test_rules_hugepages.c: the rules on huge pages and pools, at their borders.
 *
 * The server of most cases: 6617563136 B of shared memory, which is 3155.5
 * pages of 2 MiB, so 3156; its page tables are 6617563136 / 4096 * 8 B =
 * 12.3 MiB a backend.
 */
#include "rules_test.h"

#define SERVER "'postgres': {'version_num': 170000, 'huge_pages': 'try', 'huge_pages_status': 'off', " \
	"'shared_memory_bytes': 6617563136, 'shared_memory_huge_pages': 3156, 'backends': 400}"
#define SERVER_ON "'postgres': {'version_num': 170000, 'huge_pages': 'on', 'huge_pages_status': 'on', " \
	"'shared_memory_bytes': 6617563136, 'shared_memory_huge_pages': 3156, 'backends': 400}"
#define RAM "'memory': {'total_bytes': 25769803776}"
#define POOL(total, free, more) "'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, " \
	"'total': " #total ", 'free': " #free ", 'reserved': 0, 'surplus': 0, 'overcommit': 0" more "}]}"

TEST(use)
{
	/* Page tables of a backend: shared / 512. 2 MiB (always) is 1 GiB of shared memory, 512 KiB (never) is 256 MiB. */
#define PLAIN(bytes) "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'off', 'shared_memory_bytes': " #bytes "}, " POOL(0, 0, "") "}"
#define CONNECTED(bytes, n, ram) "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'off', 'shared_memory_bytes': " #bytes \
	", 'max_connections': " #n "}, 'memory': {'total_bytes': " #ram "}, " POOL(0, 0, "") "}"
	static const KaRuleCase cases[] = {
		{"pays: all that the server asks for", "huge_pages.use", "vm.nr_hugepages", "{" SERVER "," RAM "," POOL(0, 0, "") "}", NO_FACT, 0, KA_WARNING, "3156"},
		{"1 GiB pays whatever the connections", "huge_pages.use", "vm.nr_hugepages", PLAIN(1073741824), NO_FACT, 0, KA_WARNING, "512"},
		{"one page less leaves it to the connections", "huge_pages.use", "vm.nr_hugepages", PLAIN(1073737728), NO_FACT, 0, KA_INFO, NULL},
		{"256 MiB may pay", "huge_pages.use", "vm.nr_hugepages", PLAIN(268435456), NO_FACT, 0, KA_INFO, NULL},
		{"one page less never pays", "huge_pages.use", NULL, PLAIN(268431360), NO_FACT, 0, SILENT, NULL},
		{"one page less: said", "huge_pages.not_worth", NULL, PLAIN(268431360), NO_FACT, 0, KA_OK, NULL},
		/* 512 MiB are 1 MiB a backend: 64 connections give 64 MiB, 1 % of 6.25 GiB. */
		{"64 connections reach 64 MiB", "huge_pages.use", "vm.nr_hugepages", CONNECTED(536870912, 64, 6710886400), NO_FACT, 0, KA_WARNING, "256"},
		{"63 do not", "huge_pages.not_worth", NULL, CONNECTED(536870912, 63, 6710886400), NO_FACT, 0, KA_OK, NULL},
		{"nor do 64 on a larger host", "huge_pages.not_worth", NULL, CONNECTED(536870912, 64, 6917529027), NO_FACT, 0, KA_OK, NULL},
		{"on huge pages already", "huge_pages.use", "huge_pages", "{" SERVER_ON "," POOL(3156, 0, "") "}", NO_FACT, 0, KA_OK, NULL},
		{"unknown whether it is", "huge_pages.use", "huge_pages", "{'postgres': {'huge_pages': 'try', 'shared_memory_bytes': 6617563136}}", NO_FACT, 0, KA_INFO, NULL},
		{"the pages are there in another size", "huge_pages.use", NULL, "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'off', 'huge_page_size_bytes': 1073741824, 'shared_memory_bytes': 6617563136}, 'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 1073741824, 'total': 0, 'free': 0}, {'size_bytes': 2097152, 'total': 3200, 'free': 3200}]}}", NO_FACT, 0, SILENT, NULL},
		{"there are no pages of that size", "huge_pages.use", NULL, "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'off', 'huge_page_size_bytes': 16777216, 'shared_memory_bytes': 6617563136}, " POOL(0, 0, "") "}", NO_FACT, 0, SILENT, NULL},
		{"a pool is there: a restart will do", "huge_pages.use", NULL, "{" SERVER "," POOL(3156, 3156, "") "}", NO_FACT, 0, SILENT, NULL},
		{"a pool is there, and huge_pages off", "huge_pages.use", "huge_pages", "{'postgres': {'huge_pages': 'off', 'shared_memory_bytes': 6617563136}, " POOL(3156, 3156, "") "}", NO_FACT, 0, KA_WARNING, "try"},
		{"a pool is there, its free pages are not known", "huge_pages.use", "vm.nr_hugepages", "{" SERVER ", 'sysctl': {'vm.nr_hugepages': 3156}}", NO_FACT, 0, KA_INFO, NULL},
		{"a smaller one", "huge_pages.use", "vm.nr_hugepages", "{" SERVER "}", KA_SYSCTL_NR_HUGEPAGES, 3155, KA_WARNING, "3156"},
		{"no page size: the server's figure will do", "huge_pages.use", "vm.nr_hugepages", "{" SERVER "," RAM "}", NO_FACT, 0, KA_WARNING, "3156"},
		/* 3156 * 2 MiB = 6618611712 B are 90 % of 7354013013.3 B. */
		{"leaves a tenth of RAM", "huge_pages.use", "vm.nr_hugepages", "{" SERVER "," POOL(0, 0, "") "}", KA_MEM_TOTAL, 7354013014, KA_WARNING, "3156"},
		{"leaves less", "huge_pages.use", "vm.nr_hugepages", "{" SERVER "," POOL(0, 0, "") "}", KA_MEM_TOTAL, 7354013013, KA_INFO, NULL},
		{"before 9.4", "huge_pages.use", NULL, "{" SERVER "," POOL(0, 0, "") "}", KA_PG_VERSION_NUM, 90300, SILENT, NULL},
		{"managed", "huge_pages.use", NULL, "{'postgres': {'managed': 'rds', 'huge_pages': 'off', 'huge_pages_status': 'off', 'shared_memory_bytes': 6617563136}}", NO_FACT, 0, SILENT, NULL},
		/* others hold 100 of the pool: 3156 + 100 */
		{"others' pages are kept", "huge_pages.pool_short", "vm.nr_hugepages", "{" SERVER "," RAM "," POOL(100, 0, "") "}", NO_FACT, 0, KA_WARNING, "3256"},
	};

	RUN_CASES(cases);
}

TEST(pool_short)
{
#define ON_DOWN "'postgres': {'huge_pages': 'on', 'shared_memory_bytes': 6617563136, 'last_error': {'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 6618611712}}"
	static const KaRuleCase cases[] = {
		{"one page short", "huge_pages.pool_short", "vm.nr_hugepages", "{" SERVER "," RAM "," POOL(3155, 3155, "") "}", NO_FACT, 0, KA_WARNING, "3156"},
		{"exact", "huge_pages.pool_short", NULL, "{" SERVER "," RAM "," POOL(3156, 3156, "") "}", NO_FACT, 0, SILENT, NULL},
		{"overcommit fills up", "huge_pages.pool_short", NULL, "{" SERVER ", 'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 10, 'free': 10, 'reserved': 0, 'surplus': 4, 'overcommit': 3150}]}}", NO_FACT, 0, SILENT, NULL},
		{"overcommit is used up by one", "huge_pages.pool_short", NULL, "{" SERVER ", 'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 10, 'free': 10, 'reserved': 0, 'surplus': 5, 'overcommit': 3150}]}}", NO_FACT, 0, KA_WARNING, "3156"},
		{"reserved pages are not free", "huge_pages.pool_short", NULL, "{" SERVER ", 'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 3200, 'free': 3200, 'reserved': 45, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, KA_WARNING, "3201"},
		{"its own pages are its own", "huge_pages.pool_short", NULL, "{" SERVER_ON "," POOL(3156, 0, "") "}", NO_FACT, 0, SILENT, NULL},
		{"on does not start", "huge_pages.pool_short", "vm.nr_hugepages", "{" ON_DOWN "," POOL(3155, 3155, "") "}", NO_FACT, 0, KA_CRITICAL, "3156"},
		{"on does not start, pool unknown", "huge_pages.pool_short", "vm.nr_hugepages", "{" ON_DOWN ", 'hugepages': {'default_size_bytes': 2097152}}", NO_FACT, 0, KA_CRITICAL, "3156"},
		{"by now there are enough", "huge_pages.pool_short", "vm.nr_hugepages", "{" ON_DOWN "," POOL(3156, 3156, "") "}", NO_FACT, 0, KA_INFO, NULL},
		/* 64 MiB divide by the default sizes of several machines; on this one it is 2 MiB */
#define ASKED(machine, bytes) "{'kernel': {" machine "}, 'postgres': {'huge_pages': 'on', 'last_error': {'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': " #bytes "}}}"
		{"the size of a page follows from the machine", "huge_pages.pool_short", "vm.nr_hugepages", ASKED("'machine': 'x86_64'", 6710886400), NO_FACT, 0, KA_CRITICAL, "3200"},
		{"or does not", "huge_pages.pool_short", "vm.nr_hugepages", ASKED("'machine': 'ppc64le'", 6710886400), NO_FACT, 0, KA_CRITICAL, NULL},
		{"whole gigabytes may be pages of one", "huge_pages.pool_short", "vm.nr_hugepages", ASKED("'machine': 'x86_64'", 6442450944), NO_FACT, 0, KA_CRITICAL, NULL},
		{"small pages failed: not for want of huge ones", "huge_pages.pool_short", NULL, "{'postgres': {'huge_pages': 'try', 'shared_memory_bytes': 6617563136, 'last_error': {'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 6617563136}}, " POOL(100, 100, "") "}", NO_FACT, 0, SILENT, NULL},
		{"size not a multiple: another failure", "huge_pages.pool_short", NULL, "{'postgres': {'huge_pages': 'on', 'last_error': {'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 6618611713}}, 'hugepages': {'default_size_bytes': 2097152}}", NO_FACT, 0, SILENT, NULL},
		{"pages taken, by whom is unknown", "huge_pages.pool_short", NULL, "{'postgres': {'huge_pages': 'try', 'shared_memory_bytes': 6617563136}, " POOL(9000, 100, "") "}", NO_FACT, 0, KA_INFO, NULL},
		{"granted in part, enough here", "huge_pages.pool_short", NULL, "{" SERVER_ON "," POOL(3156, 0, ", 'asked': 5000") "}", NO_FACT, 0, KA_INFO, NULL},
		{"gigabyte pages: 7", "huge_pages.pool_short", "hugepages-1048576kB.nr_hugepages", "{'postgres': {'version_num': 170000, 'huge_pages': 'on', 'huge_pages_status': 'off', 'huge_page_size_bytes': 1073741824, 'shared_memory_bytes': 6617563136}, 'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 1073741824, 'total': 6, 'free': 6, 'reserved': 0, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, KA_CRITICAL, "7"},
		{"before 14 the size setting is not there", "huge_pages.pool_short", NULL, "{'postgres': {'version_num': 130000, 'huge_pages': 'try', 'huge_pages_status': 'off', 'huge_page_size_bytes': 1073741824, 'shared_memory_bytes': 6617563136}, " POOL(3156, 3156, "") "}", NO_FACT, 0, SILENT, NULL},
		/* 2000 + 3156 against 5155 and 5156 */
		{"two instances, one page short", "huge_pages.pool_short", "vm.nr_hugepages", "{" SERVER_ON ", 'hugepages': {'default_size_bytes': 2097152, 'consumers': [{'what': 'b', 'pages': 2000}], 'pools': [{'size_bytes': 2097152, 'total': 5155, 'free': 1999, 'reserved': 0, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, KA_WARNING, "5156"},
		{"two instances, exact", "huge_pages.pool_short", NULL, "{" SERVER_ON ", 'hugepages': {'default_size_bytes': 2097152, 'consumers': [{'what': 'b', 'pages': 2000}], 'pools': [{'size_bytes': 2097152, 'total': 5156, 'free': 2000, 'reserved': 0, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, SILENT, NULL},
		{"other programs on another size", "huge_pages.pool_short", "hugepages-1048576kB.nr_hugepages", "{'hugepages': {'default_size_bytes': 2097152, 'consumers': [{'what': 'dpdk', 'size_bytes': 1073741824, 'pages': 4}], 'pools': [{'size_bytes': 1073741824, 'total': 3, 'free': 3, 'reserved': 0, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, KA_WARNING, "4"},
	};

	RUN_CASES(cases);
}

TEST(status_is_inferred)
{
	/* The need is 2048 pages of 2 MiB, exactly 4 GiB. */
#define UNTOLD "'postgres': {'version_num': 150008, 'huge_pages': 'try', 'shared_memory_bytes': 4294967296, 'shared_memory_huge_pages': 2049}"
	static const KaRuleCase cases[] = {
		{"exactly its need is taken", "huge_pages.use", "huge_pages", "{" UNTOLD "," POOL(2049, 1, "") "}", NO_FACT, 0, KA_OK, NULL},
		/* 1 % of 2049 are 20 pages: up to 2069 taken are its own, 2070 are somebody's as well */
		{"up to the margin", "huge_pages.use", "huge_pages", "{" UNTOLD "," POOL(2069, 0, "") "}", NO_FACT, 0, KA_OK, NULL},
		{"beyond the margin: unknown", "huge_pages.use", "huge_pages", "{" UNTOLD "," POOL(2070, 0, "") "}", NO_FACT, 0, KA_INFO, NULL},
		{"one page less: it cannot be", "huge_pages.pool_short", NULL, "{" UNTOLD "," POOL(2048, 1, "") "}", NO_FACT, 0, KA_WARNING, "4096"},
		{"reserved but untouched pages are taken", "huge_pages.use", "huge_pages", "{" UNTOLD ", 'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 2048, 'free': 2000, 'reserved': 2000, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, KA_OK, NULL},
		{"on, and it runs", "huge_pages.use", "huge_pages", "{'postgres': {'huge_pages': 'on', 'backends': 3}}", NO_FACT, 0, KA_OK, NULL},
		{"on, and nothing shows that it runs", "huge_pages.use", NULL, "{'postgres': {'huge_pages': 'on'}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(pool_wasted)
{
#define OFF_POOL(total, free) "{" POOL(total, free, "") "}"
	static const KaRuleCase cases[] = {
		/* 5 % of 1000 pages in use are 50 */
		{"5 % is a margin", "huge_pages.pool_wasted", NULL, OFF_POOL(1050, 50), NO_FACT, 0, SILENT, NULL},
		{"one page more is waste", "huge_pages.pool_wasted", "vm.nr_hugepages", OFF_POOL(1051, 51), NO_FACT, 0, KA_INFO, "1000"},
		{"7 pages are less than 16 MiB", "huge_pages.pool_wasted", NULL, OFF_POOL(17, 7), NO_FACT, 0, SILENT, NULL},
		{"8 are not", "huge_pages.pool_wasted", NULL, OFF_POOL(18, 8), NO_FACT, 0, KA_INFO, "10"},
		{"511 pages: a GB less one page", "huge_pages.pool_wasted", NULL, OFF_POOL(511, 511), NO_FACT, 0, KA_INFO, "0"},
		{"512 pages: a GB", "huge_pages.pool_wasted", NULL, OFF_POOL(512, 512), NO_FACT, 0, KA_WARNING, "0"},
		{"one page of 1 GB is an error of the figure", "huge_pages.pool_wasted", NULL, "{'hugepages': {'default_size_bytes': 1073741824, 'pools': [{'size_bytes': 1073741824, 'total': 3, 'free': 1, 'reserved': 0, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, SILENT, NULL},
		{"two are not", "huge_pages.pool_wasted", "vm.nr_hugepages", "{'hugepages': {'default_size_bytes': 1073741824, 'pools': [{'size_bytes': 1073741824, 'total': 4, 'free': 2, 'reserved': 0, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, KA_WARNING, "2"},
		{"reserved pages are not idle", "huge_pages.pool_wasted", NULL, "{'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 2048, 'free': 1200, 'reserved': 1200, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, SILENT, NULL},
		{"the free count is unknown", "huge_pages.pool_wasted", NULL, "{'hugepages': {'pools': [{'size_bytes': 2097152, 'total': 2048}]}}", NO_FACT, 0, SILENT, NULL},
		{"waiting for a restart", "huge_pages.pool_wasted", NULL, "{" SERVER "," POOL(3200, 3200, "") "}", NO_FACT, 0, SILENT, NULL},
		{"too short to be used", "huge_pages.pool_wasted", NULL, "{" SERVER "," POOL(3000, 3000, "") "}", NO_FACT, 0, SILENT, NULL},
		/* 1000 wanted by others: 3156 + 1000 of 5000 */
		{"what others want is not idle", "huge_pages.pool_wasted", "vm.nr_hugepages", "{" SERVER_ON ", 'hugepages': {'default_size_bytes': 2097152, 'consumers': [{'what': 'b', 'pages': 1000}], 'pools': [{'size_bytes': 2097152, 'total': 5000, 'free': 1844, 'reserved': 0, 'surplus': 0, 'overcommit': 0}]}}", NO_FACT, 0, KA_WARNING, "4156"},
		{"its cgroup refuses them: whose they are is not known here", "huge_pages.pool_wasted", NULL, "{" SERVER ", 'cgroup': {'hugetlb': [{'size_bytes': 2097152, 'rsvd_limit_bytes': 0}]}, " POOL(4000, 4000, "") "}", NO_FACT, 0, SILENT, NULL},
		{"it does not", "huge_pages.pool_wasted", NULL, "{" SERVER ", 'cgroup': {'hugetlb': [{'size_bytes': 2097152, 'rsvd_limit_bytes': 6618611712}]}, " POOL(4000, 4000, "") "}", NO_FACT, 0, KA_WARNING, "3156"},
		/* 8 GiB of shared_buffers are planned with 4231 pages: 5 % more, 4441, may be an extension's */
		{"its own as far as an estimate tells", "huge_pages.pool_wasted", "vm.nr_hugepages", "{'postgres': {'huge_pages': 'try', 'shared_buffers_bytes': 8589934592}, " POOL(5000, 559, "") "}", NO_FACT, 0, KA_WARNING, "4441"},
		{"one more: whose they are is not known, and too few are left", "huge_pages.pool_wasted", "vm.nr_hugepages", "{'postgres': {'huge_pages': 'try', 'shared_buffers_bytes': 8589934592}, " POOL(5000, 558, "") "}", NO_FACT, 0, KA_INFO, NULL},
		{"a large one that is off: its own choice", "huge_pages.pool_wasted", "vm.nr_hugepages", "{'postgres': {'huge_pages': 'off', 'shared_memory_bytes': 6617563136}, " POOL(4000, 4000, "") "}", NO_FACT, 0, KA_INFO, NULL},
		{"a small server that is off", "huge_pages.pool_wasted", "vm.nr_hugepages", "{'postgres': {'huge_pages': 'off', 'shared_memory_bytes': 148848640, 'max_connections': 100}, " POOL(1000, 1000, "") "}", NO_FACT, 0, KA_WARNING, "0"},
	};

	RUN_CASES(cases);
}

TEST(cgroup_limit)
{
	/* 3156 * 2097152 = 6618611712 */
#define LIMITED(server, pool, limit) "{" server "," pool ", 'cgroup': {'hugetlb': [{'size_bytes': 2097152, " limit "}]}}"
#define ASKS "'postgres': {'huge_pages': 'try', 'shared_memory_bytes': 6617563136}"
	static const KaRuleCase cases[] = {
		{"a byte below the need", "huge_pages.cgroup_limit", "hugetlb.2MB.max", LIMITED(ASKS, POOL(3156, 3156, ""), "'limit_bytes': 6618611711"), NO_FACT, 0, KA_CRITICAL, "6618611712"},
		{"the need", "huge_pages.cgroup_limit", NULL, LIMITED(ASKS, POOL(3156, 3156, ""), "'limit_bytes': 6618611712"), NO_FACT, 0, SILENT, NULL},
		{"no pool to be refused", "huge_pages.cgroup_limit", NULL, LIMITED(SERVER, POOL(0, 0, ""), "'limit_bytes': 0"), NO_FACT, 0, KA_INFO, "6618611712"},
		{"reservations: falls back", "huge_pages.cgroup_limit", "hugetlb.2MB.rsvd.max", LIMITED(ASKS, POOL(3156, 3156, ""), "'limit_bytes': 0, 'rsvd_limit_bytes': 0"), NO_FACT, 0, KA_WARNING, "6618611712"},
		{"usage of others counts", "huge_pages.cgroup_limit", "hugetlb.2MB.max", LIMITED(ASKS, POOL(4000, 4000, ""), "'limit_bytes': 8000000000, 'usage_bytes': 2000000000"), NO_FACT, 0, KA_CRITICAL, ANY_VALUE},
		{"its own usage does not", "huge_pages.cgroup_limit", NULL, LIMITED(SERVER_ON, POOL(3156, 0, ""), "'limit_bytes': 8000000000, 'usage_bytes': 6618611712"), NO_FACT, 0, SILENT, NULL},
		{"on a lower limit it will die", "huge_pages.cgroup_limit", NULL, LIMITED(SERVER_ON, POOL(3156, 0, ""), "'limit_bytes': 4000000000"), NO_FACT, 0, KA_CRITICAL, ANY_VALUE},
		{"another size's limit", "huge_pages.cgroup_limit", NULL, "{" ASKS "," POOL(3156, 3156, "") ", 'cgroup': {'hugetlb': [{'size_bytes': 1073741824, 'limit_bytes': 0}]}}", NO_FACT, 0, SILENT, NULL},
		{"off: no huge page is asked for", "huge_pages.cgroup_limit", NULL, "{'postgres': {'huge_pages': 'off', 'shared_memory_bytes': 6617563136}, " POOL(3156, 3156, "") ", 'cgroup': {'hugetlb': [{'size_bytes': 2097152, 'limit_bytes': 0}]}}", NO_FACT, 0, SILENT, NULL},
		{"SIGBUS in a container", "huge_pages.cgroup_limit", "huge_pages", "{'postgres': {'last_error': {'signal': 'SIGBUS', 'phase': 'start'}}, 'kernel': {'container': true}}", NO_FACT, 0, KA_CRITICAL, "off"},
		/* 4096 pages, and others have 2 GiB of 9 */
		{"others have a part of the limit", "huge_pages.cgroup_limit", "hugetlb.2MB.rsvd.max", "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'off', 'shared_memory_bytes': 8589934592}, " POOL(5000, 5000, "") ", 'cgroup': {'hugetlb': [{'size_bytes': 2097152, 'rsvd_limit_bytes': 9663676416, 'usage_bytes': 2147483648}]}}", NO_FACT, 0, KA_WARNING, "10737418240"},
		{"its own part", "huge_pages.cgroup_limit", NULL, "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'on', 'shared_memory_bytes': 8589934592}, " POOL(5000, 904, "") ", 'cgroup': {'hugetlb': [{'size_bytes': 2097152, 'rsvd_limit_bytes': 9663676416, 'usage_bytes': 2147483648}]}}", NO_FACT, 0, SILENT, NULL},
		/* 4096 pages */
#define KILLED(limit) "{'postgres': {'huge_pages': 'on', 'shared_memory_bytes': 8589934592, 'last_error': {'signal': 'SIGBUS', 'phase': 'runtime'}}, 'kernel': {'container': true}, 'hugepages': {'default_size_bytes': 2097152}, 'cgroup': {'hugetlb': [{'size_bytes': 2097152, 'limit_bytes': " #limit "}]}}"
		{"SIGBUS above the limit", "huge_pages.cgroup_limit", "hugetlb.2MB.max", KILLED(8589934591), NO_FACT, 0, KA_CRITICAL, "8589934592"},
		{"SIGBUS, and the limit suffices", "huge_pages.cgroup_limit", "hugetlb.2MB.max", KILLED(8589934592), NO_FACT, 0, KA_WARNING, NULL},
		{"SIGBUS on a host of a known size: look", "huge_pages.cgroup_limit", NULL, "{'postgres': {'huge_pages': 'on', 'shared_memory_bytes': 8589934592, 'last_error': {'signal': 'SIGBUS', 'phase': 'runtime'}}, 'kernel': {'container': false}, 'hugepages': {'default_size_bytes': 2097152}}", NO_FACT, 0, KA_INFO, NULL},
		{"SIGBUS on a host: look", "huge_pages.cgroup_limit", NULL, "{'postgres': {'last_error': {'signal': 'SIGBUS', 'phase': 'runtime'}}, 'kernel': {'container': false}}", NO_FACT, 0, KA_INFO, NULL},
		{"SIGBUS with huge_pages off", "huge_pages.cgroup_limit", NULL, "{'postgres': {'huge_pages': 'off', 'last_error': {'signal': 'SIGBUS', 'phase': 'runtime'}}, 'kernel': {'container': true}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(page_size)
{
#define TWO(gb, mb) "'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 1073741824, 'total': " #gb ", 'free': " #gb "}, {'size_bytes': 2097152, 'total': " #mb ", 'free': " #mb "}]}"
#define ASKS_GB(version) "'postgres': {'version_num': " #version ", 'huge_pages': 'try', 'huge_pages_status': 'off', 'huge_page_size_bytes': 1073741824, 'shared_memory_bytes': 6617563136}"
	static const KaRuleCase cases[] = {
		{"the other pool has all that it needs", "huge_pages.page_size", "huge_page_size", "{" ASKS_GB(170000) "," TWO(0, 3156) "}", NO_FACT, 0, KA_WARNING, "2MB"},
		{"one page less: only the rounding (857 MB, 13.6 %) is left to say", "huge_pages.page_size", NULL, "{" ASKS_GB(170000) "," TWO(0, 3155) "}", NO_FACT, 0, KA_INFO, "2MB"},
		{"its own pool suffices", "huge_pages.page_size", NULL, "{" ASKS_GB(170000) "," TWO(7, 3156) "}", NO_FACT, 0, KA_INFO, "2MB"},
		{"no such page on this machine", "huge_pages.page_size", NULL, "{" ASKS_GB(170000) "," POOL(0, 0, "") "}", NO_FACT, 0, KA_WARNING, "2MB"},
		/* 4.1 GiB in 5 pages of 1 GiB: 0.9 of 4.1 lost, 22 %; 4.6 GiB: 8.7 % */
		{"rounding up to gigabytes", "huge_pages.page_size", "huge_page_size", "{'postgres': {'huge_pages': 'try', 'huge_page_size_bytes': 1073741824, 'shared_memory_bytes': 4402341478}, " TWO(5, 0) "}", NO_FACT, 0, KA_INFO, "2MB"},
		{"a loss of 8.7 %", "huge_pages.page_size", NULL, "{'postgres': {'huge_pages': 'try', 'huge_page_size_bytes': 1073741824, 'shared_memory_bytes': 4939212390}, " TWO(5, 0) "}", NO_FACT, 0, SILENT, NULL},
		{"before 14 nothing can be set", "huge_pages.page_size", NULL, "{'postgres': {'version_num': 130000, 'huge_pages': 'try'}, 'hugepages': {'default_size_bytes': 1073741824, 'pools': [{'size_bytes': 1073741824, 'total': 1}, {'size_bytes': 2097152, 'total': 0}]}}", NO_FACT, 0, KA_INFO, NULL},
		{"ordinary pages", "huge_pages.page_size", NULL, "{" SERVER "," POOL(0, 0, "") "}", NO_FACT, 0, SILENT, NULL},
		{"refused with EINVAL", "huge_pages.page_size", NULL, "{'postgres': {'huge_pages': 'on', 'huge_page_size_bytes': 1073741824, 'last_error': {'phase': 'start', 'call': 'mmap', 'errno': 'EINVAL', 'bytes': 7516192768}}, 'hugepages': {'default_size_bytes': 2097152}}", NO_FACT, 0, KA_CRITICAL, "2MB"},
	};

	RUN_CASES(cases);
}

TEST(fallback)
{
	static const KaRuleCase cases[] = {
		{"try on small pages", "huge_pages.fallback", "huge_pages", "{" SERVER "," POOL(0, 0, "") "}", NO_FACT, 0, KA_WARNING, NULL},
		{"off is no fallback", "huge_pages.fallback", NULL, "{'postgres': {'huge_pages': 'off', 'huge_pages_status': 'off', 'shared_memory_bytes': 6617563136}}", NO_FACT, 0, SILENT, NULL},
		{"on huge pages", "huge_pages.fallback", NULL, "{" SERVER_ON "," POOL(3156, 0, "") "}", NO_FACT, 0, SILENT, NULL},
		{"status unknown", "huge_pages.fallback", NULL, "{'postgres': {'huge_pages': 'try', 'huge_pages_status': 'unknown', 'shared_memory_bytes': 6617563136}}", NO_FACT, 0, SILENT, NULL},
		{"sysv", "huge_pages.fallback", "shared_memory_type", "{'postgres': {'huge_pages': 'try', 'shared_memory_type': 'sysv', 'shared_memory_bytes': 6617563136}}", NO_FACT, 0, KA_WARNING, "mmap"},
		{"sysv with on is refused", "huge_pages.fallback", "shared_memory_type", "{'postgres': {'huge_pages': 'on', 'shared_memory_type': 'sysv'}}", NO_FACT, 0, KA_CRITICAL, "mmap"},
		{"sysv with off", "huge_pages.fallback", NULL, "{'postgres': {'huge_pages': 'off', 'shared_memory_type': 'sysv'}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(not_cause)
{
#define FAILED(settings, error) "{'postgres': {" settings "'last_error': {" error "}}, 'hugepages': {'default_size_bytes': 2097152}}"
	static const KaRuleCase cases[] = {
		{"try repeats on small pages", "huge_pages.not_cause", NULL, FAILED("'huge_pages': 'try', ", "'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 4194304"), NO_FACT, 0, KA_INFO, NULL},
		{"on, and a multiple", "huge_pages.not_cause", NULL, FAILED("'huge_pages': 'on', ", "'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 4194304"), NO_FACT, 0, SILENT, NULL},
		{"unknown, and a multiple", "huge_pages.not_cause", NULL, FAILED("", "'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 4194304"), NO_FACT, 0, SILENT, NULL},
		{"unknown, and a byte more", "huge_pages.not_cause", NULL, FAILED("", "'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 4194305"), NO_FACT, 0, KA_INFO, NULL},
		{"off", "huge_pages.not_cause", NULL, FAILED("'huge_pages': 'off', ", "'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 4194304"), NO_FACT, 0, KA_INFO, NULL},
		{"shmget", "huge_pages.not_cause", "shmget", FAILED("", "'phase': 'start', 'call': 'shmget', 'errno': 'EINVAL', 'bytes': 4194304"), NO_FACT, 0, KA_INFO, NULL},
		{"dsm", "huge_pages.not_cause", "/dev/shm", FAILED("", "'phase': 'runtime', 'call': 'dsm', 'errno': 'ENOSPC', 'bytes': 4194304"), NO_FACT, 0, KA_INFO, NULL},
		{"io_uring and locked memory", "huge_pages.not_cause", "memlock", FAILED("'huge_pages': 'on', ", "'phase': 'start', 'call': 'io_uring', 'errno': 'ENOMEM'"), NO_FACT, 0, KA_INFO, NULL},
		{"SIGBUS without huge pages", "huge_pages.not_cause", "signal", FAILED("'huge_pages': 'off', ", "'phase': 'runtime', 'signal': 'SIGBUS'"), NO_FACT, 0, KA_INFO, NULL},
		{"io_uring is refused", "huge_pages.not_cause", "io_uring", FAILED("'huge_pages': 'on', ", "'phase': 'start', 'call': 'io_uring', 'errno': 'EPERM'"), NO_FACT, 0, KA_INFO, NULL},
		{"SIGBUS overrides the size", "huge_pages.not_cause", NULL, FAILED("'huge_pages': 'try', ", "'phase': 'start', 'signal': 'SIGBUS', 'bytes': 4194305"), NO_FACT, 0, SILENT, NULL},
		{"no error", "huge_pages.not_cause", NULL, "{'postgres': {'huge_pages': 'try'}}", NO_FACT, 0, SILENT, NULL},
		{"an error without any detail", "huge_pages.not_cause", NULL, FAILED("", "'phase': 'start'"), NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
}

TEST(pool_numa)
{
#define NODES(a, b) "{'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 100, 'nodes': [{'node': 0, 'total': " #a "}, {'node': 1, 'total': " #b "}]}]}}"
	static const KaRuleCase cases[] = {
		{"two to one", "huge_pages.numa", "node1.hugepages-2048kB.nr_hugepages", NODES(66, 33), NO_FACT, 0, KA_INFO, "49"},
		{"a page below", "huge_pages.numa", NULL, NODES(65, 33), NO_FACT, 0, SILENT, NULL},
		{"one node has none", "huge_pages.numa", "node0.hugepages-2048kB.nr_hugepages", NODES(0, 100), NO_FACT, 0, KA_WARNING, "50"},
		{"three pages cannot be even", "huge_pages.numa", NULL, NODES(1, 2), NO_FACT, 0, SILENT, NULL},
		{"a node without memory", "huge_pages.numa", NULL, "{'numa': [{'node': 1, 'total_bytes': 0}], 'hugepages': {'pools': [{'size_bytes': 2097152, 'total': 100, 'nodes': [{'node': 0, 'total': 100}, {'node': 1, 'total': 0}]}]}}", NO_FACT, 0, SILENT, NULL},
	};

	RUN_CASES(cases);
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
