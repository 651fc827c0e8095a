/*
 * fuzz_errortext.c: messages and logs of any bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "errortext.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *text = malloc(size + 1);
	KaErrorText error;
	KaLogReport report;
	KaArena		arena;

	if (text == NULL)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	ka_malloc_arena(&arena);

	if (ka_error_parse(text, &error) != (error.call != NULL || error.signal != NULL))
		abort();
	if (error.bytes < KA_UNKNOWN)
		abort();
	if (!ka_log_parse(&arena, text, &report))
		abort();
	if ((report.message != NULL) != (report.error.call != NULL || report.error.signal != NULL))
		abort();
	if (report.after_s >= 0 && report.phase == NULL)
		abort();

	ka_malloc_free(&arena);
	free(text);
	return 0;
}
