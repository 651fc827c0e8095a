/*
 * report_html.c: the page that shows a report's model.
 *
 * A page that is one file and needs no network: style, charts and script are in
 * the library (report_assets.c, made from src/report/ and third_party/uplot by
 * the Makefile), and the model is a JSON text in it, which the script reads.
 *
 * Nothing of the model becomes markup: the script sets texts, and here "<" is
 * written as an escape, so that no value can end the element that holds it.
 * Only scripts and styles that carry the random nonce of this page run.
 */
#include "postgres.h"

#include "report.h"
#include "report_assets.h"

#define NONCE_BYTES 16

static void
put_escaped(StringInfo html, const char *model)
{
	for (const char *p = model; *p != '\0'; p++)
	{
		if (*p == '<')
			appendStringInfoString(html, "\\u003c");
		else
			appendStringInfoChar(html, *p);
	}
}

static void
put_element(StringInfo html, const char *tag, const char *nonce, const char *content)
{
	appendStringInfo(html, "<%s nonce=\"%s\">\n", tag, nonce);
	appendStringInfoString(html, content);
	appendStringInfo(html, "\n</%s>\n", tag);
}

void
ka_report_html(StringInfo html, const char *model)
{
	uint8		random[NONCE_BYTES];
	char		nonce[NONCE_BYTES * 2 + 1];

	if (!pg_strong_random(random, sizeof(random)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (int i = 0; i < NONCE_BYTES; i++)
		snprintf(nonce + 2 * i, 3, "%02x", random[i]);

	appendStringInfo(html,
					 "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
					 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:;"
					 " script-src 'nonce-%s'; style-src 'nonce-%s'; base-uri 'none'; form-action 'none'\">\n"
					 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
					 "<meta name=\"color-scheme\" content=\"light dark\">\n"
					 "<title>pg_kernel_advisor report</title>\n", nonce, nonce);
	put_element(html, "style", nonce, ka_uplot_css);
	put_element(html, "style", nonce, ka_report_css);
	appendStringInfoString(html, "</head>\n<body>\n");
	appendStringInfoString(html, ka_report_body);
	appendStringInfoString(html, "<!-- uPlot:\n");
	appendStringInfoString(html, ka_uplot_license);
	appendStringInfoString(html, "-->\n");
	put_element(html, "script", nonce, ka_uplot_js);
	appendStringInfo(html, "<script type=\"application/json\" id=\"model\" nonce=\"%s\">", nonce);
	put_escaped(html, model);
	appendStringInfoString(html, "</script>\n");
	put_element(html, "script", nonce, ka_report_js);
	appendStringInfoString(html, "</body>\n</html>\n");
}
