/*
 * fuzz_trials.c: any bytes as a file of trials.  The magic and the numbers in
 * the header are made right for most inputs, so that the fuzzer reaches what
 * lies behind them.
 */
#include <stdlib.h>
#include <string.h>

#include "trials.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Numbers near or within their ranges; the texts stay as they are. */
static void
make_plausible(KaTrialRecord *record, int64_t id)
{
	record->trial_id = id;
	record->state = (int32_t) ((uint32_t) record->state % 7);
	record->block_us = KA_TRIAL_BLOCK_LEAST_US + (int64_t) ((uint64_t) record->block_us % 1024);
	record->settle_us = (int64_t) ((uint64_t) record->settle_us % 2048);
	record->pairs = (int32_t) ((uint32_t) record->pairs % (KA_PAIRS_MOST + 2));
	record->pairs_done = (int32_t) ((uint32_t) record->pairs_done % (KA_PAIRS_MOST + 2));
	record->pairs_dropped &= 0xFF;
	record->restored &= 1;
	for (int m = 0; m < KA_NTRIAL_MEASURES; m++)
	{
		record->results[m].pairs %= KA_PAIRS_MOST + 1;
		record->results[m].verdict = (KaVerdict) ((uint32_t) record->results[m].verdict % 5);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaRecordsHeader header;
	KaTrialRecord *records;
	size_t		n;

	if (size < sizeof(header))
		return 0;
	memcpy(&header, data, sizeof(header));
	n = (size - sizeof(header)) / sizeof(KaTrialRecord);
	if (data[0] % 4 != 0)
	{
		int64_t		last_id = header.last_id;

		ka_records_header_init(&header, &ka_trials_format, 1);
		header.nrecords = (int64_t) n;
		header.last_id = data[0] % 4 == 1 ? last_id : (int64_t) n;
	}
	if (ka_records_header_problem(&header, &ka_trials_format, size, 1) != NULL)
		return 0;
	if ((uint64_t) header.nrecords != n || n > KA_TRIALS_KEPT)
		abort();
	/* exactly as long as they are, so that a look beyond is seen */
	records = malloc(n * sizeof(KaTrialRecord) + !n);
	memcpy(records, data + sizeof(header), n * sizeof(KaTrialRecord));
	for (size_t i = 0; i < n; i++)
		if (data[sizeof(header) + i * sizeof(KaTrialRecord)] % 4 != 0)
			make_plausible(&records[i], (int64_t) i + 1);
	if (ka_trials_problem(&header, records) == NULL)
	{
		for (size_t i = 0; i < n; i++)
		{
			if (strlen(records[i].subject) >= sizeof(records[i].subject) || strlen(records[i].hint) >= sizeof(records[i].hint) ||
				ka_trial_state_name(records[i].state) == NULL || ka_verdict_name(records[i].results[0].verdict) == NULL ||
				records[i].pairs_done > records[i].pairs || (i > 0 && records[i].trial_id <= records[i - 1].trial_id))
				abort();
		}
	}
	free(records);
	return 0;
}
