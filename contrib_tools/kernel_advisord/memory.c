/*
 * memory.c: the parser of meminfo.
 */
#include <string.h>

#include "line.h"
#include "memory.h"

bool
ka_parse_meminfo_text(const char *text, size_t length, KaMemory *memory)
{
	const struct
	{
		const char *key;
		int64_t    *value;
		bool		required;
	}			fields[] = {
		{"MemTotal:", &memory->total_bytes, true},
		{"MemFree:", &memory->free_bytes, true},
		{"MemAvailable:", &memory->available_bytes, true},
		{"SwapTotal:", &memory->swap_total_bytes, true},
		{"CommitLimit:", &memory->commit_limit_bytes, true},
		{"Committed_AS:", &memory->committed_bytes, true},
		{"Active(file):", &memory->active_file_bytes, false},
		{"Inactive(file):", &memory->inactive_file_bytes, false},
		{"Hugetlb:", &memory->hugetlb_bytes, false},
		{"Hugepagesize:", &memory->hugepage_bytes, false},
	};
	const size_t nfields = sizeof(fields) / sizeof(fields[0]);
	unsigned	seen = 0;
	const char *end = text + length;
	KaLine		line;

	memset(memory, 0, sizeof(*memory));
	while (ka_next_line(&text, end, &line))
	{
		for (size_t i = 0; i < nfields; i++)
		{
			int64_t		kb;

			if (!ka_take(&line, fields[i].key))
				continue;
			if (!ka_take_number(&line, &kb) || !ka_take(&line, "kB") || line.p != line.end ||
				__builtin_mul_overflow(kb, INT64_C(1024), fields[i].value))
				return false;
			seen |= 1u << i;
			break;
		}
	}
	for (size_t i = 0; i < nfields; i++)
	{
		if (fields[i].required && !(seen & (1u << i)))
			return false;
	}
	return memory->total_bytes > 0;
}
