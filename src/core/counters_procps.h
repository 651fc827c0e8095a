/*
 * counters_procps.h: this machine's vmstat, meminfo and diskstats by libproc2.
 */
#ifndef KA_COUNTERS_PROCPS_H
#define KA_COUNTERS_PROCPS_H

#include "counters.h"

typedef struct KaProcps KaProcps;

extern KaProcps *ka_procps_new(void);
extern void ka_procps_free(KaProcps *procps);

/*
 * Each reads its file anew and sets the counters' fields; 0 or an errno.
 * After an error the library's object is released, and the next call opens
 * the file again.
 */
extern int	ka_procps_vmstat(KaProcps *procps, KaCounters *out);
extern int	ka_procps_meminfo(KaProcps *procps, KaCounters *out);
extern int	ka_procps_diskstats(KaProcps *procps, const char *const devices[2], KaCounters *out);

#endif							/* KA_COUNTERS_PROCPS_H */
