/*
 * journal.h: what was changed, written down before it takes effect.
 *
 * An append-only file of records of one length, each with a checksum.  A change
 * is an intent, which is on disk before the kernel is written, and a result.
 * An intent without a result is a change during which the daemon was killed:
 * the next start looks at the kernel and appends what it finds.
 *
 * Whatever is cut off the end of the file, or is garbage there, had no effect
 * that is not described by the records before it.
 */
#ifndef KA_JOURNAL_H
#define KA_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KA_STATE_DIRECTORY "/var/lib/kernel_advisord"
#define KA_JOURNAL_FILE "journal"
#define KA_JOURNAL_ARCHIVE "journal.old"
#define KA_JOURNAL_NEW "journal.new"

/* 8 MiB: the daemon holds the changes in memory. */
#define KA_JOURNAL_MAX_RECORDS 65536

typedef enum KaRecordKind
{
	KA_RECORD_INTENT = 1,		/* old and asked are set */
	KA_RECORD_RESULT = 2,		/* granted, status, error too */
	KA_RECORD_SUSPEND = 3,		/* a knob was put aside for a while: old is to come back */
	KA_RECORD_RESUME = 4		/* it came back */
} KaRecordKind;

/* State bits of a record are KA_CHANGE_* of protocol.h without THIS_BOOT. */
typedef struct KaRecord
{
	uint32_t	magic;
	uint32_t	kind;			/* KaRecordKind */
	uint64_t	change;			/* id, ascending */
	uint64_t	refers;			/* rollback: of this change */
	uint32_t	operation;		/* KaOperation */
	uint32_t	knob;
	int32_t		node;
	uint32_t	flags;			/* of the request */
	uint32_t	uid;			/* of the client */
	int32_t		pid;
	uint32_t	status;			/* KaStatus */
	int32_t		error;
	int64_t		at_us;			/* µs since 1970 */
	int64_t		old;
	int64_t		old_twin;		/* KA_NO_VALUE: there is none */
	int64_t		asked;
	int64_t		granted;
	uint32_t	state;
	unsigned char boot_id[16];
	uint32_t	crc;			/* CRC-32C of all before it */
} KaRecord;

typedef struct KaChange
{
	KaRecord	record;			/* the intent, completed by its result */
	bool		open;			/* no result yet */
	uint64_t	rolled_back_by; /* 0: in effect, as far as we know */
} KaChange;

typedef struct KaChanges
{
	KaChange   *items;			/* ascending ids */
	size_t		n;
	size_t		capacity;
	bool		suspended;		/* a knob is put aside */
	KaRecord	suspend;
	size_t		damaged;		/* records that were skipped */
} KaChanges;

typedef struct KaJournal
{
	int			directory_fd;	/* not ours to close */
	int			fd;
	uint64_t	end;			/* bytes of valid records */
	bool		broken;			/* a write or fsync failed: nothing more is promised */
	KaChanges	changes;
} KaJournal;

extern uint32_t ka_crc32c(const void *data, size_t length);

/* Completes magic and checksum. */
extern void ka_record_seal(KaRecord *record);

/*
 * Replays the bytes of a journal.  Returns the length of the part that counts:
 * the end of the last valid record.  *changes is complete even for garbage;
 * false only without memory.
 */
extern bool ka_journal_replay(const void *data, size_t length, KaChanges *changes, size_t *valid);
extern void ka_changes_free(KaChanges *changes);
extern KaChange *ka_changes_find(const KaChanges *changes, uint64_t id);

/*
 * Opens or creates the journal in a directory, locks it against a second
 * daemon (-EWOULDBLOCK), replays it and cuts a torn tail off.  A journal that
 * is more than half full is archived first.  0 or a negative errno.
 */
extern int	ka_journal_open(KaJournal *journal, int directory_fd);
extern void ka_journal_close(KaJournal *journal);

/*
 * Makes sure that "records" more will fit on the disk: called before an intent
 * for all records of its change.  -ENOSPC and the like: nothing was written.
 * -EFBIG: the journal is full.
 */
extern int	ka_journal_provide(KaJournal *journal, size_t records);

/* Appends and syncs, then updates journal->changes.  A negative errno: not written. */
extern int	ka_journal_append(KaJournal *journal, KaRecord *record);

/* The id that the next change gets. */
extern uint64_t ka_journal_next_change(const KaJournal *journal);

#endif							/* KA_JOURNAL_H */
