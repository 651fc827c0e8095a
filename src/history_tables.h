/*
 * history_tables.h: the tables checkpoint_history and advice_history, for those
 * who write them.
 *
 * All functions but ka_history_lock run inside a transaction that the caller
 * began, and leave by ereport.  Statements run as the role that the settings
 * name, or as the owner of the table, in a security-restricted operation.
 */
#ifndef KA_HISTORY_TABLES_H
#define KA_HISTORY_TABLES_H

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"

#include "standing.h"

#define KA_HISTORY_KEYS 3		/* columns that tell one row from another, at most */
#define KA_PRUNE_ROWS	10000	/* in one transaction */

typedef enum KaHistoryTable
{
	KA_CHECKPOINT_HISTORY,
	KA_ADVICE_HISTORY,
	KA_NHISTORY_TABLES
} KaHistoryTable;

typedef struct KaHistory
{
	Oid			relid[KA_NHISTORY_TABLES];
	Oid			role[KA_NHISTORY_TABLES];	/* who reads and writes it */
} KaHistory;

/* What stands according to advice_history: its newest row of a rule and subject. */
typedef struct KaStored
{
	char	   *rule;
	char	   *subject;
	char	   *severity;
	char	   *recommended;	/* NULL: none */
} KaStored;

/* Writers of one of the tables take turns; up to the end of the transaction. */
extern void ka_history_lock(Oid relid);

/*
 * Finds the tables of this database and who may write them.  False: something
 * is missing; "why" and "hint" (palloc'd) tell what.
 */
extern bool ka_history_find(KaHistory *history, const char **why, const char **hint);

/*
 * Stores those of the "n" checkpoints with the given numbers, from the ring,
 * that began at "since" or later and are not stored yet.  Returns how many;
 * adds a JSON text for each of the newest KA_NOTIFIED to "payloads", oldest first.
 */
#define KA_NOTIFIED 10
extern int64 ka_history_store(const KaHistory *history, const int64 *ids, int n,
							  TimestampTz since, List **payloads);

/* A list of KaStored: advice that appeared and did not disappear. */
extern List *ka_history_standing(const KaHistory *history);

/* Appends an event; "facts" are those that the row follows from. */
extern void ka_history_add_event(const KaHistory *history, TimestampTz at, KaAdviceEvent event,
								 const KaAdvice *row, const KaFacts *facts);

/* Appends that an advice disappeared: the other columns are those of its newest row. */
extern void ka_history_add_end(const KaHistory *history, TimestampTz at, const KaStored *stored);

/*
 * Deletes up to KA_PRUNE_ROWS rows that are older than "before", oldest first,
 * beginning at "*from", which moves on.  Advice that stands is never deleted.
 * Returns how many.
 */
extern int64 ka_history_prune(const KaHistory *history, KaHistoryTable table,
							  TimestampTz before, TimestampTz *from);

#endif							/* KA_HISTORY_TABLES_H */
