/* fuzz_boot_lines.c: any text as a file of sysctl.d and of tmpfiles.d. */
#include <stdlib.h>
#include <string.h>

#include "boot.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaSpan		text = ka_span((const char *) data, size);

	while (text.length > 0)
	{
		KaSpan		line = ka_next_line(&text);
		KaSysctlLine setting;
		KaWriteLine write;
		int64_t		value;

		if (ka_parse_sysctl_line(line, &setting) &&
			(setting.key[0] == '\0' || strlen(setting.key) >= sizeof(setting.key)))
			abort();
		if (ka_parse_write_line(line, &write) && (write.path[0] != '/' || write.argument.length == 0))
			abort();
		if (ka_parse_sysctl_value(line, &value) && value < 0)
			abort();
	}
	return 0;
}
