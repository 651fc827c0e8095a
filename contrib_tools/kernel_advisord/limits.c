/*
 * limits.c: what a value would do to the machine, before it is written.
 *
 * The range of a knob comes from its table and the bounds file.  Beyond it, a
 * pool must fit: all pools together, with what they may grow by, stay below a
 * share of memory, and enough memory stays available.  Where overcommit_memory
 * is 2 (or becomes 2), CommitLimit must stay above what is committed:
 *
 *	CommitLimit = (RAM - hugetlb) * overcommit_ratio / 100 + swap
 *
 * or overcommit_kbytes + swap (Documentation/mm/overcommit-accounting.rst).
 */
#include <errno.h>
#include <string.h>

#include "daemon.h"

KaStatus
ka_check_range(KaCall *call, int64_t value)
{
	if (call->daemon->bounds.ranges[call->knob - ka_knobs].off)
		return KA_ST_OFF;
	call->reply->asked = value;
	if (value < call->reply->min || value > call->reply->max)
		return KA_ST_RANGE;
	return KA_ST_OK;
}

/* The value of another knob of the whole machine, or KA_NO_VALUE. */
static int64_t
value_of(const KaCall *call, uint32_t number)
{
	const KaKnobFile *file = ka_kernel_file(&call->daemon->kernel, number, KA_ALL_NODES);
	int64_t		value;

	return file && ka_kernel_read(file, &value) == 0 ? value : KA_NO_VALUE;
}

/*
 * Bytes of all pools with their surplus limits.  The knobs of the default size
 * in /proc/sys are the same pools as those of that size in /sys: only where the
 * latter are absent do they count.
 */
static int64_t
pools_bytes(const KaCall *call)
{
	int64_t		sum = 0;
	bool		sized = false;

	for (size_t i = 0; i < ka_nknobs; i++)
	{
		const KaKnob *knob = &ka_knobs[i];
		int64_t		pages = knob->page_bytes > 0 ? value_of(call, knob->number) : KA_NO_VALUE;
		int64_t		bytes;

		if (pages == KA_NO_VALUE)
			continue;
		sized = true;
		/* A surplus limit can be any number: nobody has that much memory. */
		if (__builtin_mul_overflow(pages, knob->page_bytes, &bytes) || __builtin_add_overflow(sum, bytes, &sum))
			return INT64_MAX;
	}
	if (!sized)
	{
		int64_t		page_bytes = ka_kernel_pool_page_bytes(&call->daemon->kernel, ka_knob_find(KA_HK_NR_HUGEPAGES));
		int64_t		pool = value_of(call, KA_HK_NR_HUGEPAGES);
		int64_t		surplus = value_of(call, KA_HK_NR_OVERCOMMIT_HUGEPAGES);
		int64_t		pages;

		if (__builtin_add_overflow(pool > 0 ? pool : 0, surplus > 0 ? surplus : 0, &pages) ||
			__builtin_mul_overflow(pages, page_bytes, &sum))
			return INT64_MAX;
	}
	return sum;
}

/* CommitLimit if the knob had this value; KA_NO_VALUE: nothing limits. */
static int64_t
commit_limit(const KaCall *call, const KaMemory *memory, int64_t growth_bytes, int64_t value)
{
	int64_t		mode = value_of(call, KA_HK_OVERCOMMIT_MEMORY);
	int64_t		ratio = value_of(call, KA_HK_OVERCOMMIT_RATIO);
	int64_t		kbytes = value_of(call, KA_HK_OVERCOMMIT_KBYTES);
	int64_t		ram_bytes = memory->total_bytes - memory->hugetlb_bytes - growth_bytes;

	if (call->knob->number == KA_HK_OVERCOMMIT_MEMORY)
		mode = value;
	if (call->knob->number == KA_HK_OVERCOMMIT_RATIO)
	{
		ratio = value;
		kbytes = 0;
	}
	if (mode != 2 || ratio < 0 || ratio > 100000)
		return KA_NO_VALUE;
	if (ram_bytes < 0)
		ram_bytes = 0;
	if (kbytes > 0)
		return kbytes > INT64_MAX / 2048 ? INT64_MAX / 2 : kbytes * 1024 + memory->swap_total_bytes;
	return ram_bytes / 100 * ratio + memory->swap_total_bytes;
}

/*
 * Would going from current to value harm the machine?  for_boot: the memory
 * that is available now says nothing about the next boot.
 */
KaStatus
ka_check_effect(KaCall *call, int64_t current, int64_t value, bool for_boot)
{
	const KaBounds *bounds = &call->daemon->bounds;
	int64_t		page_bytes = ka_kernel_pool_page_bytes(&call->daemon->kernel, call->knob);
	bool		is_pool = (call->knob->flags & KA_KF_POOL) != 0;
	int64_t		growth_bytes = 0;
	int64_t		pool_growth_bytes;
	int64_t		limit_bytes;
	KaMemory	memory;
	int			result = ka_kernel_memory(&call->daemon->kernel, &memory);

	if (result < 0)
		return ka_call_error(call, KA_ST_UNREADABLE, result);

	if (call->knob->flags & (KA_KF_POOL | KA_KF_SURPLUS))
	{
		int64_t		pages = value - (current > 0 ? current : 0);
		int64_t		sum;

		if (page_bytes <= 0)
			return KA_ST_ABSENT;	/* the default size of a kernel without huge pages */
		if (__builtin_mul_overflow(pages, page_bytes, &growth_bytes) ||
			__builtin_add_overflow(pools_bytes(call), growth_bytes, &sum))
			sum = INT64_MAX;
		if (growth_bytes > 0 && sum > memory.total_bytes / 100 * bounds->pool_max_percent)
			return KA_ST_RAM_SHARE;
		if (is_pool && growth_bytes > 0 && !for_boot &&
			memory.available_bytes - growth_bytes < bounds->min_available_bytes)
			return KA_ST_AVAILABLE;
	}

	pool_growth_bytes = is_pool ? growth_bytes : 0;
	limit_bytes = commit_limit(call, &memory, pool_growth_bytes, value);
	if (limit_bytes != KA_NO_VALUE && ((call->knob->flags & KA_KF_COMMIT) || is_pool))
	{
		call->reply->commit_limit_bytes = limit_bytes;
		/* Never in the way of a change that gives room. */
		if (limit_bytes < memory.committed_bytes + bounds->min_available_bytes &&
			(limit_bytes < memory.commit_limit_bytes ||
			 (call->knob->number == KA_HK_OVERCOMMIT_MEMORY && current != 2)))
			return KA_ST_COMMIT_LIMIT;
	}
	return KA_ST_OK;
}
