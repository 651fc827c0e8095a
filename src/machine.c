/*
 * machine.c: the kernel's values as the server itself reads them.
 *
 * Nothing here asks the helper: what is read here is what its claims are
 * measured by.  No locks; raises out of memory only.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/pg_shmem.h"
#include "utils/guc.h"

#include "arena.h"
#include "facts.h"
#include "guc.h"
#include "kernel_advisord/protocol.h"
#include "machine.h"
#include "path.h"

KaSource
ka_machine_source(void)
{
	KaSource	source = {.root = ka_machine_root, .data_directory = DataDir};

	return source;
}

int
ka_machine_read(const KaKnob *knob, int node, int64 *value)
{
	KaPath		path;
	int64_t		parsed;
	int			result;

	if (node != KA_ALL_NODES && knob->node_path == NULL)
		return -EINVAL;
	ka_path_init(&path, ka_machine_root);
	if (node == KA_ALL_NODES)
		result = ka_path_read(&path, knob->path);
	else
	{
		char		name[MAXPGPATH];

		/* knob->node_path is a constant of knobs.def with one %d */
		snprintf(name, sizeof(name), knob->node_path, node);
		result = ka_path_read(&path, name);
	}
	if (result >= 0)
	{
		KaSpan		text = ka_path_text(&path);

		result = ka_knob_parse(knob, text.at, text.length, &parsed);
		*value = parsed;
	}
	ka_path_free(&path);
	return Min(result, 0);
}

char *
ka_machine_value_text(const KaKnob *knob, int64 value)
{
	char		text[64];
	int			length = ka_knob_format(knob, value, text, sizeof(text));

	return length < 0 ? NULL : pnstrdup(text, length - 1);	/* without the newline */
}

bool
ka_machine_parse(const KaKnob *knob, const char *text, int64 *value)
{
	int64_t		parsed;

	/* The parser stops at a newline and takes "[word]" out of a list. */
	if (*text == '\0' || strpbrk(text, "[]\n") != NULL ||
		ka_knob_parse(knob, text, strlen(text), &parsed) < 0)
		return false;
	*value = parsed;
	return true;
}

void
ka_machine_collect_boot(KaFacts *facts, KaArena *arena)
{
	KaSource	source = ka_machine_source();

	ka_palloc_arena(arena);
	ka_facts_init(facts, arena);
	if (!ka_collect_boot(facts, &source))
		arena->failed = true;
	ka_arena_check(arena);
}

bool
ka_machine_boot(const KaFacts *facts, const KaKnob *knob, int node, const char **value, const char **file)
{
	int			sysctl = node == KA_ALL_NODES ? ka_sysctl_by_name(knob->name) : -1;

	*value = *file = NULL;
	if (sysctl >= 0 && facts->boot[sysctl].known)
	{
		*file = facts->boot[sysctl].file;
		if (facts->boot[sysctl].value != KA_UNKNOWN)
			*value = psprintf(INT64_FORMAT, facts->boot[sysctl].value);
		return true;
	}
	if (knob->number == KA_HK_THP_ENABLED && facts->boot_thp_known)
	{
		*value = ka_text(facts, KA_BOOT_THP_VALUE);
		*file = ka_text(facts, KA_BOOT_THP_FILE);
		return true;
	}
	return false;
}

/* Pages of this size that the next boot reserves: from sysctl.d, else the kernel command line. */
static int64
boot_pages(const KaFacts *facts, int64 page_bytes)
{
	const KaBootSysctl *boot = &facts->boot[KA_KNOB_NR_HUGEPAGES];
	bool		default_size = page_bytes == ka_int(facts, KA_HP_DEFAULT_SIZE);

	if (default_size && boot->known && boot->value != KA_UNKNOWN)
		return boot->value;
	for (size_t i = 0; i < facts->nboot_pools; i++)
	{
		if (facts->boot_pools[i].size_bytes == page_bytes ||
			(default_size && facts->boot_pools[i].size_bytes == KA_UNKNOWN))
			return facts->boot_pools[i].pages;
	}
	return boot->known ? 0 : KA_UNKNOWN;
}

static bool
unproven(KaPoolProof *proof, const char *problem)
{
	proof->proven = false;
	proof->problem = problem;
	return false;
}

static int64
setting_number(const char *name)
{
	const char *value = GetConfigOption(name, true, false);

	return value ? strtoll(value, NULL, 10) : KA_UNKNOWN;
}

/* The smallest limit of the cgroup on pages of this size that other processes left. */
static int64
cgroup_room(const KaFacts *facts, int64 page_bytes, int64 own_bytes)
{
	int64		room = KA_UNKNOWN;

	for (size_t i = 0; i < facts->nhugetlb; i++)
	{
		const KaHugetlbLimit *limit = &facts->hugetlb[i];
		const int64 limits[] = {limit->limit_bytes, limit->rsvd_limit_bytes};

		if (limit->size_bytes != page_bytes)
			continue;
		for (size_t j = 0; j < lengthof(limits); j++)
		{
			int64		used_by_others = Max(limit->usage_bytes - own_bytes, 0);

			if (limits[j] != KA_UNKNOWN && (room == KA_UNKNOWN || limits[j] - used_by_others < room))
				room = Max(limits[j] - used_by_others, 0);
		}
	}
	return room;
}

static bool
prove(KaPoolProof *proof, const KaFacts *facts, const KaMapping *mapping)
{
	const KaPool *pool = ka_pool(facts, proof->page_bytes);

	if (proof->page_bytes <= 0 || pool == NULL || pool->total == KA_UNKNOWN || pool->free == KA_UNKNOWN)
		return unproven(proof, "the kernel has no pool of huge pages of the size that the server uses");
	if (shared_memory_type != SHMEM_TYPE_MMAP)
		return unproven(proof, "shared_memory_type is not mmap, and only such a segment can use huge pages");
	proof->total = pool->total;
	proof->free = pool->free;
	proof->reserved = Max(pool->reserved, 0);
	if (mapping->bytes != KA_UNKNOWN && mapping->huge)
		proof->own = mapping->bytes / proof->page_bytes;
	/* Pages that this server has reserved and not touched are among "reserved". */
	proof->available = proof->free - proof->reserved + proof->own;
	if (proof->needed <= 0)
		return unproven(proof, "how many huge pages the server needs is not known");
	if (proof->available < proof->needed)
		return unproven(proof, psprintf("the server needs " INT64_FORMAT " pages of " INT64_FORMAT " kB and could have " INT64_FORMAT
										" (free " INT64_FORMAT ", reserved " INT64_FORMAT ", its own " INT64_FORMAT ")",
										proof->needed, proof->page_bytes / 1024, proof->available,
										proof->free, proof->reserved, proof->own));
	proof->cgroup_limit_bytes = cgroup_room(facts, proof->page_bytes, proof->own * proof->page_bytes);
	if (proof->cgroup_limit_bytes != KA_UNKNOWN && proof->cgroup_limit_bytes / proof->page_bytes < proof->needed)
		return unproven(proof, psprintf("the server needs " INT64_FORMAT " pages of " INT64_FORMAT " kB and its cgroup may have " INT64_FORMAT " bytes of them",
										proof->needed, proof->page_bytes / 1024, proof->cgroup_limit_bytes));
	proof->proven = true;
	return true;
}

/*
 * The need is the server's own figure for its present settings.  It counts one
 * page more than the segment, so it is never too small.
 */
void
ka_machine_prove_pool(KaPoolProof *proof)
{
	KaSource	source = ka_machine_source();
	KaFacts    *facts = palloc(sizeof(KaFacts));
	KaMapping	mapping = {.bytes = KA_UNKNOWN};
	KaSource	server = {.root = ""};	/* the mapping is this process's, whatever the root */
	KaArena		arena;

	memset(proof, 0, sizeof(*proof));
	proof->cgroup_limit_bytes = proof->boot = KA_UNKNOWN;
	ka_palloc_arena(&arena);
	ka_facts_init(facts, &arena);
	if (!ka_collect_hugepages(facts, &source) || !ka_collect_cgroup(facts, &source) ||
		!ka_collect_boot(facts, &source))
		arena.failed = true;
	ka_arena_check(&arena);

	proof->page_bytes = huge_page_size > 0 ? (int64) huge_page_size * 1024 : Max(ka_int(facts, KA_HP_DEFAULT_SIZE), 0);
	proof->needed = setting_number("shared_memory_size_in_huge_pages");
	if (proof->page_bytes > 0)
		proof->boot = boot_pages(facts, proof->page_bytes);
	ka_find_mapping(&server, (uintptr_t) BufferBlocks, &mapping);
	prove(proof, facts, &mapping);
}
