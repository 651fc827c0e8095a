/*
 * runs.h: where pages lie in physical memory: runs of page frames, and the
 * folios that they are part of.
 *
 * Pages are given one by one, in the order of the file or of the addresses.
 * Nothing here reads a file: what the kernel says of a page frame comes from a
 * callback.
 */
#ifndef KA_CONTIGUITY_RUNS_H
#define KA_CONTIGUITY_RUNS_H

#include "ka_base.h"

/* In which order page frames follow each other, when that can be said. */
typedef enum KaPfnOrder
{
	KA_PFN_NOTHING,				/* there was nothing to compare */
	KA_PFN_ASCENDING,
	KA_PFN_DESCENDING,
	KA_PFN_SCATTERED,			/* next to each other only by chance */
	KA_PFN_MIXED
} KaPfnOrder;

extern const char *ka_pfn_order_name(KaPfnOrder order); /* "ascending"; NULL for KA_PFN_NOTHING */

/* Which of the three is more than half of all; mixed when none is. */
extern KaPfnOrder ka_pfn_order(int64_t ascending, int64_t descending, int64_t elsewhere);

/* Neighbours in the file whose page frames are neighbours, too. */
typedef struct KaRun
{
	int64_t		index;			/* of the first page, in pages of the file or address space */
	int64_t		pfn;			/* of the first page */
	int64_t		pages;
	int			step;			/* 1, -1, or 0 for a single page */
} KaRun;

typedef struct KaRuns
{
	KaRun	   *run;
	size_t		count;
	size_t		capacity;
} KaRuns;

/* Adds the next page; its index is above that of the last one.  False: no memory. */
extern bool ka_runs_add(KaRuns *runs, int64_t index, int64_t pfn);
extern void ka_runs_free(KaRuns *runs);

typedef struct KaRunSummary
{
	int64_t		runs;
	int64_t		pages;
	int64_t		longest;		/* pages */
	double		mean;			/* pages a run */
	double		median;			/* pages, of the runs */
	int64_t		ascending;		/* pages in runs of two and more */
	int64_t		descending;
	int64_t		single;
	KaPfnOrder	order;
} KaRunSummary;

/* False: no memory for the median. */
extern bool ka_runs_summary(const KaRuns *runs, KaRunSummary *summary);

/* Bits of /proc/kpageflags. */
#define KA_KPF_COMPOUND_HEAD	15
#define KA_KPF_COMPOUND_TAIL	16
#define KA_KPF_HUGE				17
#define KA_KPF_THP				22

/* 2^18 pages of 4 KiB are 1 GiB; arm64 has folios of order 22. */
#define KA_FOLIO_ORDERS 32

typedef struct KaFolio
{
	int64_t		head;			/* PFN */
	int			order;
	bool		hugetlb;
	bool		thp;
} KaFolio;

/* The flags of a page frame; false: not known. */
typedef bool (*KaFlagsOf) (void *ctx, int64_t pfn, uint64_t *flags);

/* The folio of a page frame: one of order 0 when it is not part of a larger one.  False: not known. */
extern bool ka_folio_of(KaFlagsOf flags_of, void *ctx, int64_t pfn, KaFolio *folio);

/*
 * Folios in the order in which they are met.  "after": begins where the one
 * before it ends, which is what a kernel does that hands out blocks in
 * ascending order; "before": ends where that one begins.
 */
typedef struct KaFolios
{
	KaFolio		last;
	int64_t		last_index;
	int64_t		last_pfn;
	bool		any;
	int64_t		pages[KA_FOLIO_ORDERS];
	int64_t		folios[KA_FOLIO_ORDERS];	/* times that one was met */
	int64_t		hugetlb;		/* pages */
	int64_t		thp;			/* pages */
	int64_t		after;
	int64_t		before;
	int64_t		elsewhere;
} KaFolios;

extern void ka_folios_add(KaFolios *folios, int64_t index, int64_t pfn, const KaFolio *folio);

#endif							/* KA_CONTIGUITY_RUNS_H */
