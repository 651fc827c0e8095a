/*
 * test_cases.c: facts, and the advice that is right.
 *
 * Every file of test/fixtures/cases (public reports) and cases_own (what those
 * do not cover) goes through the decoder and the rules.  Each "expect" entry
 * must match a row on all its keys, each "forbid" entry none.
 *
 * test/fixtures/borders has a file for each rule: facts, and cases that change
 * one of them ("with"), below, at and above what the rule compares with.  A
 * case says the row's severity ("silent": no such row) and recommendation
 * (null: none; "*": any); numbers are computed by hand, see "why".
 *
 * One line per case; KA_SHOW_ADVICE=1 in the environment prints the rows.
 * pg_regress judges the same files: sql/04_cases.sql.
 */
#include <dirent.h>

#include "advice.h"
#include "json.h"
#include "ka_test.h"

/* "16GB" as 17179869184, "3170" as 3170; NAN when it is neither. */
static double
number_of(const char *text)
{
	static const struct
	{
		const char *unit;
		double		factor;
	}			units[] = {{"", 1}, {"B", 1}, {"kB", 1024}, {"MB", 1048576}, {"GB", 1073741824}, {"TB", 1099511627776.0}};
	char	   *end;
	double		value = text ? strtod(text, &end) : NAN;

	for (size_t i = 0; text && end != text && i < KA_LENGTH(units); i++)
	{
		if (strcmp(end, units[i].unit) == 0)
			return value * units[i].factor;
	}
	return NAN;
}

static bool
matches_recommended(const char *recommended, const json_t *want)
{
	const json_t *equals = json_object_get(want, "equals");
	double		value = number_of(recommended);

	if (json_object_get(want, "null"))
		return recommended == NULL;
	if (equals)
		return recommended && strcmp(recommended, json_string_value(equals)) == 0;
	if (isnan(value))
		return false;
	return (!json_object_get(want, "min") || value >= json_number_value(json_object_get(want, "min"))) &&
		(!json_object_get(want, "max") || value <= json_number_value(json_object_get(want, "max")));
}

static bool
is_listed(const json_t *list, const char *text)
{
	for (size_t i = 0; i < json_array_size(list); i++)
	{
		if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
			return true;
	}
	return false;
}

static bool
matches(const KaAdvice *row, json_t *want)
{
	const char *key;
	json_t	   *value;

	json_object_foreach(want, key, value)
	{
		bool		good;

		if (strcmp(key, "severity") == 0)
			good = is_listed(value, ka_severity_name(row->severity));
		else if (strcmp(key, "recommends") == 0)
			good = (row->recommended != NULL) == json_is_true(value);
		else if (strcmp(key, "recommended") == 0)
			good = matches_recommended(row->recommended, value);
		else if (strcmp(key, "rule") == 0)
			good = strcmp(row->rule, json_string_value(value)) == 0;
		else if (strcmp(key, "subject") == 0)
			good = strcmp(row->subject, json_string_value(value)) == 0;
		else if (strcmp(key, "activation") == 0)
			good = strcmp(ka_activation_name(row->activation), json_string_value(value)) == 0;
		else if (strcmp(key, "confidence") == 0)
			good = strcmp(ka_confidence_name(row->confidence), json_string_value(value)) == 0;
		else if (strcmp(key, "names") == 0) /* own cases: a text that the reason must have */
			good = strstr(row->reason, json_string_value(value)) != NULL;
		else if (strcmp(key, "command") == 0)
			good = row->command && strstr(row->command, json_string_value(value)) != NULL;
		else
			good = false;
		if (!good)
			return false;
	}
	return true;
}

static void
print_row(const KaAdvice *row)
{
	printf("#   %-8s %-24s %-32s %s -> %s\n#     %s\n#     %s%s%s\n", ka_severity_name(row->severity), row->rule,
		   row->subject, row->current ? row->current : "?", row->recommended ? row->recommended : "-", row->reason,
		   ka_confidence_name(row->confidence), row->command ? "; " : "", row->command ? row->command : "");
}

static void
complain(const char *what, const json_t *want, const KaAdvice *row)
{
	char	   *text = json_dumps(want, JSON_COMPACT);

	printf("# %s %s\n", what, text);
	free(text);
	if (row)
		print_row(row);
}

/* What holds for every row, whatever the case. */
static bool
is_wellformed(const KaAdvice *row, const KaFacts *facts)
{
	bool		good = row->reason && *row->reason && row->subject && *row->subject &&
		strstr(row->reason, "(null)") == NULL && (!row->command || strstr(row->command, "(null)") == NULL) &&
		(!row->command || strstr(row->command, "sysctl --system") == NULL) &&
		!(ka_known(facts, KA_PG_MANAGED) && row->command && strstr(row->command, "sysctl")) &&
		row->nevidence > 0;

	/* A measurement needs something that was measured. */
	if (row->confidence == KA_MEASURED)
	{
		bool		window = false;

		for (size_t i = 0; i < row->nevidence; i++)
			window |= strncmp(row->evidence[i].name, "window.", 7) == 0;
		good &= window;
	}
	if (!good)
	{
		printf("# not well-formed:\n");
		print_row(row);
	}
	return good;
}

static bool
judge(json_t *document)
{
	json_t	   *want;
	KaArena		arena;
	KaFacts		facts;
	KaJsonSink	sink;
	KaDecoder  *decoder;
	KaDecodeError error = {0};
	KaAdviceList list = {0};
	size_t		i;
	bool		good = true;

	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
	list.arena = &arena;
	decoder = ka_decoder_new(&facts, &sink);
	ka_json_feed(json_object_get(document, "facts"), &sink);
	if (!ka_decoder_finish(decoder, &error))
	{
		printf("# facts: %s: %s\n", error.path, error.problem);
		good = false;
	}
	if (!ka_advise(&facts, &list))
		good = false;

	if (getenv("KA_SHOW_ADVICE"))
	{
		for (size_t r = 0; r < list.count; r++)
			print_row(&list.rows[r]);
	}
	for (size_t r = 0; r < list.count; r++)
		good &= is_wellformed(&list.rows[r], &facts);
	json_array_foreach(json_object_get(document, "expect"), i, want)
	{
		bool		found = false;

		for (size_t r = 0; r < list.count; r++)
			found |= matches(&list.rows[r], want);
		if (!found)
			complain("missing", want, NULL);
		good &= found;
	}
	json_array_foreach(json_object_get(document, "forbid"), i, want)
	{
		for (size_t r = 0; r < list.count; r++)
		{
			if (!matches(&list.rows[r], want))
				continue;
			complain("forbidden", want, &list.rows[r]);
			good = false;
		}
	}
	ka_malloc_free(&arena);
	return good;
}

static int
is_case(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return end && strcmp(end, ".json") == 0;
}

/* Runs a directory of cases, one line each; returns how many there were. */
static int
run_cases(const char *directory)
{
	char		path[4096];
	struct dirent **entries;
	int			count;

	snprintf(path, sizeof(path), "%s/%s", ka_fixtures(), directory);
	count = scandir(path, &entries, is_case, alphasort);
	REQUIRE(count >= 0);
	for (int i = 0; i < count; i++)
	{
		json_error_t error;
		json_t	   *document;
		bool		good;

		snprintf(path, sizeof(path), "%s/%s/%s", ka_fixtures(), directory, entries[i]->d_name);
		document = json_load_file(path, 0, &error);
		if (document == NULL)
			printf("# %s:%d: %s\n", path, error.line, error.text);
		good = document != NULL && judge(document);
		printf("%s case %s\n", good ? "ok  " : "FAIL", entries[i]->d_name);
		CHECK(good);
		json_decref(document);
		free(entries[i]);
	}
	free(entries);
	return count;
}

TEST(reported_cases)
{
	CHECK_INT(run_cases("cases"), 57);
}

TEST(own_cases)
{
	CHECK(run_cases("cases_own") >= 15);
}

/*
 * Borders
 */

/* The case of a border as one of the files above: facts, expect, forbid. */
static json_t *
border_document(const char *rule, json_t *facts, json_t *border)
{
	const json_t *severity = json_object_get(border, "severity");
	const char *recommended = json_string_value(json_object_get(border, "recommended"));
	bool		silent = strcmp(json_string_value(severity), "silent") == 0;
	json_t	   *want = json_pack("{s:s, s:o*}", "rule", rule, "subject", json_incref(json_object_get(border, "subject")));
	json_t	   *changed = json_deep_copy(facts);

	json_object_update_recursive(changed, json_object_get(border, "with"));
	if (!silent)
	{
		json_object_set_new(want, "severity", json_pack("[s]", json_string_value(severity)));
		if (recommended && strcmp(recommended, "*") == 0)
			json_object_set_new(want, "recommends", json_true());
		else
			json_object_set_new(want, "recommended", recommended ? json_pack("{s:s}", "equals", recommended) :
								json_pack("{s:b}", "null", true));
	}
	return json_pack("{s:o, s:[o]}", "facts", changed, silent ? "forbid" : "expect", want);
}

static void
run_borders(const char *rule)
{
	char		path[4096];
	json_error_t error;
	json_t	   *document,
			   *group,
			   *border;
	size_t		i,
				j;
	int			silent = 0,
				spoken = 0;

	snprintf(path, sizeof(path), "%s/borders/%s.json", ka_fixtures(), rule);
	document = json_load_file(path, 0, &error);
	if (document == NULL)
		printf("# %s:%d: %s\n", path, error.line, error.text);
	REQUIRE(document != NULL);
	CHECK_STR(json_string_value(json_object_get(document, "rule")), rule);
	json_array_foreach(json_object_get(document, "borders"), i, group)
	{
		json_array_foreach(json_object_get(group, "cases"), j, border)
		{
			json_t	   *one = border_document(rule, json_object_get(group, "facts"), border);
			bool		good = judge(one);

			printf("%s border %s: %s\n", good ? "ok  " : "FAIL", rule, json_string_value(json_object_get(border, "case")));
			CHECK(good);
			if (json_object_get(one, "forbid"))
				silent++;
			else
				spoken++;
			json_decref(one);
		}
	}
	CHECK(silent >= 1 && spoken >= 1);
	json_decref(document);
}

TEST(borders_of_each_rule)
{
	const KaRuleInfo *rules;
	size_t		count = ka_rules(&rules);

	for (size_t i = 0; i < count; i++)
		run_borders(rules[i].name);
}

/* The judge itself: a row that is right, and rows that are not. */
TEST(the_judge)
{
	KaAdvice	row = {.rule = "r",.severity = KA_INFO,.subject = "s",.recommended = "16GB",.reason = "because"};
	const struct
	{
		const char *want;
		bool		good;
	}			checks[] = {
		{"{\"rule\": \"r\", \"severity\": [\"ok\", \"info\"], \"recommended\": {\"min\": 17179869184, \"max\": 17179869184}}", true},
		{"{\"rule\": \"q\"}", false},
		{"{\"severity\": [\"warning\"]}", false},
		{"{\"recommended\": {\"null\": true}}", false},
		{"{\"recommended\": {\"equals\": \"16GB\"}}", true},
		{"{\"recommended\": {\"min\": 17179869185}}", false},
		{"{\"recommends\": false}", false},
		{"{\"names\": \"caus\"}", true},
		{"{\"unheard\": 1}", false},
	};

	for (size_t i = 0; i < KA_LENGTH(checks); i++)
	{
		json_t	   *want = json_loads(checks[i].want, 0, NULL);

		REQUIRE(want != NULL);
		CHECK_INT(matches(&row, want), checks[i].good);
		json_decref(want);
	}
}
