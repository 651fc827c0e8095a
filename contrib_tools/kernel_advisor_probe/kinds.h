/*
 * kinds.h: what a process is, by its title.
 */
#ifndef KA_KINDS_H
#define KA_KINDS_H

#include <stddef.h>

#include "probe_file.h"

/*
 * The kind of the process with this title (what ps shows, not terminated when it
 * fills "length"): KA_KIND_OTHER unless it is one of a PostgreSQL server's.
 */
extern KaProbeKind ka_kind_of_title(const char *title, size_t length);

#endif							/* KA_KINDS_H */
