/*
 * trials.c: what is remembered of a trial, and whether bytes are that.
 *
 * Pure functions and constant tables.
 */
#include "trials.h"

#include <math.h>
#include <string.h>

const KaRecordFormat ka_trials_format = {
	.magic = "KATRIAL\n",
	.version = 1,
	.record_size = sizeof(KaTrialRecord),
	.most = KA_TRIALS_KEPT,
	.not_ours = "it is not a file of trials",
};

#define SETTLE_LEAST_US INT64_C(1000000)	/* backends report their transactions once a second */
#define SETTLE_MOST_US INT64_C(30000000)

/* Shares of a block's time in a checkpoint that differ by more are not alike. */
#define CHECKPOINT_SHARE 0.2

const KaTrialMeasureInfo ka_trial_measure_info[KA_NTRIAL_MEASURES] = {
#define TRIAL_MEASURE(symbol, name, unit, better, part, whole, factor, least) {name, unit, better, least},
#include "trials.def"
};

const char *
ka_trial_state_name(int32_t state)
{
	switch (state)
	{
#define TRIAL_STATE(number, symbol, name) case number: return name;
			KA_TRIAL_STATES(TRIAL_STATE)
#undef TRIAL_STATE
	}
	return NULL;
}

static bool
ends(const char *field, size_t size)
{
	return memchr(field, '\0', size) != NULL;
}

#define ENDS(record, field) ends((record)->field, sizeof((record)->field))

static bool
record_valid(const KaTrialRecord *record)
{
	if (ka_trial_state_name(record->state) == NULL ||
		record->block_us < KA_TRIAL_BLOCK_LEAST_US || record->block_us > KA_TRIAL_BLOCK_MOST_US ||
		record->settle_us < 0 || record->settle_us >= record->block_us ||
		record->pairs < 0 || record->pairs > KA_PAIRS_MOST ||
		record->pairs_done < 0 || record->pairs_done > record->pairs || record->pairs_dropped < 0 ||
		(record->restored != 0 && record->restored != 1))
		return false;
	for (int m = 0; m < KA_NTRIAL_MEASURES; m++)
	{
		if (ka_verdict_name(record->results[m].verdict) == NULL || record->results[m].pairs > KA_PAIRS_MOST)
			return false;
	}
	return ENDS(record, subject) && ENDS(record, old) && ENDS(record, value) &&
		ENDS(record, who) && ENDS(record, detail) && ENDS(record, hint);
}

const char *
ka_trials_problem(const KaRecordsHeader *header, const void *stored)
{
	const KaTrialRecord *records = stored;
	int64_t		last = 0;

	for (int64_t i = 0; i < header->nrecords; i++)
	{
		if (records[i].trial_id <= last || records[i].trial_id > header->last_id || !record_valid(&records[i]))
			return "it is damaged";
		last = records[i].trial_id;
	}
	return NULL;
}

int64_t
ka_trial_settle_us(int64_t block_us)
{
	int64_t		settle = block_us / 4;

	return settle < SETTLE_LEAST_US ? SETTLE_LEAST_US : settle > SETTLE_MOST_US ? SETTLE_MOST_US : settle;
}

bool
ka_trial_balanced(double old_share, int old_begun, double new_share, int new_begun)
{
	return old_begun == new_begun && fabs(old_share - new_share) <= CHECKPOINT_SHARE;
}
