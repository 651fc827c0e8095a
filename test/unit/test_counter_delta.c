/*
 * test_counter_delta.c: two readings, and what happened between them.
 */
#include "counter_delta.h"
#include "ka_test.h"

TEST(deltas)
{
	CHECK_INT(ka_counter_delta(5, 7), 2);
	CHECK_INT(ka_counter_delta(5, 5), 0);
	CHECK_INT(ka_counter_delta(0, INT64_MAX), INT64_MAX);
	CHECK_INT(ka_counter_delta(5, 4), KA_UNKNOWN);
	CHECK_INT(ka_counter_delta(KA_UNKNOWN, 4), KA_UNKNOWN);
	CHECK_INT(ka_counter_delta(5, KA_UNKNOWN), KA_UNKNOWN);
}

/* Data and WAL on two devices: the one that is busy in this interval counts. */
TEST(the_busier_of_two_devices)
{
	static const struct
	{
		const char *what;
		int64_t		before[2],	/* ms of the two devices */
					now[2];
		int64_t		busy;		/* ms */
	}			cases[] = {
		{"the first is busier", {1000, 1000}, {1900, 1100}, 900},
		{"the second is busier", {1000, 1000}, {1100, 1900}, 900},
		{"the one with the smaller total", {900000, 10}, {900050, 810}, 800},
		{"both idle", {5, 7}, {5, 7}, 0},
		{"one device for both", {1000, KA_UNKNOWN}, {1300, KA_UNKNOWN}, 300},
		{"the first cannot be read", {KA_UNKNOWN, 10}, {KA_UNKNOWN, 30}, 20},
		{"the first was reset", {5000, 10}, {20, 30}, 20},
		{"the second is new", {10, KA_UNKNOWN}, {30, 90000}, 20},
		{"nothing is known", {KA_UNKNOWN, KA_UNKNOWN}, {1, 1}, KA_UNKNOWN},
	};

	for (size_t i = 0; i < KA_LENGTH(cases); i++)
	{
		KaCounters	before = {.io_ms = cases[i].before[0],.io_ms_second = cases[i].before[1]};
		KaCounters	now = {.io_ms = cases[i].now[0],.io_ms_second = cases[i].now[1]};

		NOTE("%s", cases[i].what);
		CHECK_INT(ka_busy_delta(&before, &now), cases[i].busy);
	}
}

/* What the lists lost, where somebody compacted or reclaimed; a drain of all where they lost half. */
TEST(estimated_drains)
{
	static const struct
	{
		const char *what;
		int64_t		pages[2],	/* before, now */
					compactions[2],
					reclaims[2];
		int64_t		drains,
					drained;
	}			cases[] = {
		{"nobody stalled", {5000, 100}, {7, 7}, {9, 9}, 0, 0},
		{"a compaction", {5000, 4000}, {7, 8}, {9, 9}, 0, 1000},
		{"a compaction, half of the lists", {5000, 2500}, {7, 8}, {9, 9}, 0, 2500},
		{"a reclaim, half of the lists", {5000, 2500}, {7, 7}, {9, 11}, 1, 2500},
		{"a reclaim, a little less", {5000, 2501}, {7, 7}, {9, 11}, 0, 2499},
		{"filled up again", {5000, 5001}, {7, 8}, {9, 11}, 0, 0},
		{"lists unknown", {KA_UNKNOWN, 1}, {7, 8}, {9, 11}, KA_UNKNOWN, KA_UNKNOWN},
		{"lists unknown now", {5000, KA_UNKNOWN}, {7, 8}, {9, 11}, KA_UNKNOWN, KA_UNKNOWN},
		{"compactions unknown", {5000, 1}, {7, KA_UNKNOWN}, {9, 11}, KA_UNKNOWN, KA_UNKNOWN},
		{"reclaims were reset", {5000, 1}, {7, 8}, {9, 2}, KA_UNKNOWN, KA_UNKNOWN},
	};

	for (size_t i = 0; i < KA_LENGTH(cases); i++)
	{
		KaCounters	before = {.pcp_pages = cases[i].pages[0],.compact_stall = cases[i].compactions[0],.allocstall = cases[i].reclaims[0]};
		KaCounters	now = {.pcp_pages = cases[i].pages[1],.compact_stall = cases[i].compactions[1],.allocstall = cases[i].reclaims[1]};
		int64_t		drains,
					drained;

		NOTE("%s", cases[i].what);
		ka_drain_estimate(&before, &now, &drains, &drained);
		CHECK_INT(drains, cases[i].drains);
		CHECK_INT(drained, cases[i].drained);
	}
}
