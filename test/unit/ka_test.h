/*
 * ka_test.h: a small harness for the core's unit tests.
 *
 *	#include "ka_test.h"
 *
 *	TEST(sum_of_two)
 *	{
 *		CHECK_INT(1 + 1, 2);
 *	}
 *
 * Every test_*.c is one program and gets its main() from here.  A check that
 * fails is printed with its place and both values, and the test goes on; a
 * REQUIRE that fails ends the test.  One line per test on stdout, "ok" or
 * "FAIL"; the exit code is 1 when any test failed.  An argument selects the
 * tests whose names contain it.  A test that goes through a table says with
 * NOTE(format, ...) which row it is at.
 */
#ifndef KA_TEST_H
#define KA_TEST_H

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct KaTest
{
	const char *name;
	void		(*run) (void);
	struct KaTest *next;
} KaTest;

static KaTest *ka_test_first;
static KaTest **ka_test_last = &ka_test_first;
static int	ka_test_failures;	/* of the test that runs */
static jmp_buf ka_test_end;
static char ka_test_note[256];	/* where in its table a test is */

/* Says where a loop over a table is; printed when a check fails. */
#define NOTE(...) snprintf(ka_test_note, sizeof(ka_test_note), __VA_ARGS__)

/* Registers itself before main(), in the order of the file. */
#define TEST(test) \
	static void test_##test(void); \
	static KaTest ka_test_##test = {#test, test_##test, NULL}; \
	__attribute__((constructor)) static void \
	ka_register_##test(void) \
	{ \
		*ka_test_last = &ka_test_##test; \
		ka_test_last = &ka_test_##test.next; \
	} \
	static void test_##test(void)

#define CHECK(condition) \
	ka_check((condition), __FILE__, __LINE__, #condition)
#define CHECK_INT(actual, expected) \
	ka_check_int((int64_t) (actual), (int64_t) (expected), __FILE__, __LINE__, #actual)
#define CHECK_REAL(actual, expected, tolerance) \
	ka_check_real((actual), (expected), (tolerance), __FILE__, __LINE__, #actual)
#define CHECK_STR(actual, expected) \
	ka_check_str((actual), (expected), __FILE__, __LINE__, #actual)
#define REQUIRE(condition) \
	do { \
		if (!ka_check((condition), __FILE__, __LINE__, #condition)) \
			longjmp(ka_test_end, 1); \
	} while (0)

static inline void
ka_fail(void)
{
	ka_test_failures++;
	if (ka_test_note[0])
		printf("#   at %s\n", ka_test_note);
}

static inline bool
ka_check(bool good, const char *file, int line, const char *what)
{
	if (good)
		return true;
	printf("# %s:%d: not true: %s\n", file, line, what);
	ka_fail();
	return false;
}

static inline bool
ka_check_int(int64_t actual, int64_t expected, const char *file, int line, const char *what)
{
	if (actual == expected)
		return true;
	printf("# %s:%d: %s is %" PRId64 ", expected %" PRId64 "\n", file, line, what, actual, expected);
	ka_fail();
	return false;
}

static inline bool
ka_check_real(double actual, double expected, double tolerance, const char *file, int line, const char *what)
{
	if (fabs(actual - expected) <= tolerance)	/* false for NaN */
		return true;
	printf("# %s:%d: %s is %.9g, expected %.9g\n", file, line, what, actual, expected);
	ka_fail();
	return false;
}

static inline bool
ka_check_str(const char *actual, const char *expected, const char *file, int line, const char *what)
{
	if (actual == NULL || expected == NULL ? actual == expected : strcmp(actual, expected) == 0)
		return true;
	printf("# %s:%d: %s is %s%s%s, expected %s%s%s\n", file, line, what,
		   actual ? "\"" : "", actual ? actual : "NULL", actual ? "\"" : "",
		   expected ? "\"" : "", expected ? expected : "NULL", expected ? "\"" : "");
	ka_fail();
	return false;
}

/* The directory test/fixtures; tests run from the top of the source tree. */
static inline const char *
ka_fixtures(void)
{
	const char *directory = getenv("KA_FIXTURES");

	return directory ? directory : "test/fixtures";
}

/* The root directory of a copied machine: see test/fixtures/make_machine.py. */
static inline const char *
ka_machine(const char *name)
{
	static char root[512];
	const char *directory = getenv("KA_MACHINES");

	snprintf(root, sizeof(root), "%s/%s", directory ? directory : "test/bin/machines", name);
	return root;
}

/* True when no check failed; a function of its own because of longjmp. */
static bool
ka_run(const KaTest *test)
{
	ka_test_failures = 0;
	ka_test_note[0] = '\0';
	if (setjmp(ka_test_end) == 0)
		test->run();
	return ka_test_failures == 0;
}

int
main(int argc, char **argv)
{
	const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	int			failed = 0;

	for (KaTest *test = ka_test_first; test; test = test->next)
	{
		bool		good;

		if (argc > 1 && strstr(test->name, argv[1]) == NULL)
			continue;
		good = ka_run(test);
		printf("%s %s %s\n", good ? "ok  " : "FAIL", program, test->name);
		fflush(stdout);
		failed += !good;
	}
	/* A program that was killed or left early does not say this. */
	printf("# %s finished\n", program);
	return failed > 0;
}

#endif							/* KA_TEST_H */
