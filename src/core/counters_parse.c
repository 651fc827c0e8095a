/*
 * counters_parse.c: the text of /proc/vmstat, zoneinfo, buddyinfo,
 * pressure/memory and of a block device's stat.
 *
 * Invariants: nothing is allocated and nothing outside of the text is read;
 * each parser looks at every byte a bounded number of times.  A parser sets
 * the fields of its own file only, and those that the text does not have stay
 * as they were.  A text that ends within a line was cut off and is garbage as
 * a whole: its last number may be short.
 *
 * Locks: none.
 */
#include "parse.h"

typedef struct Field
{
	const char *name;
	size_t		offset;			/* in KaCounters */
} Field;

#define FIELD(name, member) {name, offsetof(KaCounters, member)}

/* In pages; the counters have bytes. */
static const Field page_fields[] = {
	FIELD("nr_free_pages", free_bytes),
	FIELD("nr_page_table_pages", page_table_bytes),
	FIELD("nr_dirty", dirty_bytes),
	FIELD("nr_writeback", writeback_bytes),
};

static const Field vmstat_fields[] = {
	FIELD("compact_stall", compact_stall),
	FIELD("compact_fail", compact_fail),
	FIELD("compact_success", compact_success),
	FIELD("compact_migrate_scanned", compact_migrate_scanned),
	FIELD("compact_free_scanned", compact_free_scanned),
	FIELD("compact_daemon_wake", compact_daemon_wake),
	FIELD("compact_daemon_migrate_scanned", compact_daemon_migrate_scanned),
	FIELD("thp_fault_alloc", thp_fault_alloc),
	FIELD("thp_fault_fallback", thp_fault_fallback),
	FIELD("thp_file_alloc", thp_file_alloc),
	FIELD("thp_file_fallback", thp_file_fallback),
};

void
ka_counters_init(KaCounters *counters)
{
	/* Every member but the last is an int64_t, and KA_UNKNOWN has all bits set. */
	memset(counters, 0xFF, sizeof(*counters));
	counters->unusable_index_order4 = -1;
}

/* The member that a name stands for, or NULL. */
static int64_t *
find_field(const Field *fields, size_t n, KaSpan name, KaCounters *counters)
{
	for (size_t i = 0; i < n; i++)
	{
		if (ka_equals(name, fields[i].name))
			return (int64_t *) ((char *) counters + fields[i].offset);
	}
	return NULL;
}

/*
 * "name value" per line.  Direct reclaim is counted per zone since 4.8
 * (allocstall_normal ...), before that as one allocstall.
 */
bool
ka_parse_vmstat(const char *text, size_t length, int64_t page_size_bytes, KaCounters *out)
{
	KaSpan		rest = ka_span(text, length);
	int64_t		allocstall = KA_UNKNOWN;

	out->free_bytes = KA_UNKNOWN;

	if (ka_is_cut(rest))
		return false;
	while (rest.length > 0)
	{
		KaSpan		line = ka_next_line(&rest);
		KaSpan		name;
		int64_t		value;
		int64_t    *field;

		/* All that is wanted starts with one of these. */
		if (line.length == 0 || strchr("actn", line.at[0]) == NULL)
			continue;
		name = ka_next_word(&line);
		line = ka_skip_blanks(line);
		if (!ka_to_number(line, &value))
			continue;

		if (ka_starts_with(name, "allocstall"))
			allocstall = allocstall == KA_UNKNOWN ? value : ka_add(allocstall, value);
		else if ((field = find_field(vmstat_fields, KA_LENGTH(vmstat_fields), name, out)) != NULL)
			*field = value;
		else if ((field = find_field(page_fields, KA_LENGTH(page_fields), name, out)) != NULL)
			*field = ka_multiply(value, page_size_bytes);
	}
	if (allocstall != KA_UNKNOWN)
		out->allocstall = allocstall;
	return out->free_bytes != KA_UNKNOWN;	/* every kernel prints it */
}

bool
ka_parse_meminfo_line(KaSpan line, KaSpan *name, int64_t *value)
{
	*name = ka_next_field(&line, ':');
	line = ka_skip_blanks(line);
	return name->length > 0 && ka_next_number(&line, value);
}

/*
 * Counts since boot: reads, merged, sectors, ms; writes, merged, sectors, ms;
 * in flight, ms of I/O, weighted ms, and more since 4.18 and 5.5 (Documentation/
 * block/stat.rst).  Sectors have 512 bytes whatever the device's are.
 */
enum
{
	STAT_WRITES = 4,
	STAT_WRITE_MERGES = 5,
	STAT_WRITE_SECTORS = 6,
	STAT_WRITE_MS = 7,
	STAT_IO_MS = 9,
	STAT_FIELDS = 11
};

static void
add_to(int64_t *sum, int64_t value)
{
	*sum = *sum == KA_UNKNOWN ? value : ka_add(*sum, value);
}

bool
ka_parse_block_stat(const char *text, size_t length, KaCounters *out)
{
	KaSpan		line = ka_span(text, length);
	int64_t		fields[STAT_FIELDS];

	if (ka_is_cut(line))
		return false;
	for (int i = 0; i < STAT_FIELDS; i++)
	{
		if (!ka_to_number(ka_next_word(&line), &fields[i]))
			return false;
	}
	add_to(&out->write_ios, fields[STAT_WRITES]);
	add_to(&out->write_merges, fields[STAT_WRITE_MERGES]);
	add_to(&out->write_bytes, ka_multiply(fields[STAT_WRITE_SECTORS], 512));
	add_to(&out->write_ms, fields[STAT_WRITE_MS]);
	out->io_ms = fields[STAT_IO_MS];
	return true;
}

/*
 * The sum of "count:" over all zones and CPUs.  A populated zone prints
 * "pagesets", per CPU "cpu: N" and "count: N" with more below, and last
 * "start_pfn:"; an empty zone has none of these.  Zones that do not close, or
 * CPUs without a count, tell a text that was cut off between two lines.
 *
 * Half of a large machine's 400 kB are skipped on their first letter.
 */
bool
ka_parse_zoneinfo(const char *text, size_t length, int64_t *pcp_pages, int64_t *zones)
{
	KaSpan		rest = ka_span(text, length);
	int64_t		pages = 0;
	int64_t		nzones = 0;
	bool		open = false;	/* between "pagesets" and "start_pfn:" */
	bool		cpu = false;	/* "cpu:" was seen, its count was not */

	if (ka_is_cut(rest))
		return false;
	while (rest.length > 0)
	{
		KaSpan		line = ka_next_line(&rest);

		if (line.length > 0 && line.at[0] == 'N')
		{
			if (!ka_starts_with(line, "Node ") || open)
				return false;
			nzones++;
			continue;
		}
		line = ka_skip_blanks(line);
		if (line.length < 4)
			continue;
		switch (line.at[0])
		{
			case 'c':
				if (open && ka_starts_with(line, "count:"))
				{
					int64_t		count;

					line = ka_skip_blanks(ka_skip(line, 6));
					if (!cpu || !ka_to_number(line, &count))
						return false;
					pages = ka_add(pages, count);
					cpu = false;
				}
				else if (open && ka_starts_with(line, "cpu:"))
				{
					if (cpu)
						return false;
					cpu = true;
				}
				break;
			case 'p':
				if (ka_equals(line, "pagesets"))
				{
					if (nzones == 0 || open)
						return false;
					open = true;
				}
				break;
			case 's':
				if (ka_starts_with(line, "start_pfn:"))
				{
					if (cpu)
						return false;
					open = false;
				}
				break;
			default:
				break;
		}
	}
	if (nzones == 0 || open)
		return false;
	*pcp_pages = pages;
	*zones = nzones;
	return true;
}

/* "Node 0, zone   Normal   1930    752 ..." */
bool
ka_parse_buddy_line(KaSpan line, KaBuddyZone *zone)
{
	KaSpan		word;

	if (!ka_equals(ka_next_word(&line), "Node"))
		return false;
	word = ka_next_word(&line);
	if (!ka_next_number(&word, &zone->node) || !ka_equals(word, ","))
		return false;
	if (!ka_equals(ka_next_word(&line), "zone"))
		return false;
	zone->name = ka_next_word(&line);

	zone->norders = 0;
	while ((word = ka_next_word(&line)).length > 0)
	{
		if (zone->norders == KA_MAX_ORDERS || !ka_to_number(word, &zone->blocks[zone->norders]))
			return false;
		zone->norders++;
	}
	return zone->norders > KA_COSTLY_ORDER;
}

int64_t
ka_buddy_pages(const KaBuddyZone *zone, int order)
{
	int64_t		pages = 0;

	for (; order < zone->norders; order++)
		pages = ka_add(pages, ka_multiply(zone->blocks[order], INT64_C(1) << order));
	return pages;
}

/*
 * The unusable index is the kernel's (unusable_show_print in mm/vmstat.c): the
 * share of free memory that no block of order 4 can come from; 1 when there is
 * no free memory.  Here over all zones together.
 */
bool
ka_parse_buddyinfo(const char *text, size_t length, KaCounters *out)
{
	KaSpan		rest = ka_span(text, length);
	int64_t		blocks = 0;
	int64_t		free_pages = 0;
	int64_t		usable_pages = 0;

	if (ka_is_cut(rest))
		return false;
	while (rest.length > 0)
	{
		KaBuddyZone zone;

		if (!ka_parse_buddy_line(ka_next_line(&rest), &zone))
			return false;
		for (int order = KA_COSTLY_ORDER; order < zone.norders; order++)
			blocks = ka_add(blocks, zone.blocks[order]);
		free_pages = ka_add(free_pages, ka_buddy_pages(&zone, 0));
		usable_pages = ka_add(usable_pages, ka_buddy_pages(&zone, KA_COSTLY_ORDER));
	}
	out->free_costly_blocks = blocks;
	out->unusable_index_order4 = free_pages > 0 ?
		(double) (free_pages - usable_pages) / (double) free_pages : 1.0;
	return true;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" and the same for full. */
bool
ka_parse_pressure(const char *text, size_t length, KaCounters *out)
{
	KaSpan		rest = ka_span(text, length);
	bool		some = false;

	if (ka_is_cut(rest))
		return false;
	while (rest.length > 0)
	{
		KaSpan		line = ka_next_line(&rest);
		KaSpan		kind = ka_next_word(&line);
		KaSpan		word;
		int64_t		total = KA_UNKNOWN;

		while ((word = ka_next_word(&line)).length > 0)
		{
			if (ka_starts_with(word, "total=") && !ka_to_number(ka_skip(word, 6), &total))
				return false;
		}
		if (total == KA_UNKNOWN)
			return false;
		if (ka_equals(kind, "some"))
		{
			out->pressure_some_us = total;
			some = true;
		}
		else if (ka_equals(kind, "full"))
			out->pressure_full_us = total;
	}
	return some;
}
