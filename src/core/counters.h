/*
 * counters.h: what the sampler reads at every tick.
 *
 * A KaReader keeps its files open and its buffers allocated: after the first
 * reading nothing is allocated.  On this machine /proc/vmstat is read with
 * libproc2, which knows no root directory; with a root (another machine's copy)
 * the core's own key-value reader takes its place.  Totals since boot; the
 * caller computes deltas.
 *
 * What costs is the kernel's printing, so as little as possible is printed:
 * the gauges of /proc/meminfo stand in vmstat as well, and a device's own stat
 * file, unlike /proc/diskstats, costs the same on a machine with 500 disks.
 */
#ifndef KA_COUNTERS_H
#define KA_COUNTERS_H

#include "ka_base.h"

/* Each source of counters fails alone. */
typedef enum KaCounterSource
{
	KA_SRC_VMSTAT,
	KA_SRC_DEVICES,
	KA_SRC_ZONEINFO,
	KA_SRC_BUDDYINFO,
	KA_SRC_PRESSURE,
	KA_SRC_HUGEPAGES,
	KA_NSOURCES
} KaCounterSource;

extern const char *const ka_counter_file[KA_NSOURCES];	/* "/proc/vmstat" ... */

/* KA_UNKNOWN where the kernel or the file has no such field. */
typedef struct KaCounters
{
	/* vmstat, totals since boot */
	int64_t		compact_stall,
				compact_fail,
				compact_success,
				compact_migrate_scanned,
				compact_free_scanned,
				compact_daemon_wake,
				compact_daemon_migrate_scanned,
				allocstall,		/* sum of all zones */
				thp_fault_alloc,
				thp_fault_fallback,
				thp_file_alloc,
				thp_file_fallback;
	/* pressure/memory, totals since boot */
	int64_t		pressure_some_us,
				pressure_full_us;
	/* the watched block devices, totals since boot */
	int64_t		write_ios,
				write_merges,
				write_bytes,
				write_ms,		/* time spent writing */
				io_ms,			/* time doing I/O, devices[0] */
				io_ms_second;	/* the same, devices[1] where it is another one: totals do not tell which is busy now */
	/* gauges */
	int64_t		pcp_pages,		/* zoneinfo: sum of count */
				free_costly_blocks, /* buddyinfo: order >= 4 */
				free_bytes,		/* vmstat, as the next three */
				page_table_bytes,
				dirty_bytes,
				writeback_bytes,
				hugepages_free; /* pages, of the watched size */
	double		unusable_index_order4;	/* -1: unknown */
} KaCounters;

/* Files that a reader keeps open at most: one per source, and a second device. */
#define KA_READER_FILES (KA_NSOURCES + 1)

typedef struct KaReader KaReader;

typedef struct KaReaderConfig
{
	const char *root;			/* "" for this machine */
	int64_t		page_size_bytes;	/* of the copy; 0 on this machine, and for 4 KiB */
	int64_t		hugepage_size_bytes;	/* the watched pool; KA_UNKNOWN: the default size */
	const char *devices[2];		/* names as in /proc/diskstats, NULL: none */
} KaReaderConfig;

/* NULL without memory.  Missing files are no error: see ka_reader_error. */
extern KaReader *ka_reader_new(const KaReaderConfig *config);
extern void ka_reader_free(KaReader *reader);

/* Reads everything; fields of a source that failed are KA_UNKNOWN. */
extern void ka_reader_read(KaReader *reader, KaCounters *out);

/* Reads one source only: for the benchmark's break-down and the tests. */
extern void ka_reader_read_source(KaReader *reader, KaCounterSource source, KaCounters *out);

/* The errno of the last reading of a source (EBADMSG: garbage), 0 when it worked. */
extern int	ka_reader_error(const KaReader *reader, KaCounterSource source);

/* Parsers, exposed for tests and fuzzers; false: garbage.  Text need not end with NUL. */
extern bool ka_parse_zoneinfo(const char *text, size_t length, int64_t *pcp_pages, int64_t *zones);
extern bool ka_parse_buddyinfo(const char *text, size_t length, KaCounters *out);
extern bool ka_parse_pressure(const char *text, size_t length, KaCounters *out);
extern bool ka_parse_vmstat(const char *text, size_t length, int64_t page_size_bytes, KaCounters *out);

/* Adds one device to the fields that are sums; io_ms is set. */
extern bool ka_parse_block_stat(const char *text, size_t length, KaCounters *out);

#endif							/* KA_COUNTERS_H */
