/*
 * path.c: files below a root directory.
 *
 * Invariants: with a root, no name is opened that was not resolved below it
 * first, link by link; at most MAX_LINKS links are followed.  Descriptors are
 * closed before a function returns, except the one that ka_path_open returns.
 *
 * Locks: none.  A copy that changes while it is read may give an error, never
 * a file outside of it: the resolved name is opened with O_NOFOLLOW.
 */
#define _GNU_SOURCE 1

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "path.h"
#include "scan.h"

/* As the kernel: more symbolic links on one way are a loop. */
#define MAX_LINKS 40

/* The first size of the buffer; most files of interest fit. */
#define FIRST_BUFFER 16384

void
ka_path_init(KaPath *path, const char *root)
{
	memset(path, 0, sizeof(*path));
	path->root = root ? root : "";
}

void
ka_path_free(KaPath *path)
{
	free(path->text);
	memset(path, 0, sizeof(*path));
}

/* root + name, checked against the size. */
static int
join(char *full, size_t size, const char *root, const char *name)
{
	int			length = snprintf(full, size, "%s%s", root, name);

	return length >= 0 && (size_t) length < size ? 0 : -ENAMETOOLONG;
}

/*
 * Walks the name component by component.  "rest" holds what is still to be
 * walked; a link's target is put in front of it.
 */
int
ka_path_resolve(const char *root, const char *name, char *resolved, size_t size)
{
	char		rest[KA_PATH_MAX];
	char		full[KA_PATH_MAX];
	char		target[KA_PATH_MAX];
	char	   *next = rest;
	size_t		length = 0;		/* of resolved; 0 is the root directory */
	int			links = 0;

	if (name[0] != '/')
		return -EINVAL;
	if (size < 2 || strlen(name) >= sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(rest, name);

	while (*(next += strspn(next, "/")) != '\0')
	{
		size_t		component = strcspn(next, "/");
		size_t		before = length;
		struct stat status;
		ssize_t		n;
		int			error;

		if (component == 1 && next[0] == '.')
		{
			next += component;
			continue;
		}
		if (component == 2 && next[0] == '.' && next[1] == '.')
		{
			while (length > 0 && resolved[--length] != '/')
				;
			next += component;
			continue;
		}

		if (length + 1 + component >= size)
			return -ENAMETOOLONG;
		resolved[length++] = '/';
		memcpy(resolved + length, next, component);
		length += component;
		resolved[length] = '\0';
		next += component;

		error = join(full, sizeof(full), root, resolved);
		if (error < 0)
			return error;
		if (lstat(full, &status) < 0)
			return -errno;
		if (!S_ISLNK(status.st_mode))
			continue;

		if (++links > MAX_LINKS)
			return -ELOOP;
		n = readlink(full, target, sizeof(target));
		if (n < 0)
			return -errno;
		if ((size_t) n + 1 + strlen(next) + 1 > sizeof(target))
			return -ENAMETOOLONG;
		target[n] = '/';
		strcpy(target + n + 1, next);
		strcpy(rest, target);
		next = rest;
		length = target[0] == '/' ? 0 : before;
	}
	if (length == 0)
		resolved[length++] = '/';
	resolved[length] = '\0';
	return 0;
}

/* The name to give to the kernel, and the flags that keep it there. */
static int
real_name(const char *root, const char *name, char *full, size_t size, int *flags)
{
	char		resolved[KA_PATH_MAX];
	int			error;

	if (root[0] == '\0')
		return join(full, size, "", name);
	error = ka_path_resolve(root, name, resolved, sizeof(resolved));
	if (error < 0)
		return error;
	*flags |= O_NOFOLLOW;
	return join(full, size, root, resolved);
}

int
ka_path_open(const char *root, const char *name, int flags)
{
	char		full[KA_PATH_MAX];
	int			error = real_name(root, name, full, sizeof(full), &flags);
	int			fd;

	if (error < 0)
		return error;
	fd = open(full, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 ? fd : -errno;
}

int
ka_path_stat(const char *root, const char *name, struct stat *status)
{
	char		full[KA_PATH_MAX];
	int			flags = 0;
	int			error = real_name(root, name, full, sizeof(full), &flags);

	if (error < 0)
		return error;
	return stat(full, status) == 0 ? 0 : -errno;
}

bool
ka_path_exists(const char *root, const char *name)
{
	struct stat status;

	return ka_path_stat(root, name, &status) == 0;
}

int
ka_path_readlink(const char *root, const char *name, char *target, size_t size)
{
	char		parent[KA_PATH_MAX];
	char		resolved[KA_PATH_MAX];
	char		full[KA_PATH_MAX];
	const char *base = strrchr(name, '/');
	ssize_t		n;
	int			error;

	if (base == NULL)
		return -EINVAL;

	/* The directory is resolved, the last component is the link itself. */
	error = join(parent, sizeof(parent), "", name);
	if (error < 0)
		return error;
	parent[base == name ? 1 : base - name] = '\0';
	error = ka_path_resolve(root, parent, resolved, sizeof(resolved));
	if (error < 0)
		return error;
	n = snprintf(full, sizeof(full), "%s%s%s", root, resolved[1] ? resolved : "", base);
	if (n < 0 || (size_t) n >= sizeof(full))
		return -ENAMETOOLONG;

	n = readlink(full, target, size);
	if (n < 0)
		return -errno;
	if ((size_t) n >= size)
		return -ENAMETOOLONG;
	target[n] = '\0';
	return 0;
}

static int
grow(KaPath *path)
{
	size_t		capacity = path->capacity ? path->capacity * 2 : FIRST_BUFFER;
	char	   *text;

	if (path->capacity > KA_FILE_MAX)
		return -EFBIG;
	text = realloc(path->text, capacity);
	if (text == NULL)
	{
		path->no_memory = true;
		return -ENOMEM;
	}
	path->text = text;
	path->capacity = capacity;
	return 0;
}

/* Until end of file: files of /proc have no size, and reads may be short. */
static int
read_all(KaPath *path, int fd)
{
	for (;;)
	{
		ssize_t		n;

		if (path->length + 1 >= path->capacity)
		{
			int			error = grow(path);

			if (error < 0)
				return error;
		}
		n = read(fd, path->text + path->length, path->capacity - path->length - 1);
		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		path->length += (size_t) n;
		if (path->length > KA_FILE_MAX)
			return -EFBIG;
	}
	path->text[path->length] = '\0';
	return 0;
}

int
ka_path_read(KaPath *path, const char *name)
{
	struct stat status;
	int			fd;
	int			error;

	path->length = 0;
	fd = ka_path_open(path->root, name, O_RDONLY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		error = -errno;
	else if (!S_ISREG(status.st_mode))
		error = S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
	else
		error = read_all(path, fd);
	close(fd);
	if (error < 0)
		path->length = 0;
	return error;
}

/* The first line of the text, or NULL. */
static const char *
first_line(KaPath *path)
{
	KaSpan		line = ka_path_text(path);

	line = ka_trim(ka_next_line(&line));
	/* The span lies in our own buffer, so it may be ended there. */
	path->text[line.at - path->text + line.length] = '\0';
	return memchr(line.at, '\0', line.length) == NULL ? line.at : NULL;
}

/* The number that the text is, or KA_UNKNOWN. */
static int64_t
whole_number(const KaPath *path)
{
	int64_t		value;

	return ka_to_number(ka_trim(ka_path_text(path)), &value) ? value : KA_UNKNOWN;
}

const char *
ka_path_line(KaPath *path, const char *name)
{
	return ka_path_read(path, name) < 0 ? NULL : first_line(path);
}

int64_t
ka_path_number(KaPath *path, const char *name)
{
	return ka_path_read(path, name) < 0 ? KA_UNKNOWN : whole_number(path);
}

static int	read_formatted(KaPath *path, const char *format, va_list args) KA_PRINTF(2, 0);

static int
read_formatted(KaPath *path, const char *format, va_list args)
{
	char		name[KA_PATH_MAX];
	int			length = vsnprintf(name, sizeof(name), format, args);

	return length >= 0 && length < KA_PATH_MAX ? ka_path_read(path, name) : -ENAMETOOLONG;
}

#define READ_FORMATTED(error) \
	do { \
		va_list		args_; \
		va_start(args_, format); \
		(error) = read_formatted(path, format, args_); \
		va_end(args_); \
	} while (0)

int
ka_path_readf(KaPath *path, const char *format,...)
{
	int			error;

	READ_FORMATTED(error);
	return error;
}

const char *
ka_path_linef(KaPath *path, const char *format,...)
{
	int			error;

	READ_FORMATTED(error);
	return error < 0 ? NULL : first_line(path);
}

int64_t
ka_path_numberf(KaPath *path, const char *format,...)
{
	int			error;

	READ_FORMATTED(error);
	return error < 0 ? KA_UNKNOWN : whole_number(path);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

ssize_t
ka_path_list(const char *root, const char *name, KaArena *arena, char ***names)
{
	int			fd = ka_path_open(root, name, O_RDONLY | O_DIRECTORY);
	DIR		   *directory;
	struct dirent *entry;
	size_t		count = 0;

	*names = NULL;
	if (fd < 0)
		return fd;
	directory = fdopendir(fd);
	if (directory == NULL)
	{
		int			error = errno;

		close(fd);
		return -error;
	}

	while ((entry = readdir(directory)) != NULL)
	{
		char	  **grown;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		grown = ka_append(arena, *names, &count, sizeof(char *));
		if (grown)
			*names = grown;
		if (grown == NULL || (grown[count - 1] = ka_strdup(arena, entry->d_name)) == NULL)
		{
			closedir(directory);
			return -ENOMEM;
		}
	}
	closedir(directory);
	if (count > 1)
		qsort(*names, count, sizeof(char *), compare_names);
	return (ssize_t) count;
}

/*
 * pread at growing offsets: a seq_file continues where the last read ended,
 * and begins again at offset 0.
 */
ssize_t
ka_read_at_start(int fd, char *buffer, size_t size)
{
	size_t		length = 0;

	while (length < size)
	{
		ssize_t		n = pread(fd, buffer + length, size - length, (off_t) length);

		if (n == 0)
			return (ssize_t) length;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		length += (size_t) n;
	}
	return -EFBIG;
}
