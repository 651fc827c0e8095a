/*
 * row.c: the rows of a set-returning function, column by column.
 */
#include "postgres.h"

#include <math.h>

#include "changes.h"
#include "ka_base.h"
#include "row.h"

void
ka_row_begin(KaRow *row, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	row->result = (ReturnSetInfo *) fcinfo->resultinfo;
	row->column = 0;
}

void
ka_row_put(KaRow *row, bool known, Datum value)
{
	if (row->column >= KA_ROW_COLS)
		elog(ERROR, "a row of more than %d columns", KA_ROW_COLS);
	row->nulls[row->column] = !known;
	row->values[row->column++] = known ? value : (Datum) 0;
}

void
ka_row_bool(KaRow *row, bool value)
{
	ka_row_put(row, true, BoolGetDatum(value));
}

void
ka_row_int64(KaRow *row, int64 value)
{
	ka_row_put(row, value != KA_UNKNOWN, Int64GetDatum(value));
}

void
ka_row_int32(KaRow *row, int64 value)
{
	ka_row_put(row, value != KA_UNKNOWN, Int32GetDatum((int32) value));
}

void
ka_row_number(KaRow *row, double value)
{
	ka_row_put(row, !isnan(value), Float8GetDatum(value));
}

void
ka_row_text(KaRow *row, const char *text)
{
	bool		known = text != NULL && text[0] != '\0';

	ka_row_put(row, known, known ? ka_server_text(text) : (Datum) 0);
}

void
ka_row_time(KaRow *row, TimestampTz at)
{
	ka_row_put(row, at != 0, TimestampTzGetDatum(at));
}

void
ka_row_store(KaRow *row)
{
	if (row->column != row->result->setDesc->natts)
		elog(ERROR, "incorrect number of output columns: %d, expected %d",
			 row->result->setDesc->natts, row->column);
	tuplestore_putvalues(row->result->setResult, row->result->setDesc, row->values, row->nulls);
	row->column = 0;
}
