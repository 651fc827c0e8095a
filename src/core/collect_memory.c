/*
 * collect_memory.c: /proc/meminfo, the NUMA nodes, and how fragmented free
 * memory is.
 *
 * Locks: none; the facts belong to the caller.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "collect_priv.h"
#include "parse.h"

typedef struct MeminfoRow
{
	const char *name;
	KaFact		fact;
} MeminfoRow;

static const MeminfoRow rows[] = {
	{"MemTotal", KA_MEM_TOTAL},
	{"MemAvailable", KA_MEM_AVAILABLE},
	{"MemFree", KA_MEM_FREE},
	{"PageTables", KA_MEM_PAGE_TABLES},
	{"Dirty", KA_MEM_DIRTY},
	{"CommitLimit", KA_MEM_COMMIT_LIMIT},
	{"Committed_AS", KA_MEM_COMMITTED},
	{"SwapTotal", KA_MEM_SWAP_TOTAL},
};

bool
ka_collect_memory(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	KaSpan		rest;
	bool		collected;

	ka_path_init(&path, source->root);
	ka_path_read(&path, "/proc/meminfo");
	rest = ka_path_text(&path);

	/* A text that was cut off may end in half a number. */
	if (!ka_is_cut(rest))
	{
		while (rest.length > 0)
		{
			KaSpan		name;
			int64_t		value;

			if (!ka_parse_meminfo_line(ka_next_line(&rest), &name, &value))
				continue;
			for (size_t i = 0; i < KA_LENGTH(rows); i++)
			{
				if (ka_equals(name, rows[i].name))
					ka_set_int(facts, rows[i].fact, ka_multiply(value, 1024));
			}
		}
	}
	collected = ka_collected(&path, facts);
	ka_path_free(&path);
	return collected;
}

/* "Node 0 MemTotal:       24683656 kB" */
static void
read_node(KaNode *node, KaSpan text)
{
	while (text.length > 0)
	{
		KaSpan		line = ka_next_line(&text);
		KaSpan		name;
		int64_t		value;

		ka_next_word(&line);
		ka_next_word(&line);
		if (!ka_parse_meminfo_line(ka_skip_blanks(line), &name, &value))
			continue;
		if (ka_equals(name, "MemTotal"))
			node->total_bytes = ka_multiply(value, 1024);
		else if (ka_equals(name, "MemFree"))
			node->free_bytes = ka_multiply(value, 1024);
	}
}

static int
compare_nodes(const void *a, const void *b)
{
	int64_t		x = ((const KaNode *) a)->node;
	int64_t		y = ((const KaNode *) b)->node;

	return (x > y) - (x < y);
}

bool
ka_collect_numa(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	char	  **names;
	ssize_t		n;
	bool		collected;

	ka_path_init(&path, source->root);
	n = ka_path_list(path.root, "/sys/devices/system/node", facts->arena, &names);
	for (ssize_t i = 0; i < n; i++)
	{
		int64_t		number = ka_number_within(names[i], "node", "");
		KaNode	   *nodes;

		if (number == KA_UNKNOWN ||
			ka_path_readf(&path, "/sys/devices/system/node/%s/meminfo", names[i]) < 0)
			continue;
		nodes = ka_append(facts->arena, facts->numa, &facts->nnuma, sizeof(KaNode));
		if (nodes == NULL)
			break;
		facts->numa = nodes;
		nodes[facts->nnuma - 1] = (KaNode) {number, KA_UNKNOWN, KA_UNKNOWN};
		read_node(&nodes[facts->nnuma - 1], ka_path_text(&path));
	}

	/* node10 sorts before node2 by name. */
	if (facts->nnuma > 1)
		qsort(facts->numa, facts->nnuma, sizeof(KaNode), compare_nodes);
	collected = ka_collected(&path, facts);
	ka_path_free(&path);
	return collected;
}

bool
ka_collect_fragmentation(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	KaCounters	counters;
	bool		collected;

	ka_path_init(&path, source->root);
	if (ka_path_read(&path, "/proc/buddyinfo") == 0 &&
		ka_parse_buddyinfo(path.text, path.length, &counters))
	{
		ka_set_int(facts, KA_FRAG_FREE_COSTLY, counters.free_costly_blocks);
		ka_set_real(facts, KA_FRAG_UNUSABLE_4, counters.unusable_index_order4);
	}
	collected = ka_collected(&path, facts);
	ka_path_free(&path);
	return collected;
}
