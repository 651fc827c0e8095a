/* fuzz_mounts.c: any text as /proc/PID/mountinfo and as /proc/PID/maps. */
#include <stdlib.h>

/* The lines of maps are known to this file only. */
#include "../../src/core/collect_mapping.c"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaSpan		text = ka_span((const char *) data, size);
	KaMount		mount;
	char		name[KA_PATH_MAX];

	if (ka_find_mount(text, "/var/lib/postgresql", &mount))
	{
		if (!ka_unescape(mount.point, name, sizeof(name)) || name[0] != '/')
			abort();
		ka_in_list(mount.super_options, "ro");
	}
	while (text.length > 0)
	{
		MapsLine	map;

		if (parse_maps_line(ka_next_line(&text), &map) && map.end <= map.start)
			abort();
	}
	return 0;
}
