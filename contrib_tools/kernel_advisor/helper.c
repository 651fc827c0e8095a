/*
 * helper.c: the socket of kernel_advisord, or its code in this process.
 *
 * Invariants: a change is made by exactly one of them; the journal's lock keeps
 * a daemon that was asked in another way out meanwhile.  Nothing is retried: a
 * request that got no answer may have been carried out.
 *
 * Locks: in this process, that of the journal, from opening to closing.
 */
#define _GNU_SOURCE 1

#include "helper.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "log.h"
#include "setup.h"

/* For a daemon that systemd starts, and one that is busy with others. */
#define CONNECT_MS 10000
#define CONNECT_RETRY_MS 20

/*
 * Beyond the time limit of the request: writing back dirty pages and compacting
 * are not interrupted by it.
 */
#define GRACE_MS 300000

struct KaHelper
{
	KaArena    *arena;
	const char *socket;
	int			fd;				/* -1: in this process */
	KaDaemon	daemon;
	bool		opened;			/* the daemon's part, in this process */
	const char *note;
};

/* A connection, or a negative errno. */
static int
connect_to(const char *socket)
{
	int			fd;

	for (int waited = 0; (fd = ka_client_open(socket)) == -EAGAIN && waited < CONNECT_MS; waited += CONNECT_RETRY_MS)
		poll(NULL, 0, CONNECT_RETRY_MS);
	return fd;
}

static bool
open_here(KaHelper *helper, KaHelperUse use, const char **problem)
{
	char		error[512];

	ka_log_start("kernel_advisor");
	helper->opened = ka_daemon_open(&helper->daemon, use == KA_HELPER_CHANGE, error, sizeof(error));
	if (!helper->opened)
	{
		*problem = ka_strdup(helper->arena, error);
		return false;
	}
	if (error[0] != '\0')
		helper->note = ka_printf(helper->arena, "The bounds are not known, and their defaults are taken: %s.", error);
	return true;
}

KaHelper *
ka_helper_open(KaArena *arena, const char *socket, KaHelperUse use, const char **problem)
{
	KaHelper   *helper = ka_alloc(arena, sizeof(*helper));
	bool		absent;

	if (helper == NULL)
		return NULL;
	helper->arena = arena;
	helper->socket = socket ? socket : KA_SOCKET_PATH;
	helper->fd = connect_to(helper->socket);
	if (helper->fd >= 0)
		return helper;

	absent = helper->fd == -ENOENT || helper->fd == -ECONNREFUSED;
	if (socket == NULL && (use == KA_HELPER_READ || (absent && geteuid() == 0)))
		return open_here(helper, use, problem) ? helper : NULL;
	*problem = ka_printf(arena, "%s: %s; %s", helper->socket, strerror(-helper->fd),
						 helper->fd == -EACCES ? "run this as root, or as a user whom the helper serves" :
						 !absent ? "this is not the socket of a kernel_advisord" :
						 socket != NULL || geteuid() == 0 ? "no kernel_advisord listens there" :
						 "no kernel_advisord listens there, and only root can do without: run this as root, "
						 "or have root start kernel_advisord.socket");
	return NULL;
}

bool
ka_helper_call(KaHelper *helper, const KaRequest *request, KaReply *reply, const char **problem)
{
	KaRequest	sent = *request;
	KaPeer		self = {.fd = -1, .uid = 0, .pid = getpid()};
	int			limit_ms = (int) (request->time_limit_ms ? request->time_limit_ms : KA_DEFAULT_TIME_LIMIT_MS);
	int			result;

	sent.version = KA_PROTOCOL_VERSION;
	if (helper->fd < 0)
	{
		/* Root's own process, or one that only reads: there is no user to be turned away. */
		ka_handle(&helper->daemon, &self, &sent, reply);
		return true;
	}
	result = ka_client_exchange(helper->fd, &sent, reply, limit_ms + GRACE_MS);
	if (result == 0)
		return true;
	*problem = ka_printf(helper->arena, "%s: %s", helper->socket,
						 result == -ECONNRESET ? "kernel_advisord closed the connection; its log (journalctl -u kernel_advisord) says why" :
						 result == -EPROTO ? "this is not a kernel_advisord of the same release" :
						 result == -ETIMEDOUT ? "kernel_advisord did not answer in time; what it did is in kernel_advisor rollback --list" :
						 strerror(-result));
	return false;
}

const char *
ka_helper_name(const KaHelper *helper)
{
	return helper->fd >= 0 ? "kernel_advisord" : "this process";
}

const char *
ka_helper_note(const KaHelper *helper)
{
	return helper->note;
}

void
ka_helper_close(KaHelper *helper)
{
	if (helper == NULL)
		return;
	if (helper->fd >= 0)
		close(helper->fd);
	if (helper->opened)
		ka_daemon_close(&helper->daemon);
	helper->opened = false;
	helper->fd = -1;
}
