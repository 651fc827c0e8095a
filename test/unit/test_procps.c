/*
 * test_procps.c: libproc2 answers 0 for a field that the kernel lacks; such a
 * field must stay unknown.  This machine's kernel may have them all, so the
 * test takes some away from what the reader learned.
 */
#include "../../src/core/counters_procps.c"

#include "ka_test.h"

TEST(fields_that_the_kernel_lacks)
{
	KaProcps   *procps = ka_procps_new();
	KaCounters	c;

	REQUIRE(procps != NULL);
	ka_counters_init(&c);
	CHECK_INT(ka_procps_vmstat(procps, &c), 0);
	CHECK(c.allocstall >= 0);
	CHECK(c.free_bytes > 0);

	procps->fields.allocstall = KA_UNKNOWN;
	procps->fields.compact_stall = KA_UNKNOWN;
	procps->fields.free_bytes = KA_UNKNOWN;
	ka_counters_init(&c);
	CHECK_INT(ka_procps_vmstat(procps, &c), 0);
	CHECK_INT(c.allocstall, KA_UNKNOWN);
	CHECK_INT(c.compact_stall, KA_UNKNOWN);
	CHECK_INT(c.free_bytes, KA_UNKNOWN);
	CHECK(c.page_table_bytes > 0);
	ka_procps_free(procps);
	ka_procps_free(NULL);
}
