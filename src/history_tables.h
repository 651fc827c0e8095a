/*
 * history_tables.h: the tables checkpoint_history and advice_history, for those
 * who write them.
 */
#ifndef KA_HISTORY_TABLES_H
#define KA_HISTORY_TABLES_H

#define KA_HISTORY_KEYS 3		/* columns that tell one row from another, at most */

/* Writers of one of the tables take turns; up to the end of the transaction. */
extern void ka_history_lock(Oid relid);

#endif							/* KA_HISTORY_TABLES_H */
