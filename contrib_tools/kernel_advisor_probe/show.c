/*
 * show.c: the published file as text, one value or row per line, "name value"
 * or "row key=value ...".  Needs no right but to read the file.
 */
#define _GNU_SOURCE 1

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "probe_file.h"
#include "show.h"

static void
show_stall(const char *prefix, const KaStall *stall)
{
	printf(" %s=%" PRIu64 " %s_ns=%" PRIu64 " %s_longest_ns=%" PRIu64,
		   prefix, stall->count, prefix, stall->total_ns, prefix, stall->longest_ns);
}

static void
show_counters(const KaProbeCounters *counters)
{
	static const char *const drains[] = {"free", "compaction", "reclaim", "all"};

	printf(" compact_attempts=%" PRIu64 " compact_stalls=%" PRIu64, counters->compact_attempts, counters->compact_stalls);
	show_stall("compactions", &counters->compaction);
	show_stall("reclaims", &counters->reclaim);
	for (int i = 0; i < KA_DRAIN_COUNT; i++)
		printf(" drained_%s=%" PRIu64, drains[i], counters->drained_pages[i]);
	printf(" drain_alls=%" PRIu64 " extfrag=%" PRIu64 "\n", counters->drain_alls, counters->extfrag);
}

/* "bucket:count", of those that are not empty; the bucket is its lower end in µs. */
static void
show_histogram(const char *name, const KaHistogram *histogram)
{
	printf(" %s=", name);
	for (int i = 0, n = 0; i < KA_PROBE_BUCKETS; i++)
	{
		if (histogram->bucket[i])
			printf("%s%lu:%" PRIu64, n++ ? "," : "", i == 0 ? 0 : 1UL << (i - 1), histogram->bucket[i]);
	}
}

static void
show_orders(const KaProbeTotals *totals)
{
	static const char *const results[] = {"success", "contended", "partial", "complete", "other"};

	for (int order = 0; order < KA_PROBE_ORDERS; order++)
	{
		printf("order %d drained_blocks=%" PRIu64 " extfrag=%" PRIu64 " compact_attempts=%" PRIu64 " compact_stalls=%" PRIu64,
			   order, totals->drained_blocks[order], totals->extfrag[order],
			   totals->compact_attempts[order], totals->compact_stalls[order]);
		for (int i = 0; i < KA_COMPACT_RESULTS; i++)
			printf(" compaction_%s=%" PRIu64 " compaction_%s_ns=%" PRIu64, results[i], totals->compaction[order][i].count,
				   results[i], totals->compaction[order][i].total_ns);
		printf(" compaction_longest_ns=%" PRIu64 " reclaim_nothing=%" PRIu64 " reclaim_nothing_ns=%" PRIu64
			   " reclaim_progress=%" PRIu64 " reclaim_progress_ns=%" PRIu64 " reclaim_longest_ns=%" PRIu64,
			   totals->compaction_longest_ns[order],
			   totals->reclaim[order][KA_RECLAIM_NOTHING].count, totals->reclaim[order][KA_RECLAIM_NOTHING].total_ns,
			   totals->reclaim[order][KA_RECLAIM_PROGRESS].count, totals->reclaim[order][KA_RECLAIM_PROGRESS].total_ns,
			   totals->reclaim_longest_ns[order]);
		show_histogram("compaction_us", &totals->compaction_ns[order]);
		show_histogram("reclaim_us", &totals->reclaim_ns[order]);
		printf("\n");
	}
	printf("kcompactd wakes=%" PRIu64, totals->kcompactd_wakes);
	show_stall("compactions", &totals->kcompactd);
	printf("\nmanual");
	show_stall("compactions", &totals->manual);
	printf("\n");
}

/* A kind without the space that would end the value. */
static void
show_kind(uint32_t kind)
{
	for (const char *p = ka_probe_kind_name(kind); *p; p++)
		putchar(*p == ' ' ? '_' : *p);
}

static void
show_file(const KaProbeFile *file, uint64_t now_ns, KaProbeState state)
{
	const KaProbeHeader *header = &file->header;

	printf("state %s\npid %u\ngeneration %" PRIu64 "\nheartbeat_ns %" PRIu64 "\nage_ms %" PRIu64 "\ninterval_ms %u\n",
		   state == KA_PROBE_STALE ? "stale" : "ok", header->pid, header->generation, header->heartbeat_ns,
		   now_ns > header->heartbeat_ns ? (now_ns - header->heartbeat_ns) / 1000000 : 0, header->interval_ms);
	printf("dropped_processes %" PRIu64 "\ndropped_groups %" PRIu64 "\ndropped_sections %" PRIu64 "\ndropped_events %" PRIu64 "\n",
		   header->dropped.processes, header->dropped.groups, header->dropped.sections, header->dropped.events);
	for (unsigned i = 0; i < KA_SOURCE_COUNT; i++)
		printf("source %s %s\n", ka_probe_source_name(i), header->sources >> i & 1 ? "on" : "off");
	show_orders(&file->totals);
	for (uint32_t i = 0; i < header->ngroups; i++)
	{
		const KaProbeGroup *group = &file->groups[i];

		printf("group kind=");
		show_kind(group->kind);
		printf(" server=%u cgroup=%" PRIu64, group->server_pid, group->cgroup_id);
		show_histogram("compaction_us", &group->compaction_ns);
		show_histogram("reclaim_us", &group->reclaim_ns);
		printf(" compaction_recent_ns=%" PRIu64 " reclaim_recent_ns=%" PRIu64,
			   ka_probe_recent(&group->compaction_recent, header, 0), ka_probe_recent(&group->reclaim_recent, header, 0));
		show_counters(&group->counters);
	}
	for (uint32_t i = 0; i < header->nprocesses; i++)
	{
		const KaProbeProcess *process = &file->processes[i];

		printf("process pid=%u parent=%u namespace_pid=%u pid_namespace=%u start_ns=%" PRIu64 " cgroup=%" PRIu64 " kind=", process->pid, process->parent_pid,
			   process->namespace_pid, process->pid_namespace,
			   process->start_ns, process->cgroup_id);
		show_kind(process->kind);
		printf(" comm=");
		for (const char *p = process->comm; *p; p++)
			putchar(*p > ' ' && *p < 127 ? *p : '?');	/* a process chooses its name */
		show_counters(&process->counters);
	}
}

int
ka_show(const char *path)
{
	KaProbeReader reader = {0};
	KaProbeFile *copy = malloc(sizeof(*copy));
	struct timespec now;
	uint64_t	now_ns;
	KaProbeState state;

	if (copy == NULL)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
	state = ka_probe_read(&reader, path, now_ns, copy);
	if (state == KA_PROBE_OK || state == KA_PROBE_STALE)
		show_file(copy, now_ns, state);
	else
		fprintf(stderr, "%s: %s\n", path, reader.problem);
	free(copy);
	ka_probe_close(&reader);
	return state == KA_PROBE_OK ? 0 : 1;
}
