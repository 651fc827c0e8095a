/*
 * fuzz_title.c: any bytes as a process's title.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kinds.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *title = malloc(size + 10);
	KaProbeKind plain, server;

	/* As it is, and behind what every process of a server begins with. */
	plain = ka_kind_of_title((const char *) data, size);
	memcpy(title, "postgres: ", 10);
	memcpy(title + 10, data, size);
	server = ka_kind_of_title(title, size + 10);
	if (plain >= KA_KIND_COUNT || server >= KA_KIND_COUNT || server == KA_KIND_KERNEL)
		abort();
	free(title);
	return 0;
}
