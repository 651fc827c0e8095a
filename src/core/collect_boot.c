/*
 * collect_boot.c: what the next boot will set.
 *
 * Sysctls.  The command line's sysctl.x=N is applied by the kernel before init
 * runs, so every file wins over it.  Files are those of sysctl.d(5): of files
 * with the same name only the one in the first directory counts (a link to
 * /dev/null or an empty file thereby masks those behind it), and files are
 * applied in the order of their names, whatever their directory.  Of two
 * settings of a knob the later wins; a name wins over a pattern that matches
 * it, and "-name" takes the name out of patterns.
 *
 * /etc/sysctl.conf is read by procps (`sysctl --system`), after all others.
 * systemd-sysctl reads it only where a link in a sysctl.d directory leads to
 * it.  systemd boots the machine when it is installed; only without any trace
 * of it does procps' order count.
 *
 * THP.  The first "w" line of tmpfiles.d(5) for the file wins over later ones,
 * except "w+" lines, which are all written; any of them wins over the command
 * line.  Masking and order of the files are as above.
 *
 * Nothing here applies to a container: its files do not govern the kernel.
 * A file that exists but cannot be read makes unknown all that no later file
 * sets.
 *
 * "asked" of a pool: the pages that the boot settings ask for (the default
 * size: vm.nr_hugepages, else hugepages= ; other sizes: hugepages=), when they
 * are more than the pool has now.  A pool that somebody made smaller since
 * looks the same; the number tells what the next boot will try.
 *
 * Locks: none; the facts belong to the caller.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot.h"
#include "collect_priv.h"

/* The file of settings that come from the kernel command line. */
#define CMDLINE "/proc/cmdline"

#define THP_ENABLED "/sys/kernel/mm/transparent_hugepage/enabled"

static const char *const sysctl_directories[] = {
	"/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d",
};

static const char *const tmpfiles_directories[] = {
	"/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d", "/lib/tmpfiles.d",
};

/* Any of these: systemd applies the files at boot. */
static const char *const systemd_traces[] = {
	"/run/systemd/system", "/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl", "/etc/systemd/system",
};

typedef struct BootFile
{
	const char *name;			/* without the directory: the key of order and masking */
	const char *directory;
} BootFile;

static int
compare_files(const void *a, const void *b)
{
	return strcmp(((const BootFile *) a)->name, ((const BootFile *) b)->name);
}

/*
 * The *.conf files of the directories in the order in which they apply.  "any"
 * tells that at least one of the directories could be listed.
 */
static size_t
list_files(KaArena *arena, const char *root, const char *const *directories, size_t n,
		   BootFile **result, bool *any)
{
	BootFile   *files = NULL;
	size_t		count = 0;

	*any = false;
	for (size_t i = 0; i < n; i++)
	{
		char	  **names;
		ssize_t		nnames = ka_path_list(root, directories[i], arena, &names);
		size_t		before = count;

		*any |= nnames >= 0;
		for (ssize_t j = 0; j < nnames; j++)
		{
			BootFile   *grown;
			bool		masked = false;

			if (names[j][0] == '.' || !ka_ends_with(ka_span_text(names[j]), ".conf"))
				continue;
			for (size_t k = 0; k < before && !masked; k++)
				masked = strcmp(files[k].name, names[j]) == 0;
			if (masked)
				continue;
			grown = ka_append(arena, files, &count, sizeof(BootFile));
			if (grown == NULL)
				return 0;
			files = grown;
			files[count - 1] = (BootFile) {names[j], directories[i]};
		}
	}
	if (count > 1)
		qsort(files, count, sizeof(BootFile), compare_files);
	*result = files;
	return count;
}

/* The name that a person would edit: without symbolic links. */
static const char *
real_file_name(KaFacts *facts, const char *root, const char *directory, const char *name)
{
	char		full[KA_PATH_MAX];
	char		resolved[KA_PATH_MAX];

	if (snprintf(full, sizeof(full), "%s/%s", directory, name) >= (int) sizeof(full))
		return NULL;
	if (ka_path_resolve(root, full, resolved, sizeof(resolved)) < 0)
		return ka_strdup(facts->arena, full);
	return ka_strdup(facts->arena, resolved);
}

/* What the files say about one knob so far. */
typedef struct KnobState
{
	bool		named;			/* set by its name */
	bool		excluded;		/* "-name" */
	bool		matched;		/* set by a pattern */
	bool		doubtful;		/* an unreadable file came after the last setting */
	int64_t		value;			/* KA_UNKNOWN: not a number, the kernel will refuse it */
	const char *file;
} KnobState;

static void
apply_setting(KnobState *knob, const KaSysctlLine *setting, bool systemd, const char *file)
{
	if (!setting->assigns)
	{
		knob->excluded = true;
		if (systemd && !setting->pattern)
			knob->named = false;	/* it takes the place of the setting */
		return;
	}
	if (setting->pattern && knob->named)
		return;
	knob->named |= !setting->pattern;
	knob->matched |= setting->pattern;
	knob->doubtful = false;
	knob->file = file;
	if (!ka_parse_sysctl_value(setting->value, &knob->value))
		knob->value = KA_UNKNOWN;
}

static void
apply_text(KnobState *knobs, KaSpan text, bool systemd, const char *file)
{
	while (text.length > 0)
	{
		KaSysctlLine setting;

		if (!ka_parse_sysctl_line(ka_next_line(&text), &setting))
			continue;
		for (int i = 0; i < KA_NSYSCTLS; i++)
		{
			char		key[256];
			size_t		n = 0;

			for (const char *c = ka_sysctl_info[i].name; *c && n + 1 < sizeof(key); c++)
				key[n++] = *c == '.' ? '/' : *c;
			key[n] = '\0';
			if (setting.pattern ? fnmatch(setting.key, key, FNM_PATHNAME) == 0 :
				strcmp(setting.key, key) == 0)
				apply_setting(&knobs[i], &setting, systemd, file);
		}
	}
}

static void
apply_file(KaFacts *facts, KaPath *path, KnobState *knobs, bool systemd, const char *directory, const char *name)
{
	int			error = ka_path_readf(path, "%s/%s", directory, name);

	if (error == -EACCES || error == -EPERM)
	{
		for (int i = 0; i < KA_NSYSCTLS; i++)
			knobs[i].doubtful = true;
	}
	if (error == 0)
		apply_text(knobs, ka_path_text(path), systemd,
				   real_file_name(facts, path->root, directory, name));
}

static void
collect_sysctl_files(KaFacts *facts, KaPath *path, const KaBootArguments *arguments)
{
	KnobState	knobs[KA_NSYSCTLS];
	BootFile   *files = NULL;
	size_t		nfiles;
	bool		systemd = false;
	bool		any;

	for (int i = 0; i < KA_NSYSCTLS; i++)
	{
		knobs[i] = (KnobState) {.value = arguments->sysctl[i]};
		if (arguments->sysctl[i] != KA_UNKNOWN)
			knobs[i].file = CMDLINE;
	}
	for (size_t i = 0; i < KA_LENGTH(systemd_traces); i++)
		systemd |= ka_path_exists(path->root, systemd_traces[i]);

	nfiles = list_files(facts->arena, path->root, sysctl_directories, KA_LENGTH(sysctl_directories), &files, &any);
	for (size_t i = 0; i < nfiles; i++)
		apply_file(facts, path, knobs, systemd, files[i].directory, files[i].name);
	if (!systemd && ka_path_exists(path->root, "/etc/sysctl.conf"))
	{
		any = true;
		apply_file(facts, path, knobs, systemd, "/etc", "sysctl.conf");
	}

	for (int i = 0; i < KA_NSYSCTLS; i++)
	{
		KnobState  *knob = &knobs[i];

		if ((!any && knob->file == NULL) || knob->doubtful)
			continue;
		facts->boot[i].known = true;
		if (knob->named || (knob->matched && !knob->excluded))
		{
			facts->boot[i].value = knob->value;
			facts->boot[i].file = knob->file;
		}
		else
		{
			facts->boot[i].value = arguments->sysctl[i];
			facts->boot[i].file = arguments->sysctl[i] != KA_UNKNOWN ? CMDLINE : NULL;
		}
	}
}

static void
collect_thp_files(KaFacts *facts, KaPath *path, const KaBootArguments *arguments, bool cmdline_read)
{
	BootFile   *files = NULL;
	size_t		nfiles;
	bool		any;
	bool		doubtful = false;
	bool		written = false;	/* by a line that suppresses later ones */
	char		value[16] = "";
	const char *file = NULL;

	nfiles = list_files(facts->arena, path->root, tmpfiles_directories, KA_LENGTH(tmpfiles_directories), &files, &any);
	for (size_t i = 0; i < nfiles; i++)
	{
		KaSpan		text;
		int			error = ka_path_readf(path, "%s/%s", files[i].directory, files[i].name);

		doubtful |= error == -EACCES || error == -EPERM;
		if (error < 0)
			continue;
		text = ka_path_text(path);
		while (text.length > 0)
		{
			KaWriteLine write;

			if (!ka_parse_write_line(ka_next_line(&text), &write) ||
				fnmatch(write.path, THP_ENABLED, FNM_PATHNAME) != 0 ||
				(written && !write.append) ||
				write.argument.length >= sizeof(value))
				continue;
			written = true;
			memcpy(value, write.argument.at, write.argument.length);
			value[write.argument.length] = '\0';
			file = real_file_name(facts, path->root, files[i].directory, files[i].name);
		}
	}

	if (doubtful || !(any || cmdline_read))
		return;
	facts->boot_thp_known = true;

	/* The kernel refuses another word, and keeps what it had. */
	if (file && ka_set_text(facts, KA_BOOT_THP_VALUE, value))
		ka_set_text(facts, KA_BOOT_THP_FILE, file);
	else if (arguments->thp[0] && ka_set_text(facts, KA_BOOT_THP_VALUE, arguments->thp))
		ka_set_text(facts, KA_BOOT_THP_FILE, CMDLINE);
}

static void
collect_boot_pools(KaFacts *facts, const KaBootArguments *arguments)
{
	int64_t		default_size = arguments->default_size;

	if (default_size == KA_UNKNOWN)
		default_size = ka_int(facts, KA_HP_DEFAULT_SIZE);
	for (int i = 0; i < arguments->npools; i++)
	{
		KaBootPool	pool = arguments->pools[i];
		KaBootPool *pools;

		if (pool.size_bytes == KA_UNKNOWN)
			pool.size_bytes = default_size;
		if (pool.size_bytes == KA_UNKNOWN)
			continue;
		pools = ka_append(facts->arena, facts->boot_pools, &facts->nboot_pools, sizeof(KaBootPool));
		if (pools == NULL)
			return;
		facts->boot_pools = pools;
		pools[facts->nboot_pools - 1] = pool;
	}
}

void
ka_mark_asked(KaFacts *facts)
{
	int64_t		default_size = ka_int(facts, KA_HP_DEFAULT_SIZE);
	const KaBootSysctl *sysctl = &facts->boot[KA_KNOB_NR_HUGEPAGES];

	for (size_t i = 0; i < facts->npools; i++)
	{
		KaPool	   *pool = &facts->pools[i];
		int64_t		asked = KA_UNKNOWN;

		for (size_t j = 0; j < facts->nboot_pools; j++)
		{
			if (facts->boot_pools[j].size_bytes == pool->size_bytes)
				asked = facts->boot_pools[j].pages;
		}
		if (pool->size_bytes == default_size && sysctl->known && sysctl->value != KA_UNKNOWN)
			asked = sysctl->value;
		if (pool->total != KA_UNKNOWN && asked > pool->total)
			pool->asked = asked;
	}
}

bool
ka_collect_boot(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	KaBootArguments arguments;
	bool		cmdline_read;
	bool		collected;

	ka_path_init(&path, source->root);
	cmdline_read = ka_path_read(&path, CMDLINE) == 0;
	ka_parse_cmdline(ka_path_text(&path), &arguments);
	collect_boot_pools(facts, &arguments);
	if (!ka_yes(facts, KA_KERNEL_CONTAINER))
	{
		collect_sysctl_files(facts, &path, &arguments);
		collect_thp_files(facts, &path, &arguments, cmdline_read);
	}
	ka_mark_asked(facts);
	collected = ka_collected(&path, facts);
	ka_path_free(&path);
	return collected;
}
