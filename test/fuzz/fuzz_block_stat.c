/* fuzz_block_stat.c: any text as a block device's stat, twice: the fields are sums. */
#include <stdlib.h>

#include "parse.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaCounters	c;

	ka_counters_init(&c);
	if (ka_parse_block_stat((const char *) data, size, &c) &&
		(!ka_parse_block_stat((const char *) data, size, &c) ||
		 c.write_ios < 0 || c.write_bytes < 0 || c.io_ms < 0))
		abort();
	return 0;
}
