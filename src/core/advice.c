/*
 * advice.c: runs the rules over the view of the facts and orders their rows.
 *
 * Invariants: the same facts give the same rows; the facts are not changed;
 * all memory is of the list's arena, and its failure is looked at once, at the
 * end.
 *
 * Locks: none.
 */
#include "rules.h"

#include <string.h>

/* Where a rule may speak at all. */
typedef enum Scope
{
	KA_ANYWHERE,
	KA_KERNEL,
	KA_POOL
} Scope;

typedef struct Rule
{
	Scope		scope;
	void		(*run) (const KaView *v, KaRows *rows);
} Rule;

static const KaRuleInfo rule_info[] = {
#define RULE(name, function, scope, speaks, source) {name, speaks, source},
#include "rules.def"
#undef RULE
};

static const Rule rule_table[] = {
#define RULE(name, function, scope, speaks, source) {scope, ka_rule_##function},
#include "rules.def"
#undef RULE
};

const KaThresholdInfo ka_threshold_info[KA_NTHRESHOLDS] = {
#define THRESHOLD(symbol, value, unit, formula, source) {#symbol, value, unit, formula, source},
#include "thresholds.def"
#undef THRESHOLD
};

static bool
may_speak(Scope scope, const KaView *view)
{
	switch (scope)
	{
		case KA_ANYWHERE:
			return true;
		case KA_KERNEL:
			return view->kernel_in_reach;
		case KA_POOL:
			return view->kernel_in_reach && !view->managed;
	}
	return false;
}

/*
 * boot.persist wants the running value kept, unless another rule wants a
 * better one: then that is the value to persist.  One knob, one value.
 */
static void
agree_on_values(const KaRows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
	{
		KaAdvice   *row = rows->rows[i];

		if (row->recommended == NULL || strcmp(row->rule, "boot.persist") != 0)
			continue;
		ka_interrupt(rows);
		for (size_t j = 0; j < rows->count; j++)
		{
			const KaAdvice *other = rows->rows[j];

			if (other->recommended && strcmp(other->rule, row->rule) != 0 && strcmp(other->subject, row->subject) == 0)
			{
				row->recommended = other->recommended;
				row->command = other->command;
			}
		}
	}
}

/* By severity; a counting pass per severity keeps the table's order within one. */
static bool
sort_rows(const KaRows *rows, KaAdviceList *list)
{
	list->rows = ka_alloc(list->arena, rows->count * sizeof(KaAdvice));
	if (list->rows == NULL)
		return false;
	for (int severity = KA_CRITICAL; severity <= KA_OK; severity++)
	{
		for (size_t i = 0; i < rows->count; i++)
		{
			if (rows->rows[i]->severity == (KaSeverity) severity)
				list->rows[list->count++] = *rows->rows[i];
		}
	}
	return true;
}

bool
ka_advise(const KaFacts *facts, KaAdviceList *list)
{
	KaView		view;
	KaRows		rows = {.view = &view,.arena = list->arena,.interrupt = list->interrupt};

	list->rows = NULL;
	list->count = 0;
	ka_view_init(&view, facts, list->arena);

	for (size_t i = 0; i < KA_LENGTH(rule_table); i++)
	{
		rows.rule = rule_info[i].name;
		rows.first = rows.count;
		ka_interrupt(&rows);
		if (may_speak(rule_table[i].scope, &view))
			rule_table[i].run(&view, &rows);
	}
	if (list->arena->failed)
		return false;
	agree_on_values(&rows);
	return sort_rows(&rows, list) && !list->arena->failed;
}

size_t
ka_rules(const KaRuleInfo **rules)
{
	*rules = rule_info;
	return KA_LENGTH(rule_info);
}

const char *
ka_severity_name(KaSeverity severity)
{
	static const char *const names[] = {"critical", "warning", "info", "ok"};

	return names[severity];
}

const char *
ka_confidence_name(KaConfidence confidence)
{
	static const char *const names[] = {"measured here", "inferred", "documented"};

	return names[confidence];
}

const char *
ka_activation_name(KaActivation activation)
{
	static const char *const names[] = {"none", "reload", "restart", "reboot"};

	return names[activation];
}

/*
 * The evidence as JSON.
 */

static bool
encode_value(const KaJsonSink *sink, KaArena *arena, KaType type, const KaValue *value)
{
	const char *text;

	switch (type)
	{
		case KA_BOOL:
			return sink->boolean(sink->ctx, value->i != 0);
		case KA_TEXT:
		case KA_ENUM:
			return sink->string(sink->ctx, value->s ? value->s : "");
		case KA_INT:
			text = ka_printf(arena, "%lld", (long long) value->i);
			break;
		case KA_REAL:
			text = ka_printf(arena, "%.6g", value->r);
			break;
		default:
			return false;
	}
	return text != NULL && sink->number(sink->ctx, text);
}

static bool
encode_part(const KaAdvice *advice, KaArena *arena, const KaJsonSink *sink, bool threshold)
{
	bool		any = false;

	for (size_t i = 0; i < advice->nevidence; i++)
	{
		const KaEvidence *item = &advice->evidence[i];

		if (item->threshold != threshold)
			continue;
		if (!any && !(sink->key(sink->ctx, threshold ? "threshold" : "observed") &&
					  sink->begin_object(sink->ctx)))
			return false;
		any = true;
		if (!sink->key(sink->ctx, item->name) || !encode_value(sink, arena, item->type, &item->value))
			return false;
	}
	return !any || sink->end_object(sink->ctx);
}

/* The window's extent, for rows that saw one of its facts. */
static bool
encode_window(const KaAdvice *advice, const KaFacts *facts, const KaJsonSink *sink)
{
	static const KaFact extent[] = {KA_W_SECONDS, KA_W_CHECKPOINTS, KA_W_CHECKPOINT_SECONDS, KA_W_SPANS_RESTART};
	static const char prefix[] = "window.";
	const size_t length = sizeof(prefix) - 1;
	bool		used = false;
	bool		any = false;

	for (size_t i = 0; i < advice->nevidence; i++)
		used |= strncmp(advice->evidence[i].name, prefix, length) == 0;
	for (size_t i = 0; used && i < KA_LENGTH(extent); i++)
	{
		const KaFactInfo *info = &ka_fact_info[extent[i]];

		if (!ka_known(facts, extent[i]))
			continue;
		if (!any && !(sink->key(sink->ctx, "window") && sink->begin_object(sink->ctx)))
			return false;
		any = true;
		if (!sink->key(sink->ctx, info->path + length) ||
			!encode_value(sink, facts->arena, info->type, &facts->v[extent[i]]))
			return false;
	}
	return !any || sink->end_object(sink->ctx);
}

bool
ka_evidence_encode(const KaAdvice *advice, const KaFacts *facts, const KaJsonSink *sink)
{
	return sink->begin_object(sink->ctx) &&
		encode_part(advice, facts->arena, sink, false) &&
		encode_part(advice, facts->arena, sink, true) &&
		encode_window(advice, facts, sink) &&
		sink->end_object(sink->ctx);
}
