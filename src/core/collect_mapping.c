/*
 * collect_mapping.c: the shared memory of a server, as its mappings show it.
 *
 * /proc/PID/maps lists the mappings without walking their page tables, which
 * smaps does, page by page, under the lock that page faults need.
 *
 * The kernel splits a mapping where a part of it got a policy or a protection
 * of its own, so neighbours of the same file count as one.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "collect_priv.h"

typedef struct MapsLine
{
	uint64_t	start,
				end;
	bool		shared;
	KaSpan		device;			/* "00:0f" */
	KaSpan		inode;
	KaSpan		name;			/* with " (deleted)" */
} MapsLine;

static bool
next_hex(KaSpan *span, uint64_t *value)
{
	size_t		n = 0;
	uint64_t	sum = 0;

	for (; n < span->length && n < 16; n++)
	{
		char		c = span->at[n];

		if (ka_is_digit(c))
			sum = sum * 16 + (uint64_t) (c - '0');
		else if (c >= 'a' && c <= 'f')
			sum = sum * 16 + (uint64_t) (c - 'a' + 10);
		else
			break;
	}
	*span = ka_skip(*span, n);
	*value = sum;
	return n > 0;
}

/* "7f2a00000000-7f2a40000000 rw-s 00000000 00:0f 12345    /anon_hugepage (deleted)" */
static bool
parse_maps_line(KaSpan line, MapsLine *map)
{
	KaSpan		word = ka_next_word(&line);

	if (!next_hex(&word, &map->start) || word.length == 0 || word.at[0] != '-')
		return false;
	word = ka_skip(word, 1);
	if (!next_hex(&word, &map->end) || word.length > 0 || map->end <= map->start)
		return false;
	word = ka_next_word(&line);
	if (word.length < 4)
		return false;
	map->shared = word.at[3] == 's';
	ka_next_word(&line);		/* offset */
	map->device = ka_next_word(&line);
	map->inode = ka_next_word(&line);
	map->name = ka_trim(line);
	return map->inode.length > 0;
}

static bool
same_file(const MapsLine *a, const MapsLine *b)
{
	return a->device.length == b->device.length &&
		memcmp(a->device.at, b->device.at, a->device.length) == 0 &&
		a->inode.length == b->inode.length &&
		memcmp(a->inode.at, b->inode.at, a->inode.length) == 0 &&
		a->name.length == b->name.length &&
		memcmp(a->name.at, b->name.at, a->name.length) == 0;
}

/* MAP_HUGETLB, MAP_ANONYMOUS | MAP_SHARED, and shmget have these names. */
static bool
looks_like_postgres(const MapsLine *map)
{
	return ka_starts_with(map->name, "/anon_hugepage") ||
		ka_starts_with(map->name, "/dev/zero") ||
		ka_starts_with(map->name, "/SYSV");
}

bool
ka_find_mapping(const KaSource *source, uintptr_t address, KaMapping *mapping)
{
	KaPath		path;
	KaSpan		text;
	char		proc[64];
	MapsLine	run = {0};		/* neighbours so far */
	bool		found = false;

	*mapping = (KaMapping) {.bytes = KA_UNKNOWN};
	ka_path_init(&path, source->root);
	ka_path_readf(&path, "%s/maps", ka_proc_directory(source, proc, sizeof(proc)));
	text = ka_path_text(&path);
	while (text.length > 0)
	{
		MapsLine	map;
		bool		wanted;
		uint64_t	length;

		if (!parse_maps_line(ka_next_line(&text), &map))
			continue;
		if (run.end == map.start && run.shared == map.shared && same_file(&run, &map))
			map.start = run.start;
		run = map;
		length = map.end - map.start;
		wanted = address != 0 ? address >= map.start && address < map.end :
			map.shared && looks_like_postgres(&map);
		if (!wanted || length > INT64_MAX || (address == 0 && (int64_t) length <= mapping->bytes))
			continue;
		mapping->start = map.start;
		mapping->bytes = (int64_t) length;
		mapping->huge = ka_starts_with(map.name, "/anon_hugepage");
		mapping->sysv = ka_starts_with(map.name, "/SYSV");
		found = true;
	}
	ka_path_free(&path);
	return found;
}
