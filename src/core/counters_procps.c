/*
 * counters_procps.c: counters from libproc2.
 *
 * Only _select is used: the _get functions answer from a reading that may be a
 * second old.  The library keeps its file open and reuses its memory.
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
#include <unistd.h>

#include <libproc2/vmstat.h>

#include "counters_procps.h"
#include "parse.h"
#include "path.h"

struct KaProcps
{
	struct vmstat_info *vmstat;
	int64_t		page_size_bytes;
	bool		fields_known;
	KaCounters	fields;			/* KA_UNKNOWN: the kernel has no such field */
};

/* Where the result of an item goes.  Rows of one member are added up. */
typedef struct VmstatRow
{
	enum vmstat_item item;
	size_t		offset;			/* in KaCounters */
	bool		pages;			/* the counter has bytes */
} VmstatRow;

static const VmstatRow vmstat_rows[] = {
	{VMSTAT_COMPACT_STALL, offsetof(KaCounters, compact_stall), false},
	{VMSTAT_COMPACT_FAIL, offsetof(KaCounters, compact_fail), false},
	{VMSTAT_COMPACT_SUCCESS, offsetof(KaCounters, compact_success), false},
	{VMSTAT_COMPACT_MIGRATE_SCANNED, offsetof(KaCounters, compact_migrate_scanned), false},
	{VMSTAT_COMPACT_FREE_SCANNED, offsetof(KaCounters, compact_free_scanned), false},
	{VMSTAT_COMPACT_DAEMON_WAKE, offsetof(KaCounters, compact_daemon_wake), false},
	{VMSTAT_COMPACT_DAEMON_MIGRATE_SCANNED, offsetof(KaCounters, compact_daemon_migrate_scanned), false},
	{VMSTAT_ALLOCSTALL_DMA, offsetof(KaCounters, allocstall), false},
	{VMSTAT_ALLOCSTALL_DMA32, offsetof(KaCounters, allocstall), false},
	{VMSTAT_ALLOCSTALL_NORMAL, offsetof(KaCounters, allocstall), false},
	{VMSTAT_ALLOCSTALL_HIGH, offsetof(KaCounters, allocstall), false},
	{VMSTAT_ALLOCSTALL_MOVABLE, offsetof(KaCounters, allocstall), false},
	{VMSTAT_THP_FAULT_ALLOC, offsetof(KaCounters, thp_fault_alloc), false},
	{VMSTAT_THP_FAULT_FALLBACK, offsetof(KaCounters, thp_fault_fallback), false},
	{VMSTAT_THP_FILE_ALLOC, offsetof(KaCounters, thp_file_alloc), false},
	{VMSTAT_THP_FILE_FALLBACK, offsetof(KaCounters, thp_file_fallback), false},
	{VMSTAT_NR_FREE_PAGES, offsetof(KaCounters, free_bytes), true},
	{VMSTAT_NR_PAGE_TABLE_PAGES, offsetof(KaCounters, page_table_bytes), true},
	{VMSTAT_NR_DIRTY, offsetof(KaCounters, dirty_bytes), true},
	{VMSTAT_NR_WRITEBACK, offsetof(KaCounters, writeback_bytes), true},
};

KaProcps *
ka_procps_new(void)
{
	KaProcps   *procps = calloc(1, sizeof(*procps));

	if (procps)
	{
		procps->page_size_bytes = sysconf(_SC_PAGESIZE);
		ka_counters_init(&procps->fields);
	}
	return procps;
}

void
ka_procps_free(KaProcps *procps)
{
	if (procps == NULL)
		return;
	if (procps->vmstat)
		procps_vmstat_unref(&procps->vmstat);
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

/* Finds out which fields the kernel has; 0 or an errno. */
static int
learn_fields(KaProcps *procps)
{
	KaPath		path;
	int			error;

	ka_path_init(&path, "");
	error = -ka_path_read(&path, "/proc/vmstat");
	if (error == 0 && !ka_parse_vmstat(path.text, path.length, procps->page_size_bytes, &procps->fields))
		error = EBADMSG;
	ka_path_free(&path);
	procps->fields_known = error == 0;
	return error;
}

int
ka_procps_vmstat(KaProcps *procps, KaCounters *out)
{
	enum vmstat_item items[KA_LENGTH(vmstat_rows)];
	struct vmstat_stack *stack;

	if (!procps->fields_known)
	{
		int			error = learn_fields(procps);

		if (error != 0)
			return error;
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
		if (vmstat_rows[i].pages)
			value = ka_multiply(value, procps->page_size_bytes);
		*field = *field == KA_UNKNOWN ? value : ka_add(*field, value);
	}
	return 0;
}
