/*
 * test_stats.c: comparisons of pairs at the borders of what they take, and how
 * often they err in noise of known kinds.
 *
 * Expected numbers are worked out by hand.  Against R, and in recorded noise:
 * test_stats_recorded.c.
 */
#include "stats_test.h"

static double
gaussian(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

/*
 * ----------------------------------------------------------------
 * Few pairs, zeros, ties, what is not known
 * ----------------------------------------------------------------
 */

TEST(medians)
{
	double		values[] = {5, 1, 3, 4};

	CHECK(isnan(ka_median(values, 0)));
	CHECK_REAL(ka_median(values, 1), 5, 0);
	CHECK_REAL(ka_median(values, 3), 3, 0);
	CHECK_REAL(ka_median((double[]) {4, 1, 3, 5}, 4), 3.5, 0);
	CHECK(isnan(ka_spread(values, 0)));
	CHECK_REAL(ka_spread((double[]) {1, 2, 3, 4, 100}, 5), 1.4826, 1e-12);
}

TEST(few_pairs)
{
	double		olds[] = {100, 100, 100, 100, 100, 100};
	double		news[] = {201, 202, 203, 204, 205, 206};
	KaComparison got;

	ka_compare_pairs(olds, news, 0, 0, KA_HIGHER, &got);
	CHECK_INT(got.pairs, 0);
	CHECK(isnan(got.ratio) && isnan(got.low) && isnan(got.high) && isnan(got.old_median));
	CHECK_INT(got.verdict, KA_NO_VERDICT);
	ka_compare_pairs(olds, news, 5, 0, KA_HIGHER, &got);
	CHECK_REAL(got.ratio, 2.03, 1e-4);
	CHECK(isnan(got.low) && isnan(got.high));
	CHECK_INT(got.verdict, KA_NO_VERDICT);
	/* with six, the interval is all of them */
	ka_compare_pairs(olds, news, 6, 0, KA_HIGHER, &got);
	CHECK_REAL(got.low, 2.01, 1e-12);
	CHECK_REAL(got.high, 2.06, 1e-12);
	CHECK_INT(got.verdict, KA_BETTER);
	ka_compare_pairs(olds, news, 6, 0, KA_LOWER, &got);
	CHECK_INT(got.verdict, KA_WORSE);
	news[3] = 60;				/* one against five: no verdict out of six */
	ka_compare_pairs(olds, news, 6, 0, KA_HIGHER, &got);
	CHECK_INT(got.verdict, KA_SAME);
}

TEST(zeros)
{
	double		stalls[] = {289, 310, 250, 270, 260, 301, 280};
	double		none[7] = {0};
	KaComparison got;

	ka_compare_pairs(stalls, none, 7, 0.5, KA_LOWER, &got);
	CHECK_INT(got.pairs, 7);
	CHECK_REAL(got.old_median, 280, 0);
	CHECK_REAL(got.new_median, 0, 0);
	CHECK_REAL(got.ratio, 0.5 / 280, 1e-4);
	CHECK_INT(got.verdict, KA_BETTER);
	ka_compare_pairs(none, stalls, 7, 0.5, KA_LOWER, &got);
	CHECK_INT(got.verdict, KA_WORSE);
	/* nothing on both sides: that is a finding, and no difference */
	ka_compare_pairs(none, none, 7, 0.5, KA_LOWER, &got);
	CHECK_INT(got.pairs, 7);
	CHECK_REAL(got.ratio, 1, 0);
	CHECK_REAL(got.low, 1, 0);
	CHECK_REAL(got.high, 1, 0);
	CHECK_INT(got.verdict, KA_SAME);
	/* a throughput of 0 is no measurement of a throughput */
	ka_compare_pairs(none, stalls, 7, 0, KA_HIGHER, &got);
	CHECK_INT(got.pairs, 0);
	CHECK_INT(got.verdict, KA_NO_VERDICT);
}

TEST(what_is_not_known_does_not_count)
{
	double		olds[] = {100, NAN, 100, 100, INFINITY, 100, 100, 100, -1, 100, 100};
	double		news[] = {110, 111, 112, NAN, 114, 115, 116, 117, 118, 119, 120};
	double		known_old[7],
				known_new[] = {110, 112, 115, 116, 117, 119, 120};
	KaComparison got;
	KaComparison known;

	for (int i = 0; i < 7; i++)
		known_old[i] = 100;
	ka_compare_pairs(olds, news, 11, 0, KA_HIGHER, &got);
	ka_compare_pairs(known_old, known_new, 7, 0, KA_HIGHER, &known);
	CHECK_INT(got.pairs, 7);
	CHECK_REAL(got.ratio, known.ratio, 0);
	CHECK_REAL(got.low, known.low, 0);
	CHECK_REAL(got.high, known.high, 0);
	CHECK_REAL(got.old_median, known.old_median, 0);
	CHECK_REAL(got.new_median, known.new_median, 0);
}

TEST(ties_and_scale)
{
	double		olds[20];
	double		news[20];
	KaComparison got;
	KaComparison scaled;

	/* as many ties as there can be, and one pair that differs */
	for (int i = 0; i < 20; i++)
		olds[i] = news[i] = 1000;
	news[7] = 3000;
	ka_compare_pairs(olds, news, 20, 0, KA_HIGHER, &got);
	CHECK_REAL(got.ratio, 1, 0);
	CHECK_INT(got.verdict, KA_SAME);
	/* a unit is no matter, nor is the order */
	for (int i = 0; i < 20; i++)
	{
		olds[i] = 100 + i;
		news[i] = 100 + (i * 7) % 20;
	}
	ka_compare_pairs(olds, news, 20, 0, KA_HIGHER, &got);
	for (int i = 0; i < 10; i++)
	{
		double		old_value = olds[i];
		double		new_value = news[i];

		olds[i] = olds[19 - i] * 1e6;
		news[i] = news[19 - i] * 1e6;
		olds[19 - i] = old_value * 1e6;
		news[19 - i] = new_value * 1e6;
	}
	ka_compare_pairs(olds, news, 20, 0, KA_HIGHER, &scaled);
	CHECK_REAL(scaled.low, got.low, 1e-12);
	CHECK_REAL(scaled.high, got.high, 1e-12);
}

TEST(more_pairs_than_are_looked_at)
{
	static double olds[KA_PAIRS_MOST + 50];
	static double news[KA_PAIRS_MOST + 50];
	KaComparison got;

	for (int i = 0; i < KA_PAIRS_MOST + 50; i++)
	{
		olds[i] = 1e-300;
		news[i] = 1e300;
	}
	ka_compare_pairs(olds, news, KA_PAIRS_MOST + 50, 0, KA_HIGHER, &got);
	CHECK_INT(got.pairs, KA_PAIRS_MOST);
	CHECK_INT(got.verdict, KA_BETTER);
}

/*
 * ----------------------------------------------------------------
 * How often it errs
 * ----------------------------------------------------------------
 */

typedef double (*Noise) (void);

static double normal_noise(void) { return exp(0.1 * gaussian()); }
static double heavy_noise(void) { return exp(0.1 * gaussian() / (0.05 + uniform())); }
static double lumpy_noise(void) { return floor(4 * uniform()); }

/* Of "runs" trials with these pairs and no effect, how many say so. */
static int
right_about_nothing(Noise noise, int pairs, int runs, double least)
{
	double		olds[KA_PAIRS_MOST];
	double		news[KA_PAIRS_MOST];
	int			right = 0;

	for (int run = 0; run < runs; run++)
	{
		KaComparison got;

		for (int i = 0; i < pairs; i++)
		{
			olds[i] = noise();
			news[i] = noise();
		}
		ka_compare_pairs(olds, news, pairs, least, KA_HIGHER, &got);
		right += got.verdict == KA_SAME;
	}
	return right;
}

TEST(no_effect_is_called_none_whatever_the_noise)
{
	static const struct
	{
		const char *name;
		Noise		noise;
		double		least;
	}			noises[] = {{"normal", normal_noise, 0}, {"heavy tails", heavy_noise, 0}, {"counts of 0 to 3", lumpy_noise, 0.5}};
	static const int pairs[] = {6, 10, 20, 40, 101};

	random_state = 1;
	for (size_t k = 0; k < sizeof(noises) / sizeof(noises[0]); k++)
		for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		{
			int			runs = 2000;
			int			right = right_about_nothing(noises[k].noise, pairs[i], runs, noises[k].least);
			double		low,
						high;

			rate_interval(right, runs, &low, &high);
			NOTE("%s, %d pairs: %.2f %% (%.2f to %.2f)", noises[k].name, pairs[i], 100.0 * right / runs, 100 * low, 100 * high);
			CHECK(high >= 0.95);	/* not proven to err more often than it says */
			CHECK(low <= 0.97 || pairs[i] < 10 || noises[k].least > 0);	/* nor far too careful */
		}
}
