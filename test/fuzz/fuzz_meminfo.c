/* fuzz_meminfo.c: any text as /proc/meminfo. */
#include <stdlib.h>

#include "parse.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaCounters	c;

	ka_counters_init(&c);
	if (ka_parse_meminfo((const char *) data, size, &c) &&
		(c.free_bytes < KA_UNKNOWN || c.page_table_bytes < KA_UNKNOWN || c.dirty_bytes < KA_UNKNOWN))
		abort();
	return 0;
}
