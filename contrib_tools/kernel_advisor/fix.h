/*
 * fix.h: the commands that mend what the doctor found.
 */
#ifndef KA_TOOL_FIX_H
#define KA_TOOL_FIX_H

#include "advice.h"
#include "pgconf.h"

/*
 * Prints one command for each row that recommends a value, as far as a command
 * of this project can set it; nothing when there is none.
 */
extern void ka_print_fixes(KaArena *arena, const KaFacts *facts, const KaCluster *cluster,
						   const KaAdvice *const *rows, size_t count);

#endif							/* KA_TOOL_FIX_H */
