/*
 * collect_hugepages.c: every pool of huge pages, as a whole and per NUMA node.
 *
 * "grantable" is an estimate from below: the pages that free blocks of at
 * least that order hold now, in all zones of all nodes.  Compaction could free
 * more, and the watermarks of the zones may keep some back.  A page size above
 * the largest block of the buddy allocator (1 GiB on x86-64) is allocated in
 * another way, which buddyinfo says nothing about: it stays unknown.
 *
 * Locks: none; the facts belong to the caller.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "collect_priv.h"
#include "parse.h"

#define POOLS "/sys/kernel/mm/hugepages"
#define NODES "/sys/devices/system/node"

/* Pages of one size in the free blocks of buddyinfo, or KA_UNKNOWN. */
static int64_t
grantable_pages(KaPath *path, int64_t size_bytes, int64_t page_size)
{
	KaSpan		rest;
	int			order = 0;
	int64_t		pages = 0;

	if (page_size <= 0 || ka_path_read(path, "/proc/buddyinfo") < 0)
		return KA_UNKNOWN;
	while (order < KA_MAX_ORDERS && page_size << order < size_bytes)
		order++;

	rest = ka_path_text(path);
	if (ka_is_cut(rest))
		return KA_UNKNOWN;
	while (rest.length > 0)
	{
		KaBuddyZone zone;

		if (!ka_parse_buddy_line(ka_next_line(&rest), &zone) || order >= zone.norders)
			return KA_UNKNOWN;
		pages = ka_add(pages, ka_buddy_pages(&zone, order) >> order);
	}
	return pages;
}

static void
collect_node(KaFacts *facts, KaPath *path, KaPool *pool, const char *pool_name, const char *node_name)
{
	int64_t		number = ka_number_within(node_name, "node", "");
	int64_t		total;
	KaNodePool *nodes;

	if (number == KA_UNKNOWN)
		return;
	total = ka_path_numberf(path, NODES "/%s/hugepages/%s/nr_hugepages", node_name, pool_name);
	if (total == KA_UNKNOWN)
		return;
	nodes = ka_append(facts->arena, pool->nodes, &pool->nnodes, sizeof(KaNodePool));
	if (nodes == NULL)
		return;
	pool->nodes = nodes;
	nodes[pool->nnodes - 1] = (KaNodePool) {
		.node = number,
		.total = total,
		.free = ka_path_numberf(path, NODES "/%s/hugepages/%s/free_hugepages", node_name, pool_name),
	};
}

static int
compare_node_pools(const void *a, const void *b)
{
	int64_t		x = ((const KaNodePool *) a)->node;
	int64_t		y = ((const KaNodePool *) b)->node;

	return (x > y) - (x < y);
}

static int
compare_pools(const void *a, const void *b)
{
	int64_t		x = ((const KaPool *) a)->size_bytes;
	int64_t		y = ((const KaPool *) b)->size_bytes;

	return (x > y) - (x < y);
}

/* The kernel's default size, printed in kB. */
static void
collect_default_size(KaFacts *facts, KaPath *path)
{
	KaSpan		rest;

	if (ka_path_read(path, "/proc/meminfo") < 0)
		return;
	rest = ka_path_text(path);
	while (rest.length > 0)
	{
		KaSpan		name;
		int64_t		value;

		if (ka_parse_meminfo_line(ka_next_line(&rest), &name, &value) && ka_equals(name, "Hugepagesize"))
			ka_set_int(facts, KA_HP_DEFAULT_SIZE, ka_multiply(value, 1024));
	}
}

bool
ka_collect_hugepages(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	char	  **pool_names;
	char	  **node_names;
	ssize_t		npools;
	ssize_t		nnodes;
	int64_t		page_size;
	bool		collected;

	ka_path_init(&path, source->root);
	collect_default_size(facts, &path);
	page_size = ka_page_size(&path);
	npools = ka_path_list(path.root, POOLS, facts->arena, &pool_names);
	nnodes = ka_path_list(path.root, NODES, facts->arena, &node_names);

	for (ssize_t i = 0; i < npools; i++)
	{
		int64_t		size_kb = ka_number_within(pool_names[i], "hugepages-", "kB");
		KaPool	   *pools;
		KaPool	   *pool;

		if (size_kb <= 0 || size_kb > INT64_MAX / 1024)
			continue;
		pools = ka_append(facts->arena, facts->pools, &facts->npools, sizeof(KaPool));
		if (pools == NULL)
			break;
		facts->pools = pools;
		pool = &pools[facts->npools - 1];
		pool->size_bytes = size_kb * 1024;
		pool->total = ka_path_numberf(&path, POOLS "/%s/nr_hugepages", pool_names[i]);
		pool->free = ka_path_numberf(&path, POOLS "/%s/free_hugepages", pool_names[i]);
		pool->reserved = ka_path_numberf(&path, POOLS "/%s/resv_hugepages", pool_names[i]);
		pool->surplus = ka_path_numberf(&path, POOLS "/%s/surplus_hugepages", pool_names[i]);
		pool->overcommit = ka_path_numberf(&path, POOLS "/%s/nr_overcommit_hugepages", pool_names[i]);
		pool->asked = KA_UNKNOWN;
		pool->grantable = grantable_pages(&path, pool->size_bytes, page_size);
		for (ssize_t j = 0; j < nnodes; j++)
			collect_node(facts, &path, pool, pool_names[i], node_names[j]);
		if (pool->nnodes > 1)
			qsort(pool->nodes, pool->nnodes, sizeof(KaNodePool), compare_node_pools);
	}
	if (facts->npools > 1)
		qsort(facts->pools, facts->npools, sizeof(KaPool), compare_pools);

	collected = ka_collected(&path, facts);
	ka_path_free(&path);
	return collected;
}
