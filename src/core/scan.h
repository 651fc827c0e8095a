/*
 * scan.h: walking through text that need not end with NUL.
 *
 * A span is a piece of a buffer that somebody else owns.  The functions never
 * read outside of it and never write; a number that does not fit saturates at
 * INT64_MAX.  They are inline because the sampler reads thousands of lines.
 */
#ifndef KA_SCAN_H
#define KA_SCAN_H

#include <string.h>

#include "ka_base.h"

typedef struct KaSpan
{
	const char *at;
	size_t		length;
} KaSpan;

static inline KaSpan
ka_span(const char *at, size_t length)
{
	return (KaSpan) {at, length};
}

static inline KaSpan
ka_span_text(const char *text)
{
	return (KaSpan) {text, strlen(text)};
}

static inline bool
ka_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline bool
ka_is_space(char c)
{
	return ka_is_blank(c) || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

static inline bool
ka_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Drops the first n bytes. */
static inline KaSpan
ka_skip(KaSpan span, size_t n)
{
	return (KaSpan) {span.at + n, span.length - n};
}

/* Takes the line off the front, without its newline. */
static inline KaSpan
ka_next_line(KaSpan *text)
{
	const char *end = text->length ? memchr(text->at, '\n', text->length) : NULL;
	KaSpan		line = *text;

	if (end)
	{
		line.length = (size_t) (end - text->at);
		*text = ka_skip(*text, line.length + 1);
	}
	else
		*text = ka_skip(*text, text->length);
	return line;
}

static inline KaSpan
ka_skip_blanks(KaSpan span)
{
	while (span.length > 0 && ka_is_blank(*span.at))
		span = ka_skip(span, 1);
	return span;
}

static inline KaSpan
ka_trim(KaSpan span)
{
	while (span.length > 0 && ka_is_space(*span.at))
		span = ka_skip(span, 1);
	while (span.length > 0 && ka_is_space(span.at[span.length - 1]))
		span.length--;
	return span;
}

/* Takes the next word, up to a blank, off the front; empty at the end. */
static inline KaSpan
ka_next_word(KaSpan *text)
{
	KaSpan		word = ka_skip_blanks(*text);
	size_t		n = 0;

	while (n < word.length && !ka_is_space(word.at[n]))
		n++;
	*text = ka_skip(word, n);
	word.length = n;
	return word;
}

/* Takes what stands before the separator off the front, and the separator. */
static inline KaSpan
ka_next_field(KaSpan *text, char separator)
{
	const char *end = text->length ? memchr(text->at, separator, text->length) : NULL;
	KaSpan		field = *text;

	if (end)
	{
		field.length = (size_t) (end - text->at);
		*text = ka_skip(*text, field.length + 1);
	}
	else
		*text = ka_skip(*text, text->length);
	return field;
}

static inline bool
ka_equals(KaSpan span, const char *text)
{
	size_t		length = strlen(text);

	return span.length == length && memcmp(span.at, text, length) == 0;
}

static inline bool
ka_starts_with(KaSpan span, const char *text)
{
	size_t		length = strlen(text);

	return span.length >= length && memcmp(span.at, text, length) == 0;
}

static inline bool
ka_ends_with(KaSpan span, const char *text)
{
	size_t		length = strlen(text);

	return span.length >= length && memcmp(span.at + span.length - length, text, length) == 0;
}

/* Takes a run of decimal digits off the front; false when there is none. */
static inline bool
ka_next_number(KaSpan *text, int64_t *value)
{
	size_t		n = 0;
	uint64_t	sum = 0;

	while (n < text->length && ka_is_digit(text->at[n]))
	{
		uint64_t	digit = (uint64_t) (text->at[n] - '0');

		if (sum > (INT64_MAX - digit) / 10)
			sum = INT64_MAX;	/* stays there: the next digit finds it too large */
		else
			sum = sum * 10 + digit;
		n++;
	}
	*text = ka_skip(*text, n);
	*value = (int64_t) sum;
	return n > 0;
}

/* The span is a decimal number and nothing else. */
static inline bool
ka_to_number(KaSpan span, int64_t *value)
{
	return ka_next_number(&span, value) && span.length == 0;
}

/* Sums and products of counts that stop at INT64_MAX; no operand is negative. */
static inline int64_t
ka_add(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static inline int64_t
ka_multiply(int64_t a, int64_t b)
{
	return a > 0 && b > INT64_MAX / a ? INT64_MAX : a * b;
}

#endif							/* KA_SCAN_H */
