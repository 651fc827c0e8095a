/*
 * main.c: kernel_advisor_probe: loads the BPF programs, then publishes what they
 * counted at a fixed pace.
 *
 * Order of the start: the directory (as root), then the user and the
 * capabilities, then everything else.  Once the programs are attached, the
 * capabilities go, too.  Between two publications the process sleeps; a tick
 * reads mapped memory and makes a system call only for processes that are gone.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "log.h"
#include "probe_file.h"
#include "publish.h"
#include "rights.h"
#include "show.h"
#include "tally.h"

/* Exit codes: sysexits.h's EX_CONFIG keeps systemd from restarting in vain. */
#define EXIT_CONFIG 78

#define MISSED_EVERY_MS 1000	/* asks the kernel for events that it left out */

typedef struct Options
{
	const char *path;
	const char *user;
	uint32_t	interval_ms;
	uint32_t	unwanted;		/* bits of KaProbeSource */
	bool		show;
} Options;

static volatile sig_atomic_t stop;

/* Half a megabyte each: not on the stack. */
static KaProbeFile file;
static KaTally tally;
static KaLoaded loaded;

static void
on_signal(int number)
{
	stop = number;
}

static int
usage(void)
{
	fprintf(stderr, "usage: kernel_advisor_probe [--file PATH] [--interval MS] [--user NAME] [--skip TRACEPOINT]...\n"
			"       kernel_advisor_probe --show [--file PATH]\n"
			"See kernel_advisor_probe(8).\n");
	return EXIT_CONFIG;
}

static bool
read_source(const char *name, uint32_t *sources)
{
	for (unsigned i = 0; i < KA_SOURCE_COUNT; i++)
	{
		const char *full = ka_probe_source_name(i);

		if (strcmp(name, full) == 0 || strcmp(name, strchr(full, ':') + 1) == 0)
		{
			*sources |= 1U << i;
			return true;
		}
	}
	fprintf(stderr, "kernel_advisor_probe: unknown tracepoint \"%s\"\n", name);
	return false;
}

static bool
read_options(int argc, char **argv, Options *options)
{
	static const struct option names[] = {
		{"file", required_argument, NULL, 'f'},
		{"interval", required_argument, NULL, 'i'},
		{"user", required_argument, NULL, 'u'},
		{"skip", required_argument, NULL, 's'},
		{"show", no_argument, NULL, 'p'},
		{NULL, 0, NULL, 0}
	};
	char	   *end;
	int			c;

	*options = (Options) {.path = KA_PROBE_PATH, .user = KA_PROBE_USER, .interval_ms = 100};
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		switch (c)
		{
			case 'f':
				options->path = optarg;
				break;
			case 'u':
				options->user = optarg;
				break;
			case 'i':
				options->interval_ms = (uint32_t) strtoul(optarg, &end, 10);
				if (*end || options->interval_ms < 10 || options->interval_ms > 10000)
				{
					fprintf(stderr, "kernel_advisor_probe: the interval is 10 to 10000 ms\n");
					return false;
				}
				break;
			case 's':
				if (!read_source(optarg, &options->unwanted))
					return false;
				break;
			case 'p':
				options->show = true;
				break;
			default:
				return false;
		}
	}
	return optind == argc;
}

static int
fatal(const char *what, const char *why)
{
	ka_log(KA_LOG_ERROR, "%s: %s", what, why);
	return EXIT_CONFIG;
}

static void
catch_signals(sigset_t *while_waiting)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t	blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
	{
		sigaction(numbers[i], &action, NULL);
		sigaddset(&blocked, numbers[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, while_waiting);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigdelset(while_waiting, numbers[i]);
}

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

/* Each counter is read whole. */
static void
copy_totals(void)
{
	const uint64_t *from = (const uint64_t *) loaded.totals;
	uint64_t   *to = (uint64_t *) &file.totals;

	_Static_assert(sizeof(KaProbeTotals) % sizeof(uint64_t) == 0, "totals are counters only");
	for (size_t i = 0; i < sizeof(file.totals) / sizeof(uint64_t); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	for (int order = 0; order < KA_PROBE_ORDERS; order++)
	{
		uint64_t	sum = 0;

		for (uint32_t cpu = 0; cpu < loaded.ncpus; cpu++)
			sum += __atomic_load_n(&loaded.slots[cpu].drained_blocks[order], __ATOMIC_RELAXED);
		file.totals.drained_blocks[order] = sum;
	}
}

static bool
give_back(void *context, uint32_t index)
{
	return ka_free_record(context, index);
}

static void
tick(uint64_t now_ns)
{
	static uint64_t missed_at_ns;
	static uint64_t missed;

	if (now_ns - missed_at_ns > MISSED_EVERY_MS * UINT64_C(1000000))
	{
		missed = ka_missed_events(&loaded);
		missed_at_ns = now_ns;
	}
	/* Totals before parts: a sum over the rows is never behind them. */
	copy_totals();
	ka_tally(&tally, loaded.records, now_ns, &file, give_back, &loaded);
	file.header.heartbeat_ns = now_ns;
	file.header.dropped = (KaProbeDropped) {
		.processes = __atomic_load_n(&loaded.dropped->processes, __ATOMIC_RELAXED),
		.groups = tally.groups_dropped,
		.sections = __atomic_load_n(&loaded.dropped->sections, __ATOMIC_RELAXED),
		.events = missed};
}

/* Until a signal.  Late ticks are not made up for. */
static int
run(KaPublisher *publisher, uint32_t interval_ms, const sigset_t *while_waiting)
{
	uint64_t	interval_ns = interval_ms * UINT64_C(1000000);
	uint64_t	next_ns = clock_ns(CLOCK_MONOTONIC);
	char		error[512];

	while (!stop)
	{
		uint64_t	now_ns = clock_ns(CLOCK_MONOTONIC);
		struct timespec wait = {0};

		if (now_ns >= next_ns)
		{
			tick(now_ns);
			if (!ka_publish(publisher, &file, error, sizeof(error)))
				return fatal("publishing", error);
			next_ns += interval_ns;
			if (next_ns < now_ns)
				next_ns = now_ns + interval_ns;
			now_ns = clock_ns(CLOCK_MONOTONIC);
		}
		if (next_ns > now_ns)
			wait = (struct timespec) {.tv_sec = (time_t) ((next_ns - now_ns) / 1000000000),
				.tv_nsec = (long) ((next_ns - now_ns) % 1000000000)};
		if (ppoll(NULL, 0, &wait, while_waiting) < 0 && errno != EINTR)
			return fatal("waiting", strerror(errno));
	}
	return 0;
}

/* Started as root: the directory, and what becoming another user needs. */
static bool
become_unprivileged(const Options *options, char *error, size_t error_size)
{
	const struct rlimit none = {0, 0};
	struct passwd *user = geteuid() == 0 ? getpwnam(options->user) : NULL;

	if (geteuid() == 0 && (user == NULL || user->pw_uid == 0))
	{
		snprintf(error, error_size, user ? "user \"%s\" is root" :
				 "there is no user \"%s\": systemd-sysusers makes it, or name another one with --user", options->user);
		return false;
	}
	if (user && !ka_make_directory(options->path, user->pw_uid, user->pw_gid, error, error_size))
		return false;
	umask(077);
	setrlimit(RLIMIT_CORE, &none);
	return chdir("/") == 0 && ka_rights_reduce(user ? user->pw_uid : 0, user ? user->pw_gid : 0, error, error_size);
}

int
main(int argc, char **argv)
{
	KaPublisher publisher;
	Options		options;
	sigset_t	while_waiting;
	char		error[768];
	const char *left;
	int			result;

	if (!read_options(argc, argv, &options))
		return usage();
	if (options.show)
		return ka_show(options.path);
	ka_log_start("kernel_advisor_probe");
	catch_signals(&while_waiting);
	if (!become_unprivileged(&options, error, sizeof(error)))
		return fatal("start", error);
	if (!ka_publisher_open(&publisher, options.path, error, sizeof(error)))
	{
		ka_publisher_close(&publisher);
		return fatal(options.path, error);
	}
	left = NULL;
	if (ka_load(&loaded, options.unwanted, error, sizeof(error)))
		left = ka_rights_end(ka_may_use_maps, &loaded, error, sizeof(error));
	if (left == NULL)
	{
		result = fatal("BPF", error);
		ka_unload(&loaded);
		ka_publisher_close(&publisher);
		return result;
	}

	ka_tally_start(&tally, &file);
	file.header.generation = clock_ns(CLOCK_REALTIME);
	file.header.interval_ms = options.interval_ms;
	file.header.pid = (uint32_t) getpid();
	file.header.sources = loaded.sources;
	ka_log(KA_LOG_INFO, "ready: %d of %d tracepoints, every %u ms to %s, with %s left",
		   __builtin_popcount(loaded.sources), KA_SOURCE_COUNT, options.interval_ms, options.path, left);
	result = run(&publisher, options.interval_ms, &while_waiting);
	ka_publisher_close(&publisher);
	ka_unload(&loaded);
	return result;
}
