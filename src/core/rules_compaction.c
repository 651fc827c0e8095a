/*
 * rules_compaction.c: stalls in the page allocator, and the knobs around them.
 *
 * compact_stall counts direct compactions, allocstall direct reclaims, both of
 * whoever asked.  Who asked is told by the file system and kernel (do buffered
 * writes use large folios?), by THP fallbacks, and by whether the stalls follow
 * the checkpoints or the clock.
 *
 * Locks: none.
 */
#include "rules.h"

#include <math.h>

static void
saw_stalls(KaRows *rows, KaAdvice *row)
{
	const KaView *v = rows->view;

	KA_SAW(rows, row, KA_W_COMPACT_STALL, KA_W_COMPACT_FAIL, KA_W_ALLOCSTALL, KA_W_COMPACT_STALL_CKPT,
		   KA_W_ALLOCSTALL_CKPT, KA_W_THP_FALLBACK);
	ka_observed_real(rows, row, "compact_stalls_per_s", v->stall_rate);
	ka_observed_real(rows, row, "allocstalls_per_s", v->reclaim_rate);
	ka_observed_real(rows, row, "stall_share_over_time_share", v->stall_share);
}

/* "; in 5 checkpoints the checkpointer waited 412 ms ... in direct compaction (measured)", or nothing without the probe. */
static const char *
measured_waits(const KaView *v)
{
	const KaFacts *f = v->facts;

	if (ka_int(f, KA_W_STALL_CHECKPOINTS) <= 0)
		return "";
	return ka_printf(v->arena, "; measured: in the last %s the checkpointer waited %.0f ms, the walwriter %.0f ms and backends %.0f ms in direct compaction",
					 ka_int(f, KA_W_STALL_CHECKPOINTS) == 1 ? "checkpoint" :
					 ka_printf(v->arena, "%lld checkpoints", (long long) ka_int(f, KA_W_STALL_CHECKPOINTS)),
					 ka_real(f, KA_W_CHECKPOINTER_COMPACT_US, 0) / 1000, ka_real(f, KA_W_WALWRITER_COMPACT_US, 0) / 1000,
					 ka_real(f, KA_W_BACKENDS_COMPACT_US, 0) / 1000);
}

static void
saw_times(KaRows *rows, KaAdvice *row)
{
	const KaView *v = rows->view;

	KA_SAW(rows, row, KA_W_COMPACT_US, KA_W_RECLAIM_US, KA_W_SERVER_COMPACT_US, KA_W_SERVER_RECLAIM_US,
		   KA_W_STALL_CHECKPOINTS, KA_W_CHECKPOINTER_COMPACT_US, KA_W_CHECKPOINTER_RECLAIM_US,
		   KA_W_WALWRITER_COMPACT_US, KA_W_WALWRITER_RECLAIM_US, KA_W_BACKENDS_COMPACT_US, KA_W_BACKENDS_RECLAIM_US);
	ka_observed_real(rows, row, "server_compact_pct", v->server_compact_pct);
	ka_observed_real(rows, row, "server_stall_pct", v->server_stall_pct);
	ka_observed_real(rows, row, "writers_compact_pct", v->writers_compact_pct);
	if (v->server_compact_pct >= 0)
		ka_limit(rows, row, KA_T_STALL_TIME_PCT);
}

/*
 * compaction.policy
 */

/* Is it certain, or nearly, that writes ask for the large blocks? */
static bool
write_path_proven(const KaView *v)
{
	const KaFacts *f = v->facts;

	if (v->writers_compact_pct >= KA_LIMIT(STALL_TIME_PCT))
		return true;			/* measured, in processes that do little but write */
	if (v->stall_share >= KA_LIMIT(STALL_SHARE))
		return true;			/* they follow the checkpoints */
	if (v->fallback_rate >= 0)
		return !v->thp_explains;
	return ka_is(f, KA_THP_ENABLED, "never") && !ka_is(f, KA_THP_SHMEM, "always") && !ka_is(f, KA_THP_SHMEM, "force");
}

/* Nothing refills the stock of large blocks at threshold 1000 but proactive compaction. */
static void
keep_stock(const KaView *v, KaRows *rows, KaSeverity severity)
{
	KaAdvice   *row;

	if (ka_int(v->facts, KA_SYSCTL_COMPACTION_PROACTIVENESS) != 0)
		return;
	row = ka_row(rows, severity, ka_sysctl_info[KA_KNOB_COMPACTION_PROACTIVENESS].name);
	ka_reason(rows, row, "vm.compaction_proactiveness is 0: at vm.extfrag_threshold = 1000 nothing else keeps large blocks in stock, the two belong together.");
	ka_set_knob(rows, row, KA_KNOB_COMPACTION_PROACTIVENESS, v->exhausted ? KA_UNKNOWN :
				ka_sysctl_info[KA_KNOB_COMPACTION_PROACTIVENESS].def);
	KA_SAW(rows, row, KA_SYSCTL_EXTFRAG_THRESHOLD, KA_FRAG_FREE_COSTLY, KA_FRAG_UNUSABLE_4);
	saw_stalls(rows, row);
}

/* The probe has seen that others wait. */
static void
not_ours(const KaView *v, KaRows *rows)
{
	KaAdvice   *row = ka_row(rows, KA_OK, ka_sysctl_info[KA_KNOB_EXTFRAG_THRESHOLD].name);

	ka_reason(rows, row, "%.1f direct compactions a second, but hardly any in this server: its processes spent %.0f ms of %.0f s in them (measured), so vm.extfrag_threshold would not make it faster; the view stalls shows who else waits.",
			  v->stall_rate, ka_real(v->facts, KA_W_SERVER_COMPACT_US, 0) / 1000, v->seconds);
	ka_set_knob(rows, row, KA_KNOB_EXTFRAG_THRESHOLD, KA_UNKNOWN);
	saw_stalls(rows, row);
	saw_times(rows, row);
	ka_limit(rows, row, KA_T_STALL_POLICY);
}

void
ka_rule_compaction_policy(const KaView *v, KaRows *rows)
{
	int64_t		threshold = ka_int(v->facts, KA_SYSCTL_EXTFRAG_THRESHOLD);
	bool		new_kernel = v->kernel >= 7000;
	bool		proven = write_path_proven(v);
	bool		ready = !v->reserve && !v->exhausted;
	KaSeverity	severity;
	KaAdvice   *row;

	if (v->large_folios != KA_YES)
		return;
	if (v->stall_rate < KA_LIMIT(STALL_POLICY) || (v->thp_explains && v->writers_compact_pct < KA_LIMIT(STALL_TIME_PCT)))
	{
		if (threshold >= 1000)
			keep_stock(v, rows, KA_INFO);
		return;
	}
	if (v->server_compact_pct >= 0 && v->server_compact_pct < KA_LIMIT(STALL_TIME_PCT))
	{
		not_ours(v, rows);
		if (threshold >= 1000)
			keep_stock(v, rows, KA_INFO);
		return;
	}

	severity = !new_kernel && proven && !v->exhausted && v->stall_rate >= KA_LIMIT(STALL_POLICY_WARN) ? KA_WARNING : KA_INFO;
	row = ka_row(rows, severity, ka_sysctl_info[KA_KNOB_EXTFRAG_THRESHOLD].name);
	if (threshold >= 1000)
	{
		ka_reason(rows, row, "%.1f direct compactions a second although vm.extfrag_threshold is 1000 already: they are not of costly orders, or older than the setting.",
				  v->stall_rate);
		ka_set_knob(rows, row, KA_KNOB_EXTFRAG_THRESHOLD, KA_UNKNOWN);
		if (row)
			row->severity = KA_INFO;
	}
	else
	{
		ka_reason(rows, row, "%.1f times a second a request for a large block stalls in compaction, on a kernel whose %s writes in large blocks: vm.extfrag_threshold = 1000 %s%s%s%s.",
				  v->stall_rate, v->folio_filesystem,
				  new_kernel ? "ends the compactions but not the reclaim of 7.0 and later, so a trial decides" :
				  "lets such requests fall back to smaller blocks at once",
				  proven ? "" : "; THP faults may have asked as well, look at thp_fault_fallback in /proc/vmstat",
				  v->reserve ? "; reserve the pool of huge pages first and set this afterwards, since at 1000 a pool grows badly" :
				  v->exhausted ? "; but there is no memory left to tune with" :
				  "; keep vm.compaction_proactiveness above 0 with it",
				  measured_waits(v));
		ka_set_knob(rows, row, KA_KNOB_EXTFRAG_THRESHOLD, ready ? 1000 : KA_UNKNOWN);
		if (new_kernel && row && row->recommended)
			ka_host_command(rows, row, "sysctl -w vm.extfrag_threshold=1000");	/* for the trial: not kept over a reboot */
	}
	saw_stalls(rows, row);
	saw_times(rows, row);
	ka_saw(rows, row, KA_KERNEL_RELEASE);
	ka_observed_text(rows, row, "filesystem", v->folio_filesystem);
	KA_SAW(rows, row, KA_FRAG_FREE_COSTLY, KA_FRAG_UNUSABLE_4, KA_SYSCTL_COMPACTION_PROACTIVENESS);
	KA_LIMITS(rows, row, KA_T_STALL_POLICY, KA_T_STALL_POLICY_WARN, KA_T_STALL_SHARE);
	if (!proven && row)
		row->confidence = KA_INFERRED;
	keep_stock(v, rows, severity);
}

/*
 * compaction.percpu
 */
void
ka_rule_compaction_percpu(const KaView *v, KaRows *rows)
{
	double		drains = ka_real(v->facts, KA_W_PCP_DRAINS, 0);
	KaFact		drained = ka_known(v->facts, KA_W_PCP_DRAIN_ALL) ? KA_W_PCP_DRAIN_ALL : KA_W_PCP_DRAINED;
	double		pages = drains > 0 && ka_known(v->facts, drained) ? ka_real(v->facts, drained, 0) / drains : -1;
	bool		policy_first = v->large_folios == KA_YES && v->stall_rate >= KA_LIMIT(STALL_POLICY) &&
		ka_int(v->facts, KA_SYSCTL_EXTFRAG_THRESHOLD) < 1000 && !v->thp_explains;
	int64_t		now = ka_int(v->facts, KA_SYSCTL_PCP_HIGH_FRACTION);
	int64_t		fraction = KA_UNKNOWN;
	KaAdvice   *row;

	if (v->kernel < ka_sysctl_info[KA_KNOB_PCP_HIGH_FRACTION].since || v->drain_rate < KA_LIMIT(DRAINS) ||
		pages < KA_LIMIT(DRAIN_PAGES))
		return;
	if (v->server_stall_pct >= 0 && v->server_stall_pct < KA_LIMIT(STALL_TIME_PCT))
		return;					/* measured: it costs others */

	/* Lists of a zone hold zone / fraction; the kernel takes 8 and more. */
	if (v->total > 0)
		fraction = ka_max(8, v->total / (int64_t) KA_LIMIT(PCP_TARGET));
	if (now > 0 && (fraction == KA_UNKNOWN || now >= fraction))
		return;					/* small already, or for all that is known */
	if (policy_first || v->exhausted)
		fraction = KA_UNKNOWN;
	row = ka_row(rows, KA_INFO, ka_sysctl_info[KA_KNOB_PCP_HIGH_FRACTION].name);
	ka_reason(rows, row, "%.1f times a second the page lists of all CPUs are drained, %.0f pages each time: %s%s.",
			  v->drain_rate, pages,
			  policy_first ? "set the compaction policy first and see what is left of it; lists of a fixed size would make each drain cheaper" :
			  now > 0 ? "a larger fraction makes the lists smaller and each drain cheaper, at the price of more traffic on the zone locks: try it" :
			  "lists of a fixed size make each drain cheaper, at the price of more traffic on the zone locks: try it",
			  measured_waits(v));
	ka_set_knob(rows, row, KA_KNOB_PCP_HIGH_FRACTION, fraction);
	KA_SAW(rows, row, KA_W_PCP_DRAINS, KA_W_PCP_DRAIN_ALL, KA_W_PCP_DRAINED, KA_W_PCP_AVG, KA_W_PCP_MAX);
	saw_times(rows, row);
	ka_observed_real(rows, row, "drains_per_s", v->drain_rate);
	ka_observed_real(rows, row, "pages_per_drain", pages);
	KA_LIMITS(rows, row, KA_T_DRAINS, KA_T_DRAIN_PAGES);
	if (fraction != KA_UNKNOWN)
		ka_limit(rows, row, KA_T_PCP_TARGET);
}

/*
 * compaction.background
 */

/* kswapd starts too late: what the distance of its watermarks should be. */
static void
late_kswapd(const KaView *v, KaRows *rows)
{
	int64_t		factor = ka_int(v->facts, KA_SYSCTL_WATERMARK_SCALE_FACTOR);
	double		pressure_pct = v->pressure_pct;
	bool		large_writes = v->large_folios == KA_YES && v->kernel >= 7000 &&
		ka_int(v->facts, KA_SYSCTL_EXTFRAG_THRESHOLD) >= 1000;
	bool		has_factor = v->kernel == 0 ? factor != KA_UNKNOWN :
		v->kernel >= ka_sysctl_info[KA_KNOB_WATERMARK_SCALE_FACTOR].since;
	int64_t		distance,
				wanted;
	KaAdvice   *row;

	/* Reclaim that comes with compaction is the policy's, or THP's. */
	if (v->reclaim_rate < KA_LIMIT(RECLAIM_STALL) ||
		v->stall_rate < 0 || v->stall_rate >= v->reclaim_rate * KA_LIMIT(FALLBACK_SHARE) || v->exhausted)
		return;

	row = ka_row(rows, v->available_pct >= KA_LIMIT(RECLAIMABLE_PCT) && !large_writes &&
				 (v->reclaim_rate >= KA_LIMIT(RECLAIM_STALL_WARN) || pressure_pct >= KA_LIMIT(PRESSURE_FULL_PCT)) ?
				 KA_WARNING : KA_INFO,
				 ka_sysctl_info[has_factor ? KA_KNOB_WATERMARK_SCALE_FACTOR : KA_KNOB_MIN_FREE_KBYTES].name);
	distance = (int64_t) ka_min(ka_round((double) ka_max(v->total, 0) * KA_LIMIT(WATERMARK_PCT) / 100),
								(int64_t) KA_LIMIT(WATERMARK_BYTES));
	wanted = v->total > 0 ? ka_max(10, ka_round((double) distance * 10000 / (double) v->total)) : KA_UNKNOWN;
	if (v->available_pct < KA_LIMIT(RECLAIMABLE_PCT) || wanted <= factor || !has_factor || factor == KA_UNKNOWN ||
		large_writes)
		wanted = KA_UNKNOWN;
	ka_reason(rows, row, "%.1f times a second a process had to reclaim memory itself, without any compaction: %s.", v->reclaim_rate,
			  large_writes ? "vm.extfrag_threshold = 1000 ends the compactions of large writes, but from 7.0 on not their reclaim; compare with the rate at the default of 500" :
			  v->available_pct < 0 ? "look at MemAvailable in /proc/meminfo, whether there is cache to reclaim or memory is short" :
			  v->available_pct < KA_LIMIT(RECLAIMABLE_PCT) ? "little is reclaimable, memory is short rather than reclaimed late" :
			  has_factor ? "most of RAM is cache, kswapd only starts too late; a larger distance of its watermarks starts it earlier" :
			  "most of RAM is cache, kswapd only starts too late; a larger vm.min_free_kbytes starts it earlier");
	ka_set_knob(rows, row, has_factor ? KA_KNOB_WATERMARK_SCALE_FACTOR : KA_KNOB_MIN_FREE_KBYTES, wanted);
	saw_stalls(rows, row);
	KA_SAW(rows, row, KA_W_PRESSURE_FULL_US, KA_MEM_AVAILABLE, KA_MEM_TOTAL, KA_SYSCTL_MIN_FREE_KBYTES,
		   KA_SYSCTL_WATERMARK_BOOST_FACTOR);
	ka_observed_real(rows, row, "pressure_full_pct", pressure_pct);
	KA_LIMITS(rows, row, KA_T_RECLAIM_STALL, KA_T_PRESSURE_FULL_PCT, KA_T_RECLAIMABLE_PCT,
			  KA_T_WATERMARK_PCT);
}

/* Large blocks are missing and nothing makes them in the background. */
static void
no_proactive(const KaView *v, KaRows *rows)
{
	bool		policy_says = v->large_folios == KA_YES && !v->thp_explains;
	KaAdvice   *row;

	if (v->kernel < ka_sysctl_info[KA_KNOB_COMPACTION_PROACTIVENESS].since || v->stall_rate < KA_LIMIT(STALL_POLICY) ||
		policy_says || ka_int(v->facts, KA_SYSCTL_COMPACTION_PROACTIVENESS) != 0 || v->exhausted)
		return;
	row = ka_row(rows, KA_INFO, ka_sysctl_info[KA_KNOB_COMPACTION_PROACTIVENESS].name);
	ka_reason(rows, row, "%.1f direct compactions a second, and background compaction is switched off (vm.compaction_proactiveness = 0): nobody keeps large blocks in stock.",
			  v->stall_rate);
	ka_set_knob(rows, row, KA_KNOB_COMPACTION_PROACTIVENESS, ka_sysctl_info[KA_KNOB_COMPACTION_PROACTIVENESS].def);
	saw_stalls(rows, row);
	KA_SAW(rows, row, KA_W_DAEMON_WAKE, KA_W_DAEMON_MIGRATE);
	ka_limit(rows, row, KA_T_STALL_POLICY);
}

/* Stalls that neither the write path nor faults of large pages explain: no guess, but where to look. */
static void
unexplained(const KaView *v, KaRows *rows)
{
	const KaFacts *f = v->facts;
	bool		faults = v->fallback_rate >= 0 ? v->fallback_rate >= KA_LIMIT(FALLBACK_SHARE) * v->stall_rate :
		ka_is(f, KA_THP_DEFRAG, "always");
	bool		shmem = ka_known(f, KA_THP_SHMEM) && !ka_is(f, KA_THP_SHMEM, "never") &&
		!ka_is(f, KA_THP_SHMEM, "advise") && !ka_is(f, KA_THP_SHMEM, "deny");
	KaAdvice   *row;

	if (v->stall_rate < KA_LIMIT(STALL_POLICY_WARN) || v->large_folios == KA_YES || v->exhausted ||
		(faults && v->faults_stall) || (shmem && v->on_huge == KA_NO))
		return;
	row = ka_row(rows, KA_INFO, "compaction");
	ka_reason(rows, row, "%.1f direct compactions a second, and %s: `perf record -a -g -e compaction:mm_compaction_begin` shows who asks for the large blocks.",
			  v->stall_rate,
			  v->large_folios == KA_NO ? "buffered writes of this file system and kernel do not ask for large blocks" :
			  "whether buffered writes ask for large blocks is not known for this file system and kernel");
	saw_stalls(rows, row);
	KA_SAW(rows, row, KA_KERNEL_RELEASE, KA_WAL_FILESYSTEM, KA_DATA_FILESYSTEM, KA_THP_DEFRAG);
	KA_LIMITS(rows, row, KA_T_STALL_POLICY_WARN, KA_T_FALLBACK_SHARE);
}

static void
defrag_first(const KaView *v, KaRows *rows)
{
	KaAdvice   *row;

	if (ka_int(v->facts, KA_SYSCTL_DEFRAG_MODE) != 1 ||
		(v->stall_rate < KA_LIMIT(STALL_POLICY) && v->reclaim_rate < KA_LIMIT(RECLAIM_STALL)))
		return;
	row = ka_row(rows, KA_INFO, ka_sysctl_info[KA_KNOB_DEFRAG_MODE].name);
	ka_reason(rows, row, "vm.defrag_mode is 1: the kernel reclaims and compacts before it mixes block types, which makes processes stall more often; 0 is the default.");
	ka_set_knob(rows, row, KA_KNOB_DEFRAG_MODE, v->exhausted ? KA_UNKNOWN : 0);
	saw_stalls(rows, row);
	ka_limit(rows, row, KA_T_STALL_POLICY);
	if (row)
		row->confidence = KA_INFERRED;	/* that it hurts here was not measured */
}

/* More than the kernel would ever choose: min_free = sqrt(16 * kB), at most 256 MB. */
static void
too_much_kept_free(const KaView *v, KaRows *rows)
{
	int64_t		kept = ka_mul(ka_max(ka_int(v->facts, KA_SYSCTL_MIN_FREE_KBYTES), 0), KIB);
	int64_t		own;
	KaAdvice   *row;

	if (ka_percent(kept, v->total) <= KA_LIMIT(MIN_FREE_PCT))
		return;
	own = ka_min(ka_round(sqrt(16.0 * (double) (v->total / KIB))), 262144);
	row = ka_row(rows, KA_INFO, ka_sysctl_info[KA_KNOB_MIN_FREE_KBYTES].name);
	ka_reason(rows, row, "vm.min_free_kbytes keeps %s free, %.1f %% of RAM, for the kernel's emergencies only.",
			  ka_human(v->arena, kept), ka_percent(kept, v->total));
	ka_set_knob(rows, row, KA_KNOB_MIN_FREE_KBYTES, own);
	ka_saw(rows, row, KA_MEM_TOTAL);
	ka_limit(rows, row, KA_T_MIN_FREE_PCT);
}

void
ka_rule_compaction_background(const KaView *v, KaRows *rows)
{
	late_kswapd(v, rows);
	no_proactive(v, rows);
	unexplained(v, rows);
	defrag_first(v, rows);
	too_much_kept_free(v, rows);
}

/*
 * compaction.not_cause
 */

/* What moved instead, most telling first. */
static const char *
what_moved(const KaView *v)
{
	const KaFacts *f = v->facts;
	double		spread = ka_real(f, KA_PG_CHECKPOINT_TIMEOUT, 0) * ka_real(f, KA_PG_COMPLETION_TARGET, 0) * 1000;

	if (ka_real(f, KA_W_UTIL, 0) >= KA_LIMIT(DEVICE_UTIL_PCT))
		return ka_printf(v->arena, "the device is busy %.0f %% of the time", ka_real(f, KA_W_UTIL, 0));
	if (ka_real(f, KA_W_LATENCY, 0) >= KA_LIMIT(DEVICE_LATENCY_US))
		return ka_printf(v->arena, "a write takes %.1f ms", ka_real(f, KA_W_LATENCY, 0) / 1000);
	if (ka_real(f, KA_W_SYNC_MS, 0) >= KA_LIMIT(SYNC_INFO_MS))
		return ka_printf(v->arena, "the sync phase takes %.1f s", ka_real(f, KA_W_SYNC_MS, 0) / 1000);
	if (ka_real(f, KA_W_REQUESTED, 0) > ka_real(f, KA_W_TIMED, 0))
		return "checkpoints are started by WAL volume, before their time";
	if (spread > 0 && ka_known(f, KA_W_WRITE_MS) && ka_real(f, KA_W_WRITE_MS, 0) < spread / 2)
		return ka_printf(v->arena, "the write phase takes %.0f s and not the %.0f s over which it is to be spread",
						 ka_real(f, KA_W_WRITE_MS, 0) / 1000, spread / 1000);
	return "full-page images after each checkpoint and the device's own queue are the next to look at";
}

void
ka_rule_compaction_not_cause(const KaView *v, KaRows *rows)
{
	const KaFacts *f = v->facts;
	int64_t		stalls = ka_int(f, KA_W_COMPACT_STALL);
	int64_t		reclaims = ka_int(f, KA_W_ALLOCSTALL);
	bool		measured = v->server_stall_pct >= 0;
	KaAdvice   *row;

	if (v->dip < KA_LIMIT(DIP_PCT) || stalls == KA_UNKNOWN)
		return;
	/* The drain and whatever else waits for memory is not acquitted by these two counters. */
	if (v->drain_rate >= KA_LIMIT(DRAINS) || v->pressure_pct >= KA_LIMIT(PRESSURE_FULL_PCT))
		return;
	/* Time is what counts where it is known: the counts are those of the whole machine. */
	if (measured ? v->server_stall_pct >= KA_LIMIT(STALL_TIME_PCT) :
	/* Without the window's length only a zero can be judged. */
		v->seconds > 0 ? v->stall_rate >= KA_LIMIT(STALL_IDLE) || v->reclaim_rate >= KA_LIMIT(STALL_IDLE) :
		stalls > 0 || reclaims > 0)
		return;

	row = ka_row(rows, KA_OK, "compaction");
	ka_reason(rows, row, "Throughput falls by %.0f %% during checkpoints, but compaction is not the cause: %s; %s.",
			  v->dip,
			  measured ? ka_printf(v->arena, "this server's processes spent %.1f ms of %.0f s in direct compaction and direct reclaim (measured)",
								   (ka_real(f, KA_W_SERVER_COMPACT_US, 0) + ka_real(f, KA_W_SERVER_RECLAIM_US, 0)) / 1000, v->seconds) :
			  ka_printf(v->arena, "%lld direct compactions and %s direct reclaims", (long long) stalls,
						reclaims == KA_UNKNOWN ? "an unknown number of" : ka_printf(v->arena, "%lld", (long long) reclaims)),
			  what_moved(v));
	saw_stalls(rows, row);
	saw_times(rows, row);
	KA_SAW(rows, row, KA_W_DIP, KA_W_TPS_IDLE, KA_W_TPS_CHECKPOINT, KA_W_UTIL, KA_W_LATENCY, KA_W_WRITE_MS,
		   KA_W_SYNC_MS, KA_W_REQUESTED);
	KA_LIMITS(rows, row, KA_T_DIP_PCT, KA_T_STALL_IDLE);
}
