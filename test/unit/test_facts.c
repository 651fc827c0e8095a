/*
 * test_facts.c: tables and setters of the facts, and their documentation.
 */
#include "ka_test.h"

#include "facts.h"

static KaArena arena;
static KaFacts facts;

static void
start(void)
{
	ka_malloc_arena(&arena);
	ka_facts_init(&facts, &arena);
}

static void
end(void)
{
	ka_malloc_free(&arena);
}

/* The first of "a|b|c", in static memory. */
static const char *
first_value(const char *values)
{
	static char buffer[64];

	snprintf(buffer, sizeof(buffer), "%.*s", (int) strcspn(values, "|"), values);
	return buffer;
}

TEST(rows_are_sound)
{
	for (int i = 0; i < KA_NFACTS; i++)
	{
		const KaFactInfo *info = &ka_fact_info[i];

		CHECK(info->path != NULL && strchr(info->path, '.') != NULL);
		CHECK((info->type == KA_ENUM) == (info->values != NULL));
		if (info->type == KA_INT || info->type == KA_REAL)
			CHECK(info->min < info->max);
		/* ka_set_real relies on it */
		if (info->type == KA_REAL)
			CHECK(info->min >= -(INT64_C(1) << 62) && info->max <= INT64_C(1) << 62);
		for (int j = 0; j < i; j++)
		{
			if (!CHECK(strcmp(info->path, ka_fact_info[j].path) != 0))
				printf("# twice: %s\n", info->path);
		}
	}
}

TEST(sysctl_rows_are_facts)
{
	for (int i = 0; i < KA_NSYSCTLS; i++)
	{
		const KaSysctlInfo *info = &ka_sysctl_info[i];
		char		path[128];

		snprintf(path, sizeof(path), "sysctl.%s", info->name);
		CHECK_STR(ka_fact_info[KA_NFACTS - KA_NSYSCTLS + i].path, path);
		CHECK_INT(ka_sysctl_by_name(info->name), i);
		CHECK(info->def == -1 || (info->def >= info->min && info->def <= info->max));
	}
	CHECK_INT(ka_sysctl_by_name("vm.nr_hugepage"), -1);
	CHECK_INT(ka_sysctl_by_name(""), -1);
}

TEST(nothing_is_known_at_first)
{
	start();
	for (int i = 0; i < KA_NFACTS; i++)
	{
		CHECK(!ka_known(&facts, i));
		CHECK_INT(ka_int(&facts, i), KA_UNKNOWN);
		CHECK_REAL(ka_real(&facts, i, -7.5), -7.5, 0);
		CHECK_STR(ka_text(&facts, i), NULL);
		CHECK(!ka_yes(&facts, i));
		CHECK(!ka_is(&facts, i, ""));
	}
	for (int i = 0; i < KA_NSYSCTLS; i++)
		CHECK(!facts.boot[i].known && facts.boot[i].value == KA_UNKNOWN);
	CHECK(ka_pool(&facts, 2097152) == NULL);
	end();
}

TEST(bounds_of_every_number)
{
	start();
	for (int i = 0; i < KA_NFACTS; i++)
	{
		const KaFactInfo *info = &ka_fact_info[i];

		if (info->type == KA_INT)
		{
			if (info->min > INT64_MIN)
				CHECK(!ka_set_int(&facts, i, info->min - 1));
			if (info->max < INT64_MAX)
				CHECK(!ka_set_int(&facts, i, info->max + 1));
			CHECK(!ka_known(&facts, i));
			CHECK(ka_set_int(&facts, i, info->min));
			CHECK_INT(ka_int(&facts, i), info->min);
			CHECK(ka_set_int(&facts, i, info->max));
			CHECK_INT(ka_int(&facts, i), info->max);
			CHECK_REAL(ka_real(&facts, i, -1), (double) info->max, 0);
		}
		else if (info->type == KA_REAL)
		{
			CHECK(!ka_set_real(&facts, i, NAN));
			CHECK(!ka_set_real(&facts, i, INFINITY));
			CHECK(!ka_set_real(&facts, i, -INFINITY));
			CHECK(!ka_set_real(&facts, i, nextafter((double) info->min, -INFINITY)));
			CHECK(!ka_set_real(&facts, i, nextafter((double) info->max, INFINITY)));
			CHECK(!ka_known(&facts, i));
			CHECK(ka_set_real(&facts, i, (double) info->max));
			CHECK_INT(ka_int(&facts, i), info->max);
			CHECK(ka_set_real(&facts, i, 0.75));
			CHECK_INT(ka_int(&facts, i), 0);
			CHECK_REAL(ka_real(&facts, i, -1), 0.75, 0);
		}
	}
	end();
}

TEST(setters_keep_to_the_type)
{
	start();
	for (int i = 0; i < KA_NFACTS; i++)
	{
		KaType		type = ka_fact_info[i].type;
		bool		number = type == KA_INT || type == KA_REAL;

		if (!number)
			CHECK(!ka_set_int(&facts, i, 1));
		if (type != KA_REAL)
			CHECK(!ka_set_real(&facts, i, 1));
		if (type != KA_BOOL)
			CHECK(!ka_set_bool(&facts, i, true));
		if (type != KA_TEXT)
			CHECK(!ka_set_text(&facts, i, "no such value"));
		CHECK(!ka_set_text(&facts, i, NULL));
		CHECK(!ka_known(&facts, i));
	}
	end();
}

TEST(enums_take_their_values_only)
{
	start();
	for (int i = 0; i < KA_NFACTS; i++)
	{
		const KaFactInfo *info = &ka_fact_info[i];
		char		longer[80];

		if (info->type != KA_ENUM)
			continue;
		snprintf(longer, sizeof(longer), "%sx", first_value(info->values));
		CHECK(!ka_set_text(&facts, i, longer));
		longer[strlen(longer) - 2] = '\0';
		CHECK(!ka_set_text(&facts, i, longer));
		CHECK(!ka_set_text(&facts, i, ""));
		CHECK(!ka_set_text(&facts, i, "|"));
		CHECK(!ka_set_text(&facts, i, info->values));
		CHECK(!ka_known(&facts, i));
		CHECK(ka_set_text(&facts, i, first_value(info->values)));
		CHECK(ka_is(&facts, i, first_value(info->values)));
		CHECK(ka_set_text(&facts, i, strrchr(info->values, '|') + 1));
		CHECK(ka_is(&facts, i, strrchr(info->values, '|') + 1));
	}
	end();
}

TEST(texts_are_copied)
{
	char		release[] = "6.18.44";

	start();
	CHECK(ka_set_text(&facts, KA_KERNEL_RELEASE, release));
	release[0] = '7';
	CHECK_STR(ka_text(&facts, KA_KERNEL_RELEASE), "6.18.44");
	CHECK(ka_is(&facts, KA_KERNEL_RELEASE, "6.18.44"));
	CHECK(!ka_is(&facts, KA_KERNEL_RELEASE, "7.18.44"));
	end();
}

TEST(booleans)
{
	start();
	CHECK(ka_set_bool(&facts, KA_PG_WAL_RECYCLE, false));
	CHECK(ka_known(&facts, KA_PG_WAL_RECYCLE) && !ka_yes(&facts, KA_PG_WAL_RECYCLE));
	CHECK(ka_set_bool(&facts, KA_PG_WAL_RECYCLE, true));
	CHECK(ka_yes(&facts, KA_PG_WAL_RECYCLE));
	end();
}

TEST(pools_by_size)
{
	KaPool		pools[2] = {{.size_bytes = 2097152}, {.size_bytes = 1073741824}};

	start();
	facts.pools = pools;
	facts.npools = 2;
	CHECK(ka_pool(&facts, 1073741824) == &pools[1]);
	CHECK(ka_pool(&facts, 65536) == NULL);
	end();
}

static void *
no_memory(void *ctx, size_t size)
{
	(void) ctx;
	(void) size;
	return NULL;
}

TEST(without_memory_a_text_stays_unknown)
{
	KaArena		empty = {.alloc = no_memory};

	ka_facts_init(&facts, &empty);
	CHECK(!ka_set_text(&facts, KA_KERNEL_RELEASE, "6.18"));
	CHECK(!ka_known(&facts, KA_KERNEL_RELEASE));
	CHECK(empty.failed);
}

/* Every fact has its line in the reference, with its unit. */
TEST(reference_is_complete)
{
	FILE	   *file = fopen("doc/facts.md", "r");
	static char text[256 * 1024];
	size_t		length;

	REQUIRE(file != NULL);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	for (int i = 0; i < KA_NFACTS; i++)
	{
		char		cell[160];
		const char *row;

		snprintf(cell, sizeof(cell), "\n| `%s` |", ka_fact_info[i].path);
		row = strstr(text, cell);
		if (!CHECK(row != NULL))
		{
			printf("# doc/facts.md lacks %s\n", ka_fact_info[i].path);
			continue;
		}
		snprintf(cell, sizeof(cell), "| `%s` | %s |", ka_fact_info[i].path,
				 ka_fact_info[i].unit[0] ? ka_fact_info[i].unit : "-");
		if (!CHECK(strncmp(row + 1, cell, strlen(cell)) == 0))
			printf("# doc/facts.md: unit of %s is \"%s\"\n", ka_fact_info[i].path, ka_fact_info[i].unit);
		for (const char *v = ka_fact_info[i].values; v != NULL && *v != '\0';)
		{
			size_t		n = strcspn(v, "|");
			const char *row_end = strchr(row + 1, '\n');
			const char *found;

			snprintf(cell, sizeof(cell), "`%.*s`", (int) n, v);
			found = strstr(row, cell);
			if (!CHECK(found != NULL && found < row_end))
				printf("# doc/facts.md: %s lacks the value %s\n", ka_fact_info[i].path, cell);
			v += n + (v[n] == '|');
		}
	}
}
