/*
 * counters_procps.h: this machine's /proc/vmstat by libproc2.
 */
#ifndef KA_COUNTERS_PROCPS_H
#define KA_COUNTERS_PROCPS_H

#include "counters.h"

typedef struct KaProcps KaProcps;

extern KaProcps *ka_procps_new(void);
extern void ka_procps_free(KaProcps *procps);

/*
 * Reads the file anew and sets the counters' fields; 0 or an errno.
 * After an error the library's object is released, and the next call opens
 * the file again.
 */
extern int	ka_procps_vmstat(KaProcps *procps, KaCounters *out);

#endif							/* KA_COUNTERS_PROCPS_H */
