/*
 * journal.c: appending, replaying and archiving the journal.
 *
 * Invariants:
 *	- the length of the file is a multiple of the record's, except for a torn
 *	  tail that the next opening cuts off, so that records are found by offset
 *	  however much garbage there is between them;
 *	- ids ascend; a change is open from its intent to its result;
 *	- after a failed write or fsync the file is cut back to what was promised;
 *	  when even that fails, nothing is promised any more (broken) until the
 *	  daemon starts again and reads what is really there.
 *
 * The lock against a second daemon is on the directory, since archiving
 * replaces the file.  Numbers are in native byte order: a journal belongs to
 * its machine, like the values in it.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal.h"
#include "protocol.h"

#define MAGIC UINT32_C(0x4B414A31)	/* "KAJ1" */

/* What an archived journal leaves behind in the new one. */
#define KEPT_CHANGES 1024

_Static_assert(sizeof(KaRecord) == 120, "the layout of a record is the file format");
_Static_assert(offsetof(KaRecord, crc) == sizeof(KaRecord) - 4, "the checksum covers all before it");

/* Castagnoli's polynomial, reflected; bit by bit, for a record a minute. */
uint32_t
ka_crc32c(const void *data, size_t length)
{
	const unsigned char *p = data;
	uint32_t	crc = ~UINT32_C(0);

	while (length-- > 0)
	{
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (UINT32_C(0x82F63B78) & (0 - (crc & 1)));
	}
	return ~crc;
}

void
ka_record_seal(KaRecord *record)
{
	record->magic = MAGIC;
	record->crc = ka_crc32c(record, offsetof(KaRecord, crc));
}

static bool
is_sealed(const KaRecord *record)
{
	return record->magic == MAGIC && record->crc == ka_crc32c(record, offsetof(KaRecord, crc));
}

static bool
provide_memory(KaChanges *changes)
{
	size_t		capacity = changes->capacity ? changes->capacity * 2 : 64;
	KaChange   *items;

	if (changes->n < changes->capacity)
		return true;
	items = realloc(changes->items, capacity * sizeof(items[0]));
	if (items == NULL)
		return false;
	changes->items = items;
	changes->capacity = capacity;
	return true;
}

KaChange *
ka_changes_find(const KaChanges *changes, uint64_t id)
{
	size_t		low = 0;
	size_t		high = changes->n;

	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (changes->items[middle].record.change < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < changes->n && changes->items[low].record.change == id ? &changes->items[low] : NULL;
}

static KaChange *
last_change(const KaChanges *changes)
{
	return changes->n > 0 ? &changes->items[changes->n - 1] : NULL;
}

/* A rollback that left the old value in place, whoever put it there. */
static bool
rolled_back(const KaRecord *record)
{
	return record->operation == KA_OP_ROLLBACK &&
		(record->status == KA_ST_OK || record->status == KA_ST_UNCHANGED);
}

/* Follows one record; false: it does not fit what came before.  Memory is there. */
static bool
apply_record(KaChanges *changes, const KaRecord *record)
{
	KaChange   *last = last_change(changes);
	KaChange   *target;

	switch (record->kind)
	{
		case KA_RECORD_INTENT:
			if (record->change == 0 || (last && record->change <= last->record.change))
				return false;
			target = &changes->items[changes->n++];
			memset(target, 0, sizeof(*target));
			target->record = *record;
			target->open = true;
			return true;

		case KA_RECORD_RESULT:
			target = ka_changes_find(changes, record->change);
			if (target == NULL || !target->open)
				return false;
			target->record = *record;
			target->open = false;
			if (rolled_back(record) && (target = ka_changes_find(changes, record->refers)) != NULL)
				target->rolled_back_by = record->change;
			return true;

		case KA_RECORD_SUSPEND:
			if (changes->suspended)
				return false;
			changes->suspended = true;
			changes->suspend = *record;
			return true;

		case KA_RECORD_RESUME:
			if (!changes->suspended)
				return false;
			changes->suspended = false;
			return true;

		default:
			return false;
	}
}

bool
ka_journal_replay(const void *data, size_t length, KaChanges *changes, size_t *valid)
{
	const char *bytes = data;
	size_t		damaged = 0;

	memset(changes, 0, sizeof(*changes));
	*valid = 0;
	for (size_t at = 0; length - at >= sizeof(KaRecord); at += sizeof(KaRecord))
	{
		KaRecord	record;

		if (!provide_memory(changes))
			return false;
		memcpy(&record, bytes + at, sizeof(record));
		if (!is_sealed(&record))
		{
			damaged++;
			continue;
		}
		if (!apply_record(changes, &record))
			damaged++;
		/* Garbage at the very end is a torn tail, not damage. */
		changes->damaged = damaged;
		*valid = at + sizeof(record);
	}
	return true;
}

void
ka_changes_free(KaChanges *changes)
{
	free(changes->items);
	memset(changes, 0, sizeof(*changes));
}

static int
write_all(int fd, const void *data, size_t length)
{
	const char *p = data;

	while (length > 0)
	{
		ssize_t		n = write(fd, p, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		length -= (size_t) n;
	}
	return 0;
}

/* The part of a file that can be a journal, in memory of its own. */
static int
read_file(int fd, void **data, size_t *length)
{
	const size_t limit = (size_t) KA_JOURNAL_MAX_RECORDS * 2 * sizeof(KaRecord);
	struct stat st;
	size_t		size;

	*data = NULL;
	*length = 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t) st.st_size > limit)
		return -EFBIG;
	size = (size_t) st.st_size;
	*data = malloc(size > 0 ? size : 1);
	if (*data == NULL)
		return -ENOMEM;
	while (*length < size)
	{
		ssize_t		n = pread(fd, (char *) *data + *length, size - *length, (off_t) *length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		*length += (size_t) n;
	}
	return 0;
}

static int
write_change(int fd, const KaChange *change)
{
	KaRecord	record = change->record;
	int			result;

	record.kind = KA_RECORD_INTENT;
	ka_record_seal(&record);
	result = write_all(fd, &record, sizeof(record));
	if (result < 0 || change->open)
		return result;
	record.kind = KA_RECORD_RESULT;
	ka_record_seal(&record);
	return write_all(fd, &record, sizeof(record));
}

/*
 * Starts a new journal with the last changes.  At any moment there is a
 * complete file under the journal's name: the old one keeps a second name
 * before the new one takes the first.
 */
static int
archive(KaJournal *journal)
{
	const KaChanges *changes = &journal->changes;
	size_t		first = changes->n > KEPT_CHANGES ? changes->n - KEPT_CHANGES : 0;
	int			directory_fd = journal->directory_fd;
	int			fd = openat(directory_fd, KA_JOURNAL_NEW, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	int			result = fd < 0 ? -errno : 0;

	if (result == 0 && changes->suspended)
		result = write_all(fd, &changes->suspend, sizeof(changes->suspend));
	for (size_t i = first; i < changes->n && result == 0; i++)
		result = write_change(fd, &changes->items[i]);
	if (result == 0 && fsync(fd) < 0)
		result = -errno;
	if (result == 0 && unlinkat(directory_fd, KA_JOURNAL_ARCHIVE, 0) < 0 && errno != ENOENT)
		result = -errno;
	if (result == 0 && linkat(directory_fd, KA_JOURNAL_FILE, directory_fd, KA_JOURNAL_ARCHIVE, 0) < 0)
		result = -errno;
	if (result == 0 && renameat(directory_fd, KA_JOURNAL_NEW, directory_fd, KA_JOURNAL_FILE) < 0)
		result = -errno;
	if (result == 0 && fsync(directory_fd) < 0)
		result = -errno;
	if (result < 0)
	{
		if (fd >= 0)
			close(fd);
		return result;
	}
	close(journal->fd);
	journal->fd = fd;
	return 0;
}

/* Opens, reads and replays the file, and cuts the torn tail off. */
static int
open_file(KaJournal *journal)
{
	void	   *data;
	size_t		length;
	size_t		valid = 0;
	int			result;

	journal->fd = openat(journal->directory_fd, KA_JOURNAL_FILE,
						 O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (journal->fd < 0)
		return -errno;
	result = read_file(journal->fd, &data, &length);
	if (result == 0 && !ka_journal_replay(data, length, &journal->changes, &valid))
		result = -ENOMEM;
	free(data);
	if (result < 0)
		return result;
	journal->end = valid;
	if (length != valid && (ftruncate(journal->fd, (off_t) valid) < 0 || fdatasync(journal->fd) < 0))
		return -errno;
	return fsync(journal->directory_fd) < 0 ? -errno : 0;
}

int
ka_journal_open(KaJournal *journal, int directory_fd)
{
	int			result;

	memset(journal, 0, sizeof(*journal));
	journal->directory_fd = directory_fd;
	journal->fd = -1;
	if (flock(directory_fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	result = open_file(journal);
	if (result == 0 && journal->end / sizeof(KaRecord) > KA_JOURNAL_MAX_RECORDS / 2 &&
		archive(journal) == 0)
	{
		/* Read the new file like any other, so that memory and disk agree. */
		ka_changes_free(&journal->changes);
		close(journal->fd);
		result = open_file(journal);
	}
	if (result < 0)
		ka_journal_close(journal);
	return result;
}

void
ka_journal_close(KaJournal *journal)
{
	if (journal->fd >= 0)
		close(journal->fd);
	journal->fd = -1;
	ka_changes_free(&journal->changes);
	flock(journal->directory_fd, LOCK_UN);
}

int
ka_journal_provide(KaJournal *journal, size_t records)
{
	size_t		bytes = records * sizeof(KaRecord);

	if (journal->broken)
		return -EIO;
	if (journal->end / sizeof(KaRecord) + records > KA_JOURNAL_MAX_RECORDS)
		return -EFBIG;
	if (!provide_memory(&journal->changes))
		return -ENOMEM;
	/* The size stays as it is, only the blocks are ours; some file systems cannot. */
	if (fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, (off_t) journal->end, (off_t) bytes) < 0 &&
		errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	return 0;
}

int
ka_journal_append(KaJournal *journal, KaRecord *record)
{
	int			result;

	if (journal->broken)
		return -EIO;
	if (!provide_memory(&journal->changes))
		return -ENOMEM;
	ka_record_seal(record);
	result = write_all(journal->fd, record, sizeof(*record));
	if (result == 0 && fdatasync(journal->fd) < 0)
	{
		/* What a failed fsync left on the disk is anybody's guess. */
		result = -errno;
		journal->broken = true;
	}
	if (result < 0)
	{
		if (ftruncate(journal->fd, (off_t) journal->end) < 0)
			journal->broken = true;
		return result;
	}
	journal->end += sizeof(*record);
	apply_record(&journal->changes, record);
	return 0;
}

uint64_t
ka_journal_next_change(const KaJournal *journal)
{
	const KaChange *last = last_change(&journal->changes);

	return last ? last->record.change + 1 : 1;
}
