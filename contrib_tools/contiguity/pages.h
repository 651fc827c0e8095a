/*
 * pages.h: the page frames of a file's cached pages, or of a process's memory.
 *
 * Reads /proc/PID/pagemap and /proc/kpageflags, which show page frame numbers
 * to CAP_SYS_ADMIN of the machine only.  Nothing is read from a disk and
 * nothing gets into memory that was not there: pages of a file are mapped only
 * where mincore() says that they are cached.
 *
 * Functions return false with *problem set (in the arena; NULL: no memory).
 */
#ifndef KA_CONTIGUITY_PAGES_H
#define KA_CONTIGUITY_PAGES_H

#include "runs.h"

typedef struct KaFlagsCache KaFlagsCache;

typedef struct KaWalk
{
	KaArena    *arena;
	int64_t		page_bytes;
	int64_t		looked;			/* pages of the range */
	int64_t		present;		/* with a page frame */
	int64_t		swapped;		/* of a process; of a file those are not cached */
	int64_t		unknown;		/* pages whose folio could not be told */
	bool		flags_known;	/* /proc/kpageflags can be read */
	KaRuns		runs;
	KaFolios	folios;
	KaFlagsCache *flags;
} KaWalk;

/* Says so where the kernel hides page frame numbers; afterwards ka_walk_close. */
extern bool ka_walk_open(KaWalk *walk, KaArena *arena, const char **problem);
extern void ka_walk_close(KaWalk *walk);

/* Forgets what was found, to look at something else. */
extern void ka_walk_reset(KaWalk *walk);

/* The cached pages of an open regular file. */
extern bool ka_walk_file(KaWalk *walk, int fd, const char **problem);

/* The pages that a process (0: this one) has mapped from one address to another. */
extern bool ka_walk_process(KaWalk *walk, int64_t pid, uint64_t from, uint64_t to, const char **problem);

/*
 * Memory that is shared and not hugetlb can be looked at as a whole, whoever
 * touched it: opens what a process has mapped there; -1 where that cannot be.
 */
extern int	ka_open_mapping(int64_t pid, uint64_t from, uint64_t to);

#endif							/* KA_CONTIGUITY_PAGES_H */
