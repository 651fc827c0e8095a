/*
 * runs.c: runs of page frames, and folios.
 *
 * Invariants: runs do not overlap and are in the order of the file; a run of
 * one page has step 0, every other one step 1 or -1.
 *
 * Locks: none.
 */
#include <stdlib.h>

#include "runs.h"

#define FIRST_RUNS 1024

const char *
ka_pfn_order_name(KaPfnOrder order)
{
	static const char *const names[] = {
		[KA_PFN_NOTHING] = NULL,
		[KA_PFN_ASCENDING] = "ascending",
		[KA_PFN_DESCENDING] = "descending",
		[KA_PFN_SCATTERED] = "scattered",
		[KA_PFN_MIXED] = "mixed",
	};

	return names[order];
}

KaPfnOrder
ka_pfn_order(int64_t ascending, int64_t descending, int64_t elsewhere)
{
	int64_t		half = (ascending + descending + elsewhere) / 2;

	if (ascending + descending + elsewhere == 0)
		return KA_PFN_NOTHING;
	return ascending > half ? KA_PFN_ASCENDING :
		descending > half ? KA_PFN_DESCENDING :
		elsewhere > half ? KA_PFN_SCATTERED : KA_PFN_MIXED;
}

bool
ka_runs_add(KaRuns *runs, int64_t index, int64_t pfn)
{
	KaRun	   *last = runs->count > 0 ? &runs->run[runs->count - 1] : NULL;

	if (last && index == last->index + last->pages)
	{
		int64_t		step = pfn - (last->pfn + last->step * (last->pages - 1));

		if ((step == 1 || step == -1) && (last->pages == 1 || step == last->step))
		{
			last->step = (int) step;
			last->pages++;
			return true;
		}
	}
	if (runs->count == runs->capacity)
	{
		size_t		capacity = runs->capacity ? runs->capacity * 2 : FIRST_RUNS;
		KaRun	   *grown = realloc(runs->run, capacity * sizeof(*grown));

		if (grown == NULL)
			return false;
		runs->run = grown;
		runs->capacity = capacity;
	}
	runs->run[runs->count++] = (KaRun) {.index = index, .pfn = pfn, .pages = 1};
	return true;
}

void
ka_runs_free(KaRuns *runs)
{
	free(runs->run);
	*runs = (KaRuns) {0};
}

static int
compare_lengths(const void *a, const void *b)
{
	int64_t		x = *(const int64_t *) a;
	int64_t		y = *(const int64_t *) b;

	return (x > y) - (x < y);
}

/* False: no memory. */
static bool
median_length(const KaRuns *runs, double *median)
{
	int64_t    *lengths = malloc(runs->count * sizeof(*lengths));
	size_t		middle = runs->count / 2;

	if (lengths == NULL)
		return false;
	for (size_t i = 0; i < runs->count; i++)
		lengths[i] = runs->run[i].pages;
	qsort(lengths, runs->count, sizeof(*lengths), compare_lengths);
	*median = runs->count % 2 ? (double) lengths[middle] :
		((double) lengths[middle - 1] + (double) lengths[middle]) / 2;
	free(lengths);
	return true;
}

bool
ka_runs_summary(const KaRuns *runs, KaRunSummary *summary)
{
	*summary = (KaRunSummary) {.runs = (int64_t) runs->count};
	if (runs->count == 0)
		return true;
	for (size_t i = 0; i < runs->count; i++)
	{
		const KaRun *run = &runs->run[i];
		int64_t    *share = run->step > 0 ? &summary->ascending :
			run->step < 0 ? &summary->descending : &summary->single;

		*share += run->pages;
		summary->pages += run->pages;
		if (run->pages > summary->longest)
			summary->longest = run->pages;
	}
	summary->mean = (double) summary->pages / (double) runs->count;
	summary->order = ka_pfn_order(summary->ascending, summary->descending, summary->single);
	return median_length(runs, &summary->median);
}

static bool
has_bit(uint64_t flags, int bit)
{
	return (flags >> bit & 1) != 0;
}

/* A folio of order k begins at a multiple of 2^k, so the head of a tail page is among few. */
static bool
find_head(KaFlagsOf flags_of, void *ctx, int64_t pfn, int64_t *head, uint64_t *flags)
{
	for (int order = 1; order < KA_FOLIO_ORDERS; order++)
	{
		int64_t		candidate = pfn & ~((INT64_C(1) << order) - 1);

		if (candidate == pfn)
			continue;
		if (!flags_of(ctx, candidate, flags))
			return false;
		if (has_bit(*flags, KA_KPF_COMPOUND_HEAD))
		{
			*head = candidate;
			return true;
		}
		if (!has_bit(*flags, KA_KPF_COMPOUND_TAIL))
			return false;		/* was split meanwhile */
	}
	return false;
}

bool
ka_folio_of(KaFlagsOf flags_of, void *ctx, int64_t pfn, KaFolio *folio)
{
	uint64_t	flags;
	int64_t		head = pfn;
	int			order = 1;

	if (!flags_of(ctx, pfn, &flags))
		return false;
	if (has_bit(flags, KA_KPF_COMPOUND_TAIL))
	{
		if (!find_head(flags_of, ctx, pfn, &head, &flags))
			return false;
	}
	else if (!has_bit(flags, KA_KPF_COMPOUND_HEAD))
	{
		*folio = (KaFolio) {.head = pfn};
		return true;
	}
	*folio = (KaFolio) {
		.head = head,
		.hugetlb = has_bit(flags, KA_KPF_HUGE),
		.thp = has_bit(flags, KA_KPF_THP),
	};
	while (order < KA_FOLIO_ORDERS - 1 && flags_of(ctx, head + (INT64_C(1) << order), &flags) &&
		   has_bit(flags, KA_KPF_COMPOUND_TAIL))
		order++;
	folio->order = order;
	return pfn < head + (INT64_C(1) << order);	/* else it was split meanwhile */
}

static void
count_place(KaFolios *folios, int64_t pfn, const KaFolio *folio)
{
	const KaFolio *last = &folios->last;

	if (folio->head == last->head + (INT64_C(1) << last->order) && pfn == folios->last_pfn + 1)
		folios->after++;
	else if (folio->head + (INT64_C(1) << folio->order) == last->head)
		folios->before++;
	else
		folios->elsewhere++;
}

void
ka_folios_add(KaFolios *folios, int64_t index, int64_t pfn, const KaFolio *folio)
{
	bool		next = folios->any && index == folios->last_index + 1;

	folios->pages[folio->order]++;
	folios->hugetlb += folio->hugetlb;
	folios->thp += folio->thp;
	if (!next || folio->head != folios->last.head)
	{
		folios->folios[folio->order]++;
		if (next)
			count_place(folios, pfn, folio);
	}
	folios->last = *folio;
	folios->last_index = index;
	folios->last_pfn = pfn;
	folios->any = true;
}
