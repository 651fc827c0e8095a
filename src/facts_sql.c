/*
 * facts_sql.c: facts() and advise(), the core's two functions in SQL.
 *
 * facts() is what gather.c finds on this server.
 *
 * advise() sees its argument only, never this machine: a fact file from
 * anywhere gives the same rows everywhere.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "advice.h"
#include "arena.h"
#include "facts.h"
#include "gather.h"
#include "jsonb_sink.h"

PG_FUNCTION_INFO_V1(ka_facts);
PG_FUNCTION_INFO_V1(ka_advise_sql);

#define ADVICE_COLS 10

/*
 * facts() returns jsonb: what is known now.  No arguments; raises nothing but
 * out of memory.
 */
Datum
ka_facts(PG_FUNCTION_ARGS)
{
	KaArena		arena;
	KaFacts    *facts = ka_gather_facts(&arena);
	KaJsonSink	sink;
	KaJsonbBuilder *builder;

	(void) fcinfo;
	builder = ka_jsonb_builder(&sink);
	ka_facts_encode(facts, &sink);
	ka_arena_check(&arena);
	PG_RETURN_JSONB_P(ka_jsonb_result(builder));
}

/* Of a text in the server's encoding. */
static size_t
clip_text(const char *text, size_t limit)
{
	return pg_mbcliplen(text, strlen(text), limit);
}

/* Facts from a document of any machine; raises 22023 or 22P02 with the path of a bad key. */
static void
facts_from_jsonb(KaFacts *facts, Jsonb *document)
{
	KaJsonSink	sink;
	KaDecoder  *decoder = ka_decoder_new(facts, &sink);
	KaDecodeError error;

	ka_arena_check(facts->arena);
	ka_decoder_clip(decoder, clip_text);
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
	KaAdviceList list;

	ka_palloc_arena(&arena);
	ka_facts_init(facts, &arena);
	facts_from_jsonb(facts, PG_GETARG_JSONB_P(0));
	ka_gather_advice(facts, &list);

	InitMaterializedSRF(fcinfo, 0);
	for (size_t i = 0; i < list.count; i++)
	{
		const KaAdvice *row = &list.rows[i];
		Datum		values[ADVICE_COLS];
		bool		nulls[ADVICE_COLS] = {0};
		int			n = 0;

		CHECK_FOR_INTERRUPTS();
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
