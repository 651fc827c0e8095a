/*
 * machine.h: the kernel's values as the server itself reads them.
 *
 * kernel_advisor.machine_root is for tests: the files of the kernel are taken
 * below it, as from a copy of another machine.  Empty: this machine.
 */
#ifndef KA_MACHINE_H
#define KA_MACHINE_H

#include "collect.h"
#include "kernel_advisord/knobs.h"

/* This machine's files, with the server's directories. */
extern KaSource ka_machine_source(void);

/* A knob's value; 0, or a negative errno. */
extern int	ka_machine_read(const KaKnob *knob, int node, int64 *value);

/* The value as the knob takes it ("500", "madvise"); palloc'd, NULL: none. */
extern char *ka_machine_value_text(const KaKnob *knob, int64 value);

/* "500" or "madvise" as a value; false: not one. */
extern bool ka_machine_parse(const KaKnob *knob, const char *text, int64 *value);

/*
 * What the next boot makes of a knob, as far as the core's reader of the boot
 * settings knows it: the value (KA_UNKNOWN: not set) and the file (NULL: no
 * file).  False: not known.  "facts" has been through ka_machine_collect_boot.
 */
extern void ka_machine_collect_boot(KaFacts *facts, KaArena *arena);
extern bool ka_machine_boot(const KaFacts *facts, const KaKnob *knob, int node,
							const char **value, const char **file);

/*
 * Huge pages for this server: what it needs at its next start with the
 * settings as they are, and what there would be then (free - reserved, and
 * what it holds itself).
 */
typedef struct KaPoolProof
{
	int64		page_bytes;		/* 0: the kernel or the server has no huge pages */
	int64		needed;			/* pages */
	int64		total;			/* pages of the pool */
	int64		free;
	int64		reserved;
	int64		own;			/* pages that this server holds now */
	int64		available;		/* to this server after a restart */
	int64		cgroup_limit_bytes; /* that the cgroup leaves to this server; KA_UNKNOWN: no limit */
	int64		boot;			/* pages that the next boot reserves; KA_UNKNOWN */
	bool		proven;
	const char *problem;		/* why not; palloc'd, NULL when proven */
} KaPoolProof;

extern void ka_machine_prove_pool(KaPoolProof *proof);

#endif							/* KA_MACHINE_H */
