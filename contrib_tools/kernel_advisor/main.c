/*
 * main.c: kernel_advisor, the advisor without a server.
 *
 *	kernel_advisor facts    what is known about this machine, as JSON
 *	kernel_advisor advise   what to do about it
 *	kernel_advisor doctor   why the server does not start, or was killed
 *
 * Exit status: 0 nothing to do, 1 advice of severity warning or critical,
 * 2 usage, unreadable input, or output that could not be written.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advice.h"
#include "collect.h"
#include "doctor.h"
#include "json.h"
#include "output.h"
#include "pgconf.h"

/* From the extension's control file, by the makefile. */
#ifndef KA_VERSION
#define KA_VERSION "unknown"
#endif

enum
{
	EXIT_NOTHING = 0,
	EXIT_ADVICE = 1,
	EXIT_TROUBLE = 2
};

typedef struct Options
{
	const char *data_directory;
	const char *facts_file;
	const char *root;
	const char *bindir;
	const char *config_file;
	const char *error;
	const char *log_file;
	bool		json;
} Options;

typedef struct Context
{
	KaArena		arena;
	KaFacts		facts;
	KaCluster	cluster;		/* path is NULL without -D */
	Options		options;
} Context;

typedef enum CommandBit
{
	FACTS = 1,
	ADVISE = 2,
	DOCTOR = 4
} CommandBit;

typedef struct Command
{
	const char *name;
	CommandBit	bit;
	int			(*run) (Context *context);
} Command;

/* Long options without a letter have these codes; with an argument they are rows of option_info. */
enum
{
	OPTION_FACTS = 256,
	OPTION_ROOT,
	OPTION_BINDIR,
	OPTION_CONFIG,
	OPTION_ERROR,
	OPTION_LOG,
	OPTION_JSON,
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
	{"json", no_argument, NULL, OPTION_JSON},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0}
};

static const struct
{
	int			code;
	const char *name;
	size_t		offset;			/* of its text in Options */
	int			commands;		/* that take it */
}			option_info[] = {
	{'D', "-D", offsetof(Options, data_directory), FACTS | ADVISE | DOCTOR},
	{OPTION_FACTS, "--facts", offsetof(Options, facts_file), ADVISE},
	{OPTION_ROOT, "--root", offsetof(Options, root), FACTS | ADVISE | DOCTOR},
	{OPTION_BINDIR, "--bindir", offsetof(Options, bindir), FACTS | ADVISE | DOCTOR},
	{OPTION_CONFIG, "--config-file", offsetof(Options, config_file), FACTS | ADVISE | DOCTOR},
	{OPTION_ERROR, "--error", offsetof(Options, error), DOCTOR},
	{OPTION_LOG, "--log", offsetof(Options, log_file), DOCTOR},
};

static const char usage_text[] =
"kernel_advisor: huge pages, compaction and memory settings for a PostgreSQL server\n"
"\n"
"Usage:\n"
"  kernel_advisor facts  [-D PGDATA] [--root DIR]\n"
"  kernel_advisor advise [-D PGDATA | --facts FILE] [--root DIR] [--json]\n"
"  kernel_advisor doctor -D PGDATA [--error TEXT | --log FILE] [--root DIR]\n"
"\n"
"  facts    prints what is known about the machine and the server, as JSON\n"
"  advise   prints what to do about it\n"
"  doctor   says why the server does not start, or was killed\n"
"\n"
"Options:\n"
"  -D, --pgdata DIR    the server's data directory; without it, the kernel only\n"
"  --facts FILE        facts of this or another machine, - for standard input\n"
"  --root DIR          a copy of another machine's files (proc, sys, etc) below DIR\n"
"  --error TEXT        the server's message, in any language, with its hint\n"
"  --log FILE          the server log to look at\n"
"  --bindir DIR        where the server's programs are\n"
"  --config-file FILE  postgresql.conf, where it is not in the data directory\n"
"  --json              advice as JSON\n"
"  --help, --version\n"
"\n"
"Exit status: 0 nothing to do; 1 there is advice of severity warning or critical;\n"
"2 usage, or something could not be read.\n";

/*
 * Messages go to stderr; stdout has the result only.
 */

static int
trouble(const char *text)
{
	fputs("kernel_advisor: ", stderr);
	ka_print_safe(stderr, text ? text : "out of memory");
	fputc('\n', stderr);
	return EXIT_TROUBLE;
}

static int
usage(const char *format, const char *what)
{
	fputs("kernel_advisor: ", stderr);
	fprintf(stderr, format, what);
	fputs("\nTry \"kernel_advisor --help\".\n", stderr);
	return EXIT_TROUBLE;
}

static void
print_notes(const Context *context)
{
	for (size_t i = 0; i < context->cluster.nnotes; i++)
	{
		fputs("kernel_advisor: note: ", stderr);
		ka_print_safe(stderr, context->cluster.notes[i]);
		fputc('\n', stderr);
	}
}

/*
 * Facts
 */

/* The facts of a machine: this one, or a copy of another. */
static bool
collect(Context *context, const char **problem)
{
	const Options *options = &context->options;
	KaCluster  *cluster = &context->cluster;
	KaSource	source = {.root = options->root};
	struct stat status;

	if (options->root[0] != '\0')
	{
		if (stat(options->root, &status) != 0)
			*problem = ka_printf(&context->arena, "--root %s: %s", options->root, strerror(errno));
		else if (!S_ISDIR(status.st_mode))
			*problem = ka_printf(&context->arena, "--root %s: not a directory", options->root);
		if (*problem != NULL)
			return false;
	}

	if (options->data_directory != NULL)
	{
		*cluster = (KaCluster) {
			.arena = &context->arena,
			.root = options->root,
			.data_directory = options->data_directory,
			.bindir = options->bindir,
			.config_file = options->config_file,
		};
		if (!ka_cluster_open(cluster, problem))
			return false;
		if (!ka_cluster_facts(cluster, &context->facts))
			return false;
		source.pid = cluster->pid;
		source.data_directory = cluster->data_directory;
	}
	return ka_collect(&context->facts, &source);
}

static bool
load(Context *context, const char **problem)
{
	const char *file = context->options.facts_file;
	KaArena    *arena = &context->arena;
	KaDecodeError error;
	KaDecoder  *decoder;
	KaJsonSink	sink;
	json_t	   *document;
	const char *reason = NULL;

	document = ka_json_load(arena, file, &reason);
	if (document == NULL)
	{
		*problem = ka_printf(arena, "%s: %s", file, reason ? reason : "cannot be read");
		return false;
	}
	decoder = ka_decoder_new(&context->facts, &sink);
	if (decoder == NULL)
	{
		json_decref(document);
		return false;
	}
	(void) ka_json_feed(document, &sink);
	json_decref(document);
	if (!ka_decoder_finish(decoder, &error))
	{
		*problem = ka_printf(arena, "%s: %s: %s", file, error.path, error.problem);
		return false;
	}
	return true;
}

/*
 * Commands
 */

static int
run_facts(Context *context)
{
	const char *problem = NULL;

	if (!collect(context, &problem))
		return trouble(problem);
	print_notes(context);
	if (!ka_print_facts(&context->arena, &context->facts))
		return trouble("the facts could not be written");
	return EXIT_NOTHING;
}

/* The rows to print: all, or those that a failure makes relevant. */
static const KaAdvice **
choose(Context *context, const KaAdviceList *list, const KaErrorText *failure, size_t *count)
{
	const KaAdvice **rows = ka_alloc(&context->arena, (list->count + 1) * sizeof(*rows));

	*count = 0;
	for (size_t i = 0; rows != NULL && i < list->count; i++)
	{
		if (failure == NULL || ka_is_relevant(failure, &list->rows[i]))
			rows[(*count)++] = &list->rows[i];
	}
	return rows;
}

static int
exit_status(const KaAdvice *const *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (rows[i]->severity == KA_CRITICAL || rows[i]->severity == KA_WARNING)
			return EXIT_ADVICE;
	}
	return EXIT_NOTHING;
}

static int
print_advice(Context *context, const KaErrorText *failure)
{
	KaAdviceList list = {.arena = &context->arena};
	const KaAdvice **rows;
	size_t		count;

	if (!ka_advise(&context->facts, &list) ||
		(rows = choose(context, &list, failure, &count)) == NULL)
		return trouble(NULL);

	if (context->options.json)
	{
		if (!ka_print_advice_json(&context->arena, &context->facts, rows, count))
			return trouble("the advice could not be written");
	}
	else
	{
		ka_print_advice(rows, count);
		if (fflush(stdout) != 0)
			return trouble("the advice could not be written");
	}
	return exit_status(rows, count);
}

static int
run_advise(Context *context)
{
	const char *problem = NULL;

	if (!(context->options.facts_file ? load(context, &problem) : collect(context, &problem)))
		return trouble(problem);
	print_notes(context);
	return print_advice(context, NULL);
}

static int
run_doctor(Context *context)
{
	const Options *options = &context->options;
	const char *problem = NULL;
	KaDiagnosis diagnosis;

	if (!collect(context, &problem) ||
		!ka_diagnose(&context->cluster, &context->facts, options->error, options->log_file, &diagnosis, &problem))
		return trouble(problem);
	print_notes(context);

	puts("Diagnosis");
	ka_print_wrapped(diagnosis.text, 2);
	if (diagnosis.message != NULL)
	{
		fputs(diagnosis.origin ? "  From " : "  From the message:", stdout);
		ka_print_safe(stdout, diagnosis.origin);
		puts(diagnosis.origin ? ":" : "");
		ka_print_lines(diagnosis.message, 4);
	}
	puts("\nAdvice");
	return print_advice(context, &diagnosis.error);
}

static const Command commands[] = {
	{"facts", FACTS, run_facts},
	{"advise", ADVISE, run_advise},
	{"doctor", DOCTOR, run_doctor},
};

static const Command *
find_command(const char *name)
{
	for (size_t i = 0; i < KA_LENGTH(commands); i++)
	{
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* Stores an option with an argument; 0, or the exit status of a wrong one. */
static int
store_option(Options *options, const Command *command, int code, const char *value)
{
	for (size_t i = 0; i < KA_LENGTH(option_info); i++)
	{
		if (option_info[i].code != code)
			continue;
		if ((option_info[i].commands & command->bit) == 0)
			return usage("%s is not an option of this command", option_info[i].name);
		*(const char **) ((char *) options + option_info[i].offset) = value;
		return 0;
	}
	return usage("%s is not an option", "this");
}

/* What getopt cannot check; 0, or an exit status. */
static int
check_options(Context *context, const Command *command)
{
	Options    *options = &context->options;
	size_t		length = options->root ? strlen(options->root) : 0;

	if (options->facts_file && (options->data_directory || options->root || options->bindir || options->config_file))
		return usage("--facts excludes %s", "-D, --root, --bindir and --config-file");
	if (options->error && options->log_file)
		return usage("--error excludes %s", "--log");
	if (command->bit == DOCTOR && options->data_directory == NULL)
		return usage("doctor needs %s", "-D PGDATA");

	/* "" is this machine; nothing else ends in a slash. */
	while (length > 0 && options->root[length - 1] == '/')
		length--;
	options->root = ka_printf(&context->arena, "%.*s", (int) length, options->root ? options->root : "");
	if (options->root == NULL)
		return trouble(NULL);
	if (options->root[0] != '\0' && options->data_directory && options->data_directory[0] != '/')
		return usage("with --root, -D takes a path that begins with a slash, not %s", options->data_directory);
	return 0;
}

int
main(int argc, char **argv)
{
	Context    *context = calloc(1, sizeof(*context));
	const Command *command;
	int			status = 0;
	int			code;

	if (context == NULL)
		return trouble(NULL);

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0))
	{
		fputs(usage_text, stdout);
		free(context);
		return EXIT_NOTHING;
	}
	if (argc > 1 && strcmp(argv[1], "--version") == 0)
	{
		puts("kernel_advisor " KA_VERSION);
		free(context);
		return EXIT_NOTHING;
	}
	command = argc > 1 ? find_command(argv[1]) : NULL;
	if (command == NULL)
	{
		status = argc > 1 ? usage("%s is not a command: facts, advise or doctor", argv[1]) :
			usage("a command is missing: %s", "facts, advise or doctor");
		free(context);
		return status;
	}

	ka_malloc_arena(&context->arena);
	ka_facts_init(&context->facts, &context->arena);

	opterr = 0;
	optind = 2;
	while (status == 0 && (code = getopt_long(argc, argv, ":D:", long_options, NULL)) != -1)
	{
		if (code == OPTION_HELP)
		{
			fputs(usage_text, stdout);
			goto done;
		}
		if (code == OPTION_VERSION)
		{
			puts("kernel_advisor " KA_VERSION);
			goto done;
		}
		if (code == ':')
			status = usage("%s needs an argument", argv[optind - 1]);
		else if (code == '?')
			status = usage("%s is not an option", argv[optind - 1]);
		else if (code == OPTION_JSON && command->bit != ADVISE)
			status = usage("%s is not an option of this command", "--json");
		else if (code == OPTION_JSON)
			context->options.json = true;
		else
			status = store_option(&context->options, command, code, optarg);
	}
	if (status == 0 && optind < argc)
		status = usage("%s is one argument too many", argv[optind]);
	if (status == 0)
		status = check_options(context, command);
	if (status == 0)
		status = command->run(context);

done:
	ka_malloc_free(&context->arena);
	free(context);
	return status;
}
