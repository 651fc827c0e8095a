/* fuzz_diskstats.c: any text as /proc/diskstats. */
#include <stdlib.h>

#include "parse.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const devices[2] = {"vda", "b"};
	KaCounters	c;

	ka_counters_init(&c);
	if (ka_parse_diskstats((const char *) data, size, devices, &c) &&
		(c.write_ios < KA_UNKNOWN || c.write_bytes < KA_UNKNOWN || c.io_ms < KA_UNKNOWN))
		abort();
	return 0;
}
