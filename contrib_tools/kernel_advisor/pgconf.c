/*
 * pgconf.c: the server's side of the facts, from its data directory.
 *
 * Settings come from the server's own program (`postgres -C NAME`), which reads
 * the same files with the same options as the last start.  Sizes that only a
 * start computes can be asked while the server is down; while it runs, its
 * mapping tells them exactly.
 *
 * Invariants: with a root directory nothing is started and no process is looked
 * at.  Programs run as the owner of the data directory, and only when the
 * caller is that owner or root (child.c): the data directory names programs and
 * options, so whoever can write there must gain nothing by it.
 *
 * Locks: none.  `postgres -C` of a computed size takes the server's own lock
 * file for the moment.
 */
#define _GNU_SOURCE 1

#include "pgconf.h"
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL_FILE 65536

/* Units of numbers as `postgres -C` prints them, in bytes. */
#define KILO INT64_C(1024)
#define MEGA (KILO * KILO)
#define BLOCKS INT64_C(0)		/* block_size of this server */
#define ONE INT64_C(1)

typedef struct Setting
{
	const char *name;
	KaFact		fact;
	int64_t		unit;
	int			since;			/* the major version that brought it */
	bool		computed;		/* at start: can be asked only of a server that is down */
} Setting;

static const Setting settings[] = {
	{"server_version_num", KA_PG_VERSION_NUM, ONE, 0, false},
	{"huge_pages", KA_PG_HUGE_PAGES, ONE, 0, false},
	{"huge_page_size", KA_PG_HUGE_PAGE_SIZE, KILO, 14, false},
	{"shared_buffers", KA_PG_SHARED_BUFFERS, BLOCKS, 0, false},
	{"shared_memory_type", KA_PG_SHARED_MEMORY_TYPE, ONE, 12, false},
	{"max_connections", KA_PG_MAX_CONNECTIONS, ONE, 0, false},
	{"checkpoint_timeout", KA_PG_CHECKPOINT_TIMEOUT, ONE, 0, false},
	{"max_wal_size", KA_PG_MAX_WAL_SIZE, MEGA, 10, false},
	{"checkpoint_completion_target", KA_PG_COMPLETION_TARGET, ONE, 0, false},
	{"checkpoint_flush_after", KA_PG_FLUSH_AFTER, BLOCKS, 0, false},
	{"wal_init_zero", KA_PG_WAL_INIT_ZERO, ONE, 12, false},
	{"wal_recycle", KA_PG_WAL_RECYCLE, ONE, 12, false},
	{"log_checkpoints", KA_PG_LOG_CHECKPOINTS, ONE, 0, false},
	{"io_method", KA_PG_IO_METHOD, ONE, 18, false},
	{"shared_memory_size", KA_PG_SHARED_MEMORY, MEGA, 15, true},
	{"shared_memory_size_in_huge_pages", KA_PG_SHARED_MEMORY_HUGE_PAGES, ONE, 15, true},
	{"wal_segment_size", KA_PG_WAL_SEGMENT, ONE, 15, true},
};

static void
note(KaCluster *cluster, const char *text)
{
	size_t		count = cluster->nnotes;
	const char **notes = ka_append(cluster->arena, cluster->notes, &count, sizeof(*notes));

	if (notes == NULL || text == NULL)
		return;
	cluster->notes = notes;
	cluster->nnotes = count;
	notes[count - 1] = text;
}

char *
ka_read_tail(KaArena *arena, const char *path, size_t max)
{
	int			fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	char	   *text;
	size_t		length = 0;
	ssize_t		n = 0;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) != 0 || S_ISDIR(status.st_mode))
	{
		close(fd);
		errno = EISDIR;
		return NULL;
	}
	if (status.st_size > (off_t) max)
		(void) lseek(fd, status.st_size - (off_t) max, SEEK_SET);

	text = ka_alloc(arena, max + 1);
	while (text != NULL && length < max)
	{
		n = read(fd, text + length, max - length);
		if (n > 0)
			length += (size_t) n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	close(fd);
	if (n < 0)
		return NULL;
	for (size_t i = 0; i < length; i++)
	{
		if (text[i] == '\0')	/* /proc/PID/cmdline, or garbage */
			text[i] = ' ';
	}
	return text;
}

static char *
read_below(KaCluster *cluster, const char *name)
{
	const char *path = ka_printf(cluster->arena, "%s/%s", cluster->path, name);

	return path ? ka_read_tail(cluster->arena, path, SMALL_FILE) : NULL;
}

/*
 * Opening
 */

/* What stands behind an errno, for the person who has to do something. */
static const char *
unreadable(KaCluster *cluster, const char *path, int error)
{
	KaArena    *arena = cluster->arena;

	if (error == EACCES || error == EPERM)
		return ka_printf(arena, "%s: %s; run this as root or as the owner of the data directory",
						 path, strerror(error));
	return ka_printf(arena, "%s: %s; -D takes the server's data directory", path, strerror(error));
}

/* A postmaster of this data directory, not another process that got its number. */
static bool
is_postmaster(KaCluster *cluster, pid_t pid)
{
	char		link[64];
	char		cwd[PATH_MAX];
	ssize_t		length;

	if (pid <= 0 || (kill(pid, 0) != 0 && errno != EPERM))
		return false;
	snprintf(link, sizeof(link), "/proc/%d/cwd", (int) pid);
	length = readlink(link, cwd, sizeof(cwd) - 1);
	if (length >= 0)
	{
		cwd[length] = '\0';
		return strcmp(cwd, cluster->path) == 0;
	}
	if (errno != EACCES && errno != EPERM)
		return false;

	/* Another user's process: its name must do. */
	snprintf(link, sizeof(link), "/proc/%d/comm", (int) pid);
	{
		const char *name = ka_read_tail(cluster->arena, link, 64);

		return name != NULL && (strncmp(name, "postgres", 8) == 0 || strncmp(name, "postmaster", 10) == 0);
	}
}

static void
add_option(KaCluster *cluster, const char *option)
{
	size_t		count = cluster->noptions;
	const char **options = ka_append(cluster->arena, cluster->options, &count, sizeof(*options));

	if (options == NULL)
		return;
	options[count - 1] = option;
	cluster->options = options;
	cluster->noptions = count;
}

/*
 * postmaster.opts: the program, then each argument in quotes, nothing escaped:
 *	/usr/lib/postgresql/17/bin/postgres "-D" "/data" "-c" "config_file=/etc/..."
 * Returns the program.
 */
static const char *
read_options(KaCluster *cluster)
{
	char	   *text = read_below(cluster, "postmaster.opts");
	char	   *p;

	if (text == NULL)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	p = strstr(text, " \"");
	if (p != NULL)
		*p++ = '\0';
	while (p != NULL && *p == '"')
	{
		char	   *end = strstr(p + 1, "\" \"");

		if (end == NULL && (end = strrchr(p + 1, '"')) == NULL)
			break;
		*end = '\0';
		add_option(cluster, p + 1);
		p = end[1] == ' ' ? end + 2 : NULL;
	}
	return text;
}

bool
ka_cluster_open(KaCluster *cluster, const char **problem)
{
	KaArena    *arena = cluster->arena;
	char		real[PATH_MAX];
	struct stat status;
	char	   *text;

	cluster->path = ka_printf(arena, "%s%s", cluster->root, cluster->data_directory);
	if (cluster->path == NULL)
		return false;
	if (cluster->root[0] == '\0')
	{
		if (realpath(cluster->path, real) == NULL)
		{
			*problem = unreadable(cluster, cluster->path, errno);
			return false;
		}
		cluster->path = cluster->data_directory = ka_strdup(arena, real);
	}
	if (cluster->path == NULL)
		return false;

	text = read_below(cluster, "PG_VERSION");
	if (text == NULL)
	{
		int			error = errno;
		const char *conf = ka_printf(arena, "%s/postgresql.conf", cluster->path);

		if (error == ENOENT && conf != NULL && access(conf, F_OK) == 0)
			*problem = ka_printf(arena, "%s holds the configuration only; -D takes the data directory, "
								 "which data_directory in %s names", cluster->path, conf);
		else if (error == ENOENT)
			*problem = ka_printf(arena, "%s is not a data directory: it has no PG_VERSION; "
								 "-D takes the server's data directory", cluster->path);
		else
			*problem = unreadable(cluster, cluster->path, error);
		return false;
	}
	text[strcspn(text, " \t\r\n")] = '\0';
	cluster->version = text;
	if (atoi(text) <= 0 || stat(cluster->path, &status) != 0)
	{
		*problem = ka_printf(arena, "%s/PG_VERSION is not a version of PostgreSQL", cluster->path);
		return false;
	}
	cluster->owner = status.st_uid;

	if (cluster->root[0] == '\0')
	{
		text = read_below(cluster, "postmaster.pid");
		if (text != NULL)
		{
			pid_t		pid = (pid_t) atoi(text);

			if (is_postmaster(cluster, pid))
				cluster->pid = pid;
		}
	}
	return true;
}

/*
 * Its command line
 */

/* Debian keeps the files of /var/lib/postgresql/17/main in /etc/postgresql/17/main. */
static const char *
debian_config(KaCluster *cluster)
{
	const char *own = ka_printf(cluster->arena, "%s/postgresql.conf", cluster->path);
	const char *name = strrchr(cluster->path, '/');
	const char *config;

	if (own == NULL || access(own, F_OK) == 0)
		return NULL;
	config = ka_printf(cluster->arena, "/etc/postgresql/%s%s/postgresql.conf", cluster->version, name);
	return config != NULL && access(config, F_OK) == 0 ? config : NULL;
}

static bool
names_config_file(const char *option)
{
	return strstr(option, "config_file=") != NULL || strstr(option, "config-file=") != NULL;
}

/*
 * Of the command line of an earlier start only what says where things are: the
 * next start may come with other settings, or none.
 */
static void
forget_settings(KaCluster *cluster)
{
	const char **options = cluster->options;
	size_t		n = cluster->noptions;

	cluster->options = NULL;
	cluster->noptions = 0;
	for (size_t i = 0; i < n; i++)
	{
		bool		more = i + 1 < n;

		if (strcmp(options[i], "-D") == 0 && more)
		{
			add_option(cluster, options[i]);
			add_option(cluster, options[++i]);
		}
		else if (strcmp(options[i], "-c") == 0 && more)
		{
			if (names_config_file(options[++i]))
			{
				add_option(cluster, "-c");
				add_option(cluster, options[i]);
			}
		}
		else if (names_config_file(options[i]))
			add_option(cluster, options[i]);
	}
}

/* The command line of the last start, made fit for another directory and another configuration file. */
static void
complete_options(KaCluster *cluster)
{
	bool		has_directory = false,
				has_config = false;
	const char *config = cluster->config_file;

	if (cluster->pid == 0)
		forget_settings(cluster);
	for (size_t i = 0; i < cluster->noptions; i++)
	{
		const char *option = cluster->options[i];

		if (strcmp(option, "-D") == 0 && i + 1 < cluster->noptions)
		{
			has_directory = true;
			if (cluster->options[i + 1][0] != '/')
				cluster->options[i + 1] = cluster->path;	/* it was relative to somewhere else */
		}
		has_config = has_config || names_config_file(option);
	}
	if (!has_directory)
	{
		add_option(cluster, "-D");
		add_option(cluster, cluster->path);
	}
	if (config == NULL && !has_config)
		config = debian_config(cluster);
	if (config != NULL)
	{
		add_option(cluster, "-c");
		add_option(cluster, ka_printf(cluster->arena, "config_file=%s", config));
	}
}

/*
 * Settings
 */

static bool
ask(KaCluster *cluster, const char *name, KaChildResult *result)
{
	const char **argv = ka_alloc(cluster->arena, (cluster->noptions + 6) * sizeof(*argv));
	size_t		n = 0;

	*result = (KaChildResult) {.status = -1};
	if (argv == NULL)
		return false;
	argv[n++] = cluster->postgres;
	for (size_t i = 0; i < cluster->noptions; i++)
		argv[n++] = cluster->options[i];
	argv[n++] = "-c";
	argv[n++] = "log_line_prefix="; /* messages are repeated to a person */
	argv[n++] = "-C";
	argv[n++] = name;
	return ka_child_run(cluster->arena, argv, cluster->owner, KA_CHILD_SECONDS, result);
}

const char *
ka_cluster_setting(KaCluster *cluster, const char *name)
{
	KaChildResult result;

	if (cluster->postgres == NULL || !ask(cluster, name, &result) || result.status != 0)
		return NULL;
	return result.output;
}

static bool
as_number(const char *text, double *number)
{
	char	   *end;

	*number = strtod(text, &end);
	return end != text && *end == '\0';
}

static void
set_from_text(KaFacts *facts, const Setting *setting, const char *text, int64_t block_size)
{
	double		number;
	int64_t		unit = setting->unit == BLOCKS ? block_size : setting->unit;

	switch (ka_fact_info[setting->fact].type)
	{
		case KA_BOOL:
			if (strcmp(text, "on") == 0 || strcmp(text, "off") == 0)
				ka_set_bool(facts, setting->fact, strcmp(text, "on") == 0);
			break;
		case KA_INT:
			if (as_number(text, &number) && number >= 0 && number <= 9e15 / (double) unit)
				ka_set_int(facts, setting->fact, (int64_t) number * unit);
			break;
		case KA_REAL:
			if (as_number(text, &number))
				ka_set_real(facts, setting->fact, number);
			break;
		default:
			ka_set_text(facts, setting->fact, text);
			break;
	}
}

/* RLIMIT_MEMLOCK of the server; before it is started, of the user who would start it. */
static void
set_memlock(KaCluster *cluster, KaFacts *facts)
{
	struct rlimit limit;

	if (cluster->pid != 0)
	{
		const char *path = ka_printf(cluster->arena, "/proc/%d/limits", (int) cluster->pid);
		const char *text = path ? ka_read_tail(cluster->arena, path, SMALL_FILE) : NULL;
		const char *line = text ? strstr(text, "Max locked memory") : NULL;
		long long	soft;

		if (line != NULL && sscanf(line, "Max locked memory %lld", &soft) == 1)
			ka_set_int(facts, KA_PG_MEMLOCK_LIMIT, soft);
	}
	else if (geteuid() == cluster->owner && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
			 limit.rlim_cur != RLIM_INFINITY)
		ka_set_int(facts, KA_PG_MEMLOCK_LIMIT, (int64_t) limit.rlim_cur);
}

static void
set_mapping(KaCluster *cluster, KaFacts *facts)
{
	KaSource	source = {.root = "",.pid = cluster->pid};
	KaMapping	mapping;

	if (!ka_find_mapping(&source, 0, &mapping) || mapping.bytes == KA_UNKNOWN)
	{
		note(cluster, "The size of the server's shared memory is not known: /proc/PID/maps of the server "
			 "can be read by root and by its owner.");
		return;
	}
	ka_set_int(facts, KA_PG_SHARED_MEMORY, mapping.bytes);
	ka_set_text(facts, KA_PG_HUGE_PAGES_STATUS, mapping.huge ? "on" : "off");
	ka_set_text(facts, KA_PG_HUGE_PAGES_STATUS_SOURCE, "mapping");
}

/* "17" is 170000, "9.6" is 90600: the first release of that version. */
static void
set_version(KaCluster *cluster, KaFacts *facts)
{
	int			major = 0,
				minor = 0;

	if (sscanf(cluster->version, "%d.%d", &major, &minor) >= 1)
		ka_set_int(facts, KA_PG_VERSION_NUM, major * 10000 + (major < 10 ? minor * 100 : 0));
}

static void
set_settings(KaCluster *cluster, KaFacts *facts)
{
	KaArena    *arena = cluster->arena;
	int			major = atoi(cluster->version);
	const char *last_program;
	const char *block_size;
	KaChildResult result;

	if (cluster->owner == 0 || (geteuid() != 0 && geteuid() != cluster->owner))
	{
		note(cluster, ka_printf(arena, "The server's settings are not known: its program runs only as the owner "
								"of %s, %s.", cluster->path,
								cluster->owner == 0 ? "and never as root, who owns it" : "so run this as root or as that user"));
		return;
	}
	last_program = read_options(cluster);
	complete_options(cluster);
	if (!ka_find_server(cluster, last_program))
	{
		note(cluster, ka_printf(arena, "The server's settings are not known: no program postgres of version %s was found%s%s; "
								"--bindir names its directory.", cluster->version,
								cluster->bindir ? " in " : "", cluster->bindir ? cluster->bindir : ""));
		return;
	}

	/* The first one shows whether the configuration can be read at all. */
	if (ask(cluster, "block_size", &result) && result.status != 0)
	{
		note(cluster, ka_printf(arena, "The server's settings are not known: %s -C fails: %s.", cluster->postgres,
								result.problem ? result.problem : "no message"));
		return;
	}
	block_size = result.output;

	for (size_t i = 0; i < KA_LENGTH(settings); i++)
	{
		const Setting *setting = &settings[i];
		const char *text;

		if (major < setting->since || (setting->computed && cluster->pid != 0))
			continue;
		text = ka_cluster_setting(cluster, setting->name);
		if (text != NULL)
			set_from_text(facts, setting, text, block_size ? atoi(block_size) : 8192);
	}
}

bool
ka_cluster_facts(KaCluster *cluster, KaFacts *facts)
{
	set_version(cluster, facts);
	if (cluster->root[0] != '\0')
	{
		note(cluster, "The server's settings are not known: with --root nothing is started.");
		return !cluster->arena->failed;
	}
	set_settings(cluster, facts);
	set_memlock(cluster, facts);
	if (cluster->pid != 0)
		set_mapping(cluster, facts);
	return !cluster->arena->failed;
}
