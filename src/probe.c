/*
 * probe.c: the counters of the BPF probe, from its file into samples.
 *
 * The file has the machine's totals and one row for each kind of process of
 * each server (probe_file.h).  Which server is ours is known by the number of
 * its postmaster in the host's PID namespace: our own number, or, in a
 * container, the parent of any row that is a process of ours by its number in
 * our namespace.  Titles of processes decide nothing but which of this server's
 * kinds they are, and those our own server set.
 *
 * Counters belong to one start of the probe.  What it counted between our last
 * look at one and our first at the next is not known: no delta then.
 *
 * A reading is as old as the file: up to the probe's interval.  What was
 * counted after that is in the next one.
 *
 * The sampler keeps the file mapped and a copy of half a megabyte, of which the
 * parts in use are touched; both for as long as it lives.  Others map it for
 * one call.
 */
#include "postgres.h"

#include <sys/stat.h>
#include <time.h>

#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/memutils.h"

#include "guc.h"
#include "probe.h"
#include "shared.h"

StaticAssertDecl(KA_STALL_BUCKETS == KA_PROBE_BUCKETS, "durations are counted in the probe's buckets");

#define FIRST_NAMESPACE 0xEFFFFFFC	/* PROC_PID_INIT_INO: the PID namespace of the host, on every kernel */
#define SOURCE(name) (1U << KA_SOURCE_##name)
#define COMPACTION_SOURCES (SOURCE(mm_compaction_begin) | SOURCE(mm_compaction_end))
#define RECLAIM_SOURCES (SOURCE(mm_vmscan_direct_reclaim_begin) | SOURCE(mm_vmscan_direct_reclaim_end))

/* The tracepoints that a counter needs: without one of them it stays at zero and means nothing. */
static const struct
{
	KaDelta		delta;
	uint32		sources;
	bool		own;			/* of this server's processes only */
}			needs[] = {
	{KA_D_PCP_DRAINS, SOURCE(mm_page_pcpu_drain) | RECLAIM_SOURCES, false},
	{KA_D_PCP_DRAINED_PAGES, SOURCE(mm_page_pcpu_drain) | COMPACTION_SOURCES | RECLAIM_SOURCES, false},
	{KA_D_PCP_DRAIN_ALL_PAGES, SOURCE(mm_page_pcpu_drain) | RECLAIM_SOURCES, false},
	{KA_D_DIRECT_COMPACT_US, COMPACTION_SOURCES, false},
	{KA_D_DIRECT_RECLAIM_US, RECLAIM_SOURCES, false},
	{KA_D_SERVER_COMPACT_US, COMPACTION_SOURCES, true},
	{KA_D_SERVER_RECLAIM_US, RECLAIM_SOURCES, true},
};

/* The probe's kinds as ours, in a server that is ours. */
static const KaWho who_of_kind[KA_KIND_COUNT] = {
	[KA_KIND_OTHER] = KA_WHO_SERVER,
	[KA_KIND_KERNEL] = KA_WHO_KERNEL,
	[KA_KIND_CHECKPOINTER] = KA_WHO_CHECKPOINTER,
	[KA_KIND_WALWRITER] = KA_WHO_WALWRITER,
	[KA_KIND_BGWRITER] = KA_WHO_BGWRITER,
	[KA_KIND_BACKEND] = KA_WHO_BACKEND,
	[KA_KIND_AUTOVACUUM] = KA_WHO_SERVER,
	[KA_KIND_PARALLEL] = KA_WHO_SERVER,
	[KA_KIND_WALSENDER] = KA_WHO_SERVER,
	[KA_KIND_WALRECEIVER] = KA_WHO_SERVER,
	[KA_KIND_STARTUP] = KA_WHO_SERVER,
	[KA_KIND_IO_WORKER] = KA_WHO_SERVER,
	[KA_KIND_SERVER] = KA_WHO_SERVER,
};

/*
 * ----------------------------------------------------------------
 * Reading the file
 * ----------------------------------------------------------------
 */

static uint64
monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64) now.tv_sec * UINT64CONST(1000000000) + now.tv_nsec;
}

/* Into *copy, with a mapping that "reader" keeps. */
static KaProbeState
read_file(KaProbeReader *reader, KaProbeFile *copy)
{
	char		path[MAXPGPATH];

	if (ka_probe_file == NULL || ka_probe_file[0] == '\0')
	{
		ka_probe_close(reader);
		reader->problem = "kernel_advisor.probe_file is empty";
		return KA_PROBE_ABSENT;
	}
	if (snprintf(path, sizeof(path), "%s%s", ka_machine_root, ka_probe_file) >= (int) sizeof(path))
	{
		ka_probe_close(reader);
		reader->problem = "its path is too long";
		return KA_PROBE_REFUSED;
	}
	return ka_probe_read(reader, path, monotonic_ns(), copy);
}

KaProbeFile *
ka_probe_look(KaProbeState *state, const char **problem)
{
	KaProbeReader reader = {0};
	KaProbeFile *copy = palloc(sizeof(KaProbeFile));

	*state = read_file(&reader, copy);
	*problem = *state == KA_PROBE_OK ? NULL : reader.problem;
	ka_probe_close(&reader);
	if (*state == KA_PROBE_OK || *state == KA_PROBE_STALE)
		return copy;
	pfree(copy);
	return NULL;
}

/*
 * ----------------------------------------------------------------
 * Which server is ours
 * ----------------------------------------------------------------
 */

/* The inode of our PID namespace; 0 where there is no /proc. */
static uint64
own_namespace(void)
{
	static uint64 inode = 0;
	struct stat st;

	if (inode == 0 && stat("/proc/self/ns/pid", &st) == 0)
		inode = st.st_ino;
	return inode;
}

static bool
is_own_child(int pid)
{
	return BackendPidGetProc(pid) != NULL || AuxiliaryPidGetProc(pid) != NULL;
}

/* The host's number of our postmaster; "known" is what was found before. */
static uint32
find_server(const KaProbeFile *file, uint32 known)
{
	uint64		inode = own_namespace();

	if (inode == FIRST_NAMESPACE)
		return PostmasterPid;
	for (uint32 i = 0; inode != 0 && known == 0 && i < file->header.nprocesses; i++)
	{
		const KaProbeProcess *process = &file->processes[i];

		if (process->pid_namespace != inode || process->namespace_pid == 0)
			continue;
		if (process->namespace_pid == (uint32) PostmasterPid)
			return process->pid;
		if (is_own_child((int) process->namespace_pid))
			return process->parent_pid;
	}
	return known;
}

int
ka_probe_own_pid(const KaProbeProcess *process, uint32 server_pid)
{
	uint64		inode = own_namespace();

	if (server_pid == 0 || (process->parent_pid != server_pid && process->pid != server_pid))
		return 0;
	/* On a kernel that is locked down the probe knows the host's numbers only. */
	if (inode == FIRST_NAMESPACE)
		return (int) process->pid;
	return process->pid_namespace == inode ? (int) process->namespace_pid : 0;
}

/*
 * ----------------------------------------------------------------
 * Sums
 * ----------------------------------------------------------------
 */

static void
add_stall(KaStallTotal *total, const KaStall *stall, const KaHistogram *histogram, uint64 recent_ns)
{
	total->count += stall->count;
	total->total_ns += stall->total_ns;
	total->longest_ns = Max(total->longest_ns, stall->longest_ns);
	total->recent_ns = Max(total->recent_ns, recent_ns);
	for (int i = 0; i < KA_STALL_BUCKETS; i++)
		total->bucket[i] += histogram->bucket[i];
}

static void
add_group(const KaProbeFile *file, const KaProbeGroup *group, uint64 since_ns, KaProbeReading *reading)
{
	const KaProbeCounters *counters = &group->counters;
	KaWho		who = KA_WHO_OTHER;

	if (group->kind >= KA_KIND_COUNT)
		return;					/* a file is not trusted */
	if (group->kind == KA_KIND_KERNEL)
		who = KA_WHO_KERNEL;
	else if (reading->server_pid != 0 && group->server_pid == reading->server_pid)
		who = who_of_kind[group->kind];
	add_stall(&reading->stalls[who][KA_STALL_COMPACTION], &counters->compaction, &group->compaction_ns,
			  ka_probe_recent(&group->compaction_recent, &file->header, since_ns));
	add_stall(&reading->stalls[who][KA_STALL_RECLAIM], &counters->reclaim, &group->reclaim_ns,
			  ka_probe_recent(&group->reclaim_recent, &file->header, since_ns));

	/* Nobody waits for what kcompactd drains, nor for a list that gives pages back when it is full. */
	if (who == KA_WHO_KERNEL)
		return;
	reading->total[KA_D_PCP_DRAINS] += counters->drain_alls;
	reading->total[KA_D_PCP_DRAIN_ALL_PAGES] += counters->drained_pages[KA_DRAIN_ALL];
	reading->total[KA_D_PCP_DRAINED_PAGES] += counters->drained_pages[KA_DRAIN_COMPACTION] +
		counters->drained_pages[KA_DRAIN_RECLAIM] + counters->drained_pages[KA_DRAIN_ALL];
}

static void
sum_times(const KaProbeFile *file, KaProbeReading *reading)
{
	const KaProbeTotals *totals = &file->totals;
	uint64		compact_ns = 0;
	uint64		reclaim_ns = 0;
	uint64		server_ns[KA_NSTALLS] = {0};

	for (int order = 0; order < KA_PROBE_ORDERS; order++)
	{
		for (int i = 0; i < KA_COMPACT_RESULTS; i++)
			compact_ns += totals->compaction[order][i].total_ns;
		for (int i = 0; i < KA_RECLAIM_RESULTS; i++)
			reclaim_ns += totals->reclaim[order][i].total_ns;
	}
	for (int who = 0; who < KA_WHO_OTHER; who++)
	{
		for (int kind = 0; kind < KA_NSTALLS; kind++)
			server_ns[kind] += reading->stalls[who][kind].total_ns;
	}
	reading->total[KA_D_DIRECT_COMPACT_US] = compact_ns / 1000;
	reading->total[KA_D_DIRECT_RECLAIM_US] = reclaim_ns / 1000;
	reading->total[KA_D_SERVER_COMPACT_US] = server_ns[KA_STALL_COMPACTION] / 1000;
	reading->total[KA_D_SERVER_RECLAIM_US] = server_ns[KA_STALL_RECLAIM] / 1000;
}

void
ka_probe_reading(const KaProbeFile *file, const KaProbeReading *before, KaProbeReading *reading)
{
	bool		goes_on = before != NULL && before->generation == file->header.generation;

	memset(reading, 0, sizeof(*reading));
	reading->good = true;
	reading->generation = file->header.generation;
	reading->heartbeat_ns = file->header.heartbeat_ns;
	reading->interval_ms = file->header.interval_ms;
	reading->server_pid = find_server(file, before ? before->server_pid : 0);
	for (uint32 i = 0; i < file->header.ngroups; i++)
		add_group(file, &file->groups[i], goes_on ? before->heartbeat_ns : 0, reading);
	sum_times(file, reading);

	for (size_t i = 0; i < lengthof(needs); i++)
	{
		if ((file->header.sources & needs[i].sources) != needs[i].sources ||
			(needs[i].own && reading->server_pid == 0))
			reading->total[needs[i].delta] = KA_UNKNOWN;
	}
}

/*
 * ----------------------------------------------------------------
 * Samples
 * ----------------------------------------------------------------
 */

/* Once for each change: a probe that is not there is normal, one that ended or is no probe is not. */
static void
note_state(KaProbeState state, const char *problem)
{
	static KaProbeState noted = KA_PROBE_ABSENT;
	static const char *noted_problem = NULL;

	if (state == noted && problem == noted_problem)
		return;
	if (state == KA_PROBE_REFUSED)
		ereport(LOG,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ignoring kernel_advisor_probe's file \"%s\": %s", ka_probe_file, problem)));
	else if (state == KA_PROBE_STALE || (state == KA_PROBE_ABSENT && noted == KA_PROBE_OK))
		ereport(LOG,
				(errmsg("kernel_advisor_probe does not run any more: %s", problem)));
	else if (state == KA_PROBE_OK)
		ereport(LOG,
				(errmsg("kernel_advisor_probe is running: its counters are read from \"%s\"", ka_probe_file)));
	noted = state;
	noted_problem = problem;
}

/*
 * Is there nothing newer than the reading before?  A probe that loses the CPU
 * in the middle of its writing leaves the file unreadable for a while.  Its
 * counters go on: what is new is in the next reading that succeeds.
 */
static bool
still_good(const KaProbeReading *before, KaProbeState state)
{
	KaProbeHeader header = {.heartbeat_ns = before->heartbeat_ns,.interval_ms = before->interval_ms};

	return state == KA_PROBE_REFUSED && before->good && !ka_probe_is_stale(&header, monotonic_ns());
}

void
ka_probe_sample(const KaProbeReading *before, KaProbeReading *now)
{
	static KaProbeReader reader;
	static KaProbeFile *copy = NULL;
	static char *path = NULL;
	KaProbeState state;

	if (copy == NULL)
		copy = MemoryContextAlloc(TopMemoryContext, sizeof(KaProbeFile));

	/* The setting was changed: the mapping is of the old file. */
	if (path == NULL || strcmp(path, ka_probe_file) != 0)
	{
		ka_probe_close(&reader);
		if (path != NULL)
			pfree(path);
		path = MemoryContextStrdup(TopMemoryContext, ka_probe_file);
	}

	state = read_file(&reader, copy);
	if (still_good(before, state))
	{
		*now = *before;
		return;
	}
	note_state(state, state == KA_PROBE_OK ? NULL : reader.problem);
	if (state == KA_PROBE_OK)
		ka_probe_reading(copy, before, now);
	else
	{
		memset(now, 0, sizeof(*now));
		now->server_pid = before->server_pid;
	}

	if (now->server_pid != 0)
	{
		SpinLockAcquire(&ka_shared->mutex);
		ka_shared->probe_server_pid = now->server_pid;
		SpinLockRelease(&ka_shared->mutex);
	}
}

/* False when a counter went backwards: its group was given up, and added to the others. */
static bool
stall_delta(const KaStallTotal *before, const KaStallTotal *now, KaStallSum *sum)
{
	uint64		count = now->count - before->count;
	uint64		total_ns = now->total_ns - before->total_ns;

	if (now->count < before->count || now->total_ns < before->total_ns)
		return false;
	sum->count = (uint32) Min(count, PG_UINT32_MAX);
	sum->total_us = now->total_ns / 1000 - before->total_ns / 1000;
	/* To the second at best, so that an older one may be in it; all of the new ones together bound it. */
	sum->longest_us = count == 0 ? 0 : (uint32) Min(Min(now->recent_ns, total_ns) / 1000, PG_UINT32_MAX);
	for (int i = 0; i < KA_STALL_BUCKETS; i++)
	{
		if (now->bucket[i] < before->bucket[i])
			return false;
		sum->bucket[i] = (uint32) Min(now->bucket[i] - before->bucket[i], PG_UINT32_MAX);
	}
	return true;
}

void
ka_probe_delta(const KaProbeReading *before, const KaProbeReading *now, KaSample *sample, KaStalls *stalls)
{
	bool		comparable = before->good && now->good && before->generation == now->generation;

	memset(stalls, 0, sizeof(*stalls));
	for (size_t i = 0; i < lengthof(needs); i++)
	{
		KaDelta		delta = needs[i].delta;
		int64		first = before->total[delta];
		int64		last = now->total[delta];

		sample->delta[delta] = comparable && first != KA_UNKNOWN && last != KA_UNKNOWN && last >= first &&
			(!needs[i].own || before->server_pid == now->server_pid) ? last - first : KA_UNKNOWN;
	}

	/* Without the number of our postmaster nobody can be told apart. */
	if (!comparable || now->server_pid == 0 || before->server_pid != now->server_pid ||
		now->total[KA_D_DIRECT_COMPACT_US] == KA_UNKNOWN || now->total[KA_D_DIRECT_RECLAIM_US] == KA_UNKNOWN)
		return;
	stalls->known = 1;
	for (int who = 0; who < KA_NWHOS && stalls->known; who++)
	{
		for (int kind = 0; kind < KA_NSTALLS && stalls->known; kind++)
		{
			if (!stall_delta(&before->stalls[who][kind], &now->stalls[who][kind], &stalls->by[who][kind]))
				memset(stalls, 0, sizeof(*stalls));
		}
	}
}

/*
 * ----------------------------------------------------------------
 * The row of the view status
 * ----------------------------------------------------------------
 */

#define PROBE_COLUMNS "pcp_drains, pcp_drained_pages, direct_compact_us, direct_reclaim_us, server_compact_us, server_reclaim_us"

static const char *
running_detail(const KaProbeFile *file)
{
	const KaProbeHeader *header = &file->header;
	KaProbeReading reading;
	StringInfoData detail;
	const char *separator = "; this kernel has no tracepoint ";

	ka_probe_reading(file, NULL, &reading);
	initStringInfo(&detail);
	appendStringInfo(&detail, "PID %u, publishes every %u ms, %u processes", header->pid, header->interval_ms, header->nprocesses);
	for (int i = 0; i < KA_SOURCE_COUNT; i++)
	{
		if (header->sources & (1U << i))
			continue;
		appendStringInfo(&detail, "%s%s", separator, ka_probe_source_name(i));
		separator = ", ";
	}
	if (header->dropped.processes || header->dropped.groups || header->dropped.sections || header->dropped.events)
		appendStringInfo(&detail, "; not told apart or not counted: " UINT64_FORMAT " processes, " UINT64_FORMAT " groups, "
						 UINT64_FORMAT " stalls, " UINT64_FORMAT " events",
						 header->dropped.processes, header->dropped.groups, header->dropped.sections, header->dropped.events);
	if (reading.server_pid == 0)
		appendStringInfoString(&detail, "; none of its processes is one of this server yet");
	return detail.data;
}

void
ka_probe_status(const char **state, const char **detail, const char **hint)
{
	KaProbeState found;
	const char *problem;
	KaProbeFile *file = ka_probe_look(&found, &problem);

	*hint = NULL;
	switch (found)
	{
		case KA_PROBE_OK:
			*state = "running";
			*detail = running_detail(file);
			break;
		case KA_PROBE_ABSENT:
			*state = "absent";
			*hint = "Build and install it (make probe, make install-probe), then: systemctl enable --now kernel_advisor_probe.";
			break;
		case KA_PROBE_STALE:
			*state = "stale";
			*hint = "Start it again: systemctl restart kernel_advisor_probe; its log says why it ended.";
			break;
		case KA_PROBE_REFUSED:
			*state = "refused";
			*hint = "The file must be that of a probe of this version, owned by root or kernel_advisor_probe; see kernel_advisor.probe_file.";
			break;
	}
	if (found != KA_PROBE_OK)
		*detail = psprintf("%s; these columns stay null: %s", problem, PROBE_COLUMNS);
	if (file != NULL)
		pfree(file);
}
