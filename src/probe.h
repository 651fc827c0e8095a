/*
 * probe.h: what the BPF probe (kernel_advisor_probe) has counted, as the
 * sampler and the views take it from the probe's file.
 */
#ifndef KA_PROBE_H
#define KA_PROBE_H

#include "kernel_advisor_probe/probe_file.h"
#include "ring.h"

/* The counters of one kind of stall; they only grow. */
typedef struct KaStallTotal
{
	uint64		count;
	uint64		total_ns;
	uint64		bucket[KA_STALL_BUCKETS];
	uint64		longest_ns;		/* since the probe started */
	uint64		recent_ns;		/* the longest since the reading before, to a second */
} KaStallTotal;

/* What one look at the file says.  Totals since the probe started. */
typedef struct KaProbeReading
{
	bool		good;			/* there is a probe, and it runs */
	uint64		generation;		/* which start of the probe; others do not compare */
	uint64		heartbeat_ns;	/* when these counters were published */
	uint32		interval_ms;	/* how often they are */
	int64		total[KA_NDELTAS];	/* PROBE and HIDDEN_PROBE of samples.def; KA_UNKNOWN */
	uint32		server_pid;		/* the host's number of our postmaster; 0: not known (yet) */
	KaStallTotal stalls[KA_NWHOS][KA_NSTALLS];
} KaProbeReading;

/*
 * In the sampler, at each sample: reads the file.  "before" is the reading
 * before; all zeros at the first.  Logs a change of the probe's state that needs a person.
 */
extern void ka_probe_sample(const KaProbeReading *before, KaProbeReading *now);

/*
 * What happened between two readings: fills the probe's deltas of the sample,
 * and "stalls".  Unknown when either reading has nothing, or the probe was
 * started again in between.
 */
extern void ka_probe_delta(const KaProbeReading *before, const KaProbeReading *now,
						   KaSample *sample, KaStalls *stalls);

/*
 * In any process: one look at the file, which is mapped for the call only.
 * The copy is palloc'd; NULL unless there is one (with KA_PROBE_STALE too).
 * "problem" is a constant, NULL with KA_PROBE_OK.
 */
extern KaProbeFile *ka_probe_look(KaProbeState *state, const char **problem);

/* The sums of a copy of the file. */
extern void ka_probe_reading(const KaProbeFile *file, const KaProbeReading *before, KaProbeReading *reading);

/* Our own number for a process of this server; 0: it is another's. */
extern int	ka_probe_own_pid(const KaProbeProcess *process, uint32 server_pid);

/* Like ka_helper_status: the row "probe" of the view status. */
extern void ka_probe_status(const char **state, const char **detail, const char **hint);

#endif							/* KA_PROBE_H */
