/*
 * report.h: the parts of report(): one model, as JSON, and its renderings.
 */
#ifndef KA_REPORT_H
#define KA_REPORT_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"

/* What a report covers; from report_series.c where the caller leaves it open. */
typedef struct KaReportRange
{
	TimestampTz from;
	TimestampTz to;
} KaReportRange;

/*
 * report_series.c: appends the samples of the range as a JSON object: "at" (Unix
 * time of each bucket's begin, s), "bucket_s", "samples", and for each row of
 * report_series.def "key": {"unit", "avg", "min", "max"}, arrays as long as
 * "at" with null where nothing is known.  A line with nothing known is null.
 */
extern void ka_report_series(StringInfo json, const KaReportRange *range);

/* Begin of the oldest sample; false: there is none. */
extern bool ka_report_oldest_sample(TimestampTz *oldest);

/* report_html.c: appends the page that shows the model. */
extern void ka_report_html(StringInfo html, const char *model);

#endif							/* KA_REPORT_H */
