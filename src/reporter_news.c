/*
 * reporter_news.c: news of advice as JSON, for the log and for NOTIFY.
 *
 * A payload of NOTIFY has a limit of 8000 bytes, and one that is too long would
 * be an error: long texts are cut, at the border of a character.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/json.h"

#include "changes.h"
#include "reporter_news.h"

#define PAYLOAD_BYTES 7999		/* NOTIFY_PAYLOAD_MAX_LENGTH - 1, with room for nothing else */
#define FIRST_LIMIT 1200		/* bytes of one text, halved until all of it fits */
#define LAST_LIMIT 16

typedef struct Member
{
	const char *key;
	const char *value;
} Member;

static void
append_member(StringInfo json, const Member *member, int limit)
{
	char	   *value;

	appendStringInfo(json, "%s\"%s\": ", json->len > 1 ? ", " : "", member->key);
	if (member->value == NULL)
	{
		appendStringInfoString(json, "null");
		return;
	}
	value = TextDatumGetCString(ka_server_text(member->value));
	value[pg_mbcliplen(value, strlen(value), limit)] = '\0';
	escape_json(json, value);
}

char *
ka_news_json(KaAdviceEvent event, const char *rule, const char *subject, const char *severity,
			 const char *severity_before, const KaAdvice *row)
{
	const Member members[] = {
		{"kind", "advice"},
		{"event", ka_advice_event_name[event]},
		{"rule", rule},
		{"subject", subject},
		{"severity", severity},
		{"severity_before", severity_before},
		{"current", row ? row->current : NULL},
		{"recommended", row ? row->recommended : NULL},
		{"confidence", row ? ka_confidence_name(row->confidence) : NULL},
		{"activation", row ? ka_activation_name(row->activation) : NULL},
		{"reason", row ? row->reason : NULL},
		{"command", row ? row->command : NULL},
	};
	StringInfoData json;

	initStringInfo(&json);
	for (int limit = FIRST_LIMIT; limit >= LAST_LIMIT; limit /= 2)
	{
		resetStringInfo(&json);
		appendStringInfoChar(&json, '{');
		for (int i = 0; i < (int) lengthof(members); i++)
			append_member(&json, &members[i], limit);
		appendStringInfoChar(&json, '}');
		if (json.len <= PAYLOAD_BYTES)
			break;
	}
	return json.data;
}

void
ka_news_log(const KaNews *news)
{
	const KaAdvice *row = news->row;
	KaSeverity	severity = row ? row->severity : (KaSeverity) news->before.severity;
	KaSeverity	before = (KaSeverity) news->before.severity;

	/* What is, and was, well: advice_history has it. */
	if (severity == KA_OK && before == KA_OK)
		return;
	ereport(LOG,
			(errmsg("kernel advisor advice: %s",
					ka_news_json(news->event,
								 row ? row->rule : news->before.rule,
								 row ? row->subject : news->before.subject,
								 ka_severity_name(severity),
								 before != severity ? ka_severity_name(before) : NULL,
								 row))));
}
