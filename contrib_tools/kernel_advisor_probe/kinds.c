/*
 * kinds.c: recognises PostgreSQL's processes by their titles.
 *
 * All have the name "postgres"; the title, which a server sets whether or not
 * update_process_title is on, says more.  It is one of
 *
 *	postgres: KIND [activity]
 *	postgres: USER DATABASE [local] ACTIVITY	or HOST(PORT) instead of [local]
 *	postgres: walsender USER [local] ACTIVITY	the same; logical ones with DATABASE
 *
 * with cluster_name and ": " after "postgres: " when that is set.  A title is
 * what any process can choose: it puts a row into a table for people.  A server
 * that reads the file finds its own processes by PID and parent.
 */
#define _GNU_SOURCE 1

#include <stdbool.h>
#include <string.h>

#include "kinds.h"

typedef struct KaTitle
{
	const char *text;
	bool		whole;			/* nothing may follow: these never show an activity, and a user may have the name */
	KaProbeKind kind;
} KaTitle;

/* As GetBackendTypeDesc() and the names of the server's own workers have it, 15 to 18. */
static const KaTitle titles[] = {
	{"checkpointer", true, KA_KIND_CHECKPOINTER},
	{"walwriter", true, KA_KIND_WALWRITER},
	{"background writer", true, KA_KIND_BGWRITER},
	{"autovacuum worker", false, KA_KIND_AUTOVACUUM},
	{"parallel worker for PID ", false, KA_KIND_PARALLEL},
	{"walreceiver", false, KA_KIND_WALRECEIVER},
	{"startup", false, KA_KIND_STARTUP},
	{"io worker", false, KA_KIND_IO_WORKER},
	{"autovacuum launcher", false, KA_KIND_SERVER},
	{"logical replication ", false, KA_KIND_SERVER},
	{"archiver", false, KA_KIND_SERVER},
	{"logger", false, KA_KIND_SERVER},
};

/* A client's: the third word is "[local]" or ends in "(port)". */
static bool
is_backend(const char *text, size_t length)
{
	const char *end = text + length;

	for (int word = 1; word < 3; word++)
	{
		text = memchr(text, ' ', (size_t) (end - text));
		if (text == NULL)
			return false;
		text++;
	}
	length = (size_t) (end - text);
	if (memchr(text, ' ', length))
		length = (size_t) ((const char *) memchr(text, ' ', length) - text);
	if (length == strlen("[local]") && memcmp(text, "[local]", length) == 0)
		return true;
	return length >= 4 && text[length - 1] == ')' && memchr(text, '(', length);
}

static KaProbeKind
kind_of(const char *text, size_t length)
{
	static const char walsender[] = "walsender ";

	/* Like a client's, with this in front. */
	if (length >= sizeof(walsender) - 1 && memcmp(text, walsender, sizeof(walsender) - 1) == 0)
		return KA_KIND_WALSENDER;
	if (is_backend(text, length))
		return KA_KIND_BACKEND;
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
	{
		size_t		n = strlen(titles[i].text);

		if (length >= n && memcmp(text, titles[i].text, n) == 0 && (length == n || !titles[i].whole))
			return titles[i].kind;
	}
	return KA_KIND_SERVER;
}

KaProbeKind
ka_kind_of_title(const char *title, size_t length)
{
	static const char prefix[] = "postgres: ";
	const size_t n = sizeof(prefix) - 1;
	const char *colon;
	KaProbeKind kind;

	length = strnlen(title, length);
	while (length > 0 && title[length - 1] == ' ')
		length--;				/* an activity that is not there */
	if (length < n || memcmp(title, prefix, n) != 0)
		return KA_KIND_OTHER;
	title += n;
	length -= n;
	kind = kind_of(title, length);
	if (kind != KA_KIND_SERVER)
		return kind;
	/* With cluster_name; its last ": " is not known, so each is tried. */
	while ((colon = memmem(title, length, ": ", 2)) != NULL)
	{
		length -= (size_t) (colon + 2 - title);
		title = colon + 2;
		kind = kind_of(title, length);
		if (kind != KA_KIND_SERVER)
			return kind;
	}
	return KA_KIND_SERVER;
}
