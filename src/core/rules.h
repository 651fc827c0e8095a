/*
 * rules.h: what the rules share: the view of the facts, and how rows are made.
 *
 * A KaView holds what follows from the facts, computed once and before any
 * rule runs, so that no two rules can disagree on it.  Rules only read it.
 *
 * Numbers of pages and bytes saturate at INT64_MAX: legal facts near the end
 * of the range must neither overflow nor wrap.  KA_UNKNOWN is -1 as in the
 * facts.  Rates are -1 when they are not known.
 *
 * No locks: everything belongs to one call of ka_advise.
 */
#ifndef KA_RULES_H
#define KA_RULES_H

#include "advice.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* Thresholds: a table, so that evidence and documentation name them alike. */
typedef enum KaThreshold
{
#define THRESHOLD(symbol, value, unit, formula, source) KA_T_##symbol,
#include "thresholds.def"
#undef THRESHOLD
	KA_NTHRESHOLDS
} KaThreshold;

typedef struct KaThresholdInfo
{
	const char *symbol;
	double		value;
	const char *unit;
	const char *formula;
	const char *source;
} KaThresholdInfo;

extern const KaThresholdInfo ka_threshold_info[KA_NTHRESHOLDS];

#define KA_LIMIT(symbol) (ka_threshold_info[KA_T_##symbol].value)

/* What is known about a question. */
typedef enum KaTri
{
	KA_NO,
	KA_YES,
	KA_MAYBE					/* the facts do not tell */
} KaTri;

/* What the last error of the server was about. */
typedef enum KaFailure
{
	KA_FAIL_NONE,				/* there was none, or nothing can be said */
	KA_FAIL_HUGE,				/* mmap of huge pages refused: no pages */
	KA_FAIL_HUGE_SIZE,			/* mmap of huge pages refused: no such page size */
	KA_FAIL_SIGBUS,				/* a huge page was mapped and could not be had */
	KA_FAIL_SEGMENT,			/* the segment did not fit, on small pages */
	KA_FAIL_SYSV,				/* a System V segment */
	KA_FAIL_DSM,				/* a dynamic segment */
	KA_FAIL_IO_URING,
	KA_FAIL_SIGNAL,				/* killed by another signal */
	KA_FAIL_OTHER				/* another call or errno */
} KaFailure;

typedef struct KaView
{
	const KaFacts *facts;
	KaArena    *arena;

	/* the platform */
	bool		kernel_in_reach;	/* Linux, and its own kernel */
	bool		managed;
	bool		may_set;		/* a kernel knob may be recommended */
	bool		container;
	int			kernel;			/* major * 1000 + minor; 0: not known */
	KaTri		large_folios;	/* data or WAL: file system and kernel write large folios */
	const char *folio_filesystem;	/* the one that does */

	/* the server */
	int64_t		version;		/* server_version_num, or KA_UNKNOWN */
	bool		down;			/* it did not start */
	bool		supports;		/* 9.4 or later, as far as is known */
	bool		running;		/* the facts show that it runs */
	KaTri		asks;			/* huge_pages is not off */
	bool		insists;		/* huge_pages = on */
	bool		mmap;			/* its segment is one that can use huge pages */
	KaFailure	failure;
	int64_t		connections;	/* the larger of max_connections and backends */

	/* shared memory */
	int64_t		shared;			/* B; exact, or a lower bound */
	bool		shared_exact;
	int64_t		shared_plan;	/* B; exact, or an upper estimate from shared_buffers */
	int64_t		base_page;		/* B; the smallest that is possible when not known */
	int64_t		backend_tables; /* B of page tables of a backend that touched all of it */
	int64_t		gain;			/* B of page tables that a pool saves at most */
	KaTri		worth;			/* is a pool worth it? */

	/* huge pages of the size that the server asks for */
	int64_t		default_size;	/* B */
	int64_t		page_size;		/* B */
	bool		default_pool;	/* the knob is vm.nr_hugepages */
	int64_t		need;			/* pages, exact; or KA_UNKNOWN */
	int64_t		need_least;		/* pages, a lower bound; or KA_UNKNOWN */
	int64_t		need_plan;		/* pages to plan with: the server's figure, exact or estimated */
	bool		need_estimated; /* from shared_buffers */
	int64_t		consumers;		/* pages that other programs want */

	/* the pool of that size */
	bool		pool_known;
	int64_t		pool_total,
				pool_free,		/* KA_UNKNOWN where only the total is known */
				pool_reserved,
				pool_room,		/* surplus pages that may still come */
				pool_taken,		/* total - free + reserved, or KA_UNKNOWN */
				pool_capacity,	/* total + room */
				pool_available, /* to this server, its own pages included; or KA_UNKNOWN */
				pool_asked,
				pool_grantable;
	KaTri		on_huge;		/* is the server on huge pages? */
	const char *on_huge_why;	/* how that is known */
	KaTri		enough;			/* pages for this server */
	int64_t		target;			/* pages of the pool that is recommended, or KA_UNKNOWN */
	const KaPool *other_pool;	/* of another size, free and large enough */
	bool		no_such_size;	/* the kernel has no pages of the size that the server asks for */
	bool		cgroup_short;	/* a hugetlb limit is below the need */
	bool		fits;			/* that pool leaves RAM for the rest */
	bool		reserve;		/* a pool is still to be reserved or enlarged */

	/* memory */
	int64_t		total;			/* B of RAM */
	int64_t		pools_bytes;	/* B in all pools */
	double		available_pct;	/* of RAM, or -1 */
	double		tables_pct;		/* of RAM, or -1 */
	bool		exhausted;
	const KaNode *numa;			/* facts->numa, by node */

	/* the window */
	double		seconds;		/* 0: not known */
	double		stall_rate,		/* 1/s */
				reclaim_rate,
				fallback_rate,
				drain_rate;
	double		pressure_pct;	/* of the time: everybody waited for memory; or -1 */
	double		server_compact_pct, /* of the time: this server's processes in direct compaction; or -1: no probe */
				server_stall_pct,	/* the same, and in direct reclaim */
				writers_compact_pct;	/* of the checkpoints' time: checkpointer and walwriter in direct compaction; or -1 */
	double		stall_share;	/* checkpoints' share of stalls / share of time; -1 */
	double		dip;			/* %, or -1000 */
	bool		faults_stall;	/* THP faults may compact by themselves, as far as is known */
	bool		thp_explains;	/* THP fallbacks explain the stalls */
} KaView;

extern void ka_view_init(KaView *view, const KaFacts *facts, KaArena *arena);

/* Parts of it, in the order in which they are computed. */
extern void ka_view_hugepages(KaView *view);

/* Pages of one size that other programs and instances want. */
extern int64_t ka_consumers(const KaView *view, int64_t size_bytes);

/* The memory of a node, or NULL. */
extern const KaNode *ka_node(const KaView *view, int64_t node);

/*
 * Rows.
 */
typedef struct KaRows
{
	const KaView *view;
	KaArena    *arena;
	void		(*interrupt) (void);	/* as in KaAdviceList */
	const char *rule;			/* the one that runs */
	KaAdvice  **rows;			/* pointers: rows never move */
	size_t		count;
	size_t		first;			/* of this rule's own */
} KaRows;

/* In every loop over a list of the facts, which may be long: may not return. */
static inline void
ka_interrupt(const KaRows *rows)
{
	if (rows->interrupt)
		rows->interrupt();
}

/* Does a row of an earlier rule recommend a value of this knob? */
extern bool ka_is_recommended(const KaRows *rows, const char *subject);

/* Starts a row; without memory NULL, which every function below accepts. */
extern KaAdvice *ka_row(KaRows *rows, KaSeverity severity, const char *subject);

extern void ka_reason(KaRows *rows, KaAdvice *row, const char *format,...) KA_PRINTF(3, 4);
extern void ka_current(KaRows *rows, KaAdvice *row, const char *format,...) KA_PRINTF(3, 4);
extern void ka_recommend(KaRows *rows, KaAdvice *row, const char *format,...) KA_PRINTF(3, 4);
extern void ka_command(KaRows *rows, KaAdvice *row, const char *format,...) KA_PRINTF(3, 4);

/* Evidence: a fact when it is known, a number of the rule's own, a threshold. */
extern void ka_saw(KaRows *rows, KaAdvice *row, KaFact fact);
extern void ka_observed(KaRows *rows, KaAdvice *row, const char *name, int64_t value);	/* KA_UNKNOWN: left out */
extern void ka_observed_real(KaRows *rows, KaAdvice *row, const char *name, double value);
extern void ka_observed_text(KaRows *rows, KaAdvice *row, const char *name, const char *value);
extern void ka_limit(KaRows *rows, KaAdvice *row, KaThreshold threshold);
extern void ka_limit_named(KaRows *rows, KaAdvice *row, const char *name, double value);

/* Several facts, several thresholds. */
extern void ka_saw_each(KaRows *rows, KaAdvice *row, const KaFact *facts, size_t count);
extern void ka_limit_each(KaRows *rows, KaAdvice *row, const KaThreshold *thresholds, size_t count);

#define KA_SAW(rows, row, ...) \
	ka_saw_each(rows, row, (const KaFact[]) {__VA_ARGS__}, KA_LENGTH(((const KaFact[]) {__VA_ARGS__})))
#define KA_LIMITS(rows, row, ...) \
	ka_limit_each(rows, row, (const KaThreshold[]) {__VA_ARGS__}, KA_LENGTH(((const KaThreshold[]) {__VA_ARGS__})))

/*
 * What to type.  Each sets current, recommended, command and activation of the
 * row; for a kernel knob recommended and command only where it may be set, in
 * a container with the remark that the host is the place.  A value of
 * KA_UNKNOWN recommends nothing.
 */
extern void ka_set_knob(KaRows *rows, KaAdvice *row, KaSysctl knob, int64_t value);
extern void ka_set_pool(KaRows *rows, KaAdvice *row, int64_t size_bytes, int64_t pages);
extern void ka_set_thp(KaRows *rows, KaAdvice *row, const char *file, KaFact current, const char *value);
extern void ka_set_guc(KaRows *rows, KaAdvice *row, const char *name, const char *current, const char *value,
					   KaActivation activation);

/* A shell command on the host's kernel: dropped or marked as above. */
extern void ka_host_command(KaRows *rows, KaAdvice *row, const char *format,...) KA_PRINTF(3, 4);

/* What keeps a value over a reboot, as a shell command. */
extern const char *ka_persist(const KaRows *rows, KaSysctl knob, int64_t value);

/* Puts a line before the command, when there is one; after the remark on the host. */
extern void ka_command_before(KaRows *rows, KaAdvice *row, const char *line);

/* The evidence that every statement on the server's pool rests on. */
extern void ka_saw_pool(KaRows *rows, KaAdvice *row);

/* "vm.nr_hugepages" for the default size, else "hugepages-1048576kB.nr_hugepages". */
extern const char *ka_pool_subject(const KaView *view, int64_t size_bytes);

/* '16GB': exact, in the largest unit that divides, as PostgreSQL prints a memory setting. */
extern const char *ka_setting(KaArena *arena, int64_t bytes);

/* "6.2 GB": for people. */
extern const char *ka_human(KaArena *arena, int64_t bytes);

/*
 * Arithmetic on numbers that are not negative.
 */
static inline int64_t
ka_add(int64_t a, int64_t b)
{
	int64_t		sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Not below zero. */
static inline int64_t
ka_sub(int64_t a, int64_t b)
{
	return a > b ? a - b : 0;
}

static inline int64_t
ka_mul(int64_t a, int64_t b)
{
	int64_t		product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t
ka_ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

static inline int64_t
ka_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t
ka_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The integer next to a real one, saturating: a plain cast is undefined beyond the range. */
static inline int64_t
ka_round(double value)
{
	if (!(value > 0))
		return 0;
	return value >= 9.2233720368547e18 ? INT64_MAX : (int64_t) (value + 0.5);
}

/* The number, 0 when it is not known. */
static inline int64_t
ka_or_zero(int64_t value)
{
	return value == KA_UNKNOWN ? 0 : value;
}

/* 100 * part / whole, or -1 when one is not known or the whole is 0. */
static inline double
ka_percent(int64_t part, int64_t whole)
{
	return part == KA_UNKNOWN || whole <= 0 ? -1 : 100.0 * (double) part / (double) whole;
}

/* The rules' functions. */
#define RULE(name, function, scope, speaks, source) \
	extern void ka_rule_##function(const KaView *v, KaRows *rows);
#include "rules.def"
#undef RULE

#endif							/* KA_RULES_H */
