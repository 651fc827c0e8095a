/*
 * facts_number.c: numbers of a JSON document.
 *
 * Invariants: an integer is exact or refused, whichever way it is written; only
 * what the grammar of JSON calls a number is one ("0x10", "inf", "+1" are not).
 *
 * Locks: none.
 */
#include "facts_decode.h"

#include <ctype.h>
#include <stdlib.h>

/* The parts of a JSON number: value = digits * 10^exponent. */
typedef struct KaToken
{
	bool		negative;
	const char *digits;			/* with a '.' among them or not */
	const char *digits_end;
	int64_t		exponent;		/* of the last digit, trailing zeros included */
} KaToken;

/* Larger exponents are all alike: no token has that many digits. */
#define EXPONENT_MAX INT64_C(1000000000)

static const char *
skip_digits(const char *p)
{
	while (isdigit((unsigned char) *p))
		p++;
	return p;
}

static bool
parse_token(const char *text, KaToken *token)
{
	const char *p = text;

	*token = (KaToken) {0};
	if (*p == '-')
	{
		token->negative = true;
		p++;
	}

	token->digits = p;
	p = skip_digits(p);
	if (p == token->digits || (*token->digits == '0' && p - token->digits > 1))
		return false;
	if (*p == '.')
	{
		const char *fraction = p + 1;

		p = skip_digits(fraction);
		if (p == fraction)
			return false;
		token->exponent = -(p - fraction);
	}
	token->digits_end = p;

	if (*p == 'e' || *p == 'E')
	{
		bool		negative = false;
		int64_t		exponent = 0;
		const char *digits;

		p++;
		if (*p == '+' || *p == '-')
			negative = *p++ == '-';
		digits = p;
		for (; isdigit((unsigned char) *p); p++)
		{
			if (exponent < EXPONENT_MAX)
				exponent = exponent * 10 + (*p - '0');
		}
		if (p == digits)
			return false;
		token->exponent += negative ? -exponent : exponent;
	}
	return *p == '\0';
}

KaParse
ka_parse_int(const char *text, int64_t *value)
{
	KaToken		token;
	const char *end;
	int64_t		magnitude = 0;
	int64_t		exponent;

	if (!parse_token(text, &token))
		return PARSE_SYNTAX;

	/* Trailing zeros belong into the exponent: what is left decides. */
	exponent = token.exponent;
	end = token.digits_end;
	while (end > token.digits && (end[-1] == '0' || end[-1] == '.'))
	{
		if (*--end == '0')
			exponent++;
	}

	*value = 0;
	if (end == token.digits)
		return PARSE_OK;		/* zero, whatever its exponent */
	if (exponent < 0)
		return PARSE_FRACTION;

	for (const char *p = token.digits; p < end; p++)
	{
		if (*p == '.')
			continue;
		if (__builtin_mul_overflow(magnitude, 10, &magnitude) ||
			__builtin_add_overflow(magnitude, *p - '0', &magnitude))
			return PARSE_RANGE;
	}
	for (; exponent > 0; exponent--)
	{
		if (__builtin_mul_overflow(magnitude, 10, &magnitude))
			return PARSE_RANGE;
	}
	*value = token.negative ? -magnitude : magnitude;
	return PARSE_OK;
}

KaParse
ka_parse_real(const char *text, double *value)
{
	KaToken		token;
	char	   *end;

	if (!parse_token(text, &token))
		return PARSE_SYNTAX;
	*value = strtod(text, &end);
	return *end == '\0' ? PARSE_OK : PARSE_SYNTAX;
}
