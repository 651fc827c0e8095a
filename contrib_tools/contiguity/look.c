/*
 * look.c: what the commands share.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect.h"
#include "look.h"
#include "path.h"

bool
ka_look_of(const KaWalk *walk, KaLook *look)
{
	*look = (KaLook) {
		.page_bytes = walk->page_bytes,
		.looked = walk->looked,
		.present = walk->present,
		.swapped = walk->swapped,
		.unknown = walk->unknown,
		.orders_known = walk->flags_known,
		.folios = walk->folios,
	};
	return ka_runs_summary(&walk->runs, &look->runs);
}

KaPfnOrder
ka_handed_out(const KaLook *look)
{
	const KaFolios *folios = &look->folios;

	return look->orders_known ? ka_pfn_order(folios->after, folios->before, folios->elsewhere) : look->runs.order;
}

int
ka_scratch_file(const char *directory)
{
	char		name[KA_PATH_MAX];
	int			fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd;
	if (snprintf(name, sizeof(name), "%s/kernel_advisor.XXXXXX", directory) >= (int) sizeof(name))
	{
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

bool
ka_recycled(KaArena *arena, int64_t page_bytes, KaRecycled *recycled)
{
	KaReaderConfig config = {.root = "", .hugepage_size_bytes = KA_UNKNOWN};
	KaReader   *reader = ka_reader_new(&config);
	KaFacts    *facts = ka_alloc(arena, sizeof(*facts));
	KaSource	source = {.root = ""};
	KaCounters	counters = {.pcp_pages = KA_UNKNOWN};

	if (reader == NULL || facts == NULL)
	{
		ka_reader_free(reader);
		return false;
	}
	ka_reader_read_source(reader, KA_SRC_ZONEINFO, &counters);
	ka_reader_free(reader);
	ka_facts_init(facts, arena);
	if (!ka_collect_memory(facts, &source) || !ka_collect_fragmentation(facts, &source))
		return false;
	*recycled = (KaRecycled) {
		.bytes = counters.pcp_pages > 0 ? counters.pcp_pages * page_bytes : 0,
		.available_bytes = (int64_t) ka_real(facts, KA_MEM_AVAILABLE, 0),
		.unusable_index = ka_real(facts, KA_FRAG_UNUSABLE_4, -1),
	};
	if (recycled->unusable_index > 0)
		recycled->bytes += (int64_t) (recycled->unusable_index * ka_real(facts, KA_MEM_FREE, 0));
	return true;
}

void
ka_stay_on_one_cpu(void)
{
	int			cpu = sched_getcpu();
	cpu_set_t	set;

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void) sched_setaffinity(0, sizeof(set), &set);
}
