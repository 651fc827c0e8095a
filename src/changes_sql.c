/*
 * changes_sql.c: changes as rows of the type kernel_advisor.change.
 *
 * No locks: the file is read as a whole, and the ring chunk by chunk.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "apply.h"
#include "compat.h"
#include "effect_compare.h"
#include "helper.h"
#include "jsonb_sink.h"
#include "machine.h"
#include "row.h"

PG_FUNCTION_INFO_V1(ka_changes_sql);


/* What a row shows beside the record itself. */
typedef struct Now
{
	KaChangeState state;
	const char *verified;
	const KaEffect *after;		/* NULL: not yet */
	const KaEffectComparison *comparison;	/* NULL: not one that needed a restart */
	const KaFacts *boot;		/* what the next boot sets */
} Now;

/*
 * "/etc/sysctl.d/60-kernel-advisor.conf: 1000".  As the boot files are now; for
 * a knob that the core does not look up there, as the helper found it then.
 */
static const char *
boot_text(const KaChangeRecord *record, const KaFacts *boot)
{
	const KaKnob *knob = record->knob ? ka_knob_find((uint32) record->knob) : NULL;
	const char *value;
	const char *file;

	if (knob == NULL)
		return NULL;
	if (!ka_machine_boot(boot, knob, record->node, &value, &file))
	{
		if (record->boot_winner == KA_BOOT_UNKNOWN)
			return NULL;
		file = record->boot_winner == KA_BOOT_NOTHING ? NULL : record->boot_file;
		value = ka_machine_value_text(knob, record->boot_value);
	}
	if (file == NULL)
		return "no file sets it";
	return value ? psprintf("%s: %s", file, value) : file;
}

static bool
encode_part(const KaJsonSink *sink, const char *name, const char *samples_name, const KaEffect *effect)
{
	char		samples[32];

	snprintf(samples, sizeof(samples), INT64_FORMAT, effect ? effect->samples : (int64) 0);
	return sink->key(sink->ctx, name) &&
		(effect && ka_effect_suffices(effect) ? ka_effect_encode(effect, sink) : sink->null(sink->ctx)) &&
		sink->key(sink->ctx, samples_name) && sink->number(sink->ctx, samples);
}

static Datum
effect_datum(const KaChangeRecord *record, const Now *now)
{
	KaJsonSink	sink;
	KaJsonbBuilder *builder = ka_jsonb_builder(&sink);

	sink.begin_object(sink.ctx);
	encode_part(&sink, "before", "samples_before", &record->before);
	encode_part(&sink, "after", "samples_after", now->after);
	if (now->comparison)
	{
		sink.key(sink.ctx, "comparison");
		ka_effect_compare_encode(now->comparison, &sink);
	}
	sink.end_object(sink.ctx);
	return JsonbPGetDatum(ka_jsonb_result(builder));
}

Datum
ka_server_text(const char *text)
{
	char	   *copy;

	if (pg_verifymbstr(text, strlen(text), true))
		return CStringGetTextDatum(text);
	copy = pstrdup(text);
	for (char *c = copy; *c; c++)
	{
		if (IS_HIGHBIT_SET(*c))
			*c = '?';
	}
	return CStringGetTextDatum(copy);
}

static void
put_change(ReturnSetInfo *result, const KaChangeRecord *record, const Now *now)
{
	bool		logged = record->change_id != 0;
	KaRow		row = {.result = result};

	ka_row_put(&row, logged, Int64GetDatum(record->change_id));
	ka_row_put(&row, true, TimestampTzGetDatum(record->at));
	ka_row_text(&row, record->who);
	ka_row_text(&row, record->subject);
	ka_row_text(&row, ka_change_action_name(record->action));
	ka_row_text(&row, record->old);
	ka_row_text(&row, record->asked);
	ka_row_text(&row, record->granted);
	ka_row_text(&row, now->verified);
	ka_row_text(&row, ka_change_state_name(now->state));
	ka_row_text(&row, record->persisted_in);
	ka_row_text(&row, boot_text(record, now->boot));
	ka_row_put(&row, logged, logged ? effect_datum(record, now) : (Datum) 0);
	if (record->state == KA_STATE_IN_PROGRESS && now->state == KA_STATE_UNKNOWN)
	{
		ka_row_text(&row, "its session ended before it was known what came of it");
		ka_row_text(&row, "The column \"verified\" shows the value; rollback() finds out whether it was this change.");
	}
	else
	{
		ka_row_text(&row, record->detail);
		ka_row_text(&row, now->state == (KaChangeState) record->state ? record->hint : NULL); /* else it is out of date */
	}
	ka_row_store(&row);
}

void
ka_change_put(ReturnSetInfo *result, const KaChangeRecord *record)
{
	KaFacts    *boot = palloc(sizeof(KaFacts));
	Now			now = {.state = record->state, .verified = record->verified, .boot = boot};
	KaArena		arena;

	ka_machine_collect_boot(boot, &arena);
	put_change(result, record, &now);
}

/* changes(): the log, oldest first, as it is now. */
Datum
ka_changes_sql(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	KaChangeRecord *records;
	int			n = ka_changes_read(&records);
	KaEffect   *after = palloc(Max(n, 1) * sizeof(KaEffect));
	KaFacts    *boot = palloc(sizeof(KaFacts));
	KaArena		arena;
	KaEffectComparison comparison;

	InitMaterializedSRF(fcinfo, 0);
	ka_machine_collect_boot(boot, &arena);
	ka_changes_after(records, n, after);
	for (int i = 0; i < n; i++)
	{
		Now			now = {.after = &after[i], .boot = boot};

		CHECK_FOR_INTERRUPTS();
		now.state = ka_change_state_now(&records[i]);
		now.verified = ka_change_verified_now(&records[i]);
		if (now.state == KA_STATE_APPLIED && ka_effect_compare(records, n, i, &comparison))
			now.comparison = &comparison;
		put_change(result, &records[i], &now);
	}
	return (Datum) 0;
}
