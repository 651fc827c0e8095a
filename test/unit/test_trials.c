/*
 * test_trials.c: what is believed of a file of trials, and which blocks may be
 * compared.
 */
#include "trials.h"
#include "ka_test.h"

#define SYSTEM UINT64_C(7305123456789)

static KaRecordsHeader header;
static KaTrialRecord records[3];

static void
valid_file(int n)
{
	ka_records_header_init(&header, &ka_trials_format, SYSTEM);
	header.nrecords = n;
	header.last_id = 10;
	memset(records, 0, sizeof(records));
	for (int i = 0; i < n; i++)
	{
		records[i].trial_id = 3 + 2 * i;
		records[i].state = KA_TRIAL_FINISHED;
		records[i].block_us = 10000000;
		records[i].settle_us = 2500000;
		records[i].pairs = 20;
		records[i].pairs_done = 20;
		records[i].restored = 1;
	}
}

static uint64_t
bytes(int n)
{
	return sizeof(KaRecordsHeader) + n * sizeof(KaTrialRecord);
}

static const char *
header_problem(uint64_t size)
{
	return ka_records_header_problem(&header, &ka_trials_format, size, SYSTEM);
}

static bool
good(void)
{
	return ka_trials_problem(&header, records) == NULL;
}

TEST(a_file_that_is_ours)
{
	for (int n = 0; n <= 3; n++)
	{
		valid_file(n);
		CHECK_STR(header_problem(bytes(n)), NULL);
		CHECK(good());
	}
}

TEST(headers_that_are_not)
{
	valid_file(2);
	header.magic[3] ^= 1;
	CHECK_STR(header_problem(bytes(2)), "it is not a file of trials");
	valid_file(2);
	header.version++;
	CHECK_STR(header_problem(bytes(2)), "it was written by another version");
	valid_file(2);
	header.record_size += 8;
	CHECK_STR(header_problem(bytes(2)), "it was written by another version");
	valid_file(2);
	header.system_identifier++;
	CHECK_STR(header_problem(bytes(2)), "it belongs to another database cluster");
	valid_file(2);
	CHECK_STR(header_problem(bytes(2) - 1), "it is truncated");
	CHECK_STR(header_problem(bytes(3)), "it is truncated");
	header.nrecords = -1;
	CHECK_STR(header_problem(bytes(2)), "its header is damaged");
	header.nrecords = KA_TRIALS_KEPT + 1;
	CHECK_STR(header_problem(bytes(KA_TRIALS_KEPT + 1)), "its header is damaged");
}

/* Each of them alone makes the file one that is not believed. */
#define DAMAGE(what) do { valid_file(3); CHECK(good()); what; NOTE("%s", #what); CHECK(!good()); } while (0)

TEST(records_that_are_not)
{
	DAMAGE(records[1].trial_id = 3);
	DAMAGE(records[2].trial_id = 11);
	DAMAGE(records[0].trial_id = 0);
	DAMAGE(records[0].state = 0);
	DAMAGE(records[0].state = 99);
	DAMAGE(records[1].block_us = KA_TRIAL_BLOCK_LEAST_US - 1);
	DAMAGE(records[1].block_us = KA_TRIAL_BLOCK_MOST_US + 1);
	DAMAGE(records[1].settle_us = -1);
	DAMAGE(records[1].settle_us = records[1].block_us);
	DAMAGE(records[1].pairs = KA_PAIRS_MOST + 1);
	DAMAGE(records[1].pairs_done = 21);
	DAMAGE(records[1].pairs_done = -1);
	DAMAGE(records[1].pairs_dropped = -1);
	DAMAGE(records[1].restored = 2);
	DAMAGE(records[1].results[KA_NTRIAL_MEASURES - 1].verdict = (KaVerdict) 77);
	DAMAGE(records[1].results[0].pairs = KA_PAIRS_MOST + 1);
	DAMAGE(memset(records[2].subject, 'x', sizeof(records[2].subject)));
	DAMAGE(memset(records[2].old, 'x', sizeof(records[2].old)));
	DAMAGE(memset(records[2].value, 'x', sizeof(records[2].value)));
	DAMAGE(memset(records[2].who, 'x', sizeof(records[2].who)));
	DAMAGE(memset(records[2].detail, 'x', sizeof(records[2].detail)));
	DAMAGE(memset(records[2].hint, 'x', sizeof(records[2].hint)));
}

TEST(settling_time)
{
	CHECK_INT(ka_trial_settle_us(2000000), 1000000);
	CHECK_INT(ka_trial_settle_us(4000000), 1000000);
	CHECK_INT(ka_trial_settle_us(10000000), 2500000);
	CHECK_INT(ka_trial_settle_us(120000000), 30000000);
	CHECK_INT(ka_trial_settle_us(KA_TRIAL_BLOCK_MOST_US), 30000000);
}

TEST(checkpoints_on_both_sides)
{
	CHECK(ka_trial_balanced(0, 0, 0, 0));
	CHECK(ka_trial_balanced(1, 0, 1, 0));
	CHECK(ka_trial_balanced(0.9, 1, 0.75, 1));
	CHECK(!ka_trial_balanced(0.9, 1, 0.65, 1));
	CHECK(!ka_trial_balanced(0.3, 0, 0, 0));
	CHECK(!ka_trial_balanced(0, 0, 0.3, 0));
	CHECK(!ka_trial_balanced(0.5, 1, 0.5, 0));
}

TEST(names)
{
	CHECK_STR(ka_trial_state_name(KA_TRIAL_INTERRUPTED), "interrupted");
	CHECK_STR(ka_trial_state_name(0), NULL);
	CHECK_STR(ka_trial_measure_info[KA_TM_TPS].name, "tps");
	for (int m = 0; m < KA_NTRIAL_MEASURES; m++)
		CHECK(ka_trial_measure_info[m].least >= 0);
}
