/*
 * main.c: kernel_advisor_contiguity: where pages lie in physical memory, and
 * what that makes of the requests to a disk.
 *
 *	kernel_advisor_contiguity file PATH         the cached pages of a file
 *	kernel_advisor_contiguity process PID       a process's shared memory, or a range
 *	kernel_advisor_contiguity kernel            how the kernel hands out pages
 *	kernel_advisor_contiguity measure DIR       requests, from memory as it is and from large blocks
 *
 * Exit status: see look.h.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect.h"
#include "look.h"

#ifndef KA_VERSION
#define KA_VERSION "unknown"
#endif

#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif

/* Bits, for the table of options. */
enum
{
	FILES = 1,
	PROCESS = 2,
	KERNEL = 4,
	MEASURE = 8
};

#define MIB (INT64_C(1) << 20)

typedef struct Context
{
	KaArena		arena;
	KaWalk		walk;
	const char *argument;		/* PATH, PID or DIR */
	const char *range;			/* START-END of process */
	const char *directory;		/* of kernel */
	int64_t		bytes;			/* --size */
	int64_t		write_bytes;
	bool		json;
	bool		facts;
} Context;

static const char usage_text[] =
"kernel_advisor_contiguity: where pages lie in physical memory, and what the disk gets\n"
"\n"
"Usage:\n"
"  kernel_advisor_contiguity file PATH [--json]\n"
"  kernel_advisor_contiguity process PID [START-END] [--json]\n"
"  kernel_advisor_contiguity kernel [--dir DIR] [--size MB] [--json]\n"
"  kernel_advisor_contiguity measure DIR [--size MB] [--write-size KB] [--json | --facts]\n"
"\n"
"  file     the pages of a file that are cached; nothing is read\n"
"  process  the largest shared memory of a process, or a range of its addresses\n"
"  kernel   takes pages and says in which order the kernel hands them out\n"
"  measure  writes a file in DIR through the page cache, and counts the requests\n"
"           that the disk gets: from memory as it is, and from large blocks\n"
"\n"
"Options:\n"
"  --json           the result as JSON\n"
"  --facts          what the rule io.contiguity needs, as facts for the advisor\n"
"  --size MB        kernel: of each kind of memory (32); measure: of the file (64)\n"
"  --dir DIR        where the kernel's page cache is tried (/var/tmp)\n"
"  --write-size KB  what each write has (8, PostgreSQL's block)\n"
"  --help, --version\n"
"\n"
"Exit status: 0 done; 1 nothing of it is in memory, or a figure of --facts could\n"
"not be had; 2 usage, no right to, no such thing.  Needs root (CAP_SYS_ADMIN).\n";

static int
trouble(const char *text)
{
	fprintf(stderr, "kernel_advisor_contiguity: %s\n", text ? text : "out of memory");
	return KA_EXIT_TROUBLE;
}

static int
usage(const char *format, const char *what)
{
	fputs("kernel_advisor_contiguity: ", stderr);
	fprintf(stderr, format, what);
	fputs("\nTry \"kernel_advisor_contiguity --help\".\n", stderr);
	return KA_EXIT_TROUBLE;
}

/*
 * Commands
 */

/* Opens a regular file that has a page cache; -1 with *problem. */
static int
open_file(Context *context, const char **problem)
{
	struct stat status;
	struct statx more;
	int			fd = open(context->argument, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
	{
		*problem = ka_printf(&context->arena, "%s: %s", context->argument, strerror(errno));
		return -1;
	}
	if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode))
		*problem = ka_printf(&context->arena, "%s: not a regular file", context->argument);
	else if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more) == 0 && (more.stx_attributes & STATX_ATTR_DAX))
		*problem = ka_printf(&context->arena, "%s: on DAX, which has no page cache", context->argument);
	if (*problem == NULL)
		return fd;
	close(fd);
	return -1;
}

/* Reads end with the window of read-ahead at the latest. */
static KaLimits
limits_of_reads(const KaDevice *device)
{
	KaLimits	limits = device->limits;

	if (device->read_ahead_bytes > 0 &&
		(limits.max_request_bytes == KA_UNKNOWN || limits.max_request_bytes > device->read_ahead_bytes))
		limits.max_request_bytes = device->read_ahead_bytes;
	return limits;
}

static int
run_file(Context *context, const char **problem)
{
	KaFileLook	file = {0};
	KaLimits	reads;
	char	   *path = realpath(context->argument, NULL);
	int			fd = open_file(context, problem);
	bool		done = fd >= 0 && path != NULL && ka_walk_file(&context->walk, fd, problem) &&
		ka_look_of(&context->walk, &file.look) && ka_device_of(&context->arena, path, &file.device) &&
		ka_extents_of(&context->arena, fd, file.look.looked * file.look.page_bytes, &file.extents);

	if (fd >= 0)
		close(fd);
	free(path);
	if (!done)
		return trouble(*problem);
	if (file.device.name)
	{
		reads = limits_of_reads(&file.device);
		ka_predict_requests(&context->walk.runs, context->walk.page_bytes, file.extents.extent, file.extents.count,
							&file.device.limits, &file.write);
		ka_predict_requests(&context->walk.runs, context->walk.page_bytes, file.extents.extent, file.extents.count,
							&reads, &file.read);
	}
	if (!ka_print_file(&file, context->argument, context->json))
		return trouble("the result could not be written");
	return file.look.present > 0 ? KA_EXIT_LOOKED : KA_EXIT_EMPTY;
}

/* "7f2a00000000-7f2a40000000", as in /proc/PID/maps. */
static bool
read_range(const char *text, int64_t page_bytes, KaProcessLook *process)
{
	unsigned long long from,
				to;
	char	   *end;

	if (!isxdigit((unsigned char) *text))
		return false;
	errno = 0;
	from = strtoull(text, &end, 16);
	if (*end != '-' || !isxdigit((unsigned char) end[1]))
		return false;
	to = strtoull(end + 1, &end, 16);
	process->from = from;
	process->to = to;
	return *end == '\0' && errno == 0 && from < to && from % (uint64_t) page_bytes == 0 && to % (uint64_t) page_bytes == 0 &&
		to <= INT64_MAX;
}

static bool
look_at_process(Context *context, int64_t pid, KaProcessLook *process, const char **problem)
{
	KaSource	source = {.root = "", .pid = pid};
	KaMapping	mapping;
	int			fd;
	bool		done;

	if (context->range)
		return ka_walk_process(&context->walk, pid, process->from, process->to, problem);
	if (!ka_find_mapping(&source, 0, &mapping))
	{
		*problem = ka_printf(&context->arena, "process %s: not there, or without shared memory of its own; name a range of /proc/%s/maps",
							 context->argument, context->argument);
		return false;
	}
	process->from = mapping.start;
	process->to = mapping.start + (uint64_t) mapping.bytes;
	fd = mapping.huge ? -1 : ka_open_mapping(pid, process->from, process->to);
	process->whole = fd >= 0;
	if (fd < 0)
		return ka_walk_process(&context->walk, pid, process->from, process->to, problem);
	done = ka_walk_file(&context->walk, fd, problem);
	close(fd);
	return done;
}

static int
run_process(Context *context, const char **problem)
{
	KaProcessLook process = {0};
	char	   *end;
	long		pid = strtol(context->argument, &end, 10);

	if (*end != '\0' || pid <= 0 || pid > INT32_MAX || !isdigit((unsigned char) *context->argument))
		return usage("%s is not the number of a process", context->argument);
	if (context->range && !read_range(context->range, context->walk.page_bytes, &process))
		return usage("%s is not a range of addresses as in /proc/PID/maps", context->range);
	if (!look_at_process(context, pid, &process, problem) || !ka_look_of(&context->walk, &process.look))
		return trouble(*problem);
	if (!ka_print_process(&process, pid, context->json))
		return trouble("the result could not be written");
	return process.look.present > 0 ? KA_EXIT_LOOKED : KA_EXIT_EMPTY;
}

static int
run_kernel(Context *context, const char **problem)
{
	KaKernelLook *kernel = ka_alloc(&context->arena, sizeof(*kernel));
	int64_t		bytes = context->bytes ? context->bytes : 32 * MIB;

	if (kernel == NULL || !ka_probe_kernel(&context->walk, context->directory, bytes, kernel, problem))
		return trouble(*problem);
	if (!ka_print_kernel(kernel, context->json))
		return trouble("the result could not be written");
	return kernel->order == KA_PFN_NOTHING ? KA_EXIT_EMPTY : KA_EXIT_LOOKED;
}

static int
run_measure(Context *context, const char **problem)
{
	KaMeasurement *measurement = ka_alloc(&context->arena, sizeof(*measurement));
	int64_t		bytes = context->bytes ? context->bytes : 64 * MIB;
	int64_t		write_bytes = context->write_bytes ? context->write_bytes : 8192;
	char	   *path = realpath(context->argument, NULL);
	bool		good;

	if (path == NULL)
		return trouble(ka_printf(&context->arena, "%s: %s", context->argument, strerror(errno)));
	good = measurement != NULL && bytes % write_bytes == 0;
	if (measurement != NULL && !good)
		*problem = "--size is not a multiple of --write-size";
	good = good && ka_measure(&context->walk, path, bytes, write_bytes, measurement, problem);
	free(path);
	if (!good)
		return trouble(*problem);
	if (!(context->facts ? ka_print_facts(&context->arena, measurement->facts) :
		  ka_print_measurement(measurement, context->json)))
		return trouble("the result could not be written");
	return ka_known(measurement->facts, KA_W_REQUEST_BYTES) && ka_known(measurement->facts, KA_W_REQUEST_BYTES_UNFRAG) ?
		KA_EXIT_LOOKED : KA_EXIT_EMPTY;
}

static const struct
{
	const char *name;
	int			bit;
	int			(*run) (Context *context, const char **problem);
	const char *argument;		/* what it takes, NULL: nothing */
}			commands[] = {
	{"file", FILES, run_file, "PATH"},
	{"process", PROCESS, run_process, "PID"},
	{"kernel", KERNEL, run_kernel, NULL},
	{"measure", MEASURE, run_measure, "DIR"},
};

/*
 * The command line
 */

typedef enum OptionKind
{
	FLAG,
	TEXT,
	UNITS						/* a whole number of the unit, 1 to 65536 */
} OptionKind;

static const struct
{
	const char *name;
	int			commands;
	OptionKind	kind;
	int64_t		unit;
	size_t		offset;			/* in Context */
}			options[] = {
	{"json", FILES | PROCESS | KERNEL | MEASURE, FLAG, 0, offsetof(Context, json)},
	{"facts", MEASURE, FLAG, 0, offsetof(Context, facts)},
	{"size", KERNEL | MEASURE, UNITS, MIB, offsetof(Context, bytes)},
	{"dir", KERNEL, TEXT, 0, offsetof(Context, directory)},
	{"write-size", MEASURE, UNITS, 1024, offsetof(Context, write_bytes)},
};

static int
store_option(Context *context, int number, int command, const char *value)
{
	char	   *place = (char *) context + options[number].offset;
	char	   *end;
	long		units;

	if (!(options[number].commands & command))
		return usage("--%s is not an option of this command", options[number].name);
	switch (options[number].kind)
	{
		case FLAG:
			*(bool *) place = true;
			break;
		case TEXT:
			*(const char **) place = value;
			break;
		case UNITS:
			units = strtol(value, &end, 10);
			if (!isdigit((unsigned char) *value) || *end != '\0' || units < 1 || units > 65536)
				return usage("--%s takes a whole number from 1 to 65536", options[number].name);
			*(int64_t *) place = units * options[number].unit;
			break;
	}
	return 0;
}

/* 0, or an exit status. */
static int
read_options(Context *context, int argc, char **argv, int command, const char *argument)
{
	struct option names[KA_LENGTH(options) + 1] = {0};
	int			number = 0;
	int			status = 0;
	int			c;

	for (size_t i = 0; i < KA_LENGTH(options); i++)
		names[i] = (struct option) {options[i].name, options[i].kind == FLAG ? no_argument : required_argument, NULL, 1};
	opterr = 0;
	optind = 2;
	while (status == 0 && (c = getopt_long(argc, argv, ":", names, &number)) != -1)
		status = c == 1 ? store_option(context, number, command, optarg) :
			usage(c == ':' ? "%s needs an argument" : "%s is not an option", argv[optind - 1]);
	if (status != 0)
		return status;
	if (argument && optind == argc)
		return usage("%s is missing", argument);
	if (argument)
		context->argument = argv[optind++];
	if (command == PROCESS && optind < argc)
		context->range = argv[optind++];
	if (optind < argc)
		return usage("%s is one argument too many", argv[optind]);
	return context->json && context->facts ? usage("--facts excludes %s", "--json") : 0;
}

static int
run(Context *context, size_t command, int argc, char **argv)
{
	const char *problem = NULL;
	int			status = read_options(context, argc, argv, commands[command].bit, commands[command].argument);

	if (status != 0)
		return status;
	if (!ka_walk_open(&context->walk, &context->arena, &problem))
		return trouble(problem);
	return commands[command].run(context, &problem);
}

int
main(int argc, char **argv)
{
	Context		context = {.directory = "/var/tmp"};
	const char *first = argc > 1 ? argv[1] : "";
	size_t		command = 0;
	int			status;

	for (int i = 1; i < argc; i++)
	{
		if (strcmp(argv[i], "--help") == 0)
			return fputs(usage_text, stdout) < 0 ? KA_EXIT_TROUBLE : KA_EXIT_LOOKED;
		if (strcmp(argv[i], "--version") == 0)
			return puts("kernel_advisor_contiguity " KA_VERSION) < 0 ? KA_EXIT_TROUBLE : KA_EXIT_LOOKED;
	}
	while (command < KA_LENGTH(commands) && strcmp(commands[command].name, first) != 0)
		command++;
	if (command == KA_LENGTH(commands))
		return usage(*first ? "%s is not a command" : "a command is missing%s", first);

	ka_malloc_arena(&context.arena);
	status = run(&context, command, argc, argv);
	ka_walk_close(&context.walk);
	ka_malloc_free(&context.arena);
	return status;
}
