/*
 * probe_file.c: the reader of the file that kernel_advisor_probe publishes.
 *
 * Usable in a server's worker: no stdio, no allocation, no lock.  See
 * probe_file.h for the format and for what is trusted.
 *
 * SPDX-License-Identifier: PostgreSQL OR GPL-2.0-only
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "probe_file.h"

#define NS_PER_S UINT64_C(1000000000)

/*
 * A publication takes some 10 µs, longer when its writer loses the CPU in the
 * middle.  First look again at once, then after pauses; both end.
 */
#define MAX_LOOKS 200
#define MAX_PAUSES 40
#define PAUSE_NS 200000

const char *
ka_probe_kind_name(uint32_t kind)
{
	static const char *const names[] = {
#define KIND_NAME(kind, name) name,
		KA_PROBE_KINDS(KIND_NAME)
#undef KIND_NAME
	};

	return kind < KA_KIND_COUNT ? names[kind] : "unknown";
}

const char *
ka_probe_source_name(unsigned bit)
{
	static const char *const names[] = {
#define SOURCE_NAME(bit, name, subsystem, lost) subsystem ":" #name,
		KA_PROBE_SOURCES(SOURCE_NAME)
#undef SOURCE_NAME
	};

	return bit < KA_SOURCE_COUNT ? names[bit] : "unknown";
}

bool
ka_probe_is_stale(const KaProbeHeader *header, uint64_t now_ns)
{
	uint64_t	limit_ns = header->interval_ms * UINT64_C(3000000) + 2 * NS_PER_S;

	/* A heartbeat from the future is another machine's, or garbage. */
	return header->heartbeat_ns > now_ns + NS_PER_S ||
		(now_ns > header->heartbeat_ns && now_ns - header->heartbeat_ns > limit_ns);
}

uint64_t
ka_probe_recent(const KaRecent *recent, const KaProbeHeader *header, uint64_t since_ns)
{
	uint64_t	last = header->heartbeat_ns / NS_PER_S;
	uint64_t	first = since_ns / NS_PER_S;
	uint64_t	longest_ns = 0;

	if (first + KA_PROBE_RECENT - 2 < last)
		first = last - (KA_PROBE_RECENT - 2);
	for (uint64_t s = first; s <= last; s++)
	{
		if (recent->longest_ns[s % KA_PROBE_RECENT] > longest_ns)
			longest_ns = recent->longest_ns[s % KA_PROBE_RECENT];
	}
	return longest_ns;
}

static KaProbeState
refuse(KaProbeReader *reader, const char *problem)
{
	reader->problem = problem;
	return KA_PROBE_REFUSED;
}

void
ka_probe_close(KaProbeReader *reader)
{
	if (reader->map)
		munmap((void *) reader->map, sizeof(KaProbeFile));
	memset(reader, 0, sizeof(*reader));
}

static bool
owner_is_trusted(uid_t owner)
{
	struct passwd entry;
	struct passwd *found = NULL;
	char		buffer[1024];

	if (owner == 0 || owner == geteuid())
		return true;
	return getpwnam_r(KA_PROBE_USER, &entry, buffer, sizeof(buffer), &found) == 0 && found && found->pw_uid == owner;
}

/* Maps the file at the path, unless it is the one that is mapped already. */
static KaProbeState
open_file(KaProbeReader *reader, const char *path)
{
	struct stat status;
	KaProbeState state = KA_PROBE_OK;
	void	   *map;
	/* Not blocking: a pipe in its place must not hang the reader. */
	int			fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
	{
		int			error = errno;

		ka_probe_close(reader);
		if (error == ELOOP)
			return refuse(reader, "it is a symbolic link");
		reader->problem = error == ENOENT || error == ENOTDIR ? "there is no such file" : "it cannot be opened";
		return error == ENOENT || error == ENOTDIR ? KA_PROBE_ABSENT : KA_PROBE_REFUSED;
	}
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		state = refuse(reader, "it is not a regular file");
	else if (!owner_is_trusted(status.st_uid))
		state = refuse(reader, "its owner is neither root nor " KA_PROBE_USER);
	else if (status.st_mode & (S_IWGRP | S_IWOTH))
		state = refuse(reader, "others than its owner can write to it");
	else if (status.st_size != (off_t) sizeof(KaProbeFile))
		state = refuse(reader, "its size is not that of this version");
	else if (reader->map == NULL || status.st_dev != reader->device || status.st_ino != reader->inode)
	{
		ka_probe_close(reader);
		map = mmap(NULL, sizeof(KaProbeFile), PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			state = refuse(reader, "it cannot be mapped");
		else
		{
			reader->map = map;
			reader->device = status.st_dev;
			reader->inode = status.st_ino;
		}
	}
	close(fd);
	if (state != KA_PROBE_OK)
	{
		const char *problem = reader->problem;

		ka_probe_close(reader);
		reader->problem = problem;
	}
	return state;
}

/* One consistent copy of the mapping. */
static KaProbeState
copy_file(KaProbeReader *reader, KaProbeFile *copy)
{
	const KaProbeFile *map = reader->map;

	for (int i = 0; i < MAX_LOOKS + MAX_PAUSES; i++)
	{
		KaProbeHeader *header = &copy->header;
		uint64_t	before;

		if (i > MAX_LOOKS)
			nanosleep(&(struct timespec) {.tv_nsec = PAUSE_NS}, NULL);
		before = __atomic_load_n(&map->header.sequence, __ATOMIC_ACQUIRE);
		if (before % 2 == 1)
			continue;
		memcpy(header, &map->header, sizeof(*header));
		/* Counts are taken from the copy and checked in every try: another moment may have others. */
		if (header->ngroups <= KA_PROBE_GROUPS && header->nprocesses <= KA_PROBE_PROCESSES)
		{
			memcpy(&copy->totals, &map->totals, sizeof(copy->totals));
			memcpy(copy->groups, map->groups, header->ngroups * sizeof(copy->groups[0]));
			memcpy(copy->processes, map->processes, header->nprocesses * sizeof(copy->processes[0]));
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&map->header.sequence, __ATOMIC_RELAXED) != before)
			continue;

		header->sequence = before;
		if (header->magic != KA_PROBE_MAGIC)
			return refuse(reader, "it is not a file of " KA_PROBE_USER);
		if (header->version != KA_PROBE_VERSION)
			return refuse(reader, "it has another version of the format");
		if (header->size != sizeof(KaProbeFile))
			return refuse(reader, "its size is not that of this version");
		if (header->ngroups > KA_PROBE_GROUPS || header->nprocesses > KA_PROBE_PROCESSES)
			return refuse(reader, "it claims more rows than it has");
		for (uint32_t row = 0; row < header->nprocesses; row++)
			copy->processes[row].comm[sizeof(copy->processes[row].comm) - 1] = '\0';
		return KA_PROBE_OK;
	}
	return refuse(reader, "it is being written all the time: its writer died or is hostile");
}

KaProbeState
ka_probe_read(KaProbeReader *reader, const char *path, uint64_t now_ns, KaProbeFile *copy)
{
	KaProbeState state = KA_PROBE_REFUSED;

	if (reader->map)
	{
		state = copy_file(reader, copy);
		if (state == KA_PROBE_OK && !ka_probe_is_stale(&copy->header, now_ns))
			return KA_PROBE_OK;
	}
	/* Nothing mapped, or not good any more: perhaps there is a new file in its place. */
	state = open_file(reader, path);
	if (state == KA_PROBE_OK)
		state = copy_file(reader, copy);
	if (state == KA_PROBE_OK && ka_probe_is_stale(&copy->header, now_ns))
	{
		reader->problem = "its heartbeat is old: the probe is not running";
		state = KA_PROBE_STALE;
	}
	return state;
}
