/*
 * reporter_news.h: news of advice as JSON, for the log and for NOTIFY.
 */
#ifndef KA_REPORTER_NEWS_H
#define KA_REPORTER_NEWS_H

#include "standing.h"

#define KA_CHANNEL "kernel_advisor"

/*
 * {"kind": "advice", "event": ...}, palloc'd, short enough for NOTIFY (doc/reporter.md
 * has the keys).  "row" is NULL for what disappeared: then rule, subject and
 * severity are all there is.  "severity_before": NULL unless it changed.
 */
extern char *ka_news_json(KaAdviceEvent event, const char *rule, const char *subject, const char *severity,
						  const char *severity_before, const KaAdvice *row);

/* One line in the log, unless it is only good news. */
extern void ka_news_log(const KaNews *news);

#endif							/* KA_REPORTER_NEWS_H */
