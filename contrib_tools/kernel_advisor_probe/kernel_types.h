/*
 * kernel_types.h: the few members of kernel structures that the BPF program
 * reads, instead of a vmlinux.h of 100 000 lines.
 *
 * With preserve_access_index clang notes the names that are accessed, and
 * libbpf puts in the offsets that these names have in the running kernel's BTF
 * (CO-RE).  So order, offsets and everything left out do not matter.
 *
 * SPDX-License-Identifier: PostgreSQL OR GPL-2.0-only
 */
#ifndef KA_KERNEL_TYPES_H
#define KA_KERNEL_TYPES_H

#define PF_KTHREAD 0x00200000	/* include/linux/sched.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct
{
	unsigned long arg_start;	/* where the process's title is */
	unsigned long arg_end;
};

struct ns_common
{
	unsigned int inum;			/* inode of /proc/PID/ns/pid */
};

struct pid_namespace
{
	struct ns_common ns;
};

struct upid
{
	int			nr;
	struct pid_namespace *ns;
};

struct pid
{
	unsigned int level;
	struct upid numbers[1];		/* [level + 1] */
};

struct task_struct
{
	unsigned int flags;
	int			pid;
	int			tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct mm_struct *mm;
	unsigned long long start_boottime;	/* ns */
	char		comm[16];
};

/* mm/internal.h; an argument of the compaction tracepoints since 5.19. */
struct compact_control
{
	int			order;
	_Bool		direct_compaction;
};

#pragma clang attribute pop

/* The values are put in by libbpf as well. */
enum compact_result
{
	COMPACT_COMPLETE = 5,
	COMPACT_PARTIAL_SKIPPED = 6,
	COMPACT_CONTENDED = 7,
	COMPACT_SUCCESS = 8,
};

struct page;
struct zone;

#endif							/* KA_KERNEL_TYPES_H */
