/* fuzz_meminfo.c: any text as /proc/meminfo. */
#include <stdlib.h>

#include "parse.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaSpan		rest = ka_span((const char *) data, size);

	while (rest.length > 0)
	{
		KaSpan		name;
		int64_t		value;

		if (ka_parse_meminfo_line(ka_next_line(&rest), &name, &value) && (name.length == 0 || value < 0))
			abort();
	}
	return 0;
}
