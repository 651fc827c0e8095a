/*
 * records.c: the header of a file of numbered records.
 */
#include "records.h"

#include <string.h>

void
ka_records_header_init(KaRecordsHeader *header, const KaRecordFormat *format, uint64_t system_identifier)
{
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, format->magic, sizeof(header->magic));
	header->version = format->version;
	header->record_size = format->record_size;
	header->system_identifier = system_identifier;
}

const char *
ka_records_header_problem(const KaRecordsHeader *header, const KaRecordFormat *format,
						  uint64_t bytes, uint64_t system_identifier)
{
	if (memcmp(header->magic, format->magic, sizeof(header->magic)) != 0)
		return format->not_ours;
	if (header->version != format->version || header->record_size != format->record_size)
		return "it was written by another version";
	if (header->system_identifier != system_identifier)
		return "it belongs to another database cluster";
	if (header->nrecords < 0 || header->nrecords > format->most || header->last_id < 0)
		return "its header is damaged";
	if (bytes != sizeof(*header) + (uint64_t) header->nrecords * format->record_size)
		return "it is truncated";
	return NULL;
}
