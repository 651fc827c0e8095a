/*
 * history.c: the rings in a file, so that they survive a restart and a crash.
 *
 * Header, samples, checkpoints (each oldest first), trailer with their numbers
 * and a CRC-32C of all before it.  The structs go to the file as they are in
 * memory: the header carries their sizes, and whatever does not match is
 * ignored as a whole with one line in the log.  A file is complete or absent:
 * it is written beside the old one, synced and renamed.
 *
 * It lies in pg_stat_tmp because base backups leave the contents of that
 * directory out: a standby made from this server shares its system identifier,
 * but did not run its checkpoints.  The server does not empty that directory.
 *
 * The postmaster reads it at start and writes it at shutdown, alone; in between
 * the sampler writes it.  No lock is held across file access.
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#include "history.h"
#include "shared.h"

#define HISTORY_TMP KA_HISTORY_FILE ".tmp"
/* One chunk of slots on its way; in the postmaster and the sampler only. */
static union
{
	KaSample	samples[KA_RING_CHUNK];
	KaCheckpointRow checkpoints[KA_RING_CHUNK];
}			buffer;

/*
 * ----------------------------------------------------------------
 * Reading
 * ----------------------------------------------------------------
 */

static bool
read_all(FILE *file, void *out, size_t size, pg_crc32c *crc)
{
	if (fread(out, 1, size, file) != size)
		return false;
	COMP_CRC32C(*crc, out, size);
	return true;
}

/* Names are looked up by these numbers later. */
static bool
sample_valid(const KaSample *sample)
{
	return sample->phase >= KA_PHASE_IDLE && sample->phase <= KA_PHASE_FINISH &&
		sample->interval_us > 0;
}

static bool
checkpoint_valid(const KaCheckpointRow *row)
{
	return row->kind >= KA_KIND_UNKNOWN && row->kind <= KA_KIND_END_OF_RECOVERY &&
		(row->source == KA_SOURCE_HOOK || row->source == KA_SOURCE_STATISTICS) &&
		row->checkpoint_id > 0;
}

/*
 * Fills the rings; returns NULL, or what is wrong with the file.  The rings may
 * be filled in part then.  Where there is more in the file than fits, the rings
 * keep the newest.
 */
static const char *
load(FILE *file, HistoryHeader *header)
{
	HistoryTrailer trailer;
	struct stat st;
	uint64		room;
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	if (!read_all(file, header, sizeof(*header), &crc))
		return "it is truncated";
	if (memcmp(header->magic, KA_HISTORY_MAGIC, sizeof(header->magic)) != 0)
		return "it is not a history file";
	if (header->version != KA_HISTORY_VERSION ||
		header->sample_size != sizeof(KaSample) ||
		header->checkpoint_size != sizeof(KaCheckpointRow) ||
		header->ndeltas != KA_NDELTAS)
		return "it was written by another version";
	if (header->system_identifier != GetSystemIdentifier())
		return "it belongs to another database cluster";
	if (header->last_id < 0)
		return "its header is damaged";

	/* The numbers of slots must be what the length of the file says. */
	if (fstat(fileno(file), &st) != 0 ||
		fseeko(file, -(off_t) sizeof(trailer), SEEK_END) != 0 ||
		fread(&trailer, sizeof(trailer), 1, file) != 1 ||
		fseeko(file, sizeof(*header), SEEK_SET) != 0)
		return "it is truncated";
	room = (uint64) st.st_size - sizeof(*header) - sizeof(trailer);
	if ((uint64) st.st_size < sizeof(*header) + sizeof(trailer) ||
		trailer.nsamples > room / sizeof(KaSample) ||
		trailer.ncheckpoints > room / sizeof(KaCheckpointRow) ||
		trailer.nsamples * sizeof(KaSample) + trailer.ncheckpoints * sizeof(KaCheckpointRow) != room)
		return "it is truncated";

	for (uint64 i = 0; i < trailer.nsamples; i++)
	{
		if (!read_all(file, &buffer.samples[0], sizeof(KaSample), &crc))
			return "it is truncated";
		if (!sample_valid(&buffer.samples[0]))
			return "it is damaged";
		ka_ring_restore_sample(&buffer.samples[0]);
	}
	for (uint64 i = 0; i < trailer.ncheckpoints; i++)
	{
		if (!read_all(file, &buffer.checkpoints[0], sizeof(KaCheckpointRow), &crc))
			return "it is truncated";
		if (!checkpoint_valid(&buffer.checkpoints[0]))
			return "it is damaged";
		ka_ring_append_checkpoint(&buffer.checkpoints[0]);
	}

	COMP_CRC32C(crc, &trailer, offsetof(HistoryTrailer, crc));
	FIN_CRC32C(crc);
	return EQ_CRC32C(crc, trailer.crc) ? NULL : "its checksum does not match";
}

/* In the postmaster, before any other process has the shared memory. */
void
ka_history_load(void)
{
	HistoryHeader header;
	const char *problem;
	FILE	   *file = AllocateFile(KA_HISTORY_FILE, PG_BINARY_R);

	if (file == NULL)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", KA_HISTORY_FILE)));
		return;
	}

	problem = load(file, &header);
	FreeFile(file);

	if (problem == NULL)
	{
		ka_shared->last_id = header.last_id;
		ka_shared->saved_at = header.written_at;
		return;
	}

	/* Nothing of a file that is not whole. */
	ka_shared->sample_ring.tail = ka_shared->sample_ring.head = 0;
	ka_shared->checkpoint_ring.tail = ka_shared->checkpoint_ring.head = 0;
	ereport(LOG,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("ignoring kernel advisor history file \"%s\": %s",
					KA_HISTORY_FILE, problem)));
}

/*
 * ----------------------------------------------------------------
 * Writing
 * ----------------------------------------------------------------
 */

static bool
write_all(FILE *file, const void *data, size_t size, pg_crc32c *crc)
{
	COMP_CRC32C(*crc, data, size);
	return fwrite(data, 1, size, file) == size;
}

/*
 * The rings may move on meanwhile: what is there when a chunk is copied is what
 * counts, up to the end as it was at the beginning.
 */
static bool
save(FILE *file)
{
	HistoryHeader header;
	HistoryTrailer trailer;
	uint64		end,
				next;
	int			n;
	pg_crc32c	crc;

	memset(&header, 0, sizeof(header));
	memcpy(header.magic, KA_HISTORY_MAGIC, sizeof(header.magic));
	header.version = KA_HISTORY_VERSION;
	header.sample_size = sizeof(KaSample);
	header.checkpoint_size = sizeof(KaCheckpointRow);
	header.ndeltas = KA_NDELTAS;
	header.system_identifier = GetSystemIdentifier();
	header.written_at = GetCurrentTimestamp();
	SpinLockAcquire(&ka_shared->mutex);
	header.last_id = ka_shared->last_id;
	SpinLockRelease(&ka_shared->mutex);

	memset(&trailer, 0, sizeof(trailer));
	INIT_CRC32C(crc);
	if (!write_all(file, &header, sizeof(header), &crc))
		return false;

	end = ka_ring_samples_end(NULL);
	for (next = 0; next < end;)
	{
		n = ka_ring_copy_samples(next, buffer.samples, KA_RING_CHUNK, &next);
		if (n == 0)
			break;
		if (!write_all(file, buffer.samples, n * sizeof(KaSample), &crc))
			return false;
		trailer.nsamples += n;
	}

	end = ka_ring_checkpoints_end(NULL);
	for (next = 0; next < end;)
	{
		n = ka_ring_copy_checkpoints(next, buffer.checkpoints, KA_RING_CHUNK, &next);
		if (n == 0)
			break;
		if (!write_all(file, buffer.checkpoints, n * sizeof(KaCheckpointRow), &crc))
			return false;
		trailer.ncheckpoints += n;
	}

	COMP_CRC32C(crc, &trailer, offsetof(HistoryTrailer, crc));
	FIN_CRC32C(crc);
	trailer.crc = crc;
	return fwrite(&trailer, sizeof(trailer), 1, file) == 1;
}

/* In the sampler, or in the postmaster after all others have gone. */
void
ka_history_save(void)
{
	int			error = 0;
	int			last_error;
	bool		logged = false;
	TimestampTz now;
	FILE	   *file = AllocateFile(HISTORY_TMP, PG_BINARY_W);

	if (file == NULL)
		error = errno;
	else
	{
		errno = 0;
		if (!save(file))
			error = errno ? errno : ENOSPC;
		if (FreeFile(file) != 0 && error == 0)
			error = errno;
	}

	/* durable_rename syncs the file first, and logs what goes wrong. */
	if (error == 0 && durable_rename(HISTORY_TMP, KA_HISTORY_FILE, LOG) != 0)
	{
		error = errno ? errno : EIO;
		logged = true;
	}
	if (error != 0)
		unlink(HISTORY_TMP);

	now = GetCurrentTimestamp();
	SpinLockAcquire(&ka_shared->mutex);
	last_error = ka_shared->save_errno;
	ka_shared->save_errno = error;
	if (error == 0)
		ka_shared->saved_at = now;
	SpinLockRelease(&ka_shared->mutex);

	/* Once, not every few minutes; status() goes on telling. */
	if (error != 0 && error != last_error && !logged)
	{
		errno = error;
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", HISTORY_TMP)));
	}
}
