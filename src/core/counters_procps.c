/*
 * counters_procps.c: counters from libproc2.
 *
 * Only the _select and _reap functions are used: the _get functions answer
 * from a reading that may be a second old.  The library keeps its files open and
 * reuses its memory.
 *
 * It answers 0 for a field that the kernel does not have.  Which fields exist
 * cannot change before the next boot, so the core's own parser looks once, and
 * its KA_UNKNOWN stands for good.
 *
 * Locks: none; one KaProcps belongs to one thread.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libproc2/diskstats.h>
#include <libproc2/meminfo.h>
#include <libproc2/vmstat.h>

#include "counters_procps.h"
#include "parse.h"
#include "path.h"

struct KaProcps
{
	struct vmstat_info *vmstat;
	struct meminfo_info *meminfo;
	struct diskstats_info *diskstats;
	bool		vmstat_fields_known;
	bool		meminfo_fields_known;
	KaCounters	fields;			/* KA_UNKNOWN: the kernel has no such field */
};

/* Where the result of an item goes.  Rows of one member are added up. */
typedef struct VmstatRow
{
	enum vmstat_item item;
	size_t		offset;			/* in KaCounters */
} VmstatRow;

static const VmstatRow vmstat_rows[] = {
	{VMSTAT_COMPACT_STALL, offsetof(KaCounters, compact_stall)},
	{VMSTAT_COMPACT_FAIL, offsetof(KaCounters, compact_fail)},
	{VMSTAT_COMPACT_SUCCESS, offsetof(KaCounters, compact_success)},
	{VMSTAT_COMPACT_MIGRATE_SCANNED, offsetof(KaCounters, compact_migrate_scanned)},
	{VMSTAT_COMPACT_FREE_SCANNED, offsetof(KaCounters, compact_free_scanned)},
	{VMSTAT_COMPACT_DAEMON_WAKE, offsetof(KaCounters, compact_daemon_wake)},
	{VMSTAT_COMPACT_DAEMON_MIGRATE_SCANNED, offsetof(KaCounters, compact_daemon_migrate_scanned)},
	{VMSTAT_ALLOCSTALL_DMA, offsetof(KaCounters, allocstall)},
	{VMSTAT_ALLOCSTALL_DMA32, offsetof(KaCounters, allocstall)},
	{VMSTAT_ALLOCSTALL_NORMAL, offsetof(KaCounters, allocstall)},
	{VMSTAT_ALLOCSTALL_HIGH, offsetof(KaCounters, allocstall)},
	{VMSTAT_ALLOCSTALL_MOVABLE, offsetof(KaCounters, allocstall)},
	{VMSTAT_THP_FAULT_ALLOC, offsetof(KaCounters, thp_fault_alloc)},
	{VMSTAT_THP_FAULT_FALLBACK, offsetof(KaCounters, thp_fault_fallback)},
	{VMSTAT_THP_FILE_ALLOC, offsetof(KaCounters, thp_file_alloc)},
	{VMSTAT_THP_FILE_FALLBACK, offsetof(KaCounters, thp_file_fallback)},
};

typedef struct MeminfoRow
{
	enum meminfo_item item;		/* in KiB */
	size_t		offset;
} MeminfoRow;

static const MeminfoRow meminfo_rows[] = {
	{MEMINFO_MEM_FREE, offsetof(KaCounters, free_bytes)},
	{MEMINFO_MEM_PAGE_TABLES, offsetof(KaCounters, page_table_bytes)},
	{MEMINFO_MEM_DIRTY, offsetof(KaCounters, dirty_bytes)},
	{MEMINFO_MEM_WRITEBACK, offsetof(KaCounters, writeback_bytes)},
};

KaProcps *
ka_procps_new(void)
{
	KaProcps   *procps = calloc(1, sizeof(*procps));

	if (procps)
		ka_counters_init(&procps->fields);
	return procps;
}

void
ka_procps_free(KaProcps *procps)
{
	if (procps == NULL)
		return;
	if (procps->vmstat)
		procps_vmstat_unref(&procps->vmstat);
	if (procps->meminfo)
		procps_meminfo_unref(&procps->meminfo);
	if (procps->diskstats)
		procps_diskstats_unref(&procps->diskstats);
	free(procps);
}

static int64_t
to_count(unsigned long value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t) value;
}

static int64_t *
member(const KaCounters *counters, size_t offset)
{
	return (int64_t *) ((char *) counters + offset);
}

/* Finds out which fields a file has; 0 or an errno. */
static int
learn_fields(const char *name, bool (*parse) (const char *, size_t, KaCounters *), KaCounters *fields)
{
	KaPath		path;
	int			error;

	ka_path_init(&path, "");
	error = -ka_path_read(&path, name);
	if (error == 0 && !parse(path.text, path.length, fields))
		error = EBADMSG;
	ka_path_free(&path);
	return error;
}

int
ka_procps_vmstat(KaProcps *procps, KaCounters *out)
{
	enum vmstat_item items[KA_LENGTH(vmstat_rows)];
	struct vmstat_stack *stack;

	if (!procps->vmstat_fields_known)
	{
		int			error = learn_fields("/proc/vmstat", ka_parse_vmstat, &procps->fields);

		if (error != 0)
			return error;
		procps->vmstat_fields_known = true;
	}
	if (procps->vmstat == NULL)
	{
		int			error = procps_vmstat_new(&procps->vmstat);

		if (error < 0)
		{
			procps->vmstat = NULL;
			return -error;
		}
	}

	for (size_t i = 0; i < KA_LENGTH(vmstat_rows); i++)
		items[i] = vmstat_rows[i].item;
	errno = 0;
	stack = procps_vmstat_select(procps->vmstat, items, KA_LENGTH(items));
	if (stack == NULL)
	{
		int			error = errno ? errno : EIO;

		procps_vmstat_unref(&procps->vmstat);
		return error;
	}

	for (size_t i = 0; i < KA_LENGTH(vmstat_rows); i++)
	{
		int64_t		value = to_count(stack->head[i].result.ul_int);
		int64_t    *field = member(out, vmstat_rows[i].offset);

		if (*member(&procps->fields, vmstat_rows[i].offset) == KA_UNKNOWN)
			continue;
		*field = *field == KA_UNKNOWN ? value : ka_add(*field, value);
	}
	return 0;
}

int
ka_procps_meminfo(KaProcps *procps, KaCounters *out)
{
	enum meminfo_item items[KA_LENGTH(meminfo_rows)];
	struct meminfo_stack *stack;

	if (!procps->meminfo_fields_known)
	{
		int			error = learn_fields("/proc/meminfo", ka_parse_meminfo, &procps->fields);

		if (error != 0)
			return error;
		procps->meminfo_fields_known = true;
	}
	if (procps->meminfo == NULL)
	{
		int			error = procps_meminfo_new(&procps->meminfo);

		if (error < 0)
		{
			procps->meminfo = NULL;
			return -error;
		}
	}

	for (size_t i = 0; i < KA_LENGTH(meminfo_rows); i++)
		items[i] = meminfo_rows[i].item;
	errno = 0;
	stack = procps_meminfo_select(procps->meminfo, items, KA_LENGTH(items));
	if (stack == NULL)
	{
		int			error = errno ? errno : EIO;

		procps_meminfo_unref(&procps->meminfo);
		return error;
	}

	for (size_t i = 0; i < KA_LENGTH(meminfo_rows); i++)
	{
		if (*member(&procps->fields, meminfo_rows[i].offset) != KA_UNKNOWN)
			*member(out, meminfo_rows[i].offset) =
				ka_multiply(to_count(stack->head[i].result.ul_int), 1024);
	}
	return 0;
}

/* In the order of the results below. */
enum
{
	DISK_NAME,
	DISK_WRITES,
	DISK_MERGES,
	DISK_SECTORS,
	DISK_MS,
	DISK_IO_MS,
	DISK_ITEMS
};

/* The device's results, or NULL. */
static const struct diskstats_result *
find_device(const struct diskstats_reaped *reaped, const char *name)
{
	for (int i = 0; i < reaped->total; i++)
	{
		const struct diskstats_result *results = reaped->stacks[i]->head;

		if (strcmp(results[DISK_NAME].result.str, name) == 0)
			return results;
	}
	return NULL;
}

/*
 * All devices come from one reading, so that two of them cost as much as one.
 * The library keeps a device that has gone, with its last numbers: it then
 * looks idle (libproc2 4.0.2).
 */
int
ka_procps_diskstats(KaProcps *procps, const char *const devices[2], KaCounters *out)
{
	static const enum diskstats_item items[DISK_ITEMS] = {
		[DISK_NAME] = DISKSTATS_NAME,
		[DISK_WRITES] = DISKSTATS_WRITES,
		[DISK_MERGES] = DISKSTATS_WRITES_MERGED,
		[DISK_SECTORS] = DISKSTATS_WRITE_SECTORS,
		[DISK_MS] = DISKSTATS_WRITE_TIME,
		[DISK_IO_MS] = DISKSTATS_IO_TIME,
	};
	struct diskstats_reaped *reaped;
	KaCounters	sum = {.io_ms = KA_UNKNOWN,.io_ms_second = KA_UNKNOWN};
	bool		any = false;

	if (procps->diskstats == NULL)
	{
		int			error = procps_diskstats_new(&procps->diskstats);

		if (error < 0)
		{
			procps->diskstats = NULL;
			return -error;
		}
	}

	/* The library does not write to the items, though it does not say const. */
	errno = 0;
	reaped = procps_diskstats_reap(procps->diskstats, (enum diskstats_item *) items, DISK_ITEMS);
	if (reaped == NULL)
	{
		int			error = errno ? errno : EIO;

		procps_diskstats_unref(&procps->diskstats);
		return error;
	}

	for (int i = 0; i < 2; i++)
	{
		const struct diskstats_result *device;

		if (devices[i] == NULL || (i == 1 && devices[0] && strcmp(devices[0], devices[1]) == 0))
			continue;
		device = find_device(reaped, devices[i]);
		if (device == NULL)
			return ENODEV;
		sum.write_ios = ka_add(sum.write_ios, to_count(device[DISK_WRITES].result.ul_int));
		sum.write_merges = ka_add(sum.write_merges, to_count(device[DISK_MERGES].result.ul_int));
		sum.write_bytes = ka_add(sum.write_bytes,
								 ka_multiply(to_count(device[DISK_SECTORS].result.ul_int), 512));
		sum.write_ms = ka_add(sum.write_ms, to_count(device[DISK_MS].result.ul_int));
		*(i == 0 ? &sum.io_ms : &sum.io_ms_second) = to_count(device[DISK_IO_MS].result.ul_int);
		any = true;
	}
	if (!any)
		return ENODEV;
	out->write_ios = sum.write_ios;
	out->write_merges = sum.write_merges;
	out->write_bytes = sum.write_bytes;
	out->write_ms = sum.write_ms;
	out->io_ms = sum.io_ms;
	out->io_ms_second = sum.io_ms_second;
	return 0;
}
