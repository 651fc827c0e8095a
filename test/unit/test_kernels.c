/*
 * test_kernels.c: compaction.policy says of each kernel what was measured on it.
 *
 * test/kernels/results.json is what the distributions' kernels did when they
 * were booted (test/kernels/run, doc/kernels.md).  For each of them the rule
 * gets the facts of a machine that stalls, with that kernel's release.
 */
#include <string.h>

#include "rules_test.h"

#define RESULTS "test/kernels/results.json"

static const char *
behaviour(json_t *kernel, const char *name)
{
	const char *text = json_string_value(json_object_get(json_object_get(kernel, "behaviour"), name));

	return text ? text : "not measured";
}

/* A server on XFS whose checkpoints stall 20 times a second, nothing else wrong. */
static void
stalling(KaAdvised *a, const char *release, int threshold, int proactiveness)
{
	char		json[2048];

	snprintf(json, sizeof(json), "{'kernel': {'release': '%s', 'os': 'linux', 'page_size_bytes': 4096, 'sysctl_writable': true}, "
			 "'memory': {'total_bytes': 25769803776, 'available_bytes': 12884901888}, "
			 "'thp': {'enabled': 'never', 'shmem_enabled': 'never'}, "
			 "'sysctl': {'vm.extfrag_threshold': %d, 'vm.compaction_proactiveness': %d}, "
			 "'storage': {'data': {'filesystem': 'xfs'}, 'wal': {'filesystem': 'xfs'}}, "
			 "'window': {'seconds': 100, 'checkpoints': 4, 'checkpoint_seconds': 20, 'compact_stall': 2000, "
			 "'compact_stall_checkpoint': 1800, 'allocstall': 500, 'thp_fault_fallback': 0}}",
			 release, threshold, proactiveness);
	ka_test_facts(a, json);
	ka_test_advise(a);
}

/* At 1000 already, the rule recommends nothing more for it. */
static void
when_set(const char *release)
{
	KaAdvised	a;
	const KaAdvice *row;

	stalling(&a, release, 1000, 20);
	row = ka_test_row(&a, "compaction.policy", "vm.extfrag_threshold");
	CHECK(row == NULL || row->recommended == NULL);
	ka_test_done(&a);
}

static void
as_measured(const char *name, json_t *kernel)
{
	const char *release = json_string_value(json_object_get(kernel, "release"));
	bool		compacts = strcmp(behaviour(kernel, "large_writes_compact"), "yes") == 0;
	bool		ends = strcmp(behaviour(kernel, "threshold_1000_ends_compaction"), "yes") == 0;
	bool		reclaims = strcmp(behaviour(kernel, "threshold_1000_leaves_reclaim"), "yes") == 0;
	KaAdvised	a;
	const KaAdvice *row;

	REQUIRE(release != NULL);
	printf("# %s, %s: %s\n", name, release, !compacts ? "no stalls" : !ends ? "stalls that stay" : reclaims ? "reclaim stays" : "ends them");
	CHECK(strcmp(behaviour(kernel, "large_writes_compact"), "not measured") != 0);
	stalling(&a, release, 500, 20);
	row = ka_test_row(&a, "compaction.policy", "vm.extfrag_threshold");
	CHECK_INT(row != NULL, compacts);
	if (row && ends)
	{
		CHECK_STR(row->recommended, "1000");
		CHECK_INT(row->severity, reclaims ? KA_INFO : KA_WARNING);
		CHECK_INT(strstr(row->reason, "reclaim") != NULL, reclaims);
		CHECK_INT(strstr(row->reason, "trial") != NULL, reclaims);
		/* What is only tried is not kept over a reboot. */
		CHECK_INT(strstr(row->command, "sysctl.d") == NULL, reclaims);
	}
	else if (row)
		CHECK(row->recommended == NULL);
	CHECK(ka_test_row(&a, "compaction.policy", "vm.compaction_proactiveness") == NULL);
	ka_test_done(&a);

	/* The two knobs belong together. */
	stalling(&a, release, 500, 0);
	row = ka_test_row(&a, "compaction.policy", "vm.compaction_proactiveness");
	CHECK_INT(row != NULL, compacts);
	if (row)
		CHECK_STR(row->recommended, "20");
	ka_test_done(&a);
	when_set(release);
}

TEST(the_rule_says_what_was_measured)
{
	json_error_t error;
	json_t	   *document = json_load_file(RESULTS, 0, &error);
	const char *name;
	json_t	   *kernel;

	if (document == NULL)
		printf("# %s:%d: %s\n", RESULTS, error.line, error.text);
	REQUIRE(document != NULL);
	CHECK(json_object_size(json_object_get(document, "kernels")) >= 2);
	json_object_foreach(json_object_get(document, "kernels"), name, kernel)
		as_measured(name, kernel);
	json_decref(document);
}
