/*
 * report_assets.h: the texts that the HTML report is made of; report_assets.c is
 * made from them by the Makefile.  Each ends with a zero byte.
 */
#ifndef KA_REPORT_ASSETS_H
#define KA_REPORT_ASSETS_H

extern const char ka_uplot_css[];
extern const char ka_uplot_js[];
extern const char ka_uplot_license[];
extern const char ka_report_css[];
extern const char ka_report_body[];
extern const char ka_report_js[];

#endif							/* KA_REPORT_ASSETS_H */
