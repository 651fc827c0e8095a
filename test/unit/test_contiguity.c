/*
 * test_contiguity.c: runs of page frames, folios, and what a device would see.
 */
#include "ka_test.h"
#include "requests.h"

#define PAGE 4096

static KaRuns runs;

static void
start(void)
{
	ka_runs_free(&runs);
}

/* Page frames of consecutive pages from "index" on; 0 ends. */
static void
add(int64_t index, const int64_t *pfns)
{
	for (; *pfns; pfns++, index++)
		REQUIRE(ka_runs_add(&runs, index, *pfns));
}

#define PFNS(...) ((const int64_t[]) {__VA_ARGS__, 0})

static KaRunSummary
summary(void)
{
	KaRunSummary result;

	REQUIRE(ka_runs_summary(&runs, &result));
	return result;
}

TEST(order)
{
	static const struct
	{
		int64_t		up,
					down,
					elsewhere;
		KaPfnOrder	order;
		const char *name;
	}			cases[] = {
		{0, 0, 0, KA_PFN_NOTHING, NULL},
		{1, 0, 0, KA_PFN_ASCENDING, "ascending"},
		{0, 1, 0, KA_PFN_DESCENDING, "descending"},
		{0, 0, 1, KA_PFN_SCATTERED, "scattered"},
		{51, 49, 0, KA_PFN_ASCENDING, "ascending"},
		{50, 50, 0, KA_PFN_MIXED, "mixed"},
		{50, 0, 50, KA_PFN_MIXED, "mixed"},
		{2, 3, 4, KA_PFN_MIXED, "mixed"},
		{1, 3, 1, KA_PFN_DESCENDING, "descending"},
		{24, 25, 50, KA_PFN_SCATTERED, "scattered"},
	};

	for (size_t i = 0; i < KA_LENGTH(cases); i++)
	{
		KaPfnOrder	order = ka_pfn_order(cases[i].up, cases[i].down, cases[i].elsewhere);

		NOTE("case %zu", i);
		CHECK_INT(order, cases[i].order);
		CHECK_STR(ka_pfn_order_name(order), cases[i].name);
	}
}

TEST(runs_of_all_kinds)
{
	KaRunSummary s;

	start();
	s = summary();
	CHECK_INT(s.runs, 0);
	CHECK_INT(s.pages, 0);
	CHECK_INT(s.order, KA_PFN_NOTHING);

	add(0, PFNS(100, 101, 102, 103));	/* ascending */
	add(4, PFNS(50, 49, 48));	/* descending */
	add(7, PFNS(70));			/* alone */
	add(8, PFNS(72));			/* a page frame too far */
	add(10, PFNS(73));			/* a page of the file is missing */
	CHECK_INT(runs.count, 5);
	CHECK_INT(runs.run[0].pages, 4);
	CHECK_INT(runs.run[0].step, 1);
	CHECK_INT(runs.run[1].index, 4);
	CHECK_INT(runs.run[1].pfn, 50);
	CHECK_INT(runs.run[1].pages, 3);
	CHECK_INT(runs.run[1].step, -1);
	CHECK_INT(runs.run[2].step, 0);
	CHECK_INT(runs.run[4].index, 10);
	s = summary();
	CHECK_INT(s.runs, 5);
	CHECK_INT(s.pages, 10);
	CHECK_INT(s.longest, 4);
	CHECK_REAL(s.mean, 2.0, 1e-9);
	CHECK_REAL(s.median, 1.0, 1e-9);
	CHECK_INT(s.ascending, 4);
	CHECK_INT(s.descending, 3);
	CHECK_INT(s.single, 3);
	CHECK_INT(s.order, KA_PFN_MIXED);
}

/* A run does not turn round, and an even number of runs has a median between two. */
TEST(runs_turn)
{
	KaRunSummary s;

	start();
	add(0, PFNS(10, 11, 12, 11, 10, 9));
	CHECK_INT(runs.count, 2);
	CHECK_INT(runs.run[0].pages, 3);
	CHECK_INT(runs.run[1].pages, 3);
	CHECK_INT(runs.run[1].step, -1);
	add(6, PFNS(9));			/* the same page frame twice is no run */
	CHECK_INT(runs.count, 3);
	add(7, PFNS(200, 201, 202, 203, 204, 205));
	s = summary();
	CHECK_INT(s.runs, 4);
	CHECK_REAL(s.median, 3.0, 1e-9);
	CHECK_INT(s.longest, 6);
	CHECK_INT(s.order, KA_PFN_ASCENDING);
	add(13, PFNS(300, 301));
	add(15, PFNS(400, 401));
	s = summary();
	CHECK_REAL(s.median, 2.5, 1e-9);
}

TEST(many_runs)
{
	KaRunSummary s;

	start();
	for (int64_t i = 0; i < 100000; i++)
		REQUIRE(ka_runs_add(&runs, i, 1000000 + i * 2));
	s = summary();
	CHECK_INT(s.runs, 100000);
	CHECK_INT(s.single, 100000);
	CHECK_INT(s.order, KA_PFN_SCATTERED);
	CHECK_REAL(s.median, 1.0, 1e-9);
	start();
}

/*
 * Folios.  The memory of this machine: 4096 page frames.
 */

static uint64_t memory[4096];

static bool
flags_of(void *ctx, int64_t pfn, uint64_t *flags)
{
	CHECK(ctx == memory);
	if (pfn < 0 || pfn >= (int64_t) KA_LENGTH(memory))
		return false;
	*flags = memory[pfn];
	return true;
}

static void
make_folio(int64_t head, int order, uint64_t more)
{
	for (int64_t i = 0; i < INT64_C(1) << order; i++)
		memory[head + i] = more | UINT64_C(1) << (i == 0 ? KA_KPF_COMPOUND_HEAD : KA_KPF_COMPOUND_TAIL);
}

TEST(folio_of_a_page)
{
	static const int orders[] = {1, 2, 3, 4, 8, 9, 10};
	KaFolio		folio;

	for (size_t i = 0; i < KA_LENGTH(orders); i++)
	{
		int			order = orders[i];
		int64_t		size = INT64_C(1) << order;
		int64_t		head = 2048;

		/* Neighbours of the same kind on both sides. */
		memset(memory, 0, sizeof(memory));
		make_folio(head - size, order, 0);
		make_folio(head, order, UINT64_C(1) << KA_KPF_THP);
		make_folio(head + size, order, 0);
		for (int64_t pfn = head; pfn < head + size; pfn++)
		{
			NOTE("order %d, page %d", order, (int) (pfn - head));
			REQUIRE(ka_folio_of(flags_of, memory, pfn, &folio));
			CHECK_INT(folio.head, head);
			CHECK_INT(folio.order, order);
			CHECK(folio.thp && !folio.hugetlb);
		}
		CHECK(ka_folio_of(flags_of, memory, head - 1, &folio));
		CHECK_INT(folio.head, head - size);
		CHECK(!folio.thp);
	}
}

TEST(folio_small_and_broken)
{
	KaFolio		folio;

	memset(memory, 0, sizeof(memory));
	CHECK(ka_folio_of(flags_of, memory, 77, &folio));
	CHECK_INT(folio.head, 77);
	CHECK_INT(folio.order, 0);
	CHECK(!ka_folio_of(flags_of, memory, 4096, &folio));	/* no such memory */

	/* The last folio of the memory: behind it there is nothing to look at. */
	make_folio(3584, 9, UINT64_C(1) << KA_KPF_HUGE);
	CHECK(ka_folio_of(flags_of, memory, 4095, &folio));
	CHECK_INT(folio.order, 9);
	CHECK(folio.hugetlb);

	/* Split while it was looked at: a tail without its head. */
	memory[3584] = 0;
	CHECK(!ka_folio_of(flags_of, memory, 3600, &folio));
	/* A tail whose head is of a folio that does not reach it. */
	make_folio(1024, 1, 0);
	memory[1027] = UINT64_C(1) << KA_KPF_COMPOUND_TAIL;
	memory[1026] = UINT64_C(1) << KA_KPF_COMPOUND_TAIL;
	memory[1025] = 0;
	CHECK(ka_folio_of(flags_of, memory, 1027, &folio));	/* 1026 is a tail, too: taken for order 2 */
	memory[1026] = 0;
	CHECK(!ka_folio_of(flags_of, memory, 1027, &folio));
	memory[1028] = memory[1029] = UINT64_C(1) << KA_KPF_COMPOUND_TAIL;
	CHECK(!ka_folio_of(flags_of, memory, 1029, &folio));	/* its head's folio ends before it */
}

/* Folios of one order, given by their heads; the file goes on from one to the next. */
static KaFolios
folios_at(int order, const int64_t *heads)
{
	KaFolios	folios = {0};
	int64_t		index = 0;

	for (; *heads; heads++)
	{
		KaFolio		folio = {.head = *heads, .order = order, .hugetlb = order == 9};

		for (int64_t i = 0; i < INT64_C(1) << order; i++)
			ka_folios_add(&folios, index++, *heads + i, &folio);
	}
	return folios;
}

TEST(folios_in_order)
{
	KaFolios	f = folios_at(4, PFNS(160, 176, 192, 208));

	CHECK_INT(f.folios[4], 4);
	CHECK_INT(f.pages[4], 64);
	CHECK_INT(f.after, 3);
	CHECK_INT(f.before + f.elsewhere, 0);
	CHECK_INT(f.hugetlb, 0);

	f = folios_at(9, PFNS(2048, 1536, 1024));
	CHECK_INT(f.before, 2);
	CHECK_INT(f.after + f.elsewhere, 0);
	CHECK_INT(f.hugetlb, 3 * 512);

	f = folios_at(0, PFNS(5, 6, 7, 9, 8, 100));
	CHECK_INT(f.pages[0], 6);
	CHECK_INT(f.after, 2);
	CHECK_INT(f.before, 1);
	CHECK_INT(f.elsewhere, 2);
}

/* Where the file has a gap, nothing follows nothing; folios of two orders are neighbours as well. */
TEST(folios_and_gaps)
{
	KaFolios	f = {0};
	KaFolio		small = {.head = 63};
	KaFolio		large = {.head = 64, .order = 1, .thp = true};

	ka_folios_add(&f, 0, 63, &small);
	ka_folios_add(&f, 1, 64, &large);
	ka_folios_add(&f, 2, 65, &large);
	CHECK_INT(f.after, 1);
	CHECK_INT(f.thp, 2);
	CHECK_INT(f.folios[0], 1);
	CHECK_INT(f.folios[1], 1);
	small.head = 66;
	ka_folios_add(&f, 4, 66, &small);
	CHECK_INT(f.after + f.before + f.elsewhere, 1);
	CHECK_INT(f.folios[0], 2);

	/* Only a part of the large one before it: the file does not go on at its end. */
	f = (KaFolios) {0};
	ka_folios_add(&f, 0, 64, &large);
	ka_folios_add(&f, 1, 66, &small);
	CHECK_INT(f.after, 0);
	CHECK_INT(f.elsewhere, 1);
}

/*
 * Requests
 */

static const KaLimits no_limits = {KA_UNKNOWN, KA_UNKNOWN, KA_UNKNOWN};

static KaRequests
predict(const KaExtent *extents, size_t count, const KaLimits *limits)
{
	KaRequests	requests;

	ka_predict_requests(&runs, PAGE, extents, count, limits, &requests);
	CHECK_INT(requests.by_segments + requests.by_size + requests.by_disk, requests.requests);
	return requests;
}

static KaRequests
predict_one(int64_t pages, const KaLimits *limits)
{
	KaExtent	whole = {0, pages * PAGE, 1 << 30};

	return predict(&whole, 1, limits);
}

/* "pages" page frames with a step between them, from "pfn" on. */
static void
add_steps(int64_t index, int64_t pages, int64_t pfn, int64_t step)
{
	for (int64_t i = 0; i < pages; i++)
		REQUIRE(ka_runs_add(&runs, index + i, pfn + i * step));
}

TEST(requests_of_contiguous_memory)
{
	KaRequests	r;

	start();
	add_steps(0, 1000, 5000, 1);
	r = predict_one(1000, &no_limits);
	CHECK_INT(r.bytes, 1000 * PAGE);
	CHECK_INT(r.segments, 1);
	CHECK_INT(r.requests, 1);
	CHECK_INT(r.by_disk, 1);

	/* 64 KiB a segment: 62 full ones and a half. */
	r = predict_one(1000, &(KaLimits) {KA_UNKNOWN, 65536, KA_UNKNOWN});
	CHECK_INT(r.segments, 63);
	CHECK_INT(r.requests, 1);

	/* 1280 KiB a request: 3 full ones and the rest. */
	r = predict_one(1000, &(KaLimits) {128, 65536, 1280 * 1024});
	CHECK_INT(r.requests, 4);
	CHECK_INT(r.by_size, 3);
	CHECK_INT(r.by_disk, 1);
	CHECK_INT(r.by_segments, 0);
	CHECK_INT(r.segments, 20 * 3 + 3);

	/* Four segments of 64 KiB end a request before its size does. */
	r = predict_one(1000, &(KaLimits) {4, 65536, 1280 * 1024});
	CHECK_INT(r.requests, 16);
	CHECK_INT(r.by_segments, 15);
	CHECK_INT(r.bytes, 1000 * PAGE);
}

/* What is descending or scattered needs a segment for each page. */
TEST(requests_of_other_memory)
{
	static const int64_t steps[] = {-1, 2, -3, 512};
	KaLimits	limits = {128, 65536, 1280 * 1024};

	for (size_t i = 0; i < KA_LENGTH(steps); i++)
	{
		KaRequests	r;

		NOTE("step %d", (int) steps[i]);
		start();
		add_steps(0, 1024, 1 << 20, steps[i]);
		r = predict_one(1024, &limits);
		CHECK_INT(r.segments, 1024);
		CHECK_INT(r.requests, 8);
		CHECK_INT(r.by_segments, 7);
		CHECK_INT(r.by_size, 0);
		CHECK_INT(r.bytes, 1024 * PAGE);
	}

	/* A request that is full in both ways ended by its size: more segments would not help. */
	start();
	add_steps(0, 256, 1 << 20, -1);
	CHECK_INT(predict_one(256, &(KaLimits) {128, 65536, 128 * PAGE}).by_size, 1);
}

/* Neighbours in memory that two runs are part of are one segment. */
TEST(requests_join_runs)
{
	start();
	add(0, PFNS(11, 10));		/* a descending run, then the page above its first one */
	add(2, PFNS(12, 13));
	CHECK_INT(predict_one(4, &no_limits).segments, 3);
	start();
	add(0, PFNS(12, 11, 10));
	add(3, PFNS(11, 12));
	CHECK_INT(runs.count, 2);
	CHECK_INT(predict_one(5, &no_limits).segments, 3);
}

TEST(requests_and_the_disk)
{
	static const KaExtent apart[] = {{0, 4 * PAGE, 1 << 20}, {4 * PAGE, 4 * PAGE, 1 << 24}, {8 * PAGE, 8 * PAGE, (1 << 24) + 4 * PAGE}};
	static const KaExtent hole[] = {{0, 4 * PAGE, 1 << 20}, {12 * PAGE, 4 * PAGE, (1 << 20) + 4 * PAGE}};
	static const KaExtent within[] = {{0, 6000, 1 << 20}, {6000, 16 * PAGE - 6000, 1 << 24}};
	KaRequests	r;

	start();
	add_steps(0, 16, 7000, 1);
	r = predict(apart, KA_LENGTH(apart), &no_limits);
	CHECK_INT(r.requests, 2);	/* the last two are neighbours on the disk */
	CHECK_INT(r.segments, 2);
	CHECK_INT(r.by_disk, 2);

	/* What is in a hole of the file is not written; the disk goes on behind it. */
	r = predict(hole, KA_LENGTH(hole), &no_limits);
	CHECK_INT(r.bytes, 8 * PAGE);
	CHECK_INT(r.requests, 1);
	CHECK_INT(r.segments, 2);

	/* A piece of the disk may end within a page. */
	r = predict(within, KA_LENGTH(within), &no_limits);
	CHECK_INT(r.bytes, 16 * PAGE);
	CHECK_INT(r.requests, 2);
	start();
	add_steps(0, 16, 7000, -1);
	r = predict(within, KA_LENGTH(within), &no_limits);
	CHECK_INT(r.bytes, 16 * PAGE);
	CHECK_INT(r.segments, 17);

	/* What is not cached ends a request. */
	start();
	add_steps(0, 4, 7000, 1);
	add_steps(8, 4, 7004, 1);
	r = predict_one(16, &no_limits);
	CHECK_INT(r.bytes, 8 * PAGE);
	CHECK_INT(r.requests, 2);

	/* Places that are not told: one after the other. */
	r = predict(&(KaExtent) {0, 16 * PAGE, KA_UNKNOWN}, 1, &no_limits);
	CHECK_INT(r.requests, 2);
	CHECK_INT(predict(NULL, 0, &no_limits).requests, 0);
	start();
	CHECK_INT(predict_one(16, &no_limits).requests, 0);
}

TEST(contiguous_enough)
{
	KaLimits	limits = {128, 65536, 1280 * 1024};

	/* 64 KiB pieces: 20 segments of 128 in each request. */
	start();
	add_steps(0, 1024, 5000, 1);
	{
		KaRequests	r = predict_one(1024, &limits);

		CHECK(ka_is_contiguous(&r, &limits));
		CHECK(ka_is_contiguous(&r, &no_limits));
		limits.max_segments = 39;	/* 65 segments in 4 requests: half of them are 78 */
		CHECK(ka_is_contiguous(&r, &limits));
		limits.max_segments = 31;
		CHECK(!ka_is_contiguous(&r, &limits));
	}
	/* Pairs: 160 segments a request, and only 128 allowed. */
	start();
	for (int64_t i = 0; i < 1024; i++)
		REQUIRE(ka_runs_add(&runs, i, 8000 + i / 2 * 4 + i % 2));
	limits.max_segments = 128;
	{
		KaRequests	r = predict_one(1024, &limits);

		CHECK(r.by_segments > 0);
		CHECK(!ka_is_contiguous(&r, &limits));
		CHECK(!ka_is_contiguous(&(KaRequests) {0}, &limits));
	}
	start();
}
