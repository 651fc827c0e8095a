/*
 * fuzz_request.c: any requests, one after another, to the whole of the daemon
 * behind its socket: decoder, operations, journal, files for the next boot; on
 * ordinary files in memory.  After each request the kernel's
 * files must hold values within the table, whatever was asked.
 */
#define _GNU_SOURCE 1

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[] = "/dev/shm/fuzz_request.XXXXXX";
static KaDaemon daemon_state;
static int	state_fd;

static void
put_file(const char *path, const char *text)
{
	char		full[512];
	int			fd;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/'))
	{
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t) strlen(text))
		abort();
	close(fd);
}

static void
remove_root(void)
{
	char		command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command) != 0)
		perror("rm");
}

static void
make_machine(void)
{
	if (mkdtemp(root) == NULL)
		abort();
	atexit(remove_root);
	for (size_t i = 0; i < ka_nknobs; i++)
	{
		char		path[128];

		put_file(ka_knobs[i].path, ka_knobs[i].words ? "[never]\n" : "1\n");
		if (ka_knobs[i].flags & KA_KF_NODES)
		{
			snprintf(path, sizeof(path), ka_knobs[i].node_path, 0);
			put_file(path, "1\n");
		}
	}
	put_file("/proc/meminfo",
			 "MemTotal: 16777216 kB\nMemFree: 12000000 kB\nMemAvailable: 14000000 kB\nSwapTotal: 0 kB\n"
			 "CommitLimit: 8388608 kB\nCommitted_AS: 1000000 kB\nHugepagesize: 2048 kB\n");
	put_file("/proc/buddyinfo", "Node 0, zone Normal 1000 500 250 125 60 30 15 8 4 200 500\n");
	put_file("/proc/pagetypeinfo", "Node 0, zone Normal, type Movable 1000 500 250 125 60 30 15 8 4 200 500\n");
	put_file("/proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n");
	put_file("/etc/sysctl.d/50-other.conf", "vm.swappiness = 5\n");
	put_file("/etc/tmpfiles.d/other.conf", "");
	put_file("/var/lib/kernel_advisord/.keep", "");
}

static void
start(void)
{
	char		path[128];

	make_machine();
	daemon_state.root = root;
	if (!ka_bounds_default(&daemon_state.bounds) || ka_kernel_open(&daemon_state.kernel, root) < 0)
		abort();
	daemon_state.bounds.changes_per_hour = 1000000;
	ka_persist_open(&daemon_state.persist, root);
	snprintf(path, sizeof(path), "%s/var/lib/kernel_advisord", root);
	state_fd = open(path, O_RDONLY | O_DIRECTORY);
	if (state_fd < 0)
		abort();
}

static void
check_machine(void)
{
	for (size_t i = 0; i < daemon_state.kernel.nfiles; i++)
	{
		const KaKnobFile *file = &daemon_state.kernel.files[i];
		int64_t		value;

		if (file->knob->flags & (KA_KF_ACTION | KA_KF_INTERNAL))
			continue;
		if (ka_kernel_read(file, &value) < 0)
			abort();
		/* 1 is where they began, and where a rollback leads. */
		if (value != 1 && value != 0 && (value < file->knob->min || value > file->knob->max))
			abort();
		if (file->knob->page_bytes > 0 && value > INT64_C(16777216) * 1024 / file->knob->page_bytes)
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KaRequest	request;
	KaReply		reply;
	KaReply		decoded;

	if (daemon_state.root == NULL)
		start();
	/* A message of any length must be refused, or be a request. */
	ka_request_decode(data, size, &request);
	unlinkat(state_fd, KA_JOURNAL_FILE, 0);
	if (ka_journal_open(&daemon_state.journal, state_fd) < 0)
		abort();
	for (int n = 0; size >= 8 && n < 8; n++)
	{
		KaPeer		peer = {.fd = -1, .uid = data[0] % 3 == 0 ? 0 : 100000};
		uint32_t	bits;

		memset(&request, 0, sizeof(request));
		request.version = KA_PROTOCOL_VERSION;
		request.operation = data[1] % 10;
		request.knob = data[2] < 230 ? ka_knobs[data[2] % ka_nknobs].number : data[2];
		request.node = data[3] % 4 - 2;
		request.flags = data[4] % 32;
		request.time_limit_ms = data[0] % 5;
		memcpy(&bits, data + 4, sizeof(bits));
		request.value = data[0] & 64 ? data[5] % 12 : (int64_t) ((uint64_t) bits << (data[0] % 40));
		if (data[0] & 128)
			request.value = (int64_t) (0 - (uint64_t) request.value);
		data += 8;
		size -= 8;

		daemon_state.bounds.users[0] = 100000;
		daemon_state.bounds.nusers = 1;
		ka_handle(&daemon_state, &peer, &request, &reply);
		if (!ka_reply_decode(&reply, sizeof(reply), &decoded))
			abort();
		check_machine();
	}
	ka_journal_close(&daemon_state.journal);
	return 0;
}
