/*
 * memory.h: what the daemon must know of memory before it touches a pool.
 *
 * Pure parsers of /proc/meminfo (memory.c), buddyinfo, pagetypeinfo, zoneinfo
 * and vmstat (estimate.c): text in, numbers out; the text need not end with NUL.  They live here and not in src/core
 * because the privileged process links as little as it can.
 */
#ifndef KA_MEMORY_H
#define KA_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's PAGE_ALLOC_COSTLY_ORDER is 3: blocks above it are the scarce ones. */
#define KA_COSTLY_ORDER 4

typedef struct KaMemory
{
	int64_t		total_bytes;
	int64_t		free_bytes;
	int64_t		available_bytes;
	int64_t		swap_total_bytes;
	int64_t		commit_limit_bytes;
	int64_t		committed_bytes;
	int64_t		active_file_bytes;	/* page cache without shared memory; 0: not said */
	int64_t		inactive_file_bytes;
	int64_t		hugetlb_bytes;	/* pools of all sizes; 0 where the kernel does not say (before 4.16) */
	int64_t		hugepage_bytes; /* default size; 0: no huge pages */
} KaMemory;

/* False when a line that every kernel since 3.14 has is missing or garbage. */
extern bool ka_parse_meminfo_text(const char *text, size_t length, KaMemory *memory);

/* What the kernel says of its free memory; text NULL: unreadable. */
typedef struct KaMemoryText
{
	const char *text;
	size_t		length;
} KaMemoryText;

typedef struct KaMemoryTexts
{
	KaMemoryText buddyinfo;
	KaMemoryText pagetypeinfo;
	KaMemoryText zoneinfo;
	KaMemoryText vmstat;
} KaMemoryTexts;

/* In pages of 2^order base pages, of all zones that serve a pool. */
typedef struct KaEstimate
{
	int			max_order;		/* of the buddy allocator */
	int64_t		free_costly_blocks; /* all nodes, blocks of order >= 4 */
	int64_t		listed_pages;	/* base pages on the free lists of all zones */
	int64_t		pages_free;		/* blocks that are free now */
	int64_t		pages_compaction;	/* that compaction could make; KA_NO_VALUE: unknown */
	double		unpinned;		/* share of the other blocks that has no pinned page */
} KaEstimate;

/*
 * What a pool could get from a node, or from all (KA_ALL_NODES).  Only buddyinfo
 * is needed; without pagetypeinfo nothing is said about compaction.  False:
 * garbage.
 */
extern bool ka_estimate_pages(const KaMemoryTexts *texts, int node, int order, KaEstimate *estimate);

#endif							/* KA_MEMORY_H */
