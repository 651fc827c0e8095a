/*
 * facts.c: the tables of the facts, and the only ways to set one.
 *
 * Invariants: a value that is known has the type of its row, lies within the
 * row's bounds or in its list of values, and is finite; a number has both its
 * integer and its real form set; texts live in the arena of the facts.
 *
 * Locks: none.  Nothing here is shared.
 */
#include "facts.h"

#include <math.h>
#include <string.h>

const KaFactInfo ka_fact_info[KA_NFACTS] = {
#define FACT(symbol, path, type, unit, min, max, values, source) \
	[KA_##symbol] = {path, type, unit, min, max, values, source},
#include "facts.def"
#undef FACT
#define SYSCTL(symbol, name, unit, min, max, def, since, reason) \
	[KA_SYSCTL_##symbol] = {"sysctl." name, KA_INT, unit, min, max, NULL, "/proc/sys"},
#include "sysctls.def"
#undef SYSCTL
};

const KaSysctlInfo ka_sysctl_info[KA_NSYSCTLS] = {
#define SYSCTL(symbol, name, unit, min, max, def, since, reason) \
	[KA_KNOB_##symbol] = {name, unit, min, max, def, since, reason},
#include "sysctls.def"
#undef SYSCTL
};

void
ka_facts_init(KaFacts *facts, KaArena *arena)
{
	memset(facts, 0, sizeof(*facts));
	facts->arena = arena;
	for (int i = 0; i < KA_NSYSCTLS; i++)
		facts->boot[i].value = KA_UNKNOWN;
}

/* Is "value" one of the alternatives in "a|b|c"? */
static bool
is_alternative(const char *values, const char *value)
{
	size_t		length = strlen(value);

	if (strchr(value, '|') != NULL)
		return false;
	for (const char *v = values; v != NULL; v = strchr(v, '|'))
	{
		if (*v == '|')
			v++;
		if (strncmp(v, value, length) == 0 && (v[length] == '|' || v[length] == '\0'))
			return true;
	}
	return false;
}

bool
ka_set_int(KaFacts *facts, KaFact fact, int64_t value)
{
	const KaFactInfo *info = &ka_fact_info[fact];

	if (info->type != KA_INT && info->type != KA_REAL)
		return false;
	if (value < info->min || value > info->max)
		return false;

	facts->v[fact] = (KaValue) {.known = true,.i = value,.r = (double) value};
	return true;
}

bool
ka_set_real(KaFacts *facts, KaFact fact, double value)
{
	const KaFactInfo *info = &ka_fact_info[fact];

	if (info->type != KA_REAL)
		return false;
	if (!isfinite(value) || value < (double) info->min || value > (double) info->max)
		return false;

	/* The bounds of a real lie within 2^62: its truncated form is defined. */
	facts->v[fact] = (KaValue) {.known = true,.i = (int64_t) value,.r = value};
	return true;
}

bool
ka_set_bool(KaFacts *facts, KaFact fact, bool value)
{
	if (ka_fact_info[fact].type != KA_BOOL)
		return false;

	facts->v[fact] = (KaValue) {.known = true,.i = value,.r = value};
	return true;
}

bool
ka_set_text(KaFacts *facts, KaFact fact, const char *value)
{
	const KaFactInfo *info = &ka_fact_info[fact];
	const char *copy;

	if (value == NULL)
		return false;
	if (info->type == KA_ENUM ? !is_alternative(info->values, value) : info->type != KA_TEXT)
		return false;

	copy = ka_strdup(facts->arena, value);
	if (copy == NULL)
		return false;

	facts->v[fact] = (KaValue) {.known = true,.s = copy};
	return true;
}

int
ka_sysctl_by_name(const char *name)
{
	for (int i = 0; i < KA_NSYSCTLS; i++)
	{
		if (strcmp(ka_sysctl_info[i].name, name) == 0)
			return i;
	}
	return -1;
}

bool
ka_is(const KaFacts *facts, KaFact fact, const char *value)
{
	const char *text = ka_text(facts, fact);

	return text != NULL && strcmp(text, value) == 0;
}

KaPool *
ka_pool(const KaFacts *facts, int64_t size_bytes)
{
	for (size_t i = 0; i < facts->npools; i++)
	{
		if (facts->pools[i].size_bytes == size_bytes)
			return &facts->pools[i];
	}
	return NULL;
}
