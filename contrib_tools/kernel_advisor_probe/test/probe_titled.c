/*
 * probe_titled.c: a process with a title of its choice, as PostgreSQL's have.
 *
 *	probe_titled TITLE write FILE MB	writes MB in calls of 1 MiB, waiting for a line on stdin before
 *	probe_titled TITLE fault MB			touches MB of memory that asks for huge pages, and gives it back, likewise
 *	probe_titled TITLE children N		N child processes, one after the other, each of which frees pages
 *
 * The title is written over the arguments, where /proc/PID/cmdline and the
 * probe read it.
 */
#define _GNU_SOURCE 1

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1UL << 20)

static int
write_file(const char *path, size_t n)
{
	char	   *buffer = aligned_alloc(4096, MIB);
	int			fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	if (fd < 0 || buffer == NULL)
		return perror(path), 1;
	memset(buffer, 7, MIB);
	for (size_t i = 0; i < n; i++)
	{
		if (write(fd, buffer, MIB) != (ssize_t) MIB)
			return perror(path), 1;
	}
	return 0;
}

static int
fault(size_t n)
{
	char	   *map = mmap(NULL, n * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED || madvise(map, n * MIB, MADV_HUGEPAGE) < 0)
		return perror("mmap"), 1;
	for (size_t at = 0; at < n * MIB; at += 4096)
		map[at] = 1;
	/* More pages than a CPU's list takes: it drains some, and has a row for certain. */
	return munmap(map, n * MIB) < 0;
}

static int
children(size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		pid_t		pid = fork();

		if (pid < 0)
			return perror("fork"), 1;
		if (pid == 0)
		{
			char	   *map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

			/* Not left to its end: then it has no title any more. */
			_exit(map == MAP_FAILED || munmap(map, MIB) < 0);
		}
		waitpid(pid, NULL, 0);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	char		title[256];
	char		what[16];
	char		path[4096] = "";
	size_t		n;
	size_t		room;
	char		line[16];

	if (argc < 4)
		return fprintf(stderr, "usage: see the source\n"), 2;
	snprintf(title, sizeof(title), "%s", argv[1]);
	snprintf(what, sizeof(what), "%s", argv[2]);
	if (argc == 5)
		snprintf(path, sizeof(path), "%s", argv[3]);
	n = strtoul(argv[argc - 1], NULL, 10);
	room = (size_t) (argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
	if (strlen(title) >= room)
		return fprintf(stderr, "no room for the title\n"), 2;
	memset(argv[0], 0, room);
	memcpy(argv[0], title, strlen(title));

	printf("%d\n", (int) getpid());
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) == NULL)
		return 0;
	if ((strcmp(what, "write") == 0 ? write_file(path, n) : strcmp(what, "fault") == 0 ? fault(n) : children(n)) != 0)
		return 1;
	puts("done");
	fflush(stdout);
	/* Stays, so that its row does. */
	return fgets(line, sizeof(line), stdin) == NULL ? 0 : 0;
}
