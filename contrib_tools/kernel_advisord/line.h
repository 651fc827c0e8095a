/*
 * line.h: text consumed line by line between two pointers.
 *
 * For the parsers of /proc in this directory.  None of them looks beyond the
 * end, so the text need not end with NUL.
 */
#ifndef KA_LINE_H
#define KA_LINE_H

#include <string.h>

#include "knobs.h"

/* A line between two pointers, consumed from the left. */
typedef struct KaLine
{
	const char *p;
	const char *end;
} KaLine;

static inline bool
ka_next_line(const char **text, const char *end, KaLine *line)
{
	const char *newline;

	if (*text == end)
		return false;
	newline = memchr(*text, '\n', (size_t) (end - *text));
	line->p = *text;
	line->end = newline ? newline : end;
	*text = newline ? newline + 1 : end;
	return true;
}

static inline void
ka_skip_spaces(KaLine *line)
{
	while (line->p < line->end && *line->p == ' ')
		line->p++;
}

/* Consumes a word when it is next. */
static inline bool
ka_take(KaLine *line, const char *word)
{
	size_t		length = strlen(word);

	ka_skip_spaces(line);
	if ((size_t) (line->end - line->p) < length || memcmp(line->p, word, length) != 0)
		return false;
	line->p += length;
	return true;
}

static inline bool
ka_take_number(KaLine *line, int64_t *value)
{
	ka_skip_spaces(line);
	return ka_parse_number(&line->p, line->end, value);
}

/* Everything up to the next space or comma. */
static inline void
ka_take_name(KaLine *line, const char **name, size_t *length)
{
	ka_skip_spaces(line);
	*name = line->p;
	while (line->p < line->end && *line->p != ' ' && *line->p != ',')
		line->p++;
	*length = (size_t) (line->p - *name);
}

static inline bool
ka_is_word(const char *name, size_t length, const char *word)
{
	return length == strlen(word) && memcmp(name, word, length) == 0;
}

#endif							/* KA_LINE_H */
