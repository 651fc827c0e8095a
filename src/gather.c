/*
 * gather.c: what the kernel's files, the server's own settings and mapping, the
 * sampler's ring and the root helper (where there is one) tell, put together.
 *
 * Reads with the rights of the server, writes nothing and takes no lock but
 * those of the rings.  Needs no transaction and no database, so that it works
 * in a backend and in a background worker with shared memory alike.
 */
#include "postgres.h"

#include <sys/resource.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/pg_shmem.h"
#include "storage/procarray.h"
#include "utils/guc.h"

#include "arena.h"
#include "collect.h"
#include "compat.h"
#include "gather.h"
#include "guc.h"
#include "helper.h"
#include "window.h"

/*
 * Settings that are facts as they stand.  GetConfigOption() prints a number in
 * the setting's own unit, which "scale" turns into the fact's.
 */
typedef struct SettingFact
{
	const char *setting;
	KaFact		fact;
	int64		scale;
} SettingFact;

static const SettingFact setting_facts[] = {
	{"server_version_num", KA_PG_VERSION_NUM, 1},
	{"huge_pages", KA_PG_HUGE_PAGES, 1},
	{"huge_pages_status", KA_PG_HUGE_PAGES_STATUS, 1},	/* 17 */
	{"huge_page_size", KA_PG_HUGE_PAGE_SIZE, 1024},
	{"shared_memory_size_in_huge_pages", KA_PG_SHARED_MEMORY_HUGE_PAGES, 1},	/* -1: no huge pages */
	{"shared_memory_size", KA_PG_SHARED_MEMORY, 1024 * 1024},
	{"shared_buffers", KA_PG_SHARED_BUFFERS, BLCKSZ},
	{"shared_memory_type", KA_PG_SHARED_MEMORY_TYPE, 1},
	{"max_connections", KA_PG_MAX_CONNECTIONS, 1},
	{"checkpoint_timeout", KA_PG_CHECKPOINT_TIMEOUT, 1},
	{"max_wal_size", KA_PG_MAX_WAL_SIZE, 1024 * 1024},
	{"checkpoint_completion_target", KA_PG_COMPLETION_TARGET, 1},
	{"checkpoint_flush_after", KA_PG_FLUSH_AFTER, BLCKSZ},
	{"wal_init_zero", KA_PG_WAL_INIT_ZERO, 1},
	{"wal_recycle", KA_PG_WAL_RECYCLE, 1},
	{"wal_segment_size", KA_PG_WAL_SEGMENT, 1},
	{"log_checkpoints", KA_PG_LOG_CHECKPOINTS, 1},
	{"io_method", KA_PG_IO_METHOD, 1},	/* 18 */
};

/* Settings that only a provider's build defines: evidence of a managed service. */
static const struct
{
	const char *setting;
	const char *provider;
}			managed_marks[] = {
	{"rds.extensions", "rds"},
	{"rds.superuser_variables", "rds"},
	{"cloudsql.supported_extensions", "cloudsql"},
	{"cloudsql.logical_decoding", "cloudsql"},
	{"alloydb.supported_extensions", "alloydb"},
	{"azure.extensions", "azure"},
	{"azure.accepted_password_auth_method", "azure"},
};

static void
set_from_setting(KaFacts *facts, const SettingFact *row)
{
	const char *value = GetConfigOption(row->setting, true, false);

	if (value == NULL)
		return;

	switch (ka_fact_info[row->fact].type)
	{
		case KA_INT:
			ka_set_int(facts, row->fact, strtoll(value, NULL, 10) * row->scale);
			break;
		case KA_REAL:
			ka_set_real(facts, row->fact, strtod(value, NULL) * row->scale);
			break;
		case KA_BOOL:
			ka_set_bool(facts, row->fact, strcmp(value, "on") == 0);
			break;
		case KA_TEXT:
		case KA_ENUM:
			ka_set_text(facts, row->fact, value);
			break;
	}
}

/*
 * The mapping that holds the buffer pool: its length is the exact size of
 * shared memory (the setting is rounded up to a megabyte), and its kind tells
 * before 17 whether the server got huge pages.
 */
static void
set_mapping_facts(KaFacts *facts, const KaSource *source)
{
	KaMapping	mapping;

	if (!ka_find_mapping(source, (uintptr_t) BufferBlocks, &mapping) || mapping.bytes == KA_UNKNOWN)
		return;

	ka_set_int(facts, KA_PG_SHARED_MEMORY, mapping.bytes);
	if (ka_known(facts, KA_PG_HUGE_PAGES_STATUS) && !ka_is(facts, KA_PG_HUGE_PAGES_STATUS, "unknown"))
		ka_set_text(facts, KA_PG_HUGE_PAGES_STATUS_SOURCE, "guc");
	else
	{
		ka_set_text(facts, KA_PG_HUGE_PAGES_STATUS, mapping.huge ? "on" : "off");
		ka_set_text(facts, KA_PG_HUGE_PAGES_STATUS_SOURCE, "mapping");
	}
}

static void
collect_postgres(KaFacts *facts, const KaSource *source)
{
	struct rlimit memlock;

	for (size_t i = 0; i < lengthof(setting_facts); i++)
		set_from_setting(facts, &setting_facts[i]);
	for (size_t i = 0; i < lengthof(managed_marks); i++)
		if (GetConfigOption(managed_marks[i].setting, true, false) != NULL)
			ka_set_text(facts, KA_PG_MANAGED, managed_marks[i].provider);

	set_mapping_facts(facts, source);
	ka_set_int(facts, KA_PG_BACKENDS, CountDBConnections(InvalidOid));
	ka_set_bool(facts, KA_PG_IN_RECOVERY, RecoveryInProgress());

	/* inherited from the postmaster */
	if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 && memlock.rlim_cur != RLIM_INFINITY)
		ka_set_int(facts, KA_PG_MEMLOCK_LIMIT, (int64) Min(memlock.rlim_cur, (rlim_t) PG_INT64_MAX));
}

/*
 * The free blocks give a lower bound of what a pool could have; the helper, who
 * may read /proc/pagetypeinfo, knows what compaction could add.  Without it, or
 * when it is slow, the bound stays.
 */
static void
ask_helper(KaFacts *facts)
{
	int64		size_bytes = huge_page_size > 0 ? (int64) huge_page_size * 1024 : ka_int(facts, KA_HP_DEFAULT_SIZE);
	KaPool	   *pool = size_bytes > 0 ? ka_pool(facts, size_bytes) : NULL;
	int64		grantable;

	if (pool && ka_helper_grantable(size_bytes, size_bytes == ka_int(facts, KA_HP_DEFAULT_SIZE), &grantable))
		pool->grantable = grantable;
}

KaFacts *
ka_gather_facts(KaArena *arena)
{
	return ka_gather_facts_since(arena, DT_NOBEGIN);
}

KaFacts *
ka_gather_facts_since(KaArena *arena, TimestampTz not_before)
{
	KaSource	source = {.root = ka_machine_root,.data_directory = DataDir};
	KaFacts    *facts = palloc(sizeof(KaFacts));

	ka_palloc_arena(arena);
	ka_facts_init(facts, arena);
	collect_postgres(facts, &source);
	if (!ka_collect(facts, &source))
		arena->failed = true;
	ask_helper(facts);
	ka_collect_window(facts, not_before);
	ka_arena_check(arena);
	return facts;
}

static void
check_for_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

void
ka_gather_advice(const KaFacts *facts, KaAdviceList *list)
{
	*list = (KaAdviceList) {.arena = facts->arena,.interrupt = check_for_interrupts};
	if (!ka_advise(facts, list))
		facts->arena->failed = true;
	ka_arena_check(facts->arena);
}
