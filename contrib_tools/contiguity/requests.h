/*
 * requests.h: what a block device sees when pages that lie here and there in
 * memory are written or read in the order of the file.
 *
 * A request covers one piece of the disk and ends where the disk's pieces do,
 * at the device's largest size, or when it holds as many segments, pieces of
 * contiguous memory, as the device takes.  Only the last of these has to do
 * with memory.
 */
#ifndef KA_CONTIGUITY_REQUESTS_H
#define KA_CONTIGUITY_REQUESTS_H

#include "runs.h"

/* Of the queue of a device; KA_UNKNOWN: no limit is known. */
typedef struct KaLimits
{
	int64_t		max_segments;
	int64_t		max_segment_bytes;
	int64_t		max_request_bytes;
} KaLimits;

/* A piece of the file that is one piece of the disk. */
typedef struct KaExtent
{
	int64_t		offset;			/* in the file, bytes */
	int64_t		bytes;
	int64_t		disk;			/* where it lies, bytes; KA_UNKNOWN: not told, taken to follow the one before */
} KaExtent;

typedef struct KaRequests
{
	int64_t		bytes;			/* in memory and on disk: the rest is left out */
	int64_t		segments;
	int64_t		requests;
	int64_t		by_segments;	/* requests that ended because their segments were used up */
	int64_t		by_size;		/* ... because they were as large as the device takes */
	int64_t		by_disk;		/* ... because the file goes on elsewhere on the disk, or is not in memory; the last one, too */
} KaRequests;

/*
 * Extents are in the order of the file and do not overlap.  The index of a run
 * is a page of the file.
 */
extern void ka_predict_requests(const KaRuns *runs, int64_t page_bytes, const KaExtent *extents, size_t nextents,
								const KaLimits *limits, KaRequests *requests);

/*
 * Would memory in one piece make no difference?  No request ends because of its
 * segments, and they take half of what the requests could hold at most: the
 * kernel does not begin each request where the prediction does.
 */
extern bool ka_is_contiguous(const KaRequests *requests, const KaLimits *limits);

#endif							/* KA_CONTIGUITY_REQUESTS_H */
