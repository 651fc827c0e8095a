/*
 * persist.c: reading and replacing the files for the next boot.
 *
 * A file is replaced as a whole: written under another name in the same
 * directory, synced, renamed, and the directory synced.  The other name does
 * not end in ".conf", so that a boot that comes in between does not read it.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "persist.h"
#include "protocol.h"

#define TEXT_SIZE 65536

#define HEADER \
	"# Written by kernel_advisord(8) as a whole: a line of another hand stops it.\n" \
	"# To take a value back: kernel_advisor rollback, or delete its line.\n"
#define CHANGE_PREFIX "# change "

/* The daemon has one thread; a file is read, changed and written at once. */
static char file_text[TEXT_SIZE];
static KaPersistFile work;

static int
open_directory(const char *root, const char *path, int *error)
{
	char		full[PATH_MAX];
	int			fd;

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int) sizeof(full))
	{
		*error = ENAMETOOLONG;
		return -1;
	}
	fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*error = fd < 0 ? errno : 0;
	return fd;
}

void
ka_persist_open(KaPersist *persist, const char *root)
{
	persist->sysctl_fd = open_directory(root, KA_SYSCTL_DIRECTORY, &persist->sysctl_error);
	persist->tmpfiles_fd = open_directory(root, KA_TMPFILES_DIRECTORY, &persist->tmpfiles_error);
}

void
ka_persist_close(KaPersist *persist)
{
	if (persist->sysctl_fd >= 0)
		close(persist->sysctl_fd);
	if (persist->tmpfiles_fd >= 0)
		close(persist->tmpfiles_fd);
	persist->sysctl_fd = persist->tmpfiles_fd = -1;
}

static bool
starts_with(const char *text, const char *end, const char *prefix)
{
	size_t		length = strlen(prefix);

	return (size_t) (end - text) >= length && memcmp(text, prefix, length) == 0;
}

/* "# change 12, 2026-11-30 23:59:59 UTC, uid 101" */
static void
format_stamp(const KaPersisted *entry, char *text, size_t size)
{
	time_t		at = (time_t) (entry->at_us / 1000000);
	struct tm	tm;
	char		stamp[64] = "";

	if (gmtime_r(&at, &tm) != NULL)
		strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S UTC", &tm);
	snprintf(text, size, CHANGE_PREFIX "%" PRIu64 ", %s, uid %" PRIu32 "\n", entry->change, stamp, entry->uid);
}

static bool
parse_stamp(const char *text, const char *end, KaPersisted *entry)
{
	char		line[128];
	int			consumed = 0;
	struct tm	tm = {0};

	if ((size_t) (end - text) >= sizeof(line))
		return false;
	memcpy(line, text, (size_t) (end - text));
	line[end - text] = '\0';
	if (sscanf(line, CHANGE_PREFIX "%" SCNu64 ", %d-%d-%d %d:%d:%d UTC, uid %" SCNu32 "%n",
			   &entry->change, &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
			   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &entry->uid, &consumed) != 8 ||
		line[consumed] != '\0' || tm.tm_year < 1970 || tm.tm_year > 9999)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	entry->at_us = (int64_t) timegm(&tm) * 1000000;
	return true;
}

/* "vm.swappiness = " or "w /sys/... - - - - ". */
static void
format_key(const KaKnob *knob, int node, char *text, size_t size)
{
	char		path[128];

	if (!(knob->flags & KA_KF_SYSFS))
	{
		snprintf(text, size, "%s = ", knob->name);
		return;
	}
	if (node == KA_ALL_NODES)
		snprintf(path, sizeof(path), "%s", knob->path);
	else
		snprintf(path, sizeof(path), knob->node_path, node);
	snprintf(text, size, "w %s - - - - ", path);
}

/* The knob whose key a line starts with, and where its value begins. */
static const KaKnob *
find_key(const char *text, const char *end, bool sysfs, int *node, const char **value)
{
	static const char node_directory[] = "w /sys/devices/system/node/node";
	char		key[192];
	int64_t		number = KA_ALL_NODES;

	if (starts_with(text, end, node_directory))
	{
		const char *p = text + strlen(node_directory);

		if (!ka_parse_number(&p, end, &number) || number > INT32_MAX)
			return NULL;
	}
	for (size_t i = 0; i < ka_nknobs; i++)
	{
		const KaKnob *knob = &ka_knobs[i];

		if (((knob->flags & KA_KF_SYSFS) != 0) != sysfs ||
			(knob->flags & (KA_KF_INTERNAL | KA_KF_ACTION)) ||
			(number != KA_ALL_NODES && !(knob->flags & KA_KF_NODES)))
			continue;
		format_key(knob, (int) number, key, sizeof(key));
		if (starts_with(text, end, key))
		{
			*node = (int) number;
			*value = text + strlen(key);
			return knob;
		}
	}
	return NULL;
}

static bool
is_header(const char *text, const char *end)
{
	const char *header = HEADER;

	while (*header)
	{
		const char *newline = strchr(header, '\n');

		if (newline - header == end - text && memcmp(header, text, (size_t) (end - text)) == 0)
			return true;
		header = newline + 1;
	}
	return false;
}

bool
ka_persist_parse(const char *text, size_t length, bool sysfs, KaPersistFile *file, uint32_t *line)
{
	const char *end = text + length;
	KaPersisted next = {0};

	file->n = 0;
	for (*line = 1; text < end; (*line)++)
	{
		const char *newline = memchr(text, '\n', (size_t) (end - text));
		const char *line_end = newline ? newline : end;
		const char *value;

		if (starts_with(text, line_end, CHANGE_PREFIX))
		{
			if (!parse_stamp(text, line_end, &next))
				return false;
		}
		else if (text < line_end && !is_header(text, line_end))
		{
			next.knob = find_key(text, line_end, sysfs, &next.node, &value);
			if (next.knob == NULL || file->n == KA_MAX_PERSISTED ||
				ka_knob_parse(next.knob, value, (size_t) (line_end - value), &next.value) < 0)
				return false;
			file->entries[file->n++] = next;
			memset(&next, 0, sizeof(next));
		}
		text = newline ? newline + 1 : end;
	}
	return true;
}

int
ka_persist_format(const KaPersistFile *file, char *text, size_t size)
{
	size_t		length = (size_t) snprintf(text, size, "%s", HEADER);

	for (size_t i = 0; i < file->n; i++)
	{
		const KaPersisted *entry = &file->entries[i];
		char		stamp[128];
		char		key[192];
		char		value[64];
		int			n;

		format_stamp(entry, stamp, sizeof(stamp));
		format_key(entry->knob, entry->node, key, sizeof(key));
		if (ka_knob_format(entry->knob, entry->value, value, sizeof(value)) < 0)
			return -ERANGE;
		if (length >= size)
			return -ENOSPC;
		n = snprintf(text + length, size - length, "%s%s%s", entry->change ? stamp : "", key, value);
		length += (size_t) n;
	}
	return length < size ? (int) length : -ENOSPC;
}

/* A missing file is an empty one. */
static int
read_file(int directory_fd, const char *name, bool sysfs, KaPersistFile *file, uint32_t *line)
{
	int			fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	size_t		length = 0;
	ssize_t		n;

	file->n = 0;
	*line = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	while ((n = read(fd, file_text + length, sizeof(file_text) - length)) > 0)
		length += (size_t) n;
	if (n < 0)
	{
		int			error = errno;

		close(fd);
		return -error;
	}
	close(fd);
	if (length == sizeof(file_text))
		return -EFBIG;
	return ka_persist_parse(file_text, length, sysfs, file, line) ? 0 : -EBADMSG;
}

static int
write_file(int directory_fd, const char *name, const KaPersistFile *file)
{
	char		temporary[64];
	int			length;
	int			fd;
	int			result = 0;

	if (file->n == 0)
	{
		if (unlinkat(directory_fd, name, 0) < 0 && errno != ENOENT)
			return -errno;
		return fsync(directory_fd) < 0 ? -errno : 0;
	}

	length = ka_persist_format(file, file_text, sizeof(file_text));
	if (length < 0)
		return length;
	snprintf(temporary, sizeof(temporary), "%s.new", name);
	unlinkat(directory_fd, temporary, 0);	/* of a daemon that was killed */
	fd = openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (int at = 0; at < length && result == 0;)
	{
		ssize_t		n = write(fd, file_text + at, (size_t) (length - at));

		if (n <= 0)
			result = n < 0 ? -errno : -EIO;
		else
			at += (int) n;
	}
	if (result == 0 && (fchmod(fd, 0644) < 0 || fsync(fd) < 0))
		result = -errno;
	close(fd);
	if (result == 0 && renameat(directory_fd, temporary, directory_fd, name) < 0)
		result = -errno;
	if (result < 0)
	{
		unlinkat(directory_fd, temporary, 0);
		return result;
	}
	return fsync(directory_fd) < 0 ? -errno : 0;
}

static int
choose(const KaPersist *persist, bool sysfs, int *directory_fd, const char **name)
{
	*directory_fd = sysfs ? persist->tmpfiles_fd : persist->sysctl_fd;
	*name = sysfs ? KA_TMPFILES_FILE : KA_SYSCTL_FILE;
	return *directory_fd < 0 ? -(sysfs ? persist->tmpfiles_error : persist->sysctl_error) : 0;
}

static KaPersisted *
find_entry(KaPersistFile *file, const KaKnob *knob, int node)
{
	for (size_t i = 0; i < file->n; i++)
	{
		if (file->entries[i].knob == knob && file->entries[i].node == node)
			return &file->entries[i];
	}
	return NULL;
}

int
ka_persist_get(const KaPersist *persist, const KaKnob *knob, int node, int64_t *value, uint32_t *line)
{
	bool		sysfs = (knob->flags & KA_KF_SYSFS) != 0;
	const char *name;
	int			directory_fd;
	int			result = choose(persist, sysfs, &directory_fd, &name);
	const KaPersisted *entry;

	*value = KA_NO_VALUE;
	*line = 0;
	if (result == -ENOENT)
		return 0;
	if (result == 0)
		result = read_file(directory_fd, name, sysfs, &work, line);
	if (result == 0 && (entry = find_entry(&work, knob, node)) != NULL)
		*value = entry->value;
	return result;
}

int
ka_persist_put(const KaPersist *persist, const KaPersisted *entry, uint32_t *line)
{
	bool		sysfs = (entry->knob->flags & KA_KF_SYSFS) != 0;
	const char *name;
	int			directory_fd;
	int			result = choose(persist, sysfs, &directory_fd, &name);
	KaPersisted *at;

	*line = 0;
	if (result == 0)
		result = read_file(directory_fd, name, sysfs, &work, line);
	if (result < 0)
		return result;

	at = find_entry(&work, entry->knob, entry->node);
	if (entry->value == KA_NO_VALUE)
	{
		if (at == NULL)
			return 0;
		work.n--;
		memmove(at, at + 1, (size_t) (&work.entries[work.n] - at) * sizeof(*at));
	}
	else if (at)
		*at = *entry;
	else
	{
		/* In the order of the table, which puts the pool before the policy. */
		size_t		before = 0;

		if (work.n == KA_MAX_PERSISTED)
			return -ENOSPC;
		while (before < work.n && (work.entries[before].knob < entry->knob ||
								   (work.entries[before].knob == entry->knob &&
									work.entries[before].node < entry->node)))
			before++;
		memmove(&work.entries[before + 1], &work.entries[before], (work.n - before) * sizeof(*at));
		work.entries[before] = *entry;
		work.n++;
	}
	return write_file(directory_fd, name, &work);
}
