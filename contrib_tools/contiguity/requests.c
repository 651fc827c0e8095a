/*
 * requests.c: from runs of page frames to segments and requests.
 *
 * Invariants: the request that is open is contiguous on the disk, holds at
 * least a byte, and keeps all three limits.
 *
 * Locks: none.
 */
#include "requests.h"
#include "scan.h"

/* The request that grows, and its last segment. */
typedef struct Open
{
	bool		any;
	int64_t		bytes;
	int64_t		segments;
	int64_t		disk_end;
	int64_t		memory_end;		/* physical address */
	int64_t		segment_bytes;
	KaLimits	limits;
	KaRequests *sums;
} Open;

static int64_t
limit_or(int64_t limit, int64_t otherwise)
{
	return limit > 0 ? limit : otherwise;
}

static void
end_request(Open *open, int64_t *reason)
{
	if (!open->any)
		return;
	(*reason)++;
	open->any = false;
}

/* A piece that is contiguous in memory and on the disk. */
static void
add_piece(Open *open, int64_t memory, int64_t disk, int64_t bytes)
{
	if (open->any && disk != open->disk_end)
		end_request(open, &open->sums->by_disk);
	while (bytes > 0)
	{
		int64_t		take = bytes;
		int64_t		room;
		bool		joins;

		if (open->any && open->bytes >= open->limits.max_request_bytes)
			end_request(open, &open->sums->by_size);
		joins = open->any && memory == open->memory_end && open->segment_bytes < open->limits.max_segment_bytes;
		if (open->any && !joins && open->segments >= open->limits.max_segments)
			end_request(open, &open->sums->by_segments);
		if (!open->any)
		{
			open->any = true;
			open->bytes = open->segments = 0;
			open->sums->requests++;
		}
		if (!joins)
		{
			open->segments++;
			open->sums->segments++;
			open->segment_bytes = 0;
		}
		room = open->limits.max_segment_bytes - open->segment_bytes;
		take = take < room ? take : room;
		room = open->limits.max_request_bytes - open->bytes;
		take = take < room ? take : room;

		open->bytes += take;
		open->segment_bytes += take;
		open->sums->bytes += take;
		memory += take;
		disk += take;
		bytes -= take;
		open->memory_end = memory;
		open->disk_end = disk;
	}
}

/* Pages that ascend are one piece of memory; every other page is one of its own. */
static void
add_part(Open *open, const KaRun *run, int64_t page_bytes, int64_t from, int64_t bytes, int64_t disk)
{
	while (bytes > 0)
	{
		int64_t		page = from / page_bytes;
		int64_t		take = run->step > 0 ? bytes : page_bytes - from % page_bytes;
		int64_t		memory = (run->pfn + run->step * page) * page_bytes + from % page_bytes;

		if (take > bytes)
			take = bytes;
		add_piece(open, memory, disk, take);
		from += take;
		disk += take;
		bytes -= take;
	}
}

void
ka_predict_requests(const KaRuns *runs, int64_t page_bytes, const KaExtent *extents, size_t nextents,
					const KaLimits *limits, KaRequests *requests)
{
	Open		open = {.sums = requests};
	size_t		e = 0;

	*requests = (KaRequests) {0};
	open.limits.max_segments = limit_or(limits->max_segments, INT64_MAX);
	open.limits.max_segment_bytes = limit_or(limits->max_segment_bytes, INT64_MAX);
	open.limits.max_request_bytes = limit_or(limits->max_request_bytes, INT64_MAX);

	for (size_t r = 0; r < runs->count; r++)
	{
		const KaRun *run = &runs->run[r];
		int64_t		first = run->index * page_bytes;
		int64_t		end = first + run->pages * page_bytes;

		/* Runs and extents are both in the order of the file. */
		while (e < nextents && extents[e].offset + extents[e].bytes <= first)
			e++;
		for (size_t i = e; i < nextents && extents[i].offset < end; i++)
		{
			const KaExtent *extent = &extents[i];
			int64_t		from = extent->offset > first ? extent->offset : first;
			int64_t		to = extent->offset + extent->bytes < end ? extent->offset + extent->bytes : end;
			int64_t		disk = extent->disk == KA_UNKNOWN ? from : extent->disk + (from - extent->offset);

			add_part(&open, run, page_bytes, from - first, to - from, disk);
		}
	}
	end_request(&open, &requests->by_disk);
}

bool
ka_is_contiguous(const KaRequests *requests, const KaLimits *limits)
{
	if (requests->requests == 0 || requests->by_segments > 0)
		return false;
	return limits->max_segments <= 0 || requests->segments <= ka_multiply(requests->requests, limits->max_segments) / 2;
}
