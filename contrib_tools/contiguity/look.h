/*
 * look.h: what the commands of kernel_advisor_contiguity find out, and how it
 * is printed.
 */
#ifndef KA_CONTIGUITY_LOOK_H
#define KA_CONTIGUITY_LOOK_H

#include "device.h"
#include "facts.h"
#include "pages.h"

/* Exit status. */
enum
{
	KA_EXIT_LOOKED = 0,
	KA_EXIT_EMPTY = 1,			/* nothing of it is in memory, or a figure could not be had */
	KA_EXIT_TROUBLE = 2			/* usage, no right to, no such thing */
};

/* What was found of one range of pages. */
typedef struct KaLook
{
	int64_t		page_bytes;
	int64_t		looked;
	int64_t		present;
	int64_t		swapped;
	int64_t		unknown;
	bool		orders_known;
	KaRunSummary runs;
	KaFolios	folios;
} KaLook;

/* False: no memory. */
extern bool ka_look_of(const KaWalk *walk, KaLook *look);

/* The order in which the kernel handed the folios out, as far as that can be told. */
extern KaPfnOrder ka_handed_out(const KaLook *look);

/* file PATH */
typedef struct KaFileLook
{
	KaLook		look;
	KaDevice	device;
	KaExtents	extents;
	KaRequests	write;			/* predicted; nothing where the file has no device */
	KaRequests	read;			/* the same with no request larger than read-ahead */
} KaFileLook;

/* process PID */
typedef struct KaProcessLook
{
	KaLook		look;
	uint64_t	from,
				to;
	bool		whole;			/* all of the shared memory, whoever touched it */
} KaProcessLook;

/* kernel */
#define KA_PROBE_ROWS 6

typedef struct KaProbeRow
{
	const char *memory;
	bool		emptied;		/* after the lists of recycled pages were used up */
	const char *missing;		/* why there is nothing */
	KaLook		look;
} KaProbeRow;

typedef struct KaKernelLook
{
	int64_t		ballast_pages;	/* taken first, so that pages of fresh blocks come next */
	int64_t		wanted_pages;	/* what that would take; more than the ballast where memory does not suffice */
	double		unusable_index; /* -1: not known */
	KaProbeRow	row[KA_PROBE_ROWS];
	KaPfnOrder	order;			/* of fresh blocks, from the rows of single pages */
} KaKernelLook;

extern bool ka_probe_kernel(KaWalk *walk, const char *directory, int64_t bytes, KaKernelLook *kernel, const char **problem);

/* measure DIR */
typedef struct KaPass
{
	bool		done;
	bool		disturbed;		/* others wrote to the device meanwhile, in each attempt */
	int64_t		ios;
	int64_t		merges;
	int64_t		device_bytes;
	double		mean_bytes;		/* a write request */
	bool		contiguous;		/* see ka_is_contiguous */
	KaLook		look;
	KaRequests	predicted;
} KaPass;

typedef struct KaMeasurement
{
	int64_t		file_bytes;
	int64_t		write_bytes;	/* of each write */
	KaDevice	device;
	bool		extents_mapped;
	KaPass		found;			/* memory as it was found */
	KaPass		fresh;			/* after large blocks were made for it */
	KaFacts    *facts;
} KaMeasurement;

extern bool ka_measure(KaWalk *walk, const char *directory, int64_t file_bytes, int64_t write_bytes,
					   KaMeasurement *measurement, const char **problem);

/* Output: text, or JSON; false: it could not be written. */
extern bool ka_print_file(const KaFileLook *file, const char *path, bool json);
extern bool ka_print_process(const KaProcessLook *process, int64_t pid, bool json);
extern bool ka_print_kernel(const KaKernelLook *kernel, bool json);
extern bool ka_print_measurement(const KaMeasurement *measurement, bool json);
extern bool ka_print_facts(KaArena *arena, const KaFacts *facts);

/* An anonymous file in a directory, gone when it is closed; -1 and errno. */
extern int	ka_scratch_file(const char *directory);

/*
 * What comes before a large block is split: recycled pages on the processors'
 * lists, and small free blocks.
 */
typedef struct KaRecycled
{
	int64_t		bytes;
	int64_t		available_bytes;	/* memory that can be had at all */
	double		unusable_index; /* -1: not known */
} KaRecycled;

/* False: no memory. */
extern bool ka_recycled(KaArena *arena, int64_t page_bytes, KaRecycled *recycled);

/* Keeps to the processor that this runs on: each has lists of pages of its own. */
extern void ka_stay_on_one_cpu(void);

#endif							/* KA_CONTIGUITY_LOOK_H */
