/*
 * changes.h: the log of what was changed, on a primary and a standby alike.
 *
 * A file of fixed records beside the history, oldest first, at most
 * KA_MAX_CHANGES of them.  It is replaced as a whole (written beside, synced,
 * renamed), so a reader needs no lock.  Writers hold one LWLock from reading to
 * renaming, as ALTER SYSTEM does with AutoFileLock: changes are rare, and each
 * must be on disk before the kernel is asked.
 *
 * The life of a record: ka_changes_begin writes it as KA_STATE_IN_PROGRESS
 * before anything is asked for; ka_changes_finish replaces it by what came of
 * it.  A record that was never finished, because its backend died, reads as
 * KA_STATE_UNKNOWN.  The log is not transactional: what was done to the kernel
 * is not undone by ROLLBACK, so its record is not either.
 *
 * A dry run, and what was skipped, has no record and no id.
 */
#ifndef KA_CHANGES_H
#define KA_CHANGES_H

#include "datatype/timestamp.h"

#include "effect.h"

/* pg_stat_tmp: base backups leave its contents out, so a standby does not believe it made these changes. */
#define KA_CHANGES_FILE "pg_stat_tmp/pg_kernel_advisor.changes"

#define KA_MAX_CHANGES 1000

/* STATE(number, symbol, name): numbers are in the file. */
#define KA_CHANGE_STATES(STATE) \
	STATE(1, IN_PROGRESS, "in progress") \
	STATE(2, UNKNOWN, "unknown outcome")	/* asked, and nobody knows what came of it: see verified */ \
	STATE(3, DRY_RUN, "dry run")			/* what would happen; nothing was changed */ \
	STATE(4, APPLIED, "applied") \
	STATE(5, PARTIAL, "partial")			/* another value than asked for is in effect */ \
	STATE(6, UNCHANGED, "unchanged")		/* the value was there already */ \
	STATE(7, REFUSED, "refused")			/* by the helper, its bounds, the kernel or the server */ \
	STATE(8, FAILED, "failed")				/* the helper is absent, hung or lying, or a file was not written */ \
	STATE(9, SKIPPED, "skipped")			/* because something before it was not granted, or nothing here sets it */ \
	STATE(10, PENDING_RESTART, "pending restart")	/* written, in effect after the next start */ \
	STATE(11, ROLLED_BACK, "rolled back")	/* by a later change */ \
	STATE(12, SUPERSEDED, "superseded")		/* the value is another one by now */

typedef enum KaChangeState
{
#define STATE(number, symbol, name) KA_STATE_##symbol = number,
	KA_CHANGE_STATES(STATE)
#undef STATE
} KaChangeState;

#define KA_CHANGE_ACTIONS(ACTION) \
	ACTION(1, SET, "set")					/* a knob of the kernel */ \
	ACTION(2, RESERVE, "reserve")			/* a pool was to grow */ \
	ACTION(3, ALTER_SYSTEM, "alter system") /* a setting of the server */ \
	ACTION(4, ROLLBACK, "rollback")

typedef enum KaChangeAction
{
#define ACTION(number, symbol, name) KA_ACTION_##symbol = number,
	KA_CHANGE_ACTIONS(ACTION)
#undef ACTION
} KaChangeAction;

/* What became of a change that auto_apply made (auto.c).  Numbers are in the file. */
typedef enum KaWatch
{
	KA_WATCH_OPEN = 0,			/* being watched, or not made by auto_apply */
	KA_WATCH_KEPT = 1,
	KA_WATCH_WORSE = 2,			/* rolled back; not tried again by itself */
	KA_WATCH_NO_VERDICT = 3,	/* rolled back; may be tried again later */
	KA_WATCH_LEFT = 4			/* somebody else changed the value meanwhile */
} KaWatch;

#define KA_AUTO_APPLY "auto_apply"

#define KA_CHANGE_VALUE 64		/* longest value + 1 */
#define KA_CHANGE_SUBJECT 96
#define KA_CHANGE_FILE_NAME 128
#define KA_CHANGE_DETAIL 512
#define KA_CHANGE_HINT 256

/* One change.  In the file as it is in memory: an empty text is NULL. */
typedef struct KaChangeRecord
{
	int64		change_id;		/* 0: not in the log */
	TimestampTz at;				/* when it was begun */
	TimestampTz ended_at;		/* when it was finished; 0: not yet */
	int64		refers;			/* rollback: the change that it undid */
	int64		rolled_back_by; /* the change that undid this one; 0: none */
	TimestampTz incarnation;	/* of the shared memory, with pid: who works on it */
	int32		pid;
	int32		action;			/* KaChangeAction */
	int32		state;			/* KaChangeState */
	uint32		status;			/* KaStatus of the helper, for the kernel's knobs */
	int32		sqlstate;		/* of a failure, as errcode() takes it; 0: none */
	int32		boot_winner;	/* KaBootWinner */
	int32		knob;			/* number of the helper; 0: a setting of the server */
	int32		node;
	uint64		helper_change;	/* id of the helper's change, 0: none */
	uint64		helper_persist; /* id of its change of the file for the next boot */
	int64		helper_at_us;	/* their times, to tell another journal */
	int64		helper_persist_at_us;
	int64		boot_value;		/* what the next boot sets; -1: not known */
	int32		watch;			/* KaWatch, of a change by auto_apply */
	bool		prior_set;		/* postgresql.auto.conf had the setting before */
	bool		automatic;		/* by auto_apply, and not by a role of that name */
	bool		persist_open;	/* keeping it for the next boot was asked for, and not answered */
	char		unused[1];		/* 0 */
	char		prior[KA_CHANGE_VALUE]; /* its value in there */
	char		who[64];		/* role, or KA_AUTO_APPLY */
	char		release[64];	/* of the kernel, of a change by auto_apply */
	char		subject[KA_CHANGE_SUBJECT];
	char		old[KA_CHANGE_VALUE];
	char		asked[KA_CHANGE_VALUE];
	char		granted[KA_CHANGE_VALUE];	/* as the helper or the server said */
	char		verified[KA_CHANGE_VALUE];	/* as it was read then, by the server itself */
	char		persisted_in[KA_CHANGE_FILE_NAME];
	char		boot_file[KA_CHANGE_FILE_NAME]; /* that decides at boot */
	char		detail[KA_CHANGE_DETAIL];
	char		hint[KA_CHANGE_HINT];
	KaEffect	before;
} KaChangeRecord;

extern const char *ka_change_state_name(int32 state);
extern const char *ka_change_action_name(int32 action);

/* A record in which nothing is known yet; who: NULL for the session's role. */
extern void ka_change_init(KaChangeRecord *record, KaChangeAction action, const char *subject, const char *who);

/* Sets a text field, cut at a character when it is too long. */
extern void ka_change_text(char *field, size_t size, const char *text);
#define KA_CHANGE_SET(record, field, text) \
	ka_change_text((record)->field, sizeof((record)->field), (text))
extern void ka_change_detail(KaChangeRecord *record, const char *format,...) KA_PRINTF(2, 3);

/* State refused, with what an error about it would say; sqlstate as errcode() takes it, hint may be NULL. */
extern void ka_change_refuse(KaChangeRecord *record, int sqlstate, const char *detail, const char *hint);

/*
 * Gives the record an id and writes it, with the measure of the time before.
 * Raises an error when it cannot be written (nothing was changed then), and
 * without preloading (55000).
 */
extern void ka_changes_begin(KaChangeRecord *record);

/*
 * Writes what came of it.  Raises nothing: when it cannot be written that is
 * logged, and the record reads as unknown outcome.  Usable in a PG_CATCH.
 */
extern void ka_changes_finish(KaChangeRecord *record);

/* All records, oldest first, palloc'd; 0 when there is no file, or none that is ours. */
extern int	ka_changes_read(KaChangeRecord **records);

/* One of them; false: no such change. */
extern bool ka_changes_find(int64 change_id, KaChangeRecord *record);

/* The state as it is now: rolled back, superseded, in effect after a restart, unfinished. */
extern KaChangeState ka_change_state_now(const KaChangeRecord *record);

/* The value of the subject now, read by the server itself; palloc'd, NULL: not known. */
extern const char *ka_change_verified_now(const KaChangeRecord *record);

/*
 * "after", of each: from the change, or from the restart that brought it into
 * effect, to the next change.
 */
extern void ka_changes_after(const KaChangeRecord *records, int n, KaEffect *after);

/*
 * A text of the server for a row of the database: a role's name, or a message,
 * may be in another encoding.
 */
extern Datum ka_server_text(const char *text);

#endif							/* KA_CHANGES_H */
