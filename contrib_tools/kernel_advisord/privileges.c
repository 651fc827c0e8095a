/*
 * privileges.c: from a root process to a uid that can write /proc/sys.
 *
 * Writing a sysctl needs the effective uid 0 and no capability, so the daemon
 * stays uid 0 with every capability set empty.  An exec or a setuid could give
 * capabilities back to uid 0; the securebits and NO_NEW_PRIVS forbid that, the
 * empty bounding set makes it void, and the seccomp filter has neither call.
 *
 * The order matters: the bounding set and the securebits need CAP_SETPCAP, so
 * they come first; Landlock and seccomp need NO_NEW_PRIVS; seccomp comes last,
 * since it forbids all the rest.
 *
 * A container that gave no capability at all leaves nothing to drop, and the
 * securebits cannot be set: that is accepted when the bounding set is empty,
 * because then nothing can come back.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/securebits.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "privileges.h"

/* Newer than some distributions' header. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#define NET_BIND_AND_CONNECT_TCP (1ULL << 0 | 1ULL << 1)
#define SCOPE_ABSTRACT_SOCKET_AND_SIGNAL (1ULL << 0 | 1ULL << 1)

#define LOCKED_SECUREBITS \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | \
	 SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | \
	 SECBIT_KEEP_CAPS_LOCKED | \
	 SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* The attribute of landlock_create_ruleset() as of ABI 6. */
typedef struct RulesetAttribute
{
	uint64_t	handled_access_fs;	/* ABI 1 */
	uint64_t	handled_access_net; /* ABI 4 */
	uint64_t	scoped;			/* ABI 6 */
} RulesetAttribute;

static char landlock_state[64] = "Landlock not tried";

const char *
ka_landlock_state(void)
{
	return landlock_state;
}

static bool
fail(char *error, size_t error_size, const char *what)
{
	snprintf(error, error_size, "%s: %s", what, strerror(errno));
	return false;
}

/* Bounding set, ambient set, then the three of the process. */
static bool
drop_capabilities(char *error, size_t error_size)
{
	cap_t		none;
	int			result;

	/* The bounding set first: it needs a capability of the process. */
	for (cap_value_t cap = 0; cap < cap_max_bits(); cap++)
	{
		if (cap_get_bound(cap) > 0 && cap_drop_bound(cap) < 0)
			return fail(error, error_size, "the bounding set cannot be emptied (CAP_SETPCAP is needed, or an empty set)");
	}
	/* EPERM: without CAP_SETPCAP, and then the bounding set was empty before. */
	if (prctl(PR_SET_SECUREBITS, LOCKED_SECUREBITS, 0, 0, 0) < 0)
	{
		if (errno != EPERM)
			return fail(error, error_size, "securebits");
	}
	else if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != (int) LOCKED_SECUREBITS)
	{
		snprintf(error, error_size, "securebits are not what was set");
		return false;
	}
	if (CAP_AMBIENT_SUPPORTED() && cap_reset_ambient() < 0)
		return fail(error, error_size, "the ambient set cannot be emptied");
	none = cap_init();
	if (none == NULL)
		return fail(error, error_size, "capabilities");
	result = cap_set_proc(none);
	cap_free(none);
	return result == 0 || fail(error, error_size, "capabilities cannot be dropped");
}

static uint64_t
landlock_rights(int abi)
{
	uint64_t	rights = LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1;	/* ABI 1: all up to this one */

	if (abi >= 2)
		rights |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return rights;
}

/* A path that does not exist is not needed: it stays closed until the next start. */
static bool
allow_path(int ruleset, const char *root, const KaAllowedPath *allowed, uint64_t handled)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE};
	char		full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", root, allowed->path) >= (int) sizeof(full))
		return false;
	/*
	 * Deliberately left open: files of /proc get a new inode, unknown to the
	 * rule, when nobody holds the old one.
	 */
	rule.parent_fd = open(full, O_PATH | O_CLOEXEC | (allowed->directory ? O_DIRECTORY : 0));
	if (rule.parent_fd < 0)
		return errno == ENOENT;
	if (allowed->directory)
		rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
	if (allowed->access == KA_ACCESS_REPLACE)
		rule.allowed_access |= LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
			LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE;
	rule.allowed_access &= handled;
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

/* Without Landlock in the kernel there is one wall less, and the log says so. */
static bool
restrict_files(const char *root, const KaAllowedPath *paths, size_t npaths, char *error, size_t error_size)
{
	int			abi = (int) syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	RulesetAttribute attribute = {0};
	size_t		size;
	int			ruleset;

	if (abi < 0)
	{
		snprintf(landlock_state, sizeof(landlock_state), "no Landlock (%s)", strerror(errno));
		return errno == ENOSYS || errno == EOPNOTSUPP || fail(error, error_size, "Landlock");
	}
	attribute.handled_access_fs = landlock_rights(abi);
	size = sizeof(attribute.handled_access_fs);
	if (abi >= 4)
	{
		attribute.handled_access_net = NET_BIND_AND_CONNECT_TCP;
		size += sizeof(attribute.handled_access_net);
	}
	if (abi >= 6)
	{
		attribute.scoped = SCOPE_ABSTRACT_SOCKET_AND_SIGNAL;
		size += sizeof(attribute.scoped);
	}
	ruleset = (int) syscall(SYS_landlock_create_ruleset, &attribute, size, 0);
	if (ruleset < 0)
		return fail(error, error_size, "Landlock rules");
	for (size_t i = 0; i < npaths; i++)
	{
		if (!allow_path(ruleset, root, &paths[i], attribute.handled_access_fs))
			return fail(error, error_size, paths[i].path);
	}
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return fail(error, error_size, "Landlock");
	close(ruleset);
	snprintf(landlock_state, sizeof(landlock_state), "Landlock ABI %d", abi);
	return true;
}

/*
 * What the daemon and libc call after the start.  No call takes a path that
 * Landlock does not see, none starts a process, none makes a socket or a
 * descriptor for one, and no memory becomes executable.
 */
static const int allowed_calls[] = {
	/* knobs, journal, files for the next boot */
	SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(pwrite64), SCMP_SYS(lseek),
	SCMP_SYS(openat), SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx),
	SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(sync), SCMP_SYS(ftruncate), SCMP_SYS(fallocate),
	SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(unlinkat), SCMP_SYS(linkat), SCMP_SYS(fchmod),
	SCMP_SYS(flock),
	/* the reader of boot settings: directories and links in them */
	SCMP_SYS(open), SCMP_SYS(getdents64), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
	SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(stat), SCMP_SYS(lstat),
	SCMP_SYS(fcntl), SCMP_SYS(sysinfo),
	/* clients */
	SCMP_SYS(accept4), SCMP_SYS(recvfrom), SCMP_SYS(sendto), SCMP_SYS(getsockopt),
	SCMP_SYS(poll), SCMP_SYS(ppoll),
	/* time, signals, memory, the end */
	SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(setitimer),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall),
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
	SCMP_SYS(futex), SCMP_SYS(getrandom), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(tgkill),
	SCMP_SYS(exit), SCMP_SYS(exit_group),
};

static bool
restrict_calls(char *error, size_t error_size)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int			result = filter ? 0 : -ENOMEM;

	if (result == 0)
		result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	for (size_t i = 0; i < sizeof(allowed_calls) / sizeof(allowed_calls[0]) && result == 0; i++)
	{
		/* Negative: this architecture never had the call. */
		if (allowed_calls[i] >= 0)
			result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed_calls[i], 0);
	}
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
								  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
								  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (result == 0)
		result = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	errno = -result;
	return result == 0 || fail(error, error_size, "seccomp filter");
}

/* A line of /proc/self/status: "Name:\tvalue". */
static bool
status_is(const char *status, const char *name, const char *expected, char *error, size_t error_size)
{
	char		key[32];
	const char *at;
	size_t		length;

	snprintf(key, sizeof(key), "\n%s:\t", name);
	at = strstr(status, key);
	if (at == NULL)
	{
		snprintf(error, error_size, "/proc/self/status has no %s", name);
		return false;
	}
	at += strlen(key);
	length = strcspn(at, "\n");
	if (length == strlen(expected) && memcmp(at, expected, length) == 0)
		return true;
	snprintf(error, error_size, "%s is \"%.*s\" and must be \"%s\"", name, (int) length, at, expected);
	return false;
}

/* Believes nothing but what the kernel says of this process. */
static bool
verify(int status_fd, char *error, size_t error_size)
{
	static const char *const expected[][2] = {
		{"Uid", "0\t0\t0\t0"},	/* less, and no knob can be written */
		{"CapInh", "0000000000000000"},
		{"CapPrm", "0000000000000000"},
		{"CapEff", "0000000000000000"},
		{"CapBnd", "0000000000000000"},
		{"CapAmb", "0000000000000000"},
		{"NoNewPrivs", "1"},
		{"Seccomp", "2"},
	};
	char		status[8192];
	ssize_t		n = pread(status_fd, status, sizeof(status) - 1, 0);

	if (n <= 0)
		return fail(error, error_size, "/proc/self/status");
	status[n] = '\0';
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
	{
		if (!status_is(status, expected[i][0], expected[i][1], error, error_size))
			return false;
	}
	return true;
}

bool
ka_privileges_drop(const char *root, const KaAllowedPath *paths, size_t npaths, char *error, size_t error_size)
{
	int			status_fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	bool		good;

	if (status_fd < 0)
		return fail(error, error_size, "/proc/self/status");
	/* Before CAP_SETGID goes.  Groups give uid 0 nothing that it has not. */
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return fail(error, error_size, "supplementary groups");
	if (!drop_capabilities(error, error_size))
		return false;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(error, error_size, "NO_NEW_PRIVS");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(error, error_size, "PR_SET_DUMPABLE");
	if (!restrict_files(root, paths, npaths, error, error_size))
		return false;
	good = restrict_calls(error, error_size) && verify(status_fd, error, error_size);
	close(status_fd);
	return good;
}
