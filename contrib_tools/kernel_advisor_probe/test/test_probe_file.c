/*
 * test_probe_file.c: the reader, with a file of this process and with files
 * that are hostile; the writer, with the reader.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ka_test.h"
#include "probe_file.h"
#include "publish.h"

static char directory[] = "/var/tmp/test_probe_file.XXXXXX";
static char path[128];
static KaProbeFile copy;
static KaProbeFile file;

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

/* A good file, in memory. */
static void
make_good(void)
{
	memset(&file, 0, sizeof(file));
	file.header = (KaProbeHeader) {.magic = KA_PROBE_MAGIC, .version = KA_PROBE_VERSION, .size = sizeof(KaProbeFile),
		.sequence = 2, .generation = 1, .heartbeat_ns = now_ns(), .interval_ms = 100, .ngroups = 2, .nprocesses = 1};
	file.groups[1].counters.drain_alls = 42;
	file.processes[0].pid = 4711;
	memset(file.processes[0].comm, 'x', sizeof(file.processes[0].comm));
	file.totals.kcompactd_wakes = 7;
}

static void
write_file(size_t size)
{
	int			fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	REQUIRE(fd >= 0);
	REQUIRE(write(fd, &file, size < sizeof(file) ? size : sizeof(file)) >= 0);
	REQUIRE(ftruncate(fd, (off_t) size) == 0);
	close(fd);
}

static void
set_up(void)
{
	if (directory[strlen(directory) - 1] == 'X')
		REQUIRE(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/counters", directory);
	unlink(path);
	make_good();
}

static KaProbeState
read_once(const char **problem)
{
	static char why[128];
	KaProbeReader reader = {0};
	KaProbeState state = ka_probe_read(&reader, path, now_ns(), &copy);

	snprintf(why, sizeof(why), "%s", reader.problem ? reader.problem : "");
	if (problem)
		*problem = why;
	ka_probe_close(&reader);
	return state;
}

TEST(good)
{
	set_up();
	write_file(sizeof(file));
	CHECK_INT(read_once(NULL), KA_PROBE_OK);
	CHECK_INT(copy.groups[1].counters.drain_alls, 42);
	CHECK_INT(copy.processes[0].pid, 4711);
	CHECK_INT(copy.totals.kcompactd_wakes, 7);
	CHECK_INT(strlen(copy.processes[0].comm), 15);
}

TEST(absent)
{
	set_up();
	CHECK_INT(read_once(NULL), KA_PROBE_ABSENT);
	snprintf(path, sizeof(path), "%s/no/such/directory", directory);
	CHECK_INT(read_once(NULL), KA_PROBE_ABSENT);
}

TEST(stale)
{
	static const struct
	{
		int64_t		age_ms;
		uint32_t	interval_ms;
		KaProbeState state;
	}			rows[] = {
		{0, 100, KA_PROBE_OK},
		{2200, 100, KA_PROBE_OK},
		{2400, 100, KA_PROBE_STALE},
		{2400, 1000, KA_PROBE_OK},
		{100000, UINT32_MAX, KA_PROBE_OK},
		{-500, 100, KA_PROBE_OK},
		{-5000, 100, KA_PROBE_STALE},
	};

	set_up();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		NOTE("row %zu", i);
		make_good();
		file.header.heartbeat_ns -= (uint64_t) (rows[i].age_ms * 1000000);
		file.header.interval_ms = rows[i].interval_ms;
		write_file(sizeof(file));
		CHECK_INT(read_once(NULL), rows[i].state);
		CHECK_INT(copy.groups[1].counters.drain_alls, 42);
	}
}

TEST(hostile_header)
{
	static const struct
	{
		size_t		offset;
		size_t		width;
		uint64_t	value;
		const char *problem;
	}			rows[] = {
		{offsetof(KaProbeHeader, magic), 8, 1, "not a file of"},
		{offsetof(KaProbeHeader, version), 4, KA_PROBE_VERSION + 1, "version"},
		{offsetof(KaProbeHeader, version), 4, 0, "version"},
		{offsetof(KaProbeHeader, size), 4, sizeof(KaProbeFile) - 8, "size"},
		{offsetof(KaProbeHeader, ngroups), 4, KA_PROBE_GROUPS + 1, "rows"},
		{offsetof(KaProbeHeader, ngroups), 4, UINT32_MAX, "rows"},
		{offsetof(KaProbeHeader, nprocesses), 4, KA_PROBE_PROCESSES + 1, "rows"},
		{offsetof(KaProbeHeader, nprocesses), 4, 0x80000000, "rows"},
		{offsetof(KaProbeHeader, sequence), 8, 3, "all the time"},
		{offsetof(KaProbeHeader, sequence), 8, UINT64_MAX, "all the time"},
	};

	set_up();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		const char *problem;
		uint64_t	start;

		NOTE("row %zu", i);
		make_good();
		memcpy((char *) &file + rows[i].offset, &rows[i].value, rows[i].width);
		write_file(sizeof(file));
		start = now_ns();
		CHECK_INT(read_once(&problem), KA_PROBE_REFUSED);
		CHECK(strstr(problem, rows[i].problem) != NULL);
		CHECK(now_ns() - start < 1000000000);
	}
}

TEST(hostile_file)
{
	static const size_t sizes[] = {0, 1, sizeof(KaProbeHeader), sizeof(KaProbeFile) - 1, sizeof(KaProbeFile) + 1, 1 << 30};
	const char *problem;

	set_up();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		NOTE("size %zu", sizes[i]);
		write_file(sizes[i]);
		CHECK_INT(read_once(&problem), KA_PROBE_REFUSED);
		CHECK(strstr(problem, "size") != NULL);
	}
	NOTE("%s", "modes");
	write_file(sizeof(file));
	REQUIRE(chmod(path, 0664) == 0);
	CHECK_INT(read_once(&problem), KA_PROBE_REFUSED);
	CHECK(strstr(problem, "write") != NULL);
	REQUIRE(chmod(path, 0602) == 0);
	CHECK_INT(read_once(&problem), KA_PROBE_REFUSED);
	REQUIRE(chmod(path, 0600) == 0);
	CHECK_INT(read_once(&problem), KA_PROBE_OK);
	NOTE("%s", "other files");
	unlink(path);
	REQUIRE(symlink("/etc/passwd", path) == 0);
	CHECK_INT(read_once(&problem), KA_PROBE_REFUSED);
	CHECK(strstr(problem, "symbolic") != NULL);
	unlink(path);
	REQUIRE(mkfifo(path, 0600) == 0);
	CHECK_INT(read_once(&problem), KA_PROBE_REFUSED);
	CHECK(strstr(problem, "regular") != NULL);
	unlink(path);
	REQUIRE(mkdir(path, 0700) == 0);
	CHECK_INT(read_once(&problem), KA_PROBE_REFUSED);
	REQUIRE(rmdir(path) == 0);
	if (geteuid() == 0)
	{
		NOTE("%s", "owner");
		write_file(sizeof(file));
		REQUIRE(chown(path, 12345, 0) == 0);
		CHECK_INT(read_once(&problem), KA_PROBE_REFUSED);
		CHECK(strstr(problem, "owner") != NULL);
	}
}

/* The probe ends, and another one puts a new file there: seen without a new reader. */
TEST(replaced)
{
	KaProbeReader reader = {0};
	char		next[160];

	set_up();
	write_file(sizeof(file));
	CHECK_INT(ka_probe_read(&reader, path, now_ns(), &copy), KA_PROBE_OK);
	unlink(path);
	CHECK_INT(ka_probe_read(&reader, path, now_ns(), &copy), KA_PROBE_OK);	/* mapped, and still fresh */
	CHECK_INT(ka_probe_read(&reader, path, now_ns() + UINT64_C(5000000000), &copy), KA_PROBE_ABSENT);
	CHECK(reader.map == NULL);
	make_good();
	file.header.generation = 2;
	write_file(sizeof(file));
	CHECK_INT(ka_probe_read(&reader, path, now_ns(), &copy), KA_PROBE_OK);
	CHECK_INT(copy.header.generation, 2);

	/* Replaced by rename, as by a probe: when the old one is stale. */
	snprintf(next, sizeof(next), "%s.old", path);
	REQUIRE(rename(path, next) == 0);
	make_good();
	file.header.generation = 3;
	file.header.heartbeat_ns += UINT64_C(5000000000);
	write_file(sizeof(file));
	CHECK_INT(ka_probe_read(&reader, path, now_ns() + UINT64_C(5000000000), &copy), KA_PROBE_OK);
	CHECK_INT(copy.header.generation, 3);
	/* By another version's: refused, not read. */
	unlink(next);
	REQUIRE(rename(path, next) == 0);
	write_file(sizeof(file) - 8);
	CHECK_INT(ka_probe_read(&reader, path, now_ns() + UINT64_C(60000000000), &copy), KA_PROBE_REFUSED);
	ka_probe_close(&reader);
	unlink(next);
	unlink(path);
}

/* ---------------------------------------------------------------- with the writer */

static volatile bool stop;

/* Every number of a publication is the same. */
static void *
publish_all_the_time(void *publisher)
{
	static char error[256];

	for (uint64_t n = 1; !stop; n++)
	{
		file.header.ngroups = 1 + (uint32_t) (n % KA_PROBE_GROUPS);
		file.header.nprocesses = (uint32_t) (n % 300);
		file.header.heartbeat_ns = now_ns();
		file.header.dropped.events = n;
		file.totals.manual.count = n;
		for (uint32_t i = 0; i < file.header.ngroups; i++)
			file.groups[i].counters.extfrag = n;
		for (uint32_t i = 0; i < file.header.nprocesses; i++)
			file.processes[i].counters.extfrag = n;
		if (!ka_publish(publisher, &file, error, sizeof(error)))
			return error;
	}
	return NULL;
}

TEST(no_torn_reads)
{
	KaPublisher publisher;
	KaPublisher second;
	KaProbeReader reader = {0};
	char		error[256];
	pthread_t	writer;
	void	   *result;
	int			good = 0;
	uint64_t	last = 0;
	uint64_t	end;
	struct stat status;

	set_up();
	REQUIRE(ka_publisher_open(&publisher, path, error, sizeof(error)));
	CHECK_INT(stat(path, &status), -1); /* not before there is something in it */
	CHECK(!ka_publisher_open(&second, path, error, sizeof(error)));
	CHECK(strstr(error, "another probe") != NULL);
	ka_publisher_close(&second);
	REQUIRE(ka_publish(&publisher, &file, error, sizeof(error)));
	REQUIRE(stat(path, &status) == 0);
	CHECK_INT(status.st_mode & 07777, 0644);
	CHECK_INT(status.st_size, sizeof(KaProbeFile));

	stop = false;
	REQUIRE(pthread_create(&writer, NULL, publish_all_the_time, &publisher) == 0);
	end = now_ns() + 1500000000;
	while (now_ns() < end)
	{
		KaProbeState state = ka_probe_read(&reader, path, now_ns(), &copy);
		uint64_t	n = copy.header.dropped.events;
		bool		same = copy.totals.manual.count == n || n == 0;

		if (state != KA_PROBE_OK)
			continue;			/* a writer that never rests may win for long */
		for (uint32_t i = 0; i < copy.header.ngroups && n > 0; i++)
			same = same && copy.groups[i].counters.extfrag == n;
		for (uint32_t i = 0; i < copy.header.nprocesses && n > 0; i++)
			same = same && copy.processes[i].counters.extfrag == n;
		CHECK(same && n >= last);
		last = n;
		good++;
	}
	stop = true;
	REQUIRE(pthread_join(writer, &result) == 0);
	CHECK(result == NULL);
	CHECK(good > 20);
	printf("# %d reads, %" PRIu64 " publications\n", good, last);
	ka_probe_close(&reader);
	ka_publisher_close(&publisher);
	CHECK_INT(stat(path, &status), -1);
}

/* It removes its own file only. */
TEST(not_its_file)
{
	KaPublisher publisher;
	char		error[256];
	struct stat status;

	set_up();
	REQUIRE(ka_publisher_open(&publisher, path, error, sizeof(error)));
	REQUIRE(ka_publish(&publisher, &file, error, sizeof(error)));
	unlink(path);
	write_file(10);
	ka_publisher_close(&publisher);
	CHECK_INT(stat(path, &status), 0);
	unlink(path);
	CHECK(!ka_publisher_open(&publisher, "counters", error, sizeof(error)));
	ka_publisher_close(&publisher);
	CHECK(!ka_publisher_open(&publisher, "/nowhere/counters", error, sizeof(error)));
	ka_publisher_close(&publisher);
}

TEST(recent)
{
	KaRecent	recent = {0};
	KaProbeHeader header = {.heartbeat_ns = UINT64_C(1000500000000)};	/* second 1000 */

	recent.longest_ns[1000 % KA_PROBE_RECENT] = 10;
	recent.longest_ns[995 % KA_PROBE_RECENT] = 50;
	recent.longest_ns[971 % KA_PROBE_RECENT] = 90;
	CHECK_INT(ka_probe_recent(&recent, &header, UINT64_C(1000000000000)), 10);
	CHECK_INT(ka_probe_recent(&recent, &header, UINT64_C(996000000000)), 10);
	CHECK_INT(ka_probe_recent(&recent, &header, UINT64_C(995900000000)), 50);
	CHECK_INT(ka_probe_recent(&recent, &header, UINT64_C(971000000000)), 90);
	CHECK_INT(ka_probe_recent(&recent, &header, 0), 90);
	CHECK_INT(ka_probe_recent(&recent, &header, UINT64_MAX), 0);
	header.heartbeat_ns = 5;
	CHECK_INT(ka_probe_recent(&recent, &header, 0), 10 * (1000 % KA_PROBE_RECENT == 0));
}

__attribute__((destructor)) static void
clean_up(void)
{
	char		lock[160];

	snprintf(lock, sizeof(lock), "%s/counters", directory);
	unlink(lock);
	snprintf(lock, sizeof(lock), "%s/counters.lock", directory);
	unlink(lock);
	rmdir(directory);
}
