/*
 * boot_parse.c: lines of sysctl.d and tmpfiles.d, and the kernel command line.
 *
 * Sources: sysctl.d(5), tmpfiles.d(5), sysctl.conf(5); for huge pages
 * Documentation/admin-guide/mm/hugetlbpage.rst and mm/hugetlb.c.
 *
 * Locks: none; nothing is allocated.
 */
#define _GNU_SOURCE 1

#include <string.h>

#include "boot.h"

/* Copies a span; false when it does not fit. */
static bool
copy(KaSpan span, char *text, size_t size)
{
	if (span.length >= size || memchr(span.at, '\0', span.length) != NULL)
		return false;
	memcpy(text, span.at, span.length);
	text[span.length] = '\0';
	return true;
}

static bool
is_pattern(const char *text)
{
	return strpbrk(text, "*?[") != NULL;
}

/*
 * When the first separator is a dot, dots and slashes change places; when it
 * is a slash, everything stays as it is.
 */
static void
normalize_key(char *key)
{
	char	   *first = strpbrk(key, "/.");

	if (first == NULL || *first == '/')
		return;
	for (char *c = first; *c; c++)
	{
		if (*c == '.')
			*c = '/';
		else if (*c == '/')
			*c = '.';
	}
}

bool
ka_parse_sysctl_line(KaSpan line, KaSysctlLine *setting)
{
	bool		minus;
	KaSpan		key;

	line = ka_trim(line);
	if (line.length == 0 || line.at[0] == '#' || line.at[0] == ';')
		return false;
	minus = line.at[0] == '-';
	setting->assigns = memchr(line.at, '=', line.length) != NULL;

	/* "-key = value" may fail quietly; "-key" alone is an exclusion. */
	if (!setting->assigns && !minus)
		return false;
	key = ka_next_field(&line, '=');
	if (minus)
		key = ka_skip(key, 1);
	setting->value = ka_trim(line);

	if (!copy(ka_trim(key), setting->key, sizeof(setting->key)) || setting->key[0] == '\0')
		return false;
	normalize_key(setting->key);
	setting->pattern = is_pattern(setting->key);
	return true;
}

/* A word of tmpfiles.d, which may stand in quotes; no escapes within. */
static KaSpan
next_tmpfiles_word(KaSpan *line)
{
	KaSpan		rest = ka_skip_blanks(*line);

	if (rest.length > 0 && (rest.at[0] == '"' || rest.at[0] == '\''))
	{
		char		quote = rest.at[0];
		KaSpan		word;

		rest = ka_skip(rest, 1);
		word = ka_next_field(&rest, quote);
		*line = rest;
		return word;
	}
	return ka_next_word(line);
}

/* Type Path Mode User Group Age Argument */
bool
ka_parse_write_line(KaSpan line, KaWriteLine *write)
{
	KaSpan		type;
	KaSpan		argument;

	line = ka_trim(line);
	type = ka_next_word(&line);
	if (type.length == 0 || type.at[0] != 'w')
		return false;
	write->append = false;
	for (size_t i = 1; i < type.length; i++)
	{
		if (strchr("!-+=~^?$", type.at[i]) == NULL || type.at[i] == '\0')
			return false;
		write->append |= type.at[i] == '+';
	}
	if (!copy(next_tmpfiles_word(&line), write->path, sizeof(write->path)) || write->path[0] != '/')
		return false;
	for (int i = 0; i < 4; i++)
	{
		if (next_tmpfiles_word(&line).length == 0)
			return false;
	}
	argument = ka_trim(line);
	if (argument.length >= 2 && argument.at[0] == '"' && argument.at[argument.length - 1] == '"')
		argument = ka_span(argument.at + 1, argument.length - 2);
	write->argument = argument;
	return argument.length > 0;
}

static int
digit_value(char c)
{
	if (ka_is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

bool
ka_parse_sysctl_value(KaSpan text, int64_t *value)
{
	int			base = 10;
	int64_t		sum = 0;

	if (ka_starts_with(text, "0x") || ka_starts_with(text, "0X"))
	{
		base = 16;
		text = ka_skip(text, 2);
	}
	else if (text.length > 1 && text.at[0] == '0')
		base = 8;
	if (text.length == 0)
		return false;
	for (size_t i = 0; i < text.length; i++)
	{
		int			digit = digit_value(text.at[i]);

		if (digit >= base)
			return false;
		sum = ka_add(ka_multiply(sum, base), digit);
	}
	*value = sum;
	return true;
}

/* "2M", "1G": the kernel's memparse(), up to the letters that matter here. */
static bool
parse_size(KaSpan text, int64_t *bytes)
{
	static const char units[] = "KMGT";
	int64_t		size;
	const char *unit;

	if (!ka_next_number(&text, &size))
		return false;
	if (text.length == 1 && (unit = memchr(units, text.at[0] & ~0x20, 4)) != NULL)
		size = ka_multiply(size, INT64_C(1) << (10 * (unit - units + 1)));
	else if (text.length > 0)
		return false;
	*bytes = size;
	return size > 0;
}

/* "512", or since 5.16 "0:512,1:1024" by node: their sum. */
static bool
parse_count(KaSpan text, int64_t *pages)
{
	int64_t		sum = 0;

	if (memchr(text.at, ':', text.length) == NULL)
		return ka_to_number(text, pages);
	while (text.length > 0)
	{
		KaSpan		part = ka_next_field(&text, ',');
		int64_t		node;
		int64_t		count;

		if (!ka_to_number(ka_next_field(&part, ':'), &node) || !ka_to_number(part, &count))
			return false;
		sum = ka_add(sum, count);
	}
	*pages = sum;
	return true;
}

/* The first count for a size stands: the kernel ignores the others. */
static void
add_pool(KaBootArguments *arguments, int64_t size, int64_t pages)
{
	for (int i = 0; i < arguments->npools; i++)
	{
		if (arguments->pools[i].size_bytes == size)
			return;
	}
	if (arguments->npools < (int) KA_LENGTH(arguments->pools))
		arguments->pools[arguments->npools++] = (KaBootPool) {size, pages};
}

/* The next argument, in which quotes protect blanks. */
static KaSpan
next_argument(KaSpan *cmdline)
{
	KaSpan		rest = ka_trim(*cmdline);
	KaSpan		argument = rest;
	bool		quoted = false;
	size_t		n = 0;

	while (n < rest.length && (quoted || !ka_is_space(rest.at[n])))
	{
		if (rest.at[n] == '"')
			quoted = !quoted;
		n++;
	}
	argument.length = n;
	*cmdline = ka_skip(rest, n);
	return argument;
}

/* The kernel takes - and _ in the names of its arguments as the same. */
static bool
is_argument(KaSpan argument, const char *name, KaSpan *value)
{
	size_t		length = strlen(name);

	if (argument.length <= length || argument.at[length] != '=')
		return false;
	for (size_t i = 0; i < length; i++)
	{
		char		c = argument.at[i] == '-' ? '_' : argument.at[i];

		if (c != name[i])
			return false;
	}
	*value = ka_skip(argument, length + 1);
	if (value->length >= 2 && value->at[0] == '"' && value->at[value->length - 1] == '"')
		*value = ka_span(value->at + 1, value->length - 2);
	return true;
}

/* sysctl.vm.x=, where x may be any knob of the table. */
static void
parse_sysctl_argument(KaSpan argument, KaBootArguments *arguments)
{
	KaSysctlLine setting;
	int64_t		value;

	if (!ka_parse_sysctl_line(ka_skip(argument, strlen("sysctl.")), &setting) || !setting.assigns)
		return;
	for (char *c = setting.key; *c; c++)
	{
		if (*c == '/')
			*c = '.';
	}
	for (int knob = 0; knob < KA_NSYSCTLS; knob++)
	{
		if (strcmp(setting.key, ka_sysctl_info[knob].name) == 0 &&
			ka_parse_sysctl_value(setting.value, &value))
			arguments->sysctl[knob] = value;
	}
}

/*
 * hugepages= counts pages of the size that the last hugepagesz= (or
 * default_hugepagesz=) before it named, and of the default size before any.
 * After a size that is not understood, counts are ignored as well.  What
 * follows "--" belongs to init.
 */
void
ka_parse_cmdline(KaSpan cmdline, KaBootArguments *arguments)
{
	int64_t		size = KA_UNKNOWN;
	bool		size_understood = true;
	KaSpan		argument;

	memset(arguments, 0, sizeof(*arguments));
	arguments->default_size = KA_UNKNOWN;
	for (int knob = 0; knob < KA_NSYSCTLS; knob++)
		arguments->sysctl[knob] = KA_UNKNOWN;

	while ((argument = next_argument(&cmdline)).length > 0)
	{
		KaSpan		value;
		int64_t		pages;

		if (ka_equals(argument, "--"))
			break;
		if (is_argument(argument, "transparent_hugepage", &value))
		{
			/* The kernel ignores a word that it does not know. */
			if (ka_equals(value, "always") || ka_equals(value, "madvise") || ka_equals(value, "never"))
				copy(value, arguments->thp, sizeof(arguments->thp));
		}
		else if (is_argument(argument, "preempt", &value))
			copy(value, arguments->preempt, sizeof(arguments->preempt));
		else if (is_argument(argument, "hugepagesz", &value))
			size_understood = parse_size(value, &size);
		else if (is_argument(argument, "default_hugepagesz", &value))
		{
			size_understood = parse_size(value, &size);
			if (size_understood)
				arguments->default_size = size;
		}
		else if (is_argument(argument, "hugepages", &value))
		{
			if (size_understood && parse_count(value, &pages))
				add_pool(arguments, size, pages);
		}
		else if (ka_starts_with(argument, "sysctl.") || ka_starts_with(argument, "sysctl/"))
			parse_sysctl_argument(argument, arguments);
	}
}
