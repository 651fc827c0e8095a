/*
 * arena.c: memory of the server for the core.
 *
 * The core holds open files and malloc'd buffers while it allocates, and must
 * not be left by an error: an allocation that fails returns NULL, and the
 * caller raises the error when the core is done.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "arena.h"

static void *
arena_alloc(void *ctx pg_attribute_unused(), size_t size)
{
	return AllocSizeIsValid(size) ? palloc_extended(size, MCXT_ALLOC_NO_OOM) : NULL;
}

void
ka_palloc_arena(KaArena *arena)
{
	arena->alloc = arena_alloc;
	arena->ctx = NULL;
	arena->failed = false;
}

void
ka_arena_check(const KaArena *arena)
{
	if (arena->failed)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("The kernel advisor could not allocate memory for its facts.")));
}
