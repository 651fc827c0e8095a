/*
 * test_storage.c: from a directory to the name in /proc/diskstats, and names
 * below a root directory.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect_priv.h"
#include "ka_test.h"

static KaArena arena;
static KaFacts facts;

static void
collect(const char *root, const char *data, const char *wal)
{
	KaSource	source = {.root = root,.data_directory = data,.wal_directory = wal};

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	CHECK(ka_collect_storage(&facts, &source));
}

TEST(devices)
{
	static const struct
	{
		const char *machine,
				   *data,
				   *wal;
		const char *data_filesystem,
				   *data_device,
				   *wal_filesystem,
				   *wal_device;
	}			rows[] = {
		/* a logical volume; pg_wal is a link to a partition, its name has a blank */
		{"el8-4.18", "/var/lib/pgsql/data", NULL, "xfs", "dm-0", "ext4", "sda1"},
		{"el8-4.18", "/var/lib/pgsql/data/", "/wal disk/../wal disk/./pg_wal", "xfs", "dm-0", "ext4", "sda1"},
		/* the device of the root is known, but it does not exist */
		{"el8-4.18", "/var/lib/pgsql/none", NULL, NULL, NULL, NULL, NULL},
		/* the upper directory is the host's */
		{"container-5.15", "/var/lib/postgresql/data", NULL, "overlay", NULL, "overlay", NULL},
		/* btrfs on a logical volume; no device under tmpfs */
		{"debian-6.1", "/srv/pg/data", "/scratch/wal", "btrfs", "dm-0", "tmpfs", NULL},
		{"server-6.8", "/data", NULL, "ext4", "md0", "ext4", "md0"},
		/* a slash in the device's name is written ! in sysfs */
		{"server-6.8", "/old", NULL, "ext3", "cciss/c0d0p1", "ext3", "cciss/c0d0p1"},
		{"vm-6.18", "/srv/pg", NULL, "ext4", "vda", "ext4", "vda"},
		{"garbage", "/etc", NULL, NULL, NULL, NULL, NULL},
		{"server-6.8", NULL, NULL, NULL, NULL, NULL, NULL},
		{"server-6.8", "data", NULL, NULL, NULL, NULL, NULL},	/* not absolute */
	};

	for (size_t i = 0; i < KA_LENGTH(rows); i++)
	{
		NOTE("%s %s", rows[i].machine, rows[i].data ? rows[i].data : "");
		collect(ka_machine(rows[i].machine), rows[i].data, rows[i].wal);
		CHECK_STR(ka_text(&facts, KA_DATA_FILESYSTEM), rows[i].data_filesystem);
		CHECK_STR(ka_text(&facts, KA_DATA_DEVICE), rows[i].data_device);
		CHECK_STR(ka_text(&facts, KA_WAL_FILESYSTEM), rows[i].wal_filesystem);
		CHECK_STR(ka_text(&facts, KA_WAL_DEVICE), rows[i].wal_device);
		ka_malloc_free(&arena);
	}
}

TEST(this_machine)
{
	collect("", "/proc", "/no/such/directory");
	CHECK_STR(ka_text(&facts, KA_DATA_FILESYSTEM), "proc");
	CHECK_STR(ka_text(&facts, KA_DATA_DEVICE), NULL);
	CHECK_STR(ka_text(&facts, KA_WAL_FILESYSTEM), NULL);
	ka_malloc_free(&arena);
}

TEST(mountinfo_lines)
{
	KaMount		mount;
	char		name[64];

	CHECK(ka_parse_mount(ka_span_text("36 35 98:5 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue"), &mount));
	CHECK_INT(mount.major, 98);
	CHECK_INT(mount.minor, 5);
	CHECK(ka_equals(mount.root, "/mnt1"));
	CHECK(ka_unescape(mount.point, name, sizeof(name)));
	CHECK_STR(name, "/mnt 2");
	CHECK(ka_in_list(mount.options, "noatime"));
	CHECK(!ka_in_list(mount.options, "no"));
	CHECK(ka_equals(mount.type, "ext3"));
	CHECK(ka_equals(mount.source, "/dev/root"));
	CHECK(ka_in_list(mount.super_options, "errors=continue"));
	CHECK(!ka_parse_mount(ka_span_text(""), &mount));
	CHECK(!ka_parse_mount(ka_span_text("36 35 98 /mnt1 /mnt2 rw - ext3 /dev/root rw"), &mount));
	CHECK(!ka_parse_mount(ka_span_text("36 35 98:5 /mnt1 /mnt2 rw ext3 /dev/root rw"), &mount));
	CHECK(!ka_parse_mount(ka_span_text("36 35 98:5 /mnt1 /mnt2 rw -"), &mount));

	/* \000 is no character of a name; what does not fit is not cut */
	CHECK(ka_unescape(ka_span_text("a\\000b\\"), name, sizeof(name)));
	CHECK_STR(name, "a\\000b\\");
	CHECK(!ka_unescape(ka_span_text("12345678"), name, 8));
	CHECK(ka_unescape(ka_span_text("1234567"), name, 8));
}

TEST(the_mount_that_holds_a_name)
{
	static const char text[] =
		"1 0 1:1 / / rw - a a rw\n"
		"2 1 2:2 / /data rw - b b rw\n"
		"3 1 3:3 / /database rw - c c rw\n"
		"4 2 4:4 / /data/x rw - d d rw\n"
		"5 2 5:5 / /data rw - e e rw\n";	/* covers the second */
	KaSpan		mountinfo = ka_span_text(text);
	KaMount		mount;

	CHECK(ka_find_mount(mountinfo, "/data", &mount));
	CHECK_INT(mount.major, 5);
	CHECK(ka_find_mount(mountinfo, "/database/x", &mount));
	CHECK_INT(mount.major, 3);
	CHECK(ka_find_mount(mountinfo, "/data/x/y", &mount));
	CHECK_INT(mount.major, 4);
	CHECK(ka_find_mount(mountinfo, "/datab", &mount));
	CHECK_INT(mount.major, 1);
	CHECK(!ka_find_mount(ka_span_text(""), "/", &mount));

	/* a mount point is absolute, and has no NUL */
	CHECK(!ka_find_mount(ka_span("1 0 1:1 / \0/ rw - a a rw\n", 25), "/x", &mount));
	CHECK(!ka_find_mount(ka_span_text("1 0 1:1 / x rw - a a rw\n"), "/x", &mount));
}

/* ---- names below a root directory */

TEST(links_stay_below_the_root)
{
	char		root[] = "/tmp/ka_path.XXXXXX";
	char		name[256];
	char		resolved[KA_PATH_MAX];
	char		small[7];
	KaPath		path;
	static const struct
	{
		const char *link,
				   *target;
	}			links[] = {
		{"/absolute", "/a/file"},
		{"/up", "../../../../../../../a/file"},
		{"/a/relative", "../a/./file"},
		{"/directory", "/a"},
		{"/loop", "loop"},
		{"/loop1", "/loop2"},
		{"/loop2", "/loop1"},
		{"/hostname", "/etc/hostname"},
		{"/dangling", "/nowhere"},
	};

	REQUIRE(mkdtemp(root) != NULL);
	snprintf(name, sizeof(name), "%s/a", root);
	mkdir(name, 0700);
	snprintf(name, sizeof(name), "%s/a/file", root);
	{
		FILE	   *file = fopen(name, "w");

		REQUIRE(file != NULL);
		fputs("  42 \nmore\n", file);
		fclose(file);
	}
	snprintf(name, sizeof(name), "%s/fifo", root);
	mkfifo(name, 0600);
	for (size_t i = 0; i < KA_LENGTH(links); i++)
	{
		snprintf(name, sizeof(name), "%s%s", root, links[i].link);
		REQUIRE(symlink(links[i].target, name) == 0);
	}

	CHECK_INT(ka_path_resolve(root, "/absolute", resolved, sizeof(resolved)), 0);
	CHECK_STR(resolved, "/a/file");
	CHECK_INT(ka_path_resolve(root, "/up", resolved, sizeof(resolved)), 0);
	CHECK_STR(resolved, "/a/file");
	CHECK_INT(ka_path_resolve(root, "/directory/relative", resolved, sizeof(resolved)), 0);
	CHECK_STR(resolved, "/a/file");
	CHECK_INT(ka_path_resolve(root, "//a/..//../a/", resolved, sizeof(resolved)), 0);
	CHECK_STR(resolved, "/a");
	CHECK_INT(ka_path_resolve(root, "/..", resolved, sizeof(resolved)), 0);
	CHECK_STR(resolved, "/");
	CHECK_INT(ka_path_resolve(root, "/loop", resolved, sizeof(resolved)), -ELOOP);
	CHECK_INT(ka_path_resolve(root, "/loop1", resolved, sizeof(resolved)), -ELOOP);
	CHECK_INT(ka_path_resolve(root, "/hostname", resolved, sizeof(resolved)), -ENOENT);
	CHECK_INT(ka_path_resolve(root, "/dangling", resolved, sizeof(resolved)), -ENOENT);
	CHECK_INT(ka_path_resolve(root, "a", resolved, sizeof(resolved)), -EINVAL);
	CHECK_INT(ka_path_resolve(root, "/a/file", small, sizeof(small)), -ENAMETOOLONG);

	ka_path_init(&path, root);
	CHECK_STR(ka_path_line(&path, "/up"), "42");
	CHECK_INT(ka_path_number(&path, "/a/file"), KA_UNKNOWN);	/* more than a number */
	CHECK_INT(ka_path_read(&path, "/a"), -EISDIR);
	CHECK_INT(ka_path_read(&path, "/fifo"), -EINVAL);	/* and does not wait */
	CHECK_INT(ka_path_read(&path, "/none"), -ENOENT);
	CHECK_INT(path.length, 0);
	ka_path_free(&path);

	snprintf(name, sizeof(name), "rm -r %s", root);
	CHECK_INT(system(name), 0);
}

TEST(a_file_without_end_is_refused)
{
	char		name[] = "/tmp/ka_large.XXXXXX";
	int			fd = mkstemp(name);
	KaPath		path;

	REQUIRE(fd >= 0);
	REQUIRE(ftruncate(fd, (off_t) KA_FILE_MAX + 1) == 0);
	ka_path_init(&path, "");
	CHECK_INT(ka_path_read(&path, name), -EFBIG);
	REQUIRE(ftruncate(fd, (off_t) KA_FILE_MAX) == 0);
	CHECK_INT(ka_path_read(&path, name), 0);
	CHECK_INT(path.length, KA_FILE_MAX);
	ka_path_free(&path);
	close(fd);
	unlink(name);
}
