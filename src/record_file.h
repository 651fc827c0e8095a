/*
 * record_file.h: a file of numbered records (core/records.h), read and replaced
 * as a whole: the change log, the trials.
 *
 * It is written beside, synced and renamed, so readers take no lock.  Writers
 * hold ka_shared->changes_lock, exclusive, from reading to renaming: across
 * file access and palloc, as ALTER SYSTEM holds AutoFileLock.  What the file
 * says is checked before it is used; a file that is not ours is ignored as a
 * whole with one line in the log, and the next record begins a new one.
 */
#ifndef KA_RECORD_FILE_H
#define KA_RECORD_FILE_H

#include "records.h"

typedef struct KaRecordFile
{
	const char *path;
	const char *temporary;		/* beside it */
	const char *noun;			/* "ignoring NOUN "path": ..." */
	const KaRecordFormat *format;
	const char *(*problem) (const KaRecordsHeader *header, const void *records);	/* of the records; NULL: none */
	char		logged[64];		/* the problem that this process has told; at first "" */
} KaRecordFile;

/* The file in memory; one palloc, with room for one record more. */
typedef struct KaRecords
{
	KaRecordsHeader header;
	int64		data[FLEXIBLE_ARRAY_MEMBER];	/* the records */
} KaRecords;

/* Never NULL: empty when there is no file, or none that is ours. */
extern KaRecords *ka_records_read(KaRecordFile *file);

/* The record of that number; NULL: there is none. */
extern void *ka_records_find(const KaRecords *records, int64 id);

/* 0, or an errno.  The caller holds the lock. */
extern int	ka_records_write(const KaRecordFile *file, const KaRecords *records);

/* Gives the record its number and appends it; the oldest makes room.  Raises an error, with number 0, when it cannot be written. */
extern void ka_records_add(KaRecordFile *file, void *record);

#endif							/* KA_RECORD_FILE_H */
