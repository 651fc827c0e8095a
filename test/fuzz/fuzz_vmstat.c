/* fuzz_vmstat.c: any text as /proc/vmstat. */
#include <stdlib.h>

#include "parse.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaCounters	c;

	ka_counters_init(&c);
	if (ka_parse_vmstat((const char *) data, size, 65536, &c) &&
		(c.free_bytes < 0 || c.dirty_bytes < KA_UNKNOWN || c.compact_stall < KA_UNKNOWN || c.allocstall < KA_UNKNOWN || c.thp_file_fallback < KA_UNKNOWN))
		abort();
	return 0;
}
