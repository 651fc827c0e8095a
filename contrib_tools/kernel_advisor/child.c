/*
 * child.c: runs a program and reads what it prints.
 *
 * The tool is often run by root on a data directory that belongs to another
 * user, and the server's programs may be of that user's choosing.  So a child
 * gives up every right for good before it executes anything, and keeps nothing
 * through which it could reach the caller: no terminal, no descriptors, no
 * environment.
 *
 * Invariants: a child and what it started (its process group) is gone when
 * ka_child_run returns; output is bounded.
 *
 * Locks: none; one child at a time.
 */
#define _GNU_SOURCE 1

#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_MAX 65536		/* bytes of stdout and of stderr; the rest is dropped */
#define NOT_EXECUTED 127

typedef struct Stream
{
	int			fd;
	size_t		length;
	char		text[OUTPUT_MAX];
} Stream;

static char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};

/* Ends in exec or _exit.  Only plain system calls: nothing here may allocate. */
static void
child_main(const char *const *argv, uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups, int out, int err)
{
	int			null = open("/dev/null", O_RDWR);
	struct rlimit no_core = {0, 0};

	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(NOT_EXECUTED);
	if (close_range(3, ~0U, 0) != 0)
	{
		for (int fd = 3; fd < 1024; fd++)	/* before Linux 5.9; ours are close-on-exec besides */
			close(fd);
	}
	(void) setsid();
	(void) setrlimit(RLIMIT_CORE, &no_core);

	if (geteuid() == 0)
	{
		if (setgroups(ngroups, groups) != 0 || setgid(gid) != 0 || setuid(uid) != 0 ||
			setuid(0) == 0)
			_exit(NOT_EXECUTED);
	}
	if (chdir("/") != 0)
		_exit(NOT_EXECUTED);
	execve(argv[0], (char *const *) argv, environment);
	_exit(NOT_EXECUTED);
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* False at the end of the stream. */
static bool
read_some(Stream *stream)
{
	char		rest[4096];
	size_t		room = sizeof(stream->text) - 1 - stream->length;
	ssize_t		n = room > 0 ? read(stream->fd, stream->text + stream->length, room)
		: read(stream->fd, rest, sizeof(rest));

	if (n < 0)
		return errno == EINTR;
	if (room > 0)
		stream->length += (size_t) n;
	return n > 0;
}

/* Until both streams end; false when the time is up. */
static bool
read_streams(Stream *out, Stream *err, int64_t deadline)
{
	struct pollfd fds[2] = {{.fd = out->fd,.events = POLLIN}, {.fd = err->fd,.events = POLLIN}};
	Stream	   *streams[2] = {out, err};

	while (fds[0].fd >= 0 || fds[1].fd >= 0)
	{
		int64_t		left = deadline - now_ms();

		if (left <= 0)
			return false;
		if (poll(fds, 2, (int) left) < 0 && errno != EINTR)
			return false;
		for (int i = 0; i < 2; i++)
		{
			if (fds[i].fd >= 0 && fds[i].revents != 0 && !read_some(streams[i]))
				fds[i].fd = -1;
		}
	}
	return true;
}

/*
 * Waits for the child, but not beyond the deadline: then it is killed.  Its
 * number stays taken until the last waitpid, so that no stranger is hit.
 */
static int
reap(pid_t pid, int64_t deadline, bool *in_time)
{
	int			status = 0;

	while (*in_time)
	{
		siginfo_t	info = {0};

		if (waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
			break;
		if (now_ms() >= deadline)
			*in_time = false;
		else
			(void) poll(NULL, 0, 2);
	}
	(void) kill(-pid, SIGKILL); /* what it left behind, too */
	(void) kill(pid, SIGKILL);	/* when it had no group of its own yet */
	while (waitpid(pid, &status, 0) < 0)
	{
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *
trimmed(KaArena *arena, Stream *stream)
{
	while (stream->length > 0 && stream->text[stream->length - 1] == '\n')
		stream->length--;
	stream->text[stream->length] = '\0';
	return ka_strdup(arena, stream->text);
}

/* Groups of the user: getgrouplist may ask name services, so it runs before the fork. */
static bool
user_groups(uid_t uid, gid_t *gid, gid_t **groups, int *ngroups)
{
	struct passwd *user = getpwuid(uid);

	*ngroups = 64;
	*groups = calloc((size_t) *ngroups, sizeof(gid_t));
	if (*groups == NULL)
		return false;
	if (user == NULL)
	{
		/* A user without a name, as in a container: no groups but its own number. */
		*gid = (gid_t) uid;
		*ngroups = 0;
		return true;
	}
	*gid = user->pw_gid;
	if (getgrouplist(user->pw_name, *gid, *groups, ngroups) < 0)
		*ngroups = 64;
	return true;
}

static const char *
last_line(char *text)
{
	char	   *newline = text ? strrchr(text, '\n') : NULL;

	return newline ? newline + 1 : text && *text ? text : NULL;
}

bool
ka_child_run(KaArena *arena, const char *const *argv, uid_t uid, int seconds, KaChildResult *result)
{
	Stream	   *streams = calloc(2, sizeof(Stream));
	int64_t		deadline = now_ms() + seconds * INT64_C(1000);
	int			out[2] = {-1, -1},
				err[2] = {-1, -1};
	bool		in_time;
	gid_t		gid;
	gid_t	   *groups = NULL;
	int			ngroups;
	pid_t		pid = -1;

	*result = (KaChildResult) {.status = -1};
	if (geteuid() != 0 && geteuid() != uid)
		result->problem = "only root and the owner may run the server's programs";
	else if (streams == NULL || !user_groups(uid, &gid, &groups, &ngroups) ||
			 pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 || (pid = fork()) < 0)
		result->problem = ka_strdup(arena, strerror(errno));

	if (pid == 0)
		child_main(argv, uid, gid, groups, (size_t) ngroups, out[1], err[1]);

	if (out[1] >= 0)
		close(out[1]);
	if (err[1] >= 0)
		close(err[1]);
	if (pid > 0)
	{
		streams[0].fd = out[0];
		streams[1].fd = err[0];
		in_time = read_streams(&streams[0], &streams[1], deadline);
		result->status = reap(pid, deadline, &in_time);
		result->output = trimmed(arena, &streams[0]);
		result->problem = last_line(trimmed(arena, &streams[1]));
		if (!in_time)
			result->problem = ka_printf(arena, "%s did not end within %d seconds", argv[0], seconds);
		else if (result->status == NOT_EXECUTED && result->problem == NULL)
			result->problem = ka_printf(arena, "%s could not be run", argv[0]);
	}
	if (out[0] >= 0)
		close(out[0]);
	if (err[0] >= 0)
		close(err[0]);
	free(groups);
	free(streams);
	return !arena->failed;
}
