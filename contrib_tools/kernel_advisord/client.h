/*
 * client.h: talking to kernel_advisord.
 *
 * For the command line tool and the tests: ka_client_call waits.  For a server
 * process, which waits on its latch: open, send and receive never block; the
 * descriptor becomes writable and readable like any socket.  All functions
 * return 0 (or a descriptor) or a negative errno, allocate nothing, keep no
 * state and raise no signal.
 */
#ifndef KA_CLIENT_H
#define KA_CLIENT_H

#include "protocol.h"

/* A non-blocking, close-on-exec socket; -EAGAIN while the daemon's queue is full. */
extern int	ka_client_open(const char *path);

/* -EAGAIN: wait until writable. */
extern int	ka_client_send(int fd, const KaRequest *request);

/*
 * -EAGAIN: wait until readable.  -ECONNRESET: the daemon closed the connection.
 * -EPROTO: an answer that is not one.
 */
extern int	ka_client_receive(int fd, KaReply *reply);

/* Connects, sends, waits, closes; -ETIMEDOUT after timeout_ms. */
extern int	ka_client_call(const char *path, const KaRequest *request, KaReply *reply, int timeout_ms);

/* The same on an open connection, which stays open. */
extern int	ka_client_exchange(int fd, const KaRequest *request, KaReply *reply, int timeout_ms);

#endif							/* KA_CLIENT_H */
