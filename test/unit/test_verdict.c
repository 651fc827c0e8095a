/*
 * test_verdict.c: which advice is applied by itself, and verdicts below, at and
 * above every limit of verdict.def.
 *
 * The expected numbers are worked out here by hand from the table's values,
 * which the first test states.
 */
#include "verdict.h"
#include "ka_test.h"

/* An observation of a throughput outside of checkpoints, and nothing else. */
static KaObservation
outside(double tps)
{
	KaObservation observation;

	for (int m = 0; m < KA_NMEASURES; m++)
		observation.value[m] = NAN;
	observation.value[KA_M_TPS_OUTSIDE] = tps;
	observation.backends = 20;
	observation.work = 5000;
	return observation;
}

static KaObservation
with(KaObservation observation, KaMeasure measure, double value)
{
	observation.value[measure] = value;
	return observation;
}

/* 1000 +- 0: noise is 0, so the least difference of 10 % rules. */
static void
quiet(KaBaseline *baseline)
{
	KaObservation all[8];

	for (int i = 0; i < 8; i++)
		all[i] = outside(1000);
	CHECK_INT(ka_baseline(all, 8, baseline), KA_READY);
}

static KaJudgement
judge(const KaBaseline *baseline, const KaObservation *after, size_t count)
{
	KaJudgement judgement;

	ka_judge(baseline, after, count, 60, &judgement);
	return judgement;
}

static KaVerdict
verdict_of_three(const KaBaseline *baseline, double a, double b, double c)
{
	KaObservation after[] = {outside(a), outside(b), outside(c)};

	return judge(baseline, after, 3).verdict;
}

TEST(the_limits_that_these_tests_rest_on)
{
	CHECK_REAL(KA_VERDICT_LIMIT(BASELINE_LEAST), 4, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(BASELINE_MOST), 12, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(WATCHED_LEAST), 3, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(WATCHED_MOST), 12, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(WATCHED_SECONDS), 86400, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(SPREAD), 3, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(NOISE_PCT), 50, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(ALARM), 3, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(IDLE_TPS), 10, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(BACKENDS_PCT), 50, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(BACKENDS_LEAST), 5, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(WORK_FACTOR), 3, 0);
	CHECK_REAL(KA_VERDICT_LIMIT(WORK_LEAST), 1024, 0);
	CHECK_REAL(ka_measure_info[KA_M_TPS_OUTSIDE].floor_pct, 10, 0);
	CHECK_REAL(ka_measure_info[KA_M_SYNC].floor, 500, 0);
	for (int m = 0; m < KA_NMEASURES; m++)
	{
		NOTE("%s", ka_measure_info[m].name);
		CHECK(strlen(ka_measure_info[m].formula) > 0 && strlen(ka_measure_info[m].source) > 0);
	}
	for (int i = 0; i < KA_NVERDICT_LIMITS; i++)
	{
		NOTE("%s", ka_verdict_limit_info[i].symbol);
		CHECK(strlen(ka_verdict_limit_info[i].formula) > 0 && strlen(ka_verdict_limit_info[i].source) > 0);
	}
	/* Arrays of verdict.c hold 64. */
	CHECK(KA_VERDICT_LIMIT(BASELINE_MOST) <= 64 && KA_VERDICT_LIMIT(WATCHED_MOST) <= 64);
}

/*
 * Which advice.
 */

TEST(advice_that_may_be_applied)
{
	static const struct
	{
		const char *recommended;
		KaSeverity	severity;
		KaConfidence confidence;
		KaActivation activation;
		bool		may;
	}			rows[] = {
		{"1000", KA_WARNING, KA_MEASURED, KA_NONE, true},
		{"1000", KA_CRITICAL, KA_MEASURED, KA_NONE, true},
		{"1000", KA_INFO, KA_MEASURED, KA_NONE, false},
		{"1000", KA_OK, KA_MEASURED, KA_NONE, false},
		{NULL, KA_WARNING, KA_MEASURED, KA_NONE, false},
		{"1000", KA_WARNING, KA_INFERRED, KA_NONE, false},
		{"1000", KA_WARNING, KA_DOCUMENTED, KA_NONE, false},
		{"1000", KA_WARNING, KA_MEASURED, KA_RELOAD, false},
		{"1000", KA_WARNING, KA_MEASURED, KA_RESTART, false},
		{"1000", KA_WARNING, KA_MEASURED, KA_REBOOT, false},
	};

	for (size_t i = 0; i < KA_LENGTH(rows); i++)
	{
		KaAdvice	row = {.recommended = rows[i].recommended,.severity = rows[i].severity,
		.confidence = rows[i].confidence,.activation = rows[i].activation};

		NOTE("row %zu", i);
		CHECK_INT(ka_auto_refusal(&row) == NULL, rows[i].may);
	}
}

/*
 * The baseline.
 */

TEST(baseline_of_too_few)
{
	KaObservation all[] = {outside(1000), outside(1000), outside(1000), outside(1000)};
	KaBaseline	baseline;

	CHECK_INT(ka_baseline(NULL, 0, &baseline), KA_TOO_FEW);
	CHECK_INT(ka_baseline(all, 1, &baseline), KA_TOO_FEW);
	CHECK_INT(ka_baseline(all, 3, &baseline), KA_TOO_FEW);
	CHECK_INT(ka_baseline(all, 4, &baseline), KA_READY);
	CHECK_INT(baseline.count, 4);

	/* One of four does not know its throughput. */
	all[1].value[KA_M_TPS_OUTSIDE] = NAN;
	CHECK_INT(ka_baseline(all, 4, &baseline), KA_TOO_FEW);
}

TEST(baseline_takes_the_newest)
{
	KaObservation all[100];
	KaBaseline	baseline;

	for (int i = 0; i < 100; i++)
		all[i] = outside(i < 88 ? 500 : 1000);
	CHECK_INT(ka_baseline(all, 100, &baseline), KA_READY);
	CHECK_INT(baseline.count, 12);
	CHECK_REAL(baseline.level[KA_M_TPS_OUTSIDE].median, 1000, 0);
	CHECK_REAL(baseline.level[KA_M_TPS_OUTSIDE].noise, 0, 0);
}

TEST(baseline_median_and_noise)
{
	/* Median 1000; deviations 40 20 0 20 40 -> median 20; 3 * 1.4826 * 20 = 88.956. */
	KaObservation all[] = {outside(960), outside(1020), outside(1000), outside(980), outside(1040)};
	KaBaseline	baseline;

	CHECK_INT(ka_baseline(all, 5, &baseline), KA_READY);
	CHECK_REAL(baseline.level[KA_M_TPS_OUTSIDE].median, 1000, 1e-9);
	CHECK_REAL(baseline.level[KA_M_TPS_OUTSIDE].noise, 88.956, 1e-9);
	CHECK_REAL(baseline.level[KA_M_TPS_OUTSIDE].tolerance, 100, 1e-9);	/* the floor of 10 % */
	CHECK_REAL(baseline.backends, 20, 0);
	CHECK_REAL(baseline.work, 5000, 0);

	/* An even number: 1000 and 1020 are in the middle. */
	CHECK_INT(ka_baseline(all + 1, 4, &baseline), KA_READY);
	CHECK_REAL(baseline.level[KA_M_TPS_OUTSIDE].median, 1010, 1e-9);
	CHECK_INT(baseline.level[KA_M_SYNC].count, 0);
}

TEST(baseline_of_an_idle_server)
{
	KaObservation all[8];
	KaBaseline	baseline;

	for (int i = 0; i < 8; i++)
		all[i] = outside(9.99);
	CHECK_INT(ka_baseline(all, 8, &baseline), KA_IDLE);
	for (int i = 0; i < 8; i++)
		all[i] = outside(10);
	CHECK_INT(ka_baseline(all, 8, &baseline), KA_READY);

	/* Busy until just now. */
	all[7] = outside(1);
	CHECK_INT(ka_baseline(all, 8, &baseline), KA_IDLE);

	/* Idle ones between do not count. */
	for (int i = 0; i < 8; i++)
		all[i] = outside(i % 2 ? 1000 : 0);
	CHECK_INT(ka_baseline(all, 8, &baseline), KA_READY);
	CHECK_INT(baseline.count, 4);
	CHECK_REAL(baseline.level[KA_M_TPS_OUTSIDE].median, 1000, 0);

	/* Nothing is known: that is not load. */
	for (int i = 0; i < 8; i++)
		all[i] = outside(NAN);
	CHECK_INT(ka_baseline(all, 8, &baseline), KA_IDLE);
}

TEST(baseline_of_one_load)
{
	KaObservation all[10];
	KaBaseline	baseline;

	/* Six with 100 connections, then four with 20. */
	for (int i = 0; i < 10; i++)
	{
		all[i] = outside(i < 6 ? 4000 : 1000);
		all[i].backends = i < 6 ? 100 : 20;
	}
	CHECK_INT(ka_baseline(all, 10, &baseline), KA_READY);
	CHECK_INT(baseline.count, 4);
	CHECK_REAL(baseline.level[KA_M_TPS_OUTSIDE].median, 1000, 0);
	CHECK_INT(ka_baseline(all, 9, &baseline), KA_TOO_FEW);
}

TEST(baseline_that_is_too_uneven)
{
	/* Median 1000; deviations a a 0 a a: noise 4.4478 a, more than 500 from a = 112.42 on. */
	KaObservation even[] = {outside(888), outside(1112), outside(1000), outside(888), outside(1112)};
	KaObservation uneven[] = {outside(887), outside(1113), outside(1000), outside(887), outside(1113)};
	KaBaseline	baseline;

	CHECK_INT(ka_baseline(even, 5, &baseline), KA_READY);
	CHECK_INT(ka_baseline(uneven, 5, &baseline), KA_UNEVEN);

	/* The throughput during checkpoints alone may be the uneven one. */
	for (int i = 0; i < 5; i++)
		even[i] = with(even[i], KA_M_TPS_DURING, i % 2 ? 400 : 900);
	even[2].value[KA_M_TPS_DURING] = 650;
	CHECK_INT(ka_baseline(even, 5, &baseline), KA_UNEVEN);
}

/*
 * Comparable load.
 */

TEST(comparable_load)
{
	static const struct
	{
		double		tps,
					backends,
					work;
		bool		comparable;
	}			rows[] = {
		{1000, 20, 5000, true},
		{10, 20, 5000, true},	/* at the limit of idle */
		{9.9, 20, 5000, false},
		{NAN, 20, 5000, false},
		{1000, 10, 5000, true}, /* half of 20 less: 10 */
		{1000, 9, 5000, false},
		{1000, 30, 5000, true},
		{1000, 31, 5000, false},
		{1000, NAN, 5000, true},
		{1000, 20, 15000, true},	/* three times as much */
		{1000, 20, 15001, false},
		{1000, 20, 1667, true}, /* a third */
		{1000, 20, 1666, false},
		{1000, 20, NAN, true},
	};
	KaBaseline	baseline;

	quiet(&baseline);
	for (size_t i = 0; i < KA_LENGTH(rows); i++)
	{
		KaObservation one = outside(rows[i].tps);

		one.backends = rows[i].backends;
		one.work = rows[i].work;
		NOTE("row %zu", i);
		CHECK_INT(ka_comparable(&one, &baseline), rows[i].comparable);
	}

	/* Readers: next to no WAL, and the difference is all that counts. */
	baseline.work = 0;
	for (int bytes = 1023; bytes < 1027; bytes++)
	{
		KaObservation one = outside(1000);

		one.work = bytes;
		NOTE("%d B a transaction", bytes);
		CHECK_INT(ka_comparable(&one, &baseline), bytes <= 1024);
	}
	baseline.work = 5000;

	/* Of two connections five more are still a psql or two. */
	baseline.backends = 2;
	for (int backends = 0; backends < 12; backends++)
	{
		KaObservation one = outside(1000);

		one.backends = backends;
		NOTE("%d backends", backends);
		CHECK_INT(ka_comparable(&one, &baseline), backends <= 7);
	}
}

/*
 * Verdicts.
 */

TEST(verdict_around_the_floor)
{
	KaBaseline	baseline;

	quiet(&baseline);			/* tolerance 100 */
	CHECK_INT(verdict_of_three(&baseline, 1000, 1000, 1000), KA_SAME);
	CHECK_INT(verdict_of_three(&baseline, 901, 901, 901), KA_SAME);
	CHECK_INT(verdict_of_three(&baseline, 900, 900, 900), KA_SAME);
	CHECK_INT(verdict_of_three(&baseline, 899, 899, 899), KA_WORSE);
	CHECK_INT(verdict_of_three(&baseline, 1100, 1100, 1100), KA_SAME);
	CHECK_INT(verdict_of_three(&baseline, 1101, 1101, 1101), KA_BETTER);

	/* One outlier of three, up to what raises the alarm. */
	CHECK_INT(verdict_of_three(&baseline, 701, 1000, 1000), KA_SAME);
	CHECK_INT(verdict_of_three(&baseline, 1000, 5000, 1000), KA_SAME);
	CHECK_INT(verdict_of_three(&baseline, 890, 880, 1000), KA_WORSE);
}

TEST(verdict_around_the_noise)
{
	/* As in baseline_median_and_noise with deviations of 50: 3 * 1.4826 * 50 = 222.39. */
	KaObservation all[] = {outside(900), outside(1050), outside(1000), outside(950), outside(1100)};
	KaBaseline	baseline;

	CHECK_INT(ka_baseline(all, 5, &baseline), KA_READY);
	CHECK_REAL(baseline.level[KA_M_TPS_OUTSIDE].tolerance, 222.39, 1e-9);
	CHECK_INT(verdict_of_three(&baseline, 850, 850, 850), KA_SAME); /* worse than the floor, but it is noise */
	CHECK_INT(verdict_of_three(&baseline, 778, 778, 778), KA_SAME);
	CHECK_INT(verdict_of_three(&baseline, 777, 777, 777), KA_WORSE);
	CHECK_INT(verdict_of_three(&baseline, 1222, 1222, 1222), KA_SAME);
	CHECK_INT(verdict_of_three(&baseline, 1223, 1223, 1223), KA_BETTER);
}

TEST(verdict_needs_three)
{
	KaObservation after[] = {outside(850), outside(850), outside(850)};
	KaBaseline	baseline;
	KaJudgement judgement;

	quiet(&baseline);
	CHECK_INT(judge(&baseline, after, 0).verdict, KA_UNDECIDED);
	CHECK_INT(judge(&baseline, after, 1).verdict, KA_UNDECIDED);
	CHECK_INT(judge(&baseline, after, 2).verdict, KA_UNDECIDED);
	judgement = judge(&baseline, after, 3);
	CHECK_INT(judgement.verdict, KA_WORSE);
	CHECK_INT(judgement.measure, KA_M_TPS_OUTSIDE);
	CHECK_REAL(judgement.before, 1000, 0);
	CHECK_REAL(judgement.after, 850, 0);
	CHECK_REAL(judgement.tolerance, 100, 1e-9);
	CHECK_INT(judgement.comparable, 3);

	/* Two that count, and idle ones. */
	after[1] = outside(2);
	judgement = judge(&baseline, after, 3);
	CHECK_INT(judgement.verdict, KA_UNDECIDED);
	CHECK_INT(judgement.comparable, 2);
}

TEST(verdict_at_once_when_it_is_bad)
{
	KaObservation after[] = {outside(700), outside(699)};
	KaBaseline	baseline;
	KaJudgement judgement;

	quiet(&baseline);			/* alarm beyond 3 * 100 */
	CHECK_INT(judge(&baseline, after, 1).verdict, KA_UNDECIDED);
	judgement = judge(&baseline, after, 2);
	CHECK_INT(judgement.verdict, KA_WORSE);
	CHECK_REAL(judgement.after, 699, 0);

	/* But not because the load ended, or is another one. */
	after[1] = outside(1);
	CHECK_INT(judge(&baseline, after, 2).verdict, KA_UNDECIDED);
	after[1] = outside(400);
	after[1].backends = 5;
	CHECK_INT(judge(&baseline, after, 2).verdict, KA_UNDECIDED);
}

TEST(verdict_on_latency)
{
	KaObservation all[6];
	KaObservation after[3];
	KaBaseline	baseline;
	KaJudgement judgement;

	/* 200 ms +- 0: the floor of 500 ms is larger than half of it. */
	for (int i = 0; i < 6; i++)
		all[i] = with(outside(1000), KA_M_SYNC, 200);
	CHECK_INT(ka_baseline(all, 6, &baseline), KA_READY);
	for (int i = 0; i < 3; i++)
		after[i] = with(outside(1000), KA_M_SYNC, 700);
	CHECK_INT(judge(&baseline, after, 3).verdict, KA_SAME);
	for (int i = 0; i < 3; i++)
		after[i] = with(outside(1000), KA_M_SYNC, 701);
	judgement = judge(&baseline, after, 3);
	CHECK_INT(judgement.verdict, KA_WORSE);
	CHECK_INT(judgement.measure, KA_M_SYNC);
	CHECK_REAL(judgement.before, 200, 0);
	CHECK_REAL(judgement.after, 701, 0);

	/* More throughput does not make up for it; nor is one long sync enough. */
	for (int i = 0; i < 3; i++)
		after[i] = with(outside(2000), KA_M_SYNC, 701);
	CHECK_INT(judge(&baseline, after, 3).verdict, KA_WORSE);
	for (int i = 0; i < 3; i++)
		after[i] = with(outside(1000), KA_M_SYNC, i == 1 ? 60000 : 200);
	CHECK_INT(judge(&baseline, after, 3).verdict, KA_SAME);

	/* From 1000 ms on half of it is more than the floor. */
	for (int i = 0; i < 6; i++)
		all[i] = with(outside(1000), KA_M_SYNC, 4000);
	CHECK_INT(ka_baseline(all, 6, &baseline), KA_READY);
	for (int i = 0; i < 3; i++)
		after[i] = with(outside(1000), KA_M_SYNC, 6000);
	CHECK_INT(judge(&baseline, after, 3).verdict, KA_SAME);
	for (int i = 0; i < 3; i++)
		after[i] = with(outside(1000), KA_M_SYNC, 6001);
	CHECK_INT(judge(&baseline, after, 3).verdict, KA_WORSE);

	/* Shorter is better, and says so when throughput stayed. */
	for (int i = 0; i < 3; i++)
		after[i] = with(outside(1000), KA_M_SYNC, 1000);
	judgement = judge(&baseline, after, 3);
	CHECK_INT(judgement.verdict, KA_BETTER);
	CHECK_INT(judgement.measure, KA_M_SYNC);
}

TEST(verdict_of_every_measure)
{
	for (int m = 0; m < KA_NMEASURES; m++)
	{
		const KaMeasureInfo *info = &ka_measure_info[m];
		double		step = fmax(info->floor, 1000 * info->floor_pct / 100);
		KaObservation all[4];
		KaObservation after[3];
		KaBaseline	baseline;

		NOTE("%s", info->name);
		for (int i = 0; i < 4; i++)
			all[i] = with(outside(1000), (KaMeasure) m, 1000);
		CHECK_INT(ka_baseline(all, 4, &baseline), KA_READY);
		for (int i = 0; i < 3; i++)
			after[i] = with(outside(1000), (KaMeasure) m, 1000 - info->better * step * 0.999);
		CHECK_INT(judge(&baseline, after, 3).verdict, KA_SAME);
		for (int i = 0; i < 3; i++)
			after[i] = with(outside(1000), (KaMeasure) m, 1000 - info->better * step * 1.001);
		CHECK_INT(judge(&baseline, after, 3).verdict, KA_WORSE);
		CHECK_INT(judge(&baseline, after, 3).measure, m);
		for (int i = 0; i < 3; i++)
			after[i] = with(outside(1000), (KaMeasure) m, 1000 + info->better * step * 1.001);
		CHECK_INT(judge(&baseline, after, 3).verdict, KA_BETTER);
	}
}

TEST(latency_alone_acquits_nobody)
{
	KaObservation all[4];
	KaObservation after[12];
	KaBaseline	baseline;

	/* Short checkpoints: their own throughput is not known, and after the change no other is. */
	for (int i = 0; i < 4; i++)
		all[i] = with(with(outside(1000), KA_M_TPS_DURING, NAN), KA_M_SYNC, 200);
	CHECK_INT(ka_baseline(all, 4, &baseline), KA_READY);
	for (int i = 0; i < 12; i++)
		after[i] = with(with(outside(NAN), KA_M_TPS_DURING, 1000), KA_M_SYNC, 200);
	CHECK_INT(judge(&baseline, after, 11).verdict, KA_UNDECIDED);
	CHECK_INT(judge(&baseline, after, 11).comparable, 11);
	CHECK_INT(judge(&baseline, after, 12).verdict, KA_NO_VERDICT);
}

TEST(no_verdict_after_long_enough)
{
	KaObservation after[200];
	KaBaseline	baseline;
	KaJudgement judgement;

	quiet(&baseline);
	for (int i = 0; i < 200; i++)
		after[i] = outside(1);
	CHECK_INT(judge(&baseline, after, 11).verdict, KA_UNDECIDED);
	CHECK_INT(judge(&baseline, after, 12).verdict, KA_NO_VERDICT);
	CHECK_INT(judge(&baseline, after, 200).verdict, KA_NO_VERDICT);

	/* No checkpoint at all. */
	ka_judge(&baseline, after, 0, 86399, &judgement);
	CHECK_INT(judgement.verdict, KA_UNDECIDED);
	ka_judge(&baseline, after, 0, 86400, &judgement);
	CHECK_INT(judgement.verdict, KA_NO_VERDICT);

	/* The load comes back with the last one that is waited for. */
	for (int i = 0; i < 12; i++)
		after[i] = outside(i < 9 ? 1 : 1000);
	CHECK_INT(judge(&baseline, after, 12).verdict, KA_SAME);

	/* Without a baseline, as after a reset of the history. */
	memset(&baseline, 0, sizeof(baseline));
	baseline.backends = baseline.work = NAN;
	for (int i = 0; i < 12; i++)
		after[i] = outside(1000);
	CHECK_INT(judge(&baseline, after, 3).verdict, KA_UNDECIDED);
	CHECK_INT(judge(&baseline, after, 12).verdict, KA_NO_VERDICT);
}

TEST(order_does_not_matter)
{
	static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	const double values[] = {850, 1200, 895};
	KaBaseline	baseline;

	quiet(&baseline);
	for (size_t i = 0; i < KA_LENGTH(orders); i++)
	{
		NOTE("order %zu", i);
		CHECK_INT(verdict_of_three(&baseline, values[orders[i][0]], values[orders[i][1]], values[orders[i][2]]), KA_WORSE);
	}
}

TEST(medians_for_the_record)
{
	KaObservation after[] = {outside(800), outside(1), outside(900), outside(850)};
	KaBaseline	baseline;

	quiet(&baseline);
	CHECK_REAL(ka_median_of(after, 4, &baseline, KA_M_TPS_OUTSIDE), 850, 0);	/* without the idle one */
	CHECK(isnan(ka_median_of(after, 4, &baseline, KA_M_TPS_DURING)));
	CHECK(isnan(ka_median_of(after, 0, &baseline, KA_M_TPS_OUTSIDE)));
}

TEST(texts)
{
	for (int i = KA_READY; i <= KA_UNEVEN; i++)
		CHECK(strlen(ka_readiness_text((KaReadiness) i)) > 0);
	CHECK_STR(ka_verdict_name(KA_UNDECIDED), "undecided");
	CHECK_STR(ka_verdict_name(KA_NO_VERDICT), "not enough data");
}

/*
 * Documentation: every row of verdict.def has its line in doc/auto_apply.md.
 */
TEST(every_row_is_documented)
{
	static char text[1 << 20];
	FILE	   *file = fopen("doc/auto_apply.md", "r");
	char		line[1024];

	REQUIRE(file != NULL);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	for (int m = 0; m < KA_NMEASURES; m++)
	{
		const KaMeasureInfo *info = &ka_measure_info[m];

		snprintf(line, sizeof(line), "\n| `%s` | %s | %s | %.15g %s, %.15g %% | %s | %s |\n", info->name, info->unit,
				 info->better == KA_HIGHER ? "higher" : "lower", info->floor, info->unit, info->floor_pct,
				 info->formula, info->source);
		NOTE("%s", info->name);
		CHECK(strstr(text, line) != NULL);
	}
	for (int i = 0; i < KA_NVERDICT_LIMITS; i++)
	{
		const KaVerdictLimitInfo *info = &ka_verdict_limit_info[i];
		char		name[64];
		size_t		n = 0;

		for (; info->symbol[n] && n < sizeof(name) - 1; n++)
			name[n] = (char) (info->symbol[n] >= 'A' && info->symbol[n] <= 'Z' ? info->symbol[n] + 32 : info->symbol[n]);
		name[n] = '\0';
		snprintf(line, sizeof(line), "\n| `%s` | %.15g%s%s | %s | %s |\n", name, info->value, *info->unit ? " " : "",
				 info->unit, info->formula, info->source);
		NOTE("%s", name);
		CHECK(strstr(text, line) != NULL);
	}
}
