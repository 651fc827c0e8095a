/*
 * test_tally.c: from records to rows, with records of this process.
 */
#include "ka_test.h"
#include "tally.h"

#define SECOND UINT64_C(1000000000)

static KaProbeFile file;
static KaTally tally;
static KaRecord records[KA_RECORDS];
static uint32_t given_back[KA_RECORDS];
static bool refuses;

static bool
give_back(void *context, uint32_t index)
{
	CHECK(context == &tally);
	if (refuses)
		return false;
	given_back[index]++;
	memset(&records[index], 0, sizeof(records[index]));
	return true;
}

static void
start(void)
{
	memset(&file, 0, sizeof(file));
	memset(records, 0, sizeof(records));
	memset(given_back, 0, sizeof(given_back));
	refuses = false;
	ka_tally_start(&tally, &file);
}

static void
run(uint64_t now_ns)
{
	ka_tally(&tally, records, now_ns, &file, give_back, &tally);
}

static KaRecord *
process(uint32_t index, uint32_t pid, uint32_t parent_pid, uint64_t cgroup_id, const char *title)
{
	KaRecord   *record = &records[index];

	memset(record, 0, sizeof(*record));
	record->state = KA_RECORD_USED;
	record->pid = pid;
	record->parent_pid = parent_pid;
	record->start_ns = pid * SECOND;
	record->cgroup_id = cgroup_id;
	snprintf(record->comm, sizeof(record->comm), "postgres");
	memcpy(record->title, title, strlen(title) < sizeof(record->title) ? strlen(title) : sizeof(record->title));
	return record;
}

static void
stall(KaRecord *record, uint64_t ns)
{
	record->counters.compact_attempts++;
	record->counters.compact_stalls++;
	record->counters.compaction.count++;
	record->counters.compaction.total_ns += ns;
	if (ns > record->counters.compaction.longest_ns)
		record->counters.compaction.longest_ns = ns;
	record->compaction_ns[5]++;
	record->counters.drained_pages[KA_DRAIN_COMPACTION] += 3;
}

static const KaProbeGroup *
group(KaProbeKind kind, uint32_t server_pid, uint64_t cgroup_id)
{
	static const KaProbeGroup none;

	for (uint32_t i = 0; i < file.header.ngroups; i++)
	{
		if (file.groups[i].kind == kind && file.groups[i].server_pid == server_pid && file.groups[i].cgroup_id == cgroup_id)
			return &file.groups[i];
	}
	return &none;
}

TEST(groups_and_rows)
{
	KaRecord   *a, *b, *c;

	start();
	a = process(2, 100, 50, 7, "postgres: checkpointer ");
	b = process(3, 200, 60, 7, "postgres: other: checkpointer ");
	c = process(9, 300, 50, 7, "make -j8");
	stall(a, 1000);
	stall(a, 5000);
	stall(b, 70);
	stall(c, 9);
	stall(&records[KA_RECORD_KERNEL], 11);
	stall(&records[KA_RECORD_OVERFLOW], 13);
	run(100 * SECOND);
	CHECK_INT(file.header.nprocesses, 3);
	CHECK_INT(file.processes[0].pid, 100);
	CHECK_INT(file.processes[0].counters.compaction.longest_ns, 5000);
	CHECK_INT(file.processes[2].kind, KA_KIND_OTHER);
	CHECK_INT(group(KA_KIND_CHECKPOINTER, 50, 7)->counters.compaction.total_ns, 6000);
	CHECK_INT(group(KA_KIND_CHECKPOINTER, 50, 7)->compaction_ns.bucket[5], 2);
	CHECK_INT(group(KA_KIND_CHECKPOINTER, 60, 7)->counters.compaction.count, 1);
	CHECK_INT(group(KA_KIND_OTHER, 0, 7)->counters.compaction.total_ns, 9);
	CHECK_INT(group(KA_KIND_KERNEL, 0, 0)->counters.compaction.total_ns, 11);
	CHECK_INT(group(KA_KIND_OTHER, 0, 0)->counters.compaction.total_ns, 13);

	/* Nothing new: nothing is added. */
	run(101 * SECOND);
	CHECK_INT(group(KA_KIND_CHECKPOINTER, 50, 7)->counters.compaction.total_ns, 6000);
	CHECK_INT(group(KA_KIND_CHECKPOINTER, 50, 7)->counters.drained_pages[KA_DRAIN_COMPACTION], 6);
	CHECK_INT(file.processes[0].counters.compaction.longest_ns, 5000);
	CHECK_INT(a->counters.compaction.longest_ns, 0);	/* taken */

	/* Another process in its place counts from zero; the group keeps what the first one did. */
	a->state = KA_RECORD_GONE;
	stall(a, 200);
	run(102 * SECOND);
	CHECK_INT(given_back[2], 1);
	CHECK_INT(file.header.nprocesses, 2);
	CHECK_INT(group(KA_KIND_CHECKPOINTER, 50, 7)->counters.compaction.total_ns, 6200);
	a = process(2, 101, 50, 7, "postgres: checkpointer ");
	stall(a, 1);
	run(103 * SECOND);
	CHECK_INT(group(KA_KIND_CHECKPOINTER, 50, 7)->counters.compaction.total_ns, 6201);
	CHECK_INT(file.processes[0].counters.compaction.count, 1);
}

/* When giving back fails it is tried again, and nothing is counted twice. */
TEST(not_given_back)
{
	KaRecord   *a;

	start();
	a = process(2, 100, 50, 7, "postgres: walwriter ");
	stall(a, 10);
	a->state = KA_RECORD_GONE;
	refuses = true;
	run(SECOND);
	run(2 * SECOND);
	CHECK_INT(group(KA_KIND_WALWRITER, 50, 7)->counters.compaction.count, 1);
	refuses = false;
	run(3 * SECOND);
	CHECK_INT(given_back[2], 1);
	CHECK_INT(group(KA_KIND_WALWRITER, 50, 7)->counters.compaction.count, 1);
}

/* A backend that was just forked has its parent's title. */
TEST(title_changes)
{
	KaRecord   *a;

	start();
	a = process(2, 100, 50, 7, "/usr/lib/postgresql/15/bin/postgres");
	stall(a, 10);
	run(SECOND);
	snprintf(a->title, sizeof(a->title), "postgres: ann sales [local] idle");
	stall(a, 20);
	run(2 * SECOND);
	CHECK_INT(group(KA_KIND_OTHER, 0, 7)->counters.compaction.total_ns, 10);
	CHECK_INT(group(KA_KIND_BACKEND, 50, 7)->counters.compaction.total_ns, 20);
	CHECK_INT(file.processes[0].counters.compaction.total_ns, 30);
}

/* First seen at its end. */
TEST(no_title)
{
	start();
	stall(process(2, 100, 50, 7, ""), 10);
	stall(process(3, 101, 50, 7, ""), 5);
	snprintf(records[3].comm, sizeof(records[3].comm), "make");
	run(SECOND);
	CHECK_INT(group(KA_KIND_SERVER, 50, 7)->counters.compaction.total_ns, 10);
	CHECK_INT(group(KA_KIND_OTHER, 0, 7)->counters.compaction.total_ns, 5);
}

TEST(recent_stalls)
{
	KaRecord   *a;
	const KaProbeGroup *row;

	start();
	a = process(2, 100, 50, 7, "postgres: walwriter ");
	stall(a, 900);
	run(1000 * SECOND);
	stall(a, 40);
	run(1003 * SECOND);
	stall(a, 30);
	run(1003 * SECOND + 5);
	row = group(KA_KIND_WALWRITER, 50, 7);
	file.header.heartbeat_ns = 1003 * SECOND + 5;
	CHECK_INT(ka_probe_recent(&row->compaction_recent, &file.header, 1000 * SECOND), 900);
	CHECK_INT(ka_probe_recent(&row->compaction_recent, &file.header, 1001 * SECOND), 40);
	/* One round of the ring later the place is another second's. */
	run((1000 + KA_PROBE_RECENT) * SECOND);
	file.header.heartbeat_ns = (1000 + KA_PROBE_RECENT) * SECOND;
	CHECK_INT(ka_probe_recent(&row->compaction_recent, &file.header, 0), 40);
	run(5000 * SECOND);
	file.header.heartbeat_ns = 5000 * SECOND;
	CHECK_INT(ka_probe_recent(&row->compaction_recent, &file.header, 0), 0);
	CHECK_INT(row->counters.compaction.longest_ns, 900);
}

/* Sums by kind stay right whatever becomes of the groups. */
TEST(more_groups_than_rows)
{
	uint64_t	sum = 0;
	uint32_t	n = KA_PROBE_GROUPS + 100;

	start();
	for (uint32_t i = 0; i < n; i++)
		stall(process(KA_RECORD_FIRST + i, 100 + i, 50, 1000 + i, "postgres: ann sales [local] idle"), 10);
	run(SECOND);
	run(2 * SECOND);
	CHECK_INT(file.header.ngroups, KA_PROBE_GROUPS);
	CHECK_INT(tally.groups_dropped, n - (KA_PROBE_GROUPS - KA_KIND_COUNT));
	for (uint32_t i = 0; i < file.header.ngroups; i++)
		sum += file.groups[i].kind == KA_KIND_BACKEND ? file.groups[i].counters.compaction.total_ns : 0;
	CHECK_INT(sum, 10 * n);

	/* All gone: their rows are for others, and what they did is in the kind's row. */
	for (uint32_t i = 0; i < n; i++)
		records[KA_RECORD_FIRST + i].state = KA_RECORD_GONE;
	run(3 * SECOND);
	CHECK_INT(file.header.nprocesses, 0);
	for (uint32_t i = 0; i < 50; i++)
		stall(process(KA_RECORD_FIRST + i, 5000 + i, 50, 9000 + i, "postgres: ann sales [local] idle"), 1);
	run(4 * SECOND);
	CHECK_INT(group(KA_KIND_BACKEND, 50, 9049)->counters.compaction.total_ns, 1);
	sum = 0;
	for (uint32_t i = 0; i < file.header.ngroups; i++)
		sum += file.groups[i].kind == KA_KIND_BACKEND ? file.groups[i].counters.compaction.total_ns : 0;
	CHECK_INT(sum, 10 * n + 50);
	CHECK_INT(tally.groups_dropped, n - (KA_PROBE_GROUPS - KA_KIND_COUNT));
}

/* 32 bits of a bucket overflow, 64 bits of the sum do not. */
TEST(bucket_overflow)
{
	KaRecord   *a;

	start();
	a = process(2, 100, 50, 7, "postgres: walwriter ");
	a->compaction_ns[3] = UINT32_MAX - 1;
	run(SECOND);
	a->compaction_ns[3] += 5;
	run(2 * SECOND);
	CHECK_INT(group(KA_KIND_WALWRITER, 50, 7)->compaction_ns.bucket[3], (uint64_t) UINT32_MAX + 4);
}

TEST(all_records_in_use)
{
	start();
	for (uint32_t i = KA_RECORD_FIRST; i < KA_RECORDS; i++)
		stall(process(i, i, 50, 7, "postgres: ann sales [local] idle"), 1);
	run(SECOND);
	CHECK_INT(file.header.nprocesses, KA_PROBE_PROCESSES);
	CHECK_INT(group(KA_KIND_BACKEND, 50, 7)->counters.compaction.count, KA_PROBE_PROCESSES);
	CHECK_INT(file.processes[KA_PROBE_PROCESSES - 1].pid, KA_RECORDS - 1);
}
