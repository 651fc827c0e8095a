/*
 * reservetext.c: what became of a reservation, for people and for programs.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "reserve.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "output.h"
#include "rules.h"

const char *
ka_outcome_name(KaOutcome outcome)
{
	static const char *const names[] = {
		[KA_OUTCOME_FULL] = "full",
		[KA_OUTCOME_PARTIAL] = "partial",
		[KA_OUTCOME_NONE] = "none",
		[KA_OUTCOME_UNKNOWN] = "unknown",
	};

	return names[outcome];
}

/*
 * Programs
 */

/* A number, null when it is not known. */
static json_t *
number(int64_t value)
{
	return value == KA_UNKNOWN ? json_null() : json_integer(value);
}

static json_t *
change_number(uint64_t change)
{
	return change == 0 ? json_null() : json_integer((json_int_t) change);
}

static json_t *
part_document(const KaReservePart *part)
{
	const KaReply *reply = &part->reply;

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:i, s:i}",
					 "subject", part->subject,
					 "node", part->node == KA_ALL_NODES ? json_null() : json_integer(part->node),
					 "pages_before", number(ka_part_before(part)),
					 "pages_asked", number(part->asked),
					 "pages_granted", number(ka_part_after(part)),
					 "pages_reached", number(reply->reached),
					 "status", (int) reply->status,
					 "status_text", ka_status_text(reply->status),
					 "max", number(reply->max),
					 "pages_free", number(reply->pages_free),
					 "pages_compaction", number(reply->pages_compaction),
					 "pages_reclaim", number(reply->pages_reclaim),
					 "free_costly_blocks", number(reply->free_costly_blocks),
					 "commit_limit_bytes", number(reply->commit_limit_bytes),
					 "boot_safer", (reply->state & KA_REPLY_BOOT_SAFER) != 0,
					 "change", change_number(reply->change),
					 "undone_by", change_number(part->undone_by),
					 "rounds", (int) reply->rounds,
					 "elapsed_ms", (int) reply->elapsed_ms);
}

static bool
print_json(const KaReservation *r)
{
	json_t	   *parts = json_array();
	json_t	   *document;
	bool		good;

	for (size_t i = 0; i < r->nparts; i++)
		json_array_append_new(parts, part_document(&r->parts[i]));
	document = json_pack("{s:s, s:s, s:s?, s:o, s:o, s:b, s:o, s:s?, s:o}",
						 "action", r->estimate ? "estimate" : "reserve",
						 "outcome", ka_outcome_name(r->outcome),
						 "nothing_to_do", r->nothing,
						 "page_bytes", number(r->page_bytes),
						 "pages_needed", r->nothing ? json_null() : json_integer(r->needed),
						 "needed_is_estimated", r->need_estimated,
						 "pages_others", r->nothing ? json_null() : json_integer(r->others),
						 "by", r->helper,
						 "pools", parts);
	if (document == NULL)
		return false;
	good = json_dumpf(document, stdout, JSON_INDENT(2)) == 0 && fputc('\n', stdout) != EOF;
	json_decref(document);
	return good;
}

/*
 * People
 */

static const char *
count_text(KaArena *arena, int64_t n, const char *unknown)
{
	return n == KA_UNKNOWN ? unknown : ka_printf(arena, "%" PRId64, n);
}

static void
print_pair(const char *name, const char *value)
{
	printf("  %-36s %s\n", name, value ? value : "");
}

static void
print_need(KaArena *arena, const KaReservation *r)
{
	const char *size = ka_human(arena, r->page_bytes);

	print_pair("needed by the server",
			   ka_printf(arena, "%" PRId64 " page%s of %s, %s%s", r->needed, r->needed == 1 ? "" : "s", size,
						 ka_human(arena, ka_mul(r->needed, r->page_bytes)),
						 r->need_estimated ? " (estimated from shared_buffers)" : ""));
	if (r->others > 0)
		print_pair("taken or wanted by others", ka_printf(arena, "%" PRId64 " pages", r->others));
}

/* Not granted, and why; with the number that the bounds allow where that is it. */
static const char *
shortage(KaArena *arena, const KaReservePart *part, const KaReserveOptions *options)
{
	const KaReply *reply = &part->reply;
	int64_t		limit_ms = options->time_limit_ms ? options->time_limit_ms : KA_DEFAULT_TIME_LIMIT_MS;

	if (reply->status == KA_ST_RANGE)
		return ka_printf(arena, "%s: at most %" PRId64 " pages", ka_status_text(reply->status), reply->max);
	if (reply->status == KA_ST_PARTIAL && reply->elapsed_ms >= limit_ms)
		return ka_printf(arena, "the time limit of %g s was over", (double) limit_ms / 1000);
	if (reply->status == KA_ST_PARTIAL)
		return "the kernel could not make more blocks of that size";
	if (reply->error != 0)
		return ka_printf(arena, "%s: %s", ka_status_text(reply->status), strerror(reply->error));
	return ka_status_text(reply->status);
}

static void
print_part(KaArena *arena, const KaReservation *r, const KaReservePart *part, const KaReserveOptions *options)
{
	const KaReply *reply = &part->reply;
	int64_t		after = ka_part_after(part);
	const char *change = "";

	if (part->undone_by)
		change = ka_printf(arena, ", change %" PRIu64 " undone by %" PRIu64, reply->change, part->undone_by);
	else if (reply->change)
		change = ka_printf(arena, ", change %" PRIu64, reply->change);
	print_pair(part->subject,
			   ka_printf(arena, r->estimate ? "%s now, %" PRId64 " asked, probably %s%s" : "%s before, %" PRId64 " asked, %s granted%s",
						 count_text(arena, ka_part_before(part), "?"), part->asked,
						 count_text(arena, after, r->estimate ? "?" : "none"), change));
	if (r->outcome == KA_OUTCOME_UNKNOWN)
		print_pair("  why", "pages larger than the largest free block are made from whole ranges: only a try tells");
	else if (after < part->asked || (r->estimate && reply->status >= KA_ST_RATE))
		print_pair("  why not all", r->estimate && reply->status < KA_ST_RATE ?
				   "free blocks and compaction do not suffice" : shortage(arena, part, options));
	if (reply->reached > after)
		print_pair("  at best, before it was undone", count_text(arena, reply->reached, NULL));
	if (r->estimate)
	{
		print_pair("  free blocks of that size now", count_text(arena, reply->pages_free, "not known"));
		print_pair("  compaction could make",
				   count_text(arena, reply->pages_compaction, reply->pages_free == KA_UNKNOWN ? "not known" :
							  "not known: /proc/pagetypeinfo is for root, or for the helper to read"));
		print_pair("  clean caches, when dropped", count_text(arena, reply->pages_reclaim, "not known"));
	}
	if (reply->free_costly_blocks != KA_UNKNOWN)
		print_pair(r->estimate ? "  free costly blocks (order >= 4) now" : "  free costly blocks (order >= 4) left",
				   count_text(arena, reply->free_costly_blocks, NULL));
	if (reply->commit_limit_bytes != KA_UNKNOWN)
		print_pair("  CommitLimit with that pool", ka_human(arena, reply->commit_limit_bytes));
}

/* The next step, for whoever reads this in the log of a start. */
static void
print_hint(KaArena *arena, const KaReservation *r, const KaReserveOptions *options)
{
	bool		boot_safer = false;

	for (size_t i = 0; i < r->nparts; i++)
		boot_safer = boot_safer || (r->parts[i].reply.state & KA_REPLY_BOOT_SAFER);
	if (r->estimate)
		ka_print_wrapped(boot_safer ? "Boot is the safer moment: what is beyond the free blocks must be compacted first, and may be granted in part." :
						 "No need to wait for a boot: free blocks suffice.", 0);
	else if (r->outcome != KA_OUTCOME_FULL)
		ka_print_wrapped(ka_printf(arena, "With huge_pages = try the server starts on small pages, with on it does not start. More to be had: %sa longer --time-limit, fewer programs in memory, a reservation at boot (vm.nr_hugepages in /etc/sysctl.d, or hugepages= on the kernel command line).",
								   options->drop_caches ? "" : "--drop-caches, "), 0);
}

bool
ka_print_reservation(KaArena *arena, const KaReservation *r, const KaReserveOptions *options)
{
	static const char *const reserved[] = {
		[KA_OUTCOME_FULL] = "All huge pages are reserved.",
		[KA_OUTCOME_PARTIAL] = "Huge pages are reserved in part.",
		[KA_OUTCOME_NONE] = "No huge page was reserved.",
	};
	static const char *const expected[] = {
		[KA_OUTCOME_FULL] = "All huge pages can probably be reserved.",
		[KA_OUTCOME_PARTIAL] = "Huge pages can probably be reserved in part.",
		[KA_OUTCOME_NONE] = "Huge pages can probably not be reserved.",
		[KA_OUTCOME_UNKNOWN] = "How many huge pages can be reserved is not known.",
	};

	if (options->json)
		return print_json(r) && fflush(stdout) == 0;
	if (r->nothing != NULL)
		printf("Nothing to reserve: %s.\n", r->nothing);
	else
	{
		puts((r->estimate ? expected : reserved)[r->outcome]);
		print_need(arena, r);
		for (size_t i = 0; i < r->nparts; i++)
			print_part(arena, r, &r->parts[i], options);
		print_hint(arena, r, options);
	}
	return !arena->failed && fflush(stdout) == 0;
}
