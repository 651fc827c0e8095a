/*
 * knobs.c: the table of knobs.def, look-ups in it, and values as text.
 *
 * No state.  Whatever a kernel file contains, parsing is bounded by its length.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "knobs.h"
#include "protocol.h"

static const char *const ka_thp_enabled_words[] = {"never", "madvise", "always", NULL};
static const char *const ka_thp_defrag_words[] = {"never", "madvise", "defer", "defer+madvise", "always", NULL};
static const char *const ka_thp_shmem_words[] = {"never", "advise", "within_size", "always", "deny", "force", NULL};

#define HUGEPAGES "/sys/kernel/mm/hugepages/hugepages-"
#define NODE_HUGEPAGES "/sys/devices/system/node/node%d/hugepages/hugepages-"

const KaKnob ka_knobs[] = {
#define KNOB(number, symbol, name, path, min, max, ram_percent, unit, flags, words, twin) \
	{number, name, path, NULL, min, max, ram_percent, unit, flags, words, KA_HK_##twin, 0},
#define POOL(shift, kb) \
	{KA_HK_POOL_BASE + shift, "hugepages-" #kb "kB.nr_hugepages", \
		HUGEPAGES #kb "kB/nr_hugepages", NODE_HUGEPAGES #kb "kB/nr_hugepages", \
		0, INT64_MAX, 0, "pages", KA_KF_POOL | KA_KF_SYSFS | KA_KF_NODES, NULL, KA_HK_NONE, INT64_C(1) << shift}, \
	{KA_HK_SURPLUS_BASE + shift, "hugepages-" #kb "kB.nr_overcommit_hugepages", \
		HUGEPAGES #kb "kB/nr_overcommit_hugepages", NULL, \
		0, INT64_MAX, 0, "pages", KA_KF_SURPLUS | KA_KF_SYSFS, NULL, KA_HK_NONE, INT64_C(1) << shift},
#include "knobs.def"
#undef KNOB
#undef POOL
};

const size_t ka_nknobs = sizeof(ka_knobs) / sizeof(ka_knobs[0]);

const KaKnob *
ka_knob_find(uint32_t number)
{
	for (size_t i = 0; i < ka_nknobs; i++)
	{
		if (ka_knobs[i].number == number)
			return &ka_knobs[i];
	}
	return NULL;
}

bool
ka_parse_number(const char **text, const char *end, int64_t *value)
{
	const char *p = *text;
	int64_t		number = 0;

	if (p == end || *p < '0' || *p > '9')
		return false;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
	{
		if (__builtin_mul_overflow(number, INT64_C(10), &number) ||
			__builtin_add_overflow(number, (int64_t) (*p - '0'), &number))
			return false;
	}
	*text = p;
	*value = number;
	return true;
}

const KaKnob *
ka_knob_by_subject(const char *subject, int *node)
{
	static const char prefix[] = "node";

	*node = KA_ALL_NODES;
	if (strncmp(subject, prefix, strlen(prefix)) == 0)
	{
		const char *p = subject + strlen(prefix);
		int64_t		number;

		if (!ka_parse_number(&p, p + strlen(p), &number) || number > INT32_MAX || *p != '.')
			return NULL;
		*node = (int) number;
		subject = p + 1;
	}
	for (size_t i = 0; i < ka_nknobs; i++)
	{
		const KaKnob *knob = &ka_knobs[i];

		if (strcmp(knob->name, subject) == 0)
		{
			if ((knob->flags & KA_KF_INTERNAL) ||
				(*node != KA_ALL_NODES && !(knob->flags & KA_KF_NODES)))
				return NULL;
			return knob;
		}
	}
	return NULL;
}

/* "always [madvise] never": the word in brackets; a text without any is taken whole. */
static int
parse_word(const KaKnob *knob, const char *text, const char *end, int64_t *value)
{
	const char *open = memchr(text, '[', (size_t) (end - text));

	if (open)
	{
		const char *close = memchr(open, ']', (size_t) (end - open));

		if (close == NULL)
			return -EBADMSG;
		text = open + 1;
		end = close;
	}
	for (int i = 0; knob->words[i]; i++)
	{
		size_t		length = strlen(knob->words[i]);

		if (length == (size_t) (end - text) && memcmp(knob->words[i], text, length) == 0)
		{
			*value = i;
			return 0;
		}
	}
	return -EBADMSG;
}

int
ka_knob_parse(const KaKnob *knob, const char *text, size_t length, int64_t *value)
{
	const char *newline = memchr(text, '\n', length);
	const char *end = newline ? newline : text + length;

	if (knob->words)
		return parse_word(knob, text, end, value);
	if (!ka_parse_number(&text, end, value) || text != end)
		return -EBADMSG;
	return 0;
}

int
ka_knob_format(const KaKnob *knob, int64_t value, char *buffer, size_t size)
{
	int			length;

	if (value < 0)
		return -ERANGE;
	if (knob->words)
	{
		for (int64_t i = 0; i <= value; i++)
		{
			if (knob->words[i] == NULL)
				return -ERANGE;
		}
		length = snprintf(buffer, size, "%s\n", knob->words[value]);
	}
	else
		length = snprintf(buffer, size, "%" PRId64 "\n", value);
	return length > 0 && (size_t) length < size ? length : -ERANGE;
}
