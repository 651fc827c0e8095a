/*
 * collect.h: facts from the files of a machine.
 *
 * Every path is relative to a root directory ("" for this machine, or a copy
 * of another machine's /proc, /sys, /etc, /run, /usr/lib, /boot).  A file that
 * is missing or unreadable leaves its facts unknown; a file that is garbage
 * does, too.  Nothing raises an error except running out of memory.
 */
#ifndef KA_COLLECT_H
#define KA_COLLECT_H

#include "facts.h"

typedef struct KaSource
{
	const char *root;			/* "" or "/some/copy", without a trailing slash */
	int64_t		pid;			/* whose cgroup and limits: 0 is "self"; with a root, a directory in its /proc */
	const char *data_directory; /* NULL: storage stays unknown; looked up below root */
	const char *wal_directory;	/* NULL: data_directory/pg_wal */
} KaSource;

/* All of the kernel's facts: kernel, memory, hugepages, thp, sysctl, boot, storage, cgroup, numa, fragmentation. */
extern bool ka_collect(KaFacts *facts, const KaSource *source);

/* Its parts, each usable alone; false only without memory. */
extern bool ka_collect_kernel(KaFacts *facts, const KaSource *source);
extern bool ka_collect_memory(KaFacts *facts, const KaSource *source);
extern bool ka_collect_hugepages(KaFacts *facts, const KaSource *source);
extern bool ka_collect_thp(KaFacts *facts, const KaSource *source);
extern bool ka_collect_sysctl(KaFacts *facts, const KaSource *source);
extern bool ka_collect_boot(KaFacts *facts, const KaSource *source);
extern bool ka_collect_storage(KaFacts *facts, const KaSource *source);
extern bool ka_collect_cgroup(KaFacts *facts, const KaSource *source);
extern bool ka_collect_numa(KaFacts *facts, const KaSource *source);
extern bool ka_collect_fragmentation(KaFacts *facts, const KaSource *source);

/*
 * The mapping of a process that holds an address (0: the largest shared
 * mapping that looks like PostgreSQL's: anon_hugepage, /dev/zero, SYSV).
 * Reads /proc/PID/maps, which does not walk page tables.
 */
typedef struct KaMapping
{
	uint64_t	start;			/* address */
	int64_t		bytes;			/* length of the mapping, or KA_UNKNOWN */
	bool		huge;			/* hugetlb memory */
	bool		sysv;			/* a System V segment */
} KaMapping;

extern bool ka_find_mapping(const KaSource *source, uintptr_t address, KaMapping *mapping);

#endif							/* KA_COLLECT_H */
