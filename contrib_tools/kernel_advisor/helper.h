/*
 * helper.h: a request to the root helper, whoever answers it.
 *
 * kernel_advisord answers on its socket.  Where none listens, root can have the
 * same work done in this process, by the daemon's own code: with its bounds,
 * its journal and the journal's lock, so that no two write at once.
 */
#ifndef KA_TOOL_HELPER_H
#define KA_TOOL_HELPER_H

#include "ka_base.h"
#include "knobs.h"
#include "protocol.h"

typedef struct KaHelper KaHelper;

typedef enum KaHelperUse
{
	KA_HELPER_READ,				/* get and estimate only: any user may, as far as files are readable */
	KA_HELPER_CHANGE			/* everything; the journal as well */
} KaHelperUse;

/*
 * socket: NULL looks at the usual place, and does without a helper where none
 * listens; a socket that was named must answer.  NULL: *problem.
 */
extern KaHelper *ka_helper_open(KaArena *arena, const char *socket, KaHelperUse use, const char **problem);

/* False: *problem; an answer that says no is an answer. */
extern bool ka_helper_call(KaHelper *helper, const KaRequest *request, KaReply *reply, const char **problem);

/* "kernel_advisord", or "this process". */
extern const char *ka_helper_name(const KaHelper *helper);

/* What could not be read, a sentence; or NULL. */
extern const char *ka_helper_note(const KaHelper *helper);

extern void ka_helper_close(KaHelper *helper);

#endif							/* KA_TOOL_HELPER_H */
