/*
 * parse.h: pieces of kernel text that collectors and counters both read.
 */
#ifndef KA_PARSE_H
#define KA_PARSE_H

#include "counters.h"
#include "scan.h"

/* Blocks of this order and above are "costly" (PAGE_ALLOC_COSTLY_ORDER is 3). */
#define KA_COSTLY_ORDER 4

/* More columns than any kernel prints: 11 as a rule, 14 with 64 KiB pages on arm64. */
#define KA_MAX_ORDERS 32

/* One line of /proc/buddyinfo. */
typedef struct KaBuddyZone
{
	int64_t		node;
	KaSpan		name;
	int			norders;
	int64_t		blocks[KA_MAX_ORDERS];	/* free blocks of each order */
} KaBuddyZone;

/* Takes one line; false: it is not such a line. */
extern bool ka_parse_buddy_line(KaSpan line, KaBuddyZone *zone);

/* Pages in the free blocks of "order" and above. */
extern int64_t ka_buddy_pages(const KaBuddyZone *zone, int order);

/* "Name:   123 kB" as of /proc/meminfo: the name and the number as it stands there. */
extern bool ka_parse_meminfo_line(KaSpan line, KaSpan *name, int64_t *value);

/* The text was cut off in the middle of a line, or is empty. */
static inline bool
ka_is_cut(KaSpan text)
{
	return text.length == 0 || text.at[text.length - 1] != '\n';
}

/* Everything unknown. */
extern void ka_counters_init(KaCounters *counters);

#endif							/* KA_PARSE_H */
