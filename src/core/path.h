/*
 * path.h: files of this machine, or of a copy of another one.
 *
 * Every path given to these functions is absolute as the machine sees it
 * ("/proc/meminfo").  With a root directory the path, and every symbolic link
 * on its way, is taken below that directory and can never leave it, so that a
 * copy of another machine's /proc, /sys and /etc reads as the original did.
 *
 * Functions return a negative errno; a missing file is data, not an error.
 * One KaPath belongs to one thread.
 */
#ifndef KA_PATH_H
#define KA_PATH_H

#include <sys/stat.h>
#include <sys/types.h>

#include "ka_base.h"
#include "scan.h"

/* No file of interest is larger; what is, is refused (-EFBIG). */
#define KA_FILE_MAX ((size_t) 16 * 1024 * 1024)

/* Longer paths are refused (-ENAMETOOLONG). */
#define KA_PATH_MAX 4096

typedef struct KaPath
{
	const char *root;			/* "" for this machine */
	char	   *text;			/* of the last file read, ends with NUL */
	size_t		length;			/* of the text, in bytes */
	size_t		capacity;		/* of the buffer */
	bool		no_memory;		/* the buffer could not grow */
} KaPath;

extern void ka_path_init(KaPath *path, const char *root);
extern void ka_path_free(KaPath *path);

/*
 * The name without symbolic links, "." and "..", as the machine sees it.
 * Components that do not exist are an error.
 */
extern int	ka_path_resolve(const char *root, const char *name, char *resolved, size_t size);

/* Opens with O_CLOEXEC and without waiting or becoming a terminal's process. */
extern int	ka_path_open(const char *root, const char *name, int flags);

extern int	ka_path_stat(const char *root, const char *name, struct stat *status);
extern bool ka_path_exists(const char *root, const char *name);

/* The target of a symbolic link, not followed, with its NUL. */
extern int	ka_path_readlink(const char *root, const char *name, char *target, size_t size);

/* Reads a whole regular file into path->text, which the next reading reuses. */
extern int	ka_path_read(KaPath *path, const char *name);

/* The text of the last reading; empty when it failed. */
static inline KaSpan
ka_path_text(const KaPath *path)
{
	return path->text ? ka_span(path->text, path->length) : ka_span("", 0);
}

/* The first line of a file without surrounding blanks, in path->text, or NULL. */
extern const char *ka_path_line(KaPath *path, const char *name);

/* The decimal number that is all a file holds, or KA_UNKNOWN. */
extern int64_t ka_path_number(KaPath *path, const char *name);

/* As above with a name made by printf. */
extern int64_t ka_path_numberf(KaPath *path, const char *format,...) KA_PRINTF(2, 3);
extern const char *ka_path_linef(KaPath *path, const char *format,...) KA_PRINTF(2, 3);
extern int	ka_path_readf(KaPath *path, const char *format,...) KA_PRINTF(2, 3);

/*
 * The names in a directory without "." and "..", sorted by byte value; their
 * number, or a negative errno.  Names live in the arena.
 */
extern ssize_t ka_path_list(const char *root, const char *name, KaArena *arena, char ***names);

/*
 * Reads from an open file at offset 0 into a fixed buffer until it ends; the
 * length, -EFBIG when the file does not fit, or another negative errno.
 */
extern ssize_t ka_read_at_start(int fd, char *buffer, size_t size);

#endif							/* KA_PATH_H */
