/*
 * probe.bpf.c: counts, in the kernel, drains of the per-CPU page lists and the
 * time that processes spend in direct compaction and direct reclaim.
 *
 * One program per tracepoint (tp_btf: the arguments are typed, no kprobe).
 * Nothing is sent to user space per event; see probe_maps.h for the arrays.
 *
 * Constraints:
 * - Drained pages and fragmentation events come under zone->lock with interrupts
 *   off, and there are up to millions a second.  Nothing there may allocate:
 *   all maps are preallocated.  What does not change from one event to the next
 *   (whose record, in which section) is kept in the CPU's slot.
 * - The slot is written by those two programs only: the others may be
 *   interrupted.  A change of a task's section raises "epoch", which makes all
 *   slots look again.
 * - Compaction and reclaim are sections of a task between a begin and an end, and
 *   never nest.  Their state is in "tasks", by thread.  A call of direct
 *   compaction has a beginning but no end in the tracepoints: it ends with
 *   the thread's next call or reclaim.
 * - Only BTF-typed pointers are followed, so that a kernel locked down for
 *   confidentiality runs it as well; the one exception can be switched off.
 *
 * The kernel demands a licence compatible with the GPL: this file, and the
 * headers that it includes from this directory, may be used under the project's
 * licence or under the GPL, version 2.
 *
 * SPDX-License-Identifier: PostgreSQL OR GPL-2.0-only
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "kernel_types.h"
#include "probe_maps.h"

char		licence[] SEC("license") = "Dual BSD/GPL";

/* Position of "order" among the arguments, from the kernel's BTF. */
const volatile unsigned int reclaim_order_argument = 0;
/* Whether calls of direct compaction are seen; otherwise each zone is a call. */
const volatile _Bool sees_calls = 1;
/* Not on a kernel that is locked down for confidentiality. */
const volatile _Bool reads_namespaces = 1;

uint32_t	epoch = 1;
KaProbeTotals totals;
KaProbeDropped dropped;

typedef enum KaSection
{
	SECTION_NONE,
	SECTION_DIRECT,				/* compaction, by the task that wants the pages */
	SECTION_KCOMPACTD,
	SECTION_MANUAL,
	SECTION_RECLAIM
} KaSection;

typedef struct KaTask
{
	uint64_t	begin_ns;
	uint64_t	call_ns;		/* in the sections of this call of direct compaction */
	uint64_t	drain_until_ns;	/* a page that is drained until then is of drain_all_pages() */
	uint32_t	section;		/* KaSection */
	uint32_t	order;
	_Bool		in_call;		/* of direct compaction */
	_Bool		stalled;		/* and that call is counted as a stall */
	_Bool		draining;		/* drain_all_pages() is counted */
} KaTask;

struct
{
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, KA_RECORDS);
	__type(key, uint32_t);
	__type(value, KaRecord);
}			records SEC(".maps");

struct
{
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);		/* set to the number of CPUs before loading */
	__type(key, uint32_t);
	__type(value, KaSlot);
}			slots SEC(".maps");

struct
{
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, KA_RECORDS);
	__type(value, uint32_t);
}			free_records SEC(".maps");

struct
{
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KA_RECORDS);
	__type(key, KaProcessKey);
	__type(value, uint32_t);
}			processes SEC(".maps");

/* The least recently used one goes; if it was in a section, that is counted at its end. */
struct
{
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, uint32_t);
	__type(value, KaTask);
}			tasks SEC(".maps");

/* ---------------------------------------------------------------- small parts */

#define ADD(counter, n) __sync_fetch_and_add(&(counter), (n))

/* In a way that the verifier can follow: the masked register is the index. */
static __always_inline uint32_t
limited(uint32_t order)
{
	if (order >= KA_PROBE_ORDERS)
		order = KA_PROBE_ORDERS - 1;
	barrier_var(order);
	return order & (KA_PROBE_ORDERS - 1);
}

/* Another CPU may raise it at the same time; four of them at once are enough. */
static __always_inline void
raise(uint64_t *maximum, uint64_t value)
{
	for (int i = 0; i < 4; i++)
	{
		uint64_t	seen = *(volatile uint64_t *) maximum;

		if (seen >= value || __sync_val_compare_and_swap(maximum, seen, value) == seen)
			return;
	}
}

/* A global function: the verifier follows its branches once, not once for each caller and all that comes after. */
__noinline uint32_t
log2_us(uint64_t ns)
{
	uint64_t	us = ns / 1000;
	uint32_t	bucket = 0;

#pragma unroll
	for (int shift = 16; shift > 0; shift /= 2)
	{
		if (us >> shift)
		{
			us >>= shift;
			bucket += shift;
		}
	}
	return bucket + (us > 0);
}

static __always_inline uint32_t
bucket_of(uint64_t ns)
{
	uint32_t	bucket = log2_us(ns);

	barrier_var(bucket);
	return bucket < KA_PROBE_BUCKETS ? bucket : KA_PROBE_BUCKETS - 1;
}

static __always_inline KaRecord *
record_at(uint32_t index)
{
	return bpf_map_lookup_elem(&records, &index);
}

/* ---------------------------------------------------------------- whose record */

static __always_inline void
look_at_title(KaRecord *record, struct task_struct *task)
{
	struct mm_struct *mm = task->mm;

	/* The title of this very process: in memory, or it stays as it was. */
	if (mm)
		bpf_probe_read_user(record->title, sizeof(record->title), (void *) mm->arg_start);
}

/*
 * The process's number in its own PID namespace, which is the last of an array
 * whose length only the kernel knows: the one thing that no typed pointer reaches.
 */
static __always_inline void
look_at_namespace(KaRecord *record, struct task_struct *leader)
{
	struct pid *pid;
	unsigned int level;
	struct upid last;

	if (!reads_namespaces)
		return;
	pid = BPF_CORE_READ(leader, thread_pid);
	level = BPF_CORE_READ(pid, level);
	if (bpf_core_read(&last, sizeof(last), &pid->numbers[level]) != 0)
		return;
	record->namespace_pid = last.nr;
	record->pid_namespace = BPF_CORE_READ(last.ns, ns.inum);
}

static __noinline uint32_t
new_record(KaProcessKey *key)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_struct *leader = task->group_leader;
	uint32_t	index;
	KaRecord   *record;

	if (!key || bpf_map_pop_elem(&free_records, &index) != 0)
		return ADD(dropped.processes, 1), KA_RECORD_OVERFLOW;
	record = record_at(index);
	if (!record)
		return KA_RECORD_OVERFLOW;
	if (bpf_map_update_elem(&processes, key, &index, BPF_NOEXIST) != 0)
	{
		/* Another thread of it was faster, or (-EBUSY) this CPU is in the map already. */
		uint32_t   *other = bpf_map_lookup_elem(&processes, key);

		bpf_map_push_elem(&free_records, &index, 0);
		return other ? *other : (ADD(dropped.processes, 1), KA_RECORD_OVERFLOW);
	}
	record->pid = key->pid;
	record->start_ns = key->start_ns;
	record->parent_pid = leader->real_parent->tgid;
	record->cgroup_id = bpf_get_current_cgroup_id();
	__builtin_memcpy(record->comm, leader->comm, sizeof(record->comm));
	look_at_title(record, task);
	look_at_namespace(record, leader);
	record->state = KA_RECORD_USED;
	return index;
}

static __always_inline uint32_t
record_of_current(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	KaProcessKey key = {0};
	uint32_t   *index;

	if (task->flags & PF_KTHREAD)
		return KA_RECORD_KERNEL;
	key.start_ns = task->group_leader->start_boottime;
	key.pid = task->tgid;
	index = bpf_map_lookup_elem(&processes, &key);
	return index ? *index : new_record(&key);
}

/* For events that take long anyway: what may have changed since is read again. */
static __always_inline KaRecord *
record_of_stalled(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t	index = record_of_current();
	KaRecord   *record = record_at(index);

	if (record && index >= KA_RECORD_FIRST)
	{
		record->cgroup_id = bpf_get_current_cgroup_id();
		record->parent_pid = task->group_leader->real_parent->tgid;
		look_at_title(record, task);
	}
	return record;
}

static __always_inline KaTask *
task_of_current(_Bool create)
{
	uint32_t	thread = (uint32_t) bpf_get_current_pid_tgid();
	KaTask	   *task = bpf_map_lookup_elem(&tasks, &thread);

	if (!task && create)
	{
		KaTask		none = {0};

		bpf_map_update_elem(&tasks, &thread, &none, BPF_NOEXIST);
		task = bpf_map_lookup_elem(&tasks, &thread);
	}
	return task;
}

/* ---------------------------------------------------------------- drained pages */

/* What the slot says is not true any more: another task, or another section. */
static __noinline int
look_again(KaSlot *slot)
{
	KaTask	   *task = task_of_current(0);
	KaRecord   *record;
	uint64_t	now_ns;

	if (!slot)
		return 0;
	slot->epoch = *(volatile uint32_t *) &epoch;
	slot->thread = bpf_get_current_pid_tgid();
	slot->record = record_of_current();
	slot->drain = KA_DRAIN_FREE;
	if (!task)
		return 0;
	if (task->section == SECTION_RECLAIM)
		slot->drain = KA_DRAIN_RECLAIM;
	else if (task->section != SECTION_NONE)
		slot->drain = KA_DRAIN_COMPACTION;
	else if (task->drain_until_ns)
	{
		now_ns = bpf_ktime_get_ns();
		if (now_ns > task->drain_until_ns)
		{
			task->drain_until_ns = 0;
			return 0;
		}
		slot->drain = KA_DRAIN_ALL;
		slot->until_ns = now_ns + KA_DRAIN_ALL_GAP_NS;
		task->drain_until_ns = slot->until_ns;
		if (!task->draining)
		{
			task->draining = 1;
			record = record_at(slot->record);
			if (record)
				ADD(record->counters.drain_alls, 1);
		}
	}
	return 0;
}

static __always_inline KaSlot *
slot_of_current(void)
{
	uint32_t	cpu = bpf_get_smp_processor_id();
	KaSlot	   *slot = bpf_map_lookup_elem(&slots, &cpu);

	if (slot && (slot->thread != bpf_get_current_pid_tgid() || slot->epoch != *(volatile uint32_t *) &epoch))
		look_again(slot);
	return slot;
}

SEC("tp_btf/mm_page_pcpu_drain")
int
BPF_PROG(mm_page_pcpu_drain, struct page *page, unsigned int order, int migratetype)
{
	KaSlot	   *slot = slot_of_current();
	KaRecord   *record;

	if (!slot)
		return 0;
	if (slot->drain == KA_DRAIN_ALL)
	{
		uint64_t	now_ns = bpf_ktime_get_ns();

		if (now_ns > slot->until_ns)
			look_again(slot);
		else
			slot->until_ns = now_ns + KA_DRAIN_ALL_GAP_NS;
	}
	order = limited(order);
	slot->drained_blocks[order]++;
	record = record_at(slot->record);
	if (record)
		ADD(record->counters.drained_pages[slot->drain % KA_DRAIN_COUNT], 1ULL << order);
	return 0;
}

SEC("tp_btf/mm_page_alloc_extfrag")
int
BPF_PROG(mm_page_alloc_extfrag, struct page *page, int alloc_order)
{
	KaSlot	   *slot = slot_of_current();
	KaRecord   *record = slot ? record_at(slot->record) : 0;

	ADD(totals.extfrag[limited(alloc_order)], 1);
	if (record)
		ADD(record->counters.extfrag, 1);
	return 0;
}

/* ---------------------------------------------------------------- compaction */

SEC("tp_btf/mm_compaction_try_to_compact_pages")
int
BPF_PROG(mm_compaction_try_to_compact_pages, int order)
{
	KaTask	   *task = task_of_current(1);
	KaRecord   *record = record_at(record_of_current());

	ADD(totals.compact_attempts[limited(order)], 1);
	if (record)
		ADD(record->counters.compact_attempts, 1);
	if (task)
	{
		task->order = limited(order);
		task->in_call = 1;
		task->stalled = 0;
		task->call_ns = 0;
		task->section = SECTION_NONE;
		task->drain_until_ns = 0;
	}
	ADD(epoch, 1);
	return 0;
}

/* The kernel counts a call as a stall unless it skipped all zones. */
static __always_inline void
count_stall(KaTask *task, KaRecord *record)
{
	if (task->stalled)
		return;
	task->stalled = 1;
	ADD(totals.compact_stalls[limited(task->order)], 1);
	if (record)
		ADD(record->counters.compact_stalls, 1);
}

SEC("tp_btf/mm_compaction_deferred")
int
BPF_PROG(mm_compaction_deferred, struct zone *zone, int order)
{
	KaTask	   *task = task_of_current(0);

	/* kcompactd asks, too, and makes no call. */
	if (task && task->in_call)
		count_stall(task, record_at(record_of_current()));
	return 0;
}

SEC("tp_btf/mm_compaction_begin")
int
BPF_PROG(mm_compaction_begin, struct compact_control *cc)
{
	struct task_struct *current = bpf_get_current_task_btf();
	KaTask	   *task = task_of_current(1);

	if (!task)
		return 0;
	if (cc->direct_compaction)
	{
		if (!sees_calls)
		{
			task->order = limited(cc->order);
			task->stalled = 0;
			task->call_ns = 0;
		}
		count_stall(task, record_at(record_of_current()));
		task->section = SECTION_DIRECT;
	}
	else
		task->section = current->flags & PF_KTHREAD ? SECTION_KCOMPACTD : SECTION_MANUAL;
	task->drain_until_ns = 0;
	ADD(epoch, 1);
	task->begin_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline KaCompactResult
result_of(int status)
{
	if (status == (int) bpf_core_enum_value(enum compact_result, COMPACT_SUCCESS))
		return KA_COMPACT_SUCCESS;
	if (status == (int) bpf_core_enum_value(enum compact_result, COMPACT_CONTENDED))
		return KA_COMPACT_CONTENDED;
	if (status == (int) bpf_core_enum_value(enum compact_result, COMPACT_PARTIAL_SKIPPED))
		return KA_COMPACT_PARTIAL;
	if (status == (int) bpf_core_enum_value(enum compact_result, COMPACT_COMPLETE))
		return KA_COMPACT_COMPLETE;
	return KA_COMPACT_OTHER;
}

static __always_inline void
count_section(KaStall *stall, uint64_t ns)
{
	ADD(stall->count, 1);
	ADD(stall->total_ns, ns);
	raise(&stall->longest_ns, ns);
}

SEC("tp_btf/mm_compaction_end")
int
BPF_PROG(mm_compaction_end, struct compact_control *cc, unsigned long start, unsigned long end, _Bool sync, int status)
{
	uint64_t	now_ns = bpf_ktime_get_ns();
	KaTask	   *task = task_of_current(0);
	KaCompactResult result = result_of(status);
	uint32_t	order, section, bucket;
	uint64_t	ns;
	KaRecord   *record;

	if (!task || task->section == SECTION_NONE || task->section == SECTION_RECLAIM)
	{
		ADD(dropped.sections, 1);
		return 0;
	}
	ns = now_ns - task->begin_ns;
	section = task->section;
	task->section = SECTION_NONE;
	ADD(epoch, 1);
	if (section == SECTION_KCOMPACTD)
		return count_section(&totals.kcompactd, ns), 0;
	if (section == SECTION_MANUAL)
		return count_section(&totals.manual, ns), 0;

	order = limited(task->order);
	bucket = bucket_of(ns);
	task->call_ns += ns;
	ADD(totals.compaction[order][result].count, 1);
	ADD(totals.compaction[order][result].total_ns, ns);
	ADD(totals.compaction_ns[order].bucket[bucket], 1);
	raise(&totals.compaction_longest_ns[order], task->call_ns);
	record = record_of_stalled();
	if (record)
	{
		ADD(record->counters.compaction.count, 1);
		ADD(record->counters.compaction.total_ns, ns);
		raise(&record->counters.compaction.longest_ns, task->call_ns);
		ADD(record->compaction_ns[bucket], 1);
	}
	return 0;
}

SEC("tp_btf/mm_compaction_kcompactd_wake")
int
BPF_PROG(mm_compaction_kcompactd_wake)
{
	ADD(totals.kcompactd_wakes, 1);
	return 0;
}

/* ---------------------------------------------------------------- reclaim */

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int
mm_vmscan_direct_reclaim_begin(unsigned long long *ctx)
{
	KaTask	   *task = task_of_current(1);
	/* ctx takes no variable index; only one of these is left in the loaded program. */
	unsigned int order = reclaim_order_argument == 0 ? ctx[0] : ctx[1];

	if (!task)
		return 0;
	task->order = limited(order);
	task->in_call = 0;
	task->section = SECTION_RECLAIM;
	task->drain_until_ns = 0;
	ADD(epoch, 1);
	task->begin_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int
BPF_PROG(mm_vmscan_direct_reclaim_end, unsigned long nr_reclaimed)
{
	uint64_t	now_ns = bpf_ktime_get_ns();
	KaTask	   *task = task_of_current(0);
	KaReclaimResult result = nr_reclaimed > 0 ? KA_RECLAIM_PROGRESS : KA_RECLAIM_NOTHING;
	uint32_t	order, bucket;
	uint64_t	ns;
	KaRecord   *record;

	if (!task || task->section != SECTION_RECLAIM)
	{
		ADD(dropped.sections, 1);
		return 0;
	}
	ns = now_ns - task->begin_ns;
	order = limited(task->order);
	bucket = bucket_of(ns);
	task->section = SECTION_NONE;
	/* The caller drains all lists when there is progress, and still no page to be had. */
	task->draining = 0;
	task->drain_until_ns = nr_reclaimed > 0 ? now_ns + KA_DRAIN_ALL_GAP_NS : 0;
	ADD(epoch, 1);
	ADD(totals.reclaim[order][result].count, 1);
	ADD(totals.reclaim[order][result].total_ns, ns);
	ADD(totals.reclaim_ns[order].bucket[bucket], 1);
	raise(&totals.reclaim_longest_ns[order], ns);
	record = record_of_stalled();
	if (record)
	{
		count_section(&record->counters.reclaim, ns);
		ADD(record->reclaim_ns[bucket], 1);
	}
	return 0;
}

/* ---------------------------------------------------------------- the end of a process */

SEC("tp_btf/sched_process_free")
int
BPF_PROG(sched_process_free, struct task_struct *task)
{
	KaProcessKey key = {0};
	uint32_t   *index;
	KaRecord   *record;

	/* The first thread is freed last. */
	if (task->pid != task->tgid)
		return 0;
	key.start_ns = task->start_boottime;
	key.pid = task->tgid;
	index = bpf_map_lookup_elem(&processes, &key);
	record = index ? record_at(*index) : 0;
	if (record)
		record->state = KA_RECORD_GONE;
	return 0;
}
