/*
 * control.c: two deliberate errors, the positive control of test/server/sanitize.
 *
 * Built with the flags of the sanitized library and loaded into the same
 * server: a run that does not report these would not report ours either.
 */
#include "postgres.h"

#include <stdlib.h>

#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(control_overflow);
PG_FUNCTION_INFO_V1(control_undefined);

/* Reads an element past the end of its memory (volatile: no check of bounds at compile time). */
Datum
control_overflow(PG_FUNCTION_ARGS)
{
	int32	   *volatile array = calloc(40, sizeof(int32));
	int32		value = array[PG_GETARG_INT32(0)];

	free(array);
	PG_RETURN_INT32(value);
}

/* Shifts by more than the width of the type (the server's own -fwrapv makes signed overflow defined). */
Datum
control_undefined(PG_FUNCTION_ARGS)
{
	volatile int32 one = 1;

	PG_RETURN_INT32(one << PG_GETARG_INT32(0));
}
