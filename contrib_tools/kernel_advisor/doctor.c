/*
 * doctor.c: why a server does not start, or was killed.
 *
 * Finds the server's own words, says what they mean, and turns them into facts;
 * what is to be done about it is the rules' affair, as everywhere.
 *
 * Invariants: the newest failure counts, and one that was followed by a
 * successful start does not; a log is read from its end, LOG_TAIL bytes at most.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "doctor.h"
#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_TAIL (1024 * 1024)

/* Rules that speak about each kind of failure; a name that ends in a dot is a family. */
static const char *const about_mapping[] = {
	"huge_pages.pool_short", "huge_pages.page_size", "huge_pages.cgroup_limit", "huge_pages.not_cause",
	"huge_pages.numa", "memory.limit", "memory.overcommit", "memory.exhausted", "boot.persist", "platform.", NULL
};
static const char *const about_segments[] = {
	"huge_pages.not_cause", "huge_pages.page_size", "memory.limit", "memory.overcommit", "memory.exhausted",
	"platform.", NULL
};
static const char *const about_rings[] = {"huge_pages.not_cause", "platform.", NULL};
static const char *const about_bus_errors[] = {
	"huge_pages.cgroup_limit", "huge_pages.pool_short", "huge_pages.numa", "huge_pages.page_size",
	"huge_pages.not_cause", "memory.limit", "platform.", NULL
};
static const char *const about_kills[] = {
	"memory.", "huge_pages.pool_wasted", "huge_pages.not_cause", "platform.", NULL
};

typedef struct Kind
{
	const char *call;			/* of a request that failed, or NULL */
	const char *signal;
	const char *const *rules;
	const char *text;			/* "%s": what was asked for, and the error */
} Kind;

static const Kind kinds[] = {
	{"mmap", NULL, about_mapping,
	"The server does not start: the kernel refused its main shared memory segment%s."},
	{"shmget", NULL, about_segments,
	"The server does not start: the kernel refused a System V shared memory segment%s."},
	{"dsm", NULL, about_segments,
	"The kernel refused a dynamic shared memory segment%s. Parallel queries use such segments; "
	"they live in /dev/shm or in files, never in the pool of huge pages."},
	{"io_uring", NULL, about_rings,
	"The server could not set up its io_uring queues%s. These are charged to the limit of locked memory "
	"(ulimit -l, LimitMEMLOCK= of the service) on older kernels, and have nothing to do with shared memory."},
	{NULL, "SIGBUS", about_bus_errors,
	"A server process was killed by SIGBUS%s: memory that had been mapped could not be provided when it was touched. "
	"A start that succeeded proves nothing here: huge pages are found, and limits applied, at the first touch."},
	{NULL, "SIGKILL", about_kills,
	"A server process was killed by SIGKILL%s: most often the kernel's out-of-memory killer; "
	"dmesg shows whether it was."},
	{NULL, NULL, about_mapping, NULL}
};

static bool
same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* The last kind, of no failure, is also that of signals which tell nothing about memory. */
static const Kind *
find_kind(const KaErrorText *error)
{
	for (size_t i = 0; i + 1 < KA_LENGTH(kinds); i++)
	{
		if (same(kinds[i].call, error->call) &&
			(error->call != NULL || same(kinds[i].signal, error->signal)))
			return &kinds[i];
	}
	return &kinds[KA_LENGTH(kinds) - 1];
}

bool
ka_is_relevant(const KaErrorText *error, const KaAdvice *row)
{
	const char *rule = row->rule;

	/* What boot will set matters here for the pools only. */
	if (strcmp(rule, "boot.persist") == 0 && (row->subject == NULL || strstr(row->subject, "hugepages") == NULL))
		return false;

	for (const char *const *r = find_kind(error)->rules; *r != NULL; r++)
	{
		size_t		length = strlen(*r);

		if ((*r)[length - 1] == '.' ? strncmp(rule, *r, length) == 0 : strcmp(rule, *r) == 0)
			return true;
	}
	return false;
}

/*
 * Logs
 */

typedef struct LogFile
{
	const char *path;
	time_t		changed;
} LogFile;

/* Remembers a file if it is a regular one. */
static void
add_log(KaArena *arena, LogFile **logs, size_t *count, const char *path)
{
	struct stat status;
	LogFile    *grown;

	if (path == NULL || stat(path, &status) != 0 || !S_ISREG(status.st_mode))
		return;
	grown = ka_append(arena, *logs, count, sizeof(LogFile));
	if (grown == NULL)
		return;
	*logs = grown;
	grown[*count - 1] = (LogFile) {.path = path,.changed = status.st_mtime};
}

static int
newest_first(const void *a, const void *b)
{
	time_t		left = ((const LogFile *) a)->changed,
				right = ((const LogFile *) b)->changed;

	return (left < right) - (left > right);
}

/* The newest file of the collector's directory. */
static const char *
newest_in(KaArena *arena, const char *directory)
{
	DIR		   *dir = directory ? opendir(directory) : NULL;
	struct dirent *entry;
	const char *newest = NULL;
	time_t		changed = 0;

	if (dir == NULL)
		return NULL;
	while ((entry = readdir(dir)) != NULL)
	{
		struct stat status;

		if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &status, 0) != 0 ||
			!S_ISREG(status.st_mode) || (newest != NULL && status.st_mtime <= changed))
			continue;
		newest = ka_printf(arena, "%s/%s", directory, entry->d_name);
		changed = status.st_mtime;
	}
	closedir(dir);
	return newest;
}

/*
 * Where a server may have logged, newest first.  The collector's files lack
 * what a start says before the collector runs, above all a failed mapping: that
 * goes to stderr, which Debian keeps in /var/log/postgresql.
 */
static size_t
find_logs(KaCluster *cluster, LogFile **logs)
{
	KaArena    *arena = cluster->arena;
	const char *directory = ka_cluster_setting(cluster, "log_directory");
	const char *parent = strrchr(cluster->path, '/');
	size_t		count = 0;

	*logs = NULL;
	if (directory == NULL)
		directory = "log";
	if (directory[0] != '/')
		directory = ka_printf(arena, "%s/%s", cluster->path, directory);
	add_log(arena, logs, &count, newest_in(arena, directory));

	if (cluster->pid != 0)
	{
		const char *link = ka_printf(arena, "/proc/%d/fd/2", (int) cluster->pid);
		char		target[PATH_MAX];
		ssize_t		length = link ? readlink(link, target, sizeof(target) - 1) : -1;

		if (length > 0)
		{
			target[length] = '\0';
			add_log(arena, logs, &count, ka_strdup(arena, target));
		}
	}
	if (parent != NULL)
		add_log(arena, logs, &count, ka_printf(arena, "%s/var/log/postgresql/postgresql-%s-%s.log",
											   cluster->root, cluster->version, parent + 1));
	if (count > 1)
		qsort(*logs, count, sizeof(LogFile), newest_first);
	return count;
}

/*
 * The diagnosis
 */

static const char *
details(KaArena *arena, const KaErrorText *error, double after_s)
{
	const char *text = "";

	if (error->bytes != KA_UNKNOWN)
		text = ka_printf(arena, " of %s", ka_size_text(arena, error->bytes));
	if (error->error != NULL)
		text = ka_printf(arena, "%s with %s", text ? text : "", error->error);
	if (after_s >= 0)
		text = ka_printf(arena, "%s, %.0f s after it was ready", text ? text : "", after_s);
	return text ? text : "";
}

static void
set_last_error(KaFacts *facts, const KaErrorText *error, const char *phase, double after_s)
{
	ka_set_text(facts, KA_ERR_PHASE, phase);
	ka_set_text(facts, KA_ERR_CALL, error->call);
	if (error->bytes != KA_UNKNOWN)
		ka_set_int(facts, KA_ERR_BYTES, error->bytes);
	ka_set_text(facts, KA_ERR_ERRNO, error->error);
	ka_set_text(facts, KA_ERR_SIGNAL, error->signal);
	if (after_s >= 0)
		ka_set_real(facts, KA_ERR_AFTER, after_s);
}

/* A failure and its phase; NULL phase: not known. */
static void
describe(KaCluster *cluster, KaFacts *facts, const KaErrorText *error, const char *phase, double after_s,
		 KaDiagnosis *diagnosis)
{
	const Kind *kind = find_kind(error);

	diagnosis->error = *error;
	set_last_error(facts, error, phase, after_s);
	if (kind->text == NULL)
	{
		diagnosis->text = ka_printf(cluster->arena, "A server process was killed by %s, which is not a sign of "
									"a lack of memory: it is a fault in the server or in an extension.",
									error->signal);
		return;
	}

	{
		/* The formats above have one %s each. */
		const char *insert = strstr(kind->text, "%s");

		diagnosis->text = ka_printf(cluster->arena, "%.*s%s%s", (int) (insert - kind->text), kind->text,
									details(cluster->arena, error, after_s), insert + 2);
	}
}

static void
nothing_found(KaCluster *cluster, const KaLogReport *report, const char *path, size_t nlogs, KaDiagnosis *diagnosis)
{
	KaArena    *arena = cluster->arena;

	if (cluster->pid != 0)
		diagnosis->text = ka_printf(arena, "The server is running (PID %d)%s.", (int) cluster->pid,
									nlogs > 0 ? ", and its log tells of no memory failure" : "; no log of it was found");
	else if (report != NULL && report->fatal != NULL)
	{
		diagnosis->text = "The last start failed, but not for want of memory.";
		diagnosis->message = report->fatal;
		diagnosis->origin = path;
	}
	else if (nlogs > 0)
		diagnosis->text = "The server is not running, and its log does not tell why. A failed mapping "
			"is printed before the log collector starts: look at the output of the start itself "
			"(journalctl -u of the service, or pg_ctl -l) and pass its message with --error.";
	else
		diagnosis->text = "The server is not running, and no log was found: pass the message with --error "
			"or the file with --log.";
}

bool
ka_diagnose(KaCluster *cluster, KaFacts *facts, const char *message, const char *log_file,
			KaDiagnosis *diagnosis, const char **problem)
{
	KaArena    *arena = cluster->arena;
	LogFile    *logs = NULL;
	LogFile		named = {.path = log_file};
	size_t		nlogs = 1;
	KaLogReport report;
	KaLogReport *fatal = NULL;
	const char *fatal_path = NULL;
	const char *earlier = NULL,
			   *earlier_path = NULL;

	*diagnosis = (KaDiagnosis) {.error = {.bytes = KA_UNKNOWN}};

	if (message != NULL)
	{
		KaErrorText error;

		diagnosis->message = message;
		if (ka_error_parse(message, &error))
			describe(cluster, facts, &error, ka_error_phase(&error), -1, diagnosis);
		else
			diagnosis->text = "The message does not tell of a memory request that failed, nor of a signal.";
		return !arena->failed;
	}

	if (log_file != NULL)
		logs = &named;
	else
		nlogs = find_logs(cluster, &logs);

	for (size_t i = 0; i < nlogs; i++)
	{
		const char *log = ka_read_tail(arena, logs[i].path, LOG_TAIL);

		if (log == NULL)
		{
			if (log_file == NULL)
				continue;
			*problem = ka_printf(arena, "%s: %s", log_file, strerror(errno));
			return false;
		}
		if (!ka_log_parse(arena, log, &report))
			return false;
		if (report.message != NULL && report.recovered && cluster->pid == 0)
		{
			/* That is over: it is not why the server is not running now. */
			earlier = earlier ? earlier : report.message;
			earlier_path = earlier_path ? earlier_path : logs[i].path;
			continue;
		}
		if (report.message != NULL)
		{
			diagnosis->message = report.message;
			diagnosis->origin = logs[i].path;
			describe(cluster, facts, &report.error, report.phase, report.after_s, diagnosis);
			return !arena->failed;
		}
		if (report.fatal != NULL && fatal == NULL)
		{
			fatal = ka_alloc(arena, sizeof(*fatal));
			if (fatal == NULL)
				return false;
			*fatal = report;
			fatal_path = logs[i].path;
		}
	}
	nothing_found(cluster, fatal, fatal_path, nlogs, diagnosis);
	if (diagnosis->message == NULL && earlier != NULL)
	{
		diagnosis->text = ka_printf(arena, "%s Before that, a process was killed, and the server went on.",
									diagnosis->text);
		diagnosis->message = earlier;
		diagnosis->origin = earlier_path;
	}
	return !arena->failed;
}
