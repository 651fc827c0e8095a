/*
 * ka_base.h: what every file of the core shares.
 *
 * The core is plain C: no PostgreSQL header, no global state, no output.  It is
 * linked into the server library, the command line tool and the tests.
 *
 * Memory comes from a KaArena: the server backs it with the current memory
 * context (without raising errors), the tools with malloc.  Nothing is freed
 * one by one; an arena that is out of memory returns NULL and sets "failed",
 * and callers may go on: every ka_ function tolerates a NULL string.
 */
#ifndef KA_BASE_H
#define KA_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An integer that is not known.  Every list member of the facts is >= 0. */
#define KA_UNKNOWN INT64_C(-1)

#define KA_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#if defined(__GNUC__)
#define KA_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define KA_PRINTF(fmt, args)
#endif

typedef struct KaArena
{
	void	   *(*alloc) (void *ctx, size_t size);	/* NULL when out of memory */
	void	   *ctx;
	bool		failed;			/* an allocation failed: the result is incomplete */
} KaArena;

/* Zeroed memory, aligned for any type, or NULL (and arena->failed). */
extern void *ka_alloc(KaArena *arena, size_t size);

/*
 * Grows an array by one zeroed element of "size" bytes: returns the array,
 * which may have moved, and increments *count; NULL without memory, *count is
 * then as it was.  The array must have grown by this function from its first
 * element on: its capacity follows from the count.
 */
extern void *ka_append(KaArena *arena, void *items, size_t *count, size_t size);

extern char *ka_strdup(KaArena *arena, const char *text);
/* Of any length: a text that were cut could end within a character. */
extern char *ka_vprintf(KaArena *arena, const char *format, va_list args) KA_PRINTF(2, 0);
extern char *ka_printf(KaArena *arena, const char *format,...) KA_PRINTF(2, 3);

/* An arena on malloc for the tools and tests; ka_malloc_free releases all. */
extern void ka_malloc_arena(KaArena *arena);
extern void ka_malloc_free(KaArena *arena);

#endif							/* KA_BASE_H */
