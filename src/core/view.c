/*
 * view.c: what follows from the facts: platform, server, failure, memory, window.
 *
 * Pages and pools are in view_hugepages.c.  Nothing here decides on advice;
 * what the facts do not tell stays KA_MAYBE, KA_UNKNOWN or -1.
 *
 * Locks: none.
 */
#include "rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "6.18.44-generic" is 6018; 0 when it is not known. */
static int
kernel_number(const char *release)
{
	char	   *end;
	long		major,
				minor;

	if (release == NULL)
		return 0;
	major = strtol(release, &end, 10);
	if (end == release || *end != '.' || major < 1 || major > 1000)
		return 0;
	release = end + 1;
	minor = strtol(release, &end, 10);
	if (end == release || minor < 0 || minor > 999)
		return 0;
	return (int) (major * 1000 + minor);
}

/* File systems whose buffered writes ask for large folios, and since which kernel. */
static const struct
{
	const char *filesystem;
	int			since;
}			folio_writers[] = {
	{"xfs", 6006},
	{"ext4", 6016},
};

static KaTri
writes_large_folios(const char *filesystem, int kernel)
{
	if (filesystem == NULL || kernel == 0)
		return KA_MAYBE;
	for (size_t i = 0; i < KA_LENGTH(folio_writers); i++)
	{
		if (strcmp(filesystem, folio_writers[i].filesystem) == 0)
			return kernel >= folio_writers[i].since ? KA_YES : KA_NO;
	}
	return KA_MAYBE;			/* btrfs and others: not verified */
}

static void
view_platform(KaView *v)
{
	const KaFacts *f = v->facts;
	const KaFact filesystems[] = {KA_WAL_FILESYSTEM, KA_DATA_FILESYSTEM};
	int			no = 0;

	v->kernel_in_reach = !(ka_known(f, KA_KERNEL_OS) && !ka_is(f, KA_KERNEL_OS, "linux")) &&
		!ka_yes(f, KA_KERNEL_SANDBOX);
	v->managed = ka_known(f, KA_PG_MANAGED);
	v->container = ka_yes(f, KA_KERNEL_CONTAINER);
	v->may_set = v->kernel_in_reach && !v->managed &&
		!(ka_known(f, KA_KERNEL_SYSCTL_WRITABLE) && !ka_yes(f, KA_KERNEL_SYSCTL_WRITABLE));
	v->kernel = kernel_number(ka_text(f, KA_KERNEL_RELEASE));

	v->large_folios = KA_MAYBE;
	for (size_t i = 0; i < KA_LENGTH(filesystems); i++)
	{
		KaTri		writes = writes_large_folios(ka_text(f, filesystems[i]), v->kernel);

		if (writes == KA_YES && v->large_folios != KA_YES)
		{
			v->large_folios = KA_YES;
			v->folio_filesystem = ka_text(f, filesystems[i]);
		}
		no += writes == KA_NO;
	}
	if (no == (int) KA_LENGTH(filesystems))
		v->large_folios = KA_NO;
}

static void
view_server(KaView *v)
{
	const KaFacts *f = v->facts;

	v->version = ka_int(f, KA_PG_VERSION_NUM);
	v->supports = v->version == KA_UNKNOWN || v->version >= 90400;
	v->down = ka_is(f, KA_ERR_PHASE, "start");
	v->running = !v->down &&
		(ka_int(f, KA_PG_BACKENDS) > 0 || ka_known(f, KA_PG_IN_RECOVERY) || ka_known(f, KA_W_CHECKPOINTS));
	v->mmap = !ka_known(f, KA_PG_SHARED_MEMORY_TYPE) || ka_is(f, KA_PG_SHARED_MEMORY_TYPE, "mmap");
	v->insists = v->supports && ka_is(f, KA_PG_HUGE_PAGES, "on");
	v->asks = !v->supports || ka_is(f, KA_PG_HUGE_PAGES, "off") ? KA_NO :
		ka_known(f, KA_PG_HUGE_PAGES) ? KA_YES : KA_MAYBE;
	v->connections = ka_max(ka_int(f, KA_PG_MAX_CONNECTIONS), ka_int(f, KA_PG_BACKENDS));
}

/*
 * The size of a page that is not huge.  A page table fills one page with
 * entries of 8 B, each for one page: a PMD-sized THP is page / 8 * page.
 * Where nothing tells it, the smallest of all makes page tables an upper bound.
 */
static int64_t
base_page(const KaFacts *f)
{
	static const int64_t sizes[] = {4 * KIB, 16 * KIB, 64 * KIB};
	int64_t		page = ka_int(f, KA_KERNEL_PAGE_SIZE);
	int64_t		pmd = ka_int(f, KA_THP_PMD_SIZE);

	if (page != KA_UNKNOWN)
		return page;
	for (size_t i = 0; i < KA_LENGTH(sizes); i++)
	{
		if (pmd == sizes[i] / 8 * sizes[i])
			return sizes[i];
	}
	return sizes[0];
}

/* "64G" of "default_hugepagesz=64G"; KA_UNKNOWN when the argument is not there. */
static int64_t
boot_default_size(const char *cmdline)
{
	static const char argument[] = "default_hugepagesz=";
	const char *at = cmdline ? strstr(cmdline, argument) : NULL;
	const char *units = "KMG";
	char	   *end;
	long long	size;

	if (at == NULL || (at != cmdline && at[-1] != ' '))
		return KA_UNKNOWN;
	size = strtoll(at + sizeof(argument) - 1, &end, 10);
	if (size <= 0)
		return KA_UNKNOWN;
	for (int i = 0; units[i]; i++)
	{
		if (*end == units[i] || *end == units[i] + 'a' - 'A')
			return ka_mul(size, INT64_C(1) << (10 * (i + 1)));
	}
	return size;
}

/*
 * The page size that the server asks for.  huge_page_size came with 14; before,
 * and where it is 0 or not known (its default), it is the kernel's default.
 */
static void
view_page_size(KaView *v)
{
	const KaFacts *f = v->facts;
	int64_t		asked = v->version != KA_UNKNOWN && v->version < 140000 ? 0 : ka_int(f, KA_PG_HUGE_PAGE_SIZE);

	v->base_page = base_page(f);
	v->default_size = ka_int(f, KA_HP_DEFAULT_SIZE);
	if (v->default_size == KA_UNKNOWN)
		v->default_size = boot_default_size(ka_text(f, KA_KERNEL_CMDLINE));
	v->page_size = asked > 0 ? asked : v->default_size;
	v->default_pool = asked <= 0 || asked == v->default_size;
}

/* A machine whose default huge page is 2 MiB as long as the boot arguments do not change it? */
static bool
has_2mib_default(const KaFacts *f)
{
	return ka_is(f, KA_KERNEL_MACHINE, "x86_64") ||
		(ka_is(f, KA_KERNEL_MACHINE, "aarch64") && ka_int(f, KA_KERNEL_PAGE_SIZE) == 4 * KIB);
}

/*
 * A failed mmap: of huge pages, or of small ones?  The server rounds the size
 * up to the huge page before it asks, and prints it; `try' repeats the attempt
 * with the plain size, so what it prints is the second failure.
 */
static KaFailure
mmap_failure(KaView *v, bool enomem)
{
	int64_t		bytes = ka_int(v->facts, KA_ERR_BYTES);

	if (!v->supports || !v->mmap || v->asks == KA_NO || ka_is(v->facts, KA_PG_HUGE_PAGES, "try"))
		return KA_FAIL_SEGMENT;
	if (bytes <= 0)
		return v->insists ? KA_FAIL_HUGE : KA_FAIL_NONE;
	if (!enomem)
		return v->insists && ka_is(v->facts, KA_ERR_ERRNO, "EINVAL") ? KA_FAIL_HUGE_SIZE : KA_FAIL_OTHER;
	if (v->page_size > 0)
		return bytes % v->page_size == 0 ? KA_FAIL_HUGE : KA_FAIL_SEGMENT;

	/*
	 * Of the default sizes of the common machines only 2 MiB divides it.  On
	 * pages of 4 KiB the default is 2 MiB, unless it was made 1 GiB at boot.
	 */
	if (bytes % (2 * MIB) != 0)
		return KA_FAIL_SEGMENT;
	if ((bytes % (32 * MIB) != 0 || (has_2mib_default(v->facts) && bytes % GIB != 0)) && v->default_pool)
		v->page_size = v->default_size = 2 * MIB;
	return KA_FAIL_HUGE;
}

static KaFailure
classify_failure(KaView *v)
{
	static const struct
	{
		const char *call;
		KaFailure	failure;
	}			calls[] = {
		{"dsm", KA_FAIL_DSM},
		{"io_uring", KA_FAIL_IO_URING},
		{"shmget", KA_FAIL_SYSV},
	};
	const KaFacts *f = v->facts;
	const char *name = ka_text(f, KA_ERR_ERRNO);
	bool		enomem = name && strcmp(name, "ENOMEM") == 0;

	for (size_t i = 0; i < KA_LENGTH(calls); i++)
	{
		if (ka_is(f, KA_ERR_CALL, calls[i].call))
			return calls[i].failure;
	}
	if (ka_known(f, KA_ERR_SIGNAL))
	{
		/* Without huge pages there is no hugetlb fault that could fail. */
		return ka_is(f, KA_ERR_SIGNAL, "SIGBUS") && v->asks != KA_NO && v->mmap &&
			!ka_is(f, KA_PG_HUGE_PAGES_STATUS, "off") ? KA_FAIL_SIGBUS : KA_FAIL_SIGNAL;
	}
	if (name == NULL && !ka_is(f, KA_ERR_CALL, "mmap"))
		return KA_FAIL_NONE;
	if (ka_is(f, KA_ERR_PHASE, "runtime") || (name && strcmp(name, "ENOSPC") == 0))
		return KA_FAIL_OTHER;
	if (name && !enomem && !ka_is(f, KA_ERR_CALL, "mmap"))
		return KA_FAIL_OTHER;
	return mmap_failure(v, enomem || name == NULL);
}

/* The size of the shared memory: exact, or bounds from shared_buffers. */
static void
view_shared(KaView *v)
{
	const KaFacts *f = v->facts;
	int64_t		asked = KA_UNKNOWN;
	int64_t		buffers = ka_int(f, KA_PG_SHARED_BUFFERS);

	if (v->failure == KA_FAIL_HUGE || v->failure == KA_FAIL_SEGMENT)
		asked = ka_int(f, KA_ERR_BYTES);
	v->shared = ka_int(f, KA_PG_SHARED_MEMORY);
	/* What a huge page attempt prints is rounded up; the unrounded size is better. */
	if (v->shared <= 0 || v->page_size <= 0 || asked < v->shared || asked - v->shared >= v->page_size)
		v->shared = ka_max(v->shared, asked);
	v->shared_exact = v->shared > 0;
	v->shared_plan = v->shared;
	if (!v->shared_exact)
	{
		v->shared = v->shared_plan = buffers > 0 ? buffers : KA_UNKNOWN;
		if (buffers > 0)
		{
			v->shared_plan = ka_add(buffers, ka_mul(buffers / 100, (int64_t) KA_LIMIT(OVERHEAD_PCT)));
			v->shared_plan = ka_add(v->shared_plan, (int64_t) KA_LIMIT(OVERHEAD_BYTES));
			v->shared_plan = ka_add(v->shared_plan,
									ka_mul(ka_or_zero(v->connections), (int64_t) KA_LIMIT(OVERHEAD_CONNECTION)));
		}
	}
}

static void
view_worth(KaView *v)
{
	v->backend_tables = v->gain = KA_UNKNOWN;
	v->worth = KA_MAYBE;
	if (v->shared == KA_UNKNOWN)
		return;

	v->backend_tables = ka_mul(ka_ceil_div(v->shared_plan, v->base_page), 8);
	if (v->connections > 0)
		v->gain = ka_mul(v->connections, v->backend_tables);
	if ((double) v->backend_tables < KA_LIMIT(WORTH_NEVER))
		v->worth = KA_NO;
	else if ((double) v->backend_tables >= KA_LIMIT(WORTH_ALWAYS))
		v->worth = KA_YES;
	else if (v->gain != KA_UNKNOWN)
		v->worth = (double) v->gain >= KA_LIMIT(WORTH_GAIN) &&
			(v->total <= 0 || ka_percent(v->gain, v->total) >= KA_LIMIT(WORTH_GAIN_PCT)) ? KA_YES : KA_NO;
}

static int
compare_nodes(const void *a, const void *b)
{
	int64_t		x = ((const KaNode *) a)->node;
	int64_t		y = ((const KaNode *) b)->node;

	return (x > y) - (x < y);
}

/* A pool's nodes are looked up by their number, for each pool. */
static void
view_nodes(KaView *v)
{
	size_t		count = v->facts->nnuma;
	KaNode	   *sorted = count > 0 ? ka_alloc(v->arena, count * sizeof(KaNode)) : NULL;

	v->numa = sorted;
	if (sorted == NULL)
		return;
	memcpy(sorted, v->facts->numa, count * sizeof(KaNode));
	qsort(sorted, count, sizeof(KaNode), compare_nodes);
}

const KaNode *
ka_node(const KaView *v, int64_t node)
{
	KaNode		key = {.node = node};

	return v->numa ? bsearch(&key, v->numa, v->facts->nnuma, sizeof(KaNode), compare_nodes) : NULL;
}

static void
view_memory(KaView *v)
{
	const KaFacts *f = v->facts;

	v->total = ka_int(f, KA_MEM_TOTAL);
	v->pools_bytes = 0;
	for (size_t i = 0; i < f->npools; i++)
		v->pools_bytes = ka_add(v->pools_bytes,
								ka_mul(ka_or_zero(f->pools[i].total), ka_or_zero(f->pools[i].size_bytes)));
	v->available_pct = ka_percent(ka_int(f, KA_MEM_AVAILABLE), v->total);
	v->tables_pct = ka_percent(ka_int(f, KA_MEM_PAGE_TABLES), v->total);
	v->exhausted = v->available_pct >= 0 && v->available_pct < KA_LIMIT(EXHAUSTED_PCT) &&
		v->tables_pct < KA_LIMIT(EXHAUSTED_TABLES_PCT);
}

static double
rate(const KaView *v, KaFact counter)
{
	return v->seconds > 0 && ka_known(v->facts, counter) ? ka_real(v->facts, counter, 0) / v->seconds : -1;
}

/* Of a counter of microseconds; -1: not known. */
static double
percent_of_time(const KaView *v, KaFact counter)
{
	double		us_per_s = rate(v, counter);

	return us_per_s < 0 ? -1 : us_per_s / 1e4;
}

static void
view_window(KaView *v)
{
	const KaFacts *f = v->facts;
	double		stalls = ka_real(f, KA_W_COMPACT_STALL, -1);
	double		fallbacks = ka_real(f, KA_W_THP_FALLBACK, -1);
	double		inside = ka_real(f, KA_W_COMPACT_STALL_CKPT, -1);
	double		inside_seconds = ka_real(f, KA_W_CHECKPOINT_SECONDS, 0);
	double		idle = ka_real(f, KA_W_TPS_IDLE, 0);

	v->seconds = ka_real(f, KA_W_SECONDS, 0);
	v->stall_rate = rate(v, KA_W_COMPACT_STALL);
	v->reclaim_rate = rate(v, KA_W_ALLOCSTALL);
	v->fallback_rate = rate(v, KA_W_THP_FALLBACK);
	v->drain_rate = rate(v, KA_W_PCP_DRAINS);
	v->pressure_pct = percent_of_time(v, KA_W_PRESSURE_FULL_US);

	/* One process that waits all the time is 100 %. */
	v->server_compact_pct = percent_of_time(v, KA_W_SERVER_COMPACT_US);
	v->server_stall_pct = percent_of_time(v, KA_W_SERVER_RECLAIM_US);
	v->server_stall_pct = v->server_compact_pct < 0 || v->server_stall_pct < 0 ? -1 : v->server_compact_pct + v->server_stall_pct;
	v->writers_compact_pct = -1;
	if (inside_seconds > 0 && ka_known(f, KA_W_CHECKPOINTER_COMPACT_US) && ka_known(f, KA_W_WALWRITER_COMPACT_US))
		v->writers_compact_pct = (ka_real(f, KA_W_CHECKPOINTER_COMPACT_US, 0) + ka_real(f, KA_W_WALWRITER_COMPACT_US, 0)) /
			(inside_seconds * 1e4);

	v->stall_share = -1;
	if (stalls > 0 && inside >= 0 && inside_seconds > 0 && v->seconds > 0)
		v->stall_share = (inside * v->seconds) / (stalls * inside_seconds);
	/* Without a direct compaction a fault that falls back costs nothing. */
	v->faults_stall = !ka_is(f, KA_THP_DEFRAG, "defer") && !ka_is(f, KA_THP_DEFRAG, "never");
	v->thp_explains = v->faults_stall && stalls > 0 && fallbacks >= KA_LIMIT(FALLBACK_MOST) * stalls &&
		v->stall_share < KA_LIMIT(STALL_SHARE);

	v->dip = ka_real(f, KA_W_DIP, -1000);
	if (!ka_known(f, KA_W_DIP) && idle > 0 && ka_known(f, KA_W_TPS_CHECKPOINT))
		v->dip = 100 * (idle - ka_real(f, KA_W_TPS_CHECKPOINT, 0)) / idle;
}

void
ka_view_init(KaView *view, const KaFacts *facts, KaArena *arena)
{
	memset(view, 0, sizeof(*view));
	view->facts = facts;
	view->arena = arena;

	view_platform(view);
	view_server(view);
	view_page_size(view);
	view->failure = classify_failure(view);
	view_shared(view);
	view_memory(view);
	view_nodes(view);
	view_worth(view);
	view_window(view);
	ka_view_hugepages(view);
}
