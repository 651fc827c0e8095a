/*
 * views.c: the rings and the sums of their samples as rows, and reset().
 *
 * A call returns what was there when it began: it stops at the position that
 * was the end then.  Slots are copied in chunks into memory of the call and
 * formatted after the ring's lock was released.
 */
#include "postgres.h"

#include <math.h>
#include <unistd.h>

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "ring.h"
#include "shared.h"

PG_FUNCTION_INFO_V1(ka_samples);
PG_FUNCTION_INFO_V1(ka_checkpoints);
PG_FUNCTION_INFO_V1(ka_counters);
PG_FUNCTION_INFO_V1(ka_reset);

#define SAMPLE_COLS (4 + KA_NSHOWN_DELTAS + KA_NGAUGES)
#define CHECKPOINT_COLS (14 + KA_NSHOWN_DELTAS + 4)

/* A row being built, column by column: the order is that of the install script. */
typedef struct RowBuilder
{
	int			column;
	Datum		values[Max(SAMPLE_COLS, CHECKPOINT_COLS)];
	bool		nulls[Max(SAMPLE_COLS, CHECKPOINT_COLS)];
} RowBuilder;

static void
put(RowBuilder *row, bool known, Datum value)
{
	row->nulls[row->column] = !known;
	row->values[row->column++] = known ? value : (Datum) 0;
}

static void
put_int64(RowBuilder *row, int64 value)
{
	put(row, value != KA_UNKNOWN, Int64GetDatum(value));
}

static void
put_int32(RowBuilder *row, int64 value)
{
	put(row, value != KA_UNKNOWN, Int32GetDatum((int32) value));
}

/* A number that is not known is NaN. */
static void
put_float8(RowBuilder *row, double value)
{
	put(row, !isnan(value), Float8GetDatum(value));
}

static void
put_ms(RowBuilder *row, int64 ms)
{
	put(row, ms != KA_UNKNOWN, Float8GetDatum((double) ms));
}

static void
put_text(RowBuilder *row, const char *text)
{
	put(row, text != NULL, text ? CStringGetTextDatum(text) : (Datum) 0);
}

static void
put_row(RowBuilder *row, ReturnSetInfo *result)
{
	if (row->column != result->setDesc->natts)
		elog(ERROR, "incorrect number of output columns: %d, expected %d",
			 result->setDesc->natts, row->column);
	tuplestore_putvalues(result->setResult, result->setDesc, row->values, row->nulls);
	row->column = 0;
}

static void
put_sample(RowBuilder *row, const void *slot)
{
	const KaSample *sample = slot;

	put(row, true, TimestampTzGetDatum(sample->at));
	put_float8(row, sample->interval_us / 1000.0);
	put_int64(row, sample->checkpoint_id);
	put_text(row, ka_phase_name[sample->phase]);
	for (int i = 0; i < (int) KA_NSHOWN_DELTAS; i++)
		put_int64(row, sample->delta[i]);
	for (int i = 0; i < KA_NGAUGES; i++)
	{
		if (i == KA_G_BACKENDS)
			put_int32(row, sample->gauge[i]);
		else
			put_int64(row, sample->gauge[i]);
	}
}

static void
put_checkpoint(RowBuilder *row, const void *slot)
{
	const KaCheckpointRow *checkpoint = slot;

	put_int64(row, checkpoint->checkpoint_id);
	put_text(row, ka_kind_name[checkpoint->kind]);
	put(row, true, BoolGetDatum(checkpoint->restartpoint != 0));
	put(row, true, TimestampTzGetDatum(checkpoint->started_at));
	put_ms(row, checkpoint->write_ms);
	put_ms(row, checkpoint->sync_ms);
	put_ms(row, checkpoint->total_ms);
	put_int64(row, checkpoint->buffers_written);
	put_int32(row, checkpoint->files_synced);
	put_ms(row, checkpoint->longest_sync_ms);
	put_int32(row, checkpoint->wal_added);
	put_int32(row, checkpoint->wal_removed);
	put_int32(row, checkpoint->wal_recycled);
	put_int64(row, checkpoint->distance_bytes);
	for (int i = 0; i < (int) KA_NSHOWN_DELTAS; i++)
		put_int64(row, checkpoint->delta[i]);
	put_float8(row, checkpoint->tps_before);
	put_float8(row, checkpoint->tps_during);
	put_float8(row, checkpoint->dip_pct);
	put_text(row, ka_source_name[checkpoint->source]);
}

/* One of the two rings: how its slots are copied and made into rows. */
typedef struct View
{
	Size		slot_size;
	uint64		(*end) (uint64 *filled);
	int			(*copy) (uint64 from, void *out, int max, uint64 *next);
	void		(*put) (RowBuilder *row, const void *slot);
} View;

static int
copy_samples(uint64 from, void *out, int max, uint64 *next)
{
	return ka_ring_copy_samples(from, out, max, next);
}

static int
copy_checkpoints(uint64 from, void *out, int max, uint64 *next)
{
	return ka_ring_copy_checkpoints(from, out, max, next);
}

static const View samples_view = {sizeof(KaSample), ka_ring_samples_end, copy_samples, put_sample};
static const View checkpoints_view = {sizeof(KaCheckpointRow), ka_ring_checkpoints_end, copy_checkpoints, put_checkpoint};

static void
put_view(FunctionCallInfo fcinfo, const View *view)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	RowBuilder	row = {0};
	char	   *slots;
	uint64		end;
	uint64		next = 0;
	int			n;

	ka_shared_require();
	InitMaterializedSRF(fcinfo, 0);

	slots = palloc(KA_RING_CHUNK * view->slot_size);
	end = view->end(NULL);
	while (next < end && (n = view->copy(next, slots, KA_RING_CHUNK, &next)) > 0)
	{
		for (int i = 0; i < n && next - n + i < end; i++)
		{
			view->put(&row, slots + i * view->slot_size);
			put_row(&row, result);
		}
		CHECK_FOR_INTERRUPTS();
	}
}

Datum
ka_samples(PG_FUNCTION_ARGS)
{
	put_view(fcinfo, &samples_view);
	return (Datum) 0;
}

Datum
ka_checkpoints(PG_FUNCTION_ARGS)
{
	put_view(fcinfo, &checkpoints_view);
	return (Datum) 0;
}

/* The sums of the samples since the server started: a row for those in checkpoints, one for the others. */
Datum
ka_counters(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	RowBuilder	row = {0};
	KaCounted	counted[KA_NDURING];
	TimestampTz since;

	ka_shared_require();
	InitMaterializedSRF(fcinfo, 0);

	since = ka_ring_counted(counted);
	for (int during = 0; during < KA_NDURING; during++)
	{
		put_text(&row, ka_during_name[during]);
		put(&row, true, TimestampTzGetDatum(since));
		put(&row, counted[during].until != 0, TimestampTzGetDatum(counted[during].until));
		put_int64(&row, counted[during].samples);
		put_float8(&row, counted[during].sampled_us / 1000.0);
		for (int i = 0; i < (int) KA_NSHOWN_DELTAS; i++)
			put_int64(&row, counted[during].delta[i]);
		put_row(&row, result);
	}
	return (Datum) 0;
}

Datum
ka_reset(PG_FUNCTION_ARGS)
{
	(void) fcinfo;

	ka_shared_require();
	ka_ring_reset();

	/* Nor must a crash bring it back; the sampler writes a new file at once. */
	if (unlink(KA_HISTORY_FILE) != 0 && errno != ENOENT)
		ereport(WARNING,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", KA_HISTORY_FILE)));
	ka_sampler_wake();

	PG_RETURN_VOID();
}
