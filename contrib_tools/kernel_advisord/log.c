/*
 * log.c: messages of the daemon.
 *
 * A line is built in a buffer on the stack and written by one write(): no
 * stdio, no allocation, nothing that the seccomp filter would have to allow.
 * Nothing that came from a client is printed as text; there is no such text.
 */
#define _GNU_SOURCE 1

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

/* Of a line, and of what ka_log_hostile adds. */
#define TEXT_BYTES 1024
#define SUFFIX_BYTES 64

static bool under_systemd;
static const char *program = "kernel_advisord";

void
ka_log_start(const char *name)
{
	program = name;
	under_systemd = getenv("JOURNAL_STREAM") != NULL;
}

/* The text is cut where it is too long; the suffix and the newline always fit. */
static void
write_line(int level, const char *suffix, const char *format, va_list args)
{
	char		line[TEXT_BYTES + SUFFIX_BYTES + 1];
	int			length = under_systemd ? snprintf(line, TEXT_BYTES, "<%d>", level) :
		snprintf(line, TEXT_BYTES, "%s: ", program);
	int			n;

	if (length < 0 || length >= TEXT_BYTES)
		return;
	n = vsnprintf(line + length, (size_t) (TEXT_BYTES - length), format, args);
	if (n < 0)
		return;
	length = n < TEXT_BYTES - length ? length + n : TEXT_BYTES - 1;
	n = snprintf(line + length, SUFFIX_BYTES + 1, "%s\n", suffix);
	if (n > 0)
		length += n;
	/* A full pipe or a closed stderr must not stop the daemon. */
	if (write(STDERR_FILENO, line, (size_t) length) < 0)
		return;
}

void
ka_log(int level, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	write_line(level, "", format, args);
	va_end(args);
}

void
ka_log_hostile(const char *format,...)
{
	static time_t last;
	static unsigned long suppressed;
	struct timespec now;
	char		suffix[SUFFIX_BYTES] = "";
	va_list		args;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (last != 0 && now.tv_sec == last)
	{
		suppressed++;
		return;
	}
	if (suppressed > 0)
		snprintf(suffix, sizeof(suffix), " (and %lu more such messages)", suppressed);
	last = now.tv_sec;
	suppressed = 0;
	va_start(args, format);
	write_line(KA_LOG_WARNING, suffix, format, args);
	va_end(args);
}
