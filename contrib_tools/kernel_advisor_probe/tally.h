/*
 * tally.h: from the kernel's records to the rows of the published file.
 */
#ifndef KA_TALLY_H
#define KA_TALLY_H

#include <stdbool.h>

#include "probe_file.h"
#include "probe_maps.h"

/* What was seen of a record last time. */
typedef struct KaSeen
{
	KaProbeCounters counters;
	uint32_t	compaction_ns[KA_PROBE_BUCKETS];
	uint32_t	reclaim_ns[KA_PROBE_BUCKETS];
	uint32_t	pid;
	uint32_t	reserved;
	uint64_t	start_ns;
} KaSeen;

typedef struct KaTally
{
	KaSeen		seen[KA_RECORDS];
	bool		group_is_alive[KA_PROBE_GROUPS];	/* a process of it was there last time */
	uint64_t	last_second;	/* of the recent stalls */
	uint64_t	groups_dropped;
} KaTally;

/* Rows for every kind, where groups without a row of their own are counted. */
extern void ka_tally_start(KaTally *tally, KaProbeFile *file);

/*
 * Adds what is new in "records" to the groups of *file, and writes its process
 * rows anew.  Records of processes that are gone are handed to "give_back", which
 * empties them.
 */
extern void ka_tally(KaTally *tally, KaRecord *records, uint64_t now_ns, KaProbeFile *file,
					 bool (*give_back) (void *context, uint32_t index), void *context);

#endif							/* KA_TALLY_H */
