/*
 * test_bounds.c: the bounds file: what is taken, and each way to be refused.
 */
#define _GNU_SOURCE 1

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bounds.h"
#include "ka_test.h"

/* Parses over the defaults; the message, or "" when it is taken. */
static const char *
problem(KaBounds *bounds, const char *text)
{
	static char error[256];
	size_t		length = strlen(text);
	char	   *copy = malloc(length > 0 ? length : 1);

	memcpy(copy, text, length);
	error[0] = '\0';
	if (!ka_bounds_default(bounds))
		abort();
	ka_bounds_parse(bounds, "f", copy, length, error, sizeof(error));
	free(copy);
	return error;
}

TEST(everything_that_can_be_said)
{
	KaBounds	bounds;
	KaRange		range;

	CHECK_STR(problem(&bounds, "# a comment\n\n  allowed_users = root , nobody\nmin_available=2GB\t# why\n"
					  "pool_max_percent = 50\nchanges_per_hour = 0\npersist = off\ndrop_caches = off\n"
					  "vm.swappiness = 10..20\nvm.overcommit_memory = off\n"
					  "hugepages-1048576kB.nr_hugepages = 0..4\r\n"), "");
	CHECK_INT(bounds.nusers, 2);
	CHECK(ka_bounds_allow_user(&bounds, 0));
	CHECK(ka_bounds_allow_user(&bounds, bounds.users[1]));
	CHECK(!ka_bounds_allow_user(&bounds, 12345));
	CHECK_INT(bounds.min_available_bytes, INT64_C(2) << 30);
	CHECK_INT(bounds.pool_max_percent, 50);
	CHECK_INT(bounds.changes_per_hour, 0);
	CHECK(!bounds.persist && !bounds.drop_caches);
	range = ka_bounds_range(&bounds, ka_knob_find(KA_HK_SWAPPINESS), INT64_C(1) << 34, 0);
	CHECK_INT(range.min, 10);
	CHECK_INT(range.max, 20);
	CHECK(ka_bounds_range(&bounds, ka_knob_find(KA_HK_OVERCOMMIT_MEMORY), INT64_C(1) << 34, 0).off);
	range = ka_bounds_range(&bounds, ka_knob_find(KA_HK_POOL_1048576KB), INT64_C(100) << 30, INT64_C(1) << 30);
	CHECK_INT(range.max, 4);
	ka_bounds_free(&bounds);
}

TEST(share_of_memory)
{
	KaBounds	bounds;
	int64_t		ram = INT64_C(100) << 30;

	CHECK_STR(problem(&bounds, "pool_max_percent = 75\n"), "");
	CHECK_INT(ka_bounds_range(&bounds, ka_knob_find(KA_HK_POOL_2048KB), ram, 2097152).max, 75 * 512);
	CHECK_INT(ka_bounds_range(&bounds, ka_knob_find(KA_HK_MIN_FREE_KBYTES), ram, 0).max, 5 * 1048576);
	CHECK_INT(ka_bounds_range(&bounds, ka_knob_find(KA_HK_DIRTY_BYTES), ram, 0).max, INT64_C(50) << 30);
	ka_bounds_free(&bounds);
}

TEST(mistakes_name_file_and_line)
{
	static const struct
	{
		const char *text;
		const char *message;
	}			cases[] = {
		{"pool_percent = 5\n", "f:1: pool_percent: unknown key"},
		{"\n# x\nvm.dirty_ratio = 0..1\n", "f:3: vm.dirty_ratio: unknown key"},
		{"persist = on\npersist = on\n", "f:2: persist: given twice"},
		{"vm.swappiness = off\nvm.swappiness = 0..1\n", "f:2: vm.swappiness: given twice"},
		{"persist\n", "f:1: persist: \"key = value\" is expected"},
		{"persist = yes\n", "f:1: persist: on or off is expected"},
		{"min_available = 512\n", "f:1: min_available: a size with its unit is expected, like 512MB (B, kB, MB, GB)"},
		{"min_available = 99999999999GB\n", "f:1: min_available: a size with its unit is expected, like 512MB (B, kB, MB, GB)"},
		{"pool_max_percent = 96\n", "f:1: pool_max_percent: a share of memory from 0 to 95 is expected"},
		{"changes_per_hour = -1\n", "f:1: changes_per_hour: a number from 0 to 1000000 is expected"},
		{"allowed_users = no-such-user-here\n", "f:1: allowed_users: the machine has no user of this name"},
		{"allowed_users = root,,root\n", "f:1: allowed_users: names of users, separated by commas, are expected"},
		{"vm.swappiness = 0..201\n", "f:1: vm.swappiness: the range is wider than what the helper allows anyway"},
		{"vm.swappiness = 20..10\n", "f:1: vm.swappiness: off, or a range like 0..100, is expected"},
		{"vm.swappiness = 20\n", "f:1: vm.swappiness: off, or a range like 0..100, is expected"},
		{"= 1\n", "f:1: : unknown key"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		KaBounds	bounds;

		CHECK_STR(problem(&bounds, cases[i].text), cases[i].message);
		ka_bounds_free(&bounds);
	}
}

TEST(not_text)
{
	KaBounds	bounds;
	char		error[256] = "";

	REQUIRE(ka_bounds_default(&bounds));
	CHECK(!ka_bounds_parse(&bounds, "f", "\n\0\n", 3, error, sizeof(error)));
	CHECK_STR(error, "f:2: : not a text file");
	ka_bounds_free(&bounds);
}

/* Needs root to make files of root; as another user the file is refused as such. */
TEST(only_root_may_have_written_it)
{
	char		directory[] = "/var/tmp/test_bounds.XXXXXX";
	char		path[64];
	char		error[256];
	KaBounds	bounds;
	bool		found;
	FILE	   *file;

	REQUIRE(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/bounds.conf", directory);
	REQUIRE(ka_bounds_default(&bounds));
	CHECK(ka_bounds_load(&bounds, "", path, &found, error, sizeof(error)));
	CHECK(!found);
	file = fopen(path, "w");
	REQUIRE(file != NULL);
	fputs("pool_max_percent = 10\n", file);
	fclose(file);
	chmod(path, 0644);
	if (geteuid() == 0)
	{
		CHECK(ka_bounds_load(&bounds, "", path, &found, error, sizeof(error)));
		CHECK(found);
		CHECK_INT(bounds.pool_max_percent, 10);
		chmod(path, 0664);
		CHECK(!ka_bounds_load(&bounds, "", path, &found, error, sizeof(error)));
		CHECK(strstr(error, "writable by group or others (mode 0664)") != NULL);
		chmod(path, 0646);
		CHECK(!ka_bounds_load(&bounds, "", path, &found, error, sizeof(error)));
		chmod(path, 0644);
		chmod(directory, 0777);
		CHECK(!ka_bounds_load(&bounds, "", path, &found, error, sizeof(error)));
		CHECK(strstr(error, "writable by group or others (mode 0777)") != NULL);
		chmod(directory, 0700);
		REQUIRE(chown(path, 1, 0) == 0);
		CHECK(!ka_bounds_load(&bounds, "", path, &found, error, sizeof(error)));
		CHECK(strstr(error, "owned by uid 1, must be owned by root") != NULL);
		unlink(path);
		REQUIRE(symlink("/etc/passwd", path) == 0);
		CHECK(!ka_bounds_load(&bounds, "", path, &found, error, sizeof(error)));
		unlink(path);
		REQUIRE(mkdir(path, 0755) == 0);
		CHECK(!ka_bounds_load(&bounds, "", path, &found, error, sizeof(error)));
		CHECK(strstr(error, "not a regular file") != NULL);
		rmdir(path);
	}
	else
	{
		CHECK(!ka_bounds_load(&bounds, "", path, &found, error, sizeof(error)));
		CHECK(strstr(error, "must be owned by root") != NULL);
	}
	unlink(path);
	rmdir(directory);
	ka_bounds_free(&bounds);
}
