/*
 * test_base.c: the arena, growing arrays, text, and an arena without memory.
 */
#include "ka_base.h"
#include "ka_test.h"

/* An allocator that gives "left" blocks and then none. */
typedef struct Stingy
{
	KaArena		backing;
	int			left;
} Stingy;

static void *
stingy_alloc(void *ctx, size_t size)
{
	Stingy	   *stingy = ctx;

	return stingy->left-- > 0 ? stingy->backing.alloc(stingy->backing.ctx, size) : NULL;
}

TEST(memory_is_zeroed_and_aligned)
{
	KaArena		arena;

	ka_malloc_arena(&arena);
	for (size_t size = 0; size < 300; size += 7)
	{
		unsigned char *memory = ka_alloc(&arena, size);

		REQUIRE(memory != NULL);
		CHECK_INT((uintptr_t) memory % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			CHECK_INT(memory[i], 0);
		memset(memory, 0xAA, size);	/* dirties what malloc may hand out again */
	}
	CHECK(!arena.failed);
	ka_malloc_free(&arena);
	ka_malloc_free(&arena);		/* harmless twice */
}

TEST(append_keeps_what_is_there)
{
	KaArena		arena;
	int64_t    *items = NULL;
	size_t		count = 0;

	ka_malloc_arena(&arena);
	for (int64_t i = 0; i < 1000; i++)
	{
		items = ka_append(&arena, items, &count, sizeof(*items));
		REQUIRE(items != NULL);
		CHECK_INT(count, i + 1);
		CHECK_INT(items[i], 0);
		items[i] = i * i;
	}
	for (int64_t i = 0; i < 1000; i++)
		CHECK_INT(items[i], i * i);
	ka_malloc_free(&arena);
}

TEST(append_without_memory_changes_nothing)
{
	Stingy		stingy = {.left = 1};
	KaArena		arena = {stingy_alloc, &stingy, false};
	char	   *items = NULL;
	size_t		count = 0;

	ka_malloc_arena(&stingy.backing);
	for (int i = 0; i < 4; i++)
	{
		items = ka_append(&arena, items, &count, 1);
		REQUIRE(items != NULL);
		items[i] = (char) ('a' + i);
	}
	CHECK(!arena.failed);
	CHECK(ka_append(&arena, items, &count, 1) == NULL);
	CHECK(arena.failed);
	CHECK_INT(count, 4);
	CHECK(memcmp(items, "abcd", 4) == 0);
	ka_malloc_free(&stingy.backing);
}

TEST(append_refuses_a_size_that_overflows)
{
	KaArena		arena;
	size_t		count = 0;

	ka_malloc_arena(&arena);
	CHECK(ka_append(&arena, NULL, &count, SIZE_MAX / 4) == NULL);
	CHECK(arena.failed);
	CHECK_INT(count, 0);
	ka_malloc_free(&arena);
}

TEST(text)
{
	KaArena		arena;
	char		long_text[5001];

	ka_malloc_arena(&arena);
	memset(long_text, 'x', 5000);
	long_text[5000] = '\0';
	CHECK_STR(ka_strdup(&arena, NULL), NULL);
	CHECK_STR(ka_strdup(&arena, ""), "");
	CHECK_STR(ka_strdup(&arena, "vm.nr_hugepages"), "vm.nr_hugepages");
	CHECK_STR(ka_printf(&arena, "node%d.%s", 3, "free"), "node3.free");
	CHECK_INT(strlen(ka_printf(&arena, "%s/%s", long_text, long_text)), 10001);
	CHECK(!arena.failed);
	ka_malloc_free(&arena);
}

TEST(text_without_memory)
{
	Stingy		stingy = {.left = 0};
	KaArena		arena = {stingy_alloc, &stingy, false};

	CHECK_STR(ka_strdup(&arena, NULL), NULL);
	CHECK(!arena.failed);		/* nothing was asked for */
	CHECK_STR(ka_strdup(&arena, "a"), NULL);
	CHECK(arena.failed);
	CHECK_STR(ka_printf(&arena, "%d", 1), NULL);
}
