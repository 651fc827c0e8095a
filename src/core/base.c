/*
 * base.c: memory of the core.
 *
 * A KaArena hands out zeroed memory until all of it is released at once.  An
 * allocation that fails sets arena->failed, which stays set: whoever built a
 * result looks at it once, at the end.
 *
 * No locks: an arena belongs to one thread.
 */
#define _GNU_SOURCE 1

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ka_base.h"

/* The first capacity of an array that grows by ka_append. */
#define FIRST_CAPACITY 4

/* A block of the malloc arena; the caller's memory follows it. */
typedef struct Block
{
	struct Block *next;
	max_align_t memory[];
} Block;

void *
ka_alloc(KaArena *arena, size_t size)
{
	void	   *memory = arena->alloc(arena->ctx, size > 0 ? size : 1);

	if (memory == NULL)
	{
		arena->failed = true;
		return NULL;
	}
	return memset(memory, 0, size);
}

/*
 * The capacity is the smallest power of two that holds the elements, at least
 * FIRST_CAPACITY, so it need not be stored: the array is full exactly when the
 * count is zero, or such a power.
 */
void *
ka_append(KaArena *arena, void *items, size_t *count, size_t size)
{
	size_t		n = *count;

	if (n == 0 || (n >= FIRST_CAPACITY && (n & (n - 1)) == 0))
	{
		size_t		capacity = n == 0 ? FIRST_CAPACITY : n * 2;
		void	   *grown;

		if (size > 0 && capacity > SIZE_MAX / 2 / size)
		{
			arena->failed = true;
			return NULL;
		}
		grown = ka_alloc(arena, capacity * size);
		if (grown == NULL)
			return NULL;
		if (n > 0)
			memcpy(grown, items, n * size);
		items = grown;
	}
	*count = n + 1;
	return items;
}

char *
ka_strdup(KaArena *arena, const char *text)
{
	size_t		size;
	char	   *copy;

	if (text == NULL)
		return NULL;
	size = strlen(text) + 1;
	copy = ka_alloc(arena, size);
	return copy ? memcpy(copy, text, size) : NULL;
}

char *
ka_vprintf(KaArena *arena, const char *format, va_list args)
{
	va_list		again;
	int			length;
	char	   *text;

	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (length < 0)
	{
		arena->failed = true;
		return NULL;
	}
	text = ka_alloc(arena, (size_t) length + 1);
	if (text)
		vsnprintf(text, (size_t) length + 1, format, args);
	return text;
}

char *
ka_printf(KaArena *arena, const char *format,...)
{
	va_list		args;
	char	   *text;

	va_start(args, format);
	text = ka_vprintf(arena, format, args);
	va_end(args);
	return text;
}

static void *
malloc_block(void *ctx, size_t size)
{
	Block	  **first = ctx;
	Block	   *block;

	if (first == NULL || size > SIZE_MAX - sizeof(Block))
		return NULL;
	block = malloc(sizeof(Block) + size);
	if (block == NULL)
		return NULL;
	block->next = *first;
	*first = block;
	return block->memory;
}

void
ka_malloc_arena(KaArena *arena)
{
	arena->alloc = malloc_block;
	arena->ctx = calloc(1, sizeof(Block *));	/* NULL: every allocation fails */
	arena->failed = false;
}

void
ka_malloc_free(KaArena *arena)
{
	Block	  **first = arena->ctx;

	if (first == NULL)
		return;
	while (*first)
	{
		Block	   *next = (*first)->next;

		free(*first);
		*first = next;
	}
	free(first);
	arena->ctx = NULL;
}
