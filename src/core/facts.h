/*
 * facts.h: all that the advisor knows about one machine and one server.
 *
 * Single values live in one array, indexed by KaFact and described by the
 * tables in facts.def and sysctls.def: name, unit, bounds, source.  Lists have
 * structs of their own, in which KA_UNKNOWN stands for an absent number and
 * NULL for an absent text.  A fact that is not known stays unknown; nothing
 * here guesses.
 */
#ifndef KA_FACTS_H
#define KA_FACTS_H

#include "ka_base.h"
#include "ka_json.h"

typedef enum KaType
{
	KA_INT,
	KA_REAL,
	KA_BOOL,
	KA_TEXT,
	KA_ENUM
} KaType;

typedef enum KaFact
{
#define FACT(symbol, path, type, unit, min, max, values, source) KA_##symbol,
#include "facts.def"
#undef FACT
#define SYSCTL(symbol, name, unit, min, max, def, since, reason) KA_SYSCTL_##symbol,
#include "sysctls.def"
#undef SYSCTL
	KA_NFACTS
} KaFact;

typedef enum KaSysctl
{
#define SYSCTL(symbol, name, unit, min, max, def, since, reason) KA_KNOB_##symbol,
#include "sysctls.def"
#undef SYSCTL
	KA_NSYSCTLS
} KaSysctl;

typedef struct KaFactInfo
{
	const char *path;			/* "window.seconds"; a sysctl: "sysctl.vm.x" */
	KaType		type;
	const char *unit;
	int64_t		min,
				max;
	const char *values;			/* KA_ENUM: "a|b|c" */
	const char *source;
} KaFactInfo;

typedef struct KaSysctlInfo
{
	const char *name;			/* "vm.nr_hugepages" */
	const char *unit;
	int64_t		min,
				max,
				def;			/* -1: sized at boot */
	int			since;			/* major * 1000 + minor */
	const char *reason;
} KaSysctlInfo;

extern const KaFactInfo ka_fact_info[KA_NFACTS];
extern const KaSysctlInfo ka_sysctl_info[KA_NSYSCTLS];

typedef struct KaValue
{
	bool		known;
	int64_t		i;				/* KA_INT, KA_BOOL (0 or 1) */
	double		r;				/* KA_INT as well, and KA_REAL */
	const char *s;				/* KA_TEXT, KA_ENUM (one of info->values) */
} KaValue;

typedef struct KaNodePool
{
	int64_t		node;
	int64_t		total,			/* pages */
				free;
} KaNodePool;

typedef struct KaPool
{
	int64_t		size_bytes;
	int64_t		total,			/* pages, surplus included */
				free,
				reserved,
				surplus,
				overcommit,		/* largest allowed surplus */
				asked,			/* what was written, when it was not granted */
				grantable;		/* pages that the kernel could give now */
	KaNodePool *nodes;
	size_t		nnodes;
} KaPool;

typedef struct KaConsumer
{
	const char *what;			/* another program or instance */
	int64_t		size_bytes;		/* of a page; KA_UNKNOWN: the default size */
	int64_t		pages;
} KaConsumer;

typedef struct KaHugetlbLimit
{
	int64_t		size_bytes;
	int64_t		limit_bytes,	/* .max: faults; minimum over all ancestors */
				rsvd_limit_bytes,	/* .rsvd.max: reservations */
				usage_bytes;
	const char *at;				/* the level that sets the minimum */
} KaHugetlbLimit;

typedef struct KaNode
{
	int64_t		node;
	int64_t		total_bytes,
				free_bytes;
} KaNode;

typedef struct KaBootPool
{
	int64_t		size_bytes;
	int64_t		pages;
} KaBootPool;

/* What a reboot will set: from sysctl.d in its order of precedence. */
typedef struct KaBootSysctl
{
	bool		known;			/* the files were looked at */
	int64_t		value;			/* KA_UNKNOWN: no file sets it */
	const char *file;			/* the file that wins, NULL: none */
} KaBootSysctl;

typedef struct KaFacts
{
	KaArena    *arena;
	KaValue		v[KA_NFACTS];
	KaBootSysctl boot[KA_NSYSCTLS];
	bool		boot_thp_known; /* boot.thp_enabled present, even if both are null */
	KaPool	   *pools;
	size_t		npools;
	KaConsumer *consumers;
	size_t		nconsumers;
	KaHugetlbLimit *hugetlb;
	size_t		nhugetlb;
	KaNode	   *numa;
	size_t		nnuma;
	KaBootPool *boot_pools;		/* hugepages= of the kernel command line */
	size_t		nboot_pools;
} KaFacts;

extern void ka_facts_init(KaFacts *facts, KaArena *arena);

/*
 * Setters.  A value outside the bounds of its table row or not in its list of
 * values is not stored: they return false, and the fact stays unknown.
 */
extern bool ka_set_int(KaFacts *facts, KaFact fact, int64_t value);
extern bool ka_set_real(KaFacts *facts, KaFact fact, double value);
extern bool ka_set_bool(KaFacts *facts, KaFact fact, bool value);
extern bool ka_set_text(KaFacts *facts, KaFact fact, const char *value);	/* TEXT and ENUM; copied */

/* A sysctl by its name, or -1. */
extern int	ka_sysctl_by_name(const char *name);

/* Readers. */
static inline bool
ka_known(const KaFacts *facts, KaFact fact)
{
	return facts->v[fact].known;
}

/* The number, or KA_UNKNOWN (a fact of type KA_REAL is truncated). */
static inline int64_t
ka_int(const KaFacts *facts, KaFact fact)
{
	return facts->v[fact].known ? facts->v[fact].i : KA_UNKNOWN;
}

/* The number, or "other" when it is not known. */
static inline double
ka_real(const KaFacts *facts, KaFact fact, double other)
{
	return facts->v[fact].known ? facts->v[fact].r : other;
}

/* The text, or NULL. */
static inline const char *
ka_text(const KaFacts *facts, KaFact fact)
{
	return facts->v[fact].known ? facts->v[fact].s : NULL;
}

/* True when the text is known and equal; an unknown fact is never equal. */
extern bool ka_is(const KaFacts *facts, KaFact fact, const char *value);

/* True when the boolean is known and true. */
static inline bool
ka_yes(const KaFacts *facts, KaFact fact)
{
	return facts->v[fact].known && facts->v[fact].i != 0;
}

/* The pool of one page size, or NULL. */
extern KaPool *ka_pool(const KaFacts *facts, int64_t size_bytes);

/*
 * Facts from JSON events.  Unknown keys are ignored, null is an absent key.  A
 * wrong type, a number outside its bounds, an unknown enum value or an object
 * where a list belongs stops the decoder: "path" then names the key as
 * "hugepages.pools[1].free" and "problem" says what is wrong with it;
 * "syntax" tells a malformed number (22P02) from an illegal value (22023).
 */
typedef struct KaDecoder KaDecoder;

typedef struct KaDecodeError
{
	const char *path;
	const char *problem;
	bool		syntax;
} KaDecodeError;

extern KaDecoder *ka_decoder_new(KaFacts *facts, KaJsonSink *sink);	/* fills the sink; NULL: no memory */

/*
 * A message repeats the first bytes of a foreign text, at most "limit": this
 * function says how many, so that no character is cut in two.  Without it the
 * text is UTF-8, as the tools' are; the server has other encodings as well.
 */
typedef size_t (*KaClip) (const char *text, size_t limit);
extern void ka_decoder_clip(KaDecoder *decoder, KaClip clip);

extern bool ka_decoder_finish(KaDecoder *decoder, KaDecodeError *error);

/* Facts as JSON events, in the order of the tables; absent keys are left out. */
extern bool ka_facts_encode(const KaFacts *facts, const KaJsonSink *sink);

#endif							/* KA_FACTS_H */
