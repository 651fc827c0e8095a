/* fuzz_numbers.c: the numbers of single-valued files, against strtoull. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "collect_priv.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char		text[64];
	int64_t		value = KA_UNKNOWN;
	bool		number;
	bool		digits = true;

	if (size == 0 || size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';

	number = ka_to_number(ka_span((const char *) data, size), &value);
	for (size_t i = 0; i < size; i++)
		digits = digits && isdigit((unsigned char) text[i]);
	if (number != digits)
		abort();
	if (number)
	{
		unsigned long long expected;

		errno = 0;
		expected = strtoull(text, NULL, 10);
		if (errno == ERANGE || expected > INT64_MAX)
			expected = INT64_MAX;
		if ((unsigned long long) value != expected)
			abort();
	}
	if (memchr(data, '\0', size) == NULL &&
		ka_number_within(text, "hugepages-", "kB") < KA_UNKNOWN)
		abort();
	return 0;
}
