/*
 * probe_sql.c: the views "stalls" and "backend_stalls".
 *
 * What belongs to a checkpoint comes from its row in the ring; what the probe
 * has counted since it started, and the processes that live now, from a look at
 * its file.  Without a probe that runs there are no rows of the second kind.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "probe.h"
#include "row.h"
#include "shared.h"

PG_FUNCTION_INFO_V1(ka_stalls_sql);
PG_FUNCTION_INFO_V1(ka_backend_stalls_sql);

/* One row of the view stalls. */
typedef struct StallRow
{
	int64		checkpoint_id;	/* KA_UNKNOWN: since the probe started */
	KaWho		who;
	KaStallKind kind;
	int64		count;
	int64		total_us;
	int64		longest_us;
	int64		bucket[KA_STALL_BUCKETS];
} StallRow;

/* {"4": 17, "8": 3}: how many took from 4 us to less than 8, and so on; jsonb puts the keys in the order of the numbers. */
static Datum
histogram(const int64 *bucket)
{
	StringInfoData text;
	const char *separator = "{";

	initStringInfo(&text);
	for (int i = 0; i < KA_STALL_BUCKETS; i++)
	{
		if (bucket[i] == 0)
			continue;
		appendStringInfo(&text, "%s\"%d\": " INT64_FORMAT, separator, i == 0 ? 0 : 1 << (i - 1), bucket[i]);
		separator = ", ";
	}
	appendStringInfoString(&text, text.len == 0 ? "{}" : "}");
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(text.data));
}

static void
put_stall(KaRow *out, const StallRow *row)
{
	ka_row_int64(out, row->checkpoint_id);
	ka_row_text(out, ka_who_name[row->who]);
	ka_row_text(out, ka_stall_name[row->kind]);
	ka_row_int64(out, row->count);
	ka_row_int64(out, row->total_us);
	ka_row_int64(out, row->longest_us);
	ka_row_put(out, true, histogram(row->bucket));
	ka_row_store(out);
}

static void
put_checkpoint_stalls(KaRow *out, const KaCheckpointRow *checkpoint)
{
	for (int who = 0; who < KA_NWHOS; who++)
	{
		for (int kind = 0; kind < KA_NSTALLS; kind++)
		{
			const KaStallSum *sum = &checkpoint->stalls.by[who][kind];
			StallRow	row = {.checkpoint_id = checkpoint->checkpoint_id,.who = who,.kind = kind};

			if (!checkpoint->stalls.known || sum->count == 0)
				continue;
			row.count = sum->count;
			row.total_us = sum->total_us;
			row.longest_us = sum->longest_us;
			for (int i = 0; i < KA_STALL_BUCKETS; i++)
				row.bucket[i] = sum->bucket[i];
			put_stall(out, &row);
		}
	}
}

/* What is known of our postmaster's number on the host, for a look at the file from here. */
static void
remembered(KaProbeReading *reading)
{
	memset(reading, 0, sizeof(*reading));
	if (!ka_shared_available())
		return;
	SpinLockAcquire(&ka_shared->mutex);
	reading->server_pid = ka_shared->probe_server_pid;
	SpinLockRelease(&ka_shared->mutex);
}

/* Since the probe started: all of them, so that a zero is seen to be one. */
static void
put_probe_stalls(KaRow *out)
{
	KaProbeState state;
	const char *problem;
	KaProbeFile *file = ka_probe_look(&state, &problem);
	KaProbeReading *before = palloc(sizeof(KaProbeReading));
	KaProbeReading *reading = palloc(sizeof(KaProbeReading));

	if (state != KA_PROBE_OK)
		return;
	remembered(before);
	ka_probe_reading(file, before, reading);
	for (int who = 0; who < KA_NWHOS; who++)
	{
		/* In a container, until a process of ours was seen. */
		if (who < KA_WHO_OTHER && reading->server_pid == 0)
			continue;
		for (int kind = 0; kind < KA_NSTALLS; kind++)
		{
			const KaStallTotal *total = &reading->stalls[who][kind];
			StallRow	row = {.checkpoint_id = KA_UNKNOWN,.who = who,.kind = kind};

			row.count = total->count;
			row.total_us = total->total_ns / 1000;
			row.longest_us = total->longest_ns / 1000;
			for (int i = 0; i < KA_STALL_BUCKETS; i++)
				row.bucket[i] = total->bucket[i];
			put_stall(out, &row);
		}
	}
}

Datum
ka_stalls_sql(PG_FUNCTION_ARGS)
{
	KaRow		out;
	KaCheckpointRow *rows;
	uint64		end;
	uint64		next = 0;
	int			n;

	ka_shared_require();
	ka_row_begin(&out, fcinfo);

	rows = palloc(KA_RING_CHUNK * sizeof(KaCheckpointRow));
	end = ka_ring_checkpoints_end(NULL);
	while (next < end && (n = ka_ring_copy_checkpoints(next, rows, KA_RING_CHUNK, &next)) > 0)
	{
		for (int i = 0; i < n && next - n + i < end; i++)
			put_checkpoint_stalls(&out, &rows[i]);
		CHECK_FOR_INTERRUPTS();
	}
	put_probe_stalls(&out);
	return (Datum) 0;
}

static void
put_process(KaRow *out, const KaProbeProcess *process, int pid)
{
	const KaProbeCounters *counters = &process->counters;
	const uint64 numbers[] = {
		counters->compact_stalls, counters->compaction.total_ns / 1000, counters->compaction.longest_ns / 1000,
		counters->reclaim.count, counters->reclaim.total_ns / 1000, counters->reclaim.longest_ns / 1000,
		counters->drain_alls,
		counters->drained_pages[KA_DRAIN_COMPACTION] + counters->drained_pages[KA_DRAIN_RECLAIM] +
		counters->drained_pages[KA_DRAIN_ALL],
	};

	ka_row_int32(out, pid);
	ka_row_text(out, ka_probe_kind_name(process->kind));
	for (size_t i = 0; i < lengthof(numbers); i++)
		ka_row_int64(out, (int64) numbers[i]);
	ka_row_store(out);
}

Datum
ka_backend_stalls_sql(PG_FUNCTION_ARGS)
{
	KaRow		out;
	KaProbeState state;
	const char *problem;
	KaProbeFile *file;
	KaProbeReading *before;
	KaProbeReading *reading;

	ka_row_begin(&out, fcinfo);

	file = ka_probe_look(&state, &problem);
	if (state != KA_PROBE_OK)
		return (Datum) 0;
	before = palloc(sizeof(KaProbeReading));
	reading = palloc(sizeof(KaProbeReading));
	remembered(before);
	ka_probe_reading(file, before, reading);
	for (uint32 i = 0; i < file->header.nprocesses; i++)
	{
		int			pid = ka_probe_own_pid(&file->processes[i], reading->server_pid);

		if (pid != 0)
			put_process(&out, &file->processes[i], pid);
	}
	return (Datum) 0;
}
