/*
 * standing.h: which advice stands, and what is news about it.
 *
 * Advice near a threshold comes and goes from look to look.  What stands here
 * follows what the rules say now, with hysteresis: advice that appears or
 * becomes more severe is news at once; advice that changes in any other way, or
 * disappears, is news when it has differed from what stands at each look for
 * "hold".  So an advice that flaps makes one event, not one per look.
 *
 * A list is of fixed size, without pointers: it lives in shared memory.
 */
#ifndef KA_STANDING_H
#define KA_STANDING_H

#include "advice.h"

#define KA_STANDING_MAX 64		/* beyond this, the least severe advice is not followed */

typedef struct KaStanding
{
	char		rule[48];
	char		subject[112];
	int32_t		severity;		/* KaSeverity */
	uint32_t	recommended;	/* ka_standing_hash of the value */
	int64_t		differs_since;	/* µs; 0: as it was at the last look */
} KaStanding;

typedef struct KaStandingList
{
	int32_t		known;			/* 0: nobody has looked yet, and the rest is 0 */
	int32_t		count;
	KaStanding	items[KA_STANDING_MAX];
} KaStandingList;

/*	EVENT(symbol, name) */
#define KA_ADVICE_EVENTS(EVENT) \
	EVENT(APPEARED, "appeared") \
	EVENT(CHANGED, "changed") \
	EVENT(DISAPPEARED, "disappeared")

typedef enum KaAdviceEvent
{
#define EVENT(symbol, name) KA_ADVICE_##symbol,
	KA_ADVICE_EVENTS(EVENT)
#undef EVENT
	KA_NADVICE_EVENTS
} KaAdviceEvent;

typedef struct KaNews
{
	KaAdviceEvent event;
	const KaAdvice *row;		/* NULL: disappeared */
	KaStanding	before;			/* what stood; appeared: nothing of interest */
} KaNews;

#define KA_NEWS_MAX (2 * KA_STANDING_MAX)

extern const char *const ka_advice_event_name[KA_NADVICE_EVENTS];

/* 0 for NULL only. */
extern uint32_t ka_standing_hash(const char *text);

/* Appends an item; false when there is no room, or a name is too long. */
extern bool ka_standing_add(KaStandingList *list, const char *rule, const char *subject,
							int severity, const char *recommended);

/* The item of a rule and subject, NULL: none; and the first row, which is the most severe, of a list of advice. */
extern KaStanding *ka_standing_find(KaStandingList *list, const char *rule, const char *subject);
extern const KaAdvice *ka_standing_row(const KaAdviceList *advice, const char *rule, const char *subject);

/* Whether the row says what stands. */
extern bool ka_standing_same(const KaStanding *item, const KaAdvice *row);

/*
 * One look: changes what stands, and returns how many "news" there are (room for
 * KA_NEWS_MAX).  "now" and "hold" in µs.  A clock that was set back starts the
 * hold again.
 */
extern size_t ka_standing_look(KaStandingList *list, const KaAdviceList *advice,
							   int64_t now, int64_t hold, KaNews *news);

#endif							/* KA_STANDING_H */
