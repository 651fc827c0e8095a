/*
 * setup.h: what a process needs before it can handle requests.
 *
 * The daemon drops its privileges between these steps (main.c).  A process that
 * serves nobody but the root who started it, the command line tool without a
 * daemon, takes them at once with ka_daemon_open: the same bounds, the same
 * journal with its lock, the same operations.
 */
#ifndef KA_SETUP_H
#define KA_SETUP_H

#include "daemon.h"

/*
 * Blocks SIGTERM, SIGINT and SIGALRM but for the moments when they may end a
 * write to the kernel or a wait.  Returns the flag that the first two set.
 */
extern volatile sig_atomic_t *ka_signals_start(void);

/* The directory of the journal, made where it is missing; a descriptor, or -EPERM when others can write there. */
extern int	ka_state_open(const char *root);

/*
 * Opens the journal, waiting for its lock so long, and finishes what an earlier
 * process left open.  False: *error.
 */
extern bool ka_journal_start(KaDaemon *daemon, int state_fd, int wait_ms, char *error, size_t error_size);

/*
 * All of it.  Without "changes" only ka_handle of get and estimate may follow,
 * which need neither root nor the journal; bounds that this user cannot read
 * are then replaced by the defaults, and *error says so (else it is "").
 * False: *error, and nothing is open.
 */
extern bool ka_daemon_open(KaDaemon *daemon, bool changes, char *error, size_t error_size);
extern void ka_daemon_close(KaDaemon *daemon);

#endif							/* KA_SETUP_H */
