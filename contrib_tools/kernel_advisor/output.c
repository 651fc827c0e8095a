/*
 * output.c: facts and advice for people and for programs.
 *
 * Invariants: nothing but the document goes to stdout as JSON; colour and line
 * breaks are for terminals only, so that pipes get one line per sentence; no
 * byte from a fact file or a kernel file reaches a terminal as a control code.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "output.h"
#include "json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP 2					/* spaces between columns */
#define INDENT 4				/* of what belongs to a row */

static const struct
{
	const char *colour;			/* SGR parameters */
	const char *plural;
}			severities[] = {
	[KA_CRITICAL] = {"1;31", "critical"},
	[KA_WARNING] = {"33", "warnings"},
	[KA_INFO] = {"36", "info"},
	[KA_OK] = {"32", "ok"},
};

/*
 * Programs
 */

bool
ka_print_facts(KaArena *arena, const KaFacts *facts)
{
	KaJsonSink	sink;
	KaJsonBuilder *builder = ka_json_builder(arena, &sink);

	if (builder == NULL)
		return false;
	(void) ka_facts_encode(facts, &sink);
	return ka_json_print(ka_json_finish(builder));
}

static bool
put_text(const KaJsonSink *sink, const char *key, const char *text)
{
	return sink->key(sink->ctx, key) &&
		(text ? sink->string(sink->ctx, text) : sink->null(sink->ctx));
}

static bool
put_advice(const KaJsonSink *sink, const KaAdvice *row, const KaFacts *facts)
{
	return sink->begin_object(sink->ctx) &&
		put_text(sink, "rule", row->rule) &&
		put_text(sink, "severity", ka_severity_name(row->severity)) &&
		put_text(sink, "subject", row->subject) &&
		put_text(sink, "current", row->current) &&
		put_text(sink, "recommended", row->recommended) &&
		put_text(sink, "reason", row->reason) &&
		sink->key(sink->ctx, "evidence") &&
		ka_evidence_encode(row, facts, sink) &&
		put_text(sink, "confidence", ka_confidence_name(row->confidence)) &&
		put_text(sink, "activation", ka_activation_name(row->activation)) &&
		put_text(sink, "command", row->command) &&
		sink->end_object(sink->ctx);
}

bool
ka_print_advice_json(KaArena *arena, const KaFacts *facts, const KaAdvice *const *rows, size_t count)
{
	KaJsonSink	sink;
	KaJsonBuilder *builder = ka_json_builder(arena, &sink);
	bool		good;

	if (builder == NULL)
		return false;
	good = sink.begin_array(sink.ctx);
	for (size_t i = 0; good && i < count; i++)
		good = put_advice(&sink, rows[i], facts);
	good = good && sink.end_array(sink.ctx);
	return ka_json_print(ka_json_finish(builder)) && good;
}

/*
 * People
 */

static bool
is_terminal(void)
{
	return isatty(STDOUT_FILENO);
}

/* https://no-color.org: set and not empty. */
static bool
with_colour(void)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return is_terminal() && (no_color == NULL || *no_color == '\0') &&
		term != NULL && strcmp(term, "dumb") != 0;
}

/* Columns of the terminal; 0: as long as it takes. */
static int
line_width(void)
{
	struct winsize size;

	if (!is_terminal())
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
		return size.ws_col < 120 ? size.ws_col : 120;
	return 80;
}

/* Characters of UTF-8, wide ones counted once: names of rules and knobs are ASCII. */
static int
text_width(const char *text)
{
	int			width = 0;

	for (const char *p = text; *p != '\0'; p++)
		width += ((unsigned char) *p & 0xC0) != 0x80;
	return width;
}

/* C0 and DEL; C1 as UTF-8 (0xC2 0x80 .. 0x9F).  Line ends are the caller's affair. */
static void
print_safe(FILE *stream, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
	{
		unsigned char c = (unsigned char) text[i];

		if (c == '\t')
			fputc(' ', stream);
		else if (c < 0x20 || c == 0x7F)
			fputc('?', stream);
		else if (c == 0xC2 && i + 1 < length && (unsigned char) text[i + 1] >= 0x80 &&
				 (unsigned char) text[i + 1] <= 0x9F)
		{
			fputc('?', stream);
			i++;
		}
		else
			fputc(c, stream);
	}
}

void
ka_print_safe(FILE *stream, const char *text)
{
	if (text != NULL)
		print_safe(stream, text, strlen(text));
}

void
ka_print_wrapped(const char *text, int indent)
{
	int			width = line_width();
	int			column = 0;

	if (text == NULL)
		return;
	while (*text != '\0')
	{
		size_t		length = strcspn(text, " ");
		char		word[256];
		int			needed;

		snprintf(word, sizeof(word), "%.*s", (int) (length < sizeof(word) ? length : sizeof(word) - 1), text);
		needed = text_width(word);
		if (column > 0 && width > 0 && column + 1 + needed > width)
		{
			fputc('\n', stdout);
			column = 0;
		}
		if (column == 0)
			column = printf("%*s", indent, "");
		else
			column += printf(" ");
		print_safe(stdout, text, length);
		column += needed;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', stdout);
}

void
ka_print_lines(const char *text, int indent)
{
	for (const char *p = text; *p != '\0';)
	{
		size_t		length = strcspn(p, "\n");

		printf("%*s", indent, "");
		print_safe(stdout, p, length);
		fputc('\n', stdout);
		p += length;
		p += *p == '\n';
	}
}

static void
print_column(const char *text, int width)
{
	ka_print_safe(stdout, text);
	printf("%*s", width - text_width(text) + GAP, "");
}

/* "100 -> 3208", "100", "-> 3208", or nothing. */
static void
print_change(const KaAdvice *row)
{
	if (row->current != NULL)
		ka_print_safe(stdout, row->current);
	if (row->recommended != NULL)
	{
		fputs(row->current != NULL ? " -> " : "-> ", stdout);
		ka_print_safe(stdout, row->recommended);
	}
}

static void
print_row(const KaAdvice *row, const int widths[3], bool colour)
{
	const char *severity = ka_severity_name(row->severity);

	if (colour)
		printf("\033[%sm", severities[row->severity].colour);
	fputs(severity, stdout);
	if (colour)
		printf("\033[0m");
	printf("%*s", widths[0] - text_width(severity) + GAP, "");
	print_column(row->rule, widths[1]);
	if (row->current != NULL || row->recommended != NULL)
	{
		print_column(row->subject ? row->subject : "", widths[2]);
		print_change(row);
	}
	else
		ka_print_safe(stdout, row->subject);
	fputc('\n', stdout);
	ka_print_wrapped(row->reason, INDENT);

	/* A command is one line, to be copied. */
	if (row->command != NULL)
	{
		for (const char *p = row->command; *p != '\0';)
		{
			size_t		length = strcspn(p, "\n");

			printf("%*s$ ", INDENT, "");
			print_safe(stdout, p, length);
			fputc('\n', stdout);
			p += length;
			p += *p == '\n';
		}
	}
}

void
ka_print_advice(const KaAdvice *const *rows, size_t count)
{
	int			widths[3] = {0};
	int			numbers[KA_LENGTH(severities)] = {0};
	bool		colour = with_colour();
	bool		first = true;

	for (size_t i = 0; i < count; i++)
	{
		const char *columns[3] = {ka_severity_name(rows[i]->severity), rows[i]->rule, rows[i]->subject};

		for (size_t c = 0; c < KA_LENGTH(columns); c++)
		{
			int			width = columns[c] ? text_width(columns[c]) : 0;

			if (width > widths[c])
				widths[c] = width;
		}
		numbers[rows[i]->severity]++;
	}

	for (size_t i = 0; i < count; i++)
	{
		print_row(rows[i], widths, colour);
		fputc('\n', stdout);
	}
	for (size_t s = 0; s < KA_LENGTH(severities); s++)
	{
		if (numbers[s] == 0)
			continue;
		printf("%s%d %s", first ? "" : ", ", numbers[s],
			   numbers[s] == 1 ? ka_severity_name((KaSeverity) s) : severities[s].plural);
		first = false;
	}
	puts(first ? "No advice: nothing is known that a rule speaks about." : "");
}

const char *
ka_size_text(KaArena *arena, int64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double		value = (double) bytes;
	size_t		unit = 0;

	while (value >= 1024 && unit + 1 < KA_LENGTH(units))
	{
		value /= 1024;
		unit++;
	}
	if (unit == 0)
		return ka_printf(arena, "%" PRId64 " bytes", bytes);
	return ka_printf(arena, "%.4g %s (%" PRId64 " bytes)", value, units[unit], bytes);
}
