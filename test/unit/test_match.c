/*
 * test_match.c: windows before and after a change, paired by their load.
 */
#include "match.h"
#include "ka_test.h"

static KaLoad
load(double backends, double work)
{
	return (KaLoad) {.tps = 1000,.backends = backends,.work = work};
}

TEST(alike_with_alike)
{
	KaLoad		before[] = {load(20, 500), load(40, 5000), load(20, 5000)};
	KaLoad		after[] = {load(20, 5100), load(21, 510), load(39, 5000), load(20, 520)};
	KaMatch		matches[3];
	size_t		partner[3] = {9, 9, 9};
	size_t		n = ka_match_windows(before, 3, after, 4, matches);

	CHECK_INT(n, 3);
	for (size_t i = 0; i < n; i++)
		partner[matches[i].before] = matches[i].after;
	CHECK_INT(partner[0], 3);	/* 520 with 20 connections is nearer than 510 with 21 */
	CHECK_INT(partner[1], 2);
	CHECK_INT(partner[2], 0);
}

TEST(what_is_not_comparable)
{
	KaLoad		before[] = {load(20, 500), load(20, 500)};
	KaLoad		after[] = {load(200, 500), load(20, 50000)};
	KaMatch		matches[2];

	CHECK_INT(ka_match_windows(before, 2, after, 2, matches), 0);
	after[1] = load(24, 700);
	CHECK_INT(ka_match_windows(before, 2, after, 2, matches), 1);
	CHECK_INT(matches[0].after, 1);
	after[1].tps = 3;			/* idle */
	CHECK_INT(ka_match_windows(before, 2, after, 2, matches), 0);
	after[1].tps = NAN;
	CHECK_INT(ka_match_windows(before, 2, after, 2, matches), 0);
	CHECK_INT(ka_match_windows(before, 0, after, 2, matches), 0);
	CHECK_INT(ka_match_windows(before, 2, after, 0, matches), 0);
}

TEST(what_is_not_known_is_no_difference)
{
	KaLoad		before[] = {load(NAN, 500)};
	KaLoad		after[] = {load(20, NAN)};
	KaMatch		matches[1];

	CHECK_INT(ka_match_windows(before, 1, after, 1, matches), 1);
}

/* Throughput itself is what is compared: it must not decide who is compared. */
TEST(throughput_is_no_part_of_it)
{
	KaLoad		before[] = {load(20, 500)};
	KaLoad		after[] = {load(20, 501), load(22, 500)};
	KaMatch		matches[1];

	after[0].tps = 9000;
	CHECK_INT(ka_match_windows(before, 1, after, 2, matches), 1);
	CHECK_INT(matches[0].after, 0);
}
