/*
 * advisord_passfd.c: a request that carries descriptors.
 *
 *	advisord_passfd SOCKET
 *
 * Sends a good request with its own standard input passed along (SCM_RIGHTS),
 * waits for the answer and prints the number of its status; then waits for the
 * end of its input, so that the test can look at the daemon meanwhile.
 */
#define _GNU_SOURCE 1

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "knobs.h"

int
main(int argc, char **argv)
{
	KaRequest	request = {.version = KA_PROTOCOL_VERSION, .operation = KA_OP_GET, .knob = KA_HK_SWAPPINESS, .node = KA_ALL_NODES};
	struct iovec content = {&request, sizeof(request)};
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(sizeof(int))];
	}			control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct msghdr message = {
		.msg_iov = &content, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space),
	};
	const int	passed = STDIN_FILENO;
	KaReply		reply;
	char		byte;
	int			fd = argc == 2 ? ka_client_open(argv[1]) : -1;
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	memcpy(CMSG_DATA(&control.header), &passed, sizeof(passed));
	if (fd < 0 || sendmsg(fd, &message, MSG_NOSIGNAL) != (ssize_t) sizeof(request) ||
		poll(&pollfd, 1, 10000) != 1 || ka_client_receive(fd, &reply) < 0)
		return 1;
	printf("%u\n", (unsigned) reply.status);
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1;
}
