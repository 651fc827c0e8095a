/*
 * load.h: the BPF programs in the kernel, and their arrays mapped here.
 */
#ifndef KA_LOAD_H
#define KA_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe_maps.h"

struct btf;
struct probe;

typedef struct KaLoaded
{
	struct probe *skeleton;
	uint32_t	sources;		/* bits of KaProbeSource that are attached */
	uint32_t	ncpus;
	KaRecord   *records;		/* [KA_RECORDS] */
	KaSlot	   *slots;			/* [ncpus] */
	KaProbeTotals *totals;
	KaProbeDropped *dropped;
} KaLoaded;

/*
 * Loads and attaches what this kernel has, except the sources in "unwanted",
 * and logs what is missing and why.  False: nothing works, and *error says why.
 * Needs CAP_BPF and CAP_PERFMON.
 */
extern bool ka_load(KaLoaded *loaded, uint32_t unwanted, char *error, size_t error_size);

/* Gives the record of a process that is gone back to the kernel's stack of free ones. */
extern bool ka_free_record(KaLoaded *loaded, uint32_t index);

/* Whether the process may still use the maps; *loaded as void, for ka_rights_end(). */
extern bool ka_may_use_maps(void *loaded);

/* Times that the kernel left a program out since it was running on that CPU. */
extern uint64_t ka_missed_events(const KaLoaded *loaded);

extern void ka_unload(KaLoaded *loaded);

/*
 * Whether the kernel has the tracepoint, with the arguments that its program
 * expects: NULL, or the reason why not.  For the begin of direct reclaim,
 * *order_argument becomes the position of the page order.
 */
extern const char *ka_check_source(const struct btf *btf, KaProbeSource source, unsigned *order_argument);

#endif							/* KA_LOAD_H */
