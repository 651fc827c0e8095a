/*
 * history.h: the file that the rings are kept in (history.c).
 *
 * Header, samples, checkpoints, trailer; the slots are as they are in memory.
 */
#ifndef KA_HISTORY_H
#define KA_HISTORY_H

#include "port/pg_crc32c.h"
#include "ring.h"

#define KA_HISTORY_MAGIC "KAHIST\r\n"
#define KA_HISTORY_VERSION 2	/* also when only the meaning of a field changes */

typedef struct HistoryHeader
{
	char		magic[8];
	uint32		version;
	uint32		sample_size;	/* bytes */
	uint32		checkpoint_size;	/* bytes */
	uint32		ndeltas;
	uint64		system_identifier;
	int64		last_id;		/* newest checkpoint_id */
	TimestampTz written_at;
} HistoryHeader;

typedef struct HistoryTrailer
{
	uint64		nsamples;
	uint64		ncheckpoints;
	pg_crc32c	crc;			/* of all before the trailer, then of the numbers */
	uint32		unused;
} HistoryTrailer;

#endif							/* KA_HISTORY_H */
