/*
 * fuzz_cgroup.c: any text as /proc/PID/cgroup, and after its first empty line
 * as /proc/PID/mountinfo.
 */
#include <stdlib.h>

/* The relation of a path to a mount is known to this file only. */
#include "../../src/core/collect_cgroup.c"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static Hierarchy h;
	KaSpan		mounts = ka_span((const char *) data, size);
	KaSpan		cgroups = mounts;

	while (mounts.length > 0 && ka_next_line(&mounts).length > 0)
		;
	cgroups.length = (size_t) (mounts.at - cgroups.at);
	for (int version = 1; version <= 2; version++)
	{
		if (!find_hierarchy(cgroups, mounts, version == 1 ? "memory" : NULL, &h))
			continue;
		if (h.version != version || (h.below[0] != '\0' && h.below[0] != '/'))
			abort();
		while (go_up(h.below))
			;
	}
	return 0;
}
