/*
 * collect_cgroup.c: limits on memory and huge pages, this cgroup's and every
 * ancestor's.
 *
 * Version 1 has a hierarchy for each controller, version 2 one for all; a
 * hybrid system has both, so each controller is looked up by itself: a
 * version 1 hierarchy that has it comes first.
 *
 * The path in /proc/PID/cgroup and the root of a cgroup mount are both seen
 * from the cgroup namespace of the reader.  Inside a container with a
 * namespace of its own, or with a part of the tree mounted, what lies above is
 * out of sight: limits there are not known, and "minimum over all ancestors"
 * means those that can be seen.
 *
 * "max", and the numbers near 2^63 by which version 1 says the same (rounded
 * down to a page, of any size), are no limits: absent.
 *
 * Locks: none; the facts belong to the caller.
 */
#define _GNU_SOURCE 1

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collect_priv.h"

/* More is no limit: 4 EiB. */
#define LARGEST_LIMIT (INT64_C(1) << 62)

/* Where a controller's files are. */
typedef struct Hierarchy
{
	int			version;		/* 0: not found */
	char		mount[KA_PATH_MAX]; /* its mount point */
	char		above[KA_PATH_MAX]; /* the cgroup path of the mount point, "" for the root */
	char		below[KA_PATH_MAX]; /* from there down to our cgroup: "" or "/a/b" */
} Hierarchy;

/* "/../.." as 2: how far a path starts above the namespace's root. */
static int
levels_up(const char **path)
{
	int			up = 0;

	while (strncmp(*path, "/..", 3) == 0 && ((*path)[3] == '/' || (*path)[3] == '\0'))
	{
		*path += 3;
		up++;
	}
	return up;
}

/*
 * Makes "below" from the cgroup's path and the mount's root.  Where the names
 * between them are out of sight, but the mount point is an ancestor, it stands
 * for all that can be known (below is ""); otherwise the mount says nothing
 * about us.
 */
static bool
relate(Hierarchy *h, const char *path, const char *root)
{
	const char *path_rest = path;
	const char *root_rest = root;
	int			path_up = levels_up(&path_rest);
	int			root_up = levels_up(&root_rest);

	h->below[0] = '\0';
	h->above[0] = '\0';
	if (path_up != root_up)
		return root_up > path_up && strcmp(root_rest, "") == 0;
	if (strcmp(root_rest, "/") == 0)
		root_rest = "";
	if (root_rest[0] != '\0' && !ka_is_below(path_rest, root_rest))
		return false;
	strcpy(h->above, root_rest);
	path_rest += strlen(root_rest);
	if (strcmp(path_rest, "/") != 0)
		strcpy(h->below, path_rest);
	return true;
}

/* Our path in one hierarchy: "4:memory:/a/b" or "0::/a/b". */
static bool
find_path(KaSpan cgroups, const char *controller, char *path, size_t size)
{
	while (cgroups.length > 0)
	{
		KaSpan		line = ka_next_line(&cgroups);
		KaSpan		id = ka_next_field(&line, ':');
		KaSpan		controllers = ka_next_field(&line, ':');
		bool		ours = controller ? ka_in_list(controllers, controller) :
			ka_equals(id, "0") && controllers.length == 0;

		if (!ours || line.length == 0 || line.length >= size || line.at[0] != '/' ||
			memchr(line.at, '\0', line.length) != NULL)
			continue;
		memcpy(path, line.at, line.length);
		path[line.length] = '\0';
		return true;
	}
	return false;
}

/* The mount of a hierarchy that says something about our path. */
static bool
find_hierarchy(KaSpan cgroups, KaSpan mounts, const char *controller, Hierarchy *h)
{
	char		path[KA_PATH_MAX];
	char		root[KA_PATH_MAX];

	if (!find_path(cgroups, controller, path, sizeof(path)))
		return false;
	while (mounts.length > 0)
	{
		KaMount		mount;

		if (!ka_parse_mount(ka_next_line(&mounts), &mount))
			continue;
		if (controller ? !ka_equals(mount.type, "cgroup") || !ka_in_list(mount.super_options, controller) :
			!ka_equals(mount.type, "cgroup2"))
			continue;
		if (ka_unescape(mount.point, h->mount, sizeof(h->mount)) &&
			ka_unescape(mount.root, root, sizeof(root)) &&
			relate(h, path, root))
		{
			h->version = controller ? 1 : 2;
			return true;
		}
	}
	return false;
}

static bool
find_controller(KaPath *path, const KaSource *source, const char *controller, Hierarchy *h)
{
	KaPath		mounts;
	char		proc[64];
	bool		found = false;

	h->version = 0;
	ka_proc_directory(source, proc, sizeof(proc));
	ka_path_init(&mounts, source->root);
	if (ka_path_readf(path, "%s/cgroup", proc) == 0 && ka_path_readf(&mounts, "%s/mountinfo", proc) == 0)
		found = find_hierarchy(ka_path_text(path), ka_path_text(&mounts), controller, h) ||
			find_hierarchy(ka_path_text(path), ka_path_text(&mounts), NULL, h);
	path->no_memory |= mounts.no_memory;
	ka_path_free(&mounts);
	return found;
}

/* A limit in bytes, or KA_UNKNOWN when there is none. */
static int64_t
read_limit(KaPath *path, const Hierarchy *h, const char *below, const char *file)
{
	int64_t		limit = ka_path_numberf(path, "%s%s/%s", h->mount, below, file);

	return limit < LARGEST_LIMIT ? limit : KA_UNKNOWN;
}

/* Takes the last component off; false at the mount point. */
static bool
go_up(char *below)
{
	char	   *slash = strrchr(below, '/');

	if (slash == NULL)
		return false;
	*slash = '\0';
	return true;
}

static bool
is_smaller(int64_t limit, int64_t than)
{
	return limit != KA_UNKNOWN && (than == KA_UNKNOWN || limit < than);
}

static void
collect_memory_limit(KaFacts *facts, KaPath *path, const Hierarchy *h)
{
	const char *file = h->version == 1 ? "memory.limit_in_bytes" : "memory.max";
	char		below[KA_PATH_MAX];
	int64_t		least = KA_UNKNOWN;

	strcpy(below, h->below);
	do
	{
		int64_t		limit = read_limit(path, h, below, file);

		if (is_smaller(limit, least))
			least = limit;
	} while (go_up(below));
	ka_set_int(facts, KA_CGROUP_MEMORY_LIMIT, least);
}

/* As the kernel names a size in these files: 64KB, 2MB, 1GB. */
static void
size_name(int64_t size_bytes, char *name, size_t size)
{
	if (size_bytes >= INT64_C(1) << 30)
		snprintf(name, size, "%" PRId64 "GB", size_bytes >> 30);
	else if (size_bytes >= INT64_C(1) << 20)
		snprintf(name, size, "%" PRId64 "MB", size_bytes >> 20);
	else
		snprintf(name, size, "%" PRId64 "KB", size_bytes >> 10);
}

/*
 * Both kinds of limit, each the minimum over the levels.  "at" names the level
 * of the smaller one of both, and the usage is that level's.
 */
static void
collect_hugetlb_limit(KaFacts *facts, KaPath *path, const Hierarchy *h, int64_t size_bytes)
{
	static const struct
	{
		const char *limit,
				   *rsvd,
				   *usage;
	}			suffixes[] = {
		[1] = {"limit_in_bytes", "rsvd.limit_in_bytes", "usage_in_bytes"},
		[2] = {"max", "rsvd.max", "current"},
	};
	KaHugetlbLimit limit = {size_bytes, KA_UNKNOWN, KA_UNKNOWN, KA_UNKNOWN, NULL};
	KaHugetlbLimit *limits;
	int64_t		least = KA_UNKNOWN;
	char		size[32];
	char		file[3][96];
	char		below[KA_PATH_MAX];
	char		at[KA_PATH_MAX] = "";

	size_name(size_bytes, size, sizeof(size));
	snprintf(file[0], sizeof(file[0]), "hugetlb.%s.%s", size, suffixes[h->version].limit);
	snprintf(file[1], sizeof(file[1]), "hugetlb.%s.%s", size, suffixes[h->version].rsvd);
	snprintf(file[2], sizeof(file[2]), "hugetlb.%s.%s", size, suffixes[h->version].usage);

	strcpy(below, h->below);
	do
	{
		int64_t		faults = read_limit(path, h, below, file[0]);
		int64_t		rsvd = read_limit(path, h, below, file[1]);
		int64_t		here = is_smaller(rsvd, faults) ? rsvd : faults;

		if (is_smaller(faults, limit.limit_bytes))
			limit.limit_bytes = faults;
		if (is_smaller(rsvd, limit.rsvd_limit_bytes))
			limit.rsvd_limit_bytes = rsvd;
		if (is_smaller(here, least))
		{
			least = here;
			strcpy(at, below);
			limit.usage_bytes = read_limit(path, h, below, file[2]);
		}
	} while (go_up(below));
	if (least == KA_UNKNOWN)
		return;

	limit.at = ka_printf(facts->arena, "%s%s", h->above, h->above[0] || at[0] ? at : "/");
	limits = ka_append(facts->arena, facts->hugetlb, &facts->nhugetlb, sizeof(KaHugetlbLimit));
	if (limits == NULL)
		return;
	facts->hugetlb = limits;
	limits[facts->nhugetlb - 1] = limit;
}

bool
ka_collect_cgroup(KaFacts *facts, const KaSource *source)
{
	KaPath		path;
	Hierarchy	h;
	char	  **names;
	ssize_t		n;
	int			version = 0;
	bool		collected;

	ka_path_init(&path, source->root);
	if (find_controller(&path, source, "memory", &h))
	{
		version = h.version;
		collect_memory_limit(facts, &path, &h);
	}
	if (find_controller(&path, source, "hugetlb", &h))
	{
		if (version == 0 || h.version < version)
			version = h.version;
		n = ka_path_list(path.root, "/sys/kernel/mm/hugepages", facts->arena, &names);
		for (ssize_t i = 0; i < n; i++)
		{
			int64_t		size_kb = ka_number_within(names[i], "hugepages-", "kB");

			if (size_kb > 0 && size_kb <= INT64_MAX / 1024)
				collect_hugetlb_limit(facts, &path, &h, size_kb * 1024);
		}
	}
	if (version != 0)
		ka_set_int(facts, KA_CGROUP_VERSION, version);
	collected = ka_collected(&path, facts);
	ka_path_free(&path);
	return collected;
}
