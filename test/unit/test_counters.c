/*
 * test_counters.c: the sampler's reader, on copies of machines and on this one.
 *
 * Expected numbers are worked out by hand from the tables in
 * test/fixtures/make_machine.py, as the comments show.
 */
#define _GNU_SOURCE 1

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counters.h"
#include "path.h"
#include "ka_test.h"

static KaReader *
open_machine(const char *name, const char *device0, const char *device1)
{
	KaReaderConfig config = {
		.root = ka_machine(name),
		.hugepage_size_bytes = KA_UNKNOWN,
		.devices = {device0, device1},
	};

	return ka_reader_new(&config);
}

TEST(enterprise_4_18_two_nodes)
{
	KaReader   *reader = open_machine("el8-4.18", "dm-0", "sda1");
	KaCounters	c;

	REQUIRE(reader != NULL);
	ka_reader_read(reader, &c);
	CHECK_INT(c.compact_stall, 1200);
	CHECK_INT(c.compact_fail, 1000);
	CHECK_INT(c.compact_success, 200);
	CHECK_INT(c.compact_migrate_scanned, 50000);
	CHECK_INT(c.compact_free_scanned, 90000);
	CHECK_INT(c.compact_daemon_wake, 77);
	CHECK_INT(c.compact_daemon_migrate_scanned, 8888);
	CHECK_INT(c.allocstall, 543);	/* 3 + 40 + 500 */
	CHECK_INT(c.thp_fault_alloc, 321);
	CHECK_INT(c.thp_fault_fallback, 654);
	CHECK_INT(c.thp_file_alloc, 2);
	CHECK_INT(c.thp_file_fallback, KA_UNKNOWN);	/* since 5.8 */
	CHECK_INT(c.pcp_pages, 1043);	/* 11 + 22 + 101 + 202 + 303 + 404 */
	CHECK_INT(c.free_costly_blocks, 80);	/* 8 + 8 + 15 + 49 */

	/*
	 * Pages in blocks below order 4: 1, 380, 2420, 410; at and above: 3952,
	 * 208, 512, 10048.
	 */
	CHECK_REAL(c.unusable_index_order4, 3211.0 / 17931.0, 1e-12);
	CHECK_INT(c.free_bytes, INT64_C(17931) * 4096);
	CHECK_INT(c.page_table_bytes, INT64_C(807948288));	/* 789012 kB */
	CHECK_INT(c.dirty_bytes, 1265664);	/* 1236 kB */
	CHECK_INT(c.writeback_bytes, 57344);	/* 56 kB */
	CHECK_INT(c.write_ios, 900);	/* 600 + 300 */
	CHECK_INT(c.write_merges, 30);
	CHECK_INT(c.write_bytes, 36864000); /* (48000 + 24000) * 512 */
	CHECK_INT(c.write_ms, 4500);
	CHECK_INT(c.io_ms, 2000);	/* each for itself: the larger total need not be the busier device */
	CHECK_INT(c.io_ms_second, 1000);
	CHECK_INT(c.hugepages_free, 120);

	/* No PSI there. */
	CHECK_INT(c.pressure_some_us, KA_UNKNOWN);
	CHECK_INT(c.pressure_full_us, KA_UNKNOWN);
	CHECK_INT(ka_reader_error(reader, KA_SRC_PRESSURE), ENOENT);
	for (int source = 0; source < KA_NSOURCES; source++)
	{
		if (source != KA_SRC_PRESSURE)
			CHECK_INT(ka_reader_error(reader, source), 0);
	}
	ka_reader_free(reader);
}

TEST(large_base_pages)
{
	KaReaderConfig config = {.root = ka_machine("arm64-7.0"),.page_size_bytes = 65536,.hugepage_size_bytes = KA_UNKNOWN};
	KaReader   *reader = ka_reader_new(&config);
	KaCounters	c;

	REQUIRE(reader != NULL);
	ka_reader_read_source(reader, KA_SRC_VMSTAT, &c);
	CHECK_INT(c.dirty_bytes, 655360);	/* 640 kB: 10 pages */
	CHECK_INT(c.writeback_bytes, 0);
	ka_reader_free(reader);
}

TEST(a_device_with_a_slash_in_its_name)
{
	KaReader   *reader = open_machine("server-6.8", "cciss/c0d0p1", NULL);
	KaCounters	c;

	REQUIRE(reader != NULL);
	ka_reader_read_source(reader, KA_SRC_DEVICES, &c);
	CHECK_INT(ka_reader_error(reader, KA_SRC_DEVICES), 0);
	CHECK_INT(c.write_ios, 1);
	ka_reader_free(reader);
}

TEST(another_pool_is_watched)
{
	KaReaderConfig config = {.root = ka_machine("server-6.8"),.hugepage_size_bytes = INT64_C(1) << 30};
	KaReader   *reader = ka_reader_new(&config);
	KaCounters	c;

	REQUIRE(reader != NULL);
	ka_reader_read_source(reader, KA_SRC_HUGEPAGES, &c);
	CHECK_INT(c.hugepages_free, 2);
	CHECK_INT(c.free_bytes, KA_UNKNOWN);	/* one source only */
	ka_reader_free(reader);
}

/* name, device, pcp_pages, allocstall, costly blocks, hugepages_free, some, full */
typedef struct Row
{
	const char *machine;
	const char *device;
	int64_t		write_ios,
				pcp_pages,
				allocstall,
				costly,
				hugepages_free,
				some,
				full;
} Row;

TEST(machines)
{
	static const Row rows[] = {
		/* 1 + 2 + 3 + 4 + 10 + 20 + 30 + 40; 5 + (3 + 2 + 1) */
		{"container-5.15", "nvme0n1", 5, 110, 6, 11, 0, 111222, 33444},
		/* 26 + 10000; 1 + 2 + 4 + 8 + 16; 5 + 56 + 6 * 9 + 99 */
		{"debian-6.1", "vda1", 30, 10026, 31, 214, 1024, 5, 0},
		/* 10 + 60006 + 50015 + 40024 + 30033; 5 + 100 + 0 + 1000 + 90 + 7 */
		{"server-6.8", "md0", 7000, 180088, 17, 1202, 1000, 123456789, 23456789},
		/* 9 + 22; 9 + 2 + 1 + 5 */
		{"arm64-7.0", "vda2", 11, 31, 0, 17, 3, 1, 2},
		{"appliance-5.15", "mmcblk0p1", 2, 12, 0, 3, KA_UNKNOWN, KA_UNKNOWN, KA_UNKNOWN},
		/* counted in the files: 3890 + 6132; 5 + 768 + 3293 */
		{"vm-6.18", "vda", 386657, 10022, 0, 4066, 0, 0, 0},
	};

	for (size_t i = 0; i < KA_LENGTH(rows); i++)
	{
		const Row  *row = &rows[i];
		KaReader   *reader = open_machine(row->machine, row->device, NULL);
		KaCounters	c;

		REQUIRE(reader != NULL);
		NOTE("%s", row->machine);
		ka_reader_read(reader, &c);
		CHECK_INT(c.write_ios, row->write_ios);
		CHECK_INT(c.pcp_pages, row->pcp_pages);
		CHECK_INT(c.allocstall, row->allocstall);
		CHECK_INT(c.free_costly_blocks, row->costly);
		CHECK_INT(c.hugepages_free, row->hugepages_free);
		CHECK_INT(c.pressure_some_us, row->some);
		CHECK_INT(c.pressure_full_us, row->full);
		ka_reader_free(reader);
	}
}

TEST(no_compaction_no_thp)
{
	KaReader   *reader = open_machine("appliance-5.15", "mmcblk0", "mmcblk0");
	KaCounters	c;

	REQUIRE(reader != NULL);
	ka_reader_read(reader, &c);
	CHECK_INT(c.compact_stall, KA_UNKNOWN);
	CHECK_INT(c.compact_daemon_wake, KA_UNKNOWN);
	CHECK_INT(c.thp_fault_fallback, KA_UNKNOWN);
	CHECK_INT(c.thp_file_fallback, KA_UNKNOWN);
	CHECK_INT(c.allocstall, 0);
	CHECK_INT(c.write_ios, 8);	/* the same device twice counts once */
	CHECK_REAL(c.unusable_index_order4, 45.0 / 93.0, 1e-12);	/* 3 * 15 of 3 * 31 pages */
	CHECK_INT(ka_reader_error(reader, KA_SRC_HUGEPAGES), ENOENT);
	ka_reader_free(reader);
}

TEST(large_machine)
{
	KaReader   *reader = open_machine("large-6.12", "nvme47n1", "nvme3n1");
	KaCounters	c;
	int64_t		pages = 0;

	/* The formula of the generator: zones 1 (DMA32) and 2 to 5 (one Normal per node). */
	for (int zone = 1; zone <= 5; zone++)
		for (int cpu = 0; cpu < 384; cpu++)
			pages += (7 * cpu + 3 * zone) % 1000;

	REQUIRE(reader != NULL);
	ka_reader_read(reader, &c);
	ka_reader_read(reader, &c);
	CHECK_INT(c.pcp_pages, pages);
	CHECK_INT(c.write_ios, 50); /* 47 + 3 */
	CHECK_INT(c.io_ms, 47);
	CHECK_INT(c.compact_stall, 42);
	CHECK_INT(c.hugepages_free, 777);
	/* per node 60 + 30 + 15 + 7 + 3 + 2 + 1; DMA32 7 * 5; DMA 5 */
	CHECK_INT(c.free_costly_blocks, 4 * 118 + 35 + 5);
	ka_reader_free(reader);
}

TEST(garbage_is_unknown)
{
	KaReader   *reader = open_machine("garbage", "vda", NULL);
	KaCounters	c;

	REQUIRE(reader != NULL);
	ka_reader_read(reader, &c);
	CHECK_INT(c.compact_stall, KA_UNKNOWN);
	CHECK_INT(c.free_bytes, KA_UNKNOWN);
	CHECK_INT(c.write_ios, KA_UNKNOWN);
	CHECK_INT(c.pcp_pages, KA_UNKNOWN);
	CHECK_INT(c.free_costly_blocks, KA_UNKNOWN);
	CHECK_INT(c.pressure_some_us, KA_UNKNOWN);
	CHECK_INT(c.hugepages_free, KA_UNKNOWN);
	CHECK(c.unusable_index_order4 < 0);
	for (int source = KA_SRC_VMSTAT; source <= KA_SRC_PRESSURE; source++)
		CHECK_INT(ka_reader_error(reader, source), EBADMSG);
	ka_reader_free(reader);
}

TEST(a_missing_device_makes_all_unknown)
{
	KaReader   *reader = open_machine("el8-4.18", "dm-0", "sdz");
	KaCounters	c;

	REQUIRE(reader != NULL);
	ka_reader_read(reader, &c);
	CHECK_INT(c.write_ios, KA_UNKNOWN);
	CHECK_INT(c.io_ms, KA_UNKNOWN);
	CHECK_INT(ka_reader_error(reader, KA_SRC_DEVICES), ENODEV);
	ka_reader_free(reader);
}

static int
open_files(void)
{
	DIR		   *directory = opendir("/proc/self/fd");
	int			n = 0;

	while (readdir(directory))
		n++;
	closedir(directory);
	return n;
}

static void
write_file(const char *root, const char *name, const char *text)
{
	char		full[512];
	FILE	   *file;

	snprintf(full, sizeof(full), "%s%s", root, name);
	file = fopen(full, "w");
	REQUIRE(file != NULL);
	fputs(text, file);
	fclose(file);
}

TEST(a_file_that_comes_is_found_at_the_next_attempt)
{
	char		root[] = "/tmp/ka_counters.XXXXXX";
	char		name[512];
	KaReaderConfig config = {.hugepage_size_bytes = KA_UNKNOWN};
	KaReader   *reader;
	KaCounters	c;
	int			files;

	REQUIRE(mkdtemp(root) != NULL);
	snprintf(name, sizeof(name), "%s/proc", root);
	REQUIRE(mkdir(name, 0700) == 0);
	config.root = root;
	reader = ka_reader_new(&config);
	REQUIRE(reader != NULL);

	ka_reader_read(reader, &c);
	CHECK_INT(ka_reader_error(reader, KA_SRC_BUDDYINFO), ENOENT);
	files = open_files();
	write_file(root, "/proc/buddyinfo", "Node 0, zone   Normal      1      0      0      0      7\n");
	for (int i = 1; i < 60; i++)
	{
		ka_reader_read(reader, &c);
		CHECK_INT(c.free_costly_blocks, KA_UNKNOWN);
		CHECK_INT(ka_reader_error(reader, KA_SRC_BUDDYINFO), ENOENT);
	}
	ka_reader_read(reader, &c); /* the 60th after the first */
	CHECK_INT(c.free_costly_blocks, 7);
	CHECK_INT(ka_reader_error(reader, KA_SRC_BUDDYINFO), 0);
	CHECK_INT(open_files(), files + 1);

	/* Garbage later on: unknown again, and nothing is left open. */
	write_file(root, "/proc/buddyinfo", "Node\n");
	ka_reader_read(reader, &c);
	CHECK_INT(c.free_costly_blocks, KA_UNKNOWN);
	CHECK_INT(ka_reader_error(reader, KA_SRC_BUDDYINFO), EBADMSG);
	CHECK_INT(open_files(), files);

	ka_reader_free(reader);
	snprintf(name, sizeof(name), "%s/proc/buddyinfo", root);
	unlink(name);
	snprintf(name, sizeof(name), "%s/proc", root);
	rmdir(name);
	rmdir(root);
}

TEST(readings_do_not_allocate)
{
	KaReader   *reader = open_machine("server-6.8", "md0", NULL);
	KaCounters	c;
	struct mallinfo2 before;
	struct mallinfo2 after;
	int			files;

	REQUIRE(reader != NULL);
	ka_reader_read(reader, &c);
	files = open_files();
	before = mallinfo2();
	for (int i = 0; i < 200; i++)
		ka_reader_read(reader, &c);
	after = mallinfo2();
	CHECK_INT(after.uordblks, before.uordblks);
	CHECK_INT(open_files(), files);
	ka_reader_free(reader);
}

/* What the core's own parsers say about this machine. */
static void
read_with_own_parsers(KaCounters *c)
{
	KaPath		path;

	memset(c, 0xFF, sizeof(*c));
	ka_path_init(&path, "");
	CHECK_INT(ka_path_read(&path, "/proc/vmstat"), 0);
	CHECK(ka_parse_vmstat(path.text, path.length, sysconf(_SC_PAGESIZE), c));
	ka_path_free(&path);
}

#define CHECK_BETWEEN(member) \
	CHECK(before.member <= now.member && now.member <= after.member && \
		  (before.member == KA_UNKNOWN) == (now.member == KA_UNKNOWN))

TEST(this_machine_by_libproc2)
{
	KaReaderConfig config = {.root = "",.hugepage_size_bytes = KA_UNKNOWN,
	.devices = {"no-such-device", NULL}};
	KaReader   *reader = ka_reader_new(&config);
	KaCounters	before;
	KaCounters	now;
	KaCounters	after;

	REQUIRE(reader != NULL);
	ka_reader_read(reader, &now);	/* opens everything */
	read_with_own_parsers(&before);
	ka_reader_read(reader, &now);
	read_with_own_parsers(&after);

	CHECK_INT(ka_reader_error(reader, KA_SRC_VMSTAT), 0);
	CHECK_INT(ka_reader_error(reader, KA_SRC_ZONEINFO), 0);
	CHECK_INT(ka_reader_error(reader, KA_SRC_BUDDYINFO), 0);
	CHECK_INT(ka_reader_error(reader, KA_SRC_DEVICES), ENODEV);
	CHECK_BETWEEN(compact_stall);
	CHECK_BETWEEN(compact_fail);
	CHECK_BETWEEN(compact_success);
	CHECK_BETWEEN(compact_migrate_scanned);
	CHECK_BETWEEN(compact_free_scanned);
	CHECK_BETWEEN(compact_daemon_wake);
	CHECK_BETWEEN(compact_daemon_migrate_scanned);
	CHECK_BETWEEN(allocstall);
	CHECK_BETWEEN(thp_fault_alloc);
	CHECK_BETWEEN(thp_fault_fallback);
	CHECK_BETWEEN(thp_file_alloc);
	CHECK_BETWEEN(thp_file_fallback);
	CHECK(now.free_bytes > 0);
	CHECK(now.page_table_bytes > 0);
	CHECK(now.pcp_pages >= 0);
	CHECK(now.unusable_index_order4 >= 0 && now.unusable_index_order4 <= 1);
	CHECK_INT(now.write_ios, KA_UNKNOWN);
	ka_reader_free(reader);
}

/* The first device of /proc/diskstats that was written to, or "". */
static void
a_written_device(char *name, size_t size)
{
	FILE	   *file = fopen("/proc/diskstats", "r");
	char		line[512];

	name[0] = '\0';
	while (file && fgets(line, sizeof(line), file))
	{
		char		device[64];
		long long	f[5];

		if (sscanf(line, "%*d %*d %63s %lld %lld %lld %lld %lld", device,
				   &f[0], &f[1], &f[2], &f[3], &f[4]) == 6 && f[4] > 0)
			snprintf(name, size, "%s", device);
	}
	if (file)
		fclose(file);
}

/* What /proc/diskstats, which the reader does not read, says about a device. */
static void
read_diskstats(const char *device, KaCounters *c)
{
	FILE	   *file = fopen("/proc/diskstats", "r");
	char		line[512];

	memset(c, 0xFF, sizeof(*c));
	while (file && fgets(line, sizeof(line), file))
	{
		char		name[64];
		long long	ios,
					merges,
					sectors,
					ms,
					io_ms;

		if (sscanf(line, "%*d %*d %63s %*d %*d %*d %*d %lld %lld %lld %lld %*d %lld", name,
				   &ios, &merges, &sectors, &ms, &io_ms) != 6 || strcmp(name, device) != 0)
			continue;
		c->write_ios = ios;
		c->write_merges = merges;
		c->write_bytes = sectors * 512;
		c->write_ms = ms;
		c->io_ms = io_ms;
	}
	if (file)
		fclose(file);
}

TEST(this_machine_s_disk)
{
	char		device[64];
	KaReaderConfig config = {.root = "",.devices = {device, device}};
	KaReader   *reader;
	KaCounters	before;
	KaCounters	now;
	KaCounters	after;

	a_written_device(device, sizeof(device));
	if (device[0] == '\0')
	{
		printf("# no disk here\n");
		return;
	}
	reader = ka_reader_new(&config);
	REQUIRE(reader != NULL);
	read_diskstats(device, &before);
	ka_reader_read_source(reader, KA_SRC_DEVICES, &now);
	read_diskstats(device, &after);
	CHECK_INT(ka_reader_error(reader, KA_SRC_DEVICES), 0);
	CHECK_BETWEEN(write_ios);
	CHECK_BETWEEN(write_merges);
	CHECK_BETWEEN(write_bytes);
	CHECK_BETWEEN(write_ms);
	CHECK_BETWEEN(io_ms);
	ka_reader_free(reader);
}

/* ---- parsers on text */

#define TEXT(text) text, strlen(text)

TEST(zoneinfo_texts)
{
	static const char whole[] =
		"Node 0, zone   Normal\n  per-node stats\n      nr_dirty     5\n  pages free     1\n"
		"        cma      0\n  pagesets\n    cpu: 0\n              count: 7\n              high:  9\n"
		"    cpu: 1\n              count:    5\n  vm stats threshold: 4\n"
		"  node_unreclaimable:  0\n  start_pfn:           1\n"
		"Node 0, zone  Movable\n  pages free     0\n        protection: (0, 0)\n";
	static const char *const bad[] = {
		"", "\n", "x\n", "Node", "Nodes\n",
		"  pagesets\n  start_pfn: 1\n", /* no zone */
		"Node 0, zone Normal\n  pagesets\n",	/* not closed */
		"Node 0, zone Normal\n  pagesets\nNode 1, zone Normal\n",
		"Node 0, zone Normal\n  pagesets\n    cpu: 0\n  start_pfn: 1\n",	/* no count */
		"Node 0, zone Normal\n  pagesets\n    cpu: 0\n   count: -1\n  start_pfn: 1\n",
		"Node 0, zone Normal\n  pagesets\n    cpu: 0\n   count: 1x\n  start_pfn: 1\n",
		"Node 0, zone Normal\n  pagesets\n   count: 1\n  start_pfn: 1\n",	/* no CPU */
	};
	int64_t		pages = 0;
	int64_t		zones = 0;

	CHECK(ka_parse_zoneinfo(TEXT(whole), &pages, &zones));
	CHECK_INT(pages, 12);
	CHECK_INT(zones, 2);
	for (size_t i = 0; i < KA_LENGTH(bad); i++)
		CHECK(!ka_parse_zoneinfo(TEXT(bad[i]), &pages, &zones));

	/* Every cut within the populated zone is found, wherever it is. */
	for (size_t length = strchr(whole, '\n') - whole + 1; length < sizeof(whole) - 1; length++)
	{
		bool		at_zone = length >= (size_t) (strstr(whole, "Node 0, zone  M") - whole);
		bool		before_pagesets = length <= (size_t) (strstr(whole, "  pagesets") - whole);

		if (!at_zone && !before_pagesets)
			CHECK(!ka_parse_zoneinfo(whole, length, &pages, &zones));
	}
	CHECK(ka_parse_zoneinfo(TEXT("Node 0, zone Normal\n  pagesets\n    cpu: 0\n  count: 99999999999999999999\n"
								 "    cpu: 1\n  count: 99999999999999999999\n  start_pfn: 1\n"), &pages, &zones));
	CHECK_INT(pages, INT64_MAX);	/* saturated */
}

TEST(buddyinfo_texts)
{
	static const char *const bad[] = {
		"", "\n", "Node 0, zone DMA 1 2 3 4 5",
		"Node 0, zone DMA 1 2 3 4\n",	/* no column of order 4 */
		"Node 0, zone DMA 1 2 3 4 x\n",
		"Node 0, zone DMA 1 2 3 4 -5\n",
		"Node x, zone DMA 1 2 3 4 5\n",
		"Node 0 zone DMA 1 2 3 4 5\n",
		"Node 0, zone DMA 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
	};
	KaCounters	c;

	for (size_t i = 0; i < KA_LENGTH(bad); i++)
		CHECK(!ka_parse_buddyinfo(TEXT(bad[i]), &c));

	/* 1 + 2 * 2 + 3 * 4 + 4 * 8 = 49 pages of 49 + 5 * 16 */
	CHECK(ka_parse_buddyinfo(TEXT("Node 0, zone      DMA      1      2      3      4      5 \n"), &c));
	CHECK_INT(c.free_costly_blocks, 5);
	CHECK_REAL(c.unusable_index_order4, 49.0 / 129.0, 1e-12);

	/* No free memory at all: nothing can be had, as the kernel says. */
	CHECK(ka_parse_buddyinfo(TEXT("Node 0, zone DMA 0 0 0 0 0\n"), &c));
	CHECK_INT(c.free_costly_blocks, 0);
	CHECK_REAL(c.unusable_index_order4, 1.0, 0);

	CHECK(ka_parse_buddyinfo(TEXT("Node 0, zone DMA 0 0 0 0 9223372036854775807 1\n"), &c));
	CHECK_INT(c.free_costly_blocks, INT64_MAX);
}

TEST(pressure_texts)
{
	KaCounters	c;

	CHECK(ka_parse_pressure(TEXT("some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551615\n"
								 "full avg10=99.99 avg60=0.00 avg300=0.00 total=42\n"), &c));
	CHECK_INT(c.pressure_some_us, INT64_MAX);
	CHECK_INT(c.pressure_full_us, 42);
	CHECK(!ka_parse_pressure(TEXT(""), &c));
	CHECK(!ka_parse_pressure(TEXT("some avg10=0.00\n"), &c));
	CHECK(!ka_parse_pressure(TEXT("some total=1"), &c));
	CHECK(!ka_parse_pressure(TEXT("some total=-1\n"), &c));
	CHECK(!ka_parse_pressure(TEXT("full total=1\n"), &c));
}

TEST(vmstat_texts)
{
	KaCounters	c;

	memset(&c, 0xFF, sizeof(c));
	CHECK(ka_parse_vmstat(TEXT("nr_free_pages 1\nnr_dirty 9007199254740993\nnr_writeback 0\nallocstall 12\n"
							   "compact_stall 9\ncompact_stalls 5\n"), 65536, &c));
	CHECK_INT(c.free_bytes, 65536);
	CHECK_INT(c.dirty_bytes, INT64_MAX);	/* saturated */
	CHECK_INT(c.writeback_bytes, 0);
	CHECK_INT(c.page_table_bytes, KA_UNKNOWN);
	CHECK_INT(c.allocstall, 12);	/* before 4.8 */
	CHECK_INT(c.compact_stall, 9);
	CHECK_INT(c.compact_fail, KA_UNKNOWN);
	CHECK(!ka_parse_vmstat(TEXT(""), 4096, &c));
	CHECK(!ka_parse_vmstat(TEXT("compact_stall 1\n"), 4096, &c));
	CHECK(!ka_parse_vmstat(TEXT("nr_free_pages 1"), 4096, &c));
}

TEST(block_stat_texts)
{
	KaCounters	c;

	memset(&c, 0xFF, sizeof(c));
	CHECK(ka_parse_block_stat(TEXT("       1        2 3 4 5 6 7 8 9 10 11\n"), &c));
	CHECK_INT(c.write_ios, 5);
	CHECK_INT(c.write_merges, 6);
	CHECK_INT(c.write_bytes, 3584); /* 7 sectors */
	CHECK_INT(c.write_ms, 8);
	CHECK_INT(c.io_ms, 10);
	CHECK(ka_parse_block_stat(TEXT("0 0 0 0 100 0 0 0 0 7 0 1 2 3 4 5 6\n"), &c)); /* added, but for the time of I/O */
	CHECK_INT(c.write_ios, 105);
	CHECK_INT(c.write_bytes, 3584);
	CHECK_INT(c.io_ms, 7);
	CHECK(!ka_parse_block_stat(TEXT(""), &c));
	CHECK(!ka_parse_block_stat(TEXT("1 2 3 4 5 6 7 8 9 10\n"), &c));
	CHECK(!ka_parse_block_stat(TEXT("1 2 3 4 5 6 7 8 9 10 11"), &c));
	CHECK(!ka_parse_block_stat(TEXT("1 2 3 4 5 6 7 -8 9 10 11\n"), &c));
}
