/*
 * test_boot.c: what wins at boot: sysctl.d, tmpfiles.d, the command line.
 *
 * Machines: test/fixtures/make_machine.py.  Precedence: sysctl.d(5),
 * tmpfiles.d(5) and sysctl(8).
 */
#define _GNU_SOURCE 1

#include <sys/stat.h>
#include <unistd.h>

#include "boot.h"
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

#define CHECK_BOOT(knob, wanted, wanted_file) \
	do { \
		CHECK(facts.boot[KA_KNOB_##knob].known); \
		CHECK_INT(facts.boot[KA_KNOB_##knob].value, wanted); \
		CHECK_STR(facts.boot[KA_KNOB_##knob].file, wanted_file); \
	} while (0)

TEST(systemd_precedence)
{
	collect("debian-6.1");
	/* The later name wins, though its directory is the last. */
	CHECK_BOOT(NR_HUGEPAGES, 1024, "/usr/lib/sysctl.d/80-vpp.conf");
	/* A name wins over a pattern that comes later. */
	CHECK_BOOT(ZONE_RECLAIM_MODE, 1, "/etc/sysctl.d/30-postgresql.conf");
	CHECK_BOOT(WATERMARK_BOOST_FACTOR, 99, "/etc/sysctl.d/70-patterns.conf");
	/* An exclusion takes the name out of patterns. */
	CHECK_BOOT(DIRTY_RATIO, KA_UNKNOWN, NULL);
	/* Of two files of one name the first directory's counts, for all keys. */
	CHECK_BOOT(DIRTY_BYTES, 2, "/run/sysctl.d/90-masked.conf");
	CHECK_BOOT(OVERCOMMIT_MEMORY, KA_UNKNOWN, NULL);
	/* Masked by a link to /dev/null, and by an empty file. */
	CHECK_BOOT(DIRTY_BACKGROUND_BYTES, KA_UNKNOWN, NULL);
	CHECK_BOOT(OVERCOMMIT_RATIO, 70, "/etc/sysctl.d/40-forms.conf");
	CHECK_BOOT(OVERCOMMIT_KBYTES, 16, "/etc/sysctl.d/40-forms.conf");
	CHECK_BOOT(MIN_FREE_KBYTES, 262144, "/etc/sysctl.d/40-forms.conf");
	/* The kernel will refuse it. */
	CHECK_BOOT(WATERMARK_SCALE_FACTOR, KA_UNKNOWN, "/etc/sysctl.d/40-forms.conf");
	/* sysctl.x= of the command line, which no file overrides here. */
	CHECK_BOOT(SWAPPINESS, 5, "/proc/cmdline");
	CHECK_BOOT(EXTFRAG_THRESHOLD, 700, "/proc/cmdline");
	ka_malloc_free(&arena);
}

TEST(sysctl_conf_by_its_link_under_systemd)
{
	collect("el8-4.18");
	CHECK_BOOT(SWAPPINESS, 10, "/etc/sysctl.conf");
	CHECK_BOOT(NR_HUGEPAGES, KA_UNKNOWN, NULL);
	ka_malloc_free(&arena);
}

TEST(sysctl_conf_last_without_systemd)
{
	collect("server-6.8");
	CHECK_BOOT(NR_HUGEPAGES, 5000, "/etc/sysctl.conf");
	CHECK_BOOT(SWAPPINESS, 1, "/etc/sysctl.d/99-late.conf");
	CHECK_INT(ka_pool(&facts, 2097152)->asked, 5000);	/* 4000 are there */
	ka_malloc_free(&arena);

	collect("appliance-5.15");
	CHECK_BOOT(SWAPPINESS, 30, "/etc/sysctl.conf");
	CHECK_BOOT(OVERCOMMIT_MEMORY, 1, "/etc/sysctl.d/10-a.conf");
	ka_malloc_free(&arena);
}

TEST(a_container_s_files_do_not_count)
{
	collect("container-5.15");
	for (int knob = 0; knob < KA_NSYSCTLS; knob++)
		CHECK(!facts.boot[knob].known);
	CHECK(!facts.boot_thp_known);
	ka_malloc_free(&arena);
}

static void
put(const char *root, const char *name, const char *text, mode_t mode)
{
	char		full[512];
	FILE	   *file;

	snprintf(full, sizeof(full), "%s%s", root, name);
	file = fopen(full, "w");
	REQUIRE(file != NULL);
	fputs(text, file);
	fclose(file);
	chmod(full, mode);
}

/* What a file might say that we may not read is not known; what comes after it is. */
TEST(an_unreadable_file)
{
	char		root[] = "/tmp/ka_boot.XXXXXX";
	char		name[512];
	KaSource	source = {.root = root};
	bool		was_root = geteuid() == 0;

	REQUIRE(mkdtemp(root) != NULL);
	chmod(root, 0755);
	snprintf(name, sizeof(name), "mkdir -p -m 755 %s/etc/sysctl.d %s/etc/tmpfiles.d", root, root);
	CHECK_INT(system(name), 0);
	snprintf(name, sizeof(name), "%s/etc", root);
	chmod(name, 0755);
	put(root, "/etc/sysctl.d/10-a.conf", "vm.swappiness = 1\n", 0644);
	put(root, "/etc/sysctl.d/20-secret.conf", "vm.swappiness = 2\n", 0000);
	put(root, "/etc/sysctl.d/30-b.conf", "vm.nr_hugepages = 3\n", 0644);
	put(root, "/etc/tmpfiles.d/secret.conf", "w /a - - - - b\n", 0000);

	if (was_root)
		CHECK_INT(seteuid(65534), 0);
	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	CHECK(ka_collect_boot(&facts, &source));
	if (was_root)
		CHECK_INT(seteuid(0), 0);

	CHECK_BOOT(NR_HUGEPAGES, 3, "/etc/sysctl.d/30-b.conf");
	CHECK(!facts.boot[KA_KNOB_SWAPPINESS].known);
	CHECK(!facts.boot[KA_KNOB_OVERCOMMIT_MEMORY].known);
	CHECK(!facts.boot_thp_known);
	ka_malloc_free(&arena);
	snprintf(name, sizeof(name), "rm -r %s", root);
	CHECK_INT(system(name), 0);
}

TEST(thp_at_boot)
{
	/* The first line wins, over later files and the command line. */
	collect("debian-6.1");
	CHECK_STR(ka_text(&facts, KA_BOOT_THP_VALUE), "madvise");
	CHECK_STR(ka_text(&facts, KA_BOOT_THP_FILE), "/etc/tmpfiles.d/10-thp.conf");
	ka_malloc_free(&arena);

	collect("server-6.8");
	CHECK_STR(ka_text(&facts, KA_BOOT_THP_VALUE), "never");
	CHECK_STR(ka_text(&facts, KA_BOOT_THP_FILE), "/etc/tmpfiles.d/a.conf");
	ka_malloc_free(&arena);

	/* Known that nothing sets it. */
	collect("el8-4.18");
	CHECK(facts.boot_thp_known);
	CHECK_STR(ka_text(&facts, KA_BOOT_THP_VALUE), NULL);
	CHECK_STR(ka_text(&facts, KA_BOOT_THP_FILE), NULL);
	ka_malloc_free(&arena);
}

TEST(pools_of_the_command_line)
{
	collect("debian-6.1");
	REQUIRE(facts.nboot_pools == 2);
	CHECK_INT(facts.boot_pools[0].size_bytes, INT64_C(1) << 30);
	CHECK_INT(facts.boot_pools[0].pages, 4);
	CHECK_INT(facts.boot_pools[1].size_bytes, 2097152);
	CHECK_INT(facts.boot_pools[1].pages, 1024);
	CHECK_INT(ka_pool(&facts, INT64_C(1) << 30)->asked, 4); /* 2 are there */
	CHECK_INT(ka_pool(&facts, 2097152)->asked, KA_UNKNOWN);
	ka_malloc_free(&arena);

	collect("el8-4.18");
	REQUIRE(facts.nboot_pools == 1);
	CHECK_INT(facts.boot_pools[0].size_bytes, 2097152); /* the default size */
	CHECK_INT(facts.boot_pools[0].pages, 600);
	ka_malloc_free(&arena);

	collect("server-6.8");		/* by node: 4 * 10 */
	REQUIRE(facts.nboot_pools == 1);
	CHECK_INT(facts.boot_pools[0].size_bytes, INT64_C(1) << 30);
	CHECK_INT(facts.boot_pools[0].pages, 40);
	ka_malloc_free(&arena);
}

/* ---- lines */

TEST(sysctl_lines)
{
	static const struct
	{
		const char *line,
				   *key;		/* NULL: no setting */
		const char *value;		/* NULL: an exclusion */
		bool		pattern;
	}			rows[] = {
		{"", NULL, NULL, false},
		{"   ", NULL, NULL, false},
		{"# vm.x = 1", NULL, NULL, false},
		{"  ; vm.x = 1", NULL, NULL, false},
		{"vm.x", NULL, NULL, false},
		{"= 1", NULL, NULL, false},
		{"-", NULL, NULL, false},
		{"vm.x=1", "vm/x", "1", false},
		{"\tvm.x = a b \r", "vm/x", "a b", false},
		{"vm.x==1", "vm/x", "=1", false},
		{"vm/x = 1", "vm/x", "1", false},
		/* the first separator decides what the others are */
		{"net.ipv4.conf.enp3s0/200.forwarding = 1", "net/ipv4/conf/enp3s0.200/forwarding", "1", false},
		{"net/ipv4/conf/enp3s0.200/forwarding = 1", "net/ipv4/conf/enp3s0.200/forwarding", "1", false},
		{"-vm.x = 1", "vm/x", "1", false},
		{"-vm.x", "vm/x", NULL, false},
		{"vm.* = 1", "vm/*", "1", true},
		{"-vm.[ab]", "vm/[ab]", NULL, true},
	};

	for (size_t i = 0; i < KA_LENGTH(rows); i++)
	{
		KaSysctlLine setting;
		bool		is = ka_parse_sysctl_line(ka_span_text(rows[i].line), &setting);

		NOTE("\"%s\"", rows[i].line);
		CHECK_INT(is, rows[i].key != NULL);
		if (!is || rows[i].key == NULL)
			continue;
		CHECK_STR(setting.key, rows[i].key);
		CHECK_INT(setting.assigns, rows[i].value != NULL);
		CHECK_INT(setting.pattern, rows[i].pattern);
		if (rows[i].value)
			CHECK(ka_equals(setting.value, rows[i].value));
	}
}

TEST(sysctl_values)
{
	int64_t		value = 0;

	CHECK(ka_parse_sysctl_value(ka_span_text("500"), &value));
	CHECK_INT(value, 500);
	CHECK(ka_parse_sysctl_value(ka_span_text("0x1F4"), &value));
	CHECK_INT(value, 500);
	CHECK(ka_parse_sysctl_value(ka_span_text("0764"), &value));
	CHECK_INT(value, 500);
	CHECK(ka_parse_sysctl_value(ka_span_text("0"), &value));
	CHECK_INT(value, 0);
	CHECK(ka_parse_sysctl_value(ka_span_text("99999999999999999999"), &value));
	CHECK_INT(value, INT64_MAX);
	CHECK(!ka_parse_sysctl_value(ka_span_text(""), &value));
	CHECK(!ka_parse_sysctl_value(ka_span_text("0x"), &value));
	CHECK(!ka_parse_sysctl_value(ka_span_text("-1"), &value));
	CHECK(!ka_parse_sysctl_value(ka_span_text("08"), &value));
	CHECK(!ka_parse_sysctl_value(ka_span_text("5 6"), &value));
}

TEST(tmpfiles_lines)
{
	static const struct
	{
		const char *line,
				   *path;		/* NULL: not a line that writes */
		const char *argument;
		bool		append;
	}			rows[] = {
		{"w /sys/a - - - - never", "/sys/a", "never", false},
		{"w+ /sys/a - - - - never", "/sys/a", "never", true},
		{"w!-  /sys/a\t0644 root root 10d  a b ", "/sys/a", "a b", false},
		{"w \"/sys/a b\" - - - - \"never\"", "/sys/a b", "never", false},
		{"w /sys/* - - - - 1", "/sys/*", "1", false},
		{"w /sys/a - - - -", NULL, NULL, false},	/* nothing to write */
		{"w /sys/a", NULL, NULL, false},
		{"w sys/a - - - - 1", NULL, NULL, false},
		{"#w /sys/a - - - - 1", NULL, NULL, false},
		{"f /sys/a - - - - 1", NULL, NULL, false},
		{"wx /sys/a - - - - 1", NULL, NULL, false},
		{"", NULL, NULL, false},
	};

	for (size_t i = 0; i < KA_LENGTH(rows); i++)
	{
		KaWriteLine write;
		bool		is = ka_parse_write_line(ka_span_text(rows[i].line), &write);

		NOTE("\"%s\"", rows[i].line);
		CHECK_INT(is, rows[i].path != NULL);
		if (!is || rows[i].path == NULL)
			continue;
		CHECK_STR(write.path, rows[i].path);
		CHECK(ka_equals(write.argument, rows[i].argument));
		CHECK_INT(write.append, rows[i].append);
	}
}

static KaBootArguments
cmdline(const char *text)
{
	KaBootArguments arguments;

	ka_parse_cmdline(ka_span_text(text), &arguments);
	return arguments;
}

TEST(command_lines)
{
	KaBootArguments a;

	/* before any size, counts are of the default size */
	a = cmdline("hugepages=5 default_hugepagesz=1G hugepages=6 hugepagesz=2M hugepages=7\n");
	CHECK_INT(a.default_size, INT64_C(1) << 30);
	REQUIRE(a.npools == 3);
	CHECK_INT(a.pools[0].size_bytes, KA_UNKNOWN);
	CHECK_INT(a.pools[0].pages, 5);
	CHECK_INT(a.pools[1].size_bytes, INT64_C(1) << 30);
	CHECK_INT(a.pools[1].pages, 6);
	CHECK_INT(a.pools[2].size_bytes, 2097152);
	CHECK_INT(a.pools[2].pages, 7);

	/* a size that is not understood takes its counts with it */
	a = cmdline("hugepagesz=2X hugepages=5 hugepagesz=64k hugepages=9");
	REQUIRE(a.npools == 1);
	CHECK_INT(a.pools[0].size_bytes, 65536);
	CHECK_INT(a.pools[0].pages, 9);

	/* the first count of a size stands */
	a = cmdline("hugepagesz=2M hugepages=5 hugepagesz=2M hugepages=9 hugepages=x");
	REQUIRE(a.npools == 1);
	CHECK_INT(a.pools[0].pages, 5);

	a = cmdline("quiet transparent_hugepage=always transparent_hugepage=sometimes preempt=lazy");
	CHECK_STR(a.thp, "always");
	CHECK_STR(a.preempt, "lazy");
	a = cmdline("transparent-hugepage=never dyndbg=\"file a.c +p hugepages=3\" x=\"a b\"");
	CHECK_STR(a.thp, "never");
	CHECK_INT(a.npools, 0);

	/* what follows -- is for init */
	a = cmdline("quiet -- hugepages=3 transparent_hugepage=never");
	CHECK_INT(a.npools, 0);
	CHECK_STR(a.thp, "");

	a = cmdline("sysctl.vm.extfrag_threshold=1000 sysctl.vm/swappiness=7 sysctl.kernel.x=1 sysctl.vm.nr_hugepages=no");
	CHECK_INT(a.sysctl[KA_KNOB_EXTFRAG_THRESHOLD], 1000);
	CHECK_INT(a.sysctl[KA_KNOB_SWAPPINESS], 7);
	CHECK_INT(a.sysctl[KA_KNOB_NR_HUGEPAGES], KA_UNKNOWN);

	a = cmdline("hugepages=0:3,1:4 hugepagesz=1G hugepages=0:x");
	REQUIRE(a.npools == 1);
	CHECK_INT(a.pools[0].pages, 7);
	a = cmdline("hugepagesz=99999999999T hugepages=18446744073709551616");
	REQUIRE(a.npools == 1);
	CHECK_INT(a.pools[0].size_bytes, INT64_MAX);
	CHECK_INT(a.pools[0].pages, INT64_MAX);
}
