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
