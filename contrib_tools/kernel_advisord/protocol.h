/*
 * protocol.h: what travels between kernel_advisord and its clients.
 *
 * One request and one reply, each a struct of fixed length in one SOCK_SEQPACKET
 * message.  The client sends numbers only: neither a path nor any other text.
 * A message of another length or version closes the connection, so a field is
 * never added without a new version.  Both ends are on one machine: native byte
 * order, and the layout below has no padding (asserted in protocol.c).
 *
 * Knob numbers are those of knobs.def and never change their meaning.
 * The server library, the command line tool and the daemon share this file.
 */
#ifndef KA_PROTOCOL_H
#define KA_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KA_PROTOCOL_VERSION 1
#define KA_SOCKET_PATH "/run/kernel_advisord/socket"

/* Instead of a node: the whole machine. */
#define KA_ALL_NODES (-1)

/* A value that is not known, or does not exist.  No knob is ever negative. */
#define KA_NO_VALUE INT64_C(-1)

/* OPERATION(number, symbol, name) */
#define KA_OPERATIONS(OPERATION) \
	OPERATION(1, GET, "get") \
	OPERATION(2, SET, "set") \
	OPERATION(3, RESERVE, "reserve") \
	OPERATION(4, PERSIST, "persist") \
	OPERATION(5, UNPERSIST, "unpersist") \
	OPERATION(6, ROLLBACK, "rollback")	/* value: the change id */ \
	OPERATION(7, LIST, "list")			/* value: the first change with this id or a larger one */ \
	OPERATION(8, ESTIMATE, "estimate")	/* what a reservation could get */

typedef enum KaOperation
{
#define OPERATION(number, symbol, name) KA_OP_##symbol = number,
	KA_OPERATIONS(OPERATION)
#undef OPERATION
	KA_OP_END
} KaOperation;

/* Flags of a request. */
#define KA_FLAG_DRY_RUN		1u	/* every check, no write */
#define KA_FLAG_DROP_CACHES 2u	/* reserve: drop clean caches first */
#define KA_FLAG_UNDO		4u	/* reserve: on shortage give back what was granted */
#define KA_FLAG_FORCE		8u	/* rollback: though the value changed since; root only */
#define KA_FLAG_ALL			15u

/* STATUS(number, symbol, text): the texts are for people. */
#define KA_STATUSES(STATUS) \
	STATUS(0, OK, "done") \
	STATUS(1, PARTIAL, "the kernel granted another value than was asked") \
	STATUS(2, UNDONE, "the kernel could not grant all that was asked, so the old value was put back") \
	STATUS(3, UNCHANGED, "the value was there already") \
	STATUS(4, END, "no such change, nor a later one") \
	STATUS(10, DENIED, "this user is not among the allowed users of bounds.conf") \
	STATUS(11, BAD_OPERATION, "there is no such operation") \
	STATUS(12, BAD_FLAGS, "flags that this operation does not have, or time limit or node out of range") \
	STATUS(13, NO_KNOB, "there is no such knob") \
	STATUS(14, NOT_POSSIBLE, "this knob does not have this operation") \
	STATUS(15, RATE, "too many changes within the last hour: see changes_per_hour in bounds.conf") \
	STATUS(20, ABSENT, "the running kernel does not have this knob") \
	STATUS(21, NO_NODE, "the machine has no such memory node, or the knob has no value per node") \
	STATUS(22, READ_ONLY, "the kernel's file cannot be opened for writing here") \
	STATUS(23, REFUSED, "the kernel refused the value") \
	STATUS(24, UNREADABLE, "the kernel's file cannot be read") \
	STATUS(30, OFF, "switched off in bounds.conf") \
	STATUS(31, RANGE, "outside the bounds") \
	STATUS(32, RAM_SHARE, "the pools would take a larger share of memory than pool_max_percent of bounds.conf") \
	STATUS(33, AVAILABLE, "less than min_available of bounds.conf would be left to the machine") \
	STATUS(34, COMMIT_LIMIT, "CommitLimit would be too close to what is committed already") \
	STATUS(40, JOURNAL, "the journal could not be written, so nothing was changed") \
	STATUS(41, JOURNAL_FULL, "the journal is full: restart kernel_advisord to archive it") \
	STATUS(42, NO_CHANGE, "there is no change with this id") \
	STATUS(43, NOT_IN_EFFECT, "this change had no effect, or was rolled back already") \
	STATUS(44, SUPERSEDED, "the value is no longer the one that this change left") \
	STATUS(45, INTERRUPTED, "the helper was stopped, or the client left, before it was done") \
	STATUS(50, PERSIST, "the file for the next boot could not be written") \
	STATUS(51, FOREIGN_FILE, "the file for the next boot has a line that is not the helper's: move it elsewhere") \
	STATUS(52, BOOT_PARAMETER, "pages of this size are reserved by the kernel command line: hugepagesz= and hugepages=") \
	STATUS(53, NOT_PERSISTED, "the file for the next boot does not set this knob")

typedef enum KaStatus
{
#define STATUS(number, symbol, text) KA_ST_##symbol = number,
	KA_STATUSES(STATUS)
#undef STATUS
	KA_ST_LAST
} KaStatus;

/* What decides about a knob at the next boot. */
typedef enum KaBootWinner
{
	KA_BOOT_UNKNOWN = 0,		/* not looked at, or not known for this knob */
	KA_BOOT_NOTHING,			/* no file sets it */
	KA_BOOT_OURS,
	KA_BOOT_OTHER,				/* boot_file names the file */
	KA_BOOT_CMDLINE				/* the kernel command line */
} KaBootWinner;

typedef struct KaRequest
{
	uint32_t	version;		/* KA_PROTOCOL_VERSION */
	uint32_t	operation;		/* KaOperation */
	uint32_t	knob;			/* number in knobs.def; 0 for rollback and list */
	int32_t		node;			/* KA_ALL_NODES, or a memory node */
	uint32_t	flags;
	uint32_t	time_limit_ms;	/* set, reserve: 0 is the default */
	int64_t		value;
} KaRequest;

#define KA_DEFAULT_TIME_LIMIT_MS 30000
#define KA_MAX_TIME_LIMIT_MS 600000

/* State of a change, in the replies to list, set, reserve, persist ... */
#define KA_CHANGE_THIS_BOOT		1u	/* made since the machine started */
#define KA_CHANGE_ROLLED_BACK	2u
#define KA_CHANGE_INTERRUPTED	4u	/* resolved by a later start of the daemon */
#define KA_CHANGE_NOT_WRITTEN	8u	/* the kernel never got it */
#define KA_REPLY_BOOT_SAFER		16u	/* estimate: reserve at boot rather than now */
#define KA_REPLY_DRY_RUN		32u

#define KA_BOOT_FILE_LENGTH 128

typedef struct KaReply
{
	uint32_t	version;
	uint32_t	status;			/* KaStatus */
	int32_t		error;			/* errno behind the status, or 0 */
	uint32_t	operation;		/* of the request; list: of the change */
	uint32_t	knob;
	int32_t		node;
	uint32_t	state;			/* KA_CHANGE_*, KA_REPLY_* */
	uint32_t	uid;			/* who made the change */
	uint64_t	change;			/* id, 0: nothing was changed */
	uint64_t	refers;			/* the change that this one rolled back, 0: none */
	int64_t		at_us;			/* when, µs since 1970 */
	int64_t		old;
	int64_t		asked;
	int64_t		granted;		/* read back from the kernel; get: the value now */
	int64_t		reached;		/* reserve: the most that was granted, also when it was undone */
	int64_t		min;			/* bounds of the knob as they are now */
	int64_t		max;
	int64_t		free_costly_blocks; /* free blocks of order >= 4, afterwards */
	int64_t		pages_free;		/* estimate: pages of this size that are free blocks now */
	int64_t		pages_compaction;	/* and that compaction could make of smaller ones */
	int64_t		pages_reclaim;	/* and of clean caches, when they are dropped */
	int64_t		commit_limit_bytes; /* after the change, where overcommit_memory is 2 */
	int64_t		boot_value;		/* what the next boot will set */
	uint32_t	boot_winner;	/* KaBootWinner */
	uint32_t	rounds;			/* of a reservation */
	uint32_t	elapsed_ms;
	uint32_t	line;			/* of the foreign line, status FOREIGN_FILE */
	char		boot_file[KA_BOOT_FILE_LENGTH]; /* with a closing NUL */
} KaReply;

/* Checks length and version, and copies; false closes the connection. */
extern bool ka_request_decode(const void *message, size_t length, KaRequest *request);

/* The client's half: also that the text ends, and that the status is known. */
extern bool ka_reply_decode(const void *message, size_t length, KaReply *reply);

extern const char *ka_status_text(uint32_t status);
extern const char *ka_operation_name(uint32_t operation);	/* NULL: no such operation */

#endif							/* KA_PROTOCOL_H */
