/*
 * test_stats_recorded.c: comparisons against R, and what they find in noise of
 * a real machine.
 *
 * test/fixtures/trials has the throughput of a machine second by second
 * (record), pairs out of it, and what R's wilcox.test says about them
 * (reference.R).  How often a comparison errs, and what it finds, is measured by
 * drawing trials from the same recording.
 */
#include "stats_test.h"

#define MOST_SECONDS	4000
#define SETS_PAIRS		1000

static FILE *
open_fixture(const char *name)
{
	char		path[600];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/trials/%s", ka_fixtures(), name);
	file = fopen(path, "r");
	if (file == NULL)
		printf("# cannot open %s\n", path);
	return file;
}

/*
 * ----------------------------------------------------------------
 * Against R
 * ----------------------------------------------------------------
 */

/* The pairs of one set; their number. */
static size_t
read_pairs(const char *wanted, double *olds, double *news)
{
	FILE	   *file = open_fixture("pairs.csv");
	char		line[256];
	char		set[64];
	size_t		n = 0;

	while (file && fgets(line, sizeof(line), file))
	{
		if (sscanf(line, "%63[^,],%lf,%lf", set, &olds[n], &news[n]) == 3 && strcmp(set, wanted) == 0 && n < SETS_PAIRS - 1)
			n++;
	}
	if (file)
		fclose(file);
	return n;
}

TEST(medians_and_intervals_are_those_of_r)
{
	static double olds[SETS_PAIRS];
	static double news[SETS_PAIRS];
	FILE	   *file = open_fixture("expected.csv");
	char		line[512];
	char		set[64];
	size_t		pairs;
	double		old_median,
				new_median,
				ratio,
				low,
				high;
	int			compared = 0;

	REQUIRE(file != NULL);
	while (fgets(line, sizeof(line), file))
	{
		KaComparison got;
		double		tolerance;

		if (sscanf(line, "%63[^,],%zu,%lf,%lf,%lf,%lf,%lf", set, &pairs, &old_median, &new_median, &ratio, &low, &high) != 7)
			continue;
		NOTE("%s, %zu pairs", set, pairs);
		CHECK(read_pairs(set, olds, news) >= pairs);
		ka_compare_pairs(olds, news, pairs, 0, KA_HIGHER, &got);
		CHECK_INT(got.pairs, pairs);
		CHECK_REAL(got.old_median, old_median, old_median * 1e-9);
		CHECK_REAL(got.new_median, new_median, new_median * 1e-9);
		CHECK_REAL(got.ratio, ratio, 1e-9);
		/* beyond, the normal approximation may be an average or two off */
		tolerance = pairs <= KA_EXACT_PAIRS ? 1e-9 : 0.01 * (high - low);
		CHECK_REAL(got.low, low, tolerance);
		CHECK_REAL(got.high, high, tolerance);
		compared++;
	}
	fclose(file);
	CHECK(compared >= 40);
}

TEST(recorded_null_and_effect)
{
	static double olds[SETS_PAIRS];
	static double news[SETS_PAIRS];
	KaComparison got;
	size_t		n = read_pairs("quiet_tps_5s", olds, news);

	/* null_tps_10s happens to be one of the five in a hundred: R says so as well */
	ka_compare_pairs(olds, news, n, 0, KA_HIGHER, &got);
	CHECK_STR(ka_verdict_name(got.verdict), "no difference seen");
	/* the side with synchronous_commit = on is the new one */
	n = read_pairs("effect_tps", olds, news);
	ka_compare_pairs(olds, news, n, 0, KA_HIGHER, &got);
	CHECK_STR(ka_verdict_name(got.verdict), "worse");
	ka_compare_pairs(olds, news, n, 0, KA_LOWER, &got);
	CHECK_STR(ka_verdict_name(got.verdict), "better");
	/* the other way round, all is the reciprocal */
	n = read_pairs("effect_tps", olds, news);
	ka_compare_pairs(olds, news, n, 0, KA_HIGHER, &got);
	{
		KaComparison back;

		ka_compare_pairs(news, olds, n, 0, KA_HIGHER, &back);
		CHECK_REAL(back.ratio * got.ratio, 1, 1e-12);
		CHECK_REAL(back.low * got.high, 1, 1e-12);
		CHECK_REAL(back.old_median, got.new_median, 0);
	}
}

/*
 * ----------------------------------------------------------------
 * In recorded noise
 * ----------------------------------------------------------------
 */

/*
 * Trials drawn from a recording: each pair is a random stretch of it, two blocks
 * long, the first second of each thrown away, sides in random order.
 */
typedef struct Recording
{
	const char *file;
	size_t		stated_pairs;	/* that find an effect of 5 % with blocks of 10 s (doc/trials.md) */
	double		tps[MOST_SECONDS];
	size_t		seconds;
} Recording;

static Recording recordings[] = {{.file = "null.csv",.stated_pairs = 200}, {.file = "busy.csv",.stated_pairs = 200}};

#define NRECORDINGS (sizeof(recordings) / sizeof(recordings[0]))

static void
read_recording(Recording *recording)
{
	FILE	   *file = open_fixture(recording->file);
	char		line[256];
	double		tps;

	recording->seconds = 0;
	while (file && fgets(line, sizeof(line), file))
	{
		if (recording->seconds < MOST_SECONDS && sscanf(line, "%*d,%*d,%lf,", &tps) == 1)
			recording->tps[recording->seconds++] = tps;
	}
	if (file)
		fclose(file);
}

static double
block_mean(const Recording *recording, size_t from, size_t length)
{
	double		sum = 0;

	for (size_t i = from; i < from + length; i++)
		sum += recording->tps[i];
	return sum / (double) length;
}

/* One trial with an effect of that size. */
static KaVerdict
draw_trial(const Recording *recording, double effect, size_t pairs, size_t block)
{
	double		olds[KA_PAIRS_MOST];
	double		news[KA_PAIRS_MOST];
	KaComparison got;

	for (size_t i = 0; i < pairs; i++)
	{
		size_t		at = (size_t) (uniform() * (double) (recording->seconds - 2 * (block + 1) + 1));
		double		first = block_mean(recording, at + 1, block);
		double		second = block_mean(recording, at + block + 2, block);
		bool		new_first = uniform() < 0.5;

		olds[i] = new_first ? second : first;
		news[i] = (new_first ? first : second) * effect;
	}
	ka_compare_pairs(olds, news, pairs, 0, KA_HIGHER, &got);
	return got.verdict;
}

/* Of "runs" trials, those with the verdict. */
static int
trials_with(const Recording *recording, double effect, size_t pairs, size_t block, int runs, KaVerdict verdict)
{
	int			found = 0;

	for (int run = 0; run < runs; run++)
		found += draw_trial(recording, effect, pairs, block) == verdict;
	return found;
}

TEST(no_effect_in_recorded_noise)
{
	static const size_t pairs[] = {6, 10, 20, 40};
	static const size_t blocks[] = {5, 10};
	int			runs = 2000;
	int			all = 0;

	random_state = 2;
	for (size_t r = 0; r < NRECORDINGS; r++)
	{
		read_recording(&recordings[r]);
		REQUIRE(recordings[r].seconds >= 200);
		for (size_t k = 0; k < 8; k++)
		{
			size_t		n = pairs[k % 4];
			size_t		block = blocks[k / 4];
			int			right = trials_with(&recordings[r], 1, n, block, runs, KA_SAME);
			double		low,
						high;

			rate_interval(right, runs, &low, &high);
			printf("# %s, no effect, %zu pairs of blocks of %zu s: \"no difference seen\" in %.1f %% of %d (%.1f to %.1f)\n",
				   recordings[r].file, n, block, 100.0 * right / runs, runs, 100 * low, 100 * high);
			NOTE("%s, %zu pairs of %zu s", recordings[r].file, n, block);
			CHECK(high >= 0.95);
			all += right;
		}
	}
	printf("# no effect: \"no difference seen\" in %.2f %% of %zu\n", 100.0 * all / (runs * 8 * NRECORDINGS), runs * 8 * NRECORDINGS);
	CHECK(all >= 0.95 * runs * 8 * NRECORDINGS);
}

/* What doc/trials.md states; with KA_POWER_TABLE in the environment its table as well. */
TEST(power_in_recorded_noise)
{
	static const size_t pairs[] = {10, 20, 40, 60, 100, 200, 400};
	static const double effects[] = {0.05, 0.10, 0.20, 0.50};
	int			runs = getenv("KA_POWER_TABLE") ? 400 : 100;

	random_state = 3;
	for (size_t r = 0; r < NRECORDINGS; r++)
	{
		const Recording *recording = &recordings[r];

		for (size_t e = 0; e < sizeof(effects) / sizeof(effects[0]) && getenv("KA_POWER_TABLE"); e++)
		{
			printf("# %s, found of an effect of %2.0f %%, by pairs of blocks of 10 s:", recording->file, 100 * effects[e]);
			for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
				printf(" %zu: %.0f %%", pairs[i], 100.0 * trials_with(recording, 1 + effects[e], pairs[i], 10, runs, KA_BETTER) / runs);
			printf("\n");
		}
		NOTE("%s, %zu pairs", recording->file, recording->stated_pairs);
		CHECK(trials_with(recording, 1.05, recording->stated_pairs, 10, runs, KA_BETTER) >= 0.8 * runs);
		CHECK(trials_with(recording, 1.05, recording->stated_pairs, 10, runs, KA_WORSE) == 0);
		CHECK(trials_with(recording, 1 / 1.05, recording->stated_pairs, 10, runs, KA_WORSE) >= 0.8 * runs);
	}
}
