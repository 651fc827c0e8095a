/*
 * rules_checkpoint.c: spacing, sync phase and visibility of checkpoints, and
 * the device below them.
 *
 * A window that spans a restart holds a shutdown checkpoint and start-up work;
 * its ratios and means say nothing about the settings.
 *
 * Locks: none.
 */
#include "rules.h"

#include <string.h>

/*
 * checkpoint.spacing
 */

/*
 * WAL after which a checkpoint starts: max_wal_size / (1 + completion target),
 * and (2 + target) before 11, when WAL of two checkpoints was kept.
 */
static double
trigger_divisor(const KaView *v)
{
	double		target = ka_real(v->facts, KA_PG_COMPLETION_TARGET,
								 v->version != KA_UNKNOWN && v->version < 140000 ? 0.5 : 0.9);

	return (v->version != KA_UNKNOWN && v->version < 110000 ? 2 : 1) + target;
}

/* Room for the WAL of a whole checkpoint_timeout; KA_UNKNOWN when the rate of WAL is not known. */
static int64_t
sufficient_wal(const KaView *v, double distance, double interval, double timeout)
{
	double		bytes;

	if (distance <= 0 || interval <= 0)
		return KA_UNKNOWN;
	bytes = distance / interval * timeout * trigger_divisor(v) * KA_LIMIT(SPACING_ROOM);
	if (bytes > 1e18)
		return KA_UNKNOWN;
	return bytes > (double) GIB ? ka_mul(ka_ceil_div(ka_round(bytes), GIB), GIB) :
		ka_mul(ka_ceil_div(ka_max(ka_round(bytes), 1), 64 * MIB), 64 * MIB);
}

static void
too_many_requested(const KaView *v, KaRows *rows)
{
	const KaFacts *f = v->facts;
	double		requested = ka_real(f, KA_W_REQUESTED, -1);
	double		count = ka_known(f, KA_W_TIMED) ? requested + ka_real(f, KA_W_TIMED, 0) : ka_real(f, KA_W_CHECKPOINTS, -1);
	double		timeout = ka_real(f, KA_PG_CHECKPOINT_TIMEOUT, 300);
	double		interval = count > 0 && v->seconds > 0 ? v->seconds / count : -1;
	double		distance = ka_real(f, KA_W_DISTANCE, -1);
	int64_t		current = ka_int(f, KA_PG_MAX_WAL_SIZE);
	double		trigger = current > 0 ? (double) current / trigger_divisor(v) : -1;
	int64_t		wanted;
	bool		commands;
	KaAdvice   *row;

	if (requested < 0 || count < KA_LIMIT(REQUESTED_EVENTS) || requested * 100 < count * KA_LIMIT(REQUESTED_PCT))
		return;

	/* Checkpoints started by WAL are about one trigger distance apart. */
	commands = trigger > 0 && distance >= 0 && distance < trigger * KA_LIMIT(SPACING_COMMANDS);
	wanted = commands ? KA_UNKNOWN : sufficient_wal(v, distance > 0 ? distance : trigger, interval, timeout);
	/* No less than there is, or than the default where that is not known. */
	if (wanted != KA_UNKNOWN && wanted <= (current > 0 ? current : GIB))
		wanted = KA_UNKNOWN;
	row = ka_row(rows, !commands && (interval < 0 || interval < timeout * KA_LIMIT(SPACING_EARLY)) ? KA_WARNING : KA_INFO,
				 "max_wal_size");
	if (commands)
		ka_reason(rows, row, "%.0f of %.0f checkpoints were requested, but with little WAL between them: commands asked for them (CHECKPOINT, base backups, CREATE DATABASE), max_wal_size is not the reason.",
				  requested, count);
	else
		ka_reason(rows, row, "%.0f of %.0f checkpoints were started by WAL volume%s, before checkpoint_timeout (%.0f s%s): each makes the pages that follow it be written to WAL in full.",
				  requested, count, interval < 0 ? "" : ka_printf(v->arena, ", one every %.0f s", interval),
				  timeout, ka_known(f, KA_PG_CHECKPOINT_TIMEOUT) ? "" : ", the default");
	ka_set_guc(rows, row, "max_wal_size", current > 0 ? ka_setting(v->arena, current) : NULL,
			   wanted != KA_UNKNOWN ? ka_setting(v->arena, wanted) : NULL, KA_RELOAD);
	KA_SAW(rows, row, KA_W_REQUESTED, KA_W_TIMED, KA_W_DISTANCE, KA_PG_CHECKPOINT_TIMEOUT,
		   KA_PG_COMPLETION_TARGET);
	ka_observed_real(rows, row, "interval_s", interval);
	ka_observed_real(rows, row, "trigger_distance_bytes", trigger);
	KA_LIMITS(rows, row, KA_T_REQUESTED_EVENTS, KA_T_REQUESTED_PCT, KA_T_SPACING_EARLY, KA_T_SPACING_ROOM);
}

static void
low_target(const KaView *v, KaRows *rows)
{
	double		target = ka_real(v->facts, KA_PG_COMPLETION_TARGET, 1);
	bool		felt = v->dip >= KA_LIMIT(DIP_PCT) || ka_real(v->facts, KA_W_UTIL, 0) >= KA_LIMIT(DEVICE_UTIL_PCT);
	KaAdvice   *row;

	if (target >= KA_LIMIT(COMPLETION_TARGET))
		return;
	row = ka_row(rows, felt ? KA_WARNING : KA_INFO, "checkpoint_completion_target");
	ka_reason(rows, row, "checkpoint_completion_target is %.2g: checkpoints write in %.0f %% of the time that they have%s.",
			  target, target * 100, felt ? ", and the load feels it" : "");
	ka_set_guc(rows, row, "checkpoint_completion_target", ka_printf(v->arena, "%.2g", target), "0.9", KA_RELOAD);
	KA_SAW(rows, row, KA_PG_COMPLETION_TARGET, KA_W_DIP, KA_W_UTIL, KA_W_WRITE_MS);
	ka_limit(rows, row, KA_T_COMPLETION_TARGET);
}

void
ka_rule_checkpoint_spacing(const KaView *v, KaRows *rows)
{
	/* Restartpoints follow the primary's checkpoints. */
	if (ka_yes(v->facts, KA_PG_IN_RECOVERY))
		return;
	if (!ka_yes(v->facts, KA_W_SPANS_RESTART))
		too_many_requested(v, rows);
	low_target(v, rows);
}

/*
 * checkpoint.sync
 */

/* What the kernel holds back before background writeback starts, or KA_UNKNOWN. */
static int64_t
background_bytes(const KaView *v)
{
	int64_t		bytes = ka_int(v->facts, KA_SYSCTL_DIRTY_BACKGROUND_BYTES);
	int64_t		ratio = ka_int(v->facts, KA_SYSCTL_DIRTY_BACKGROUND_RATIO);
	int64_t		available = ka_int(v->facts, KA_MEM_AVAILABLE);

	if (bytes > 0)
		return bytes;
	if (ratio <= 0)
		return KA_UNKNOWN;
	if (available == KA_UNKNOWN)
		available = v->total;
	return available > 0 ? ka_round((double) available * (double) ratio / 100) : KA_UNKNOWN;
}

/*
 * Sized to RAM: dirty_background_pct of it.  To the device: a sync of s
 * seconds wrote at most what was held back, so it takes that / s in a second;
 * the backlog should be no more.
 */
static int64_t
sufficient_background(const KaView *v, int64_t held_back, double sync_ms)
{
	double		bytes;

	if (v->total <= 0)
		return KA_UNKNOWN;
	bytes = (double) v->total * KA_LIMIT(DIRTY_BACKGROUND_PCT) / 100;
	if (held_back > 0 && sync_ms > 1000 && (double) held_back * 1000 / sync_ms < bytes)
		bytes = (double) held_back * 1000 / sync_ms;
	if (bytes > KA_LIMIT(DIRTY_BACKGROUND_MAX))
		bytes = KA_LIMIT(DIRTY_BACKGROUND_MAX);
	if (bytes < KA_LIMIT(DIRTY_BACKGROUND_MIN))
		bytes = KA_LIMIT(DIRTY_BACKGROUND_MIN);
	return ka_round(bytes) / (16 * MIB) * (16 * MIB);
}

void
ka_rule_checkpoint_sync(const KaView *v, KaRows *rows)
{
	const KaFacts *f = v->facts;
	double		mean = ka_real(f, KA_W_SYNC_MS, -1);
	double		longest = ka_real(f, KA_W_SYNC_MAX_MS, -1);
	bool		saturated = ka_real(f, KA_W_UTIL, 0) >= KA_LIMIT(DEVICE_UTIL_PCT);
	bool		hopeless = saturated && ka_real(f, KA_W_LATENCY, 0) >= KA_LIMIT(DEVICE_LATENCY_US);
	int64_t		held_back = background_bytes(v);
	int64_t		wanted;
	KaSeverity	severity;
	KaAdvice   *row;

	if (ka_yes(f, KA_W_SPANS_RESTART) || (mean < KA_LIMIT(SYNC_INFO_MS) && longest < KA_LIMIT(SYNC_MAX_INFO_MS)))
		return;
	severity = mean >= KA_LIMIT(SYNC_WARN_MS) || longest >= KA_LIMIT(SYNC_MAX_WARN_MS) ? KA_WARNING : KA_INFO;
	wanted = sufficient_background(v, held_back, mean > 0 ? mean : longest);
	/* storage.saturated: no memory setting helps. */
	if (v->exhausted || hopeless || !v->kernel_in_reach || (held_back != KA_UNKNOWN && wanted >= held_back))
		wanted = KA_UNKNOWN;

	row = ka_row(rows, severity, v->kernel_in_reach ? ka_sysctl_info[KA_KNOB_DIRTY_BACKGROUND_BYTES].name : "sync_phase");
	ka_reason(rows, row, "The sync phase of a checkpoint takes %.1f s%s: %s.",
			  (mean >= 0 ? mean : longest) / 1000,
			  mean >= 0 && longest > mean ? ka_printf(v->arena, " on average and %.1f s at worst", longest / 1000) : "",
			  hopeless ? "the device is at its limit all the time, not only then" :
			  saturated ? "the device is busy all the time, and what the kernel held back until then makes it worse" :
			  !v->kernel_in_reach ? "the system held the writes back until fsync; checkpoint_flush_after spreads them where it is supported" :
			  held_back != KA_UNKNOWN && wanted == KA_UNKNOWN && v->total > 0 ?
			  "the kernel writes back early already, so look at the device" :
			  "the kernel held the writes back until fsync; a smaller vm.dirty_background_bytes and checkpoint_flush_after spread them");
	ka_set_knob(rows, row, KA_KNOB_DIRTY_BACKGROUND_BYTES, wanted);
	KA_SAW(rows, row, KA_W_SYNC_MS, KA_W_SYNC_MAX_MS, KA_W_SYNC_FILES, KA_W_WRITE_MS, KA_W_UTIL,
		   KA_SYSCTL_DIRTY_BACKGROUND_RATIO, KA_MEM_DIRTY, KA_MEM_TOTAL);
	ka_observed(rows, row, "held_back_bytes", held_back);
	KA_LIMITS(rows, row, KA_T_SYNC_INFO_MS, KA_T_SYNC_WARN_MS, KA_T_SYNC_MAX_WARN_MS);
	if (wanted != KA_UNKNOWN)
		ka_limit(rows, row, KA_T_DIRTY_BACKGROUND_PCT);

	if (ka_int(f, KA_PG_FLUSH_AFTER) == 0)
	{
		row = ka_row(rows, KA_INFO, "checkpoint_flush_after");
		ka_reason(rows, row, "checkpoint_flush_after is 0: the checkpointer leaves all of its writes to the sync phase.");
		ka_set_guc(rows, row, "checkpoint_flush_after", "0", "256kB", KA_RELOAD);
		KA_SAW(rows, row, KA_PG_FLUSH_AFTER, KA_W_SYNC_MS);
	}
}

/*
 * checkpoint.visibility
 */
void
ka_rule_checkpoint_visibility(const KaView *v, KaRows *rows)
{
	KaAdvice   *row;

	if (!ka_known(v->facts, KA_PG_LOG_CHECKPOINTS) || ka_yes(v->facts, KA_PG_LOG_CHECKPOINTS))
		return;
	row = ka_row(rows, KA_INFO, "log_checkpoints");
	ka_reason(rows, row, "log_checkpoints is off: nobody sees how long checkpoints write and sync, and what started them.");
	ka_set_guc(rows, row, "log_checkpoints", "off", "on", KA_RELOAD);
	ka_saw(rows, row, KA_PG_LOG_CHECKPOINTS);
	if (row)
		row->confidence = KA_DOCUMENTED;
}

/*
 * storage.saturated
 */
void
ka_rule_storage_saturated(const KaView *v, KaRows *rows)
{
	const KaFacts *f = v->facts;
	double		busy = ka_real(f, KA_W_UTIL, -1);
	double		latency = ka_real(f, KA_W_LATENCY, -1);
	bool		full = busy >= KA_LIMIT(DEVICE_UTIL_PCT);
	bool		slow = latency >= KA_LIMIT(DEVICE_LATENCY_US);
	const char *device = ka_text(f, KA_DATA_DEVICE);
	KaAdvice   *row;

	/* Busy alone is no limit: a parallel device is never idle and far from full. */
	if (!(full && (slow || latency < 0)) && !(busy < 0 && latency >= KA_LIMIT(DEVICE_SLOW_US)))
		return;
	row = ka_row(rows, full && (slow || v->dip >= KA_LIMIT(DIP_PCT)) ? KA_WARNING : KA_INFO, "storage");
	ka_reason(rows, row, "The device%s%s is %s: memory settings will not help; spread the writes (checkpoint_completion_target, max_wal_size), move pg_wal, or take a faster one.",
			  device ? " " : "", device ? device : "",
			  full && slow ? ka_printf(v->arena, "at its limit, busy %.0f %% of the time with %.1f ms a write", busy, latency / 1000) :
			  full ? ka_printf(v->arena, "busy %.0f %% of the time", busy) :
			  ka_printf(v->arena, "slow, %.0f ms a write", latency / 1000));
	KA_SAW(rows, row, KA_W_UTIL, KA_W_LATENCY, KA_W_REQUEST_BYTES, KA_DATA_DEVICE, KA_WAL_DEVICE);
	KA_LIMITS(rows, row, KA_T_DEVICE_UTIL_PCT, KA_T_DEVICE_LATENCY_US);
	if (busy < 0)
		ka_limit(rows, row, KA_T_DEVICE_SLOW_US);
}

/*
 * io.contiguity
 */
void
ka_rule_io_contiguity(const KaView *v, KaRows *rows)
{
	const KaFacts *f = v->facts;
	double		mean = ka_real(f, KA_W_REQUEST_BYTES, -1);
	double		whole = ka_real(f, KA_W_REQUEST_BYTES_UNFRAG, -1);
	bool		fragmented = ka_known(f, KA_FRAG_UNUSABLE_4) ?
		ka_real(f, KA_FRAG_UNUSABLE_4, 0) >= KA_LIMIT(UNUSABLE_INDEX) : ka_int(f, KA_FRAG_FREE_COSTLY) == 0;
	KaAdvice   *row;

	if (!fragmented || mean <= 0 || whole <= 0 || mean > whole * KA_LIMIT(REQUEST_RATIO))
		return;
	row = ka_row(rows, KA_INFO, "write_requests");
	ka_reason(rows, row, "Write requests are %s on average and %s when memory is not fragmented: no large block is free, and a request ends where its pieces of memory are used up%s.",
			  ka_human(v->arena, ka_round(mean)), ka_human(v->arena, ka_round(whole)),
			  ka_int(f, KA_SYSCTL_COMPACTION_PROACTIVENESS) == 0 ? "; vm.compaction_proactiveness is 0, so nothing makes large ones" : "");
	ka_host_command(rows, row, "sysctl -w vm.compact_memory=1");
	KA_SAW(rows, row, KA_W_REQUEST_BYTES, KA_W_REQUEST_BYTES_UNFRAG, KA_FRAG_UNUSABLE_4,
		   KA_FRAG_FREE_COSTLY, KA_SYSCTL_COMPACTION_PROACTIVENESS);
	KA_LIMITS(rows, row, KA_T_REQUEST_RATIO, KA_T_UNUSABLE_INDEX);
}
