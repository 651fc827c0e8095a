/*
 * server.h: the socket of kernel_advisord and its clients.
 */
#ifndef KA_SERVER_H
#define KA_SERVER_H

#include "daemon.h"

/* The socket that systemd passed, by its protocol of LISTEN_FDS; -ENOENT: none; -EINVAL: not ours. */
extern int	ka_socket_from_systemd(void);

/* Makes the socket, mode 0660, of root and this group.  A negative errno: -EADDRINUSE, a daemon listens there. */
extern int	ka_socket_make(const char *path, gid_t group);

/* Room for many clients, before the limits cannot be changed any more. */
extern void ka_server_prepare(void);

/*
 * Serves until *daemon->stop, or until there was no client for idle_s (0:
 * for ever).  The signals that set it are blocked, and let in while waiting.
 */
extern int	ka_serve(KaDaemon *daemon, int listen_fd, int idle_s);

#endif							/* KA_SERVER_H */
