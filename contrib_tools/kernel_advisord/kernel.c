/*
 * kernel.c: opening, reading and writing the kernel's files.
 *
 * sysctl writes test the effective uid at each write, not the capabilities of
 * the opener, so a descriptor opened before the privileges were dropped gives
 * no more than opening it afterwards would; holding them open means that no
 * path is resolved later and Landlock need not know of /proc and /sys.
 *
 * Signals: SIGALRM and SIGTERM are blocked except inside ka_kernel_write and
 * the wait of the main loop; both handlers do nothing but set a flag.
 */
#define _GNU_SOURCE 1

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"
#include "protocol.h"

/* Of eight nodes pagetypeinfo has about 20 kB; zoneinfo has a kilobyte for each CPU and zone.  More is cut at a line. */
#define TEXT_SIZE 65536
#define ZONEINFO_SIZE (4 * 1024 * 1024)

/* Looked at together, and the daemon has one thread.  What is not used costs no memory. */
static char meminfo_text[TEXT_SIZE];
static char buddyinfo_text[TEXT_SIZE];
static char pagetypeinfo_text[TEXT_SIZE];
static char vmstat_text[TEXT_SIZE];
static char zoneinfo_text[ZONEINFO_SIZE];

int64_t
ka_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int
open_below(const char *root, const char *path, int flags)
{
	char		full[PATH_MAX];
	int			n = snprintf(full, sizeof(full), "%s%s", root, path);
	int			fd;

	if (n < 0 || (size_t) n >= sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static void
open_knob(KaKnobFile *file, const char *root, const KaKnob *knob, int node, const char *path)
{
	bool		action = (knob->flags & KA_KF_ACTION) != 0;

	memset(file, 0, sizeof(*file));
	file->knob = knob;
	file->node = node;
	file->fd = open_below(root, path, action ? O_WRONLY : O_RDWR);
	if (file->fd < 0)
	{
		file->write_error = -file->fd;
		if (!action && file->write_error != ENOENT)
			file->fd = open_below(root, path, O_RDONLY);
	}
	if (file->fd < 0)
	{
		file->open_error = -file->fd;
		file->fd = -1;
	}

	file->surplus_fd = -1;
	if ((knob->flags & KA_KF_POOL) && (knob->flags & KA_KF_SYSFS))
	{
		char		surplus[PATH_MAX];

		/* ".../nr_hugepages" has its surplus beside it. */
		snprintf(surplus, sizeof(surplus), "%.*s/surplus_hugepages", (int) (strrchr(path, '/') - path), path);
		file->surplus_fd = open_below(root, surplus, O_RDONLY);
	}
}

/* The numbers of the memory nodes, ascending; a machine without NUMA has none. */
static int
find_nodes(const char *root, int nodes[KA_MAX_NODES])
{
	int			found = 0;

	for (int node = 0; node < 1024 && found < KA_MAX_NODES; node++)
	{
		char		path[PATH_MAX];
		int			n = snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%d", root, node);

		if (n > 0 && (size_t) n < sizeof(path) && access(path, F_OK) == 0)
			nodes[found++] = node;
	}
	return found;
}

static void
read_boot_id(KaKernel *kernel, const char *root)
{
	char		text[64];
	int			fd = open_below(root, "/proc/sys/kernel/random/boot_id", O_RDONLY);
	ssize_t		n;
	size_t		digits = 0;

	memset(kernel->boot_id, 0, sizeof(kernel->boot_id));
	if (fd < 0)
		return;
	n = pread(fd, text, sizeof(text), 0);
	close(fd);
	for (ssize_t i = 0; i < n && digits < 2 * sizeof(kernel->boot_id); i++)
	{
		const char *hex = "0123456789abcdef";
		const char *at = text[i] ? strchr(hex, text[i]) : NULL;

		if (at == NULL)
			continue;
		kernel->boot_id[digits / 2] |= (unsigned char) ((at - hex) << (digits % 2 ? 0 : 4));
		digits++;
	}
}

int
ka_kernel_open(KaKernel *kernel, const char *root)
{
	int			nodes[KA_MAX_NODES];
	int			nnodes = find_nodes(root, nodes);
	size_t		capacity = ka_nknobs;

	memset(kernel, 0, sizeof(*kernel));
	kernel->page_bytes = sysconf(_SC_PAGESIZE);
	read_boot_id(kernel, root);
	kernel->meminfo_fd = open_below(root, "/proc/meminfo", O_RDONLY);
	kernel->buddyinfo_fd = open_below(root, "/proc/buddyinfo", O_RDONLY);
	kernel->pagetypeinfo_fd = open_below(root, "/proc/pagetypeinfo", O_RDONLY);
	kernel->zoneinfo_fd = open_below(root, "/proc/zoneinfo", O_RDONLY);
	kernel->vmstat_fd = open_below(root, "/proc/vmstat", O_RDONLY);
	if (kernel->meminfo_fd < 0)
		return kernel->meminfo_fd;

	for (size_t i = 0; i < ka_nknobs; i++)
	{
		if (ka_knobs[i].flags & KA_KF_NODES)
			capacity += (size_t) nnodes;
	}
	kernel->files = calloc(capacity, sizeof(kernel->files[0]));
	if (kernel->files == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < ka_nknobs; i++)
	{
		const KaKnob *knob = &ka_knobs[i];

		open_knob(&kernel->files[kernel->nfiles++], root, knob, KA_ALL_NODES, knob->path);
		for (int n = 0; (knob->flags & KA_KF_NODES) && n < nnodes; n++)
		{
			char		path[128];

			/* The format is a constant of the table with one %d. */
			snprintf(path, sizeof(path), knob->node_path, nodes[n]);
			open_knob(&kernel->files[kernel->nfiles++], root, knob, nodes[n], path);
		}
	}
	return 0;
}

void
ka_kernel_close(KaKernel *kernel)
{
	const int	texts[] = {kernel->meminfo_fd, kernel->buddyinfo_fd, kernel->pagetypeinfo_fd,
	kernel->zoneinfo_fd, kernel->vmstat_fd};

	for (size_t i = 0; i < kernel->nfiles; i++)
	{
		if (kernel->files[i].fd >= 0)
			close(kernel->files[i].fd);
		if (kernel->files[i].surplus_fd >= 0)
			close(kernel->files[i].surplus_fd);
	}
	free(kernel->files);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		if (texts[i] >= 0)
			close(texts[i]);
	}
	memset(kernel, 0, sizeof(*kernel));
}

const KaKnobFile *
ka_kernel_file(const KaKernel *kernel, uint32_t number, int node)
{
	for (size_t i = 0; i < kernel->nfiles; i++)
	{
		if (kernel->files[i].knob->number == number && kernel->files[i].node == node)
			return &kernel->files[i];
	}
	return NULL;
}

bool
ka_kernel_has_node(const KaKernel *kernel, int node)
{
	if (node == KA_ALL_NODES)
		return true;
	for (size_t i = 0; i < kernel->nfiles; i++)
	{
		if (kernel->files[i].node == node)
			return true;
	}
	return false;
}

static int
read_value(int fd, const KaKnob *knob, int64_t *value)
{
	char		text[256];
	ssize_t		n = pread(fd, text, sizeof(text), 0);

	return n < 0 ? -errno : ka_knob_parse(knob, text, (size_t) n, value);
}

int
ka_kernel_read(const KaKnobFile *file, int64_t *value)
{
	int64_t		surplus;
	int			result;

	if (file->fd < 0)
		return -file->open_error;
	result = read_value(file->fd, file->knob, value);
	if (result == 0 && file->surplus_fd >= 0 && read_value(file->surplus_fd, file->knob, &surplus) == 0)
		*value = surplus < *value ? *value - surplus : 0;
	return result;
}

int
ka_kernel_write(const KaKnobFile *file, int64_t value, int time_limit_ms)
{
	struct itimerval timer = {
		.it_value = {.tv_sec = time_limit_ms / 1000, .tv_usec = time_limit_ms % 1000 * 1000},
	};
	const struct itimerval off = {.it_value = {0, 0}};
	sigset_t	interrupts;
	sigset_t	saved;
	char		text[64];
	int			length = ka_knob_format(file->knob, value, text, sizeof(text));
	ssize_t		n;
	int			error;

	if (length < 0)
		return length;
	if (file->write_error)
		return -file->write_error;

	sigemptyset(&interrupts);
	sigaddset(&interrupts, SIGALRM);
	sigaddset(&interrupts, SIGTERM);
	sigaddset(&interrupts, SIGINT);
	sigprocmask(SIG_UNBLOCK, &interrupts, &saved);
	if (time_limit_ms > 0)
		setitimer(ITIMER_REAL, &timer, NULL);
	n = pwrite(file->fd, text, (size_t) length, 0);
	error = n < 0 ? errno : 0;
	if (time_limit_ms > 0)
		setitimer(ITIMER_REAL, &off, NULL);
	sigprocmask(SIG_SETMASK, &saved, NULL);

	if (error)
		return -error;
	return n == length ? 0 : -EIO;
}

/* The whole file, or as many whole lines as fit. */
static ssize_t
read_text(int fd, char *text, size_t size)
{
	size_t		length = 0;

	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	while (length < size)
	{
		ssize_t		n = read(fd, text + length, size - length);

		if (n < 0)
			return -1;
		if (n == 0)
			return (ssize_t) length;
		length += (size_t) n;
	}
	while (length > 0 && text[length - 1] != '\n')
		length--;
	return (ssize_t) length;
}

int
ka_kernel_memory(const KaKernel *kernel, KaMemory *memory)
{
	ssize_t		length = read_text(kernel->meminfo_fd, meminfo_text, TEXT_SIZE);

	if (length < 0)
		return -EIO;
	return ka_parse_meminfo_text(meminfo_text, (size_t) length, memory) ? 0 : -EBADMSG;
}

static KaMemoryText
memory_text(int fd, char *text, size_t size)
{
	ssize_t		length = read_text(fd, text, size);

	return length > 0 ? (KaMemoryText) {.text = text, .length = (size_t) length} : (KaMemoryText) {.text = NULL};
}

bool
ka_kernel_estimate(const KaKernel *kernel, int node, int64_t page_bytes, KaEstimate *estimate)
{
	const KaMemoryTexts texts = {
		.buddyinfo = memory_text(kernel->buddyinfo_fd, buddyinfo_text, sizeof(buddyinfo_text)),
		.pagetypeinfo = memory_text(kernel->pagetypeinfo_fd, pagetypeinfo_text, sizeof(pagetypeinfo_text)),
		.zoneinfo = memory_text(kernel->zoneinfo_fd, zoneinfo_text, sizeof(zoneinfo_text)),
		.vmstat = memory_text(kernel->vmstat_fd, vmstat_text, sizeof(vmstat_text)),
	};
	int			order = 0;

	while (order < 30 && kernel->page_bytes << order < page_bytes)
		order++;
	return texts.buddyinfo.text != NULL && ka_estimate_pages(&texts, node, order, estimate);
}

int64_t
ka_kernel_pool_page_bytes(const KaKernel *kernel, const KaKnob *knob)
{
	KaMemory	memory;

	if (!(knob->flags & (KA_KF_POOL | KA_KF_SURPLUS)))
		return 0;
	if (knob->page_bytes > 0)
		return knob->page_bytes;
	return ka_kernel_memory(kernel, &memory) == 0 ? memory.hugepage_bytes : 0;
}
