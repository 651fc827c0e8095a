/*
 * history_tables.c: what the reporter does with its two tables.
 *
 * A checkpoint is known by its start and its number: numbers begin again when
 * the history file is lost, and a standby that is promoted, or a server that
 * was restored from a dump of another one, has numbers of its own.
 *
 * Who runs the statements: kernel_advisor.role or, when that is empty, the
 * owner of the table, never the worker's own superuser.  So a trigger, a
 * default or a row security policy that somebody hung on a table can do no more
 * than that role.  The search_path is pinned by the worker (reporter.c).
 *
 * The columns of checkpoint_history that are stored are those that the function
 * checkpoints() has as well, whatever an update of the extension has added.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "arena.h"
#include "changes.h"
#include "guc.h"
#include "history_tables.h"
#include "jsonb_sink.h"

#define SCHEMA "kernel_advisor"

static const struct
{
	const char *name;
	const char *time;			/* the column that ages */
	const char *keep;			/* what is kept however old; of the row "h" */
}			tables[KA_NHISTORY_TABLES] = {
	[KA_CHECKPOINT_HISTORY] = {"checkpoint_history", "started_at", "false"},
	[KA_ADVICE_HISTORY] = {"advice_history", "at",
	"h.event <> 'disappeared' AND NOT EXISTS (SELECT FROM " SCHEMA ".advice_history AS later "
	"WHERE later.rule = h.rule AND later.subject = h.subject AND later.at > h.at)"},
};

/*
 * ----------------------------------------------------------------
 * Where, and as whom
 * ----------------------------------------------------------------
 */

static Oid
owner_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

bool
ka_history_find(KaHistory *history, const char **why, const char **hint)
{
	Oid			extension = get_extension_oid("pg_kernel_advisor", true);
	Oid			schema = get_namespace_oid(SCHEMA, true);
	Oid			role = InvalidOid;

	if (!OidIsValid(extension))
	{
		*why = psprintf("extension pg_kernel_advisor does not exist in database \"%s\"", ka_database);
		*hint = "Create the extension there, or set kernel_advisor.database.";
		return false;
	}
	if (ka_reporter_role[0] && !OidIsValid(role = get_role_oid(ka_reporter_role, true)))
	{
		*why = psprintf("role \"%s\" does not exist", ka_reporter_role);
		*hint = "Create the role, or set kernel_advisor.role.";
		return false;
	}
	for (int i = 0; i < KA_NHISTORY_TABLES; i++)
	{
		Oid			relid = OidIsValid(schema) ? get_relname_relid(tables[i].name, schema) : InvalidOid;

		/* Nothing but the extension's own tables: anybody may make a schema of that name before there is one. */
		if (!OidIsValid(relid) || getExtensionOfObject(RelationRelationId, relid) != extension)
		{
			*why = psprintf("extension pg_kernel_advisor has no table \"%s\"", tables[i].name);
			*hint = "Drop the extension and create it again.";
			return false;
		}
		history->relid[i] = relid;
		history->role[i] = OidIsValid(role) ? role : owner_of(relid);
	}
	return true;
}

typedef struct Identity
{
	Oid			user;
	int			context;
} Identity;

/* An error puts the identity back as well: the transaction ends. */
static void
become(const KaHistory *history, KaHistoryTable table, Identity *before)
{
	GetUserIdAndSecContext(&before->user, &before->context);
	SetUserIdAndSecContext(history->role[table],
						   before->context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

static void
become_again(const Identity *before)
{
	SPI_finish();
	SetUserIdAndSecContext(before->user, before->context);
}

static void
run(const char *sql, int nargs, Oid *types, Datum *values, const char *nulls, int expected)
{
	int			result = SPI_execute_with_args(sql, nargs, types, values, nulls, false, 0);

	if (result != expected)
		elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(result));
}

/* A value of the last result; copied to the context that is current outside of SPI. */
static char *
value_text(MemoryContext context, uint64 row, int column)
{
	char	   *text = SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);

	return text ? MemoryContextStrdup(context, text) : NULL;
}

static int64
value_int64(int column, int64 otherwise)
{
	bool		isnull;
	Datum		value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &isnull);

	return isnull ? otherwise : DatumGetInt64(value);
}

/*
 * ----------------------------------------------------------------
 * Checkpoints
 * ----------------------------------------------------------------
 */

/* "c.checkpoint_id, c.kind ...": columns that both have, with a prefix. */
static char *
common_columns(const KaHistory *history)
{
	StringInfoData sql;
	Oid			types[] = {OIDOID};
	Datum		values[] = {ObjectIdGetDatum(history->relid[KA_CHECKPOINT_HISTORY])};

	initStringInfo(&sql);
	appendStringInfoString(&sql,
						   "SELECT string_agg(quote_ident(h.attname), ', ' ORDER BY h.attnum), "
						   "string_agg('c.' || quote_ident(h.attname), ', ' ORDER BY h.attnum) "
						   "FROM pg_attribute AS h JOIN pg_attribute AS c ON c.attname = h.attname AND c.atttypid = h.atttypid "
						   "WHERE h.attrelid = $1 AND h.attnum > 0 AND NOT h.attisdropped "
						   "AND c.attrelid = (SELECT oid FROM pg_class WHERE relname = 'checkpoints' AND relnamespace = "
						   "(SELECT relnamespace FROM pg_class WHERE oid = $1)) AND c.attnum > 0");
	run(sql.data, 1, types, values, NULL, SPI_OK_SELECT);
	resetStringInfo(&sql);
	appendStringInfo(&sql,
					 "INSERT INTO " SCHEMA ".checkpoint_history (%s, recorded_at) "
					 "SELECT %s, clock_timestamp() FROM " SCHEMA ".checkpoints() AS c "
					 "WHERE c.checkpoint_id = ANY ($1) AND c.started_at >= $2 "
					 "AND NOT EXISTS (SELECT FROM " SCHEMA ".checkpoint_history AS h "
					 "WHERE h.started_at = c.started_at AND h.checkpoint_id = c.checkpoint_id) "
					 "ORDER BY c.started_at "
					 "RETURNING json_build_object('kind', 'checkpoint', 'checkpoint_id', checkpoint_id, "
					 "'checkpoint_kind', kind, 'restartpoint', restartpoint, 'started_at', started_at, "
					 "'total_ms', total_ms, 'buffers_written', buffers_written, 'compact_stall', compact_stall, "
					 "'tps_before', tps_before, 'tps_during', tps_during, 'dip_pct', dip_pct)::text",
					 SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1),
					 SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2));
	return sql.data;
}

int64
ka_history_store(const KaHistory *history, const int64 *ids, int n,
				 TimestampTz since, List **payloads)
{
	MemoryContext context = CurrentMemoryContext;
	Identity	before;
	Datum	   *elements = palloc(Max(n, 1) * sizeof(Datum));
	Oid			types[] = {INT8ARRAYOID, TIMESTAMPTZOID};
	Datum		values[2];
	int64		stored;

	for (int i = 0; i < n; i++)
		elements[i] = Int64GetDatum(ids[i]);
	values[0] = PointerGetDatum(construct_array(elements, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	values[1] = TimestampTzGetDatum(since);

	ka_history_lock(history->relid[KA_CHECKPOINT_HISTORY]);
	become(history, KA_CHECKPOINT_HISTORY, &before);
	run(common_columns(history), 2, types, values, NULL, SPI_OK_INSERT_RETURNING);
	stored = (int64) SPI_processed;
	for (int64 i = Max(0, stored - KA_NOTIFIED); i < stored; i++)
	{
		char	   *payload = value_text(context, (uint64) i, 1);
		MemoryContext spi_context = MemoryContextSwitchTo(context);

		*payloads = lappend(*payloads, payload);
		MemoryContextSwitchTo(spi_context);
	}
	become_again(&before);
	return stored;
}

/*
 * ----------------------------------------------------------------
 * Advice
 * ----------------------------------------------------------------
 */

List *
ka_history_standing(const KaHistory *history)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *standing = NIL;
	Identity	before;

	become(history, KA_ADVICE_HISTORY, &before);
	run("SELECT rule, subject, severity, recommended FROM ("
		"SELECT DISTINCT ON (rule, subject) rule, subject, severity, recommended, event "
		"FROM " SCHEMA ".advice_history ORDER BY rule, subject, at DESC) AS newest "
		"WHERE event <> 'disappeared'", 0, NULL, NULL, NULL, SPI_OK_SELECT);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi_context = MemoryContextSwitchTo(context);
		KaStored   *stored = palloc(sizeof(KaStored));

		stored->rule = value_text(context, i, 1);
		stored->subject = value_text(context, i, 2);
		stored->severity = value_text(context, i, 3);
		stored->recommended = value_text(context, i, 4);
		standing = lappend(standing, stored);
		MemoryContextSwitchTo(spi_context);
	}
	become_again(&before);
	return standing;
}

static Datum
evidence_of(const KaAdvice *row, const KaFacts *facts)
{
	KaJsonSink	sink;
	KaJsonbBuilder *builder = ka_jsonb_builder(&sink);

	ka_evidence_encode(row, facts, &sink);
	ka_arena_check(facts->arena);
	return JsonbPGetDatum(ka_jsonb_result(builder));
}

void
ka_history_add_event(const KaHistory *history, TimestampTz at, KaAdviceEvent event,
					 const KaAdvice *row, const KaFacts *facts)
{
	const char *texts[] = {
		ka_advice_event_name[event], row->rule, ka_severity_name(row->severity), row->subject,
		row->current, row->recommended, row->reason, ka_confidence_name(row->confidence),
		ka_activation_name(row->activation), row->command
	};
	Oid			types[2 + lengthof(texts)] = {TIMESTAMPTZOID, JSONBOID};
	Datum		values[2 + lengthof(texts)] = {0};
	char		nulls[2 + lengthof(texts)];
	Identity	before;

	ka_history_lock(history->relid[KA_ADVICE_HISTORY]);
	become(history, KA_ADVICE_HISTORY, &before);
	values[0] = TimestampTzGetDatum(at);
	values[1] = evidence_of(row, facts);
	nulls[0] = nulls[1] = ' ';
	for (int i = 0; i < (int) lengthof(texts); i++)
	{
		types[2 + i] = TEXTOID;
		nulls[2 + i] = texts[i] ? ' ' : 'n';
		if (texts[i])
			values[2 + i] = ka_server_text(texts[i]);
	}
	run("INSERT INTO " SCHEMA ".advice_history (at, evidence, event, rule, severity, subject, "
		"current, recommended, reason, confidence, activation, command) "
		"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
		lengthof(types), types, values, nulls, SPI_OK_INSERT);
	become_again(&before);
}

void
ka_history_add_end(const KaHistory *history, TimestampTz at, const KaStored *stored)
{
	Oid			types[] = {TIMESTAMPTZOID, TEXTOID, TEXTOID};
	Datum		values[] = {
		TimestampTzGetDatum(at), CStringGetTextDatum(stored->rule), CStringGetTextDatum(stored->subject)
	};
	Identity	before;

	ka_history_lock(history->relid[KA_ADVICE_HISTORY]);
	become(history, KA_ADVICE_HISTORY, &before);
	run("INSERT INTO " SCHEMA ".advice_history (at, event, rule, severity, subject, "
		"current, recommended, reason, evidence, confidence, activation, command) "
		"SELECT $1, 'disappeared', rule, severity, subject, current, recommended, reason, evidence, "
		"confidence, activation, command FROM " SCHEMA ".advice_history "
		"WHERE rule = $2 AND subject = $3 ORDER BY at DESC LIMIT 1",
		lengthof(types), types, values, NULL, SPI_OK_INSERT);
	become_again(&before);
}

/*
 * ----------------------------------------------------------------
 * Pruning
 * ----------------------------------------------------------------
 */

/*
 * Row locks only, on rows that nobody else writes: readers and vacuum go on.
 * "from" saves the index entries of rows that were deleted before and that
 * somebody's old snapshot may still need.
 */
int64
ka_history_prune(const KaHistory *history, KaHistoryTable table,
				 TimestampTz before, TimestampTz *from)
{
	const char *name = tables[table].name;
	const char *time = tables[table].time;
	Oid			types[] = {TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID};
	Datum		values[] = {
		TimestampTzGetDatum(*from), TimestampTzGetDatum(before), Int64GetDatum(KA_PRUNE_ROWS)
	};
	Identity	identity;
	int64		pruned;

	become(history, table, &identity);
	run(psprintf("WITH gone AS (DELETE FROM " SCHEMA ".%s WHERE ctid = ANY (ARRAY("
				 "SELECT h.ctid FROM " SCHEMA ".%s AS h WHERE h.%s >= $1 AND h.%s < $2 AND NOT (%s) "
				 "ORDER BY h.%s LIMIT $3)) RETURNING %s AS aged) "
				 "SELECT count(*), max(aged) FROM gone",
				 name, name, time, time, tables[table].keep, time, time),
		lengthof(types), types, values, NULL, SPI_OK_SELECT);
	pruned = value_int64(1, 0);
	*from = value_int64(2, *from);
	become_again(&identity);
	return pruned;
}
