/*
 * collect.c: all collectors in their order, and what they share.
 *
 * The order matters twice: boot settings mean nothing in a container, which
 * the kernel's collector finds out; and they tell which pools fell short, so
 * the pools come first.
 *
 * Locks: none; the facts belong to the caller.
 */
#define _GNU_SOURCE 1

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "collect_priv.h"
#include "parse.h"

bool
ka_collect(KaFacts *facts, const KaSource *source)
{
	static bool (*const parts[]) (KaFacts *, const KaSource *) = {
		ka_collect_kernel,
		ka_collect_memory,
		ka_collect_hugepages,
		ka_collect_thp,
		ka_collect_sysctl,
		ka_collect_boot,
		ka_collect_storage,
		ka_collect_cgroup,
		ka_collect_numa,
		ka_collect_fragmentation,
	};

	for (size_t i = 0; i < KA_LENGTH(parts); i++)
	{
		if (!parts[i] (facts, source))
			return false;
	}
	return true;
}

const char *
ka_proc_directory(const KaSource *source, char *name, size_t size)
{
	if (source->pid > 0)
		snprintf(name, size, "/proc/%" PRId64, source->pid);
	else
		snprintf(name, size, "/proc/self");
	return name;
}

const char *
ka_bracketed(KaPath *path, const char *name)
{
	char	   *open;
	char	   *close;

	if (ka_path_read(path, name) < 0)
		return NULL;
	open = strchr(path->text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close == NULL)
		return NULL;
	*close = '\0';
	return open + 1;
}

/*
 * MemTotal is the sum of the zones' managed pages, so their quotient is the
 * page size of a copy.  A balloon may spoil that:
 * what is not within 2 % of a page size says nothing.
 */
static int64_t
page_size_of_copy(KaPath *path)
{
	int64_t		total = KA_UNKNOWN;
	int64_t		managed = 0;
	KaSpan		rest;

	if (ka_path_read(path, "/proc/meminfo") < 0)
		return KA_UNKNOWN;
	rest = ka_path_text(path);
	while (rest.length > 0 && total == KA_UNKNOWN)
	{
		KaSpan		name;
		int64_t		value;

		if (ka_parse_meminfo_line(ka_next_line(&rest), &name, &value) && ka_equals(name, "MemTotal"))
			total = ka_multiply(value, 1024);
	}
	if (total <= 0 || ka_path_read(path, "/proc/zoneinfo") < 0)
		return KA_UNKNOWN;

	rest = ka_path_text(path);
	while (rest.length > 0)
	{
		KaSpan		line = ka_next_line(&rest);
		int64_t		value;

		if (ka_equals(ka_next_word(&line), "managed") && ka_to_number(ka_next_word(&line), &value))
			managed = ka_add(managed, value);
	}
	for (int64_t size = 4096; managed > 0 && size <= 65536; size *= 2)
	{
		double		quotient = (double) total / (double) managed / (double) size;

		if (quotient > 0.98 && quotient < 1.02)
			return size;
	}
	return KA_UNKNOWN;
}

int64_t
ka_page_size(KaPath *path)
{
	return path->root[0] == '\0' ? sysconf(_SC_PAGESIZE) : page_size_of_copy(path);
}

bool
ka_parse_mount(KaSpan line, KaMount *mount)
{
	KaSpan		word;
	int64_t		number;

	/* id, parent, major:minor */
	if (!ka_to_number(ka_next_word(&line), &number) || !ka_to_number(ka_next_word(&line), &number))
		return false;
	word = ka_next_word(&line);
	if (!ka_to_number(ka_next_field(&word, ':'), &mount->major) || !ka_to_number(word, &mount->minor))
		return false;
	mount->root = ka_next_word(&line);
	mount->point = ka_next_word(&line);
	mount->options = ka_next_word(&line);

	/* optional fields until a hyphen */
	do
	{
		word = ka_next_word(&line);
		if (word.length == 0)
			return false;
	} while (!ka_equals(word, "-"));
	mount->type = ka_next_word(&line);
	mount->source = ka_next_word(&line);
	mount->super_options = ka_next_word(&line);
	return mount->type.length > 0;
}

bool
ka_unescape(KaSpan span, char *name, size_t size)
{
	size_t		n = 0;

	while (span.length > 0)
	{
		char		c = span.at[0];
		size_t		taken = 1;

		if (c == '\\' && span.length >= 4)
		{
			int			value = 0;
			int			i;

			for (i = 1; i < 4 && span.at[i] >= '0' && span.at[i] <= '7'; i++)
				value = value * 8 + (span.at[i] - '0');
			if (i == 4 && value > 0 && value < 256)
			{
				c = (char) value;
				taken = 4;
			}
		}
		if (c == '\0' || n + 1 >= size)
			return false;
		name[n++] = c;
		span = ka_skip(span, taken);
	}
	name[n] = '\0';
	return true;
}

bool
ka_is_below(const char *name, const char *directory)
{
	size_t		length = strlen(directory);

	if (strcmp(directory, "/") == 0)
		return name[0] == '/';
	return strncmp(name, directory, length) == 0 && (name[length] == '/' || name[length] == '\0');
}

bool
ka_find_mount(KaSpan mountinfo, const char *name, KaMount *mount)
{
	size_t		longest = 0;
	bool		found = false;

	while (mountinfo.length > 0)
	{
		KaMount		one;
		char		point[KA_PATH_MAX];

		if (!ka_parse_mount(ka_next_line(&mountinfo), &one) ||
			!ka_unescape(one.point, point, sizeof(point)) ||
			point[0] != '/' || !ka_is_below(name, point) || strlen(point) < longest)
			continue;
		longest = strlen(point);
		*mount = one;
		found = true;
	}
	return found;
}

bool
ka_in_list(KaSpan list, const char *word)
{
	while (list.length > 0)
	{
		if (ka_equals(ka_next_field(&list, ','), word))
			return true;
	}
	return false;
}

int64_t
ka_number_within(const char *name, const char *prefix, const char *suffix)
{
	KaSpan		span = ka_span_text(name);
	int64_t		value;

	if (!ka_starts_with(span, prefix))
		return KA_UNKNOWN;
	span = ka_skip(span, strlen(prefix));
	return ka_next_number(&span, &value) && ka_equals(span, suffix) ? value : KA_UNKNOWN;
}
