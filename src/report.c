/*
 * report.c: report(format, from, to): what happened, what to change, what it
 * brought, as one text.
 *
 * There is one model, a JSON object with the sections of the table below, each
 * made by one query; the samples come straight from the ring (report_series.c).
 * The formats are renderings of it: json is the model, text is made from it by
 * the queries of a second table, html is a page that holds it (report_html.c).
 *
 * The function is declared with a search_path of its own, and runs with the
 * rights of its caller: it shows nothing that the views would not.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "report.h"
#include "ring.h"

PG_FUNCTION_INFO_V1(ka_report);

/* A row with more of it says more in less time than a page of ten thousand. */
#define MAX_ROWS "2000"

/*
 * Sections: $1 and $2 are the range, $3 is what facts() said: the facts and the
 * advice of a report belong together.  Where the query needs the library
 * preloaded, there is another one for a server that did not.
 */
typedef struct Section
{
	const char *name;
	const char *query;
	const char *without_ring;
} Section;

#define AGGREGATE "SELECT coalesce(jsonb_agg(item), '[]') FROM "
#define ROWS(from) AGGREGATE "(SELECT to_jsonb(r) AS item FROM (" from ") AS r) AS rows"
#define HISTORY "SELECT started_at, to_jsonb(h) - 'recorded_at' AS item FROM kernel_advisor.checkpoint_history AS h" \
	" WHERE started_at BETWEEN $1 AND $2"
#define NEWEST " ORDER BY started_at DESC LIMIT " MAX_ROWS

static const Section sections[] = {
	{"server",
		"SELECT jsonb_build_object("
		"'cluster_name', current_setting('cluster_name'), 'database', current_database(),"
		"'version', current_setting('server_version'), 'version_num', current_setting('server_version_num')::int,"
		"'started_at', pg_postmaster_start_time(), 'in_recovery', pg_is_in_recovery(),"
		"'extension', (SELECT extversion FROM pg_extension WHERE extname = 'pg_kernel_advisor'))",
	NULL},
	{"facts", "SELECT $3", NULL},
	{"advice", ROWS("SELECT * FROM kernel_advisor.advise($3)"), NULL},
	{"status", ROWS("SELECT * FROM kernel_advisor.status"), NULL},
	{"settings",
		ROWS("SELECT name, current_setting(name) AS value, source, pending_restart FROM pg_settings"
			 " WHERE name LIKE 'kernel\\_advisor.%' OR name IN ('huge_pages', 'huge_page_size', 'huge_pages_status',"
			 "  'shared_buffers', 'shared_memory_type', 'max_connections', 'checkpoint_timeout', 'max_wal_size',"
			 "  'checkpoint_completion_target', 'checkpoint_flush_after', 'wal_init_zero', 'wal_recycle',"
			 "  'log_checkpoints', 'io_method', 'shared_preload_libraries', 'cluster_name') ORDER BY name"),
	NULL},
	{"checkpoints",
		"WITH ring AS (SELECT * FROM kernel_advisor.checkpoints WHERE started_at BETWEEN $1 AND $2) "
		AGGREGATE "(SELECT item FROM (SELECT started_at, to_jsonb(ring) AS item FROM ring UNION ALL " HISTORY
		" AND NOT EXISTS (SELECT FROM ring WHERE (ring.started_at, ring.checkpoint_id) = (h.started_at, h.checkpoint_id)))"
		" AS every" NEWEST ") AS rows",
	AGGREGATE "(" HISTORY NEWEST ") AS rows"},
	{"stalls", ROWS("SELECT * FROM kernel_advisor.stalls"), "SELECT jsonb '[]'"},
	{"changes", ROWS("SELECT * FROM kernel_advisor.changes WHERE at <= $2 ORDER BY at DESC LIMIT " MAX_ROWS), "SELECT jsonb '[]'"},
	{"trials",
		ROWS("SELECT t.*, (SELECT coalesce(jsonb_agg(to_jsonb(r) - 'trial_id'), '[]') FROM kernel_advisor.trial_results AS r"
			 "  WHERE r.trial_id = t.trial_id) AS results FROM kernel_advisor.trials AS t WHERE t.started_at <= $2"
			 " ORDER BY t.trial_id DESC LIMIT 100"),
	"SELECT jsonb '[]'"},
	{"advice_history",
		ROWS("SELECT at, event, rule, severity, subject, current, recommended, reason FROM kernel_advisor.advice_history"
			 " WHERE at BETWEEN $1 AND $2 ORDER BY at DESC LIMIT " MAX_ROWS),
	NULL},
};

/* The text, line by line: $1 is the model.  A query without lines leaves its title out. */
static const struct
{
	const char *title;
	const char *query;
}			paragraphs[] = {
	{NULL,
		"SELECT format('pg_kernel_advisor %s: %sPostgreSQL %s on Linux %s, %s GiB of RAM', s ->> 'extension',"
		"  nullif(s ->> 'cluster_name', '') || ', ', s ->> 'version', $1 #>> '{facts,kernel,release}',"
		"  round(($1 #>> '{facts,memory,total_bytes}')::numeric / 1073741824, 1))"
		" || format(E'\\n%s to %s', $1 #>> '{range,from}', $1 #>> '{range,to}') FROM (SELECT $1 -> 'server' AS s) AS _"},
	{"ADVICE",
		"SELECT format('%-8s  %s  %s', upper(severity), rule, subject)"
		" || CASE WHEN recommended IS NOT NULL THEN format(': %s -> %s', coalesce(current, 'not known'), recommended)"
		"  WHEN current IS NOT NULL THEN ': ' || current ELSE '' END"
		" || regexp_replace(reason, '(.{1,100})( |$)', E'\\n          \\\\1', 'g')"
		" || coalesce(E'\\n          to do: ' || replace(command, E'\\n', E'\\n                 '), '')"
		" FROM jsonb_to_recordset($1 -> 'advice') AS a(rule text, severity text, subject text, current text,"
		"  recommended text, reason text, command text)"},
	{"CHECKPOINTS, newest first: total, write, sync; throughput before and during; stalls",
		"SELECT format('%s  %-9s %7s ms %7s %7s  %s  %s direct compactions, %s direct reclaims%s',"
		"  to_char(started_at, 'YYYY-MM-DD HH24:MI:SS'), CASE WHEN restartpoint THEN 'restart' ELSE coalesce(kind, '') END,"
		"  round(total_ms), round(write_ms), round(sync_ms),"
		"  CASE WHEN dip_pct IS NULL THEN lpad('', 27)"
		"   ELSE format('%6s -> %6s tps (%s %%)', round(tps_before), round(tps_during), round(-dip_pct)) END,"
		"  coalesce(compact_stall::text, '-'), coalesce(allocstall::text, '-'),"
		"  ', ' || round(direct_compact_us / 1000.0, 1) || ' ms in compaction, ' || pcp_drained_pages || ' pages drained')"
		" FROM jsonb_to_recordset($1 -> 'checkpoints') AS c(started_at timestamptz, kind text, restartpoint boolean,"
		"  total_ms float8, write_ms float8, sync_ms float8, tps_before float8, tps_during float8, dip_pct float8,"
		"  compact_stall bigint, allocstall bigint, direct_compact_us bigint, pcp_drained_pages bigint) LIMIT 20"},
	{"CHANGES, newest first",
		"SELECT format('%s  %s  %s: %s -> %s  (%s)%s', to_char(at, 'YYYY-MM-DD HH24:MI:SS'), change_id, subject,"
		"  coalesce(old, '-'), coalesce(asked, '-'), state, E'\\n          ' || detail)"
		" FROM jsonb_to_recordset($1 -> 'changes') AS c(at timestamptz, change_id bigint, subject text, old text, asked text,"
		"  state text, detail text) LIMIT 20"},
	{"TRIALS, newest first: throughput with the other value / with the old one, 95 % confidence interval",
		"SELECT format('%s  %s  %s: %s, then %s  %s of %s pairs, %s%s%s', to_char(started_at, 'YYYY-MM-DD HH24:MI:SS'), trial_id,"
		"  subject, old, value, pairs_done, pairs, state, ': ' || verdict,"
		"  format(', %s (%s to %s)', round(ratio::numeric, 3), round(ratio_low::numeric, 3), round(ratio_high::numeric, 3)))"
		" FROM jsonb_to_recordset($1 -> 'trials') AS t(started_at timestamptz, trial_id bigint, subject text, old text,"
		"  value text, pairs int, pairs_done int, state text, verdict text, ratio float8, ratio_low float8, ratio_high float8)"},
	{"ADVICE THAT CAME AND WENT, newest first",
		"SELECT format('%s  %-11s %s  %s%s', to_char(at, 'YYYY-MM-DD HH24:MI:SS'), event, rule, subject, ': ' || recommended)"
		" FROM jsonb_to_recordset($1 -> 'advice_history') AS h(at timestamptz, event text, rule text, subject text,"
		"  recommended text) LIMIT 20"},
	{"PARTS OF THE ADVISOR",
		"SELECT format('%-20s %-12s %s%s', component, state, detail, E'\\n                                  ' || hint)"
		" FROM jsonb_to_recordset($1 -> 'status') AS s(component text, state text, detail text, hint text)"},
};

/* The one value of the one row of a query, as text; NULL: no row, or null. */
static char *
query_text(const char *query, int nargs, Oid *types, Datum *values)
{
	int			status = SPI_execute_with_args(query, nargs, types, values, NULL, true, 0);

	if (status != SPI_OK_SELECT)
		elog(ERROR, "could not run a query of the report: %s", SPI_result_code_string(status));
	return SPI_processed == 0 ? NULL : SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

/* Valid up to SPI_finish(). */
static Datum
query_facts(void)
{
	bool		isnull;

	if (SPI_execute("SELECT kernel_advisor.facts()", true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not collect the facts of the report");
	return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
}

static void
put_model(StringInfo json, const KaReportRange *range)
{
	Oid			types[3] = {TIMESTAMPTZOID, TIMESTAMPTZOID, JSONBOID};
	Datum		values[3] = {TimestampTzGetDatum(range->from), TimestampTzGetDatum(range->to), query_facts()};

	appendStringInfo(json, "{\"schema\":1,\"made_at\":%s,\"range\":%s",
					 query_text("SELECT to_jsonb(now())", 0, NULL, NULL),
					 query_text("SELECT jsonb_build_object('from', $1, 'to', $2)", 2, types, values));
	for (int i = 0; i < (int) lengthof(sections); i++)
	{
		bool		ring = ka_shared_available() || sections[i].without_ring == NULL;

		appendStringInfo(json, ",\"%s\":%s", sections[i].name,
						 query_text(ring ? sections[i].query : sections[i].without_ring, lengthof(types), types, values));
		SPI_freetuptable(SPI_tuptable);
	}
	appendStringInfoString(json, ",\"series\":");
	ka_report_series(json, range);
	appendStringInfoChar(json, '}');
}

static void
put_text(StringInfo text, const char *model)
{
	Oid			types[1] = {JSONBOID};
	Datum		values[1];

	values[0] = DirectFunctionCall1(jsonb_in, CStringGetDatum(model));
	for (int i = 0; i < (int) lengthof(paragraphs); i++)
	{
		int			status = SPI_execute_with_args(paragraphs[i].query, 1, types, values, NULL, true, 0);

		if (status != SPI_OK_SELECT)
			elog(ERROR, "could not run a query of the report: %s", SPI_result_code_string(status));
		if (SPI_processed > 0 && paragraphs[i].title != NULL)
			appendStringInfo(text, "\n%s\n", paragraphs[i].title);
		for (uint64 row = 0; row < SPI_processed; row++)
			appendStringInfo(text, "%s\n", SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 1));
		SPI_freetuptable(SPI_tuptable);
	}
}

static void
put_json(StringInfo json, const char *model)
{
	appendStringInfoString(json, model);
}

static const struct
{
	const char *name;
	void		(*put) (StringInfo out, const char *model);
}			formats[] = {
	{"text", put_text},
	{"json", put_json},
	{"html", ka_report_html},
};

static int
find_format(const char *name)
{
	for (int i = 0; i < (int) lengthof(formats); i++)
	{
		if (strcmp(formats[i].name, name) == 0)
			return i;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown format of a report: \"%s\"", name),
			 errhint("It is one of text, json and html.")));
}

/* A bound that is NULL or infinite: all that there is. */
static bool
bound(FunctionCallInfo fcinfo, int arg, TimestampTz *at)
{
	if (PG_ARGISNULL(arg) || TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(arg)))
		return false;
	*at = PG_GETARG_TIMESTAMPTZ(arg);
	return true;
}

/* The oldest sample or checkpoint; without any, an hour. */
static TimestampTz
oldest(TimestampTz to)
{
	TimestampTz result = to - USECS_PER_HOUR;
	TimestampTz sample;
	bool		isnull;
	Datum		kept;

	if (ka_report_oldest_sample(&sample))
		result = sample;
	if (SPI_execute("SELECT min(started_at) FROM kernel_advisor.checkpoint_history", true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the history");
	kept = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	if (!isnull)
		result = Min(result, DatumGetTimestampTz(kept));
	return result;
}

/*
 * report(format text, "from" timestamptz, "to" timestamptz) returns text
 * Errors: 22023 for another format or a range that is empty.
 */
Datum
ka_report(PG_FUNCTION_ARGS)
{
	int			format = find_format(PG_ARGISNULL(0) ? "text" : text_to_cstring(PG_GETARG_TEXT_PP(0)));
	KaReportRange range;
	StringInfoData model;
	StringInfoData out;

	/* outlives SPI */
	initStringInfo(&out);

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (!bound(fcinfo, 2, &range.to))
		range.to = GetCurrentTimestamp();
	if (!bound(fcinfo, 1, &range.from))
		range.from = oldest(range.to);
	if (range.from >= range.to)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the time range of the report is empty"),
				 errdetail("It is from %s to %s.", pstrdup(timestamptz_to_str(range.from)), timestamptz_to_str(range.to)),
				 errhint("\"from\" must be before \"to\"; left out, it is all that there is.")));

	initStringInfo(&model);
	put_model(&model, &range);
	formats[format].put(&out, model.data);
	SPI_finish();

	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}
