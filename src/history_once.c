/*
 * history_once.c: the trigger that keeps rows of the history tables from being
 * doubled.
 *
 * The reporter writes what is in the ring and not yet in the table; a dump that
 * is restored may bring the same rows.  There is no unique index: it would make
 * such a restore fail, and a subscriber that merges several servers stop.
 * Instead the trigger looks whether a row with the same key (the columns that
 * are its arguments) is there, and leaves the new one out.
 *
 * Lock: two writers that do not see each other's rows yet would both insert.
 * They take turns by an exclusive lock on the table with sub-object number 1,
 * which nothing else uses: readers, vacuum and other sessions' LOCK TABLE are
 * not affected.  It is held up to the end of the transaction.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "history_tables.h"

PG_FUNCTION_INFO_V1(ka_history_once);

/* What is looked for in one table; planned once in a session. */
typedef struct OnceQuery
{
	Oid			relid;			/* InvalidOid: none yet */
	int			nkeys;
	int			attnum[KA_HISTORY_KEYS];
	Oid			type[KA_HISTORY_KEYS];
	SPIPlanPtr	plan;
} OnceQuery;

static OnceQuery queries[2];	/* the tables of this database; the oldest makes room */

void
ka_history_lock(Oid relid)
{
	LockDatabaseObject(RelationRelationId, relid, 1, ExclusiveLock);
}

static bool
query_fits(const OnceQuery *query, Relation relation, const Trigger *trigger)
{
	if (query->relid != RelationGetRelid(relation) || query->nkeys != trigger->tgnargs)
		return false;
	for (int i = 0; i < query->nkeys; i++)
	{
		if (SPI_fnumber(RelationGetDescr(relation), trigger->tgargs[i]) != query->attnum[i] ||
			SPI_gettypeid(RelationGetDescr(relation), query->attnum[i]) != query->type[i])
			return false;
	}
	return true;
}

/*
 * The names of the table and of its operators are written out: the search_path
 * is that of whoever inserts.
 */
static void
query_prepare(OnceQuery *query, Relation relation, const Trigger *trigger)
{
	TupleDesc	tupdesc = RelationGetDescr(relation);
	StringInfoData sql;

	if (query->plan != NULL)
		SPI_freeplan(query->plan);
	memset(query, 0, sizeof(*query));

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT 1 FROM %s WHERE ",
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(relation)),
												RelationGetRelationName(relation)));
	for (int i = 0; i < trigger->tgnargs; i++)
	{
		query->attnum[i] = SPI_fnumber(tupdesc, trigger->tgargs[i]);
		if (query->attnum[i] <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("table \"%s\" has no column \"%s\"",
							RelationGetRelationName(relation), trigger->tgargs[i])));
		query->type[i] = SPI_gettypeid(tupdesc, query->attnum[i]);
		appendStringInfo(&sql, "%s%s OPERATOR(pg_catalog.=) $%d",
						 i > 0 ? " AND " : "", quote_identifier(trigger->tgargs[i]), i + 1);
	}
	appendStringInfoString(&sql, " LIMIT 1");

	query->nkeys = trigger->tgnargs;
	query->plan = SPI_prepare(sql.data, query->nkeys, query->type);
	if (query->plan == NULL)
		elog(ERROR, "could not plan \"%s\": %s", sql.data, SPI_result_code_string(SPI_result));
	SPI_keepplan(query->plan);
	query->relid = RelationGetRelid(relation);
}

static OnceQuery *
find_query(Relation relation, const Trigger *trigger)
{
	static int	next = 0;
	OnceQuery  *query;

	for (int i = 0; i < (int) lengthof(queries); i++)
	{
		if (query_fits(&queries[i], relation, trigger))
			return &queries[i];
	}
	query = &queries[next];
	next = (next + 1) % (int) lengthof(queries);
	query_prepare(query, relation, trigger);
	return query;
}

/*
 * history_once(key column, ...): BEFORE INSERT FOR EACH ROW.  Raises 39P01 when
 * called in any other way.
 */
Datum
ka_history_once(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	OnceQuery  *query;
	Datum		values[KA_HISTORY_KEYS];
	char		nulls[KA_HISTORY_KEYS];
	HeapTuple	tuple;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(data->tg_event) ||
		!TRIGGER_FIRED_BY_INSERT(data->tg_event) || !TRIGGER_FIRED_FOR_ROW(data->tg_event) ||
		data->tg_trigger->tgnargs < 1 || data->tg_trigger->tgnargs > KA_HISTORY_KEYS)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("history_once() must be called by a trigger BEFORE INSERT FOR EACH ROW, with one to %d columns",
						KA_HISTORY_KEYS)));

	tuple = data->tg_trigtuple;
	ka_history_lock(RelationGetRelid(data->tg_relation));
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	query = find_query(data->tg_relation, data->tg_trigger);
	for (int i = 0; i < query->nkeys; i++)
	{
		bool		isnull;

		values[i] = heap_getattr(tuple, query->attnum[i], RelationGetDescr(data->tg_relation), &isnull);
		nulls[i] = isnull ? 'n' : ' ';
	}
	if (SPI_execute_plan(query->plan, values, nulls, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "history_once() could not look for the row");
	if (SPI_processed > 0)
		tuple = NULL;
	SPI_finish();
	return PointerGetDatum(tuple);
}
