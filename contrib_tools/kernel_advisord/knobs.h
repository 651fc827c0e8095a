/*
 * knobs.h: the table of knobs, and the text forms of their values.
 *
 * Constant data and pure functions: shared by the daemon and its clients.
 */
#ifndef KA_KNOBS_H
#define KA_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KA_KF_POOL		1u	/* pages of the huge page pool */
#define KA_KF_SURPLUS		2u	/* limit of pages beyond the pool */
#define KA_KF_ACTION		4u	/* a write does something; there is no value */
#define KA_KF_INTERNAL	8u	/* not for clients */
#define KA_KF_SYSFS		16u /* persisted by tmpfiles.d, not sysctl.d */
#define KA_KF_COMMIT		32u /* moves CommitLimit */
#define KA_KF_NODES		64u /* has a file per memory node as well */

/*
 * KA_HK_ numbers the knobs of the helper, KA_KNOB_ of the core those that the
 * advisor reads.  The pools: a base plus the binary logarithm of the page size.
 */
#define KA_HK_POOL_BASE		100
#define KA_HK_SURPLUS_BASE	200

typedef enum KaKnobNumber
{
	KA_HK_NONE = 0,
#define KNOB(number, symbol, name, path, min, max, ram_percent, unit, flags, words, twin) KA_HK_##symbol = number,
#define POOL(shift, kb) \
	KA_HK_POOL_##kb##KB = KA_HK_POOL_BASE + shift, \
	KA_HK_SURPLUS_##kb##KB = KA_HK_SURPLUS_BASE + shift,
#include "knobs.def"
#undef KNOB
#undef POOL
} KaKnobNumber;

typedef struct KaKnob
{
	uint32_t	number;
	const char *name;
	const char *path;			/* of the machine */
	const char *node_path;		/* with %d for the node, KA_KF_NODES only */
	int64_t		min;
	int64_t		max;
	int			ram_percent;
	const char *unit;
	uint32_t	flags;
	const char *const *words;	/* NULL-terminated, or NULL: a number */
	uint32_t	twin;			/* KA_HK_NONE, or a number */
	int64_t		page_bytes;		/* pools of one size; 0: the default size, or no pool */
} KaKnob;

extern const KaKnob ka_knobs[];
extern const size_t ka_nknobs;

/* Also finds internal ones; NULL: no such knob. */
extern const KaKnob *ka_knob_find(uint32_t number);

/*
 * The knob that the subject of an advice row names, and its node:
 * "vm.swappiness", "thp.enabled", "hugepages-1048576kB.nr_hugepages",
 * "node1.hugepages-2048kB.nr_hugepages".  NULL: not a knob of the helper.
 */
extern const KaKnob *ka_knob_by_subject(const char *subject, int *node);

/*
 * The first line of the kernel's file as a value; -EBADMSG: neither a number
 * that is >= 0 nor a word that is known.  The text need not end with NUL.
 */
extern int	ka_knob_parse(const KaKnob *knob, const char *text, size_t length, int64_t *value);

/* What is written into the file, with a newline; -ERANGE: no such word. */
extern int	ka_knob_format(const KaKnob *knob, int64_t value, char *buffer, size_t size);

/* A decimal number >= 0 without sign; stops at the first other character. */
extern bool ka_parse_number(const char **text, const char *end, int64_t *value);

#endif							/* KA_KNOBS_H */
