/*
 * memory.c: parsers of meminfo, buddyinfo and pagetypeinfo.
 *
 * Each walks the text line by line between two pointers and never looks beyond
 * the end.  Sums saturate: a number that cannot be is treated as garbage.
 */
#include <string.h>

#include "knobs.h"
#include "memory.h"
#include "protocol.h"

/* More than any kernel has: MAX_PAGE_ORDER is 10, arm64 with 64 kB pages 13. */
#define MAX_ORDERS 32

/* A line between two pointers, consumed from the left. */
typedef struct Line
{
	const char *p;
	const char *end;
} Line;

static bool
next_line(const char **text, const char *end, Line *line)
{
	const char *newline;

	if (*text == end)
		return false;
	newline = memchr(*text, '\n', (size_t) (end - *text));
	line->p = *text;
	line->end = newline ? newline : end;
	*text = newline ? newline + 1 : end;
	return true;
}

static void
skip_spaces(Line *line)
{
	while (line->p < line->end && *line->p == ' ')
		line->p++;
}

/* Consumes a word when it is next. */
static bool
take(Line *line, const char *word)
{
	size_t		length = strlen(word);

	skip_spaces(line);
	if ((size_t) (line->end - line->p) < length || memcmp(line->p, word, length) != 0)
		return false;
	line->p += length;
	return true;
}

static bool
take_number(Line *line, int64_t *value)
{
	skip_spaces(line);
	return ka_parse_number(&line->p, line->end, value);
}

/* Everything up to the next space or comma. */
static void
take_name(Line *line, const char **name, size_t *length)
{
	skip_spaces(line);
	*name = line->p;
	while (line->p < line->end && *line->p != ' ' && *line->p != ',')
		line->p++;
	*length = (size_t) (line->p - *name);
}

static bool
is_word(const char *name, size_t length, const char *word)
{
	return length == strlen(word) && memcmp(name, word, length) == 0;
}

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
		{"Hugetlb:", &memory->hugetlb_bytes, false},
		{"Hugepagesize:", &memory->hugepage_bytes, false},
	};
	const size_t nfields = sizeof(fields) / sizeof(fields[0]);
	unsigned	seen = 0;
	const char *end = text + length;
	Line		line;

	memset(memory, 0, sizeof(*memory));
	while (next_line(&text, end, &line))
	{
		for (size_t i = 0; i < nfields; i++)
		{
			int64_t		kb;

			if (!take(&line, fields[i].key))
				continue;
			if (!take_number(&line, &kb) || !take(&line, "kB") || line.p != line.end ||
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

/*
 * Numbers per order until the end of the line.  pagetypeinfo stops counting a
 * long list and prints ">100000" then: the lower bound is taken.
 */
static bool
take_counts(Line *line, int64_t counts[MAX_ORDERS], int *norders)
{
	for (*norders = 0; *norders < MAX_ORDERS; (*norders)++)
	{
		skip_spaces(line);
		if (line->p == line->end)
			return *norders > 0;
		take(line, ">");
		/* 2^40 blocks of any order would be more memory than can be addressed. */
		if (!take_number(line, &counts[*norders]) || counts[*norders] > INT64_C(1) << 40)
			return false;
	}
	return false;
}

/* "Node 0, zone   Normal": false for another kind of line. */
static bool
take_zone(Line *line, int64_t *node, const char **zone, size_t *zone_length)
{
	if (!take(line, "Node") || !take_number(line, node) || !take(line, ",") || !take(line, "zone"))
		return false;
	take_name(line, zone, zone_length);
	return true;
}

/*
 * ZONE_DMA counts for the stock of costly blocks, but not for a pool: its
 * pages are kept for devices (lowmem_reserve_ratio).
 */
static bool
serves_pool(int node, int64_t zone_node, const char *zone, size_t zone_length)
{
	return (node == KA_ALL_NODES || node == zone_node) && !is_word(zone, zone_length, "DMA");
}

/* Blocks of "order" within the larger ones: sum of count[o] * 2^(o - order). */
static int64_t
blocks_from(const int64_t *counts, int norders, int order)
{
	int64_t		blocks = 0;

	for (int o = order; o < norders; o++)
	{
		int64_t		here;

		if (o - order > 20 || __builtin_mul_overflow(counts[o], INT64_C(1) << (o - order), &here) ||
			__builtin_add_overflow(blocks, here, &blocks))
			return INT64_MAX / 2;
	}
	return blocks;
}

/*
 * Compaction moves the used pages of movable blocks into the holes of other
 * movable blocks.  Holes of S base pages in all, once packed together, are
 * S / 2^order whole blocks: that is the most a zone can give, since pages that
 * are pinned inside movable blocks only lower it.
 */
static bool
add_pagetypeinfo(const char *text, size_t length, int node, int order, KaEstimate *estimate)
{
	const char *end = text + length;
	bool		seen = false;
	Line		line;

	estimate->pages_compaction = 0;
	while (next_line(&text, end, &line))
	{
		int64_t		counts[MAX_ORDERS];
		int			norders;
		int64_t		zone_node;
		const char *zone;
		const char *type;
		size_t		zone_length;
		size_t		type_length;

		if (!take_zone(&line, &zone_node, &zone, &zone_length) || !take(&line, ",") || !take(&line, "type"))
			continue;			/* headings, and the table of page blocks */
		take_name(&line, &type, &type_length);
		if (!take_counts(&line, counts, &norders))
			return false;
		seen = true;
		if (!serves_pool(node, zone_node, zone, zone_length))
			continue;
		if (is_word(type, type_length, "Movable"))
		{
			int64_t		small = 0;	/* base pages */

			for (int o = 0; o < norders && o < order; o++)
				small += counts[o] << o;
			estimate->pages_compaction += small >> order;
		}
		else if (is_word(type, type_length, "HighAtomic") || is_word(type, type_length, "Isolate"))
			estimate->pages_free -= blocks_from(counts, norders, order);	/* not for us */
	}
	if (estimate->pages_free < 0)
		estimate->pages_free = 0;	/* the two files are not of one moment */
	return seen;
}

bool
ka_estimate_pages(const char *buddyinfo, size_t buddyinfo_length,
				  const char *pagetypeinfo, size_t pagetypeinfo_length,
				  int node, int order, KaEstimate *estimate)
{
	const char *end = buddyinfo + buddyinfo_length;
	Line		line;

	memset(estimate, 0, sizeof(*estimate));
	estimate->max_order = -1;
	estimate->pages_compaction = KA_NO_VALUE;
	if (order < 0 || order >= MAX_ORDERS)
		return false;

	while (next_line(&buddyinfo, end, &line))
	{
		int64_t		counts[MAX_ORDERS];
		int			norders;
		int64_t		zone_node;
		const char *zone;
		size_t		zone_length;

		if (!take_zone(&line, &zone_node, &zone, &zone_length) || !take_counts(&line, counts, &norders))
			return false;
		if (norders - 1 > estimate->max_order)
			estimate->max_order = norders - 1;
		for (int o = KA_COSTLY_ORDER; o < norders; o++)
			estimate->free_costly_blocks += counts[o];
		if (serves_pool(node, zone_node, zone, zone_length))
			estimate->pages_free += blocks_from(counts, norders, order);
		if (estimate->pages_free > INT64_MAX / 4 || estimate->free_costly_blocks > INT64_MAX / 4)
			return false;
	}
	if (estimate->max_order < 0)
		return false;
	if (pagetypeinfo && !add_pagetypeinfo(pagetypeinfo, pagetypeinfo_length, node, order, estimate))
		estimate->pages_compaction = KA_NO_VALUE;
	return true;
}
