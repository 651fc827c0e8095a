/*
 * advisord_kill.c: runs a program and kills it at one system call of a request.
 *
 *	advisord_kill NUMBER PROGRAM ARGUMENT...
 *
 * Counting starts when the program has received a message of the length of a
 * request.  Each system call has two stops: before the kernel sees it and after
 * it is done; at stop NUMBER the program gets SIGKILL, in the first case
 * without the call having happened.  Prints the call and exits with 0.  When the
 * request is answered before (the program waits in ppoll again) the program
 * goes on as if nobody were there, and this exits with 3 when it has ended.
 *
 * For the tests: nothing is compiled into the daemon.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol.h"

static long
syscall_info(pid_t pid, struct __ptrace_syscall_info *info)
{
	return ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *) sizeof(*info), info);
}

static volatile pid_t pid;

/* We are asked to end: so is the program, and we end with it. */
static void
on_term(int signal_number)
{
	kill(pid, signal_number);
}

int
main(int argc, char **argv)
{
	long		kill_at = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
	struct sigaction action = {.sa_handler = on_term};
	bool		counting = false;
	bool		over = false;
	long		stops = 0;
	uint64_t	number = 0;
	int			status;

	if (kill_at <= 0)
	{
		fprintf(stderr, "usage: advisord_kill NUMBER PROGRAM ARGUMENT...\n");
		return 2;
	}
	pid = fork();
	if (pid == 0)
	{
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 2;
	sigaction(SIGTERM, &action, NULL);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *) (PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	ptrace(PTRACE_SYSCALL, pid, NULL, NULL);

	for (;;)
	{
		struct __ptrace_syscall_info info;
		int			deliver = 0;

		if (waitpid(pid, &status, 0) < 0)
		{
			if (errno != EINTR)
				return 2;
			continue;
		}
		if (WIFEXITED(status) || WIFSIGNALED(status))
		{
			printf("not killed: %ld stops, ended with status %d\n", stops, status);
			return over ? 3 : 2;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) && syscall_info(pid, &info) > 0)
		{
			if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
				number = info.entry.nr;
			if (counting && info.op == PTRACE_SYSCALL_INFO_ENTRY && number == SYS_ppoll)
			{
				counting = false;
				over = true;
			}
			if (counting && ++stops == kill_at)
			{
				char	   *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int) number);

				kill(pid, SIGKILL);
				waitpid(pid, &status, 0);
				printf("killed %s %s\n", info.op == PTRACE_SYSCALL_INFO_ENTRY ? "before" : "after",
					   name ? name : "?");
				free(name);
				return 0;
			}
			if (!counting && !over && info.op == PTRACE_SYSCALL_INFO_EXIT && number == SYS_recvfrom &&
				info.exit.rval == (int64_t) sizeof(KaRequest))
				counting = true;
		}
		else if (WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP)
			deliver = WSTOPSIG(status);
		ptrace(PTRACE_SYSCALL, pid, NULL, (void *) (long) deliver);
	}
}
