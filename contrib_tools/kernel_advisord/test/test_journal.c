/*
 * test_journal.c: a journal that was cut, damaged or filled at any byte.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal.h"
#include "ka_test.h"
#include "protocol.h"

static KaRecord
record_of(KaRecordKind kind, uint64_t change, KaOperation operation)
{
	KaRecord	record = {
		.kind = kind, .change = change, .operation = operation, .knob = 3, .node = KA_ALL_NODES,
		.uid = 101, .pid = 7, .at_us = 1796000000000000 + (int64_t) change,
		.old = 500, .old_twin = KA_NO_VALUE, .asked = 1000, .granted = kind == KA_RECORD_INTENT ? KA_NO_VALUE : 1000,
	};

	ka_record_seal(&record);
	return record;
}

/* "n" complete changes, the last of them a rollback of the first. */
static size_t
write_changes(KaRecord *records, size_t n)
{
	size_t		count = 0;

	for (uint64_t change = 1; change <= n; change++)
	{
		KaOperation operation = change == n ? KA_OP_ROLLBACK : KA_OP_SET;

		for (int kind = KA_RECORD_INTENT; kind <= KA_RECORD_RESULT; kind++)
		{
			records[count] = record_of((KaRecordKind) kind, change, operation);
			records[count].refers = change == n ? 1 : 0;
			ka_record_seal(&records[count++]);
		}
	}
	return count;
}

TEST(checksum_is_castagnoli)
{
	/* RFC 3720, B.4: 32 bytes of zeros; and the check value of the catalogue. */
	unsigned char zeros[32] = {0};

	CHECK_INT(ka_crc32c(zeros, sizeof(zeros)), 0x8A9136AA);
	CHECK_INT(ka_crc32c("123456789", 9), 0xE3069283);
}

TEST(cut_at_every_length)
{
	KaRecord	records[12];
	size_t		n = write_changes(records, 6);

	for (size_t length = 0; length <= n * sizeof(KaRecord); length++)
	{
		/* A copy of just that length, so that a sanitizer sees reads beyond it. */
		char	   *cut = malloc(length > 0 ? length : 1);
		size_t		whole = length / sizeof(KaRecord);
		KaChanges	changes;
		size_t		valid;

		memcpy(cut, records, length);
		REQUIRE(ka_journal_replay(cut, length, &changes, &valid));
		CHECK_INT(valid, whole * sizeof(KaRecord));
		CHECK_INT(changes.n, (whole + 1) / 2);
		CHECK_INT(changes.damaged, 0);
		for (size_t i = 0; i < changes.n; i++)
		{
			CHECK_INT(changes.items[i].record.change, i + 1);
			CHECK_INT(changes.items[i].open, i == whole / 2 && whole % 2 == 1);
			CHECK_INT(changes.items[i].rolled_back_by, i == 0 && whole == n ? 6 : 0);
		}
		ka_changes_free(&changes);
		free(cut);
	}
}

TEST(every_bit_flipped)
{
	KaRecord	records[6];
	size_t		n = write_changes(records, 3);
	size_t		length = n * sizeof(KaRecord);

	for (size_t bit = 0; bit < length * 8; bit++)
	{
		unsigned char *bytes = (unsigned char *) records;
		size_t		hit = bit / 8 / sizeof(KaRecord);
		KaChanges	changes;
		size_t		valid;

		bytes[bit / 8] ^= (unsigned char) (1 << bit % 8);
		REQUIRE(ka_journal_replay(records, length, &changes, &valid));
		/* The record that was hit never counts; at the end it is a torn tail. */
		CHECK_INT(valid, hit == n - 1 ? length - sizeof(KaRecord) : length);
		CHECK_INT(changes.n, hit % 2 == 0 ? 2 : 3);
		/* A result whose intent is lost is skipped with it. */
		CHECK_INT(changes.damaged, hit == n - 1 ? 0 : hit % 2 == 0 ? 2 : 1);
		ka_changes_free(&changes);
		bytes[bit / 8] ^= (unsigned char) (1 << bit % 8);
	}
}

TEST(records_that_do_not_fit_are_skipped)
{
	KaRecord	records[] = {
		record_of(KA_RECORD_RESULT, 1, KA_OP_SET),	/* without intent */
		record_of(KA_RECORD_INTENT, 0, KA_OP_SET),	/* no id */
		record_of(KA_RECORD_INTENT, 5, KA_OP_SET),
		record_of(KA_RECORD_INTENT, 4, KA_OP_SET),	/* goes back */
		record_of(KA_RECORD_INTENT, 5, KA_OP_SET),	/* twice */
		record_of(KA_RECORD_RESULT, 5, KA_OP_SET),
		record_of(KA_RECORD_RESULT, 5, KA_OP_SET),	/* twice */
		record_of(KA_RECORD_RESUME, 5, KA_OP_RESERVE),	/* nothing was suspended */
		record_of(KA_RECORD_SUSPEND, 6, KA_OP_RESERVE),
		record_of(KA_RECORD_SUSPEND, 6, KA_OP_RESERVE), /* already */
		record_of((KaRecordKind) 99, 7, KA_OP_SET),
	};
	KaChanges	changes;
	size_t		valid;

	REQUIRE(ka_journal_replay(records, sizeof(records), &changes, &valid));
	CHECK_INT(changes.n, 1);
	CHECK_INT(changes.damaged, 8);
	CHECK(changes.suspended);
	CHECK_INT(valid, sizeof(records));
	ka_changes_free(&changes);
}

/* A directory for the tests on real files. */
static char directory[64];

static int
make_directory(void)
{
	strcpy(directory, "/var/tmp/test_journal.XXXXXX");
	return mkdtemp(directory) ? open(directory, O_RDONLY | O_DIRECTORY) : -1;
}

static void
remove_directory(int fd)
{
	unlinkat(fd, KA_JOURNAL_FILE, 0);
	unlinkat(fd, KA_JOURNAL_ARCHIVE, 0);
	unlinkat(fd, KA_JOURNAL_NEW, 0);
	close(fd);
	rmdir(directory);
}

static int
append_change(KaJournal *journal)
{
	uint64_t	id = ka_journal_next_change(journal);
	KaRecord	record = record_of(KA_RECORD_INTENT, id, KA_OP_SET);
	int			result = ka_journal_append(journal, &record);

	if (result == 0)
	{
		record = record_of(KA_RECORD_RESULT, id, KA_OP_SET);
		result = ka_journal_append(journal, &record);
	}
	return result;
}

TEST(appended_is_read_again)
{
	int			fd = make_directory();
	int			other = open(directory, O_RDONLY | O_DIRECTORY);
	KaJournal	journal;
	KaJournal	second;

	REQUIRE(fd >= 0 && other >= 0);
	REQUIRE(ka_journal_open(&journal, fd) == 0);
	CHECK_INT(ka_journal_next_change(&journal), 1);
	CHECK_INT(ka_journal_open(&second, other), -EWOULDBLOCK);
	for (int i = 0; i < 3; i++)
	{
		CHECK_INT(ka_journal_provide(&journal, 2), 0);
		CHECK_INT(append_change(&journal), 0);
	}
	CHECK_INT(journal.end, 6 * sizeof(KaRecord));
	ka_journal_close(&journal);
	REQUIRE(ka_journal_open(&second, other) == 0);
	CHECK_INT(second.changes.n, 3);
	CHECK_INT(ka_journal_next_change(&second), 4);
	ka_journal_close(&second);
	close(other);
	remove_directory(fd);
}

TEST(torn_tail_is_cut_off_and_written_over)
{
	int			fd = make_directory();

	REQUIRE(fd >= 0);
	/* Every length of the second change's result that can be left on the disk. */
	for (size_t tail = 0; tail < sizeof(KaRecord); tail++)
	{
		KaJournal	journal;
		struct stat st;

		unlinkat(fd, KA_JOURNAL_FILE, 0);
		REQUIRE(ka_journal_open(&journal, fd) == 0);
		CHECK_INT(append_change(&journal), 0);
		CHECK_INT(append_change(&journal), 0);
		CHECK_INT(ftruncate(journal.fd, (off_t) (3 * sizeof(KaRecord) + tail)), 0);
		ka_journal_close(&journal);

		REQUIRE(ka_journal_open(&journal, fd) == 0);
		CHECK_INT(journal.changes.n, 2);
		CHECK(journal.changes.items[1].open);
		CHECK_INT(fstat(journal.fd, &st), 0);
		CHECK_INT(st.st_size, 3 * sizeof(KaRecord));
		CHECK_INT(append_change(&journal), 0);
		ka_journal_close(&journal);

		REQUIRE(ka_journal_open(&journal, fd) == 0);
		CHECK_INT(journal.changes.n, 3);
		CHECK_INT(journal.changes.damaged, 0);
		CHECK(!journal.changes.items[2].open);
		ka_journal_close(&journal);
	}
	remove_directory(fd);
}

/* RLIMIT_FSIZE stands for a full disk: some bytes fit, the rest does not. */
TEST(failed_append_leaves_no_trace)
{
	int			fd = make_directory();
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	KaJournal	journal;
	struct stat st;

	REQUIRE(fd >= 0);
	signal(SIGXFSZ, SIG_IGN);
	REQUIRE(ka_journal_open(&journal, fd) == 0);
	CHECK_INT(append_change(&journal), 0);
	for (size_t room = 0; room < sizeof(KaRecord); room += 17)
	{
		struct rlimit limit = {2 * sizeof(KaRecord) + room, RLIM_INFINITY};
		KaRecord	record = record_of(KA_RECORD_INTENT, 2, KA_OP_SET);

		REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
		CHECK_INT(ka_journal_append(&journal, &record), -EFBIG);
		CHECK_INT(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
		CHECK_INT(fstat(journal.fd, &st), 0);
		CHECK_INT(st.st_size, 2 * sizeof(KaRecord));
		CHECK_INT(journal.changes.n, 1);
		CHECK(!journal.broken);
	}
	CHECK_INT(append_change(&journal), 0);	/* and goes on when there is room */
	ka_journal_close(&journal);
	remove_directory(fd);
}

TEST(full_journal_is_archived_at_the_next_start)
{
	int			fd = make_directory();
	size_t		n = KA_JOURNAL_MAX_RECORDS / 2 - 1;
	KaRecord   *records = malloc((2 * n + 1) * sizeof(KaRecord));
	size_t		count = write_changes(records, n);
	KaJournal	journal;
	struct stat st;
	int			file;

	REQUIRE(fd >= 0);
	records[count++] = record_of(KA_RECORD_INTENT, n + 1, KA_OP_SET);	/* open */
	file = openat(fd, KA_JOURNAL_FILE, O_WRONLY | O_CREAT, 0600);
	REQUIRE(write(file, records, count * sizeof(KaRecord)) == (ssize_t) (count * sizeof(KaRecord)));
	close(file);
	REQUIRE(ka_journal_open(&journal, fd) == 0);
	CHECK_INT(journal.changes.n, 1024);
	CHECK_INT(journal.changes.damaged, 0);
	CHECK(journal.changes.items[1023].open);
	CHECK_INT(journal.changes.items[1022].record.operation, KA_OP_ROLLBACK);
	CHECK_INT(journal.changes.items[0].record.at_us, 1796000000000000 + (int64_t) journal.changes.items[0].record.change);
	CHECK_INT(ka_journal_next_change(&journal), n + 2);
	CHECK_INT(fstatat(fd, KA_JOURNAL_ARCHIVE, &st, 0), 0);
	CHECK_INT(st.st_size, count * sizeof(KaRecord));
	CHECK_INT(fstatat(fd, KA_JOURNAL_NEW, &st, 0), -1);
	ka_journal_close(&journal);

	/* Without a start in between there is an end. */
	memset(&journal, 0, sizeof(journal));
	journal.end = (uint64_t) (KA_JOURNAL_MAX_RECORDS - 1) * sizeof(KaRecord);
	CHECK_INT(ka_journal_provide(&journal, 2), -EFBIG);
	free(records);
	remove_directory(fd);
}

TEST(not_a_file)
{
	int			fd = make_directory();
	KaJournal	journal;

	REQUIRE(fd >= 0);
	REQUIRE(symlinkat("/etc/passwd", fd, KA_JOURNAL_FILE) == 0);
	CHECK_INT(ka_journal_open(&journal, fd), -ELOOP);
	unlinkat(fd, KA_JOURNAL_FILE, 0);
	REQUIRE(mkfifoat(fd, KA_JOURNAL_FILE, 0600) == 0);
	CHECK_INT(ka_journal_open(&journal, fd), -EFBIG);
	remove_directory(fd);
}
