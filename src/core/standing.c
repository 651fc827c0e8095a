/*
 * standing.c: which advice stands, and what is news about it.
 */
#include "standing.h"

#include <string.h>

const char *const ka_advice_event_name[KA_NADVICE_EVENTS] = {
#define EVENT(symbol, name) name,
	KA_ADVICE_EVENTS(EVENT)
#undef EVENT
};

/* FNV-1a; two values of one advice that collide: a change that is not told. */
uint32_t
ka_standing_hash(const char *text)
{
	uint32_t	hash = 2166136261u;

	if (text == NULL)
		return 0;
	for (; *text; text++)
		hash = (hash ^ (unsigned char) *text) * 16777619u;
	return hash ? hash : 1;
}

bool
ka_standing_add(KaStandingList *list, const char *rule, const char *subject,
				int severity, const char *recommended)
{
	KaStanding *item;

	if (list->count >= KA_STANDING_MAX ||
		strlen(rule) >= sizeof(item->rule) || strlen(subject) >= sizeof(item->subject))
		return false;
	item = &list->items[list->count++];
	memset(item, 0, sizeof(*item));
	strcpy(item->rule, rule);
	strcpy(item->subject, subject);
	item->severity = severity;
	item->recommended = ka_standing_hash(recommended);
	return true;
}

KaStanding *
ka_standing_find(KaStandingList *list, const char *rule, const char *subject)
{
	for (int i = 0; i < list->count; i++)
	{
		if (strcmp(list->items[i].rule, rule) == 0 && strcmp(list->items[i].subject, subject) == 0)
			return &list->items[i];
	}
	return NULL;
}

const KaAdvice *
ka_standing_row(const KaAdviceList *advice, const char *rule, const char *subject)
{
	for (size_t i = 0; i < advice->count; i++)
	{
		if (strcmp(advice->rows[i].rule, rule) == 0 && strcmp(advice->rows[i].subject, subject) == 0)
			return &advice->rows[i];
	}
	return NULL;
}

bool
ka_standing_same(const KaStanding *item, const KaAdvice *row)
{
	return row != NULL && item->severity == (int32_t) row->severity &&
		item->recommended == ka_standing_hash(row->recommended);
}

/* Severities are numbered from the worst on. */
static bool
more_severe(const KaStanding *item, const KaAdvice *row)
{
	return row != NULL && (int32_t) row->severity < item->severity;
}

/* It has differed for long enough. */
static bool
held(KaStanding *item, int64_t now, int64_t hold)
{
	if (item->differs_since == 0 || item->differs_since > now)
		item->differs_since = now;
	return now - item->differs_since >= hold;
}

static void
take_over(KaStanding *item, const KaAdvice *row)
{
	item->severity = row->severity;
	item->recommended = ka_standing_hash(row->recommended);
	item->differs_since = 0;
}

size_t
ka_standing_look(KaStandingList *list, const KaAdviceList *advice,
				 int64_t now, int64_t hold, KaNews *news)
{
	size_t		n = 0;

	list->known = 1;
	for (int i = 0; i < list->count;)
	{
		KaStanding *item = &list->items[i];
		const KaAdvice *row = ka_standing_row(advice, item->rule, item->subject);

		if (ka_standing_same(item, row))
			item->differs_since = 0;
		else if (more_severe(item, row) || held(item, now, hold))
		{
			news[n].event = row ? KA_ADVICE_CHANGED : KA_ADVICE_DISAPPEARED;
			news[n].row = row;
			news[n++].before = *item;
			if (row == NULL)
			{
				list->count--;
				memmove(item, item + 1, (size_t) (list->count - i) * sizeof(*item));
				continue;
			}
			take_over(item, row);
		}
		i++;
	}

	for (size_t i = 0; i < advice->count; i++)
	{
		const KaAdvice *row = &advice->rows[i];

		if (ka_standing_find(list, row->rule, row->subject) != NULL ||
			!ka_standing_add(list, row->rule, row->subject, row->severity, row->recommended))
			continue;
		memset(&news[n], 0, sizeof(news[n]));
		news[n].event = KA_ADVICE_APPEARED;
		news[n].before.severity = row->severity;
		news[n++].row = row;
	}
	return n;
}
