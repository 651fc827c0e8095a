/* fuzz_zoneinfo.c: any text as /proc/zoneinfo. */
#include <stdlib.h>

#include "counters.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t		pages = KA_UNKNOWN;
	int64_t		zones = KA_UNKNOWN;

	if (ka_parse_zoneinfo((const char *) data, size, &pages, &zones) && (pages < 0 || zones < 1))
		abort();
	return 0;
}
