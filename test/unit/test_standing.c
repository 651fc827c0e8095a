/*
 * test_standing.c: which advice stands, and what is news about it.
 *
 * Times and the hold are plain numbers here.
 */
#include "ka_test.h"
#include "standing.h"

#define HOLD 5

static KaStandingList list;
static KaNews news[KA_NEWS_MAX];

typedef struct Row
{
	const char *rule;
	KaSeverity	severity;
	const char *recommended;
} Row;

/* One look at these rows; how many news there are. */
static size_t
look(int64_t now, const Row *rows, size_t n)
{
	static KaAdvice advice[KA_STANDING_MAX + 8];
	KaAdviceList all = {.rows = advice,.count = n};

	memset(advice, 0, sizeof(advice));
	for (size_t i = 0; i < n; i++)
	{
		advice[i].rule = rows[i].rule;
		advice[i].subject = "subject";
		advice[i].severity = rows[i].severity;
		advice[i].recommended = rows[i].recommended;
	}
	return ka_standing_look(&list, &all, now, HOLD, news);
}

static void
begin(void)
{
	memset(&list, 0, sizeof(list));
}

static const Row warning = {"a", KA_WARNING, "1"};
static const Row info = {"a", KA_INFO, "1"};
static const Row critical = {"a", KA_CRITICAL, "1"};
static const Row other_value = {"a", KA_WARNING, "2"};
static const Row no_value = {"a", KA_WARNING, NULL};

TEST(appears_once)
{
	begin();
	CHECK_INT(look(1, &warning, 1), 1);
	CHECK_INT(news[0].event, KA_ADVICE_APPEARED);
	CHECK_INT(look(2, &warning, 1), 0);
	CHECK_INT(look(100, &warning, 1), 0);
	CHECK_INT(list.count, 1);
}

TEST(worse_at_once_better_after_the_hold)
{
	begin();
	look(1, &warning, 1);
	CHECK_INT(look(2, &critical, 1), 1);
	CHECK_INT(news[0].event, KA_ADVICE_CHANGED);
	CHECK_INT(news[0].before.severity, KA_WARNING);
	CHECK_INT(look(3, &info, 1), 0);
	CHECK_INT(look(7, &info, 1), 0);	/* held for 4 */
	CHECK_INT(look(8, &info, 1), 1);	/* for 5 */
	CHECK_INT(news[0].before.severity, KA_CRITICAL);
}

TEST(another_value_after_the_hold)
{
	const Row *const rows[] = {&other_value, &no_value};

	for (int i = 0; i < 2; i++)
	{
		begin();
		look(1, &warning, 1);
		CHECK_INT(look(2, rows[i], 1), 0);
		CHECK_INT(look(7, rows[i], 1), 1);
		CHECK_INT(news[0].event, KA_ADVICE_CHANGED);
		CHECK_INT(look(8, rows[i], 1), 0);
	}
}

TEST(flapping_is_no_news)
{
	begin();
	look(0, &warning, 1);
	for (int64_t now = 1; now < 100; now += 2)
	{
		CHECK_INT(look(now, NULL, 0), 0);
		CHECK_INT(look(now + 1, &warning, 1), 0);
	}
	CHECK_INT(list.count, 1);
}

TEST(disappears_after_the_hold)
{
	begin();
	look(1, &warning, 1);
	CHECK_INT(look(2, NULL, 0), 0);
	CHECK_INT(look(6, NULL, 0), 0);
	CHECK_INT(look(7, NULL, 0), 1);
	CHECK_INT(news[0].event, KA_ADVICE_DISAPPEARED);
	CHECK(news[0].row == NULL);
	CHECK_STR(news[0].before.rule, "a");
	CHECK_INT(list.count, 0);
	CHECK_INT(look(8, &warning, 1), 1);
	CHECK_INT(news[0].event, KA_ADVICE_APPEARED);
}

TEST(a_clock_set_back_starts_the_hold_again)
{
	begin();
	look(100, &warning, 1);
	CHECK_INT(look(101, NULL, 0), 0);
	CHECK_INT(look(50, NULL, 0), 0);
	CHECK_INT(look(54, NULL, 0), 0);
	CHECK_INT(look(55, NULL, 0), 1);
}

/* The list is full: the advice that is not followed is no news again and again. */
TEST(more_than_fits)
{
	Row			rows[KA_STANDING_MAX + 2];
	char		names[KA_STANDING_MAX + 2][16];

	begin();
	for (int i = 0; i < KA_STANDING_MAX + 2; i++)
	{
		snprintf(names[i], sizeof(names[i]), "r%d", i);
		rows[i] = (Row) {names[i], KA_INFO, NULL};
	}
	CHECK_INT(look(1, rows, KA_STANDING_MAX + 2), KA_STANDING_MAX);
	CHECK_INT(look(2, rows, KA_STANDING_MAX + 2), 0);
	CHECK_INT(look(3, rows, 1), 0);
	CHECK_INT(look(8, rows, 1), KA_STANDING_MAX - 1);
	CHECK_INT(list.count, 1);
}

TEST(names_that_are_too_long_are_not_followed)
{
	char		name[200];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	begin();
	CHECK(!ka_standing_add(&list, name, "s", KA_INFO, NULL));
	CHECK(!ka_standing_add(&list, "r", name, KA_INFO, NULL));
	CHECK_INT(list.count, 0);
}

TEST(no_value_is_not_an_empty_one)
{
	CHECK_INT(ka_standing_hash(NULL), 0);
	CHECK(ka_standing_hash("") != 0);
	CHECK(ka_standing_hash("1") != ka_standing_hash("2"));
}
