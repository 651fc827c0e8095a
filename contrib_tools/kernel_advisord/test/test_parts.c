/*
 * test_parts.c: protocol, knobs, memory and the files for the next boot: the
 * parts that are pure functions.
 */
#include <errno.h>

#include "ka_test.h"
#include "knobs.h"
#include "memory.h"
#include "persist.h"
#include "protocol.h"

TEST(request_of_another_length_or_version)
{
	KaRequest	request = {.version = KA_PROTOCOL_VERSION, .operation = KA_OP_SET, .knob = 16, .node = -1, .value = 7};
	KaRequest	decoded;
	char		longer[sizeof(KaRequest) + 64] = {0};

	memcpy(longer, &request, sizeof(request));
	CHECK(ka_request_decode(&request, sizeof(request), &decoded));
	CHECK_INT(memcmp(&request, &decoded, sizeof(request)), 0);
	for (size_t length = 0; length <= sizeof(longer); length++)
		CHECK_INT(ka_request_decode(longer, length, &decoded), length == sizeof(request));
	for (uint32_t version = 0; version < 10; version++)
	{
		request.version = version;
		CHECK_INT(ka_request_decode(&request, sizeof(request), &decoded), version == KA_PROTOCOL_VERSION);
	}
}

TEST(reply_that_is_none)
{
	KaReply		reply = {.version = KA_PROTOCOL_VERSION, .status = KA_ST_SUPERSEDED};
	KaReply		decoded;

	CHECK(ka_reply_decode(&reply, sizeof(reply), &decoded));
	CHECK(!ka_reply_decode(&reply, sizeof(reply) - 1, &decoded));
	memset(reply.boot_file, 'x', sizeof(reply.boot_file));
	CHECK(!ka_reply_decode(&reply, sizeof(reply), &decoded));
	reply.boot_file[KA_BOOT_FILE_LENGTH - 1] = '\0';
	CHECK(ka_reply_decode(&reply, sizeof(reply), &decoded));
	reply.status = 9999;
	CHECK(!ka_reply_decode(&reply, sizeof(reply), &decoded));
	CHECK_STR(ka_status_text(KA_ST_OK), "done");
	CHECK_STR(ka_status_text(9999), "unknown status");
	CHECK_STR(ka_operation_name(KA_OP_RESERVE), "reserve");
	CHECK_STR(ka_operation_name(0), NULL);
}

TEST(table_of_knobs_is_sound)
{
	for (size_t i = 0; i < ka_nknobs; i++)
	{
		const KaKnob *knob = &ka_knobs[i];
		char		text[64];
		int			node;

		CHECK(ka_knob_find(knob->number) == knob);
		CHECK(knob->min >= 0 && knob->min <= knob->max);
		CHECK_INT(strncmp(knob->path, "/proc/sys/vm/", 13) == 0, !(knob->flags & KA_KF_SYSFS));
		CHECK_INT(strncmp(knob->path, "/sys/", 5) == 0, (knob->flags & KA_KF_SYSFS) != 0);
		CHECK(strstr(knob->path, "..") == NULL && strchr(knob->path, '%') == NULL);
		if (knob->flags & KA_KF_NODES)
			CHECK(strstr(knob->node_path, "%d") != NULL && strchr(strchr(knob->node_path, '%') + 1, '%') == NULL);
		CHECK(ka_knob_by_subject(knob->name, &node) == (knob->flags & KA_KF_INTERNAL ? NULL : knob));
		if (knob->words)
			CHECK(ka_knob_format(knob, knob->max, text, sizeof(text)) > 0);
		if (knob->twin)
			CHECK(ka_knob_find(knob->twin) != NULL && ka_knob_find(knob->twin)->flags & KA_KF_INTERNAL);
	}
	CHECK(ka_knob_find(0) == NULL);
	CHECK(ka_knob_find(UINT32_MAX) == NULL);
}

TEST(subjects)
{
	const KaKnob *knob;
	int			node;

	knob = ka_knob_by_subject("hugepages-1048576kB.nr_hugepages", &node);
	REQUIRE(knob != NULL);
	CHECK_INT(knob->number, KA_HK_POOL_1048576KB);
	CHECK_INT(knob->page_bytes, 1073741824);
	CHECK_INT(node, KA_ALL_NODES);
	knob = ka_knob_by_subject("node12.hugepages-2048kB.nr_hugepages", &node);
	REQUIRE(knob != NULL);
	CHECK_INT(knob->number, KA_HK_POOL_2048KB);
	CHECK_INT(node, 12);
	CHECK(ka_knob_by_subject("node1.vm.swappiness", &node) == NULL);
	CHECK(ka_knob_by_subject("node1.hugepages-2048kB.nr_overcommit_hugepages", &node) == NULL);
	CHECK(ka_knob_by_subject("node.hugepages-2048kB.nr_hugepages", &node) == NULL);
	CHECK(ka_knob_by_subject("node99999999999999999999.hugepages-2048kB.nr_hugepages", &node) == NULL);
	CHECK(ka_knob_by_subject("huge_pages", &node) == NULL);
	CHECK(ka_knob_by_subject("", &node) == NULL);
}

static int
parse(const KaKnob *knob, const char *text, int64_t *value)
{
	/* Without the closing NUL, so that a sanitizer sees what is read beyond. */
	size_t		length = strlen(text);
	char	   *copy = malloc(length > 0 ? length : 1);
	int			result;

	memcpy(copy, text, length);
	result = ka_knob_parse(knob, copy, length, value);
	free(copy);
	return result;
}

TEST(values_of_knobs)
{
	const KaKnob *number = ka_knob_find(KA_HK_SWAPPINESS);
	const KaKnob *word = ka_knob_find(KA_HK_THP_DEFRAG);
	char		text[64];
	int64_t		value = 0;

	CHECK_INT(parse(number, "60\n", &value), 0);
	CHECK_INT(value, 60);
	CHECK_INT(parse(number, "9223372036854775807\n", &value), 0);
	CHECK_INT(value, INT64_MAX);
	CHECK_INT(parse(number, "20\n0\n", &value), 0);
	CHECK_INT(value, 20);
	CHECK_INT(parse(number, "9223372036854775808\n", &value), -EBADMSG);
	CHECK_INT(parse(number, "-1\n", &value), -EBADMSG);
	CHECK_INT(parse(number, "", &value), -EBADMSG);
	CHECK_INT(parse(number, "\n", &value), -EBADMSG);
	CHECK_INT(parse(number, "6 0\n", &value), -EBADMSG);
	CHECK_INT(parse(word, "always defer [defer+madvise] madvise never\n", &value), 0);
	CHECK_INT(value, 3);
	CHECK_INT(parse(word, "madvise", &value), 0);
	CHECK_INT(value, 1);
	CHECK_INT(parse(word, "always [defer", &value), -EBADMSG);
	CHECK_INT(parse(word, "always [] never\n", &value), -EBADMSG);
	CHECK_INT(parse(word, "[sometimes]\n", &value), -EBADMSG);
	CHECK_INT(ka_knob_format(number, 42, text, sizeof(text)), 3);
	CHECK_STR(text, "42\n");
	CHECK_INT(ka_knob_format(word, 4, text, sizeof(text)), 7);
	CHECK_STR(text, "always\n");
	CHECK_INT(ka_knob_format(word, 5, text, sizeof(text)), -ERANGE);
	CHECK_INT(ka_knob_format(word, INT64_MAX, text, sizeof(text)), -ERANGE);
	CHECK_INT(ka_knob_format(number, -1, text, sizeof(text)), -ERANGE);
	CHECK_INT(ka_knob_format(number, INT64_MAX, text, 5), -ERANGE);
}

#define MEMINFO \
	"MemTotal:       16777216 kB\nMemFree:        12000000 kB\nMemAvailable:   14000000 kB\n" \
	"SwapTotal:          1024 kB\nCommitLimit:     8388608 kB\nCommitted_AS:    1000000 kB\n"

TEST(meminfo)
{
	KaMemory	memory;
	const char *no_available = strstr(MEMINFO, "SwapTotal");

	CHECK(ka_parse_meminfo_text(MEMINFO, strlen(MEMINFO), &memory));
	CHECK_INT(memory.total_bytes, INT64_C(16777216) * 1024);
	CHECK_INT(memory.hugepage_bytes, 0);
	CHECK(ka_parse_meminfo_text(MEMINFO "Hugepagesize:       2048 kB\n", strlen(MEMINFO) + 28, &memory));
	CHECK_INT(memory.hugepage_bytes, 2097152);
	CHECK(!ka_parse_meminfo_text(no_available, strlen(no_available), &memory));
	CHECK(!ka_parse_meminfo_text("", 0, &memory));
	CHECK(!ka_parse_meminfo_text("MemTotal: 99999999999999999 kB\n", 31, &memory));
	for (size_t length = 0; length < strlen(MEMINFO) - 1; length++)
	{
		char	   *cut = malloc(length > 0 ? length : 1);

		memcpy(cut, MEMINFO, length);
		CHECK(!ka_parse_meminfo_text(cut, length, &memory));
		free(cut);
	}
}

TEST(estimate)
{
	static const char buddyinfo[] =
		"Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n"
		"Node 0, zone   Normal 300000      0      0      0      7      0      0      0      0     10     20 \n"
		"Node 1, zone   Normal      0      0      0      0      0      0      0      0      1      1      0 \n";
	static const char pagetypeinfo[] =
		"Page block order: 9\n"
		"Node    0, zone   Normal, type    Unmovable    100    100      0      0      0      0      0      0      0      0      0 \n"
		"Node    0, zone   Normal, type      Movable >100000     0      0      0      4      0      0      0      1      9     20 \n"
		"Node    0, zone   Normal, type   HighAtomic      0      0      0      0      0      0      0      0      0      1      0 \n"
		"Node    1, zone   Normal, type      Movable      0      0      0      0      0      0      0      0      1      1      0 \n"
		"Number of blocks type     Unmovable      Movable\n"
		"Node 0, zone   Normal           58         1807\n";
	static const char zoneinfo[] =
		"Node 0, zone   Normal\n"
		"  pages free     1\n"
		"        boost    0\n"
		"        min      512\n"
		"        protection: (0, 0, 1024)\n"
		"      min 99\n"
		"Node 1, zone   Normal\n"
		"  pages free     1\n"
		"        min      2000\n"
		"        protection: (0, 0, 0)\n";
	static const char vmstat[] = "nr_foll_pin_acquired 1857\nnr_foll_pin_released 99\n";
	KaMemoryTexts texts = {.buddyinfo = {buddyinfo, sizeof(buddyinfo) - 1}};
	KaEstimate	estimate;

	/* Free blocks only. */
	REQUIRE(ka_estimate_pages(&texts, KA_ALL_NODES, 9, &estimate));
	CHECK_INT(estimate.max_order, 10);
	CHECK_INT(estimate.free_costly_blocks, 5 + 37 + 2);
	CHECK_INT(estimate.pages_free, 10 + 40 + 1);	/* without ZONE_DMA */
	CHECK_INT(estimate.pages_compaction, KA_NO_VALUE);

	/* Not what is kept as HighAtomic; holes that are not of other types, though their number is cut off. */
	texts.pagetypeinfo = (KaMemoryText) {pagetypeinfo, sizeof(pagetypeinfo) - 1};
	REQUIRE(ka_estimate_pages(&texts, KA_ALL_NODES, 9, &estimate));
	CHECK_INT(estimate.pages_free, 10 + 40 - 1 + 1);
	CHECK_INT(estimate.pages_compaction, (300000 + 7 * 16 - 100 * 3) / 512);
	REQUIRE(ka_estimate_pages(&texts, 1, 9, &estimate));
	CHECK_INT(estimate.pages_free, 1);
	CHECK_INT(estimate.pages_compaction, 0);

	/* A zone keeps its watermark and what it protects: node 1 has less. */
	texts.zoneinfo = (KaMemoryText) {zoneinfo, sizeof(zoneinfo) - 1};
	REQUIRE(ka_estimate_pages(&texts, KA_ALL_NODES, 9, &estimate));
	CHECK_INT(estimate.pages_free, 49);
	CHECK_INT(estimate.pages_compaction, (300112 + 50 * 512 - 512 - 1024) / 512 - 49);
	REQUIRE(ka_estimate_pages(&texts, 1, 9, &estimate));
	CHECK_INT(estimate.pages_free + estimate.pages_compaction, 0);

	/* As many pinned pages as there are other blocks: 1/e of them has none. */
	texts.vmstat = (KaMemoryText) {vmstat, sizeof(vmstat) - 1};
	REQUIRE(ka_estimate_pages(&texts, KA_ALL_NODES, 9, &estimate));
	CHECK_INT(estimate.pages_compaction, 584 * 36787 / 100000);

	texts = (KaMemoryTexts) {.buddyinfo = {"Node 0, zone\n", 13}};
	CHECK(!ka_estimate_pages(&texts, KA_ALL_NODES, 9, &estimate));
	texts.buddyinfo = (KaMemoryText) {"", 0};
	CHECK(!ka_estimate_pages(&texts, KA_ALL_NODES, 9, &estimate));
	texts.buddyinfo = (KaMemoryText) {buddyinfo, sizeof(buddyinfo) - 1};
	CHECK(!ka_estimate_pages(&texts, KA_ALL_NODES, 99, &estimate));
	texts.buddyinfo = (KaMemoryText) {"Node 0, zone DMA 9223372036854775807\n", 37};
	CHECK(!ka_estimate_pages(&texts, KA_ALL_NODES, 0, &estimate));
}

TEST(files_for_the_next_boot)
{
	static KaPersistFile file;
	static KaPersistFile again;
	char		text[4096];
	uint32_t	line;
	int			length;

	file.entries[0] = (KaPersisted) {ka_knob_find(KA_HK_NR_HUGEPAGES), KA_ALL_NODES, 4711, 12, 101, INT64_C(1796000000) * 1000000};
	file.entries[1] = (KaPersisted) {ka_knob_find(KA_HK_SWAPPINESS), KA_ALL_NODES, 10, 0, 0, 0};
	file.n = 2;
	length = ka_persist_format(&file, text, sizeof(text));
	REQUIRE(length > 0);
	REQUIRE(ka_persist_parse(text, (size_t) length, false, &again, &line));
	CHECK_INT(again.n, 2);
	CHECK_INT(memcmp(&file.entries[0], &again.entries[0], sizeof(KaPersisted)), 0);
	CHECK_INT(memcmp(&file.entries[1], &again.entries[1], sizeof(KaPersisted)), 0);
	CHECK(!ka_persist_parse(text, (size_t) length, true, &again, &line));	/* not of /sys */
	CHECK_INT(ka_persist_format(&file, text, 100), -ENOSPC);

	file.entries[0] = (KaPersisted) {ka_knob_find(KA_HK_POOL_2048KB), 3, 64, 1, 0, 0};
	file.entries[1] = (KaPersisted) {ka_knob_find(KA_HK_THP_DEFRAG), KA_ALL_NODES, 3, 2, 0, 0};
	length = ka_persist_format(&file, text, sizeof(text));
	REQUIRE(length > 0 && ka_persist_parse(text, (size_t) length, true, &again, &line));
	CHECK_INT(again.entries[0].node, 3);
	CHECK_INT(again.entries[1].value, 3);
}

TEST(lines_that_are_not_ours)
{
	static const char *const foreign[] = {
		"kernel.core_pattern = |/bin/sh\n", "vm.swappiness=1\n", "vm.swappiness = 1 \n", "vm.swappiness = -1\n",
		"vm.dirty_ratio = 5\n", "vm.compact_memory = 1\n", "# a note\n", "vm.swappiness = 99999999999999999999\n",
		"# change x, 2026\n", " vm.swappiness = 1\n", "vm.swappiness = \n",
	};
	static KaPersistFile file;
	uint32_t	line;

	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
	{
		char		text[256];

		snprintf(text, sizeof(text), "vm.zone_reclaim_mode = 0\n\n%s", foreign[i]);
		if (ka_persist_parse(text, strlen(text), false, &file, &line))
			CHECK_STR(foreign[i], "refused");
		CHECK_INT(line, 3);
	}
}
