/*
 * main.c: starting kernel_advisord.
 *
 * What needs a privilege or a look-up comes first: bounds, the kernel's files,
 * directories, the socket.  Then the privileges go.  Everything that reads what
 * an earlier run left behind (the journal), and every client, comes after.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "privileges.h"
#include "server.h"
#include "setup.h"

#define DEFAULT_GROUP "postgres"

/* Exit codes: sysexits.h's EX_CONFIG keeps systemd from restarting in vain. */
#define EXIT_CONFIG 78

typedef struct Options
{
	const char *root;			/* "" for this machine */
	const char *socket;			/* NULL: from systemd */
	const char *group;
	const char *bounds;
	int			idle_s;
	bool		check;			/* only read the bounds file */
} Options;

static const KaAllowedPath allowed_paths[] = {
	{KA_STATE_DIRECTORY, KA_ACCESS_REPLACE, true},
	{KA_SYSCTL_DIRECTORY, KA_ACCESS_REPLACE, true},
	{KA_TMPFILES_DIRECTORY, KA_ACCESS_REPLACE, true},
	/* What else decides at boot, read by ka_collect_boot. */
	{"/etc/sysctl.conf", KA_ACCESS_READ, false},
	{"/run/sysctl.d", KA_ACCESS_READ, true},
	{"/usr/local/lib/sysctl.d", KA_ACCESS_READ, true},
	{"/usr/lib/sysctl.d", KA_ACCESS_READ, true},
	{"/lib/sysctl.d", KA_ACCESS_READ, true},
	{"/run/tmpfiles.d", KA_ACCESS_READ, true},
	{"/usr/local/lib/tmpfiles.d", KA_ACCESS_READ, true},
	{"/usr/lib/tmpfiles.d", KA_ACCESS_READ, true},
	{"/lib/tmpfiles.d", KA_ACCESS_READ, true},
	{"/proc/cmdline", KA_ACCESS_READ, false},
};

/* Leaves nothing of the caller's surroundings but stderr and systemd's socket. */
static bool
set_up_process(bool has_systemd_socket)
{
	const struct rlimit none = {0, 0};
	int			null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return false;
	if (close_range(has_systemd_socket ? 4 : 3, ~0U, 0) < 0)
		return false;
	umask(077);
	tzset();					/* reads its file now or never */
	clearenv();
	ka_server_prepare();
	return chdir("/") == 0 && setrlimit(RLIMIT_CORE, &none) == 0 && setrlimit(RLIMIT_NPROC, &none) == 0;
}

static int
usage(const char *problem)
{
	fprintf(stderr, "kernel_advisord: %s\n"
			"usage: kernel_advisord [--socket PATH] [--group NAME] [--bounds FILE] [--idle SECONDS] [--root DIRECTORY]\n"
			"       kernel_advisord --check [--bounds FILE]\n"
			"Without --socket the socket comes from systemd.  See kernel_advisord(8).\n", problem);
	return EXIT_CONFIG;
}

static bool
read_options(int argc, char **argv, Options *options)
{
	static const struct option names[] = {
		{"socket", required_argument, NULL, 's'},
		{"group", required_argument, NULL, 'g'},
		{"bounds", required_argument, NULL, 'b'},
		{"idle", required_argument, NULL, 'i'},
		{"root", required_argument, NULL, 'r'},
		{"check", no_argument, NULL, 'c'},
		{NULL, 0, NULL, 0}
	};
	int			c;

	*options = (Options) {.root = "", .group = DEFAULT_GROUP, .bounds = KA_BOUNDS_FILE};
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		const char *p = optarg;
		int64_t		number;

		switch (c)
		{
			case 's':
				options->socket = optarg;
				break;
			case 'g':
				options->group = optarg;
				break;
			case 'b':
				options->bounds = optarg;
				break;
			case 'r':
				options->root = optarg;
				break;
			case 'c':
				options->check = true;
				break;
			case 'i':
				if (!ka_parse_number(&p, p + strlen(p), &number) || *p || number > 86400)
					return false;
				options->idle_s = (int) number;
				break;
			default:
				return false;
		}
	}
	return optind == argc && (options->socket == NULL || options->socket[0] == '/') &&
		(options->root[0] == '\0' || options->root[0] == '/');
}

/* Says what cannot be written, and refuses when that is everything. */
static bool
check_knobs(const KaKernel *kernel)
{
	size_t		writable = 0;
	int			last_error = 0;

	for (size_t i = 0; i < kernel->nfiles; i++)
	{
		const KaKnobFile *file = &kernel->files[i];

		if (file->write_error == 0)
			writable++;
		else if (file->write_error != ENOENT)
		{
			last_error = file->write_error;
			if (file->node == KA_ALL_NODES)
				ka_log(KA_LOG_WARNING, "%s cannot be written: %s", file->knob->path, strerror(last_error));
		}
	}
	if (writable > 0)
		return true;
	ka_log(KA_LOG_ERROR, "no knob of the kernel can be written here: %s "
		   "(a container with a read-only /proc/sys, or uid 0 of a user namespace?)",
		   strerror(last_error ? last_error : ENOENT));
	return false;
}

/* The socket of --socket. */
static int
open_socket(const Options *options)
{
	struct group *group = getgrnam(options->group);
	char		directory[PATH_MAX];
	const char *slash;
	int			listen_fd;

	if (group == NULL)
	{
		ka_log(KA_LOG_ERROR, "the machine has no group \"%s\"", options->group);
		return -ENOENT;
	}
	/* Its directory, in /run of a container for instance; bind() says if that did not work. */
	slash = strrchr(options->socket, '/');
	if (slash > options->socket &&
		snprintf(directory, sizeof(directory), "%.*s", (int) (slash - options->socket), options->socket) < (int) sizeof(directory) &&
		mkdir(directory, 0700) == 0)
		chmod(directory, 0755);
	listen_fd = ka_socket_make(options->socket, group->gr_gid);
	if (listen_fd == -EPERM)
		ka_log(KA_LOG_ERROR, "the socket cannot be given to group \"%s\": CAP_CHOWN, or a socket from systemd, is needed",
			   options->group);
	return listen_fd;
}

static int
fatal(const char *what, int negative_errno)
{
	ka_log(KA_LOG_ERROR, "%s: %s", what, strerror(-negative_errno));
	return EXIT_CONFIG;
}

int
main(int argc, char **argv)
{
	static KaDaemon daemon;
	Options		options;
	char		error[512];
	bool		has_bounds;
	int			state_fd;
	int			listen_fd;
	int			result;

	if (!read_options(argc, argv, &options))
		return usage("options");
	ka_log_start("kernel_advisord");
	if (!ka_bounds_default(&daemon.bounds))
		return fatal("bounds", -ENOMEM);
	if (!ka_bounds_load(&daemon.bounds, options.root, options.bounds, &has_bounds, error, sizeof(error)))
	{
		ka_log(KA_LOG_ERROR, "%s", error);
		return EXIT_CONFIG;
	}
	if (options.check)
	{
		printf("%s: %s\n", options.bounds, has_bounds ? "good" : "there is none, the defaults hold");
		return 0;
	}
	if (geteuid() != 0)
	{
		ka_log(KA_LOG_ERROR, "writing sysctls needs uid 0, and this is uid %u", (unsigned) geteuid());
		return EXIT_CONFIG;
	}
	daemon.stop = ka_signals_start();
	listen_fd = options.socket ? -1 : ka_socket_from_systemd();
	if (options.socket == NULL && listen_fd < 0)
		return usage("systemd passed no socket of ours, and there is no --socket");
	if (!set_up_process(options.socket == NULL))
		return fatal("start", -errno);

	daemon.root = options.root;
	daemon.tokens = (double) daemon.bounds.changes_per_hour;
	daemon.tokens_at_ms = ka_now_ms();
	result = ka_kernel_open(&daemon.kernel, options.root);
	if (result < 0)
		return fatal("/proc/meminfo", result);
	if (!check_knobs(&daemon.kernel))
		return EXIT_CONFIG;
	ka_persist_open(&daemon.persist, options.root);
	state_fd = ka_state_open(options.root);
	if (state_fd < 0)
		return fatal(KA_STATE_DIRECTORY, state_fd);
	if (options.socket)
		listen_fd = open_socket(&options);
	if (listen_fd < 0)
		return fatal(options.socket, listen_fd);

	if (!ka_privileges_drop(options.root, allowed_paths, sizeof(allowed_paths) / sizeof(allowed_paths[0]),
							error, sizeof(error)))
	{
		ka_log(KA_LOG_ERROR, "privileges: %s", error);
		return EXIT_CONFIG;
	}

	if (!ka_journal_start(&daemon, state_fd, 0, error, sizeof(error)))
	{
		ka_log(KA_LOG_ERROR, "%s", error);
		return EXIT_CONFIG;
	}
	if (daemon.journal.changes.damaged > 0)
		ka_log(KA_LOG_WARNING, "journal: %zu damaged records were skipped", daemon.journal.changes.damaged);

	ka_log(KA_LOG_INFO, "ready: %zu changes in the journal, %s, %s", daemon.journal.changes.n,
		   has_bounds ? options.bounds : "no bounds file", ka_landlock_state());
	result = ka_serve(&daemon, listen_fd, options.idle_s);
	ka_daemon_close(&daemon);
	return result < 0 ? fatal("waiting for clients", result) : 0;
}
