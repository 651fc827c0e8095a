/*
 * apply.h: setting what is advised, and taking it back.
 *
 * One subject is a knob of the kernel (through the helper) or a setting of the
 * server (through ALTER SYSTEM's own code).  Several are put in the safe order
 * of the table in apply_sql.c: huge_pages = on is never written before the server
 * itself has seen that the pool is large enough.
 */
#ifndef KA_APPLY_H
#define KA_APPLY_H

#include "changes.h"

typedef struct KaApplyOptions
{
	const char *who;			/* for the log; NULL: the session's role */
	bool		persist;		/* also for the next boot (kernel's knobs) */
	bool		dry_run;		/* say what would happen */
} KaApplyOptions;

/*
 * Sets one subject to a value.  The record tells what came of it, also when the
 * helper is absent, hung or lying: state, detail, hint and sqlstate are set and
 * nothing is raised for that.  Raised are: a cancel or termination while it
 * waits (the record is written first), a value that is none (22023), and a log
 * or a configuration file that cannot be written.  Needs preloading, except for a
 * dry run.
 *
 * Kernel's knobs: usable in a background worker without a database.
 */
extern void ka_apply_one(const char *subject, const char *value, const KaApplyOptions *options,
						 KaChangeRecord *record);

/*
 * Takes one change back.  "record" is that of the rollback.  As above: an
 * unknown id, a change without effect, one that was rolled back already or
 * superseded give state refused, sqlstate, detail and hint.
 */
extern void ka_rollback_one(int64 change_id, const KaApplyOptions *options, KaChangeRecord *record);

/* Rows of the type kernel_advisor.change (changes_sql.c). */
struct ReturnSetInfo;

/* As recorded. */
extern void ka_change_put(struct ReturnSetInfo *result, const KaChangeRecord *record);

/* Whether the value asked for is in effect (or will be, after a restart). */
extern bool ka_apply_granted(const KaChangeRecord *record);

/* Raises the record's failure as an error: sqlstate, detail and hint. */
extern void ka_apply_raise(const KaChangeRecord *record);

/* Whether anything here can set a subject, and whether it is the kernel's. */
typedef enum KaSubjectKind
{
	KA_SUBJECT_UNKNOWN,
	KA_SUBJECT_KERNEL,
	KA_SUBJECT_SETTING
} KaSubjectKind;

extern KaSubjectKind ka_subject_kind(const char *subject);

/* Raises 22023 with a hint when nothing here can set it. */
extern void ka_subject_require(const char *subject);

/*
 * The two halves of ka_apply_one and ka_rollback_one, each for one kind of
 * subject (apply_kernel.c, alter_system.c).
 */
extern void ka_kernel_apply(const char *subject, const char *value, const KaApplyOptions *options,
							KaChangeRecord *record);
extern void ka_kernel_rollback(KaChangeRecord *change, const KaApplyOptions *options,
							   KaChangeRecord *record);
extern void ka_setting_apply(const char *subject, const char *value, const KaApplyOptions *options,
							 KaChangeRecord *record);
extern void ka_setting_rollback(const KaChangeRecord *change, const KaApplyOptions *options,
								KaChangeRecord *record);

/* The setting as the server has it now; palloc'd, NULL: no such setting. */
extern char *ka_setting_now(const char *name);

/* Two values of a setting that mean the same: '4096MB' and '4GB'. */
extern bool ka_setting_same(const char *name, const char *a, const char *b);

#endif							/* KA_APPLY_H */
