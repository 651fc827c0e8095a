/*
 * tally.c: from the kernel's records to the rows of the published file.
 *
 * A group's counters are sums of differences, so that they keep what processes
 * did that are gone, and a process that changes its title (a backend that has
 * just been forked) counts where it belongs at each time.
 *
 * The BPF programs go on counting meanwhile.  Each counter is read once, whole,
 * and what is added later is seen next time.  "Longest" is taken out of the
 * record (exchanged for 0), so that the longest of each second is known.
 */
#include <string.h>

#include "kinds.h"
#include "tally.h"

#define NS_PER_S UINT64_C(1000000000)

void
ka_tally_start(KaTally *tally, KaProbeFile *file)
{
	memset(tally, 0, sizeof(*tally));
	for (uint32_t kind = 0; kind < KA_KIND_COUNT; kind++)
	{
		file->groups[kind] = (KaProbeGroup) {.kind = kind};
		tally->group_is_alive[kind] = true;
	}
	file->header.ngroups = KA_KIND_COUNT;
}

/* ---------------------------------------------------------------- numbers */

/* The new value goes to *seen, the difference to *sum. */
static void
add_new(const uint64_t *value, uint64_t *seen, uint64_t *sum)
{
	uint64_t	now = __atomic_load_n(value, __ATOMIC_RELAXED);

	*sum += now - *seen;
	*seen = now;
}

static void
add_new_buckets(const uint32_t *buckets, uint32_t *seen, KaHistogram *sum)
{
	for (int i = 0; i < KA_PROBE_BUCKETS; i++)
	{
		uint32_t	now = __atomic_load_n(&buckets[i], __ATOMIC_RELAXED);

		sum->bucket[i] += now - seen[i];	/* right after an overflow as well */
		seen[i] = now;
	}
}

static void
add_new_stall(KaStall *stall, KaStall *seen, KaStall *sum, uint64_t *recent_ns)
{
	uint64_t	longest_ns = __atomic_exchange_n(&stall->longest_ns, 0, __ATOMIC_RELAXED);

	add_new(&stall->count, &seen->count, &sum->count);
	add_new(&stall->total_ns, &seen->total_ns, &sum->total_ns);
	if (longest_ns > seen->longest_ns)
		seen->longest_ns = longest_ns;
	if (longest_ns > sum->longest_ns)
		sum->longest_ns = longest_ns;
	if (longest_ns > *recent_ns)
		*recent_ns = longest_ns;
}

static void
add_new_counters(KaRecord *record, KaSeen *seen, KaProbeGroup *group, uint64_t second)
{
	KaProbeCounters *from = &record->counters;
	KaProbeCounters *sum = &group->counters;

	add_new(&from->compact_attempts, &seen->counters.compact_attempts, &sum->compact_attempts);
	add_new(&from->compact_stalls, &seen->counters.compact_stalls, &sum->compact_stalls);
	add_new_stall(&from->compaction, &seen->counters.compaction, &sum->compaction,
				  &group->compaction_recent.longest_ns[second % KA_PROBE_RECENT]);
	add_new_stall(&from->reclaim, &seen->counters.reclaim, &sum->reclaim,
				  &group->reclaim_recent.longest_ns[second % KA_PROBE_RECENT]);
	for (int i = 0; i < KA_DRAIN_COUNT; i++)
		add_new(&from->drained_pages[i], &seen->counters.drained_pages[i], &sum->drained_pages[i]);
	add_new(&from->drain_alls, &seen->counters.drain_alls, &sum->drain_alls);
	add_new(&from->extfrag, &seen->counters.extfrag, &sum->extfrag);
	add_new_buckets(record->compaction_ns, seen->compaction_ns, &group->compaction_ns);
	add_new_buckets(record->reclaim_ns, seen->reclaim_ns, &group->reclaim_ns);
}

/* ---------------------------------------------------------------- groups */

static void
add_group(const KaProbeGroup *from, KaProbeGroup *to)
{
	KaProbeCounters *sum = &to->counters;
	const KaProbeCounters *more = &from->counters;

	sum->compact_attempts += more->compact_attempts;
	sum->compact_stalls += more->compact_stalls;
	sum->drain_alls += more->drain_alls;
	sum->extfrag += more->extfrag;
	for (int i = 0; i < KA_DRAIN_COUNT; i++)
		sum->drained_pages[i] += more->drained_pages[i];
	for (int i = 0; i < KA_PROBE_BUCKETS; i++)
	{
		to->compaction_ns.bucket[i] += from->compaction_ns.bucket[i];
		to->reclaim_ns.bucket[i] += from->reclaim_ns.bucket[i];
	}
	for (int i = 0; i < 2; i++)
	{
		KaStall    *stall = i == 0 ? &sum->compaction : &sum->reclaim;
		const KaStall *other = i == 0 ? &more->compaction : &more->reclaim;

		stall->count += other->count;
		stall->total_ns += other->total_ns;
		if (other->longest_ns > stall->longest_ns)
			stall->longest_ns = other->longest_ns;
	}
	/* The recent stalls of processes that are gone are old by now. */
}

/* The row of the group; a new one in the place of one without processes, or the kind's own. */
static uint32_t
find_group(KaTally *tally, KaProbeFile *file, KaProbeKind kind, uint32_t server_pid, uint64_t cgroup_id)
{
	uint32_t	row;
	uint32_t	dead = KA_PROBE_GROUPS;

	for (row = KA_KIND_COUNT; row < file->header.ngroups; row++)
	{
		const KaProbeGroup *group = &file->groups[row];

		if (group->kind == kind && group->server_pid == server_pid && group->cgroup_id == cgroup_id)
			return row;
		if (!tally->group_is_alive[row])
			dead = row;
	}
	if (row < KA_PROBE_GROUPS)
		file->header.ngroups++;
	else if (dead < KA_PROBE_GROUPS)
	{
		row = dead;
		add_group(&file->groups[row], &file->groups[file->groups[row].kind]);
	}
	else
		return kind;
	file->groups[row] = (KaProbeGroup) {.kind = kind, .server_pid = server_pid, .cgroup_id = cgroup_id};
	tally->group_is_alive[row] = true;
	return row;
}

static uint32_t
group_of(KaTally *tally, KaProbeFile *file, const KaRecord *record, uint32_t index, KaProbeKind *kind)
{
	char		title[KA_TITLE_LENGTH];
	uint32_t	row;

	*kind = index == KA_RECORD_KERNEL ? KA_KIND_KERNEL : KA_KIND_OTHER;
	if (index < KA_RECORD_FIRST)
		return *kind;
	memcpy(title, record->title, sizeof(title));
	*kind = ka_kind_of_title(title, sizeof(title));
	/* First seen when it freed its memory at its end, and had no title any more. */
	if (title[0] == '\0' && memcmp(record->comm, "postgres", sizeof("postgres")) == 0)
		*kind = KA_KIND_SERVER;
	row = find_group(tally, file, *kind, *kind == KA_KIND_OTHER ? 0 : record->parent_pid, record->cgroup_id);
	if (row < KA_KIND_COUNT && (tally->seen[index].pid != record->pid || tally->seen[index].start_ns != record->start_ns))
		tally->groups_dropped++;
	return row;
}

/* Seconds that passed since have no stall yet. */
static void
advance_recent(KaTally *tally, KaProbeFile *file, uint64_t second)
{
	uint64_t	first = tally->last_second + 1;

	if (second >= KA_PROBE_RECENT && first < second - KA_PROBE_RECENT + 1)
		first = second - KA_PROBE_RECENT + 1;
	for (uint64_t s = first; s <= second; s++)
	{
		for (uint32_t row = 0; row < file->header.ngroups; row++)
		{
			file->groups[row].compaction_recent.longest_ns[s % KA_PROBE_RECENT] = 0;
			file->groups[row].reclaim_recent.longest_ns[s % KA_PROBE_RECENT] = 0;
		}
	}
	tally->last_second = second;
}

/* ---------------------------------------------------------------- all of it */

static void
add_process(KaProbeFile *file, const KaRecord *record, const KaSeen *seen, KaProbeKind kind)
{
	KaProbeProcess *row;

	if (file->header.nprocesses == KA_PROBE_PROCESSES)
		return;					/* there are no more records than rows */
	row = &file->processes[file->header.nprocesses++];
	*row = (KaProbeProcess) {.pid = record->pid, .parent_pid = record->parent_pid, .namespace_pid = record->namespace_pid, .pid_namespace = record->pid_namespace, .start_ns = record->start_ns,
		.cgroup_id = record->cgroup_id, .kind = kind, .counters = seen->counters};
	memcpy(row->comm, record->comm, sizeof(row->comm) - 1);
}

void
ka_tally(KaTally *tally, KaRecord *records, uint64_t now_ns, KaProbeFile *file,
		 bool (*give_back) (void *context, uint32_t index), void *context)
{
	uint64_t	second = now_ns / NS_PER_S;
	bool		alive[KA_PROBE_GROUPS] = {false};

	advance_recent(tally, file, second);
	file->header.nprocesses = 0;
	for (uint32_t index = 0; index < KA_RECORDS; index++)
	{
		KaRecord   *record = &records[index];
		KaSeen	   *seen = &tally->seen[index];
		uint32_t	state = __atomic_load_n(&record->state, __ATOMIC_ACQUIRE);
		KaProbeKind kind;
		uint32_t	row;

		if (state == KA_RECORD_FREE && index >= KA_RECORD_FIRST)
			continue;
		row = group_of(tally, file, record, index, &kind);
		seen->pid = record->pid;
		seen->start_ns = record->start_ns;
		add_new_counters(record, seen, &file->groups[row], second);
		if (index < KA_RECORD_FIRST)
			continue;
		if (state == KA_RECORD_GONE)
		{
			/* It cannot count any more: all of it has been added. */
			if (give_back(context, index))
				memset(seen, 0, sizeof(*seen));
			continue;
		}
		alive[row] = true;
		add_process(file, record, seen, kind);
	}
	for (uint32_t row = KA_KIND_COUNT; row < KA_PROBE_GROUPS; row++)
		tally->group_is_alive[row] = alive[row];
}
