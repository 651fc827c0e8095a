/*
 * kernel.h: the kernel's files, opened once.
 *
 * Every knob of the table is opened while the daemon starts; afterwards no
 * path of /proc or /sys is ever resolved again.  A knob that the kernel does
 * not have, or that is not writable here, is remembered with its errno.
 * Everything is below a root directory: "" for this machine.
 */
#ifndef KA_KERNEL_H
#define KA_KERNEL_H

#include "knobs.h"
#include "memory.h"

/* More nodes than this keep their pools to themselves. */
#define KA_MAX_NODES 64

typedef struct KaKnobFile
{
	const KaKnob *knob;
	int			node;			/* KA_ALL_NODES, or a node */
	int			fd;				/* -1: cannot be opened at all */
	int			open_error;		/* why not; ENOENT: the kernel has none */
	int			write_error;	/* why not for writing; 0: writable */
	int			surplus_fd;		/* sysfs pools count these pages, too; -1: not a pool */
} KaKnobFile;

typedef struct KaKernel
{
	KaKnobFile *files;
	size_t		nfiles;
	int			meminfo_fd;
	int			buddyinfo_fd;
	int			pagetypeinfo_fd;	/* -1: not readable */
	int			zoneinfo_fd;
	int			vmstat_fd;
	int64_t		page_bytes;		/* base page */
	unsigned char boot_id[16];	/* zeros: unknown */
} KaKernel;

/* 0, or a negative errno: no memory, or /proc/meminfo is not there. */
extern int	ka_kernel_open(KaKernel *kernel, const char *root);
extern void ka_kernel_close(KaKernel *kernel);

/* NULL: there is no such knob or node. */
extern const KaKnobFile *ka_kernel_file(const KaKernel *kernel, uint32_t number, int node);
extern bool ka_kernel_has_node(const KaKernel *kernel, int node);

/*
 * 0, or a negative errno.  A pool's value is its persistent pages, as in
 * /proc/sys: the files in /sys also count the surplus ones.
 */
extern int	ka_kernel_read(const KaKnobFile *file, int64_t *value);

/*
 * Writes with one system call.  The kernel stops growing a pool when a signal
 * is pending, so after time_limit_ms (0: no limit) a timer ends the write; what
 * was granted is seen by reading.  0, or a negative errno.
 */
extern int	ka_kernel_write(const KaKnobFile *file, int64_t value, int time_limit_ms);

extern int	ka_kernel_memory(const KaKernel *kernel, KaMemory *memory);

/* What could be had of pages of this size; false: the files are garbage. */
extern bool ka_kernel_estimate(const KaKernel *kernel, int node, int64_t page_bytes, KaEstimate *estimate);

/* The page size of a pool knob; 0 when the kernel has no huge pages. */
extern int64_t ka_kernel_pool_page_bytes(const KaKernel *kernel, const KaKnob *knob);

/* Monotonic clock. */
extern int64_t ka_now_ms(void);

#endif							/* KA_KERNEL_H */
