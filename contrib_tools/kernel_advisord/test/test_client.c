/*
 * test_client.c: the client against daemons that are absent, hung, closing or
 * talking nonsense.  Each is a child process on a socket of its own.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "ka_test.h"

typedef enum Behaviour
{
	ANSWER,						/* as it should */
	HANG,						/* accepts, reads, says nothing */
	NEVER_ACCEPT,
	CLOSE_AT_ONCE,
	CLOSE_AFTER_REQUEST,
	DENY,						/* answers and closes without reading */
	TOO_SHORT,
	TOO_LONG,
	OTHER_VERSION
} Behaviour;

static char path[64];

static void
serve(int listener, Behaviour behaviour)
{
	struct
	{
		KaReply		reply;
		char		more[8];
	}			answer = {.reply = {.version = KA_PROTOCOL_VERSION, .granted = 4711}};
	size_t		length = sizeof(answer.reply);
	KaRequest	request;
	int			fd;

	alarm(20);
	if (behaviour == NEVER_ACCEPT)
		pause();
	fd = accept(listener, NULL, NULL);
	if (behaviour == CLOSE_AT_ONCE)
		_exit(0);
	if (behaviour == DENY)
	{
		answer.reply.status = KA_ST_DENIED;
		usleep(50000);			/* so that the request is there, unread */
		send(fd, &answer, length, MSG_NOSIGNAL);
		_exit(0);
	}
	if (recv(fd, &request, sizeof(request), 0) != sizeof(request))
		_exit(1);
	if (behaviour == HANG)
		pause();
	if (behaviour == CLOSE_AFTER_REQUEST)
		_exit(0);
	length += behaviour == TOO_LONG ? 8 : behaviour == TOO_SHORT ? -(size_t) 8 : 0;
	answer.reply.version += behaviour == OTHER_VERSION;
	answer.reply.asked = request.value;
	send(fd, &answer, length, MSG_NOSIGNAL);
	recv(fd, &request, sizeof(request), 0); /* until the client is gone */
	_exit(0);
}

/* Calls a daemon that behaves like this. */
static int
call(Behaviour behaviour, KaReply *reply, int timeout_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	KaRequest	request = {.version = KA_PROTOCOL_VERSION, .operation = KA_OP_GET, .value = 42};
	int			listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	pid_t		pid;
	int			result;

	snprintf(path, sizeof(path), "/var/tmp/test_client.%d", (int) getpid());
	strcpy(address.sun_path, path);
	unlink(path);
	if (bind(listener, (struct sockaddr *) &address, sizeof(address)) < 0 || listen(listener, 0) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		serve(listener, behaviour);
	close(listener);
	result = ka_client_call(path, &request, reply, timeout_ms);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(path);
	return result;
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

TEST(answered)
{
	KaReply		reply;

	CHECK_INT(call(ANSWER, &reply, 10000), 0);
	CHECK_INT(reply.granted, 4711);
	CHECK_INT(reply.asked, 42);
}

TEST(absent)
{
	KaRequest	request = {.version = KA_PROTOCOL_VERSION};
	KaReply		reply;
	char		longest[300];

	CHECK_INT(ka_client_call("/var/tmp/no-such-socket", &request, &reply, 1000), -ENOENT);
	CHECK_INT(ka_client_call("", &request, &reply, 1000), -ENAMETOOLONG);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CHECK_INT(ka_client_call(longest, &request, &reply, 1000), -ENAMETOOLONG);
}

TEST(hung)
{
	KaReply		reply;
	int64_t		start = now_ms();

	CHECK_INT(call(HANG, &reply, 300), -ETIMEDOUT);
	CHECK_INT(call(NEVER_ACCEPT, &reply, 300), -ETIMEDOUT);
	CHECK(now_ms() - start >= 600 && now_ms() - start < 5000);
}

TEST(ended)
{
	KaReply		reply;

	CHECK_INT(call(CLOSE_AT_ONCE, &reply, 10000), -ECONNRESET);
	CHECK_INT(call(CLOSE_AFTER_REQUEST, &reply, 10000), -ECONNRESET);
}

TEST(denied_before_it_was_read)
{
	KaReply		reply;

	CHECK_INT(call(DENY, &reply, 10000), 0);
	CHECK_INT(reply.status, KA_ST_DENIED);
}

TEST(nonsense)
{
	KaReply		reply;

	CHECK_INT(call(TOO_SHORT, &reply, 10000), -EPROTO);
	CHECK_INT(call(TOO_LONG, &reply, 10000), -EPROTO);
	CHECK_INT(call(OTHER_VERSION, &reply, 10000), -EPROTO);
}
