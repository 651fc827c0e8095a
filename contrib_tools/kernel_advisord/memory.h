/*
 * memory.h: what the daemon must know of memory before it touches a pool.
 *
 * Pure parsers of /proc/meminfo, buddyinfo and pagetypeinfo: text in, numbers
 * out; the text need not end with NUL.  They live here and not in src/core
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
	int64_t		hugetlb_bytes;	/* pools of all sizes; 0 where the kernel does not say (before 4.16) */
	int64_t		hugepage_bytes; /* default size; 0: no huge pages */
} KaMemory;

/* False when a line that every kernel since 3.14 has is missing or garbage. */
extern bool ka_parse_meminfo_text(const char *text, size_t length, KaMemory *memory);

/* In pages of 2^order base pages. */
typedef struct KaEstimate
{
	int			max_order;		/* of the buddy allocator */
	int64_t		free_costly_blocks; /* all nodes, blocks of order >= 4 */
	int64_t		pages_free;		/* blocks that are free now */
	int64_t		pages_compaction;	/* that compaction could make; KA_NO_VALUE: unknown */
} KaEstimate;

/*
 * Free blocks of a node, or of all (KA_ALL_NODES).  pagetypeinfo may be NULL
 * (unreadable): then nothing is said about compaction.  False: garbage.
 */
extern bool ka_estimate_pages(const char *buddyinfo, size_t buddyinfo_length,
							  const char *pagetypeinfo, size_t pagetypeinfo_length,
							  int node, int order, KaEstimate *estimate);

#endif							/* KA_MEMORY_H */
