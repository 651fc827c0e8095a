/*
 * findserver.c: the program of the server that a data directory belongs to.
 *
 * Invariants: a program counts only when it says that it is of the version of
 * the data directory; asking it that runs it as the owner (child.c).
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "child.h"
#include "pgconf.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is it there, and of the version of the data directory? */
static bool
is_server(KaCluster *cluster, const char *path)
{
	const char *argv[] = {path, "-V", NULL};
	KaChildResult result;
	const char *version;
	size_t		length = strlen(cluster->version);

	if (path == NULL || path[0] != '/' || access(path, X_OK) != 0)
		return false;
	if (!ka_child_run(cluster->arena, argv, cluster->owner, KA_CHILD_SECONDS, &result) || result.status != 0)
		return false;
	version = strstr(result.output, "(PostgreSQL) ");
	if (version == NULL)
		return false;
	version += strlen("(PostgreSQL) ");
	return strncmp(version, cluster->version, length) == 0 && (version[length] < '0' || version[length] > '9');
}

static bool
try_directory(KaCluster *cluster, const char *directory, size_t length)
{
	const char *path = ka_printf(cluster->arena, "%.*s/postgres", (int) length, directory);

	if (!is_server(cluster, path))
		return false;
	cluster->postgres = path;
	return true;
}

/* The target of a link in /proc, or its directory. */
static const char *
link_target(KaArena *arena, const char *link)
{
	char		target[PATH_MAX];
	ssize_t		length = readlink(link, target, sizeof(target) - 1);

	if (length <= 0)
		return NULL;
	target[length] = '\0';
	return ka_strdup(arena, target);
}

/* In the directories of $PATH: the server, or pg_config, which knows where it is. */
static bool
try_path(KaCluster *cluster)
{
	const char *path = getenv("PATH");

	for (const char *p = path ? path : ""; *p != '\0'; p += strspn(p, ":"))
	{
		size_t		length = strcspn(p, ":");

		if (length > 0 && try_directory(cluster, p, length))
			return true;
		p += length;
	}
	for (const char *p = path ? path : ""; *p != '\0'; p += strspn(p, ":"))
	{
		size_t		length = strcspn(p, ":");
		const char *program = ka_printf(cluster->arena, "%.*s/pg_config", (int) length, p);
		const char *argv[] = {program, "--bindir", NULL};
		KaChildResult result;

		p += length;
		if (program != NULL && program[0] == '/' && access(program, X_OK) == 0 &&
			ka_child_run(cluster->arena, argv, cluster->owner, KA_CHILD_SECONDS, &result) &&
			result.status == 0 && try_directory(cluster, result.output, strlen(result.output)))
			return true;
	}
	return false;
}

bool
ka_find_server(KaCluster *cluster, const char *last_program)
{
	KaArena    *arena = cluster->arena;
	const char *self;
	const char *const usual[] = {
		ka_printf(arena, "/usr/lib/postgresql/%s/bin", cluster->version),	/* Debian */
		ka_printf(arena, "/usr/pgsql-%s/bin", cluster->version),	/* Fedora, RHEL */
	};

	if (cluster->bindir != NULL)
		return try_directory(cluster, cluster->bindir, strlen(cluster->bindir));

	if (cluster->pid != 0)
	{
		const char *link = ka_printf(arena, "/proc/%d/exe", (int) cluster->pid);

		cluster->postgres = link ? link_target(arena, link) : NULL;
		if (is_server(cluster, cluster->postgres))
			return true;
	}
	self = link_target(arena, "/proc/self/exe");
	if (self != NULL && try_directory(cluster, self, (size_t) (strrchr(self, '/') - self)))
		return true;
	cluster->postgres = last_program;
	if (is_server(cluster, last_program))
		return true;
	if (try_path(cluster))
		return true;
	for (size_t i = 0; i < KA_LENGTH(usual); i++)
	{
		if (usual[i] != NULL && try_directory(cluster, usual[i], strlen(usual[i])))
			return true;
	}
	cluster->postgres = NULL;
	return false;
}
