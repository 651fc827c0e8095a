/*
 * test_privileges.c: what a process can still do after ka_privileges_drop().
 *
 * Each attempt is a child process that drops and then tries one thing; the
 * filter kills it (SIGSYS) or the kernel refuses.  Needs root: without, there
 * is one test only, that dropping from another uid is refused.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ka_test.h"
#include "privileges.h"

#define KILLED -1				/* by the filter */
#define NOT_DROPPED -2

static char directory[] = "/var/tmp/test_privileges.XXXXXX";
static char error[512];

/* Runs "attempt" in a child: 0 when it worked, its errno, or KILLED. */
static int
after_drop(int (*attempt) (void))
{
	KaAllowedPath paths[] = {{"/allowed", KA_ACCESS_REPLACE, true}, {"/readable", KA_ACCESS_READ, true}};
	pid_t		pid = fork();
	int			status;

	if (pid == 0)
	{
		if (!ka_privileges_drop(directory, paths, 2, error, sizeof(error)))
		{
			printf("# %s\n", error);
			fflush(stdout);
			syscall(SYS_exit_group, 200);
		}
		errno = 0;
		status = attempt();
		/* Not through libc: a sanitizer's end calls what the filter forbids. */
		syscall(SYS_exit_group, status < 0 ? errno : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return NOT_DROPPED;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? KILLED : NOT_DROPPED;
	return WEXITSTATUS(status) == 200 ? NOT_DROPPED : WEXITSTATUS(status);
}

static int
in_directory(const char *name, int flags)
{
	char		path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return open(path, flags, 0600);
}

/* Allowed. */
static int nothing(void) { return 0; }
static int create_in_allowed(void) { return in_directory("allowed/new", O_RDWR | O_CREAT | O_TRUNC); }
static int read_readable(void) { return in_directory("readable/file", O_RDONLY); }

/* Refused by Landlock. */
static int write_readable(void) { return in_directory("readable/file", O_WRONLY); }
static int create_in_readable(void) { return in_directory("readable/new", O_RDWR | O_CREAT); }
static int read_elsewhere(void) { return in_directory("elsewhere/file", O_RDONLY); }
static int read_shadow(void) { return open("/etc/shadow", O_RDONLY); }
static int write_sysctl(void) { return open("/proc/sys/kernel/core_pattern", O_WRONLY); }
static int write_knob(void) { return open("/proc/sys/vm/swappiness", O_WRONLY); }

/* Killed by the filter. */
static int make_socket(void) { return (int) syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0); }
static int run_shell(void) { return (int) syscall(SYS_execve, "/bin/sh", NULL, NULL); }
static int make_process(void) { return (int) syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
static int change_user(void) { return (int) syscall(SYS_setuid, 1); }
static int load_module(void) { return (int) syscall(SYS_finit_module, 0, "", 0); }
static int do_mount(void) { return (int) syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, NULL); }
static int trace_parent(void) { return (int) syscall(SYS_ptrace, PTRACE_ATTACH, getppid(), 0, 0); }
static int kill_parent(void) { return (int) syscall(SYS_kill, getppid(), 0); }
static int change_mode(void) { return (int) syscall(SYS_fchmodat, AT_FDCWD, "/etc/shadow", 0666); }
static int change_owner(void) { return (int) syscall(SYS_fchownat, AT_FDCWD, "/etc/shadow", 1, 1, 0); }
static int set_capabilities(void) { return (int) syscall(SYS_capset, NULL, NULL); }
static int unshare_all(void) { return (int) syscall(SYS_unshare, 0x10000000); }
static int reboot_machine(void) { return (int) syscall(SYS_reboot, 0, 0, 0, 0); }
static int use_bpf(void) { return (int) syscall(SYS_bpf, 0, NULL, 0); }
static int use_io_uring(void) { return (int) syscall(SYS_io_uring_setup, 1, NULL); }
static int executable_memory(void)
{
	return syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == -1 ? -1 : 0;
}
static int memory_made_executable(void)
{
	static char page[8192] __attribute__((aligned(4096)));

	return (int) syscall(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC);
}

static bool
set_up(void)
{
	char		path[128];
	static const char *const names[] = {"allowed", "readable", "elsewhere"};

	if (geteuid() != 0)
		return false;
	if (directory[strlen(directory) - 1] != 'X')
		return true;
	REQUIRE(mkdtemp(directory) != NULL);
	for (int i = 0; i < 3; i++)
	{
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		REQUIRE(mkdir(path, 0700) == 0);
		snprintf(path, sizeof(path), "%s/%s/file", directory, names[i]);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	return true;
}

TEST(what_is_left)
{
	if (!set_up())
		return;
	CHECK_INT(after_drop(nothing), 0);
	CHECK_INT(after_drop(create_in_allowed), 0);
	CHECK_INT(after_drop(read_readable), 0);
}

TEST(files_out_of_reach)
{
	if (!set_up() || syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 0)
		return;					/* no Landlock in this kernel */
	CHECK_INT(after_drop(write_readable), EACCES);
	CHECK_INT(after_drop(create_in_readable), EACCES);
	CHECK_INT(after_drop(read_elsewhere), EACCES);
	CHECK_INT(after_drop(read_shadow), EACCES);
	CHECK_INT(after_drop(write_sysctl), EACCES);
	CHECK_INT(after_drop(write_knob), EACCES);
}

TEST(calls_out_of_reach)
{
	int			(*const attempts[]) (void) = {
		make_socket, run_shell, make_process, change_user, load_module, do_mount, trace_parent, kill_parent,
		change_mode, change_owner, set_capabilities, unshare_all, reboot_machine, use_bpf, use_io_uring,
		executable_memory, memory_made_executable,
	};

	if (!set_up())
		return;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
	{
		int			result = after_drop(attempts[i]);

		if (result != KILLED)
			printf("# attempt %zu\n", i);
		CHECK_INT(result, KILLED);
	}
}

/* From uid 1, or with a bounding set that cannot be emptied, there is no drop. */
static int
drop_from(bool as_other_user)
{
	pid_t		pid = fork();
	int			status;

	if (pid == 0)
	{
		if (as_other_user)
		{
			if (geteuid() == 0 && setresuid(1, 1, 1) < 0)
				_exit(3);
		}
		else
		{
			/* Capabilities of the process go, the bounding set stays. */
			struct
			{
				uint32_t	version;
				int			pid;
			}			header = {0x20080522, 0};
			uint32_t	none[6] = {0};

			if (syscall(SYS_capset, &header, none) < 0)
				_exit(3);
		}
		if (ka_privileges_drop("", NULL, 0, error, sizeof(error)))
			syscall(SYS_exit_group, 4);
		printf("# refused: %s\n", error);
		fflush(stdout);
		_exit(strstr(error, "bounding set") ? 1 : 2);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

TEST(refused_when_it_cannot_be_complete)
{
	CHECK_INT(drop_from(true), 1);
	if (geteuid() == 0)
		CHECK_INT(drop_from(false), 1);
}

TEST(clean_up)
{
	if (directory[strlen(directory) - 1] != 'X')
	{
		char		command[128];

		snprintf(command, sizeof(command), "rm -r '%s'", directory);
		CHECK_INT(system(command), 0);
	}
}
