/*
 * record_file.c: a file of numbered records, read and replaced as a whole.
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"

#include "record_file.h"
#include "shared.h"

StaticAssertDecl(offsetof(KaRecords, data) == sizeof(KaRecordsHeader), "no padding in the file");

static Size
records_bytes(const KaRecordFormat *format, int64 n)
{
	return offsetof(KaRecords, data) + (Size) n * format->record_size;
}

static void *
record_at(const KaRecords *records, int64 i)
{
	return (char *) records->data + (Size) i * records->header.record_size;
}

/* The number is what a record begins with. */
static int64 *
number_of(void *record)
{
	return record;
}

static pg_crc32c
checksum(const KaRecords *records, Size bytes)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, records, bytes);
	FIN_CRC32C(crc);
	return crc;
}

/* Reads all of it into *records; returns NULL, or what is wrong with the file. */
static const char *
load(FILE *stream, const KaRecordFile *file, KaRecords **records)
{
	const char *truncated = "it is truncated";
	const KaRecordFormat *format = file->format;
	KaRecordsHeader header;
	const char *problem;
	struct stat st;
	KaRecords  *loaded;
	pg_crc32c	stored;

	if (fread(&header, sizeof(header), 1, stream) != 1 || fstat(fileno(stream), &st) != 0 ||
		(size_t) st.st_size < sizeof(header) + sizeof(stored))
		return truncated;
	problem = ka_records_header_problem(&header, format, st.st_size - sizeof(stored), GetSystemIdentifier());
	if (problem != NULL)
		return problem;

	loaded = palloc(records_bytes(format, header.nrecords + 1));
	loaded->header = header;
	if (fread(loaded->data, format->record_size, header.nrecords, stream) != (size_t) header.nrecords ||
		fread(&stored, sizeof(stored), 1, stream) != 1)
		return truncated;
	if (!EQ_CRC32C(checksum(loaded, records_bytes(format, header.nrecords)), stored))
		return "its checksum does not match";
	problem = file->problem(&loaded->header, loaded->data);
	if (problem == NULL)
		*records = loaded;
	return problem;
}

KaRecords *
ka_records_read(KaRecordFile *file)
{
	KaRecords  *records = NULL;
	FILE	   *stream = AllocateFile(file->path, PG_BINARY_R);

	if (stream != NULL)
	{
		const char *problem = load(stream, file, &records);

		FreeFile(stream);
		/* Once in each process, not at every look at the view. */
		if (problem != NULL && strcmp(problem, file->logged) != 0)
		{
			strlcpy(file->logged, problem, sizeof(file->logged));
			ereport(LOG,
					(errmsg("ignoring kernel advisor %s \"%s\": %s", file->noun, file->path, problem)));
		}
	}
	else if (errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", file->path)));

	if (records == NULL)
	{
		records = palloc0(records_bytes(file->format, 1));
		ka_records_header_init(&records->header, file->format, GetSystemIdentifier());
	}
	return records;
}

void *
ka_records_find(const KaRecords *records, int64 id)
{
	for (int64 i = 0; i < records->header.nrecords; i++)
	{
		void	   *record = record_at(records, i);

		if (*number_of(record) == id)
			return record;
	}
	return NULL;
}

int
ka_records_write(const KaRecordFile *file, const KaRecords *records)
{
	Size		bytes = records_bytes(file->format, records->header.nrecords);
	pg_crc32c	crc = checksum(records, bytes);
	int			error = 0;
	FILE	   *stream = AllocateFile(file->temporary, PG_BINARY_W);

	if (stream == NULL)
		return errno;
	errno = 0;
	if (fwrite(records, bytes, 1, stream) != 1 || fwrite(&crc, sizeof(crc), 1, stream) != 1)
		error = errno ? errno : ENOSPC;
	if (FreeFile(stream) != 0 && error == 0)
		error = errno;
	/* durable_rename syncs the file first, and logs what goes wrong. */
	if (error == 0 && durable_rename(file->temporary, file->path, LOG) != 0)
		error = errno ? errno : EIO;
	if (error != 0)
		unlink(file->temporary);
	return error;
}

void
ka_records_add(KaRecordFile *file, void *record)
{
	Size		size = file->format->record_size;
	KaRecords  *records;
	int			error;

	LWLockAcquire(ka_shared->changes_lock, LW_EXCLUSIVE);
	records = ka_records_read(file);
	if (records->header.nrecords == file->format->most)
		memmove(records->data, record_at(records, 1), --records->header.nrecords * size);
	*number_of(record) = ++records->header.last_id;
	memcpy(record_at(records, records->header.nrecords++), record, size);
	error = ka_records_write(file, records);
	LWLockRelease(ka_shared->changes_lock);
	pfree(records);

	if (error != 0)
	{
		*number_of(record) = 0;
		errno = error;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", file->temporary),
				 errdetail("Nothing was changed.")));
	}
}
