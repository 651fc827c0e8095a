/*
 * apply_sql.c: apply() and rollback(): which subjects, in which order, and what
 * stops them.
 *
 * The safe order is a table: a pool is there before huge_pages = on is written,
 * and the policy of compaction, which keeps the kernel from making large
 * blocks, comes after the pools.  What is not granted stops all that comes
 * after it.
 *
 * With one subject, whatever keeps it from being set is an error.  With several
 * it is a row, since something may have been changed already.
 *
 * Locks: none of its own.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "apply.h"
#include "compat.h"
#include "gather.h"
#include "helper.h"
#include "shared.h"

PG_FUNCTION_INFO_V1(ka_apply_sql);
PG_FUNCTION_INFO_V1(ka_apply_list_sql);
PG_FUNCTION_INFO_V1(ka_rollback_sql);

/*
 * ----------------------------------------------------------------
 * The order
 * ----------------------------------------------------------------
 */

typedef enum Rank
{
	RANK_COMMIT_LIMIT,			/* gives a pool room, where overcommit_memory is 2 */
	RANK_POOL,
	RANK_SEGMENT,				/* what huge_pages = on rests on */
	RANK_HUGE_PAGES,
	RANK_SETTING,
	RANK_POLICY					/* and all other knobs */
} Rank;

/* Knobs by their flags, settings by their names; the first row that fits. */
static const struct
{
	uint32		knob_flags;
	const char *setting;
	Rank		rank;
}			ranks[] = {
	{KA_KF_COMMIT, NULL, RANK_COMMIT_LIMIT},
	{KA_KF_POOL | KA_KF_SURPLUS, NULL, RANK_POOL},
	{0, "huge_page_size", RANK_SEGMENT},
	{0, "shared_memory_type", RANK_SEGMENT},
	{0, "huge_pages", RANK_HUGE_PAGES},
};

typedef struct Wish
{
	const char *subject;
	const char *value;
	const char *command;		/* what a person would type */
	Rank		rank;
} Wish;

typedef struct Wishes
{
	Wish	   *list;
	int			n;
} Wishes;

static Rank
rank_of(const char *subject)
{
	int			node;
	const KaKnob *knob = ka_knob_by_subject(subject, &node);

	for (size_t i = 0; i < lengthof(ranks); i++)
	{
		if (knob ? (knob->flags & ranks[i].knob_flags) != 0 :
			ranks[i].setting && strcmp(ranks[i].setting, subject) == 0)
			return ranks[i].rank;
	}
	return knob ? RANK_POLICY : RANK_SETTING;
}

static bool
has_wish(const Wishes *wishes, const char *subject)
{
	for (int i = 0; i < wishes->n; i++)
	{
		if (strcmp(wishes->list[i].subject, subject) == 0)
			return true;
	}
	return false;
}

/* Keeps the order of ranks, and within a rank that in which they came. */
static void
add_wish(Wishes *wishes, const char *subject, const char *value, const char *command)
{
	Rank		rank = rank_of(subject);
	int			at = wishes->n;

	if (has_wish(wishes, subject))
		return;
	while (at > 0 && wishes->list[at - 1].rank > rank)
	{
		wishes->list[at] = wishes->list[at - 1];
		at--;
	}
	wishes->list[at] = (Wish) {.subject = subject, .value = value, .command = command, .rank = rank};
	wishes->n++;
}

/*
 * ----------------------------------------------------------------
 * What is recommended
 * ----------------------------------------------------------------
 */

/* The arena must live as long as the list. */
static void
get_advice(KaArena *arena, KaAdviceList *list)
{
	ka_gather_advice(ka_gather_facts(arena), list);
}

/* The most severe row that recommends something for a subject; NULL: none. */
static const KaAdvice *
recommendation(const KaAdviceList *list, const char *subject)
{
	for (size_t i = 0; i < list->count; i++)
	{
		if (list->rows[i].recommended && strcmp(list->rows[i].subject, subject) == 0)
			return &list->rows[i];
	}
	return NULL;
}

/* A pool without huge_pages is as useless as the reverse: they go together. */
static bool
is_about_pool(const char *subject)
{
	Rank		rank = rank_of(subject);

	return rank == RANK_POOL || rank == RANK_SEGMENT || rank == RANK_HUGE_PAGES;
}

static bool
is_urgent(const KaAdvice *row)
{
	return row->recommended && row->severity <= KA_WARNING;
}

/* Urgent itself, or what an urgent row depends on: of the same rule, or of the pool. */
static bool
is_selected(const KaAdviceList *list, const KaAdvice *row)
{
	if (row->recommended == NULL)
		return false;
	for (size_t i = 0; i < list->count; i++)
	{
		const KaAdvice *other = &list->rows[i];

		if (is_urgent(other) &&
			(other == row || strcmp(other->rule, row->rule) == 0 ||
			 (is_about_pool(other->subject) && is_about_pool(row->subject))))
			return true;
	}
	return false;
}

static void
nothing_recommended(const KaAdviceList *list, const char *subject)
{
	const char *reason = NULL;

	for (size_t i = 0; i < list->count && reason == NULL; i++)
	{
		if (strcmp(list->rows[i].subject, subject) == 0)
			reason = list->rows[i].reason;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("no value is recommended for \"%s\"", subject),
			 reason ? errdetail("%s", reason) : 0,
			 errhint("Give the value: SELECT * FROM kernel_advisor.apply('%s', 'value').", subject)));
}

/*
 * ----------------------------------------------------------------
 * One, and several
 * ----------------------------------------------------------------
 */

/* Whether the next one may go on from here. */
static bool
may_go_on(const KaChangeRecord *record)
{
	return ka_apply_granted(record) || record->state == KA_STATE_DRY_RUN;
}

static void
apply_single(ReturnSetInfo *result, const char *subject, const char *value, const KaApplyOptions *options)
{
	KaChangeRecord record;

	ka_apply_one(subject, value, options, &record);
	if (!may_go_on(&record) && record.state != KA_STATE_PARTIAL)
		ka_apply_raise(&record);
	ka_change_put(result, &record);
}

static void
put_skipped(ReturnSetInfo *result, const Wish *wish, const char *detail, const char *hint)
{
	KaChangeRecord record;

	ka_change_init(&record, ka_subject_kind(wish->subject) == KA_SUBJECT_SETTING ? KA_ACTION_ALTER_SYSTEM : KA_ACTION_SET,
				   wish->subject, NULL);
	record.state = KA_STATE_SKIPPED;
	KA_CHANGE_SET(&record, asked, wish->value);
	KA_CHANGE_SET(&record, detail, detail);
	KA_CHANGE_SET(&record, hint, hint);
	ka_change_put(result, &record);
}

static void
apply_wishes(ReturnSetInfo *result, const Wishes *wishes, const KaApplyOptions *options)
{
	const char *stopped_by = NULL;

	for (int i = 0; i < wishes->n; i++)
	{
		const Wish *wish = &wishes->list[i];
		KaChangeRecord record;

		CHECK_FOR_INTERRUPTS();
		if (ka_subject_kind(wish->subject) == KA_SUBJECT_UNKNOWN)
			put_skipped(result, wish, "nothing here can set it", wish->command);
		else if (stopped_by)
			put_skipped(result, wish, psprintf("\"%s\" before it was not granted", stopped_by), NULL);
		else
		{
			ka_apply_one(wish->subject, wish->value, options, &record);
			ka_change_put(result, &record);
			if (!may_go_on(&record))
				stopped_by = wish->subject;
		}
	}
}

/* An argument that is NULL takes its default. */
static bool
bool_argument(FunctionCallInfo fcinfo, int n, bool value)
{
	return PG_ARGISNULL(n) ? value : PG_GETARG_BOOL(n);
}

/* apply(subject text, value text, persist boolean, dry_run boolean) */
Datum
ka_apply_sql(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	const char *subject = PG_ARGISNULL(0) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(0));
	const char *value = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));
	KaApplyOptions options = {
		.persist = bool_argument(fcinfo, 2, true),
		.dry_run = bool_argument(fcinfo, 3, false)
	};
	KaArena		arena;
	KaAdviceList list;

	if (!options.dry_run)
		ka_shared_require();
	if (subject == NULL && value != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a value needs a subject")));
	if (subject)
		ka_subject_require(subject);
	InitMaterializedSRF(fcinfo, 0);
	if (subject && value)
	{
		apply_single(result, subject, value, &options);
		return (Datum) 0;
	}

	get_advice(&arena, &list);
	if (subject)
	{
		const KaAdvice *row = recommendation(&list, subject);

		if (row == NULL)
			nothing_recommended(&list, subject);
		else
			apply_single(result, subject, row->recommended, &options);
	}
	else
	{
		Wishes		wishes = {.list = palloc((list.count + 1) * sizeof(Wish))};

		for (size_t i = 0; i < list.count; i++)
		{
			const KaAdvice *row = &list.rows[i];

			if (is_selected(&list, row))
				add_wish(&wishes, row->subject, row->recommended, row->command);
		}
		apply_wishes(result, &wishes, &options);
	}
	return (Datum) 0;
}

/* apply(subjects text[], persist boolean, dry_run boolean) */
Datum
ka_apply_list_sql(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	KaApplyOptions options = {
		.persist = bool_argument(fcinfo, 1, true),
		.dry_run = bool_argument(fcinfo, 2, false)
	};
	Wishes		wishes = {0};
	KaArena		arena;
	KaAdviceList list;
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	if (!options.dry_run)
		ka_shared_require();
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the list of subjects must not be null"),
				 errhint("Call apply() without arguments for all that is recommended.")));
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &n);
	InitMaterializedSRF(fcinfo, 0);

	/* All of it must make sense before anything is changed. */
	get_advice(&arena, &list);
	wishes.list = palloc((n + 1) * sizeof(Wish));
	for (int i = 0; i < n; i++)
	{
		const char *subject = nulls[i] ? NULL : TextDatumGetCString(elements[i]);
		const KaAdvice *row;

		if (subject == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("a subject must not be null")));
		ka_subject_require(subject);
		row = recommendation(&list, subject);
		if (row == NULL)
			nothing_recommended(&list, subject);
		else
			add_wish(&wishes, subject, row->recommended, row->command);
	}
	apply_wishes(result, &wishes, &options);
	return (Datum) 0;
}

/* rollback(change_id bigint) */
Datum
ka_rollback_sql(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	KaApplyOptions options = {.persist = true};
	KaChangeRecord record;

	ka_shared_require();
	InitMaterializedSRF(fcinfo, 0);
	ka_rollback_one(PG_GETARG_INT64(0), &options, &record);
	if (!may_go_on(&record) && record.state != KA_STATE_PARTIAL)
		ka_apply_raise(&record);
	ka_change_put(result, &record);
	return (Datum) 0;
}
