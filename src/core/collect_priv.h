/*
 * collect_priv.h: what the collectors share.
 */
#ifndef KA_COLLECT_PRIV_H
#define KA_COLLECT_PRIV_H

#include "collect.h"
#include "path.h"
#include "scan.h"

/* What a collector returns: false only without memory. */
static inline bool
ka_collected(const KaPath *path, const KaFacts *facts)
{
	return !path->no_memory && !facts->arena->failed;
}

/* "/proc/self" or "/proc/123". */
extern const char *ka_proc_directory(const KaSource *source, char *name, size_t size);

/* The word in brackets of "always [madvise] never", ended with NUL; NULL: none. */
extern const char *ka_bracketed(KaPath *path, const char *name);

/* The page size of the machine, or KA_UNKNOWN when a copy does not tell. */
extern int64_t ka_page_size(KaPath *path);

/* A mount of /proc/PID/mountinfo; spans lie in its text, names are escaped there. */
typedef struct KaMount
{
	int64_t		major,
				minor;
	KaSpan		root;			/* of the mount within its file system */
	KaSpan		point;
	KaSpan		options;		/* of the mount: "ro,nosuid" */
	KaSpan		type;
	KaSpan		source;
	KaSpan		super_options;	/* of the file system */
} KaMount;

extern bool ka_parse_mount(KaSpan line, KaMount *mount);

/* Undoes \040 and the like; false: it does not fit, or has a NUL. */
extern bool ka_unescape(KaSpan span, char *name, size_t size);

/* The mount that holds a resolved name: the last one of the longest mount points. */
extern bool ka_find_mount(KaSpan mountinfo, const char *name, KaMount *mount);

/* Does a comma-separated list hold this word? */
extern bool ka_in_list(KaSpan list, const char *word);

/* Is "name" the directory itself or something below it? */
extern bool ka_is_below(const char *name, const char *directory);

/* "node12" and "hugepages-2048kB": the number between, or KA_UNKNOWN. */
extern int64_t ka_number_within(const char *name, const char *prefix, const char *suffix);

/* Adds the pages that boot settings ask for to the pools (see collect_boot.c). */
extern void ka_mark_asked(KaFacts *facts);

#endif							/* KA_COLLECT_PRIV_H */
