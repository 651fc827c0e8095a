/* fuzz_buddyinfo.c: any text as /proc/buddyinfo. */
#include <stdlib.h>

#include "counters.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaCounters	c;

	if (ka_parse_buddyinfo((const char *) data, size, &c) &&
		!(c.free_costly_blocks >= 0 && c.unusable_index_order4 >= 0 && c.unusable_index_order4 <= 1))
		abort();
	return 0;
}
