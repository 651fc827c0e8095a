/*
 * test_kinds.c: titles as PostgreSQL 15 to 18 set them, and others.
 */
#include "ka_test.h"
#include "kinds.h"
#include "probe_maps.h"

typedef struct KaTitleCase
{
	const char *title;
	KaProbeKind kind;
} KaTitleCase;

static const KaTitleCase cases[] = {
	{"postgres: checkpointer ", KA_KIND_CHECKPOINTER},
	{"postgres: walwriter ", KA_KIND_WALWRITER},
	{"postgres: background writer ", KA_KIND_BGWRITER},
	{"postgres: background writer", KA_KIND_BGWRITER},
	{"postgres: 15/main: checkpointer ", KA_KIND_CHECKPOINTER},
	{"postgres: a: b: walwriter ", KA_KIND_WALWRITER},
	{"postgres: autovacuum launcher ", KA_KIND_SERVER},
	{"postgres: autovacuum worker sales", KA_KIND_AUTOVACUUM},
	{"postgres: logical replication launcher ", KA_KIND_SERVER},
	{"postgres: parallel worker for PID 4711 ", KA_KIND_PARALLEL},
	{"postgres: startup recovering 000000010000000000000003", KA_KIND_STARTUP},
	{"postgres: walreceiver streaming 0/3000148", KA_KIND_WALRECEIVER},
	{"postgres: walsender repl [local] streaming 0/3000148", KA_KIND_WALSENDER},
	{"postgres: main: walsender repl 10.0.0.7(40112) streaming 0/3000148", KA_KIND_WALSENDER},
	{"postgres: walsender repl sales 10.0.0.7(40112) START_REPLICATION", KA_KIND_WALSENDER},
	{"postgres: io worker 2", KA_KIND_IO_WORKER},
	{"postgres: archiver last was 000000010000000000000002", KA_KIND_SERVER},
	{"postgres: logger ", KA_KIND_SERVER},
	{"postgres: kernel_advisor sampler ", KA_KIND_SERVER},
	{"postgres: ann sales [local] idle", KA_KIND_BACKEND},
	{"postgres: ann sales 10.0.0.7(40112) INSERT waiting", KA_KIND_BACKEND},
	{"postgres: ann sales fe80::1(40112) idle", KA_KIND_BACKEND},
	{"postgres: main: ann sales [local] COMMIT", KA_KIND_BACKEND},
	/* Users with such names. */
	{"postgres: checkpointer sales [local] idle", KA_KIND_BACKEND},
	{"postgres: startup sales 10.0.0.7(40112) idle", KA_KIND_BACKEND},
	{"postgres: walwriter sales authentication", KA_KIND_SERVER},
	/* Not a server's process, or its first one. */
	{"/usr/lib/postgresql/15/bin/postgres", KA_KIND_OTHER},
	{"postgres", KA_KIND_OTHER},
	{"postgres:", KA_KIND_OTHER},
	{"postgres: ", KA_KIND_OTHER},
	{"xpostgres: checkpointer", KA_KIND_OTHER},
	{"Postgres: checkpointer", KA_KIND_OTHER},
	{"", KA_KIND_OTHER},
	{"postgres: :", KA_KIND_SERVER},
	{"postgres: : ", KA_KIND_SERVER},
	{"postgres: a b (", KA_KIND_SERVER},
	{"postgres: a b )", KA_KIND_SERVER},
};

TEST(titles)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		NOTE("%s", cases[i].title);
		CHECK_STR(ka_probe_kind_name(ka_kind_of_title(cases[i].title, strlen(cases[i].title))),
				  ka_probe_kind_name(cases[i].kind));
	}
}

/* The longest cluster_name leaves room for the kinds. */
TEST(longest_cluster_name)
{
	static const KaTitleCase kinds[] = {
		{"checkpointer ", KA_KIND_CHECKPOINTER},
		{"walwriter ", KA_KIND_WALWRITER},
		{"background writer ", KA_KIND_BGWRITER},
	};
	char		title[128];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
	{
		NOTE("%s", kinds[i].title);
		snprintf(title, sizeof(title), "postgres: %063d: %s", 7, kinds[i].title);
		CHECK_INT(ka_kind_of_title(title, KA_TITLE_LENGTH), kinds[i].kind);
	}
}

/* Cut at each length, and without an end: only what is there is read (AddressSanitizer looks). */
TEST(cut_anywhere)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		size_t		length = strlen(cases[i].title);

		for (size_t n = 1; n <= length; n++)
		{
			char	   *cut = malloc(n);

			REQUIRE(cut != NULL);
			memcpy(cut, cases[i].title, n);
			CHECK(ka_kind_of_title(cut, n) < KA_KIND_COUNT);
			free(cut);
		}
	}
}

TEST(names)
{
	for (uint32_t kind = 0; kind < KA_KIND_COUNT; kind++)
		CHECK(strcmp(ka_probe_kind_name(kind), "unknown") != 0);
	CHECK_STR(ka_probe_kind_name(KA_KIND_COUNT), "unknown");
	CHECK_STR(ka_probe_source_name(0), "kmem:mm_page_pcpu_drain");
	CHECK_STR(ka_probe_source_name(KA_SOURCE_COUNT), "unknown");
}
