/*
 * rollback.c: lists the journal, and asks for one change to be undone.
 *
 * The journal numbers changes from 1 on; list answers with the first change
 * whose number is not below the one asked for.
 *
 * Locks: the journal's, while a helper is open in this process.
 */
#define _GNU_SOURCE 1

#include "rollback.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "json.h"
#include "output.h"
#include "tool.h"

/* "1559", "madvise", or "-". */
static const char *
value_text(KaArena *arena, const KaKnob *knob, int64_t value)
{
	char		text[64];
	int			length = knob ? ka_knob_format(knob, value, text, sizeof(text)) : -1;

	if (value == KA_NO_VALUE)
		return "-";
	return length > 0 ? ka_printf(arena, "%.*s", length - 1, text) : ka_printf(arena, "%" PRId64, value);
}

/* "vm.nr_hugepages", "node1.hugepages-2048kB.nr_hugepages" */
static const char *
subject_text(KaArena *arena, const KaReply *reply)
{
	const KaKnob *knob = ka_knob_find(reply->knob);
	const char *name = knob ? knob->name : "?";

	return reply->node == KA_ALL_NODES ? name : ka_printf(arena, "node%d.%s", reply->node, name);
}

static const char *
time_text(KaArena *arena, int64_t at_us)
{
	time_t		seconds = (time_t) (at_us / 1000000);
	struct tm	tm;
	char		text[64];

	if (localtime_r(&seconds, &tm) == NULL || strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S%z", &tm) == 0)
		return "?";
	return ka_strdup(arena, text);
}

static const char *
user_text(KaArena *arena, uint32_t uid)
{
	const struct passwd *user = getpwuid(uid);

	return user ? ka_strdup(arena, user->pw_name) : ka_printf(arena, "%" PRIu32, uid);
}

/* What a change is worth today. */
static const char *
state_text(const KaReply *reply)
{
	if (reply->state & KA_CHANGE_ROLLED_BACK)
		return "rolled back";
	if (reply->state & KA_CHANGE_NOT_WRITTEN)
		return "had no effect";
	if (reply->operation == KA_OP_PERSIST || reply->operation == KA_OP_UNPERSIST)
		return "for the next boot";
	if (!(reply->state & KA_CHANGE_THIS_BOOT))
		return "before this boot";
	return reply->state & KA_CHANGE_INTERRUPTED ? "interrupted" : "in effect";
}

static json_t *
change_document(KaArena *arena, const KaReply *reply)
{
	const KaKnob *knob = ka_knob_find(reply->knob);

	return json_pack("{s:I, s:s, s:s?, s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:o}",
					 "change", (json_int_t) reply->change,
					 "at", time_text(arena, reply->at_us),
					 "operation", ka_operation_name(reply->operation),
					 "subject", subject_text(arena, reply),
					 "old", value_text(arena, knob, reply->old),
					 "asked", value_text(arena, knob, reply->asked),
					 "granted", value_text(arena, knob, reply->granted),
					 "uid", (int) reply->uid,
					 "state", state_text(reply),
					 "status_text", ka_status_text(reply->status),
					 "refers", reply->refers ? json_integer((json_int_t) reply->refers) : json_null());
}

static void
print_change(KaArena *arena, const KaReply *reply)
{
	const KaKnob *knob = ka_knob_find(reply->knob);
	const char *operation = ka_operation_name(reply->operation);

	printf("%5" PRIu64 "  %s  %-9s  %-36s  %8s -> %-8s", reply->change, time_text(arena, reply->at_us),
		   operation ? operation : "?", subject_text(arena, reply),
		   value_text(arena, knob, reply->old), value_text(arena, knob, reply->granted));
	if (reply->asked != reply->granted)
		printf(" of %s", value_text(arena, knob, reply->asked));
	printf("  by %s, %s", user_text(arena, reply->uid), state_text(reply));
	if (reply->refers)
		printf(" (of change %" PRIu64 ")", reply->refers);
	if (reply->status != KA_ST_OK)
		printf(": %s", ka_status_text(reply->status));
	putchar('\n');
}

/* The whole journal, oldest first.  False: *problem. */
static bool
list(KaArena *arena, KaHelper *helper, bool json, const char **problem)
{
	KaRequest	request = {.operation = KA_OP_LIST,.node = KA_ALL_NODES,.value = 1};
	json_t	   *changes = json ? json_array() : NULL;
	bool		good = false;
	KaReply		reply;

	while (ka_helper_call(helper, &request, &reply, problem))
	{
		if (reply.change == 0)
		{
			good = reply.status == KA_ST_END;
			if (!good)
				*problem = ka_status_text(reply.status);
			break;
		}
		if (json)
			json_array_append_new(changes, change_document(arena, &reply));
		else
			print_change(arena, &reply);
		request.value = (int64_t) reply.change + 1;
	}
	if (good && json)
		good = json_dumpf(changes, stdout, JSON_INDENT(2)) == 0 && fputc('\n', stdout) != EOF;
	else if (good && request.value == 1)
		puts("The journal has no change.");
	json_decref(changes);
	return good;
}

/* What an answer means for the exit status. */
static int
exit_code(uint32_t status)
{
	switch (status)
	{
		case KA_ST_OK:
		case KA_ST_UNCHANGED:
			return KA_EXIT_FULL;
		case KA_ST_PARTIAL:
			return KA_EXIT_PARTIAL;
		case KA_ST_DENIED:
		case KA_ST_BAD_OPERATION:
		case KA_ST_BAD_FLAGS:
			return KA_EXIT_TROUBLE;
		default:
			return KA_EXIT_NONE;
	}
}

static int
roll_back(KaArena *arena, KaHelper *helper, const KaRollbackOptions *options, const char **problem)
{
	KaRequest	request = {
		.operation = KA_OP_ROLLBACK,
		.node = KA_ALL_NODES,
		.value = options->change,
		.flags = options->force ? KA_FLAG_FORCE : 0,
	};
	const KaKnob *knob;
	KaReply		reply;
	int			code;

	if (!ka_helper_call(helper, &request, &reply, problem))
		return KA_EXIT_TROUBLE;
	knob = ka_knob_find(reply.knob);
	code = exit_code(reply.status);
	if (options->json)
	{
		json_t	   *document = change_document(arena, &reply);

		if (document == NULL || json_dumpf(document, stdout, JSON_INDENT(2)) != 0)
			*problem = "the result could not be written";
		putchar('\n');
		json_decref(document);
	}
	else if (code == KA_EXIT_FULL || code == KA_EXIT_PARTIAL)
		printf("Change %" PRId64 " is rolled back%s: %s is %s (change %" PRIu64 ").\n", options->change,
			   code == KA_EXIT_PARTIAL ? " in part" : "", subject_text(arena, &reply),
			   value_text(arena, knob, reply.granted), reply.change);
	else
	{
		fprintf(stderr, "kernel_advisor: change %" PRId64 " is not rolled back: %s\n", options->change,
				ka_status_text(reply.status));
		if (reply.status == KA_ST_SUPERSEDED)
			fprintf(stderr, "kernel_advisor: %s is %s now; --force puts %s back all the same, as root\n",
					subject_text(arena, &reply), value_text(arena, knob, reply.old), value_text(arena, knob, reply.asked));
	}
	return *problem ? KA_EXIT_TROUBLE : code;
}

int
ka_rollback(KaArena *arena, const KaRollbackOptions *options)
{
	const char *problem = NULL;
	KaHelper   *helper = ka_helper_open(arena, options->socket, KA_HELPER_CHANGE, &problem);
	int			status = KA_EXIT_NOTHING;

	if (helper == NULL)
		return ka_trouble(problem);
	ka_note(ka_helper_note(helper));
	if (options->change > 0)
		status = roll_back(arena, helper, options, &problem);
	else if (!list(arena, helper, options->json, &problem))
		status = KA_EXIT_TROUBLE;
	ka_helper_close(helper);
	if (problem != NULL || arena->failed)
		return ka_trouble(problem);
	return fflush(stdout) == 0 ? status : ka_trouble("the result could not be written");
}
