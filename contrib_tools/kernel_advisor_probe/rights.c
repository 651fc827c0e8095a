/*
 * rights.c: from root, or from systemd's ambient capabilities, to what loading
 * BPF programs needs, and from there to nothing.
 *
 * CAP_BPF is for maps and programs, CAP_PERFMON for tracing ones.  Both are
 * powerful: a program can read the kernel's memory.  So they are given up once
 * the programs are loaded: kernels since 5.19 let who has a map's descriptor use
 * it, also where kernel.unprivileged_bpf_disabled is set.
 *
 * The order: the bounding set needs CAP_SETPCAP, so it comes before the rest;
 * the user is changed by libcap's cap_setuid(), which keeps the permitted set.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rights.h"

static const cap_value_t needed[] = {CAP_BPF, CAP_PERFMON};

#define NNEEDED ((int) (sizeof(needed) / sizeof(needed[0])))

static bool
fail(char *error, size_t error_size, const char *what)
{
	snprintf(error, error_size, "%s: %s", what, strerror(errno));
	return false;
}

/* Sets exactly these, effective and permitted, or permitted only. */
static bool
set_capabilities(const cap_value_t *values, int n, bool effective)
{
	cap_t		wanted = cap_init();
	bool		good = wanted &&
		(n == 0 || cap_set_flag(wanted, CAP_PERMITTED, n, values, CAP_SET) == 0) &&
		(n == 0 || !effective || cap_set_flag(wanted, CAP_EFFECTIVE, n, values, CAP_SET) == 0) &&
		cap_set_proc(wanted) == 0;
	int			error = errno;

	cap_free(wanted);
	errno = error;
	return good;
}

/* Whether the kernel says that the process has exactly these. */
static bool
has_exactly(const cap_value_t *values, int n)
{
	cap_t		now = cap_get_proc();
	cap_t		wanted = cap_init();
	bool		good = now && wanted &&
		(n == 0 || cap_set_flag(wanted, CAP_PERMITTED, n, values, CAP_SET) == 0) &&
		(n == 0 || cap_set_flag(wanted, CAP_EFFECTIVE, n, values, CAP_SET) == 0) &&
		cap_compare(now, wanted) == 0;

	cap_free(now);
	cap_free(wanted);
	return good;
}

static bool
is_needed(cap_value_t cap)
{
	for (int i = 0; i < NNEEDED; i++)
	{
		if (needed[i] == cap)
			return true;
	}
	return false;
}

/* With CAP_SETPCAP only; without, an exec is no way back either (NO_NEW_PRIVS). */
static bool
reduce_bounding_set(void)
{
	for (cap_value_t cap = 0; cap < cap_max_bits(); cap++)
	{
		if (!is_needed(cap) && cap_get_bound(cap) > 0 && cap_drop_bound(cap) < 0 && errno != EPERM)
			return false;
	}
	return true;
}

static bool
become(uid_t uid, gid_t gid, char *error, size_t error_size)
{
	uid_t		r, e, s;

	if (cap_setgroups(gid, 0, NULL) < 0)
		return fail(error, error_size, "groups");
	if (cap_setuid(uid) < 0)
		return fail(error, error_size, "user");
	if (getresuid(&r, &e, &s) < 0 || r != uid || e != uid || s != uid || uid == 0)
	{
		snprintf(error, error_size, "the user is not the one that was set");
		return false;
	}
	return true;
}

bool
ka_rights_reduce(uid_t uid, gid_t gid, char *error, size_t error_size)
{
	if (!reduce_bounding_set())
		return fail(error, error_size, "bounding set");
	if (geteuid() == 0 && !become(uid, gid, error, error_size))
		return false;
	if (!set_capabilities(needed, NNEEDED, true))
	{
		if (errno != EPERM)
			return fail(error, error_size, "capabilities");
		snprintf(error, error_size, "CAP_BPF and CAP_PERFMON are needed: start it as root, or with its systemd unit");
		return false;
	}
	if (cap_reset_ambient() < 0)
		return fail(error, error_size, "ambient capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return fail(error, error_size, "NO_NEW_PRIVS");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(error, error_size, "PR_SET_DUMPABLE");
	if (!has_exactly(needed, NNEEDED))
	{
		snprintf(error, error_size, "the capabilities are not what was set");
		return false;
	}
	return true;
}

const char *
ka_rights_end(bool (*works) (void *), void *argument, char *error, size_t error_size)
{
	bool		needs_bpf;

	/* Not effective, but still to be had back. */
	if (!set_capabilities(needed, NNEEDED, false))
		return fail(error, error_size, "capabilities"), NULL;
	needs_bpf = !works(argument);
	if (!set_capabilities(needed, needs_bpf ? 1 : 0, true))
		return fail(error, error_size, "capabilities"), NULL;
	if (!has_exactly(needed, needs_bpf ? 1 : 0))
	{
		snprintf(error, error_size, "the capabilities are not what was set");
		return NULL;
	}
	return needs_bpf ? "CAP_BPF" : "no capability";
}
