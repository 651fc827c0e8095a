/*
 * records.h: the header of a file of numbered records, and whether bytes are
 * such a file.
 *
 * Header, records (oldest first), checksum.  The records are as they are in
 * memory; the header tells whose, how large and how many.  A record begins with
 * its number, an int64_t that grows from one to the next.
 */
#ifndef KA_RECORDS_H
#define KA_RECORDS_H

#include <stdint.h>

typedef struct KaRecordFormat
{
	char		magic[9];		/* eight bytes and the zero */
	uint32_t	version;		/* also when only the meaning of a field changes */
	uint32_t	record_size;	/* bytes; a multiple of 8 */
	int64_t		most;			/* records that are kept */
	const char *not_ours;		/* "it is not a ..." */
} KaRecordFormat;

typedef struct KaRecordsHeader
{
	char		magic[8];
	uint32_t	version;
	uint32_t	record_size;	/* bytes */
	uint64_t	system_identifier;
	int64_t		last_id;		/* newest number that was given out */
	int64_t		nrecords;
} KaRecordsHeader;

/* Sets magic, version and size; no records. */
extern void ka_records_header_init(KaRecordsHeader *header, const KaRecordFormat *format, uint64_t system_identifier);

/*
 * What is wrong with a file of "bytes" bytes (without the checksum at its end)
 * that begins with this header; NULL: nothing.
 */
extern const char *ka_records_header_problem(const KaRecordsHeader *header, const KaRecordFormat *format,
											 uint64_t bytes, uint64_t system_identifier);

#endif							/* KA_RECORDS_H */
