/*
 * collect_thp.c: transparent huge pages, and the knobs of /proc/sys.
 *
 * Locks: none; the facts belong to the caller.
 */
#include "collect_priv.h"

#define THP "/sys/kernel/mm/transparent_hugepage"

typedef struct ThpRow
{
	KaFact		fact;
	const char *file;			/* prints "always [madvise] never" */
} ThpRow;

static const ThpRow rows[] = {
	{KA_THP_ENABLED, THP "/enabled"},
	{KA_THP_DEFRAG, THP "/defrag"},
	{KA_THP_SHMEM, THP "/shmem_enabled"},
};

bool
ka_collect_thp(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	bool		collected;

	ka_path_init(&path, source->root);
	for (size_t i = 0; i < KA_LENGTH(rows); i++)
		ka_set_text(facts, rows[i].fact, ka_bracketed(&path, rows[i].file));
	ka_set_int(facts, KA_THP_PMD_SIZE, ka_path_number(&path, THP "/hpage_pmd_size"));
	collected = ka_collected(&path, facts);
	ka_path_free(&path);
	return collected;
}

bool
ka_collect_sysctl(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	bool		collected;

	ka_path_init(&path, source->root);
	for (int knob = 0; knob < KA_NSYSCTLS; knob++)
	{
		char		name[256] = "/proc/sys/";
		char	   *end = stpcpy(name + strlen(name), ka_sysctl_info[knob].name);

		for (char *c = name; c < end; c++)
		{
			if (*c == '.')
				*c = '/';
		}
		ka_set_int(facts, (KaFact) (KA_SYSCTL_NR_HUGEPAGES + knob), ka_path_number(&path, name));
	}
	collected = ka_collected(&path, facts);
	ka_path_free(&path);
	return collected;
}
