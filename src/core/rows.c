/*
 * rows.c: how rules make their rows: texts, evidence, and what to type.
 *
 * Every kernel knob passes through ka_set_knob, ka_set_pool, ka_set_thp or
 * ka_host_command, which alone decide whether a value may be recommended here
 * and whether a command may be printed; no rule can forget it.
 *
 * Facts may come from a file of another machine.  A text of theirs enters a
 * command only when a shell would take it as one plain word.
 *
 * Locks: none.
 */
#include "own_files.h"
#include "rules.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

KaAdvice *
ka_row(KaRows *rows, KaSeverity severity, const char *subject)
{
	KaAdvice   *row = ka_alloc(rows->arena, sizeof(KaAdvice));
	size_t		count = rows->count;
	KaAdvice  **grown = ka_append(rows->arena, rows->rows, &count, sizeof(KaAdvice *));

	if (row == NULL || grown == NULL)
		return NULL;
	row->rule = rows->rule;
	row->severity = severity;
	row->subject = subject ? subject : rows->rule;
	row->confidence = KA_INFERRED;
	grown[count - 1] = row;
	rows->rows = grown;
	rows->count = count;
	return row;
}

bool
ka_is_recommended(const KaRows *rows, const char *subject)
{
	for (size_t i = 0; subject && i < rows->first; i++)
	{
		if (rows->rows[i]->recommended && strcmp(rows->rows[i]->subject, subject) == 0)
			return true;
	}
	return false;
}

#define FORMATTED(result) \
	do { \
		va_list		args_; \
		va_start(args_, format); \
		(result) = ka_vprintf(rows->arena, format, args_); \
		va_end(args_); \
	} while (0)

void
ka_reason(KaRows *rows, KaAdvice *row, const char *format,...)
{
	if (row)
		FORMATTED(row->reason);
}

void
ka_current(KaRows *rows, KaAdvice *row, const char *format,...)
{
	if (row)
		FORMATTED(row->current);
}

void
ka_recommend(KaRows *rows, KaAdvice *row, const char *format,...)
{
	if (row)
		FORMATTED(row->recommended);
}

void
ka_command(KaRows *rows, KaAdvice *row, const char *format,...)
{
	if (row)
		FORMATTED(row->command);
}

/* The kernel of a container is the host's. */
static const char *
host_remark(const KaView *view)
{
	return view->container ? "# on the host:\n" : "";
}

void
ka_host_command(KaRows *rows, KaAdvice *row, const char *format,...)
{
	const char *text;

	if (row == NULL || !rows->view->may_set)
		return;
	FORMATTED(text);
	if (text)
		row->command = ka_printf(rows->arena, "%s%s", host_remark(rows->view), text);
}

void
ka_command_before(KaRows *rows, KaAdvice *row, const char *line)
{
	size_t		length = strlen(host_remark(rows->view));

	if (row && row->command)
		row->command = ka_printf(rows->arena, "%s%s\n%s", host_remark(rows->view), line, row->command + length);
}

/*
 * Evidence.
 */

static void
add_evidence(KaRows *rows, KaAdvice *row, const char *name, bool threshold, KaType type, KaValue value)
{
	KaEvidence *grown;

	if (row == NULL || name == NULL)
		return;
	for (size_t i = 0; i < row->nevidence; i++)
	{
		if (row->evidence[i].threshold == threshold && strcmp(row->evidence[i].name, name) == 0)
			return;
	}
	grown = ka_append(rows->arena, row->evidence, &row->nevidence, sizeof(KaEvidence));
	if (grown == NULL)
		return;
	row->evidence = grown;
	grown[row->nevidence - 1] = (KaEvidence) {
		.threshold = threshold,.name = name,.type = type,.value = value
	};
}

void
ka_saw(KaRows *rows, KaAdvice *row, KaFact fact)
{
	const KaFacts *facts = rows->view->facts;

	if (!ka_known(facts, fact))
		return;
	add_evidence(rows, row, ka_fact_info[fact].path, false, ka_fact_info[fact].type, facts->v[fact]);
	/* What was counted over a time on this machine is a measurement. */
	if (row && fact >= KA_W_SECONDS && fact <= KA_W_LATENCY)
		row->confidence = KA_MEASURED;
}

void
ka_saw_each(KaRows *rows, KaAdvice *row, const KaFact *facts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ka_saw(rows, row, facts[i]);
}

void
ka_observed(KaRows *rows, KaAdvice *row, const char *name, int64_t value)
{
	if (value != KA_UNKNOWN)
		add_evidence(rows, row, name, false, KA_INT,
					 (KaValue) {.known = true,.i = value,.r = (double) value});
}

void
ka_observed_real(KaRows *rows, KaAdvice *row, const char *name, double value)
{
	if (value >= 0)
		add_evidence(rows, row, name, false, KA_REAL, (KaValue) {.known = true,.r = value});
}

void
ka_observed_text(KaRows *rows, KaAdvice *row, const char *name, const char *value)
{
	if (value)
		add_evidence(rows, row, name, false, KA_TEXT, (KaValue) {.known = true,.s = value});
}

void
ka_saw_pool(KaRows *rows, KaAdvice *row)
{
	const KaView *v = rows->view;

	KA_SAW(rows, row, KA_PG_HUGE_PAGES, KA_PG_HUGE_PAGES_STATUS);
	ka_observed(rows, row, "shared_memory_bytes", v->shared);
	ka_observed(rows, row, "page_size_bytes", v->page_size);
	ka_observed(rows, row, "pool_total", v->pool_total);
	ka_observed(rows, row, "pool_free", v->pool_free);
	if (v->pool_known)
		ka_observed(rows, row, "pool_reserved", v->pool_reserved);
	ka_observed(rows, row, "pool_available", v->pool_available);
	if (v->consumers > 0)
		ka_observed(rows, row, "consumers_pages", v->consumers);
	if (v->need_plan != KA_UNKNOWN)
		ka_limit_named(rows, row, v->need_estimated ? "needed_pages_estimated" : "needed_pages",
					   (double) v->need_plan);
}

void
ka_limit(KaRows *rows, KaAdvice *row, KaThreshold threshold)
{
	const KaThresholdInfo *info = &ka_threshold_info[threshold];
	char	   *name = ka_strdup(rows->arena, info->symbol);

	for (char *p = name; p && *p; p++)
		*p = (char) tolower((unsigned char) *p);
	ka_limit_named(rows, row, name, info->value);
}

void
ka_limit_each(KaRows *rows, KaAdvice *row, const KaThreshold *thresholds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ka_limit(rows, row, thresholds[i]);
}

void
ka_limit_named(KaRows *rows, KaAdvice *row, const char *name, double value)
{
	/* A whole number prints as one: 1073741824, not 1.07374e+09. */
	if (value >= 0 && value < 9e15 && value == (double) (int64_t) value)
		add_evidence(rows, row, name, true, KA_INT,
					 (KaValue) {.known = true,.i = (int64_t) value,.r = value});
	else
		add_evidence(rows, row, name, true, KA_REAL, (KaValue) {.known = true,.r = value});
}

/*
 * Numbers as texts.
 */

const char *
ka_setting(KaArena *arena, int64_t bytes)
{
	static const struct
	{
		int64_t		size;
		const char *unit;
	}			units[] = {{1024 * GIB, "TB"}, {GIB, "GB"}, {MIB, "MB"}, {KIB, "kB"}};

	for (size_t i = 0; i < KA_LENGTH(units); i++)
	{
		if (bytes >= units[i].size && bytes % units[i].size == 0)
			return ka_printf(arena, "%lld%s", (long long) (bytes / units[i].size), units[i].unit);
	}
	return ka_printf(arena, "%lldB", (long long) bytes);
}

const char *
ka_human(KaArena *arena, int64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	double		value = (double) bytes;
	size_t		unit = 0;

	while (value >= 1024 && unit + 1 < KA_LENGTH(units))
	{
		value /= 1024;
		unit++;
	}
	return ka_printf(arena, value < 10 && unit > 0 && value != (double) (int) value ? "%.1f %s" : "%.0f %s",
					 value, units[unit]);
}

/*
 * Commands.
 */

/* One plain word for a shell? */
static bool
is_plain(const char *text)
{
	if (text == NULL || *text == '\0' || *text == '-')
		return false;
	for (const char *p = text; *p; p++)
	{
		if (!isalnum((unsigned char) *p) && strchr("/._-+@", *p) == NULL)
			return false;
	}
	return true;
}

/*
 * A line in the own file, which is the helper's; or an edit of the file that
 * would win over it.  A package's file (/usr/lib, /run) is not edited but
 * replaced by one of its name in /etc.
 */
const char *
ka_persist(const KaRows *rows, KaSysctl knob, int64_t value)
{
	const char *name = ka_sysctl_info[knob].name;
	const KaBootSysctl *boot = &rows->view->facts->boot[knob];
	const char *base = boot->file ? strrchr(boot->file, '/') : NULL;

	base = base ? base + 1 : boot->file;
	if (boot->known && boot->value != KA_UNKNOWN && base && strcmp(base, KA_SYSCTL_FILE) >= 0 && is_plain(boot->file))
	{
		/* "vm.x", "vm/x" and "-vm.x" are the same to sysctl(8); 99-sysctl.conf is often a link. */
		const char *dot = strchr(name, '.');

		bool		package = strncmp(boot->file, "/etc/", 5) != 0;

		return ka_printf(rows->arena, "sed %s-E 's|^[[:space:]]*-?%.*s[./]%s[[:space:]]*=.*|%s = %lld|' %s%s%s",
						 package ? "" : "-i --follow-symlinks ",
						 (int) (dot - name), name, dot + 1, name, (long long) value, boot->file,
						 package ? " > " KA_SYSCTL_DIRECTORY "/" : "", package ? base : "");
	}
	return ka_printf(rows->arena, "echo '%s = %lld' >> " KA_SYSCTL_DIRECTORY "/" KA_SYSCTL_FILE, name, (long long) value);
}

void
ka_set_knob(KaRows *rows, KaAdvice *row, KaSysctl knob, int64_t value)
{
	const KaSysctlInfo *info = &ka_sysctl_info[knob];
	KaFact		fact = (KaFact) (KA_SYSCTL_NR_HUGEPAGES + (int) knob);

	if (row == NULL)
		return;
	if (ka_known(rows->view->facts, fact))
		ka_current(rows, row, "%lld", (long long) ka_int(rows->view->facts, fact));
	ka_saw(rows, row, fact);
	if (value == KA_UNKNOWN || !rows->view->may_set)
		return;
	ka_recommend(rows, row, "%lld", (long long) value);
	/* A pool may be granted in part, and sysctl -w prints what was asked for. */
	ka_host_command(rows, row, "sysctl -w %s=%lld && %s%s",
					info->name, (long long) value, ka_persist(rows, knob, value),
					knob == KA_KNOB_NR_HUGEPAGES ? " && sysctl vm.nr_hugepages  # what was granted" : "");
}

const char *
ka_pool_subject(const KaView *view, int64_t size_bytes)
{
	if (size_bytes == KA_UNKNOWN || size_bytes == view->default_size)
		return "vm.nr_hugepages";
	return ka_printf(view->arena, "hugepages-%lldkB.nr_hugepages", (long long) (size_bytes / 1024));
}

/* "1G" or "2M", as the kernel command line takes a page size. */
static const char *
boot_size(KaArena *arena, int64_t size_bytes)
{
	if (size_bytes % GIB == 0)
		return ka_printf(arena, "%lldG", (long long) (size_bytes / GIB));
	if (size_bytes % MIB == 0)
		return ka_printf(arena, "%lldM", (long long) (size_bytes / MIB));
	return ka_printf(arena, "%lldK", (long long) (size_bytes / KIB));
}

void
ka_set_pool(KaRows *rows, KaAdvice *row, int64_t size_bytes, int64_t pages)
{
	const KaView *view = rows->view;
	const KaPool *pool = ka_pool(view->facts, size_bytes);
	const char *path;

	if (row == NULL)
		return;
	if (size_bytes == KA_UNKNOWN || size_bytes == view->default_size)
	{
		ka_set_knob(rows, row, KA_KNOB_NR_HUGEPAGES, pages);
		if (row->current == NULL && pool && pool->total != KA_UNKNOWN)
			ka_current(rows, row, "%lld", (long long) ka_sub(pool->total, ka_or_zero(pool->surplus)));
		return;
	}

	if (pool && pool->total != KA_UNKNOWN)
		ka_current(rows, row, "%lld", (long long) ka_sub(pool->total, ka_or_zero(pool->surplus)));
	if (pages == KA_UNKNOWN || !view->may_set)
		return;
	path = ka_printf(rows->arena, "/sys/kernel/mm/hugepages/hugepages-%lldkB/nr_hugepages",
					 (long long) (size_bytes / 1024));
	ka_recommend(rows, row, "%lld", (long long) pages);
	ka_host_command(rows, row, "echo %lld > %s && cat %s\n# for the next boot, kernel arguments: hugepagesz=%s hugepages=%lld",
					(long long) pages, path, path, boot_size(rows->arena, size_bytes), (long long) pages);
}

void
ka_set_thp(KaRows *rows, KaAdvice *row, const char *file, KaFact current, const char *value)
{
	if (row == NULL)
		return;
	if (ka_known(rows->view->facts, current))
		ka_current(rows, row, "%s", ka_text(rows->view->facts, current));
	ka_saw(rows, row, current);
	if (value == NULL || !rows->view->may_set)
		return;
	ka_recommend(rows, row, "%s", value);

	/*
	 * Of several "w" lines for one path the first counts, in the order of file
	 * names and of lines: so a file of its own for each, overwritten, and early.
	 */
	ka_host_command(rows, row, "echo %s > /sys/kernel/mm/transparent_hugepage/%s && "
					"echo 'w /sys/kernel/mm/transparent_hugepage/%s - - - - %s' > /etc/tmpfiles.d/00-pg_kernel_advisor-%s.conf",
					value, file, file, value, file);
}

void
ka_set_guc(KaRows *rows, KaAdvice *row, const char *name, const char *current, const char *value,
		   KaActivation activation)
{
	if (row == NULL)
		return;
	if (current)
		ka_current(rows, row, "%s", current);
	if (value == NULL)
		return;
	ka_recommend(rows, row, "%s", value);
	row->activation = activation;
	if (rows->view->managed)
		ka_command(rows, row, "-- in the service's parameter settings: %s = '%s'", name, value);
	else if (rows->view->down)
		ka_command(rows, row, "echo \"%s = '%s'\" >> \"$PGDATA/postgresql.auto.conf\"", name, value);
	else
		ka_command(rows, row, "ALTER SYSTEM SET %s = '%s';%s", name, value,
				   activation == KA_RELOAD ? " SELECT pg_reload_conf();" : " -- then restart the server");
}
