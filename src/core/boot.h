/*
 * boot.h: the languages of the files that set kernel knobs at boot.
 */
#ifndef KA_BOOT_H
#define KA_BOOT_H

#include "facts.h"
#include "scan.h"

/* One line of a sysctl.d file. */
typedef struct KaSysctlLine
{
	char		key[256];		/* as a path below /proc/sys: "vm/nr_hugepages"; may be a pattern */
	bool		pattern;
	bool		assigns;		/* false: "-key", which takes the key out of patterns */
	KaSpan		value;
} KaSysctlLine;

/* False: no setting (a comment, an empty line, not a setting). */
extern bool ka_parse_sysctl_line(KaSpan line, KaSysctlLine *setting);

/* One "w" line of a tmpfiles.d file: text that is written to a file. */
typedef struct KaWriteLine
{
	char		path[256];		/* may be a pattern */
	bool		append;			/* "w+": not suppressed by an earlier line */
	KaSpan		argument;
} KaWriteLine;

extern bool ka_parse_write_line(KaSpan line, KaWriteLine *write);

/* What the kernel command line says about memory. */
typedef struct KaBootArguments
{
	char		thp[16];		/* transparent_hugepage=, "" when absent */
	char		preempt[16];	/* preempt= */
	int64_t		default_size;	/* default_hugepagesz=, bytes */
	KaBootPool	pools[16];		/* hugepages=; size KA_UNKNOWN: the default size */
	int			npools;
	int64_t		sysctl[KA_NSYSCTLS];	/* sysctl.vm.x= */
} KaBootArguments;

extern void ka_parse_cmdline(KaSpan cmdline, KaBootArguments *arguments);

/* A number as the kernel's sysctls take it: decimal, 0x or 0 in front. */
extern bool ka_parse_sysctl_value(KaSpan text, int64_t *value);

#endif							/* KA_BOOT_H */
