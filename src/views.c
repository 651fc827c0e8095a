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
#include "row.h"
#include "shared.h"

PG_FUNCTION_INFO_V1(ka_samples);
PG_FUNCTION_INFO_V1(ka_checkpoints);
PG_FUNCTION_INFO_V1(ka_counters);
PG_FUNCTION_INFO_V1(ka_reset);

static void
put_ms(KaRow *row, int64 ms)
{
	ka_row_put(row, ms != KA_UNKNOWN, Float8GetDatum((double) ms));
}

static void
put_sample(KaRow *row, const void *slot)
{
	const KaSample *sample = slot;

	ka_row_time(row, sample->at);
	ka_row_number(row, sample->interval_us / 1000.0);
	ka_row_int64(row, sample->checkpoint_id);
	ka_row_text(row, ka_phase_name[sample->phase]);
	for (int i = 0; i < (int) KA_NSHOWN_DELTAS; i++)
		ka_row_int64(row, sample->delta[i]);
	for (int i = 0; i < KA_NGAUGES; i++)
	{
		if (i == KA_G_BACKENDS)
			ka_row_int32(row, sample->gauge[i]);
		else
			ka_row_int64(row, sample->gauge[i]);
	}
}

static void
put_checkpoint(KaRow *row, const void *slot)
{
	const KaCheckpointRow *checkpoint = slot;

	ka_row_int64(row, checkpoint->checkpoint_id);
	ka_row_text(row, ka_kind_name[checkpoint->kind]);
	ka_row_bool(row, checkpoint->restartpoint != 0);
	ka_row_time(row, checkpoint->started_at);
	put_ms(row, checkpoint->write_ms);
	put_ms(row, checkpoint->sync_ms);
	put_ms(row, checkpoint->total_ms);
	ka_row_int64(row, checkpoint->buffers_written);
	ka_row_int32(row, checkpoint->files_synced);
	put_ms(row, checkpoint->longest_sync_ms);
	ka_row_int32(row, checkpoint->wal_added);
	ka_row_int32(row, checkpoint->wal_removed);
	ka_row_int32(row, checkpoint->wal_recycled);
	ka_row_int64(row, checkpoint->distance_bytes);
	for (int i = 0; i < (int) KA_NSHOWN_DELTAS; i++)
		ka_row_int64(row, checkpoint->delta[i]);
	ka_row_number(row, checkpoint->tps_before);
	ka_row_number(row, checkpoint->tps_during);
	ka_row_number(row, checkpoint->dip_pct);
	ka_row_text(row, ka_source_name[checkpoint->source]);
}

/* One of the two rings: how its slots are copied and made into rows. */
typedef struct View
{
	Size		slot_size;
	uint64		(*end) (uint64 *filled);
	int			(*copy) (uint64 from, void *out, int max, uint64 *next);
	void		(*put) (KaRow *row, const void *slot);
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
	KaRow		row;
	char	   *slots;
	uint64		end;
	uint64		next = 0;
	int			n;

	ka_shared_require();
	ka_row_begin(&row, fcinfo);

	slots = palloc(KA_RING_CHUNK * view->slot_size);
	end = view->end(NULL);
	while (next < end && (n = view->copy(next, slots, KA_RING_CHUNK, &next)) > 0)
	{
		for (int i = 0; i < n && next - n + i < end; i++)
		{
			view->put(&row, slots + i * view->slot_size);
			ka_row_store(&row);
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
	KaRow		row;
	KaCounted	counted[KA_NDURING];
	TimestampTz since;

	ka_shared_require();
	ka_row_begin(&row, fcinfo);

	since = ka_ring_counted(counted);
	for (int during = 0; during < KA_NDURING; during++)
	{
		ka_row_text(&row, ka_during_name[during]);
		ka_row_time(&row, since);
		ka_row_time(&row, counted[during].until);
		ka_row_int64(&row, counted[during].samples);
		ka_row_number(&row, counted[during].sampled_us / 1000.0);
		for (int i = 0; i < (int) KA_NSHOWN_DELTAS; i++)
			ka_row_int64(&row, counted[during].delta[i]);
		ka_row_store(&row);
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
