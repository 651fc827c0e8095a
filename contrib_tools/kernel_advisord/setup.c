/*
 * setup.c: bounds, signals, the kernel's files and the journal, for the daemon
 * and for whoever does its work in a process of root's own.
 *
 * Order: the bounds come first, since what they forbid must not be begun; the
 * journal comes last, since recovering it may write to the kernel.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "setup.h"

/* For the reservation of another server that starts at the same time. */
#define LOCK_WAIT_MS 10000
#define LOCK_POLL_MS 20

static volatile sig_atomic_t stop;

static void
on_stop(int signal_number)
{
	(void) signal_number;
	stop = 1;
}

/* Ends the system call that it interrupts, and nothing else. */
static void
on_alarm(int signal_number)
{
	(void) signal_number;
}

volatile sig_atomic_t *
ka_signals_start(void)
{
	struct sigaction action = {.sa_handler = on_stop};	/* no SA_RESTART: waits must end */
	sigset_t	blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	action.sa_handler = on_alarm;
	sigaction(SIGALRM, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGXFSZ, &action, NULL);	/* a full journal is an error of write() */
	return &stop;
}

int
ka_state_open(const char *root)
{
	char		path[PATH_MAX];
	struct stat st;
	int			fd;

	if (snprintf(path, sizeof(path), "%s%s", root, KA_STATE_DIRECTORY) >= (int) sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
	{
		close(fd);
		return -EPERM;
	}
	return fd;
}

bool
ka_journal_start(KaDaemon *daemon, int state_fd, int wait_ms, char *error, size_t error_size)
{
	int			result;

	while ((result = ka_journal_open(&daemon->journal, state_fd)) == -EWOULDBLOCK && wait_ms > 0)
	{
		poll(NULL, 0, LOCK_POLL_MS);
		wait_ms -= LOCK_POLL_MS;
	}
	if (result < 0)
	{
		snprintf(error, error_size, "journal%s: %s", result == -EWOULDBLOCK ? ": another daemon has it" : "",
				 strerror(-result));
		return false;
	}
	result = ka_recover(daemon);
	if (result < 0)
	{
		snprintf(error, error_size, "journal: an interrupted change cannot be completed: %s", strerror(-result));
		return false;
	}
	return true;
}

bool
ka_daemon_open(KaDaemon *daemon, bool changes, char *error, size_t error_size)
{
	bool		found;
	int			result;

	error[0] = '\0';
	memset(daemon, 0, sizeof(*daemon));
	daemon->root = "";
	daemon->journal.fd = daemon->journal.directory_fd = -1;
	daemon->persist.sysctl_fd = daemon->persist.tmpfiles_fd = -1;
	daemon->kernel.meminfo_fd = daemon->kernel.buddyinfo_fd = daemon->kernel.pagetypeinfo_fd = -1;
	if (!ka_bounds_default(&daemon->bounds))
	{
		snprintf(error, error_size, "%s", strerror(ENOMEM));
		return false;
	}
	if (!ka_bounds_load(&daemon->bounds, daemon->root, KA_BOUNDS_FILE, &found, error, error_size) && changes)
		goto failed;
	result = ka_kernel_open(&daemon->kernel, daemon->root);
	if (result < 0)
	{
		snprintf(error, error_size, "/proc/meminfo: %s", strerror(-result));
		goto failed;
	}
	if (!changes)
		return true;

	daemon->stop = ka_signals_start();
	ka_persist_open(&daemon->persist, daemon->root);
	result = ka_state_open(daemon->root);
	if (result < 0)
	{
		snprintf(error, error_size, "%s: %s", KA_STATE_DIRECTORY, strerror(-result));
		goto failed;
	}
	daemon->journal.directory_fd = result;
	if (ka_journal_start(daemon, result, LOCK_WAIT_MS, error, error_size))
		return true;

failed:
	ka_daemon_close(daemon);
	return false;
}

void
ka_daemon_close(KaDaemon *daemon)
{
	int			state_fd = daemon->journal.directory_fd;

	ka_journal_close(&daemon->journal);
	if (state_fd >= 0)
		close(state_fd);
	ka_kernel_close(&daemon->kernel);
	ka_persist_close(&daemon->persist);
	ka_bounds_free(&daemon->bounds);
}
