/*
 * rights.h: CAP_BPF and CAP_PERFMON, an unprivileged user, and nothing else.
 */
#ifndef KA_RIGHTS_H
#define KA_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Started as root: becomes this user.  Then keeps two capabilities and drops
 * everything else, and compares with what the kernel says.  False: *error says
 * what there is too much or too little of, and the process must end.
 */
extern bool ka_rights_reduce(uid_t uid, gid_t gid, char *error, size_t error_size);

/*
 * After loading: keeps only what the kernel still asks for, to be found out with
 * "works" (a harmless operation on a map that is allowed or not).  Returns what
 * is left, for the log; NULL: *error says why not.
 */
extern const char *ka_rights_end(bool (*works) (void *), void *argument, char *error, size_t error_size);

#endif							/* KA_RIGHTS_H */
