/*
 * options.c: the command line: one table says which option belongs to which
 * command and where it is stored.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "knobs.h"
#include "protocol.h"
#include "tool.h"

/* From the extension's control file, by the makefile. */
#ifndef KA_VERSION
#define KA_VERSION "unknown"
#endif

static const struct
{
	const char *name;
	KaCommand	command;
}			commands[] = {
	{"facts", KA_COMMAND_FACTS},
	{"advise", KA_COMMAND_ADVISE},
	{"doctor", KA_COMMAND_DOCTOR},
	{"reserve", KA_COMMAND_RESERVE},
	{"rollback", KA_COMMAND_ROLLBACK},
};

/* Short names for the table. */
enum
{
	FACTS = KA_COMMAND_FACTS,
	ADVISE = KA_COMMAND_ADVISE,
	DOCTOR = KA_COMMAND_DOCTOR,
	RESERVE = KA_COMMAND_RESERVE,
	ROLLBACK = KA_COMMAND_ROLLBACK,
	CLUSTER = FACTS | ADVISE | DOCTOR | RESERVE
};

/* Long options without a letter have these codes. */
enum
{
	OPTION_FACTS = 256,
	OPTION_ROOT,
	OPTION_BINDIR,
	OPTION_CONFIG,
	OPTION_ERROR,
	OPTION_LOG,
	OPTION_SOCKET,
	OPTION_TIME_LIMIT,
	OPTION_NODE,
	OPTION_JSON,
	OPTION_ESTIMATE,
	OPTION_DROP_CACHES,
	OPTION_UNDO,
	OPTION_LIST,
	OPTION_FORCE,
	OPTION_HELP,
	OPTION_VERSION
};

static const struct option long_options[] = {
	{"pgdata", required_argument, NULL, 'D'},
	{"facts", required_argument, NULL, OPTION_FACTS},
	{"root", required_argument, NULL, OPTION_ROOT},
	{"bindir", required_argument, NULL, OPTION_BINDIR},
	{"config-file", required_argument, NULL, OPTION_CONFIG},
	{"error", required_argument, NULL, OPTION_ERROR},
	{"log", required_argument, NULL, OPTION_LOG},
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"time-limit", required_argument, NULL, OPTION_TIME_LIMIT},
	{"node", required_argument, NULL, OPTION_NODE},
	{"json", no_argument, NULL, OPTION_JSON},
	{"estimate", no_argument, NULL, OPTION_ESTIMATE},
	{"drop-caches", no_argument, NULL, OPTION_DROP_CACHES},
	{"undo", no_argument, NULL, OPTION_UNDO},
	{"list", no_argument, NULL, OPTION_LIST},
	{"force", no_argument, NULL, OPTION_FORCE},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0}
};

/* What stands in KaOptions. */
typedef enum OptionKind
{
	TEXT,
	FLAG,						/* without an argument */
	SECONDS,					/* 30 or 0.5; stored in ms */
	NODES						/* may be repeated */
} OptionKind;

/* Every option but --help and --version. */
static const struct
{
	int			code;
	const char *name;
	int			commands;		/* that take it */
	OptionKind	kind;
	size_t		offset;			/* in KaOptions */
}			option_info[] = {
	{'D', "-D", CLUSTER, TEXT, offsetof(KaOptions, data_directory)},
	{OPTION_FACTS, "--facts", ADVISE, TEXT, offsetof(KaOptions, facts_file)},
	{OPTION_ROOT, "--root", FACTS | ADVISE | DOCTOR, TEXT, offsetof(KaOptions, root)},
	{OPTION_BINDIR, "--bindir", CLUSTER, TEXT, offsetof(KaOptions, bindir)},
	{OPTION_CONFIG, "--config-file", CLUSTER, TEXT, offsetof(KaOptions, config_file)},
	{OPTION_ERROR, "--error", DOCTOR, TEXT, offsetof(KaOptions, error)},
	{OPTION_LOG, "--log", DOCTOR, TEXT, offsetof(KaOptions, log_file)},
	{OPTION_SOCKET, "--socket", RESERVE | ROLLBACK, TEXT, offsetof(KaOptions, socket)},
	{OPTION_TIME_LIMIT, "--time-limit", RESERVE, SECONDS, offsetof(KaOptions, time_limit_ms)},
	{OPTION_NODE, "--node", RESERVE, NODES, offsetof(KaOptions, nodes)},
	{OPTION_JSON, "--json", ADVISE | RESERVE | ROLLBACK, FLAG, offsetof(KaOptions, json)},
	{OPTION_ESTIMATE, "--estimate", RESERVE, FLAG, offsetof(KaOptions, estimate)},
	{OPTION_DROP_CACHES, "--drop-caches", RESERVE, FLAG, offsetof(KaOptions, drop_caches)},
	{OPTION_UNDO, "--undo", RESERVE, FLAG, offsetof(KaOptions, undo)},
	{OPTION_LIST, "--list", ROLLBACK, FLAG, offsetof(KaOptions, list)},
	{OPTION_FORCE, "--force", ROLLBACK, FLAG, offsetof(KaOptions, force)},
};

static const char usage_text[] =
"kernel_advisor: huge pages, compaction and memory settings for a PostgreSQL server\n"
"\n"
"Usage:\n"
"  kernel_advisor facts  [-D PGDATA] [--root DIR]\n"
"  kernel_advisor advise [-D PGDATA | --facts FILE] [--root DIR] [--json]\n"
"  kernel_advisor doctor -D PGDATA [--error TEXT | --log FILE] [--root DIR]\n"
"  kernel_advisor reserve -D PGDATA [--estimate] [--drop-caches] [--undo]\n"
"                         [--time-limit S] [--node N]... [--socket PATH] [--json]\n"
"  kernel_advisor rollback {CHANGE_ID [--force] | --list} [--socket PATH] [--json]\n"
"\n"
"  facts    prints what is known about the machine and the server, as JSON\n"
"  advise   prints what to do about it\n"
"  doctor   says why the server does not start, or was killed, and what mends it\n"
"  reserve  reserves the huge pages that the server needs, before it starts\n"
"  rollback undoes a change of the root helper, kernel_advisord\n"
"\n"
"Options:\n"
"  -D, --pgdata DIR    the server's data directory; without it, the kernel only\n"
"  --facts FILE        facts of this or another machine, - for standard input\n"
"  --root DIR          a copy of another machine's files (proc, sys, etc) below DIR\n"
"  --error TEXT        the server's message, in any language, with its hint\n"
"  --log FILE          the server log to look at\n"
"  --bindir DIR        where the server's programs are\n"
"  --config-file FILE  postgresql.conf, where it is not in the data directory\n"
"  --json              the result as JSON\n"
"  --help, --version\n"
"\n"
"Options of reserve and rollback:\n"
"  --estimate          only says how many pages the kernel can probably give\n"
"  --drop-caches       drops clean caches first, where free blocks do not suffice\n"
"  --undo              all or nothing: gives back what was granted in part\n"
"  --time-limit S      seconds that the kernel may look for pages (30, at most 600)\n"
"  --node N            on this memory node; several: in equal shares\n"
"  --socket PATH       the socket of kernel_advisord, instead of the usual one\n"
"  --list              the changes that can be undone, and their numbers\n"
"  --force             though the value was changed by somebody else since\n"
"\n"
"Exit status: 0 nothing to do; 1 there is advice of severity warning or critical;\n"
"2 usage, or something could not be read.  Of reserve and rollback: 0 all of it,\n"
"1 a part of it, 3 nothing of it, 2 usage, no helper, no right to.\n";

static int
usage(const char *format, const char *what)
{
	fputs("kernel_advisor: ", stderr);
	fprintf(stderr, format, what);
	fputs("\nTry \"kernel_advisor --help\".\n", stderr);
	return KA_EXIT_TROUBLE;
}

static bool
read_number(const char *text, int64_t min, int64_t max, int64_t *number)
{
	const char *p = text;

	return ka_parse_number(&p, p + strlen(p), number) && *p == '\0' && *number >= min && *number <= max;
}

static bool
read_seconds(const char *text, int64_t *ms)
{
	char	   *end;
	double		seconds = strtod(text, &end);

	if (*text < '0' || *text > '9' || *end != '\0' || !(seconds >= 0.001 && seconds * 1000 <= KA_MAX_TIME_LIMIT_MS))
		return false;
	*ms = (int64_t) (seconds * 1000);
	return true;
}

/* Stores an option; 0, or the exit status of a wrong one. */
static int
store_option(KaOptions *options, int code, const char *value)
{
	for (size_t i = 0; i < KA_LENGTH(option_info); i++)
	{
		char	   *place = (char *) options + option_info[i].offset;

		if (option_info[i].code != code)
			continue;
		if ((option_info[i].commands & (int) options->command) == 0)
			return usage("%s is not an option of this command", option_info[i].name);
		switch (option_info[i].kind)
		{
			case TEXT:
				*(const char **) place = value;
				break;
			case FLAG:
				*(bool *) place = true;
				break;
			case SECONDS:
				if (!read_seconds(value, (int64_t *) place))
					return usage("--time-limit takes seconds up to 600, not %s", value);
				break;
			case NODES:
				if (options->nnodes == KA_MAX_OPTION_NODES ||
					!read_number(value, 0, INT32_MAX, &options->nodes[options->nnodes]))
					return usage("--node takes the number of a memory node, not %s", value);
				options->nnodes++;
				break;
		}
		return 0;
	}
	return usage("%s is not an option", "this");
}

/* What getopt cannot check; 0, or an exit status. */
static int
check_options(KaArena *arena, KaOptions *options)
{
	size_t		length = options->root ? strlen(options->root) : 0;

	if (options->facts_file && (options->data_directory || options->root || options->bindir || options->config_file))
		return usage("--facts excludes %s", "-D, --root, --bindir and --config-file");
	if (options->error && options->log_file)
		return usage("--error excludes %s", "--log");
	if (options->command == KA_COMMAND_DOCTOR && options->data_directory == NULL)
		return usage("doctor needs %s", "-D PGDATA");
	if (options->command == KA_COMMAND_RESERVE && options->data_directory == NULL)
		return usage("reserve needs %s", "-D PGDATA");
	if (options->command == KA_COMMAND_ROLLBACK && (options->change != 0) == options->list)
		return usage("rollback takes %s", "a CHANGE_ID, or --list");

	/* "" is this machine; nothing else ends in a slash. */
	while (length > 0 && options->root[length - 1] == '/')
		length--;
	options->root = ka_printf(arena, "%.*s", (int) length, options->root ? options->root : "");
	if (options->root == NULL)
		return ka_trouble(NULL);
	if (options->root[0] != '\0' && options->data_directory && options->data_directory[0] != '/')
		return usage("with --root, -D takes a path that begins with a slash, not %s", options->data_directory);
	return 0;
}

/* --help and --version, wherever they stand: true when that was all. */
static bool
is_question(int code)
{
	if (code == OPTION_HELP)
		fputs(usage_text, stdout);
	else if (code == OPTION_VERSION)
		puts("kernel_advisor " KA_VERSION);
	return code == OPTION_HELP || code == OPTION_VERSION;
}

static KaCommand
find_command(const char *name)
{
	for (size_t i = 0; i < KA_LENGTH(commands); i++)
	{
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].command;
	}
	return 0;
}

bool
ka_read_options(KaArena *arena, int argc, char **argv, KaOptions *options, int *status)
{
	const char *first = argc > 1 ? argv[1] : NULL;
	int			code;

	*options = (KaOptions) {0};
	*status = 0;
	if (first && is_question(strcmp(first, "--help") == 0 || strcmp(first, "help") == 0 ? OPTION_HELP :
							 strcmp(first, "--version") == 0 ? OPTION_VERSION : 0))
		return false;
	options->command = first ? find_command(first) : 0;
	if (options->command == 0)
	{
		*status = first ? usage("%s is not a command: facts, advise, doctor, reserve or rollback", first) :
			usage("a command is missing: %s", "facts, advise, doctor, reserve or rollback");
		return false;
	}

	opterr = 0;
	optind = 2;
	while (*status == 0 && (code = getopt_long(argc, argv, ":D:", long_options, NULL)) != -1)
	{
		if (is_question(code))
			return false;
		if (code == ':')
			*status = usage("%s needs an argument", argv[optind - 1]);
		else if (code == '?')
			*status = usage("%s is not an option", argv[optind - 1]);
		else
			*status = store_option(options, code, optarg);
	}
	if (*status == 0 && optind < argc && options->command == KA_COMMAND_ROLLBACK &&
		!read_number(argv[optind++], 1, INT64_MAX, &options->change))
		*status = usage("%s is not the number of a change: see rollback --list", argv[optind - 1]);
	if (*status == 0 && optind < argc)
		*status = usage("%s is one argument too many", argv[optind]);
	if (*status == 0)
		*status = check_options(arena, options);
	return *status == 0;
}
