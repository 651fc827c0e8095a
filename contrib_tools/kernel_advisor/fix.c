/*
 * fix.c: from a row of advice to the command that follows it.
 *
 * A rule's own command works everywhere, with what every machine has.  Here are
 * the commands of this project instead, which verify what the kernel granted
 * and can be undone:
 *
 *	a pool that must grow	kernel_advisor reserve, now; SQL for the next boot
 *	another kernel setting	SQL apply(), through the root helper
 *	a PostgreSQL setting	SQL apply(); the file, while the server is down
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "fix.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "knobs.h"
#include "output.h"
#include "protocol.h"
#include "rules.h"

/* Pages of this size are reserved by the kernel command line, which the rule's command names. */
#define BOOT_ONLY_BYTES GIB

typedef struct Fix
{
	KaArena    *arena;
	const KaFacts *facts;
	const KaCluster *cluster;
	const KaView *view;
	const char *where;			/* added to what is said of a kernel setting */
	int			printed;
} Fix;

/* For a shell: in single quotes, whatever it contains. */
static const char *
shell_quoted(KaArena *arena, const char *text)
{
	const char *quoted = "'";

	for (; *text != '\0' && quoted != NULL; text++)
		quoted = *text == '\'' ? ka_printf(arena, "%s'\\''", quoted) : ka_printf(arena, "%s%c", quoted, *text);
	return ka_printf(arena, "%s'", quoted ? quoted : "");
}

/* For SQL with standard_conforming_strings, which is the default. */
static const char *
sql_quoted(KaArena *arena, const char *text)
{
	const char *quoted = "'";

	for (; *text != '\0' && quoted != NULL; text++)
		quoted = *text == '\'' ? ka_printf(arena, "%s''", quoted) : ka_printf(arena, "%s%c", quoted, *text);
	return ka_printf(arena, "%s'", quoted ? quoted : "");
}

/* This program, as root finds it: in the server's own directory it is in nobody's PATH. */
static const char *
program(KaArena *arena)
{
	static const char *const usual[] = {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"};
	char		path[PATH_MAX];
	ssize_t		length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *slash;

	if (length <= 0)
		return "kernel_advisor";
	path[length] = '\0';
	slash = strrchr(path, '/');
	for (size_t i = 0; i < KA_LENGTH(usual); i++)
	{
		if (strlen(usual[i]) == (size_t) (slash + 1 - path) && strncmp(path, usual[i], strlen(usual[i])) == 0)
			return ka_strdup(arena, slash + 1);
	}
	return path[strcspn(path, " '\"\\$&;()<>|*?[]~#`!{}\t\n")] == '\0' ? ka_strdup(arena, path) : shell_quoted(arena, path);
}

static void
print_fix(Fix *fix, const char *command, const char *remark)
{
	if (fix->printed++ == 0)
		puts("\nFix");
	ka_print_lines(command, 2);
	ka_print_wrapped(remark, 6);
}

static const char *
apply_command(Fix *fix, const KaAdvice *row)
{
	return ka_printf(fix->arena, "SELECT * FROM kernel_advisor.apply(%s, %s);",
					 sql_quoted(fix->arena, row->subject), sql_quoted(fix->arena, row->recommended));
}

/* When a statement can be given. */
static const char *
when(const Fix *fix)
{
	return fix->cluster->pid != 0 ? "" : ", once the server runs";
}

static bool
grows(const KaAdvice *row, int64_t *from, int64_t *to)
{
	const char *p = row->current ? row->current : "0";
	const char *q = row->recommended;

	return ka_parse_number(&p, p + strlen(p), from) && ka_parse_number(&q, q + strlen(q), to) && *to > *from;
}

/* A pool: before the start, by the program that the start can call itself. */
static void
fix_pool(Fix *fix, const KaAdvice *row, const KaKnob *knob, int node)
{
	KaArena    *arena = fix->arena;
	int64_t		page_bytes = knob->page_bytes > 0 ? knob->page_bytes : ka_int(fix->facts, KA_HP_DEFAULT_SIZE);
	int64_t		from,
				to;

	if (!grows(row, &from, &to) || page_bytes <= 0 || page_bytes != fix->view->page_size || node != KA_ALL_NODES)
	{
		print_fix(fix, apply_command(fix, row),
				  ka_printf(arena, "in SQL%s: %s from %s to %s%s", when(fix), row->subject,
							row->current ? row->current : "what it is", row->recommended, fix->where));
		return;
	}
	print_fix(fix, ka_printf(arena, "sudo %s reserve -D %s", program(arena), shell_quoted(arena, fix->cluster->path)),
			  ka_printf(arena, "%s from %lld to %lld pages of %s (%s more)%s; then start the server%s%s",
						row->subject, (long long) from, (long long) to, ka_human(arena, page_bytes),
						ka_human(arena, ka_mul(to - from, page_bytes)),
						fix->view->pool_grantable == KA_UNKNOWN ? "" :
						ka_printf(arena, "; %lld pages are free blocks now, --estimate tells more",
								  (long long) fix->view->pool_grantable),
						fix->cluster->pid != 0 ? " anew" : "", fix->where));
	if (page_bytes >= BOOT_ONLY_BYTES)
		return;
	print_fix(fix, apply_command(fix, row),
			  ka_printf(arena, "in SQL%s: the same for each boot; or let each start reserve: postgresql-reserve.conf, see kernel_advisor(1)",
						when(fix)));
}

/* The owner's name, who may write the file. */
static const char *
owner(const Fix *fix)
{
	const struct passwd *user = getpwuid(fix->cluster->owner);

	return user ? ka_strdup(fix->arena, user->pw_name) : ka_printf(fix->arena, "\\#%u", (unsigned) fix->cluster->owner);
}

static void
fix_setting(Fix *fix, const KaAdvice *row)
{
	static const char *const activations[] = {
		[KA_NONE] = "", [KA_RELOAD] = "", [KA_RESTART] = "; then restart it",[KA_REBOOT] = "; then reboot",
	};
	KaArena    *arena = fix->arena;
	const char *line;

	if (fix->cluster->pid != 0)
	{
		print_fix(fix, apply_command(fix, row),
				  ka_printf(arena, "in SQL: %s from %s to %s%s", row->subject,
							row->current ? row->current : "what it is", row->recommended, activations[row->activation]));
		return;
	}
	line = ka_printf(arena, "%s = %s", row->subject, sql_quoted(arena, row->recommended));
	print_fix(fix, ka_printf(arena, "echo %s | sudo -u %s tee -a %s", shell_quoted(arena, line), owner(fix),
							 shell_quoted(arena, ka_printf(arena, "%s/postgresql.auto.conf", fix->cluster->path))),
			  ka_printf(arena, "%s from %s to %s: what ALTER SYSTEM writes, while the server is down",
						row->subject, row->current ? row->current : "what it is", row->recommended));
}

/* A setting of the server: a plain name, and the rule says how to set it. */
static bool
is_setting(const KaAdvice *row)
{
	return strchr(row->subject, '.') == NULL && row->command != NULL &&
		(strncmp(row->command, "ALTER SYSTEM ", 13) == 0 || strstr(row->command, "postgresql.auto.conf") != NULL);
}

/* Has an earlier row said the same? */
static bool
is_repeated(const KaAdvice *const *rows, size_t i)
{
	for (size_t j = 0; j < i; j++)
	{
		if (rows[j]->recommended && strcmp(rows[j]->subject, rows[i]->subject) == 0 &&
			strcmp(rows[j]->recommended, rows[i]->recommended) == 0)
			return true;
	}
	return false;
}

void
ka_print_fixes(KaArena *arena, const KaFacts *facts, const KaCluster *cluster, const KaAdvice *const *rows, size_t count)
{
	KaView		view;
	Fix			fix = {.arena = arena,.facts = facts,.cluster = cluster,.view = &view};

	/* Another machine's files, or a service: the rules' commands say where. */
	if (cluster->root[0] != '\0' || ka_known(facts, KA_PG_MANAGED))
		return;
	ka_view_init(&view, facts, arena);
	fix.where = view.container ? "; the kernel is the host's: here only where this container may write /proc/sys" : "";
	for (size_t i = 0; i < count; i++)
	{
		const KaAdvice *row = rows[i];
		const KaKnob *knob;
		int			node;

		if (row->recommended == NULL || row->subject == NULL || is_repeated(rows, i))
			continue;
		knob = ka_knob_by_subject(row->subject, &node);
		if (knob && (knob->flags & KA_KF_POOL))
			fix_pool(&fix, row, knob, node);
		else if (knob)
			print_fix(&fix, apply_command(&fix, row),
					  ka_printf(arena, "in SQL%s: %s from %s to %s%s", when(&fix), row->subject,
								row->current ? row->current : "what it is", row->recommended, fix.where));
		else if (is_setting(row))
			fix_setting(&fix, row);
	}
}
