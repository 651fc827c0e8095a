/*
 * server.c: listening, clients, one request at a time.
 *
 * A client can be slow, silent, or many: nothing here waits for one.  Requests
 * are taken in turn, one per client and round.  A reply that does not fit into
 * the socket's buffer belongs to a client that does not read: it is cut off.
 * When all places are taken, the client that was silent longest makes room,
 * root's last, and a few places are root's alone: no user can lock root out.
 *
 * The protocol of socket activation (sd_listen_fds(3): LISTEN_PID, LISTEN_FDS,
 * first descriptor 3) is spoken by hand: libsystemd and the libraries that it
 * loads have no place in a process of uid 0 for twenty lines.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "server.h"

#define FIRST_SYSTEMD_FD 3

/* The kernel lowers it to net.core.somaxconn (4096 since 5.4). */
#define BACKLOG 4096

#define MAX_CLIENTS 1024

/* Beyond MAX_CLIENTS, for uid 0 only. */
#define ROOT_PLACES 16

/* Descriptors beside clients: knobs of 64 nodes, files, the unforeseen. */
#define OTHER_FDS 512

typedef struct Client
{
	KaPeer		peer;
	int64_t		active_ms;		/* last request, or connect */
} Client;

/* fds[0] is the listening socket; fds[i + 1] is that of clients[i]. */
static Client clients[MAX_CLIENTS + ROOT_PLACES];
static struct pollfd fds[MAX_CLIENTS + ROOT_PLACES + 1];
static size_t nclients;
static size_t max_clients = MAX_CLIENTS;

int
ka_socket_from_systemd(void)
{
	const char *pid = getenv("LISTEN_PID");
	const char *count = getenv("LISTEN_FDS");
	int			type = 0;
	int			listening = 0;
	int			domain = 0;
	socklen_t	length = sizeof(int);

	if (pid == NULL || count == NULL || strtol(pid, NULL, 10) != (long) getpid())
		return -ENOENT;
	if (strcmp(count, "1") != 0 ||
		getsockopt(FIRST_SYSTEMD_FD, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0 || domain != AF_UNIX ||
		getsockopt(FIRST_SYSTEMD_FD, SOL_SOCKET, SO_TYPE, &type, &length) < 0 || type != SOCK_SEQPACKET ||
		getsockopt(FIRST_SYSTEMD_FD, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) < 0 || !listening)
		return -EINVAL;
	if (fcntl(FIRST_SYSTEMD_FD, F_SETFD, FD_CLOEXEC) < 0 ||
		fcntl(FIRST_SYSTEMD_FD, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return FIRST_SYSTEMD_FD;
}

/* A socket file that nobody listens on is of a daemon that was killed. */
static int
remove_stale(const struct sockaddr_un *address)
{
	struct stat st;
	int			fd;
	int			error = 0;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *) address, sizeof(*address)) < 0)
		error = errno;
	close(fd);
	if (error != ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(address->sun_path) < 0 ? -errno : 0;
}

int
ka_socket_make(const char *path, gid_t group)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t		mask;
	int			result;
	int			fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	result = remove_stale(&address);
	if (result < 0)
		return result;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	mask = umask(0177);
	result = bind(fd, (struct sockaddr *) &address, sizeof(address));
	umask(mask);
	/* Nobody can connect before listen(), so the group's right comes in time. */
	if (result < 0 || lchown(path, (uid_t) -1, group) < 0 || chmod(path, 0660) < 0 || listen(fd, BACKLOG) < 0)
	{
		result = -errno;
		close(fd);
		return result;
	}
	return fd;
}

/* The others keep their order: first come, first served. */
static void
drop_client(size_t i)
{
	close(clients[i].peer.fd);
	nclients--;
	memmove(&clients[i], &clients[i + 1], (nclients - i) * sizeof(clients[0]));
	memmove(&fds[i + 1], &fds[i + 2], (nclients - i) * sizeof(fds[0]));
}

/* The silent one; who has sent something is served first. */
static bool
make_room(void)
{
	size_t		victim = SIZE_MAX;

	if (poll(&fds[1], nclients, 0) < 0)
		return false;
	for (size_t i = 0; i < nclients; i++)
	{
		if (fds[i + 1].revents & POLLIN)
			continue;
		if (victim == SIZE_MAX ||
			(clients[i].peer.uid != 0) > (clients[victim].peer.uid != 0) ||
			((clients[i].peer.uid != 0) == (clients[victim].peer.uid != 0) &&
			 clients[i].active_ms < clients[victim].active_ms))
			victim = i;
	}
	if (victim == SIZE_MAX)
		return false;
	ka_log_hostile("all %zu places are taken: closing the connection of uid %" PRIu32 " that was silent longest",
				   max_clients, clients[victim].peer.uid);
	drop_client(victim);
	return true;
}

static bool
reply_to(int fd, const KaReply *reply)
{
	return send(fd, reply, sizeof(*reply), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t) sizeof(*reply);
}

/* Takes one client from the queue; false: there is none, or no place. */
static bool
accept_client(KaDaemon *daemon, int listen_fd)
{
	struct ucred cred;
	socklen_t	length = sizeof(cred);
	KaReply		reply;
	bool		full = nclients >= max_clients && !make_room();
	int			fd;

	if (nclients == max_clients + ROOT_PLACES)
		return false;
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
	{
		if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) && make_room())
			return true;
		return errno == ECONNABORTED || errno == EINTR;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) < 0 || length != sizeof(cred))
	{
		close(fd);
		return true;
	}
	if (!ka_bounds_allow_user(&daemon->bounds, cred.uid))
	{
		ka_log_hostile("uid %u pid %d is not an allowed user", (unsigned) cred.uid, (int) cred.pid);
		ka_reply_start(&reply, 0, cred.uid);
		reply.status = KA_ST_DENIED;
		reply_to(fd, &reply);
		close(fd);
		return true;
	}
	if (full && cred.uid != 0)
	{
		ka_log_hostile("all %zu places are taken by busy clients: turning uid %u away", max_clients, (unsigned) cred.uid);
		close(fd);
		return true;
	}
	clients[nclients].peer = (KaPeer) {.fd = fd, .uid = cred.uid, .pid = cred.pid};
	clients[nclients].active_ms = ka_now_ms();
	nclients++;
	fds[nclients] = (struct pollfd) {.fd = fd, .events = POLLIN};
	return true;
}

/* One request of a client; false: the connection ends. */
static bool
serve_client(KaDaemon *daemon, Client *client)
{
	/* One byte more than a request, so that a longer message shows. */
	unsigned char message[sizeof(KaRequest) + 1];
	ssize_t		n = recv(client->peer.fd, message, sizeof(message), MSG_DONTWAIT);
	KaRequest	request;
	KaReply		reply;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	if (!ka_request_decode(message, (size_t) n, &request))
	{
		ka_log_hostile("uid %" PRIu32 " pid %" PRId32 " sent a message of a wrong length or version",
					   client->peer.uid, client->peer.pid);
		return false;
	}
	ka_handle(daemon, &client->peer, &request, &reply);
	client->active_ms = ka_now_ms();
	return reply_to(client->peer.fd, &reply);
}

/* More than the usual 1024 descriptors, where the hard limit allows it. */
void
ka_server_prepare(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (limit.rlim_cur < MAX_CLIENTS + OTHER_FDS)
	{
		limit.rlim_cur = limit.rlim_max < MAX_CLIENTS + OTHER_FDS ? limit.rlim_max : MAX_CLIENTS + OTHER_FDS;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur < MAX_CLIENTS + OTHER_FDS)
		max_clients = limit.rlim_cur > 2 * OTHER_FDS ? (size_t) limit.rlim_cur - OTHER_FDS : OTHER_FDS / 2;
}

int
ka_serve(KaDaemon *daemon, int listen_fd, int idle_s)
{
	sigset_t	let_in;

	sigprocmask(SIG_SETMASK, NULL, &let_in);
	sigdelset(&let_in, SIGTERM);
	sigdelset(&let_in, SIGINT);
	fds[0] = (struct pollfd) {.fd = listen_fd, .events = POLLIN};

	while (!*daemon->stop)
	{
		struct timespec idle = {.tv_sec = idle_s};
		bool		can_end = idle_s > 0 && nclients == 0;
		int			n = ppoll(fds, nclients + 1, can_end ? &idle : NULL, &let_in);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && can_end)
			return 0;
		if (n <= 0)
			continue;

		for (size_t i = 0; i < nclients && !*daemon->stop;)
		{
			short		events = fds[i + 1].revents;

			fds[i + 1].revents = 0;
			if ((events & POLLIN) ? serve_client(daemon, &clients[i]) : events == 0)
				i++;
			else
				drop_client(i); /* the next one is here now */
		}
		if (fds[0].revents & POLLIN)
		{
			/* As many as there are places, so that those who wait in line cannot starve the others. */
			for (size_t i = 0; i < max_clients && accept_client(daemon, listen_fd); i++)
				;
		}
	}
	return 0;
}
