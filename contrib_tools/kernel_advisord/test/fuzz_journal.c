/*
 * fuzz_journal.c: any bytes as a journal.  The input is cut into records; the
 * first byte of each decides whether it gets a good checksum, so that the
 * fuzzer reaches what lies behind it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "journal.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *copy = malloc(size > 0 ? size : 1);
	KaChanges	changes;
	size_t		valid;
	uint64_t	last = 0;

	if (size > 0)
		memcpy(copy, data, size);
	for (size_t at = 0; at + sizeof(KaRecord) <= size; at += sizeof(KaRecord))
	{
		KaRecord	record;

		if (data[at] % 4 == 0)
			continue;			/* stays garbage */
		memcpy(&record, copy + at, sizeof(record));
		record.kind %= 6;
		record.change %= 8;
		record.refers %= 8;
		record.operation %= 9;
		ka_record_seal(&record);
		memcpy(copy + at, &record, sizeof(record));
	}
	if (!ka_journal_replay(copy, size, &changes, &valid))
		abort();
	if (valid > size || valid % sizeof(KaRecord) != 0)
		abort();
	for (size_t i = 0; i < changes.n; i++)
	{
		const KaChange *change = &changes.items[i];

		if (change->record.change <= last || ka_changes_find(&changes, change->record.change) != change)
			abort();
		last = change->record.change;
	}
	ka_changes_free(&changes);
	free(copy);
	return 0;
}
