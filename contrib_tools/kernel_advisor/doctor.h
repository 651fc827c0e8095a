/*
 * doctor.h: why a server does not start, or was killed.
 */
#ifndef KA_TOOL_DOCTOR_H
#define KA_TOOL_DOCTOR_H

#include "advice.h"
#include "errortext.h"
#include "pgconf.h"

typedef struct KaDiagnosis
{
	KaErrorText error;			/* all unknown: no failure was found */
	const char *text;			/* one sentence or two */
	const char *message;		/* the server's own words, or NULL */
	const char *origin;			/* the file they come from; NULL: the command line */
} KaDiagnosis;

/*
 * Finds the failure in "message", or else in "log_file", or else in the logs
 * that belong to the cluster, and adds postgres.last_error to the facts.
 * False: out of memory, or *problem.
 */
extern bool ka_diagnose(KaCluster *cluster, KaFacts *facts, const char *message, const char *log_file,
						KaDiagnosis *diagnosis, const char **problem);

/* Has a row something to say about this failure? */
extern bool ka_is_relevant(const KaErrorText *error, const KaAdvice *row);

#endif							/* KA_TOOL_DOCTOR_H */
