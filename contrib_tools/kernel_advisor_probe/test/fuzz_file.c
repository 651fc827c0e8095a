/*
 * fuzz_file.c: any bytes as the published file.  The file has the right size,
 * owner and mode, or it would not be mapped; the input is its beginning, and
 * its first bytes decide what of the header is put right, so that the fuzzer
 * reaches what lies behind it.
 */
#define _GNU_SOURCE 1

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe_file.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static KaProbeFile *map;
static KaProbeFile *copy;
static char path[64];

static void
prepare(void)
{
	int			fd;

	snprintf(path, sizeof(path), "/var/tmp/fuzz_file.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || ftruncate(fd, sizeof(KaProbeFile)) < 0)
		abort();
	map = mmap(NULL, sizeof(KaProbeFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	copy = malloc(sizeof(*copy));
	if (map == MAP_FAILED || copy == NULL)
		abort();
	close(fd);
}

static void
clean_up(void)
{
	unlink(path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaProbeReader reader = {0};
	KaProbeState state;
	uint8_t		fix;

	if (map == NULL)
	{
		prepare();
		atexit(clean_up);
	}
	if (size == 0)
		return 0;
	fix = data[0];
	data++;
	size--;
	if (size > sizeof(*map))
		size = sizeof(*map);
	memset(&map->header, 0, sizeof(map->header));
	memcpy(map, data, size);
	if (fix & 1)
		map->header.magic = KA_PROBE_MAGIC;
	if (fix & 2)
		map->header.version = KA_PROBE_VERSION;
	if (fix & 4)
		map->header.size = sizeof(KaProbeFile);
	if (fix & 0xf8)
		map->header.sequence &= ~UINT64_C(1);	/* odd ones are waited for: few of them */

	state = ka_probe_read(&reader, path, UINT64_C(5000000000), copy);
	if (state == KA_PROBE_OK || state == KA_PROBE_STALE)
	{
		uint64_t	sum = 0;

		if (copy->header.magic != KA_PROBE_MAGIC || copy->header.version != KA_PROBE_VERSION ||
			copy->header.ngroups > KA_PROBE_GROUPS || copy->header.nprocesses > KA_PROBE_PROCESSES)
			abort();
		for (uint32_t i = 0; i < copy->header.ngroups; i++)
		{
			if (ka_probe_kind_name(copy->groups[i].kind) == NULL)
				abort();
			sum += ka_probe_recent(&copy->groups[i].compaction_recent, &copy->header, copy->groups[i].cgroup_id);
		}
		for (uint32_t i = 0; i < copy->header.nprocesses; i++)
			sum += strlen(copy->processes[i].comm);
		if (sum == 1)
			fputc('\0', stderr);	/* so that nothing is optimised away */
	}
	else if (reader.problem == NULL)
		abort();
	ka_probe_close(&reader);
	return 0;
}
