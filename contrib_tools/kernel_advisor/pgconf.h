/*
 * pgconf.h: the server's side of the facts, from its data directory.
 */
#ifndef KA_TOOL_PGCONF_H
#define KA_TOOL_PGCONF_H

#include <sys/types.h>

#include "collect.h"

typedef struct KaCluster
{
	KaArena    *arena;
	/* asked for */
	const char *root;			/* "" or a copy of another machine: nothing is started, no process looked at */
	const char *data_directory; /* absolute; below root */
	const char *bindir;			/* NULL: looked for */
	const char *config_file;	/* NULL: as at the last start, or Debian's */
	/* found */
	const char *path;			/* root and data_directory */
	const char *version;		/* PG_VERSION: "17", "9.6" */
	uid_t		owner;
	pid_t		pid;			/* of the postmaster; 0: not running, or unknown with a root */
	const char *postgres;		/* the program, NULL: none */
	const char **options;		/* of the last start; NULL-terminated */
	size_t		noptions;
	/* why some facts are missing: full sentences */
	const char **notes;
	size_t		nnotes;
} KaCluster;

/*
 * Looks at a data directory.  False when it is none or cannot be read: then
 * *problem says what, why and what to do.
 */
extern bool ka_cluster_open(KaCluster *cluster, const char **problem);

/* Adds the server's facts; what cannot be had becomes a note.  False: out of memory. */
extern bool ka_cluster_facts(KaCluster *cluster, KaFacts *facts);

/*
 * findserver.c: sets cluster->postgres.  Looks in --bindir and nowhere else, or
 * else at the running server, beside this tool, where the last start took it
 * from, in $PATH, and where distributions put it.
 */
extern bool ka_find_server(KaCluster *cluster, const char *last_program);

/* One setting as `postgres -C` prints it, or NULL. */
extern const char *ka_cluster_setting(KaCluster *cluster, const char *name);

/* The whole of a small file, or its last "max" bytes, as text; NULL and errno when it cannot be read. */
extern char *ka_read_tail(KaArena *arena, const char *path, size_t max);

#endif							/* KA_TOOL_PGCONF_H */
