/*
 * probe_file.h: what kernel_advisor_probe publishes, and a reader for it.
 *
 * The file is a KaProbeFile: header, totals of the machine, one row per group
 * (server, cgroup, kind of process), one row per process that was seen in the
 * allocator's slow paths.  All counters start at zero when the probe starts
 * (another "generation") and only grow; a reader keeps the previous values and
 * subtracts.  Times are CLOCK_MONOTONIC.
 *
 * Writing and reading: the only writer makes "sequence" odd, writes, and makes
 * it even again.  A reader copies between two equal even values, with bounded
 * retries: a probe that died while it wrote must not hang a server.  A probe
 * that starts makes a new file and renames it over the old one; a published
 * file is never made shorter, so that a mapping of it stays good.
 *
 * Trust: reading a mapping of a file that somebody shortens is SIGBUS, so a file
 * is mapped only when its owner is root, the reader itself or the probe's user,
 * and nobody else can write to it.  Who has the probe's user can do worse: its
 * capabilities read all of the kernel's memory.  Values are never trusted; a
 * count of rows is checked before it is used.
 *
 * Needs neither libbpf nor PostgreSQL.  Included by the BPF program, too, for
 * the layout of the counters, and like that file under a choice of licences.
 *
 * SPDX-License-Identifier: PostgreSQL OR GPL-2.0-only
 */
#ifndef KA_PROBE_FILE_H
#define KA_PROBE_FILE_H

#ifdef __bpf__
typedef unsigned char uint8_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long long uint64_t;
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#endif

#define KA_PROBE_USER "kernel_advisor_probe"
#define KA_PROBE_DIRECTORY "/run/kernel_advisor_probe"
#define KA_PROBE_PATH KA_PROBE_DIRECTORY "/counters"

#define KA_PROBE_MAGIC 0x31454c494650414bULL	/* "KAPFILE1" */
#define KA_PROBE_VERSION 1

#define KA_PROBE_ORDERS 16		/* page orders; the last one also has what is above */
#define KA_PROBE_BUCKETS 24		/* of durations: below 1 µs, [1, 2), [2, 4), ... and from 2^22 µs (4.2 s) up */
#define KA_PROBE_RECENT 32		/* seconds for which the longest stall of each is kept */
#define KA_PROBE_GROUPS 128
#define KA_PROBE_PROCESSES 2048

/*
 * The tracepoints: BPF program and tracepoint have the same name.  A bit in
 * KaProbeHeader.sources says that the kernel has it and the probe sees it; the
 * counters of the others stay at zero and mean nothing.
 *	SOURCE(bit, name, subsystem, what is lost without it)
 */
#define KA_PROBE_SOURCES(SOURCE) \
	SOURCE(0, mm_page_pcpu_drain, "kmem", "drained pages") \
	SOURCE(1, mm_compaction_try_to_compact_pages, "compaction", "calls of direct compaction; each zone counts as one") \
	SOURCE(2, mm_compaction_deferred, "compaction", "direct compactions that were put off") \
	SOURCE(3, mm_compaction_begin, "compaction", "compaction") \
	SOURCE(4, mm_compaction_end, "compaction", "compaction") \
	SOURCE(5, mm_compaction_kcompactd_wake, "compaction", "wake-ups of kcompactd") \
	SOURCE(6, mm_vmscan_direct_reclaim_begin, "vmscan", "direct reclaim") \
	SOURCE(7, mm_vmscan_direct_reclaim_end, "vmscan", "direct reclaim") \
	SOURCE(8, mm_page_alloc_extfrag, "kmem", "external fragmentation events") \
	SOURCE(9, sched_process_free, "sched", "ends of processes, so that their rows stay until the probe ends")

typedef enum KaProbeSource
{
#define KA_SOURCE_ENUM(bit, name, subsystem, lost) KA_SOURCE_##name = bit,
	KA_PROBE_SOURCES(KA_SOURCE_ENUM)
#undef KA_SOURCE_ENUM
	KA_SOURCE_COUNT
} KaProbeSource;

/* Where the task was when pages left a per-CPU list. */
typedef enum KaDrain
{
	KA_DRAIN_FREE,				/* freeing pages: a full list gives some back; no stall */
	KA_DRAIN_COMPACTION,		/* inside compaction, which empties the lists of its CPU */
	KA_DRAIN_RECLAIM,			/* inside direct reclaim: the reclaimed pages themselves */
	KA_DRAIN_ALL,				/* right after a direct reclaim that made progress: drain_all_pages() */
	KA_DRAIN_COUNT
} KaDrain;

/* How the compaction of one zone ended. */
typedef enum KaCompactResult
{
	KA_COMPACT_SUCCESS,
	KA_COMPACT_CONTENDED,		/* gave up: lock, need_resched(), signal */
	KA_COMPACT_PARTIAL,			/* part of the zone scanned, nothing found */
	KA_COMPACT_COMPLETE,		/* the whole zone scanned, nothing found */
	KA_COMPACT_OTHER,
	KA_COMPACT_RESULTS
} KaCompactResult;

typedef enum KaReclaimResult
{
	KA_RECLAIM_NOTHING,
	KA_RECLAIM_PROGRESS,
	KA_RECLAIM_RESULTS
} KaReclaimResult;

/*
 *	KIND(enum, name for people)
 * A kind comes from the process's title, which any process can choose: the
 * server that reads the file knows its own processes by PID and parent.
 */
#define KA_PROBE_KINDS(KIND) \
	KIND(KA_KIND_OTHER, "other process") \
	KIND(KA_KIND_KERNEL, "kernel thread") \
	KIND(KA_KIND_CHECKPOINTER, "checkpointer") \
	KIND(KA_KIND_WALWRITER, "walwriter") \
	KIND(KA_KIND_BGWRITER, "background writer") \
	KIND(KA_KIND_BACKEND, "client backend") \
	KIND(KA_KIND_AUTOVACUUM, "autovacuum worker") \
	KIND(KA_KIND_PARALLEL, "parallel worker") \
	KIND(KA_KIND_WALSENDER, "walsender") \
	KIND(KA_KIND_WALRECEIVER, "walreceiver") \
	KIND(KA_KIND_STARTUP, "startup") \
	KIND(KA_KIND_IO_WORKER, "io worker") \
	KIND(KA_KIND_SERVER, "other server process")

typedef enum KaProbeKind
{
#define KA_KIND_ENUM(kind, name) kind,
	KA_PROBE_KINDS(KA_KIND_ENUM)
#undef KA_KIND_ENUM
	KA_KIND_COUNT
} KaProbeKind;

typedef struct KaStall
{
	uint64_t	count;			/* sections between begin and end; compaction has one per zone */
	uint64_t	total_ns;
	uint64_t	longest_ns;		/* of compaction: of a whole call, which may go through several zones */
} KaStall;

/* What is counted of every process, and summed up for its group. */
typedef struct KaProbeCounters
{
	uint64_t	compact_attempts;	/* calls of direct compaction */
	uint64_t	compact_stalls;	/* those that did not skip all zones; close to vmstat's compact_stall */
	KaStall		compaction;		/* direct only */
	KaStall		reclaim;		/* direct only; count is vmstat's allocstall */
	uint64_t	drained_pages[KA_DRAIN_COUNT];
	uint64_t	drain_alls;		/* calls of drain_all_pages() that found pages, about */
	uint64_t	extfrag;		/* allocations from blocks of another mobility */
} KaProbeCounters;

typedef struct KaResult
{
	uint64_t	count;
	uint64_t	total_ns;
} KaResult;

typedef struct KaHistogram
{
	uint64_t	bucket[KA_PROBE_BUCKETS];
} KaHistogram;

/* The machine's totals, by page order. */
typedef struct KaProbeTotals
{
	uint64_t	drained_blocks[KA_PROBE_ORDERS];	/* events of mm_page_pcpu_drain */
	uint64_t	extfrag[KA_PROBE_ORDERS];
	uint64_t	compact_attempts[KA_PROBE_ORDERS];
	uint64_t	compact_stalls[KA_PROBE_ORDERS];
	KaResult	compaction[KA_PROBE_ORDERS][KA_COMPACT_RESULTS];	/* zones, as in KaStall */
	uint64_t	compaction_longest_ns[KA_PROBE_ORDERS];
	KaHistogram compaction_ns[KA_PROBE_ORDERS];
	KaResult	reclaim[KA_PROBE_ORDERS][KA_RECLAIM_RESULTS];
	uint64_t	reclaim_longest_ns[KA_PROBE_ORDERS];
	KaHistogram reclaim_ns[KA_PROBE_ORDERS];
	KaStall		kcompactd;
	uint64_t	kcompactd_wakes;
	KaStall		manual;			/* vm.compact_memory */
} KaProbeTotals;

/* Nothing is lost silently: what was counted, but not where it belongs, or not at all. */
typedef struct KaProbeDropped
{
	uint64_t	processes;		/* times that a process found no free row: counted with kind only */
	uint64_t	groups;			/* processes whose group found no row */
	uint64_t	sections;		/* ends without a begin: a stall not counted */
	uint64_t	events;			/* the kernel did not run the program: it was running on that CPU already */
} KaProbeDropped;

#ifndef __bpf__

/* Longest stalls by second: [s % KA_PROBE_RECENT], where s is heartbeat_ns in seconds. */
typedef struct KaRecent
{
	uint64_t	longest_ns[KA_PROBE_RECENT];
} KaRecent;

/*
 * All processes of one kind, server and cgroup, also those that are gone.  When
 * there are more groups than rows, further ones are counted in the row of their
 * kind with server 0 and cgroup 0 (and in KaProbeDropped).
 */
typedef struct KaProbeGroup
{
	uint32_t	kind;			/* KaProbeKind */
	uint32_t	server_pid;		/* the parent of the server's processes; 0: not of a server */
	uint64_t	cgroup_id;		/* inode of the directory below /sys/fs/cgroup (version 2); 0: several */
	KaProbeCounters counters;
	KaHistogram compaction_ns;
	KaHistogram reclaim_ns;
	KaRecent	compaction_recent;
	KaRecent	reclaim_recent;
} KaProbeGroup;

/* A living process. */
typedef struct KaProbeProcess
{
	uint32_t	pid;			/* in the first PID namespace, the host's */
	uint32_t	parent_pid;
	uint32_t	namespace_pid;	/* what getpid() says; 0: not known */
	uint32_t	pid_namespace;	/* inode of /proc/PID/ns/pid */
	uint64_t	start_ns;		/* CLOCK_BOOTTIME, as field 22 of /proc/PID/stat: tells a reused PID */
	uint64_t	cgroup_id;
	uint32_t	kind;			/* KaProbeKind */
	char		comm[16];
	uint32_t	reserved;
	KaProbeCounters counters;
} KaProbeProcess;

typedef struct KaProbeHeader
{
	uint64_t	magic;
	uint32_t	version;
	uint32_t	size;			/* of the file, bytes */
	uint64_t	sequence;		/* odd while it is written */
	uint64_t	generation;		/* when the probe started, ns: other counters when this is another */
	uint64_t	heartbeat_ns;	/* when it was written last */
	uint32_t	interval_ms;	/* how often it is */
	uint32_t	pid;			/* of the probe */
	uint32_t	sources;		/* bits of KaProbeSource */
	uint32_t	ngroups;
	uint32_t	nprocesses;
	uint32_t	reserved;
	KaProbeDropped dropped;
} KaProbeHeader;

typedef struct KaProbeFile
{
	KaProbeHeader header;
	KaProbeTotals totals;
	KaProbeGroup groups[KA_PROBE_GROUPS];
	KaProbeProcess processes[KA_PROBE_PROCESSES];
} KaProbeFile;

_Static_assert(sizeof(KaProbeCounters) == 112 && sizeof(KaProbeHeader) == 96 && sizeof(KaProbeGroup) == 1024 &&
			   sizeof(KaProbeProcess) == 168 && sizeof(KaProbeTotals) == 8760,
			   "another layout needs another KA_PROBE_VERSION");

extern const char *ka_probe_kind_name(uint32_t kind);
extern const char *ka_probe_source_name(unsigned bit);

/* ---------------------------------------------------------------- reader */

typedef enum KaProbeState
{
	KA_PROBE_OK,
	KA_PROBE_ABSENT,			/* there is no file */
	KA_PROBE_STALE,				/* the heartbeat is old: the probe died or hangs */
	KA_PROBE_REFUSED			/* a file that cannot be the probe's: "problem" says why */
} KaProbeState;

typedef struct KaProbeReader
{
	const KaProbeFile *map;		/* NULL: none */
	dev_t		device;
	ino_t		inode;
	const char *problem;		/* a constant; of the last call that was not OK */
} KaProbeReader;

/*
 * Copies the file at "path" to *copy: header, totals, and the rows that there
 * are.  Maps it when it is not mapped yet; looks at the path again when the
 * heartbeat is old.  Between that there is no system call, unless the probe is
 * just writing.  Takes no lock and no memory but the mapping; waits at most
 * some 10 ms.
 *
 * "now_ns" is CLOCK_MONOTONIC.  With KA_PROBE_STALE the copy is good, but old;
 * with the other two it is undefined.
 */
extern KaProbeState ka_probe_read(KaProbeReader *reader, const char *path, uint64_t now_ns, KaProbeFile *copy);

/* Unmaps.  *reader is as at the beginning, all zeros. */
extern void ka_probe_close(KaProbeReader *reader);

/* Whether a heartbeat is too old: three intervals and two seconds. */
extern bool ka_probe_is_stale(const KaProbeHeader *header, uint64_t now_ns);

/* Of the stalls since "since_ns" (at most KA_PROBE_RECENT - 2 seconds ago) the longest, with the precision of a second. */
extern uint64_t ka_probe_recent(const KaRecent *recent, const KaProbeHeader *header, uint64_t since_ns);

#endif							/* !__bpf__ */

#endif							/* KA_PROBE_FILE_H */
