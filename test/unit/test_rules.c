/*
 * test_rules.c: what holds for all rules: their order, that they are pure,
 * that no number of legal facts overflows, that memory may run out, that no
 * command is printed where none may be, that the documentation is complete.
 */
#include <time.h>

#include "rules_test.h"

/* Many rules at once, of every severity. */
#define BUSY "{'postgres': {'version_num': 140000, 'huge_pages': 'on', 'shared_memory_bytes': 6617563136, 'backends': 400, 'log_checkpoints': false, " \
	"'checkpoint_completion_target': 0.5, 'last_error': {'phase': 'start', 'call': 'mmap', 'errno': 'ENOMEM', 'bytes': 6618611712}}, " \
	"'kernel': {'release': '6.12.3', 'machine': 'x86_64', 'page_size_bytes': 4096}, " \
	"'memory': {'total_bytes': 25769803776, 'available_bytes': 9000000000, 'page_tables_bytes': 3000000000}, " \
	"'hugepages': {'default_size_bytes': 2097152, 'pools': [{'size_bytes': 2097152, 'total': 100, 'free': 100, 'reserved': 0, 'surplus': 0, 'overcommit': 0, 'asked': 500, " \
	"'nodes': [{'node': 0, 'total': 100}, {'node': 1, 'total': 0}]}, {'size_bytes': 1073741824, 'total': 5, 'free': 5, 'reserved': 0, 'surplus': 0, 'overcommit': 0}]}, " \
	"'thp': {'enabled': 'always', 'defrag': 'always', 'pmd_size_bytes': 2097152}, " \
	"'sysctl': {'vm.nr_hugepages': 100, 'vm.zone_reclaim_mode': 1, 'vm.extfrag_threshold': 500, 'vm.compaction_proactiveness': 0}, " \
	"'storage': {'data': {'filesystem': 'xfs'}, 'wal': {'filesystem': 'xfs'}}, " \
	"'window': {'seconds': 100, 'checkpoints': 4, 'checkpoint_seconds': 20, 'compact_stall': 5000, 'compact_stall_checkpoint': 4000, 'allocstall': 5000, " \
	"'thp_fault_fallback': 3000, 'sync_ms_avg': 4000, 'checkpoints_timed': 0, 'checkpoints_requested': 4, 'device_util_pct': 95, 'write_latency_us_avg': 20000}}"

static int
rule_number(const char *name)
{
	const KaRuleInfo *rules;
	size_t		count = ka_rules(&rules);

	for (size_t i = 0; i < count; i++)
	{
		if (strcmp(rules[i].name, name) == 0)
			return (int) i;
	}
	return -1;
}

TEST(rows_are_ordered)
{
	KaAdvised	a;
	int			seen[4] = {0};

	ka_test_facts(&a, BUSY);
	ka_test_advise(&a);
	CHECK(a.list.count >= 10);
	for (size_t i = 0; i < a.list.count; i++)
	{
		const KaAdvice *row = &a.list.rows[i];

		seen[row->severity]++;
		CHECK(rule_number(row->rule) >= 0);
		if (i == 0)
			continue;
		CHECK(row[-1].severity <= row->severity);
		if (row[-1].severity == row->severity)
			CHECK(rule_number(row[-1].rule) <= rule_number(row->rule));
	}
	CHECK(seen[KA_CRITICAL] >= 1);
	CHECK(seen[KA_WARNING] >= 3);
	CHECK(seen[KA_INFO] >= 2);
	ka_test_done(&a);
}

/* Everything that a row says, as one text. */
static char *
row_text(KaArena *arena, const KaAdvice *row)
{
	char	   *text = ka_printf(arena, "%s|%d|%s|%s|%s|%s|%d|%d|%s", row->rule, row->severity, row->subject,
								 row->current ? row->current : "", row->recommended ? row->recommended : "", row->reason,
								 row->confidence, row->activation, row->command ? row->command : "");

	for (size_t i = 0; i < row->nevidence; i++)
		text = ka_printf(arena, "%s|%d %s %lld %.17g %s", text, row->evidence[i].threshold, row->evidence[i].name,
						 (long long) row->evidence[i].value.i, row->evidence[i].value.r,
						 row->evidence[i].value.s ? row->evidence[i].value.s : "");
	return text;
}

TEST(same_facts_same_rows)
{
	KaAdvised	a;
	KaAdviceList again;
	KaValue		before[KA_NFACTS];

	ka_test_facts(&a, BUSY);
	memcpy(before, a.facts.v, sizeof(before));
	ka_test_advise(&a);
	again = (KaAdviceList) {.arena = &a.arena};
	REQUIRE(ka_advise(&a.facts, &again));
	CHECK(memcmp(before, a.facts.v, sizeof(before)) == 0);
	CHECK_INT(again.count, a.list.count);
	for (size_t i = 0; i < again.count && i < a.list.count; i++)
		CHECK_STR(row_text(&a.arena, &again.rows[i]), row_text(&a.arena, &a.list.rows[i]));
	ka_test_done(&a);
}

TEST(nothing_known_nothing_said)
{
	KaAdvised	a;

	ka_test_facts(&a, "{}");
	ka_test_advise(&a);
	CHECK_INT(a.list.count, 0);
	ka_test_done(&a);
}

/* Every fact alone, at both ends of its bounds: no rule may need another one. */
TEST(each_fact_alone)
{
	for (int fact = 0; fact < KA_NFACTS; fact++)
	{
		const KaFactInfo *info = &ka_fact_info[fact];

		for (int end = 0; end < 2; end++)
		{
			KaAdvised	a;
			char		first[64];
			bool		set;

			ka_test_facts(&a, "{}");
			if (info->type == KA_BOOL)
				set = ka_set_bool(&a.facts, (KaFact) fact, end != 0);
			else if (info->type == KA_TEXT)
				set = ka_set_text(&a.facts, (KaFact) fact, end ? "" : "%s%n$(x)");
			else if (info->type == KA_ENUM)
			{
				snprintf(first, sizeof(first), "%s", end ? strrchr(info->values, '|') + 1 : info->values);
				if (!end)
					*strchr(first, '|') = '\0';
				set = ka_set_text(&a.facts, (KaFact) fact, first);
			}
			else
				set = ka_set_int(&a.facts, (KaFact) fact, end ? info->max : info->min);
			CHECK(set);
			ka_test_advise(&a);
			ka_test_done(&a);
		}
	}
}

/*
 * Pseudo-random facts, each unknown, at an end of its bounds or in between;
 * lists with extreme members.  Sanitizers look for overflow; here: rows are
 * whole, and no kernel value is recommended where none may be.
 */
static uint64_t random_state = 42;

static uint64_t
next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int64_t
extreme(void)
{
	static const int64_t values[] = {KA_UNKNOWN, 0, 1, 2, 7, 4095, 4096, 2097152, 1073741824, INT64_C(1) << 40,
	INT64_C(1) << 62, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};

	return values[next_random() % KA_LENGTH(values)];
}

static int64_t
extreme_size(void)
{
	static const int64_t values[] = {KA_UNKNOWN, 0, 1, 4096, 65536, 2097152, 1073741824, INT64_C(1) << 62, INT64_MAX};

	return values[next_random() % KA_LENGTH(values)];
}

static const char *const some_texts[] = {"", "linux", "xfs", "ext4", "6.18.44", "7.0", "4", "99999999999.1", "6.", "always", "sysv", "ENOMEM", "SIGBUS", "rds", "a b;c", "default_hugepagesz=1G", "default_hugepagesz=99999999999999999999G", "\xc3\xa4"};

static void
random_single_facts(KaFacts *facts)
{
	for (int fact = 0; fact < KA_NFACTS; fact++)
	{
		const KaFactInfo *info = &ka_fact_info[fact];
		const char *value = info->values;

		if (next_random() % 3 == 0)
			continue;
		switch (info->type)
		{
			case KA_BOOL:
				ka_set_bool(facts, (KaFact) fact, next_random() % 2);
				break;
			case KA_TEXT:
				/* A managed service or another system would silence nearly everything. */
				if ((fact != KA_PG_MANAGED && fact != KA_KERNEL_OS) || next_random() % 16 == 0)
					ka_set_text(facts, (KaFact) fact, some_texts[next_random() % KA_LENGTH(some_texts)]);
				break;
			case KA_ENUM:
				{
					char		one[32];

					for (uint64_t n = next_random() % 4; n > 0 && strchr(value, '|'); n--)
						value = strchr(value, '|') + 1;
					snprintf(one, sizeof(one), "%.*s", (int) strcspn(value, "|"), value);
					ka_set_text(facts, (KaFact) fact, one);
					break;
				}
			default:
				if (!ka_set_int(facts, (KaFact) fact, extreme()))
					ka_set_int(facts, (KaFact) fact, next_random() % 2 ? info->max : info->min);
				break;
		}
	}
}

static void
random_lists(KaFacts *facts)
{
	for (uint64_t n = next_random() % 4; n > 0; n--)
	{
		int64_t		size = extreme_size();
		KaPool		pool = {size, extreme(), extreme(), extreme(), extreme(), extreme(), extreme(), extreme(), NULL, 0};

		if (ka_pool(facts, size))
			continue;			/* the kernel has one pool of a size */
		for (uint64_t m = next_random() % 4; m > 0; m--)
		{
			pool.nodes = ka_append(facts->arena, pool.nodes, &pool.nnodes, sizeof(KaNodePool));
			pool.nodes[pool.nnodes - 1] = (KaNodePool) {extreme(), extreme(), extreme()};
		}
		facts->pools = ka_append(facts->arena, facts->pools, &facts->npools, sizeof(KaPool));
		facts->pools[facts->npools - 1] = pool;
	}
	for (uint64_t n = next_random() % 3; n > 0; n--)
	{
		facts->consumers = ka_append(facts->arena, facts->consumers, &facts->nconsumers, sizeof(KaConsumer));
		facts->consumers[facts->nconsumers - 1] = (KaConsumer) {NULL, extreme_size(), extreme()};
		facts->hugetlb = ka_append(facts->arena, facts->hugetlb, &facts->nhugetlb, sizeof(KaHugetlbLimit));
		facts->hugetlb[facts->nhugetlb - 1] = (KaHugetlbLimit) {extreme_size(), extreme(), extreme(), extreme(), n % 2 ? "/a;b" : NULL};
		facts->numa = ka_append(facts->arena, facts->numa, &facts->nnuma, sizeof(KaNode));
		facts->numa[facts->nnuma - 1] = (KaNode) {extreme(), extreme(), extreme()};
		facts->boot_pools = ka_append(facts->arena, facts->boot_pools, &facts->nboot_pools, sizeof(KaBootPool));
		facts->boot_pools[facts->nboot_pools - 1] = (KaBootPool) {extreme_size(), extreme()};
	}
	for (int knob = 0; knob < KA_NSYSCTLS; knob++)
		facts->boot[knob] = (KaBootSysctl) {next_random() % 2, extreme(), next_random() % 2 ? "/etc/sysctl.d/z;x.conf" : NULL};
	facts->boot_thp_known = next_random() % 2;
}

static bool
is_kernel_knob(const char *subject)
{
	return strncmp(subject, "vm.", 3) == 0 || strncmp(subject, "thp.", 4) == 0 ||
		strstr(subject, "nr_hugepages") != NULL;
}

static bool
is_sound(const KaAdvice *row, const KaFacts *facts)
{
	bool		may_not = ka_known(facts, KA_PG_MANAGED) || ka_yes(facts, KA_KERNEL_SANDBOX) ||
		(ka_known(facts, KA_KERNEL_SYSCTL_WRITABLE) && !ka_yes(facts, KA_KERNEL_SYSCTL_WRITABLE)) ||
		(ka_known(facts, KA_KERNEL_OS) && !ka_is(facts, KA_KERNEL_OS, "linux"));

	if (row->reason == NULL || *row->reason == '\0' || row->subject == NULL || strstr(row->reason, "(null)"))
		return false;
	if (may_not && is_kernel_knob(row->subject) && (row->recommended || row->command))
		return false;
	if (may_not && row->command && strstr(row->command, "sysctl"))
		return false;
	/* No foreign text in a command that a shell would run. */
	return row->command == NULL || strstr(row->command, "z;x") == NULL;
}

/* Two rows that want different values of one knob: the reader would not know which. */
static bool
contradicts(const KaAdviceList *list, const KaAdvice *row)
{
	for (const KaAdvice *other = list->rows; other < row; other++)
	{
		if (strcmp(other->subject, row->subject) == 0 && other->recommended && row->recommended &&
			strcmp(other->recommended, row->recommended) != 0)
			return true;
	}
	return false;
}

TEST(extreme_facts)
{
	int			rows = 0;

	for (int round = 0; round < 20000; round++)
	{
		KaAdvised	a;

		ka_malloc_arena(&a.arena);
		ka_facts_init(&a.facts, &a.arena);
		random_single_facts(&a.facts);
		random_lists(&a.facts);
		ka_test_advise(&a);
		for (size_t i = 0; i < a.list.count; i++)
		{
			if (is_sound(&a.list.rows[i], &a.facts) && !contradicts(&a.list, &a.list.rows[i]))
				continue;
			printf("# round %d: %s\n", round, row_text(&a.arena, &a.list.rows[i]));
			CHECK(false);
		}
		rows += (int) a.list.count;
		ka_test_done(&a);
	}
	CHECK(rows > 20000);
}

/* Left at any of its calls, the advisor holds nothing but the arena: the leak checker looks. */
static jmp_buf interrupted;
static int	calls_left;

static void
leave_at_last(void)
{
	if (calls_left-- == 0)
		longjmp(interrupted, 1);
}

TEST(may_be_interrupted_anywhere)
{
	const KaRuleInfo *rules;
	KaAdvised	a;
	volatile bool done = false;
	volatile int calls = 0;

	ka_test_facts(&a, BUSY);
	for (; !done; calls++)
	{
		KaArena		arena;
		KaAdviceList list = {.arena = &arena,.interrupt = leave_at_last};

		ka_malloc_arena(&arena);
		calls_left = calls;
		if (setjmp(interrupted) == 0)
		{
			CHECK(ka_advise(&a.facts, &list));
			done = true;
		}
		ka_malloc_free(&arena);
	}
	/* before each rule, and at each of the two pools of three rules */
	CHECK(calls > (int) ka_rules(&rules) + 2 * 3);
	ka_test_done(&a);
}

/* An arena that gives "left" blocks and then none. */
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

TEST(memory_runs_out)
{
	KaAdvised	a;
	int			needed = 0;

	ka_test_facts(&a, BUSY);
	for (int left = 0; left < 5000 && needed == 0; left++)
	{
		Stingy		stingy = {.left = left};
		KaArena		arena = {.alloc = stingy_alloc,.ctx = &stingy};
		KaAdviceList list = {.arena = &arena};

		ka_malloc_arena(&stingy.backing);
		if (ka_advise(&a.facts, &list))
			needed = left;
		ka_malloc_free(&stingy.backing);
	}
	CHECK(needed > 50);
	ka_test_done(&a);
}

/*
 * The evidence as JSON.
 */
static json_t *
encoded(KaAdvised *a, const KaAdvice *row)
{
	KaJsonSink	sink;
	KaJsonBuilder *builder = ka_json_builder(&a->arena, &sink);

	CHECK(ka_evidence_encode(row, &a->facts, &sink));
	return ka_json_finish(builder);
}

TEST(evidence)
{
	KaAdvised	a;
	const KaAdvice *row;
	json_t	   *json;

	ka_test_facts(&a, BUSY);
	ka_test_advise(&a);
	row = ka_test_row(&a, "compaction.policy", NULL);
	REQUIRE(row != NULL);
	json = encoded(&a, row);
	CHECK_INT(json_integer_value(json_object_get(json_object_get(json, "observed"), "window.compact_stall")), 5000);
	CHECK_REAL(json_number_value(json_object_get(json_object_get(json, "observed"), "compact_stalls_per_s")), 50, 1e-9);
	/* 80 % of the stalls in 20 % of the time */
	CHECK_REAL(json_number_value(json_object_get(json_object_get(json, "observed"), "stall_share_over_time_share")), 4, 1e-9);
	CHECK_STR(json_string_value(json_object_get(json_object_get(json, "observed"), "filesystem")), "xfs");
	CHECK_INT(json_integer_value(json_object_get(json_object_get(json, "threshold"), "stall_policy")), 1);
	CHECK_REAL(json_number_value(json_object_get(json_object_get(json, "window"), "seconds")), 100, 0);
	CHECK_INT(json_integer_value(json_object_get(json_object_get(json, "window"), "checkpoints")), 4);
	CHECK_STR(ka_confidence_name(row->confidence), "measured here");
	json_decref(json);

	/* A row that saw no fact of the window has none in its evidence. */
	row = ka_test_row(&a, "reclaim.zone", NULL);
	REQUIRE(row != NULL);
	json = encoded(&a, row);
	CHECK(json_object_get(json, "observed") != NULL);
	CHECK(json_object_get(json, "window") == NULL);
	json_decref(json);
	ka_test_done(&a);
}

TEST(sizes_as_text)
{
	KaArena		arena;

	ka_malloc_arena(&arena);
	CHECK_STR(ka_setting(&arena, 17179869184), "16GB");
	CHECK_STR(ka_setting(&arena, 1610612736), "1536MB");
	CHECK_STR(ka_setting(&arena, INT64_C(2199023255552)), "2TB");
	CHECK_STR(ka_setting(&arena, 262144), "256kB");
	CHECK_STR(ka_setting(&arena, 1), "1B");
	CHECK_STR(ka_human(&arena, 1023), "1023 B");
	CHECK_STR(ka_human(&arena, 6617563136), "6.2 GB");
	CHECK_STR(ka_human(&arena, INT64_MAX), "8 EB");
	ka_malloc_free(&arena);
}

TEST(arithmetic_saturates)
{
	CHECK_INT(ka_add(INT64_MAX, 1), INT64_MAX);
	CHECK_INT(ka_sub(3, 5), 0);
	CHECK_INT(ka_mul(INT64_MAX / 2, 3), INT64_MAX);
	CHECK_INT(ka_ceil_div(INT64_MAX, 2), INT64_MAX / 2 + 1);
	CHECK_INT(ka_ceil_div(4096, 4096), 1);
	CHECK_INT(ka_ceil_div(4097, 4096), 2);
	CHECK_INT(ka_round(1e30), INT64_MAX);
	CHECK_INT(ka_round(NAN), 0);
	CHECK_INT(ka_round(-5), 0);
	CHECK_INT(ka_round(2.5), 3);
}

/*
 * Documentation: every rule has its section in doc/rules.md, every threshold
 * its line with the value that the code has.
 */
static char *
documentation(void)
{
	FILE	   *file = fopen("doc/rules.md", "r");
	size_t		length;
	char	   *text;

	REQUIRE(file != NULL);
	text = calloc(1, 1 << 20);
	length = fread(text, 1, (1 << 20) - 1, file);
	fclose(file);
	REQUIRE(length > 0);
	return text;
}

TEST(every_rule_is_documented)
{
	const KaRuleInfo *rules;
	size_t		count = ka_rules(&rules);
	char	   *text = documentation();

	CHECK_INT(count, 31);
	for (size_t i = 0; i < count; i++)
	{
		char		heading[128];

		snprintf(heading, sizeof(heading), "\n### %s\n", rules[i].name);
		if (strstr(text, heading) == NULL)
			printf("# doc/rules.md has no section %s\n", rules[i].name);
		CHECK(strstr(text, heading) != NULL);
		CHECK(*rules[i].speaks != '\0' && *rules[i].source != '\0');
		CHECK(strstr(text, rules[i].speaks) != NULL);
		CHECK(strstr(text, rules[i].source) != NULL);
	}
	free(text);
}

TEST(every_threshold_is_documented)
{
	char	   *text = documentation();

	for (int i = 0; i < KA_NTHRESHOLDS; i++)
	{
		const KaThresholdInfo *info = &ka_threshold_info[i];
		char		line[128];
		char		name[64];
		size_t		n = 0;

		for (; info->symbol[n] && n < sizeof(name) - 1; n++)
			name[n] = (char) (info->symbol[n] >= 'A' && info->symbol[n] <= 'Z' ? info->symbol[n] + 32 : info->symbol[n]);
		name[n] = '\0';
		snprintf(line, sizeof(line), "\n| `%s` | %.15g%s%s | ", name, info->value, *info->unit ? " " : "", info->unit);
		if (strstr(text, line) == NULL)
			printf("# doc/rules.md has no line%s\n", line);
		CHECK(strstr(text, line) != NULL);
		CHECK(*info->formula != '\0' && *info->source != '\0');
	}
	free(text);
}

/* Far below a millisecond; the figure is for the reader, the bound for a slow machine under a sanitizer. */
TEST(fast_enough)
{
	enum
	{
		ROUNDS = 200
	};
	KaAdvised	a;
	struct timespec from,
				to;
	double		best = 1e9;

	ka_test_facts(&a, BUSY);
	for (int i = 0; i < ROUNDS; i++)
	{
		KaAdviceList list;
		KaArena		arena;
		double		us;

		ka_malloc_arena(&arena);
		list = (KaAdviceList) {.arena = &arena};
		clock_gettime(CLOCK_MONOTONIC, &from);
		ka_advise(&a.facts, &list);
		clock_gettime(CLOCK_MONOTONIC, &to);
		us = (double) (to.tv_sec - from.tv_sec) * 1e6 + (double) (to.tv_nsec - from.tv_nsec) / 1e3;
		best = us < best ? us : best;
		ka_malloc_free(&arena);
	}
	printf("# ka_advise: %.0f us\n", best);
	CHECK(best < 5000);
	ka_test_done(&a);
}
