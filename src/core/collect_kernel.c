/*
 * collect_kernel.c: which kernel this is, how it preempts, and whether its
 * knobs are within reach.
 *
 * Each answer comes from a marker that proves it; where none does, the fact
 * stays unknown.
 *
 * Locks: none; the facts belong to the caller.
 */
#define _GNU_SOURCE 1

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "boot.h"
#include "collect_priv.h"

/* The first version with lazy preemption. */
#define LAZY_SINCE 6013

/* From here on none and voluntary are gone where lazy exists, and refused. */
#define LAZY_REPLACES 7000

/* "6.18.44-amd64" as 6018, or 0. */
static int
series(const char *release)
{
	KaSpan		span = ka_span_text(release ? release : "");
	int64_t		major;
	int64_t		minor;

	if (!ka_next_number(&span, &major) || span.length == 0 || span.at[0] != '.')
		return 0;
	span = ka_skip(span, 1);
	if (!ka_next_number(&span, &minor) || major > 1000 || minor > 999)
		return 0;
	return (int) (major * 1000 + minor);
}

/*
 * Without /proc/sys/kernel/arch (before 6.1) a copy tells its machine only by
 * the suffix that distributions give to the release.
 */
static const char *
machine_of_release(const char *release)
{
	static const struct
	{
		const char *suffix;
		const char *machine;
	}			suffixes[] = {
		{".x86_64", "x86_64"}, {"-amd64", "x86_64"},
		{".aarch64", "aarch64"}, {".aarch64+64k", "aarch64"}, {"-arm64", "aarch64"},
		{".ppc64le", "ppc64le"}, {"-powerpc64le", "ppc64le"},
		{".s390x", "s390x"}, {"-s390x", "s390x"},
	};

	for (size_t i = 0; release && i < KA_LENGTH(suffixes); i++)
	{
		if (ka_ends_with(ka_span_text(release), suffixes[i].suffix))
			return suffixes[i].machine;
	}
	return NULL;
}

static void
collect_identity(KaFacts *facts, KaPath *path)
{
	const char *line = ka_path_line(path, "/proc/sys/kernel/ostype");
	struct utsname name;

	if (line)
	{
		for (char *c = path->text; *c; c++)
			*c = (char) tolower((unsigned char) *c);
		ka_set_text(facts, KA_KERNEL_OS, line);
	}
	ka_set_text(facts, KA_KERNEL_RELEASE, ka_path_line(path, "/proc/sys/kernel/osrelease"));
	ka_set_text(facts, KA_KERNEL_CMDLINE, ka_path_line(path, "/proc/cmdline"));
	ka_set_int(facts, KA_KERNEL_PAGE_SIZE, ka_page_size(path));

	/* uname -m tells this process's personality, which is what counts here. */
	if (path->root[0] == '\0' && uname(&name) == 0)
		ka_set_text(facts, KA_KERNEL_MACHINE, name.machine);
	else if (!ka_set_text(facts, KA_KERNEL_MACHINE, ka_path_line(path, "/proc/sys/kernel/arch")))
		ka_set_text(facts, KA_KERNEL_MACHINE, machine_of_release(ka_text(facts, KA_KERNEL_RELEASE)));
}

/* Is this word in the text? */
static bool
has_word(KaSpan text, const char *word)
{
	KaSpan		one;

	while ((one = ka_next_word(&text)).length > 0)
	{
		if (ka_equals(one, word))
			return true;
	}
	return false;
}

/* "(full)" of debugfs: "none voluntary (full) lazy". */
static bool
preempt_of_debugfs(KaFacts *facts, KaPath *path)
{
	char	   *open;
	char	   *close;

	if (ka_path_read(path, "/sys/kernel/debug/sched/preempt") < 0)
		return false;
	open = strchr(path->text, '(');
	close = open ? strchr(open, ')') : NULL;
	if (close == NULL)
		return false;
	*close = '\0';
	return ka_set_text(facts, KA_KERNEL_PREEMPT, open + 1);
}

/* The model that the kernel was built with; with PREEMPT_DYNAMIC its default. */
static bool
preempt_of_config(KaFacts *facts, KaPath *path)
{
	static const struct
	{
		const char *line;
		const char *mode;
	}			models[] = {
		{"CONFIG_PREEMPT_LAZY=y", "lazy"},
		{"CONFIG_PREEMPT=y", "full"},
		{"CONFIG_PREEMPT_VOLUNTARY=y", "voluntary"},
		{"CONFIG_PREEMPT_NONE=y", "none"},
	};
	const char *release = ka_text(facts, KA_KERNEL_RELEASE);
	KaSpan		text;

	/* Debian, Ubuntu, Fedora, RHEL and SUSE before and after their move to /usr. */
	if (release == NULL || strchr(release, '/') != NULL ||
		(ka_path_readf(path, "/boot/config-%s", release) < 0 &&
		 ka_path_readf(path, "/usr/lib/modules/%s/config", release) < 0))
		return false;
	text = ka_path_text(path);
	while (text.length > 0)
	{
		KaSpan		line = ka_trim(ka_next_line(&text));

		for (size_t i = 0; i < KA_LENGTH(models); i++)
		{
			if (ka_equals(line, models[i].line))
				return ka_set_text(facts, KA_KERNEL_PREEMPT, models[i].mode);
		}
	}
	return false;
}

/*
 * The version text (uname -v) has PREEMPT_RT, PREEMPT_DYNAMIC or PREEMPT, in
 * this order of precedence (init/Makefile).  PREEMPT_DYNAMIC says that the
 * mode can be chosen, not which was; PREEMPT may be lazy since 6.13, PREEMPT_RT
 * as well; without any it is none or voluntary.
 *
 * /proc/config.gz is not read: it would need a library for one fact, and the
 * distributions that have it and no config file (Arch, Container-Optimized OS,
 * WSL) are few.  There debugfs, the command line or the version text tell, or
 * the fact stays unknown (doc/facts.md).
 */
static void
collect_preempt(KaFacts *facts, KaPath *path)
{
	KaBootArguments arguments;
	int			version = series(ka_text(facts, KA_KERNEL_RELEASE));
	bool		dynamic;
	bool		always;

	if (preempt_of_debugfs(facts, path))
		return;
	ka_path_read(path, "/proc/sys/kernel/version");
	dynamic = has_word(ka_path_text(path), "PREEMPT_DYNAMIC");
	always = has_word(ka_path_text(path), "PREEMPT") || has_word(ka_path_text(path), "PREEMPT_RT");

	if (dynamic)
	{
		bool		gone;

		ka_path_read(path, "/proc/cmdline");
		ka_parse_cmdline(ka_path_text(path), &arguments);
		gone = version >= LAZY_REPLACES &&
			(strcmp(arguments.preempt, "none") == 0 || strcmp(arguments.preempt, "voluntary") == 0);
		if (!gone && ka_set_text(facts, KA_KERNEL_PREEMPT, arguments.preempt))
			return;
	}
	if (preempt_of_config(facts, path))
		return;
	if (always && version > 0 && version < LAZY_SINCE)
		ka_set_text(facts, KA_KERNEL_PREEMPT, "full");
}

/* Is PID 2 the kernel's?  Then this is the initial PID namespace of a real kernel. */
static bool
sees_kernel_threads(KaPath *path)
{
	const char *name = ka_path_line(path, "/proc/2/comm");

	return name && strcmp(name, "kthreadd") == 0;
}

/* Does the root directory lie on a block device, as a machine's does? */
static bool
root_is_on_device(KaPath *path)
{
	KaMount		mount;

	return ka_path_read(path, "/proc/self/mountinfo") == 0 &&
		ka_find_mount(ka_path_text(path), "/", &mount) && mount.major != 0;
}

/* Container managers mark the first process, its cgroup or our environment. */
static bool
has_process_marker(KaPath *path)
{
	static const char *const names[] = {"docker", "kubepods", "containerd", "libpod", "lxc", "crio"};

	if (path->root[0] == '\0' && (getenv("KUBERNETES_SERVICE_HOST") || getenv("container")))
		return true;

	/* NUL-separated; readable by root and by the owner of PID 1. */
	if (ka_path_read(path, "/proc/1/environ") == 0)
	{
		KaSpan		text = ka_path_text(path);

		while (text.length > 0)
		{
			if (ka_starts_with(ka_next_field(&text, '\0'), "container="))
				return true;
		}
	}
	if (ka_path_read(path, "/proc/1/cgroup") == 0)
	{
		for (size_t i = 0; i < KA_LENGTH(names); i++)
		{
			if (strstr(path->text, names[i]) != NULL)
				return true;
		}
	}
	return false;
}

/* Files that container managers put there. */
static bool
has_file_marker(const KaPath *path)
{
	static const char *const files[] = {"/run/.containerenv", "/.dockerenv", "/run/systemd/container"};

	for (size_t i = 0; i < KA_LENGTH(files); i++)
	{
		if (ka_path_exists(path->root, files[i]))
			return true;
	}
	return false;
}

/*
 * gVisor answers with a version text of its own since its first release;
 * Gramine and others give an enclave's programs /dev/attestation.
 */
static bool
has_sandbox_marker(KaPath *path)
{
	if (ka_path_read(path, "/proc/version") == 0 &&
		(strstr(path->text, "gvisor") != NULL ||
		 strstr(path->text, "#1 SMP Sun Jan 10 15:06:54 PST 2016") != NULL))
		return true;
	return ka_path_exists(path->root, "/dev/attestation/attestation_type");
}

static void
collect_platform(KaFacts *facts, KaPath *path)
{
	bool		kernel_threads = sees_kernel_threads(path);

	if (has_sandbox_marker(path))
		ka_set_bool(facts, KA_KERNEL_SANDBOX, true);
	else if (kernel_threads)
		ka_set_bool(facts, KA_KERNEL_SANDBOX, false);

	/*
	 * A virtual machine whose disk was made from a container's image still has
	 * the manager's file.
	 */
	if (has_process_marker(path) ||
		(has_file_marker(path) && !(kernel_threads && root_is_on_device(path))))
		ka_set_bool(facts, KA_KERNEL_CONTAINER, true);
	else if (kernel_threads)
		ka_set_bool(facts, KA_KERNEL_CONTAINER, false);
}

/* Container managers mount /proc/sys read-only.  Who may write is another matter. */
static void
collect_sysctl_writable(KaFacts *facts, KaPath *path, const KaSource *source)
{
	char		directory[64];
	KaMount		mount;

	if (ka_path_readf(path, "%s/mountinfo", ka_proc_directory(source, directory, sizeof(directory))) < 0)
		return;
	if (ka_find_mount(ka_path_text(path), "/proc/sys/vm", &mount) && ka_equals(mount.type, "proc"))
		ka_set_bool(facts, KA_KERNEL_SYSCTL_WRITABLE,
					!ka_in_list(mount.options, "ro") && !ka_in_list(mount.super_options, "ro"));
}

bool
ka_collect_kernel(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	bool		collected;

	ka_path_init(&path, source->root);
	collect_identity(facts, &path);
	collect_preempt(facts, &path);
	collect_platform(facts, &path);
	collect_sysctl_writable(facts, &path, source);
	collected = ka_collected(&path, facts);
	ka_path_free(&path);
	return collected;
}
