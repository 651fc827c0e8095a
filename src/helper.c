/*
 * helper.c: asking kernel_advisord, the root helper, from a server process.
 *
 * One connection per question, non-blocking, waited for on the process's latch.
 * The descriptor is closed on every way out, also when a cancel is raised in
 * the middle of the wait; the helper takes that as the client's leaving and
 * ends a reservation where it is.
 *
 * No locks.  No state but the wait event's number.
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "kernel_advisord/client.h"
#include "compat.h"
#include "guc.h"
#include "helper.h"

/* connect() on a full queue cannot be waited for: asked again after this. */
#define RETRY_MS 10

/* status() and facts() must not wait for a helper that hangs. */
#define STATUS_TIMEOUT_MS 500

/* What each trouble means: for people, and for errcode(). */
static const struct
{
	const char *state;			/* in the view status */
	const char *reason;			/* with the socket's path */
	const char *hint;
	int			sqlstate;
	bool		outcome_unknown;
}			troubles[] = {
	[KA_HELPER_ANSWERED] = {"available", "kernel_advisord answers at \"%s\"", NULL, 0, false},
	[KA_HELPER_NOT_CONFIGURED] = {"absent", "kernel_advisor.helper_socket is empty%s",
		"Set kernel_advisor.helper_socket to the socket of kernel_advisord and reload the configuration.",
	ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, false},
	[KA_HELPER_ABSENT] = {"absent", "kernel_advisord does not listen at \"%s\"",
		"Start it with \"systemctl enable --now kernel_advisord.socket\", or by hand as root: kernel_advisord --socket PATH.",
	ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, false},
	[KA_HELPER_REFUSES] = {"refuses us", "the socket of kernel_advisord, \"%s\", may not be opened",
		"The operating system user of the server must be in the socket's group (kernel_advisord --group).",
	ERRCODE_INSUFFICIENT_PRIVILEGE, false},
	[KA_HELPER_BUSY] = {"not answering", "kernel_advisord at \"%s\" has too many clients",
	"Try again later.", ERRCODE_SYSTEM_ERROR, false},
	[KA_HELPER_SILENT] = {"not answering", "kernel_advisord at \"%s\" did not answer in time",
		"Another client's reservation may keep it busy: see its log, and kernel_advisor.helper_timeout.",
	ERRCODE_SYSTEM_ERROR, true},
	[KA_HELPER_GONE] = {"not answering", "kernel_advisord at \"%s\" closed the connection without an answer",
	"Its log says why; it may have been restarted.", ERRCODE_SYSTEM_ERROR, true},
	[KA_HELPER_LYING] = {"not answering", "what listens at \"%s\" does not speak the protocol of kernel_advisord",
		"Install the kernel_advisord of this version, and check kernel_advisor.helper_socket.",
	ERRCODE_SYSTEM_ERROR, true},
};

/* The statuses that are no success: what they are to a client, and what may be done. */
static const struct
{
	KaStatus	status;
	int			sqlstate;
	const char *hint;
}			statuses[] = {
	{KA_ST_DENIED, ERRCODE_INSUFFICIENT_PRIVILEGE,
	"Add the operating system user of the server to allowed_users in /etc/kernel_advisor/bounds.conf and restart kernel_advisord."},
	{KA_ST_BAD_OPERATION, ERRCODE_SYSTEM_ERROR, "Install the kernel_advisord of this version."},
	{KA_ST_BAD_FLAGS, ERRCODE_SYSTEM_ERROR, "Install the kernel_advisord of this version."},
	{KA_ST_NO_KNOB, ERRCODE_SYSTEM_ERROR, "Install the kernel_advisord of this version."},
	{KA_ST_NOT_POSSIBLE, ERRCODE_INVALID_PARAMETER_VALUE, NULL},
	{KA_ST_RATE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	"Wait, or raise changes_per_hour in /etc/kernel_advisor/bounds.conf and restart kernel_advisord."},
	{KA_ST_ABSENT, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, NULL},
	{KA_ST_NO_NODE, ERRCODE_INVALID_PARAMETER_VALUE, NULL},
	{KA_ST_READ_ONLY, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	"In a container the kernel's settings are usually read-only: run kernel_advisord on the host."},
	{KA_ST_REFUSED, ERRCODE_INVALID_PARAMETER_VALUE, NULL},
	{KA_ST_UNREADABLE, ERRCODE_SYSTEM_ERROR, NULL},
	{KA_ST_OFF, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	"/etc/kernel_advisor/bounds.conf of the machine switches it off."},
	{KA_ST_RANGE, ERRCODE_INVALID_PARAMETER_VALUE,
	"/etc/kernel_advisor/bounds.conf can only narrow the range: see kernel_advisord(8)."},
	{KA_ST_RAM_SHARE, ERRCODE_INVALID_PARAMETER_VALUE,
	"Ask for less, or raise pool_max_percent in /etc/kernel_advisor/bounds.conf and restart kernel_advisord."},
	{KA_ST_AVAILABLE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	"Ask for less, free memory, or reserve at boot."},
	{KA_ST_COMMIT_LIMIT, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	"With vm.overcommit_memory = 2 a pool lowers CommitLimit: raise vm.overcommit_ratio first."},
	{KA_ST_JOURNAL, ERRCODE_SYSTEM_ERROR, "See the log of kernel_advisord."},
	{KA_ST_JOURNAL_FULL, ERRCODE_SYSTEM_ERROR, "Restart kernel_advisord."},
	{KA_ST_NO_CHANGE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	"The journal of kernel_advisord was archived or removed; set the old value with apply()."},
	{KA_ST_NOT_IN_EFFECT, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, NULL},
	{KA_ST_SUPERSEDED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	"Set the value that you want with apply(), or as root: kernel_advisor rollback --force."},
	{KA_ST_INTERRUPTED, ERRCODE_SYSTEM_ERROR, "See the log of kernel_advisord."},
	{KA_ST_PERSIST, ERRCODE_SYSTEM_ERROR, "See the log of kernel_advisord; its unit must allow /etc/sysctl.d and /etc/tmpfiles.d."},
	{KA_ST_FOREIGN_FILE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	"Move that line to a file of its own."},
	{KA_ST_BOOT_PARAMETER, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, NULL},
	{KA_ST_NOT_PERSISTED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, NULL},
};

KaRequest
ka_helper_request(KaOperation operation, const KaKnob *knob, int node, int64 value)
{
	KaRequest	request = {
		.version = KA_PROTOCOL_VERSION,
		.operation = operation,
		.knob = knob ? knob->number : 0,
		.node = knob ? node : KA_ALL_NODES,
		.value = value
	};

	return request;
}

static bool
fail(KaHelperFailure *failure, KaHelperTrouble trouble, int error)
{
	const char *socket = trouble == KA_HELPER_NOT_CONFIGURED ? "" : ka_helper_socket;

	failure->trouble = trouble;
	failure->error = error;
	failure->reason = psprintf(troubles[trouble].reason, socket);
	/* What does not follow from the trouble: ENAMETOOLONG and the like. */
	if (error != 0 && error != ETIMEDOUT && error != EAGAIN && error != EPROTO && error != ECONNRESET)
		failure->reason = psprintf("%s: %s", failure->reason, strerror(error));
	failure->hint = troubles[trouble].hint;
	return false;
}

/* Waits for the socket, or for a while when there is none; false: the time is over. */
static bool
wait_for(int fd, int events, TimestampTz deadline)
{
	static uint32 wait_event = 0;
	long		left_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

	if (wait_event == 0)
		wait_event = ka_wait_event_compat("KernelAdvisorHelper");
	if (left_ms <= 0)
		return false;
	if (fd < 0)
		left_ms = Min(left_ms, RETRY_MS);
	if (WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH | (fd < 0 ? 0 : events),
						  fd < 0 ? PGINVALID_SOCKET : fd, left_ms, wait_event) & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

/* Which trouble an errno of connect() is. */
static KaHelperTrouble
connect_trouble(int error)
{
	switch (error)
	{
		case EACCES:
		case EPERM:
			return KA_HELPER_REFUSES;
		case EAGAIN:
			return KA_HELPER_BUSY;
		default:
			return KA_HELPER_ABSENT;
	}
}

static bool
exchange(int fd, const KaRequest *request, KaReply *reply, TimestampTz deadline, KaHelperFailure *failure)
{
	int			result;

	while ((result = ka_client_send(fd, request)) == -EAGAIN)
	{
		if (!wait_for(fd, WL_SOCKET_WRITEABLE, deadline))
			return fail(failure, KA_HELPER_BUSY, 0);
	}
	/* EPIPE: it answered already, and does not listen: that is how it denies. */
	if (result < 0 && result != -EPIPE)
		return fail(failure, KA_HELPER_GONE, -result);

	while ((result = ka_client_receive(fd, reply)) == -EAGAIN)
	{
		if (!wait_for(fd, WL_SOCKET_READABLE, deadline))
			return fail(failure, KA_HELPER_SILENT, ETIMEDOUT);
	}
	if (result < 0)
		return fail(failure, result == -EPROTO ? KA_HELPER_LYING : KA_HELPER_GONE, -result);

	/* An answer to something else is not an answer; a denial comes before the question. */
	if (reply->status != KA_ST_DENIED && request->operation != KA_OP_LIST && reply->operation != request->operation)
		return fail(failure, KA_HELPER_LYING, EPROTO);
	return true;
}

bool
ka_helper_call(const KaRequest *request, KaReply *reply, int timeout_ms, KaHelperFailure *failure)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	volatile int fd = -1;
	bool		answered = false;

	memset(failure, 0, sizeof(*failure));
	if (ka_helper_socket == NULL || ka_helper_socket[0] == '\0')
		return fail(failure, KA_HELPER_NOT_CONFIGURED, 0);

	ReserveExternalFD();
	PG_TRY();
	{
		while ((fd = ka_client_open(ka_helper_socket)) == -EAGAIN)
		{
			if (!wait_for(-1, 0, deadline))
				break;
		}
		if (fd < 0)
			answered = fail(failure, connect_trouble(-fd), -fd);
		else
			answered = exchange(fd, request, reply, deadline, failure);
	}
	PG_FINALLY();
	{
		if (fd >= 0)
			close(fd);
		ReleaseExternalFD();
	}
	PG_END_TRY();
	return answered;
}

bool
ka_helper_outcome_unknown(KaHelperTrouble trouble)
{
	return troubles[trouble].outcome_unknown;
}

int
ka_helper_failure_sqlstate(KaHelperTrouble trouble)
{
	return troubles[trouble].sqlstate;
}

int
ka_helper_status_sqlstate(uint32 status)
{
	for (size_t i = 0; i < lengthof(statuses); i++)
	{
		if (statuses[i].status == status)
			return statuses[i].sqlstate;
	}
	return ERRCODE_SYSTEM_ERROR;
}

const char *
ka_helper_status_hint(uint32 status)
{
	for (size_t i = 0; i < lengthof(statuses); i++)
	{
		if (statuses[i].status == status)
			return statuses[i].hint;
	}
	return NULL;
}

void
ka_helper_status(const char **state, const char **detail, const char **hint)
{
	const KaKnob *knob = ka_knob_find(KA_HK_NR_HUGEPAGES);
	KaRequest	request = ka_helper_request(KA_OP_GET, knob, KA_ALL_NODES, 0);
	KaHelperFailure failure;
	KaReply		reply;

	if (!ka_helper_call(&request, &reply, STATUS_TIMEOUT_MS, &failure))
	{
		*state = troubles[failure.trouble].state;
		*detail = failure.reason;
		*hint = failure.hint;
	}
	else if (reply.status == KA_ST_DENIED)
	{
		*state = "refuses us";
		*detail = psprintf("kernel_advisord at \"%s\": %s", ka_helper_socket, ka_status_text(reply.status));
		*hint = ka_helper_status_hint(reply.status);
	}
	else if (reply.status == KA_ST_OK)
	{
		*state = "available";
		*detail = psprintf("kernel_advisord answers at \"%s\", protocol %u; %s = " INT64_FORMAT ", may be set from " INT64_FORMAT " to " INT64_FORMAT,
						   ka_helper_socket, reply.version, knob->name, reply.granted, reply.min, reply.max);
		*hint = NULL;
	}
	else
	{
		/* It answers: whether this one knob exists is another question. */
		*state = "available";
		*detail = psprintf("kernel_advisord answers at \"%s\", protocol %u; %s: %s",
						   ka_helper_socket, reply.version, knob->name, ka_status_text(reply.status));
		*hint = ka_helper_status_hint(reply.status);
	}
}

bool
ka_helper_grantable(int64 size_bytes, bool default_size, int64 *pages)
{
	KaHelperFailure failure;
	KaRequest	request;
	KaReply		reply;

	for (size_t i = 0; i < ka_nknobs; i++)
	{
		const KaKnob *knob = &ka_knobs[i];

		if (!(knob->flags & KA_KF_POOL) ||
			(default_size ? knob->number != KA_HK_NR_HUGEPAGES : knob->page_bytes != size_bytes))
			continue;
		/* The free blocks are the same whatever number of pages is asked about. */
		request = ka_helper_request(KA_OP_ESTIMATE, knob, KA_ALL_NODES, 0);
		if (!ka_helper_call(&request, &reply, STATUS_TIMEOUT_MS, &failure) ||
			reply.status != KA_ST_OK || reply.pages_free < 0)
			return false;
		*pages = reply.pages_free + Max(reply.pages_compaction, 0);
		return true;
	}
	return false;
}
