/*
 * rules_platform.c: failures that have nothing to do with huge pages, and
 * platforms where nothing can be set.
 *
 * Locks: none.
 */
#include "rules.h"

#include <string.h>

/*
 * huge_pages.not_cause
 */

/* What a failure is about, and where to look instead. */
static const struct
{
	KaFailure	failure;
	KaFact		fact;			/* that must be ... */
	const char *value;			/* ... this; NULL: any */
	const char *subject;
	const char *reason;
}			other_causes[] = {
	{KA_FAIL_SYSV, KA_ERR_ERRNO, "ENOSPC", "shmget",
	"A System V segment failed, huge pages were not asked for: ENOSPC is the number of segments (kernel.shmmni) or pages (kernel.shmall) of the whole system, not a disk."},
	{KA_FAIL_SYSV, KA_ERR_ERRNO, "EINVAL", "shmget",
	"A System V segment failed, huge pages were not asked for: EINVAL is a size above kernel.shmmax; shared_memory_type = mmap needs one of a few bytes only."},
	{KA_FAIL_SYSV, KA_ERR_ERRNO, NULL, "shmget",
	"A System V segment failed, huge pages were not asked for: look at kernel.shmmax, kernel.shmall and kernel.shmmni."},
	{KA_FAIL_DSM, KA_ERR_ERRNO, NULL, "/dev/shm",
	"A dynamic segment failed, which never uses huge pages: /dev/shm is full (64 MB by default in containers: raise shm_size), or memory is."},
	{KA_FAIL_IO_URING, KA_ERR_ERRNO, "EPERM", "io_uring",
	"The io_uring queues were forbidden, not the shared memory: look at kernel.io_uring_disabled and at the seccomp profile of the container, or set io_method = worker."},
	{KA_FAIL_IO_URING, KA_ERR_ERRNO, "ENOSYS", "io_uring",
	"The kernel or its seccomp profile has no io_uring: set io_method = worker."},
	{KA_FAIL_IO_URING, KA_ERR_ERRNO, NULL, "memlock",
	"The io_uring queues failed, not the shared memory: raise the limit on locked memory (LimitMEMLOCK of the service, ulimit -l), look at kernel.io_uring_disabled, or set io_method = worker."},
	{KA_FAIL_SIGNAL, KA_ERR_SIGNAL, "SIGBUS", "signal",
	"The server does not map huge pages, so SIGBUS is another page that could not be had: look for a full /dev/shm or disk below a mapped file, and for memory errors in dmesg."},
	{KA_FAIL_SIGNAL, KA_ERR_SIGNAL, NULL, "signal",
	"This signal does not come from a huge page that could not be had: after SIGKILL look for the OOM killer in dmesg and at the cgroup's memory limit."},
	{KA_FAIL_OTHER, KA_ERR_ERRNO, NULL, "last_error",
	"This error does not come from the pool of huge pages: a pool that is too small is ENOMEM from mmap at the start."},
};

/* Why a failed mapping was one of small pages. */
static const char *
small_because(const KaView *v)
{
	int64_t		bytes = ka_int(v->facts, KA_ERR_BYTES);

	if (!v->supports)
		return "this release has no huge_pages yet (it came with 9.4)";
	if (ka_is(v->facts, KA_PG_HUGE_PAGES, "off"))
		return "huge_pages is off";
	if (!v->mmap)
		return "a segment of this shared_memory_type never uses huge pages";
	if (v->page_size > 0 && bytes > 0 && bytes % v->page_size != 0)
		return ka_printf(v->arena, "%lld bytes are not a multiple of the %s huge page",
						 (long long) bytes, ka_human(v->arena, v->page_size));
	if (ka_is(v->facts, KA_PG_HUGE_PAGES, "try"))
		return "with huge_pages = try a failed attempt is repeated on small pages, and that failed";
	return ka_printf(v->arena, "%lld bytes are not a multiple of 2 MB", (long long) bytes);
}

static const char *
small_cure(const KaView *v)
{
	int64_t		bytes = ka_int(v->facts, KA_ERR_BYTES);
	int64_t		limit = ka_int(v->facts, KA_CGROUP_MEMORY_LIMIT);

	if (bytes > 0 && v->total > 0 && bytes > v->total)
		return ka_printf(v->arena, "%s do not fit in %s of RAM", ka_human(v->arena, bytes), ka_human(v->arena, v->total));
	if (bytes > 0 && limit > 0 && bytes > limit)
		return ka_printf(v->arena, "%s do not fit in the cgroup's %s", ka_human(v->arena, bytes), ka_human(v->arena, limit));
	if (ka_int(v->facts, KA_SYSCTL_OVERCOMMIT_MEMORY) == 2)
		return "look at CommitLimit, since vm.overcommit_memory is 2";
	return "look at RAM, swap, the cgroup's memory limit, ulimit -v and vm.overcommit_memory, or make shared_buffers smaller";
}

void
ka_rule_not_cause(const KaView *v, KaRows *rows)
{
	KaAdvice   *row = NULL;

	if (v->failure == KA_FAIL_SEGMENT)
	{
		row = ka_row(rows, KA_INFO, "shared_buffers");
		ka_reason(rows, row, "Huge pages are not the cause: %s; %s.", small_because(v), small_cure(v));
	}
	for (size_t i = 0; i < KA_LENGTH(other_causes) && row == NULL; i++)
	{
		if (other_causes[i].failure == v->failure &&
			(other_causes[i].value == NULL || ka_is(v->facts, other_causes[i].fact, other_causes[i].value)))
		{
			row = ka_row(rows, KA_INFO, other_causes[i].subject);
			ka_reason(rows, row, "Huge pages are not the cause. %s", other_causes[i].reason);
		}
	}
	if (row == NULL)
		return;
	row->confidence = KA_DOCUMENTED;
	KA_SAW(rows, row, KA_ERR_CALL, KA_ERR_ERRNO, KA_ERR_SIGNAL, KA_ERR_BYTES, KA_PG_HUGE_PAGES,
		   KA_PG_VERSION_NUM);
	ka_observed(rows, row, "page_size_bytes", v->page_size);
	if (v->failure == KA_FAIL_IO_URING)
	{
		KA_SAW(rows, row, KA_PG_MEMLOCK_LIMIT, KA_PG_MAX_CONNECTIONS);
	}
}

/*
 * platform.managed
 */
void
ka_rule_platform_managed(const KaView *v, KaRows *rows)
{
	KaAdvice   *row;

	if (!v->managed)
		return;
	row = ka_row(rows, KA_INFO, "platform");
	ka_current(rows, row, "%s", ka_text(v->facts, KA_PG_MANAGED));
	ka_reason(rows, row, "This is a managed service (%s): the provider owns the kernel and sizes the pool of huge pages; only server parameters and the instance class can be chosen, and no kernel value is recommended.",
			  ka_text(v->facts, KA_PG_MANAGED));
	if (row)
		row->confidence = KA_DOCUMENTED;
	KA_SAW(rows, row, KA_PG_MANAGED, KA_PG_HUGE_PAGES, KA_PG_HUGE_PAGES_STATUS);
}

/*
 * platform.unsupported
 */
void
ka_rule_platform_unsupported(const KaView *v, KaRows *rows)
{
	const char *os = ka_text(v->facts, KA_KERNEL_OS);
	bool		foreign = os && strcmp(os, "linux") != 0;
	KaAdvice   *row;

	/* The server itself refuses this on systems without MAP_HUGETLB; Windows has large pages. */
	if (foreign && v->insists && strcmp(os, "windows") != 0)
	{
		row = ka_row(rows, v->running ? KA_WARNING : KA_CRITICAL, "huge_pages");
		ka_reason(rows, row, "huge_pages = on is refused on %s: only Linux and Windows have such pages.", os);
		ka_set_guc(rows, row, "huge_pages", "on", "try", KA_RESTART);
		ka_saw(rows, row, KA_KERNEL_OS);
	}
	if (foreign || ka_yes(v->facts, KA_KERNEL_SANDBOX))
	{
		row = ka_row(rows, KA_INFO, "platform");
		if (os)
			ka_current(rows, row, "%s", os);
		ka_reason(rows, row, foreign ?
				  "The rules on kernel memory know Linux only: on %s they say nothing." :
				  "The server runs in an enclave or on a user-space kernel%.0s: the memory settings of the host's kernel do not reach it, and nothing is said on them.",
				  os ? os : "");
		KA_SAW(rows, row, KA_KERNEL_OS, KA_KERNEL_SANDBOX);
		return;
	}
	if (v->managed || !ka_known(v->facts, KA_KERNEL_SYSCTL_WRITABLE) || ka_yes(v->facts, KA_KERNEL_SYSCTL_WRITABLE))
		return;
	row = ka_row(rows, KA_INFO, "platform");
	ka_reason(rows, row, "Kernel settings cannot be written here%s: what is said on them is for whoever runs the host.",
			  v->container ? " (vm.* is not name-spaced, in a container it belongs to the host)" : "");
	KA_SAW(rows, row, KA_KERNEL_SYSCTL_WRITABLE, KA_KERNEL_CONTAINER);
}
