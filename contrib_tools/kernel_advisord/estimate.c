/*
 * estimate.c: how many blocks of an order the kernel could give.
 *
 * Per zone, from what the kernel says of its free lists:
 *
 *	free		blocks of that order and larger, without those of types that are
 *				kept for others (HighAtomic, Isolate)
 *	compaction	moves the used pages of movable blocks into the holes of other
 *				movable blocks: holes of S base pages in all, packed together, are
 *				S / 2^order whole blocks
 *	watermark	a zone gives none of the pages that it keeps below its "min"
 *				watermark, nor of those that it protects from requests that a
 *				higher zone could serve (lowmem_reserve_ratio)
 *	pinned		a page that a device or io_uring holds cannot be moved, and keeps its
 *				block from becoming whole.  The kernel tells how many there are, not
 *				where: P of them strewn over B blocks leave exp(-P / B) of the blocks
 *				without one.  When they lie together the share is larger.
 *
 * The error of all this was measured: doc/helper.md.
 *
 * Each parser walks its text line by line between two pointers and never looks
 * beyond the end.  Sums saturate: a number that cannot be is treated as garbage.
 */
#include <math.h>
#include <string.h>

#include "line.h"
#include "memory.h"
#include "protocol.h"

/* More than any kernel has: MAX_PAGE_ORDER is 10, arm64 with 64 kB pages 13. */
#define MAX_ORDERS 32

/* Nodes times zones of a node; more than that are not counted. */
#define MAX_ZONES 256

/* Types of blocks in pagetypeinfo: Unmovable, Movable, Reclaimable, HighAtomic, CMA, Isolate. */
#define MAX_TYPES 8

typedef struct Zone
{
	int64_t		node;
	char		name[16];
	int			norders;
	int64_t		counts[MAX_ORDERS];	/* free blocks */
	int64_t		withheld;		/* of the wanted order, kept for others */
	int64_t		fixed_small;	/* base pages in smaller blocks that compaction does not fill */
	int64_t		movable_blocks;
	int64_t		kept;			/* base pages: watermark and protection */
} Zone;

/* The daemon has one thread. */
static Zone zones[MAX_ZONES];
static size_t nzones;

/*
 * Numbers per order until the end of the line.  pagetypeinfo stops counting a
 * long list and prints ">100000" then: the lower bound is taken.
 */
static bool
take_counts(KaLine *line, int64_t *counts, int max, int *n)
{
	for (*n = 0; *n < max; (*n)++)
	{
		ka_skip_spaces(line);
		if (line->p == line->end)
			return *n > 0;
		ka_take(line, ">");
		/* 2^40 blocks of any order would be more memory than can be addressed. */
		if (!ka_take_number(line, &counts[*n]) || counts[*n] > INT64_C(1) << 40)
			return false;
	}
	ka_skip_spaces(line);
	return line->p == line->end;
}

/* "Node 0, zone   Normal": false for another kind of line. */
static bool
take_zone(KaLine *line, int64_t *node, const char **name, size_t *length)
{
	if (!ka_take(line, "Node") || !ka_take_number(line, node) || !ka_take(line, ",") || !ka_take(line, "zone"))
		return false;
	ka_take_name(line, name, length);
	return true;
}

static Zone *
find_zone(int64_t node, const char *name, size_t length)
{
	for (size_t i = 0; i < nzones; i++)
	{
		if (zones[i].node == node && ka_is_word(name, length, zones[i].name))
			return &zones[i];
	}
	return NULL;
}

/*
 * ZONE_DMA counts for the stock of costly blocks, but not for a pool: its
 * pages are kept for devices.
 */
static bool
serves_pool(const Zone *zone, int node)
{
	return (node == KA_ALL_NODES || node == zone->node) && strcmp(zone->name, "DMA") != 0;
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
			return INT64_MAX / 8;
	}
	return blocks < INT64_MAX / 8 ? blocks : INT64_MAX / 8;
}

/* Base pages in blocks smaller than "order"; counts are below 2^40, orders below 32: no overflow with few. */
static int64_t
pages_below(const int64_t *counts, int norders, int order)
{
	int64_t		pages = 0;

	for (int o = 0; o < norders && o < order; o++)
	{
		if (counts[o] > INT64_MAX / 64 >> o)
			return INT64_MAX / 8;
		pages += counts[o] << o;
	}
	return pages < INT64_MAX / 8 ? pages : INT64_MAX / 8;
}

static bool
read_buddyinfo(const char *text, size_t length)
{
	const char *end = text + length;
	KaLine		line;

	nzones = 0;
	while (ka_next_line(&text, end, &line))
	{
		Zone	   *zone = &zones[nzones];
		const char *name;
		size_t		name_length;

		if (nzones == MAX_ZONES)
			return true;
		memset(zone, 0, sizeof(*zone));
		if (!take_zone(&line, &zone->node, &name, &name_length) || name_length >= sizeof(zone->name) ||
			!take_counts(&line, zone->counts, MAX_ORDERS, &zone->norders))
			return false;
		memcpy(zone->name, name, name_length);
		nzones++;
	}
	return nzones > 0;
}

/*
 * Two tables: free lists by type, "Node 0, zone Normal, type Movable 1 2 3 ...",
 * and page blocks by type, whose heading names the columns.
 */
static bool
read_pagetypeinfo(const char *text, size_t length, int order)
{
	static const char heading[] = "Number of blocks type";
	const char *end = text + length;
	int			movable_column = -1;
	bool		seen = false;
	KaLine		line;

	while (ka_next_line(&text, end, &line))
	{
		int64_t		counts[MAX_ORDERS];
		int			n;
		int64_t		node;
		const char *name;
		const char *type;
		size_t		name_length;
		size_t		type_length;
		Zone	   *zone;

		if (ka_take(&line, heading))
		{
			for (int column = 0; column < MAX_TYPES; column++)
			{
				ka_take_name(&line, &name, &name_length);
				if (ka_is_word(name, name_length, "Movable"))
					movable_column = column;
			}
			continue;
		}
		if (!take_zone(&line, &node, &name, &name_length))
			continue;
		zone = find_zone(node, name, name_length);
		if (!ka_take(&line, ","))
		{
			if (!take_counts(&line, counts, MAX_TYPES, &n))
				return false;
			if (zone && movable_column >= 0 && movable_column < n)
				zone->movable_blocks = counts[movable_column];
			continue;
		}
		if (!ka_take(&line, "type"))
			return false;
		ka_take_name(&line, &type, &type_length);
		if (!take_counts(&line, counts, MAX_ORDERS, &n))
			return false;
		seen = true;
		/* Huge pages are movable, and may come from the contiguous memory area. */
		if (zone == NULL || ka_is_word(type, type_length, "Movable") || ka_is_word(type, type_length, "CMA"))
			continue;
		zone->fixed_small += pages_below(counts, n, order);
		if (ka_is_word(type, type_length, "HighAtomic") || ka_is_word(type, type_length, "Isolate"))
			zone->withheld += blocks_from(counts, n, order);
	}
	return seen;
}

/* "min" and the last number of "protection": what a request for the highest zone must leave. */
static void
read_zoneinfo(const char *text, size_t length)
{
	const char *end = text + length;
	Zone	   *zone = NULL;
	KaLine		line;

	while (ka_next_line(&text, end, &line))
	{
		int64_t		node;
		int64_t		pages;
		const char *name;
		size_t		name_length;

		if (take_zone(&line, &node, &name, &name_length))
			zone = find_zone(node, name, name_length);
		else if (zone == NULL)
			continue;
		else if (ka_take(&line, "min "))
		{
			if (ka_take_number(&line, &pages))
				zone->kept += pages < INT64_MAX / 8 ? pages : INT64_MAX / 8;
		}
		else if (ka_take(&line, "protection: ("))
		{
			int64_t		last = 0;

			while (ka_take_number(&line, &pages))
			{
				last = pages < INT64_MAX / 8 ? pages : INT64_MAX / 8;
				ka_take(&line, ",");
			}
			zone->kept += last;
			zone = NULL;		/* nothing of interest follows, and "min" is also a column of others */
		}
	}
}

/* Pages that are pinned for long or for a moment; 0 where the kernel does not count them (before 5.8). */
static int64_t
pinned_pages(const char *text, size_t length)
{
	const char *end = text + length;
	int64_t		acquired = 0;
	int64_t		released = 0;
	KaLine		line;

	while (ka_next_line(&text, end, &line))
	{
		if (ka_take(&line, "nr_foll_pin_acquired "))
			ka_take_number(&line, &acquired);
		else if (ka_take(&line, "nr_foll_pin_released "))
			ka_take_number(&line, &released);
	}
	return acquired > released ? acquired - released : 0;
}

bool
ka_estimate_pages(const KaMemoryTexts *texts, int node, int order, KaEstimate *estimate)
{
	int64_t		compaction = 0;
	int64_t		other_blocks = 0;	/* movable ones that are not free as a whole */
	int64_t		pinned;
	bool		has_types;

	memset(estimate, 0, sizeof(*estimate));
	estimate->max_order = -1;
	estimate->pages_compaction = KA_NO_VALUE;
	estimate->unpinned = 1.0;
	if (order < 0 || order >= MAX_ORDERS || !read_buddyinfo(texts->buddyinfo.text, texts->buddyinfo.length))
		return false;
	has_types = texts->pagetypeinfo.text && read_pagetypeinfo(texts->pagetypeinfo.text, texts->pagetypeinfo.length, order);
	if (texts->zoneinfo.text)
		read_zoneinfo(texts->zoneinfo.text, texts->zoneinfo.length);

	for (size_t i = 0; i < nzones; i++)
	{
		const Zone *zone = &zones[i];
		int64_t		whole = blocks_from(zone->counts, zone->norders, order) - zone->withheld;
		int64_t		small = pages_below(zone->counts, zone->norders, order);
		int64_t		pages = pages_below(zone->counts, zone->norders, zone->norders);
		int64_t		room = (pages - zone->kept) >> order;
		int64_t		made = (small - zone->fixed_small) >> order;

		if (zone->norders - 1 > estimate->max_order)
			estimate->max_order = zone->norders - 1;
		for (int o = KA_COSTLY_ORDER; o < zone->norders; o++)
			estimate->free_costly_blocks += zone->counts[o];
		estimate->listed_pages += pages;
		if (estimate->listed_pages > INT64_MAX / 4 || estimate->free_costly_blocks > INT64_MAX / 4)
			return false;
		if (!serves_pool(zone, node))
			continue;
		/* The files are not of one moment, so differences may be negative. */
		if (room < 0)
			room = 0;
		if (whole < 0)
			whole = 0;
		if (whole > room)
			whole = room;
		if (made > room - whole)
			made = room - whole;
		estimate->pages_free += whole;
		compaction += made > 0 ? made : 0;
		if (zone->movable_blocks > whole)
			other_blocks += zone->movable_blocks - whole;
	}
	if (!has_types)
		return true;
	pinned = texts->vmstat.text ? pinned_pages(texts->vmstat.text, texts->vmstat.length) : 0;
	if (other_blocks > 0)
		estimate->unpinned = exp(-(double) pinned / (double) other_blocks);
	estimate->pages_compaction = (int64_t) ((double) compaction * estimate->unpinned);
	return true;
}
