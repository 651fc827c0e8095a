/*
 * rules_boot.c: what the next boot will make of it.
 *
 * A reboot sets the pool from the kernel command line and then, for the
 * default size only, from the sysctl.d file that wins.  "Known that no file
 * sets it" is a fact of its own and differs from not having looked.
 *
 * Locks: none.
 */
#include "rules.h"

#include <string.h>

/* hugepages= of one size on the kernel command line, or KA_UNKNOWN. */
static int64_t
cmdline_pages(const KaFacts *f, int64_t size_bytes)
{
	for (size_t i = 0; i < f->nboot_pools; i++)
	{
		if (f->boot_pools[i].size_bytes == size_bytes)
			return f->boot_pools[i].pages;
	}
	return KA_UNKNOWN;
}

/*
 * The pool of the default size after a reboot, or KA_UNKNOWN; and who sets it.
 * "file": the sysctl.d file that wins, else NULL.
 */
static int64_t
boot_pool(const KaView *v, const char **file)
{
	const KaBootSysctl *boot = &v->facts->boot[KA_KNOB_NR_HUGEPAGES];
	int64_t		pages;

	*file = NULL;
	if (!boot->known)
		return KA_UNKNOWN;
	if (boot->value != KA_UNKNOWN)
	{
		*file = boot->file;
		return boot->value;
	}
	pages = v->default_size > 0 ? cmdline_pages(v->facts, v->default_size) : KA_UNKNOWN;
	return pages == KA_UNKNOWN ? 0 : pages;
}

/* What the pool must have after a reboot: this server's pages and the others'. */
static int64_t
boot_demand(const KaView *v)
{
	int64_t		own = 0;
	int64_t		others = v->consumers;

	if (v->asks != KA_NO && v->mmap && v->default_pool && v->need_least != KA_UNKNOWN &&
		(v->on_huge == KA_YES || v->insists || v->worth == KA_YES))
		own = v->need_least;
	/* Of pages taken by others nobody said that they are wanted again; but they are taken. */
	if (v->default_pool && v->on_huge == KA_YES && v->need != KA_UNKNOWN && v->pool_taken != KA_UNKNOWN)
		others = ka_max(others, ka_sub(v->pool_taken, v->need));
	return ka_add(own, others);
}

static void
pool_at_boot(const KaView *v, KaRows *rows)
{
	const char *file;
	int64_t		boot = boot_pool(v, &file);
	int64_t		demand = boot_demand(v);
	int64_t		running = ka_or_zero(v->pool_total);
	bool		in_use = v->on_huge == KA_YES;
	KaAdvice   *row;

	if (boot == KA_UNKNOWN || v->managed)
		return;
	if (v->total > 0 && v->default_size > 0 &&
		ka_percent(ka_mul(boot, v->default_size), v->total) > 100 - KA_LIMIT(RAM_LEFT_PCT))
	{
		row = ka_row(rows, KA_WARNING, "vm.nr_hugepages");
		ka_reason(rows, row, "%s will reserve %lld huge pages at the next boot, %s of %s of RAM: little is left to run on.",
				  file ? file : "The kernel command line", (long long) boot,
				  ka_human(v->arena, ka_mul(boot, v->default_size)), ka_human(v->arena, v->total));
		ka_set_pool(rows, row, v->default_size, v->need_plan != KA_UNKNOWN && v->default_pool && v->fits ? v->target : KA_UNKNOWN);
		ka_observed(rows, row, "boot_value", boot);
		ka_observed_text(rows, row, "boot_file", file);
		ka_limit(rows, row, KA_T_RAM_LEFT_PCT);
		return;
	}
	if (demand == 0 || !v->default_pool)
		return;
	if (boot >= demand)
	{
		if (!in_use)
			return;
		row = ka_row(rows, KA_OK, "vm.nr_hugepages");
		ka_reason(rows, row, "The pool survives a reboot: %s sets %lld pages and %lld are needed.",
				  file ? file : "the kernel command line", (long long) boot, (long long) demand);
		ka_set_pool(rows, row, v->default_size, KA_UNKNOWN);
		ka_observed(rows, row, "boot_value", boot);
		ka_observed_text(rows, row, "boot_file", file);
		ka_limit_named(rows, row, "needed_pages", (double) demand);
		return;
	}
	/* A pool that is still to be reserved is persisted by the row that recommends it. */
	if (!in_use && boot == 0 && v->pool_total <= 0)
		return;

	row = ka_row(rows, v->insists ? KA_CRITICAL : in_use || v->worth == KA_YES ? KA_WARNING : KA_INFO, "vm.nr_hugepages");
	if (file)
		ka_reason(rows, row, "At the next boot %s sets %lld huge pages, and %lld are needed: %s.",
				  file, (long long) boot, (long long) demand,
				  v->insists ? "the server will not start with huge_pages = on" : "the server will fall back to small pages");
	else
		ka_reason(rows, row, "%s and %lld huge pages are needed: after a reboot %s.",
				  boot > 0 ? ka_printf(v->arena, "The kernel command line sets %lld at boot", (long long) boot) :
				  "No file and no boot argument sets the pool", (long long) demand,
				  v->insists ? "the server will not start with huge_pages = on" : "the server will fall back to small pages");
	ka_set_pool(rows, row, v->default_size, !v->fits || v->exhausted ? KA_UNKNOWN :
				in_use && running >= demand ? running : ka_max(v->target, demand));
	ka_observed(rows, row, "boot_value", boot);
	ka_observed_text(rows, row, "boot_file", file);
	ka_observed(rows, row, "pool_total", v->pool_total);
	ka_limit_named(rows, row, "needed_pages", (double) demand);
}

/* A pool of another size than the default: only boot arguments set it, or somebody's own unit. */
static void
other_pool_at_boot(const KaView *v, KaRows *rows)
{
	int64_t		boot = cmdline_pages(v->facts, v->page_size);
	KaAdvice   *row;

	if (v->default_pool || v->on_huge != KA_YES || v->need_least == KA_UNKNOWN ||
		(boot == KA_UNKNOWN && !ka_known(v->facts, KA_KERNEL_CMDLINE)) || boot >= v->need_least)
		return;
	row = ka_row(rows, v->insists ? KA_WARNING : KA_INFO, ka_pool_subject(v, v->page_size));
	ka_reason(rows, row, "The kernel command line sets %lld pages of %s and the server needs %lld: unless a unit of your own writes them to /sys, the next boot leaves it without.",
			  (long long) ka_or_zero(boot), ka_human(v->arena, v->page_size), (long long) v->need_least);
	ka_set_pool(rows, row, v->page_size, ka_max(v->pool_total, v->need_plan));
	if (row)
		row->activation = KA_REBOOT;
	ka_saw(rows, row, KA_KERNEL_CMDLINE);
	ka_observed(rows, row, "boot_argument_pages", ka_or_zero(boot));
	ka_observed(rows, row, "pool_total", v->pool_total);
	ka_limit_named(rows, row, "needed_pages", (double) v->need_least);
}

/* hugepages= that the kernel could not grant, or that something changed since. */
static void
boot_arguments(const KaView *v, KaRows *rows)
{
	const KaFacts *f = v->facts;

	for (size_t i = 0; i < f->nboot_pools; i++)
	{
		const KaBootPool *asked = &f->boot_pools[i];
		int64_t		size = asked->size_bytes == KA_UNKNOWN ? v->default_size : asked->size_bytes;
		const KaPool *pool = ka_pool(f, size);
		const KaBootSysctl *boot = &f->boot[KA_KNOB_NR_HUGEPAGES];
		KaAdvice   *row;

		ka_interrupt(rows);
		if (pool == NULL || pool->total == KA_UNKNOWN || asked->pages == KA_UNKNOWN || asked->pages <= pool->total)
			continue;
		if (size == v->default_size && boot->known && boot->value != KA_UNKNOWN)
			continue;			/* the file came later, and wins */
		row = ka_row(rows, KA_WARNING, ka_pool_subject(v, size));
		ka_reason(rows, row, "The kernel command line asks for %lld pages of %s and the pool has %lld: they were not all granted at boot, or something took them back since; dmesg tells.",
				  (long long) asked->pages, ka_human(v->arena, size), (long long) pool->total);
		ka_set_pool(rows, row, size, KA_UNKNOWN);
		if (row)
			row->activation = KA_REBOOT;
		ka_observed(rows, row, "boot_argument_pages", asked->pages);
		ka_observed(rows, row, "pool_total", pool->total);
		ka_saw(rows, row, KA_KERNEL_CMDLINE);
	}
}

/* Transparent huge pages that come back as always. */
static void
thp_at_boot(const KaView *v, KaRows *rows)
{
	const KaFacts *f = v->facts;
	const char *boot = ka_text(f, KA_BOOT_THP_VALUE);
	const char *now = ka_text(f, KA_THP_ENABLED);
	KaAdvice   *row;

	if (!f->boot_thp_known || now == NULL || strcmp(now, "always") == 0)
		return;
	/* With no setting the kernel's own default comes back, which may well be madvise, hardly never. */
	if (boot != NULL ? strcmp(boot, "always") != 0 : strcmp(now, "never") != 0)
		return;

	row = ka_row(rows, boot ? KA_WARNING : KA_INFO, "thp.enabled");
	if (boot)
		ka_reason(rows, row, "Transparent huge pages are %s now, and %s sets them to always at the next boot.",
				  now, ka_known(f, KA_BOOT_THP_FILE) ? ka_text(f, KA_BOOT_THP_FILE) : "the boot configuration");
	else
		ka_reason(rows, row, "Transparent huge pages are %s now and nothing sets that at boot: the kernel's own default comes back, which on many distributions is always.", now);
	ka_set_thp(rows, row, "enabled", KA_THP_ENABLED, boot ? now : NULL);
	KA_SAW(rows, row, KA_BOOT_THP_VALUE, KA_BOOT_THP_FILE);
}

/* Knobs whose running value is somebody's choice and may be lost. */
static const KaSysctl policy_knobs[] = {
	KA_KNOB_EXTFRAG_THRESHOLD,
	KA_KNOB_COMPACTION_PROACTIVENESS,
	KA_KNOB_MIN_FREE_KBYTES,
	KA_KNOB_WATERMARK_SCALE_FACTOR,
	KA_KNOB_PCP_HIGH_FRACTION,
	KA_KNOB_ZONE_RECLAIM_MODE,
	KA_KNOB_DIRTY_BACKGROUND_BYTES,
	KA_KNOB_DIRTY_BYTES,
	KA_KNOB_OVERCOMMIT_MEMORY,
	KA_KNOB_OVERCOMMIT_RATIO,
	KA_KNOB_OVERCOMMIT_KBYTES,
	KA_KNOB_NR_OVERCOMMIT_HUGEPAGES,
};

static void
knob_at_boot(const KaView *v, KaRows *rows, KaSysctl knob)
{
	const KaSysctlInfo *info = &ka_sysctl_info[knob];
	const KaBootSysctl *boot = &v->facts->boot[knob];
	int64_t		now = ka_int(v->facts, (KaFact) (KA_SYSCTL_NR_HUGEPAGES + (int) knob));
	int64_t		then = boot->value == KA_UNKNOWN ? info->def : boot->value;
	KaAdvice   *row;

	if (!boot->known || now == KA_UNKNOWN || then < 0 || now == then)
		return;
	/* Without mode 2, now or then, nobody looks at the limit. */
	if ((knob == KA_KNOB_OVERCOMMIT_RATIO || knob == KA_KNOB_OVERCOMMIT_KBYTES) &&
		ka_int(v->facts, KA_SYSCTL_OVERCOMMIT_MEMORY) != 2 && v->facts->boot[KA_KNOB_OVERCOMMIT_MEMORY].value != 2)
		return;
	/* A value that the running system got rid of, or a node setting the kernel chose: not a choice to keep. */
	if (boot->value == KA_UNKNOWN && knob == KA_KNOB_ZONE_RECLAIM_MODE)
		return;

	row = ka_row(rows, knob == KA_KNOB_EXTFRAG_THRESHOLD ? KA_WARNING : KA_INFO, info->name);
	if (boot->value != KA_UNKNOWN)
		ka_reason(rows, row, "%s is %lld now, and %s sets %lld at the next boot.", info->name, (long long) now,
				  boot->file ? boot->file : "the boot configuration", (long long) then);
	else
		ka_reason(rows, row, "%s is %lld now and no file sets it: the next boot brings back %lld.",
				  info->name, (long long) now, (long long) then);
	ka_set_knob(rows, row, knob, now);
	ka_observed(rows, row, "boot_value", boot->value);
	ka_observed_text(rows, row, "boot_file", boot->file);
	ka_limit_named(rows, row, info->name, (double) now);
}

void
ka_rule_boot_persist(const KaView *v, KaRows *rows)
{
	if (v->managed)
		return;
	pool_at_boot(v, rows);
	other_pool_at_boot(v, rows);
	boot_arguments(v, rows);
	thp_at_boot(v, rows);
	for (size_t i = 0; i < KA_LENGTH(policy_knobs); i++)
		knob_at_boot(v, rows, policy_knobs[i]);
}
