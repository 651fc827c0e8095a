/*
 * bounds.c: reading the bounds file.
 *
 * Strict: an unknown key, a key given twice, a value that is not understood or
 * that would widen the table are errors with file and line, and the daemon does
 * not start: a mistake here must not leave a limit silently unset.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bounds.h"
#include "protocol.h"

#define MAX_FILE_BYTES 65536
#define DEFAULT_USER "postgres"

/* Text between two pointers. */
typedef struct Span
{
	const char *p;
	const char *end;
} Span;

static Span
trim(Span span)
{
	while (span.p < span.end && (*span.p == ' ' || *span.p == '\t'))
		span.p++;
	while (span.end > span.p && (span.end[-1] == ' ' || span.end[-1] == '\t' || span.end[-1] == '\r'))
		span.end--;
	return span;
}

static bool
span_is(Span span, const char *word)
{
	size_t		length = strlen(word);

	return (size_t) (span.end - span.p) == length && memcmp(span.p, word, length) == 0;
}

/* The part before a separator; *rest is what follows, or empty. */
static Span
split(Span span, char separator, Span *rest)
{
	const char *at = memchr(span.p, separator, (size_t) (span.end - span.p));
	Span		first = {span.p, at ? at : span.end};

	rest->p = at ? at + 1 : span.end;
	rest->end = span.end;
	return trim(first);
}

static bool
read_number(Span span, int64_t min, int64_t max, int64_t *value)
{
	return ka_parse_number(&span.p, span.end, value) && span.p == span.end && *value >= min && *value <= max;
}

static const char *
read_percent(KaBounds *bounds, Span value)
{
	return read_number(value, 0, 95, &bounds->pool_max_percent) ? NULL : "a share of memory from 0 to 95 is expected";
}

static const char *
read_rate(KaBounds *bounds, Span value)
{
	return read_number(value, 0, 1000000, &bounds->changes_per_hour) ? NULL : "a number from 0 to 1000000 is expected";
}

static const char *
read_size(KaBounds *bounds, Span value)
{
	static const struct
	{
		const char *unit;
		int64_t		bytes;
	}			units[] = {{"B", 1}, {"kB", 1024}, {"MB", 1048576}, {"GB", 1073741824}};
	int64_t		number;

	if (ka_parse_number(&value.p, value.end, &number))
	{
		value = trim(value);
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		{
			if (span_is(value, units[i].unit) &&
				!__builtin_mul_overflow(number, units[i].bytes, &bounds->min_available_bytes))
				return NULL;
		}
	}
	return "a size with its unit is expected, like 512MB (B, kB, MB, GB)";
}

static const char *
read_switch(bool *target, Span value)
{
	if (!span_is(value, "on") && !span_is(value, "off"))
		return "on or off is expected";
	*target = span_is(value, "on");
	return NULL;
}

static const char *
read_persist(KaBounds *bounds, Span value)
{
	return read_switch(&bounds->persist, value);
}

static const char *
read_drop_caches(KaBounds *bounds, Span value)
{
	return read_switch(&bounds->drop_caches, value);
}

static const char *
read_users(KaBounds *bounds, Span value)
{
	bounds->nusers = 0;
	while (value.p < value.end)
	{
		Span		user = split(value, ',', &value);
		char		name[64];
		struct passwd *entry;

		if (user.p == user.end || (size_t) (user.end - user.p) >= sizeof(name))
			return "names of users, separated by commas, are expected";
		memcpy(name, user.p, (size_t) (user.end - user.p));
		name[user.end - user.p] = '\0';
		entry = getpwnam(name);
		if (entry == NULL)
			return "the machine has no user of this name";
		if (bounds->nusers == KA_MAX_USERS)
			return "more than 16 users";
		bounds->users[bounds->nusers++] = entry->pw_uid;
	}
	return NULL;
}

static const struct
{
	const char *key;
	const char *(*read) (KaBounds *bounds, Span value);	/* what is wrong, or NULL */
}			settings[] = {
	{"allowed_users", read_users},
	{"pool_max_percent", read_percent},
	{"min_available", read_size},
	{"changes_per_hour", read_rate},
	{"persist", read_persist},
	{"drop_caches", read_drop_caches},
};

#define NSETTINGS (sizeof(settings) / sizeof(settings[0]))

/* "off", or "min..max" within the table. */
static const char *
read_range(KaRange *range, const KaKnob *knob, Span value)
{
	int64_t		min;
	int64_t		max;

	if (span_is(value, "off"))
	{
		range->off = true;
		return NULL;
	}
	if (!ka_parse_number(&value.p, value.end, &min) || value.end - value.p < 2 ||
		memcmp(value.p, "..", 2) != 0)
		return "off, or a range like 0..100, is expected";
	value.p += 2;
	if (!ka_parse_number(&value.p, value.end, &max) || value.p != value.end || min > max)
		return "off, or a range like 0..100, is expected";
	if (min < knob->min || max > knob->max)
		return "the range is wider than what the helper allows anyway";
	range->min = min;
	range->max = max;
	return NULL;
}

bool
ka_bounds_default(KaBounds *bounds)
{
	struct passwd *entry = getpwnam(DEFAULT_USER);

	memset(bounds, 0, sizeof(*bounds));
	if (entry)
		bounds->users[bounds->nusers++] = entry->pw_uid;
	bounds->pool_max_percent = 75;
	bounds->min_available_bytes = INT64_C(512) * 1024 * 1024;
	bounds->changes_per_hour = 720;
	bounds->persist = true;
	bounds->drop_caches = true;
	bounds->ranges = calloc(ka_nknobs, sizeof(bounds->ranges[0]));
	if (bounds->ranges == NULL)
		return false;
	for (size_t i = 0; i < ka_nknobs; i++)
	{
		bounds->ranges[i].min = ka_knobs[i].min;
		bounds->ranges[i].max = ka_knobs[i].max;
	}
	return true;
}

void
ka_bounds_free(KaBounds *bounds)
{
	free(bounds->ranges);
	bounds->ranges = NULL;
}

/* One "key = value"; what is wrong with it, or NULL. */
static const char *
read_setting(KaBounds *bounds, Span key, Span value, bool *seen)
{
	for (size_t i = 0; i < NSETTINGS; i++)
	{
		if (span_is(key, settings[i].key))
		{
			if (seen[i])
				return "given twice";
			seen[i] = true;
			return settings[i].read(bounds, value);
		}
	}
	for (size_t i = 0; i < ka_nknobs; i++)
	{
		if (!(ka_knobs[i].flags & KA_KF_INTERNAL) && span_is(key, ka_knobs[i].name))
		{
			if (seen[NSETTINGS + i])
				return "given twice";
			seen[NSETTINGS + i] = true;
			return read_range(&bounds->ranges[i], &ka_knobs[i], value);
		}
	}
	return "unknown key";
}

bool
ka_bounds_parse(KaBounds *bounds, const char *name, const char *text, size_t length,
				char *error, size_t error_size)
{
	const char *end = text + length;
	bool	   *seen = calloc(NSETTINGS + ka_nknobs, sizeof(bool));
	int			number = 0;
	const char *wrong = seen ? NULL : "out of memory";
	Span		key = {text, text};

	while (text < end && wrong == NULL)
	{
		const char *newline = memchr(text, '\n', (size_t) (end - text));
		Span		line = {text, newline ? newline : end};
		Span		rest;

		number++;
		text = newline ? newline + 1 : end;
		if (memchr(line.p, '\0', (size_t) (line.end - line.p)))
		{
			key = (Span) {line.p, line.p};
			wrong = "not a text file";
			break;
		}
		line = split(line, '#', &rest);
		if (line.p == line.end)
			continue;
		if (memchr(line.p, '=', (size_t) (line.end - line.p)) == NULL)
		{
			key = line;
			wrong = "\"key = value\" is expected";
			break;
		}
		key = split(line, '=', &rest);
		wrong = read_setting(bounds, key, trim(rest), seen);
	}
	free(seen);
	if (wrong)
		snprintf(error, error_size, "%s:%d: %.*s: %s", name, number, (int) (key.end - key.p), key.p, wrong);
	return wrong == NULL;
}

/* Only root may have written it. */
static bool
is_trusted(int fd, bool directory, const char *path, char *error, size_t error_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		snprintf(error, error_size, "%s: %s", path, strerror(errno));
	else if (directory ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
		snprintf(error, error_size, "%s: not a %s", path, directory ? "directory" : "regular file");
	else if (st.st_uid != 0)
		snprintf(error, error_size, "%s: owned by uid %u, must be owned by root", path, (unsigned) st.st_uid);
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		snprintf(error, error_size, "%s: writable by group or others (mode %04o)", path,
				 (unsigned) st.st_mode & 07777);
	else
		return true;
	return false;
}

bool
ka_bounds_load(KaBounds *bounds, const char *root, const char *path, bool *found, char *error, size_t error_size)
{
	char		directory[PATH_MAX];
	static char text[MAX_FILE_BYTES + 1];
	const char *slash = strrchr(path, '/');
	int			directory_fd = -1;
	int			fd = -1;
	size_t		length = 0;
	ssize_t		n;
	bool		good = false;

	*found = false;
	if (slash == NULL || slash[1] == '\0' ||
		snprintf(directory, sizeof(directory), "%s%.*s/", root, (int) (slash - path), path) >= (int) sizeof(directory))
	{
		snprintf(error, error_size, "%s: an absolute path of a file is expected", path);
		return false;
	}

	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory_fd >= 0)
		fd = openat(directory_fd, slash + 1, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
	{
		good = errno == ENOENT;
		if (!good)
			snprintf(error, error_size, "%s: %s", path, strerror(errno));
		goto done;
	}
	*found = true;
	if (!is_trusted(directory_fd, true, directory, error, error_size) ||
		!is_trusted(fd, false, path, error, error_size))
		goto done;
	while (length < sizeof(text) && (n = read(fd, text + length, sizeof(text) - length)) != 0)
	{
		if (n < 0)
		{
			snprintf(error, error_size, "%s: %s", path, strerror(errno));
			goto done;
		}
		length += (size_t) n;
	}
	if (length > MAX_FILE_BYTES)
	{
		snprintf(error, error_size, "%s: larger than %d bytes", path, MAX_FILE_BYTES);
		goto done;
	}
	good = ka_bounds_parse(bounds, path, text, length, error, error_size);

done:
	if (fd >= 0)
		close(fd);
	if (directory_fd >= 0)
		close(directory_fd);
	return good;
}

bool
ka_bounds_allow_user(const KaBounds *bounds, uid_t uid)
{
	if (uid == 0)
		return true;			/* may write the files without us */
	for (size_t i = 0; i < bounds->nusers; i++)
	{
		if (bounds->users[i] == uid)
			return true;
	}
	return false;
}

KaRange
ka_bounds_range(const KaBounds *bounds, const KaKnob *knob, int64_t total_bytes, int64_t page_bytes)
{
	KaRange		range = bounds->ranges[knob - ka_knobs];
	int64_t		cap = INT64_MAX;

	if (knob->ram_percent > 0)
	{
		cap = total_bytes / 100 * knob->ram_percent;
		if (strcmp(knob->unit, "kB") == 0)
			cap /= 1024;
	}
	else if (page_bytes > 0)
		cap = total_bytes / 100 * bounds->pool_max_percent / page_bytes;
	if (range.max > cap)
		range.max = cap;
	return range;
}
