/*
 * probe_maps.h: what the BPF program and the process that loaded it share:
 * arrays that both have mapped, so that reading them is no system call.
 *
 * A record belongs to one process.  The BPF program takes a free index from the
 * stack "free_records" when a process is seen for the first time, and finds it
 * again in the hash "processes"; the process in user space gives an index back,
 * emptied, after the kernel said (sched_process_free) that the process is gone
 * for good.  All sizes are fixed: a process that finds no free index is counted
 * in a record that all such processes share.
 *
 * Counters are 64 bits, aligned, and changed with atomic additions only (in a
 * slot, with plain ones: there it is one CPU with interrupts off).
 *
 * SPDX-License-Identifier: PostgreSQL OR GPL-2.0-only
 */
#ifndef KA_PROBE_MAPS_H
#define KA_PROBE_MAPS_H

#include "probe_file.h"

#define KA_RECORDS (KA_PROBE_PROCESSES + 2)
#define KA_RECORD_OVERFLOW 0	/* processes that found no free record */
#define KA_RECORD_KERNEL 1		/* all kernel threads */
#define KA_RECORD_FIRST 2

/* "postgres: ", cluster_name (63), ": ", the longest kind. */
#define KA_TITLE_LENGTH 96

/* After a direct reclaim: how long until the first drained page, and from one to the next, to be drain_all_pages(). */
#define KA_DRAIN_ALL_GAP_NS 1000000ULL

typedef enum KaRecordState
{
	KA_RECORD_FREE,
	KA_RECORD_USED,
	KA_RECORD_GONE				/* the process will never run again */
} KaRecordState;

typedef struct KaRecord
{
	uint32_t	state;			/* KaRecordState */
	uint32_t	pid;			/* of the process, not of the thread */
	uint64_t	start_ns;		/* of its first thread, CLOCK_BOOTTIME */
	uint64_t	cgroup_id;		/* as of the last stall */
	uint32_t	parent_pid;
	uint32_t	namespace_pid;	/* 0: not known */
	uint32_t	pid_namespace;
	uint32_t	reserved;
	char		comm[16];
	char		title[KA_TITLE_LENGTH];	/* as of the last stall; not always terminated */
	KaProbeCounters counters;	/* longest_ns: since user space took it */
	uint32_t	compaction_ns[KA_PROBE_BUCKETS];
	uint32_t	reclaim_ns[KA_PROBE_BUCKETS];
} KaRecord;

/* What a CPU remembers from one drained page to the next. */
typedef struct KaSlot
{
	uint64_t	thread;			/* process and thread */
	uint32_t	epoch;			/* "epoch" of when drain was found out */
	uint32_t	record;
	uint32_t	drain;			/* KaDrain */
	uint32_t	reserved;
	uint64_t	until_ns;		/* KA_DRAIN_ALL: the next drained page is of it until then */
	uint64_t	drained_blocks[KA_PROBE_ORDERS];
	uint64_t	reserved2[4];
} KaSlot;

typedef struct KaProcessKey
{
	uint64_t	start_ns;
	uint32_t	pid;
	uint32_t	reserved;
} KaProcessKey;

_Static_assert(sizeof(KaSlot) % 64 == 0, "two CPUs must not share a cache line");
_Static_assert(sizeof(KaRecord) % 8 == 0, "records lie side by side in the mapped array");

#endif							/* KA_PROBE_MAPS_H */
