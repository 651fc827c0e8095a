/*
 * client.c: the client's half of the protocol.
 *
 * Waiting uses an absolute deadline on the monotonic clock, so interrupted
 * waits do not add up.  A daemon that denies a user answers and closes before
 * it has read the request: sending may then fail with EPIPE while the answer
 * is there to be read, hence receive is tried in that case as well.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

/* How long to wait before the next attempt when the daemon's queue is full. */
#define RETRY_MS 10

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int
ka_client_open(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t		length = strlen(path);
	int			fd;

	if (length == 0 || length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length + 1);

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
	{
		int			error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

int
ka_client_send(int fd, const KaRequest *request)
{
	ssize_t		n;

	do
		n = send(fd, request, sizeof(*request), MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == (ssize_t) sizeof(*request) ? 0 : -EPROTO;
}

int
ka_client_receive(int fd, KaReply *reply)
{
	/* One byte more than a reply, so that a longer message shows. */
	unsigned char message[sizeof(KaReply) + 1];
	bool		reset = false;
	ssize_t		n;

	for (;;)
	{
		n = recv(fd, message, sizeof(message), MSG_DONTWAIT);
		if (n >= 0)
			break;
		/* A reset is reported before the answer that came ahead of it. */
		if (errno == ECONNRESET && !reset)
			reset = true;
		else if (errno != EINTR)
			return reset ? -ECONNRESET : -errno;
	}
	if (n == 0)
		return -ECONNRESET;
	return ka_reply_decode(message, (size_t) n, reply) ? 0 : -EPROTO;
}

static int
wait_for(int fd, short events, int64_t deadline_ms)
{
	for (;;)
	{
		struct pollfd pollfd = {.fd = fd, .events = events};
		int64_t		left_ms = deadline_ms - now_ms();
		int			n;

		if (left_ms <= 0)
			return -ETIMEDOUT;
		n = poll(&pollfd, fd < 0 ? 0 : 1, left_ms > 3600000 ? 3600000 : (int) left_ms);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int
exchange_until(int fd, const KaRequest *request, KaReply *reply, int64_t deadline_ms)
{
	int			result;

	while ((result = ka_client_send(fd, request)) == -EAGAIN)
	{
		result = wait_for(fd, POLLOUT, deadline_ms);
		if (result < 0)
			return result;
	}
	if (result < 0 && result != -EPIPE)
		return result;

	while ((result = ka_client_receive(fd, reply)) == -EAGAIN)
	{
		result = wait_for(fd, POLLIN, deadline_ms);
		if (result < 0)
			return result;
	}
	return result;
}

int
ka_client_exchange(int fd, const KaRequest *request, KaReply *reply, int timeout_ms)
{
	return exchange_until(fd, request, reply, now_ms() + timeout_ms);
}

int
ka_client_call(const char *path, const KaRequest *request, KaReply *reply, int timeout_ms)
{
	int64_t		deadline_ms = now_ms() + timeout_ms;
	int			fd;
	int			result;

	while ((fd = ka_client_open(path)) == -EAGAIN)
	{
		/* connect() on a full queue cannot be polled for. */
		if (deadline_ms - now_ms() <= RETRY_MS)
			return -ETIMEDOUT;
		poll(NULL, 0, RETRY_MS);
	}
	if (fd < 0)
		return fd;
	result = exchange_until(fd, request, reply, deadline_ms);
	close(fd);
	return result;
}
