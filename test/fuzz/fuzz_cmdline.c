/* fuzz_cmdline.c: any text as the kernel command line. */
#include <stdlib.h>

#include "boot.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaBootArguments arguments;

	ka_parse_cmdline(ka_span((const char *) data, size), &arguments);
	if (arguments.npools < 0 || arguments.npools > (int) KA_LENGTH(arguments.pools))
		abort();
	for (int i = 0; i < arguments.npools; i++)
	{
		if (arguments.pools[i].pages < 0 || arguments.pools[i].size_bytes == 0)
			abort();
	}
	return 0;
}
