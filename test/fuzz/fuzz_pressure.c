/* fuzz_pressure.c: any text as /proc/pressure/memory. */
#include <stdlib.h>

#include "counters.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaCounters	c = {.pressure_some_us = KA_UNKNOWN,.pressure_full_us = KA_UNKNOWN};

	if (ka_parse_pressure((const char *) data, size, &c) &&
		(c.pressure_some_us < 0 || c.pressure_full_us < KA_UNKNOWN))
		abort();
	return 0;
}
