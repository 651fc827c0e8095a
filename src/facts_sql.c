/*
 * facts_sql.c: facts() and advise(), the core's two functions in SQL.
 *
 * facts() asks the kernel's files (core/collect.h), the server's own settings
 * and mapping, and the sampler's ring where the library was preloaded.  It
 * reads with the rights of the server and writes nothing.
 *
 * advise() sees its argument only, never this machine: a fact file from
 * anywhere gives the same rows everywhere.
 */
#include "postgres.h"

#include <sys/resource.h>

#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "advice.h"
#include "arena.h"
#include "collect.h"
#include "compat.h"
#include "facts.h"
#include "jsonb_sink.h"
#include "window.h"

PG_FUNCTION_INFO_V1(ka_facts);
PG_FUNCTION_INFO_V1(ka_advise_sql);

#define ADVICE_COLS 10

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
 * facts() returns jsonb: what is known now.  No arguments; raises nothing but
 * out of memory.
 */
Datum
ka_facts(PG_FUNCTION_ARGS)
{
	KaArena		arena;
	KaFacts    *facts = palloc(sizeof(KaFacts));
	KaSource	source = {.root = "",.data_directory = DataDir};
	KaJsonSink	sink;
	KaJsonbBuilder *builder;

	(void) fcinfo;
	ka_palloc_arena(&arena);
	ka_facts_init(facts, &arena);
	collect_postgres(facts, &source);
	if (!ka_collect(facts, &source))
		arena.failed = true;
	ka_collect_window(facts);
	ka_arena_check(&arena);

	builder = ka_jsonb_builder(&sink);
	ka_facts_encode(facts, &sink);
	ka_arena_check(&arena);
	PG_RETURN_JSONB_P(ka_jsonb_result(builder));
}

/* Facts from a document of any machine; raises 22023 or 22P02 with the path of a bad key. */
static void
facts_from_jsonb(KaFacts *facts, Jsonb *document)
{
	KaJsonSink	sink;
	KaDecoder  *decoder = ka_decoder_new(facts, &sink);
	KaDecodeError error;

	ka_arena_check(facts->arena);
	ka_jsonb_walk(document, &sink);
	if (ka_decoder_finish(decoder, &error))
		return;

	ka_arena_check(facts->arena);
	ereport(ERROR,
			(errcode(error.syntax ? ERRCODE_INVALID_TEXT_REPRESENTATION : ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid fact \"%s\": %s", error.path, error.problem),
			 errhint("Compare with the output of kernel_advisor.facts(); a fact that is not known is left out.")));
}

static Datum
text_or_null(const char *text, bool *isnull)
{
	*isnull = (text == NULL);
	return text ? CStringGetTextDatum(text) : (Datum) 0;
}

static Datum
evidence_datum(const KaAdvice *row, const KaFacts *facts)
{
	KaJsonSink	sink;
	KaJsonbBuilder *builder = ka_jsonb_builder(&sink);

	ka_evidence_encode(row, facts, &sink);
	ka_arena_check(facts->arena);
	return JsonbPGetDatum(ka_jsonb_result(builder));
}

/*
 * advise(facts jsonb) returns the rows of advice, most severe first.  Errors:
 * 22023 for an illegal value, 22P02 for a number that is none; both name the
 * path of the key.
 */
Datum
ka_advise_sql(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	KaArena		arena;
	KaFacts    *facts = palloc(sizeof(KaFacts));
	KaAdviceList list = {.arena = &arena};

	ka_palloc_arena(&arena);
	ka_facts_init(facts, &arena);
	facts_from_jsonb(facts, PG_GETARG_JSONB_P(0));
	if (!ka_advise(facts, &list))
		arena.failed = true;
	ka_arena_check(&arena);

	InitMaterializedSRF(fcinfo, 0);
	for (size_t i = 0; i < list.count; i++)
	{
		const KaAdvice *row = &list.rows[i];
		Datum		values[ADVICE_COLS];
		bool		nulls[ADVICE_COLS] = {0};
		int			n = 0;

#define TEXT_COLUMN(text) (values[n] = text_or_null((text), &nulls[n]), n++)
		TEXT_COLUMN(row->rule);
		TEXT_COLUMN(ka_severity_name(row->severity));
		TEXT_COLUMN(row->subject);
		TEXT_COLUMN(row->current);
		TEXT_COLUMN(row->recommended);
		TEXT_COLUMN(row->reason);
		values[n++] = evidence_datum(row, facts);
		TEXT_COLUMN(ka_confidence_name(row->confidence));
		TEXT_COLUMN(ka_activation_name(row->activation));
		TEXT_COLUMN(row->command);
#undef TEXT_COLUMN
		Assert(n == ADVICE_COLS);

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
