/*
 * errortext.h: what PostgreSQL's messages and its log say about a failure.
 */
#ifndef KA_TOOL_ERRORTEXT_H
#define KA_TOOL_ERRORTEXT_H

#include "ka_base.h"

/* One message, with its detail and hint where they are there. */
typedef struct KaErrorText
{
	const char *call;			/* "mmap", "shmget", "dsm", "io_uring", or NULL */
	int64_t		bytes;			/* that were asked for, or KA_UNKNOWN */
	const char *error;			/* "ENOMEM", or NULL */
	const char *signal;			/* "SIGBUS", or NULL */
} KaErrorText;

/* When it happened, as far as the call tells: "start", "runtime", or NULL. */
extern const char *ka_error_phase(const KaErrorText *error);

/* True when the text tells of a memory request that failed, or of a signal. */
extern bool ka_error_parse(const char *text, KaErrorText *error);

/* What the newest part of a server log says. */
typedef struct KaLogReport
{
	KaErrorText error;			/* the last failure */
	const char *message;		/* its lines (in the arena); NULL: none */
	const char *phase;			/* "start", "runtime"; NULL: not known */
	bool		recovered;		/* the server was ready again after it */
	double		after_s;		/* from ready to the failure; < 0: not known */
	const char *fatal;			/* the last fatal line of a start that failed otherwise, or NULL */
} KaLogReport;

/* False: out of memory. */
extern bool ka_log_parse(KaArena *arena, const char *log, KaLogReport *report);

#endif							/* KA_TOOL_ERRORTEXT_H */
