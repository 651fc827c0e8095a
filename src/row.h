/*
 * row.h: the rows of a set-returning function, column by column.
 *
 * The order of the calls is that of the columns in the install script.  What is
 * not known becomes NULL: KA_UNKNOWN, NaN, a text that is NULL or empty, time 0.
 */
#ifndef KA_ROW_H
#define KA_ROW_H

#include "fmgr.h"
#include "funcapi.h"
#include "utils/timestamp.h"

#define KA_ROW_COLS 64			/* the widest that fits; more is an error */

typedef struct KaRow
{
	ReturnSetInfo *result;
	int			column;			/* the next one */
	Datum		values[KA_ROW_COLS];
	bool		nulls[KA_ROW_COLS];
} KaRow;

/* Begins the result of a function that returns SETOF record. */
extern void ka_row_begin(KaRow *row, FunctionCallInfo fcinfo);

extern void ka_row_put(KaRow *row, bool known, Datum value);
extern void ka_row_bool(KaRow *row, bool value);
extern void ka_row_int64(KaRow *row, int64 value);
extern void ka_row_int32(KaRow *row, int64 value);
extern void ka_row_number(KaRow *row, double value);
extern void ka_row_text(KaRow *row, const char *text);
extern void ka_row_time(KaRow *row, TimestampTz at);

/* The row is whole: it is stored, and the next one begins. */
extern void ka_row_store(KaRow *row);

#endif							/* KA_ROW_H */
