/*
 * main.c: kernel_advisor, the advisor without a server.
 *
 *	kernel_advisor facts    what is known about this machine, as JSON
 *	kernel_advisor advise   what to do about it
 *	kernel_advisor doctor   why the server does not start, or was killed
 *	kernel_advisor reserve  huge pages for a server, before it starts
 *	kernel_advisor rollback undoes a change of the root helper
 *
 * Exit status: see tool.h.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advice.h"
#include "collect.h"
#include "doctor.h"
#include "fix.h"
#include "json.h"
#include "options.h"
#include "output.h"
#include "pgconf.h"
#include "reserve.h"
#include "rollback.h"
#include "tool.h"

typedef struct Context
{
	KaArena		arena;
	KaFacts		facts;
	KaCluster	cluster;		/* path is NULL without -D */
	KaOptions	options;
} Context;

/*
 * Messages go to stderr; stdout has the result only.
 */

static void
print_message(const char *kind, const char *text)
{
	fprintf(stderr, "kernel_advisor: %s", kind);
	ka_print_safe(stderr, text);
	fputc('\n', stderr);
}

int
ka_trouble(const char *text)
{
	print_message("", text ? text : "out of memory");
	return KA_EXIT_TROUBLE;
}

void
ka_note(const char *text)
{
	if (text != NULL)
		print_message("note: ", text);
}

static void
print_notes(const Context *context)
{
	for (size_t i = 0; i < context->cluster.nnotes; i++)
		ka_note(context->cluster.notes[i]);
}

/*
 * Facts
 */

/* The facts of a machine: this one, or a copy of another. */
static bool
collect(Context *context, const char **problem)
{
	const KaOptions *options = &context->options;
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
		return ka_trouble(problem);
	print_notes(context);
	if (!ka_print_facts(&context->arena, &context->facts))
		return ka_trouble("the facts could not be written");
	return KA_EXIT_NOTHING;
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
			return KA_EXIT_ADVICE;
	}
	return KA_EXIT_NOTHING;
}

static int
print_advice(Context *context, const KaErrorText *failure)
{
	KaAdviceList list = {.arena = &context->arena};
	const KaAdvice **rows;
	size_t		count;

	if (!ka_advise(&context->facts, &list) ||
		(rows = choose(context, &list, failure, &count)) == NULL)
		return ka_trouble(NULL);

	if (context->options.json)
	{
		if (!ka_print_advice_json(&context->arena, &context->facts, rows, count))
			return ka_trouble("the advice could not be written");
	}
	else
	{
		ka_print_advice(rows, count);
		if (failure != NULL)
			ka_print_fixes(&context->arena, &context->facts, &context->cluster, rows, count);
		if (fflush(stdout) != 0)
			return ka_trouble("the advice could not be written");
	}
	return exit_status(rows, count);
}

static int
run_advise(Context *context)
{
	const char *problem = NULL;

	if (!(context->options.facts_file ? load(context, &problem) : collect(context, &problem)))
		return ka_trouble(problem);
	print_notes(context);
	return print_advice(context, NULL);
}

static int
run_doctor(Context *context)
{
	const KaOptions *options = &context->options;
	const char *problem = NULL;
	KaDiagnosis diagnosis;

	if (!collect(context, &problem) ||
		!ka_diagnose(&context->cluster, &context->facts, options->error, options->log_file, &diagnosis, &problem))
		return ka_trouble(problem);
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

static int
run_reserve(Context *context)
{
	const KaOptions *options = &context->options;
	const char *problem = NULL;
	KaReserveOptions reserve = {
		.socket = options->socket,
		.estimate = options->estimate,
		.drop_caches = options->drop_caches,
		.undo = options->undo,
		.json = options->json,
		.time_limit_ms = options->time_limit_ms,
		.nodes = options->nodes,
		.nnodes = options->nnodes,
	};

	if (!collect(context, &problem))
		return ka_trouble(problem);
	print_notes(context);
	return ka_reserve(&context->arena, &context->facts, &context->cluster, &reserve);
}

static int
run_rollback(Context *context)
{
	const KaOptions *options = &context->options;
	KaRollbackOptions rollback = {
		.socket = options->socket,
		.change = options->change,
		.force = options->force,
		.json = options->json,
	};

	return ka_rollback(&context->arena, &rollback);
}

static const struct
{
	KaCommand	command;
	int			(*run) (Context *context);
}			commands[] = {
	{KA_COMMAND_FACTS, run_facts},
	{KA_COMMAND_ADVISE, run_advise},
	{KA_COMMAND_DOCTOR, run_doctor},
	{KA_COMMAND_RESERVE, run_reserve},
	{KA_COMMAND_ROLLBACK, run_rollback},
};

int
main(int argc, char **argv)
{
	Context    *context = calloc(1, sizeof(*context));
	int			status;

	if (context == NULL)
		return ka_trouble(NULL);
	ka_malloc_arena(&context->arena);
	ka_facts_init(&context->facts, &context->arena);
	if (ka_read_options(&context->arena, argc, argv, &context->options, &status))
	{
		for (size_t i = 0; i < KA_LENGTH(commands); i++)
		{
			if (commands[i].command == context->options.command)
				status = commands[i].run(context);
		}
	}
	ka_malloc_free(&context->arena);
	free(context);
	return status;
}
