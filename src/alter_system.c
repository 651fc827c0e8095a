/*
 * alter_system.c: settings of the server, through the server's own ALTER SYSTEM.
 *
 * Only the settings that the rules recommend.  The value is validated by the
 * server, the right to change it is that to ALTER SYSTEM (superuser or GRANT),
 * and the file is written by AlterSystemSetConfigFile, which checks both again.  What postgresql.auto.conf
 * said before goes into the change's record, so that a rollback restores the
 * value or its absence.
 *
 * huge_pages = on is written only when the server has seen a pool that is large
 * enough: with anything less the next start fails.
 *
 * Locks: AutoFileLock within AlterSystemSetConfigFile; none else.
 */
#include "postgres.h"

#include <signal.h>

#include "catalog/pg_parameter_acl.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "apply.h"
#include "compat.h"
#include "kernel_change.h"
#include "machine.h"

#define AUTO_FILE PG_AUTOCONF_FILENAME

typedef enum SettingType
{
	SETTING_WORD,				/* enum, or text: as it is written, without regard to case */
	SETTING_BOOL,
	SETTING_INT,
	SETTING_REAL
} SettingType;

/* Every setting that a rule recommends (ka_set_guc in src/core). */
typedef struct Setting
{
	const char *name;
	SettingType type;
	bool		restart;		/* else a reload brings it into effect */
} Setting;

static const Setting settings[] = {
	{"huge_pages", SETTING_WORD, true},
	{"huge_page_size", SETTING_INT, true},
	{"shared_memory_type", SETTING_WORD, true},
	{"shared_buffers", SETTING_INT, true},
	{"checkpoint_completion_target", SETTING_REAL, false},
	{"checkpoint_flush_after", SETTING_INT, false},
	{"log_checkpoints", SETTING_BOOL, false},
	{"max_wal_size", SETTING_INT, false},
};

static const Setting *
find_setting(const char *name)
{
	for (size_t i = 0; i < lengthof(settings); i++)
	{
		if (strcmp(settings[i].name, name) == 0)
			return &settings[i];
	}
	return NULL;
}

KaSubjectKind
ka_subject_kind(const char *subject)
{
	const KaKnob *knob;
	int			node;

	if (find_setting(subject))
		return KA_SUBJECT_SETTING;
	knob = ka_knob_by_subject(subject, &node);
	return knob ? KA_SUBJECT_KERNEL : KA_SUBJECT_UNKNOWN;
}

char *
ka_setting_now(const char *name)
{
	return find_setting(name) ? GetConfigOptionByName(name, NULL, true) : NULL;
}

bool
ka_setting_same(const char *name, const char *a, const char *b)
{
	const Setting *setting = find_setting(name);
	int			flags = setting ? GetConfigOptionFlags(name, true) : 0;

	switch (setting ? setting->type : SETTING_WORD)
	{
		case SETTING_BOOL:
			{
				bool		x,
							y;

				if (parse_bool(a, &x) && parse_bool(b, &y))
					return x == y;
				break;
			}
		case SETTING_INT:
			{
				int			x,
							y;

				if (parse_int(a, &x, flags, NULL) && parse_int(b, &y, flags, NULL))
					return x == y;
				break;
			}
		case SETTING_REAL:
			{
				double		x,
							y;

				if (parse_real(a, &x, flags, NULL) && parse_real(b, &y, flags, NULL))
					return x == y;
				break;
			}
		case SETTING_WORD:
			break;
	}
	return pg_strcasecmp(a, b) == 0;
}

/* What postgresql.auto.conf says about a setting; NULL: nothing. */
static char *
auto_file_value(const char *name)
{
	ConfigVariable *head = NULL;
	ConfigVariable *tail = NULL;
	char	   *value = NULL;

	if (!ParseConfigFile(AUTO_FILE, false, NULL, 0, 0, LOG, &head, &tail))
		ereport(ERROR,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("could not parse file \"%s\"", AUTO_FILE)));
	for (ConfigVariable *item = head; item; item = item->next)
	{
		/* The last one counts. */
		if (item->name && !item->ignore && pg_strcasecmp(item->name, name) == 0)
			value = pstrdup(item->value);
	}
	FreeConfigVariables(head);
	return value;
}

/* ALTER SYSTEM SET name = value, or RESET name for NULL. */
static void
alter_system(const char *name, const char *value)
{
	VariableSetStmt *set = makeNode(VariableSetStmt);
	AlterSystemStmt *statement = makeNode(AlterSystemStmt);

	set->kind = value ? VAR_SET_VALUE : VAR_RESET;
	set->name = pstrdup(name);
	if (value)
	{
		A_Const    *constant = makeNode(A_Const);

		constant->val.sval.type = T_String;
		constant->val.sval.sval = pstrdup(value);
		constant->location = -1;
		set->args = list_make1(constant);
	}
	statement->setstmt = set;
	AlterSystemSetConfigFile(statement);
}

/*
 * All processes read the files again, this one at once: the row shall show what
 * came of it.  (An autovacuum worker does the same in the middle of its work.)
 */
static void
reload(void)
{
	if (kill(PostmasterPid, SIGHUP) != 0)
		ereport(WARNING,
				(errmsg("failed to send signal to postmaster: %m")));
	ProcessConfigFile(PGC_SIGHUP);
}

/*
 * What ALTER SYSTEM checks first, so that a dry run tells it and one of several
 * subjects is a row and not an error.  False: the record says why not.
 */
static bool
may_alter(const char *name, KaChangeRecord *record)
{
	const char *allowed = GetConfigOption("allow_alter_system", true, false);	/* 17 */

	if (allowed && strcmp(allowed, "off") == 0)
	{
		ka_change_refuse(record, ERRCODE_FEATURE_NOT_SUPPORTED, "ALTER SYSTEM is not allowed in this environment", NULL);
		return false;
	}
	if (!superuser() && pg_parameter_aclcheck(name, GetUserId(), ACL_ALTER_SYSTEM) != ACLCHECK_OK)
	{
		ka_change_refuse(record, ERRCODE_INSUFFICIENT_PRIVILEGE,
			   psprintf("permission denied to set parameter \"%s\"", name),
			   psprintf("GRANT ALTER SYSTEM ON PARAMETER %s TO the role.", name));
		return false;
	}
	return true;
}

/* The pool is large enough now; the next boot is another question. */
static void
tell_proof(const KaPoolProof *proof, KaChangeRecord *record)
{
	ka_change_detail(record, "the pool is large enough: the server needs " INT64_FORMAT " pages of " INT64_FORMAT " kB and could have " INT64_FORMAT,
					 proof->needed, proof->page_bytes / 1024, proof->available);
	if (proof->boot == KA_UNKNOWN)
		KA_CHANGE_SET(record, hint, "Restart the server. It starts after a reboot only if the pool is kept for the next boot as well.");
	else if (proof->boot < proof->needed)
		KA_CHANGE_SET(record, hint,
					  psprintf("The next boot reserves " INT64_FORMAT " pages, with which the server does not start: keep the pool, too.",
							   proof->boot));
}

/*
 * A setting other than huge_pages that waits for the next start: what the
 * server will need then is not what it needs now.  NULL: none.
 */
static const char *
pending_setting(void)
{
	int			n;
	struct config_generic **all = ka_settings_compat(&n);

	for (int i = 0; i < n; i++)
	{
		if ((all[i]->status & GUC_PENDING_RESTART) && strcmp(all[i]->name, "huge_pages") != 0)
			return all[i]->name;
	}
	return NULL;
}

/* False: the record says why not. */
static bool
may_be_on(const Setting *setting, const char *value, const KaApplyOptions *options, KaChangeRecord *record)
{
	const char *pending;
	KaPoolProof proof;
	bool		on;

	if (strcmp(setting->name, "huge_pages") != 0 || !parse_bool(value, &on) || !on)
		return true;
	ka_machine_prove_pool(&proof);
	pending = pending_setting();
	if (proof.proven && pending)
	{
		proof.proven = false;
		proof.problem = psprintf("\"%s\" waits for a restart, after which the server may need another number of pages", pending);
	}
	if (proof.proven)
	{
		tell_proof(&proof, record);
		return true;
	}
	if (options->dry_run)
	{
		record->state = KA_STATE_DRY_RUN;
		ka_change_detail(record, "it would be refused as long as the pool is not large enough: %s", proof.problem);
		return false;
	}
	ka_change_refuse(record, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		   psprintf("with huge_pages = on the server might not start: %s", proof.problem),
		   pending ? "Restart the server first; huge_pages = try starts it in any case." :
		   "Reserve the pool first; huge_pages = try starts the server in any case.");
	return false;
}

/*
 * Writes, reloads, looks at what came of it.  "expected" is what the server
 * shall have then, also when the line is taken out of the file (value NULL).
 */
static void
write_setting(const Setting *setting, const char *value, const char *expected, KaChangeRecord *record)
{
	bool		effected;

	const char *effective;

	alter_system(setting->name, value);
	reload();

	effective = ka_setting_now(setting->name);
	effected = effective && ka_setting_same(setting->name, effective, expected);
	KA_CHANGE_SET(record, persisted_in, AUTO_FILE);
	KA_CHANGE_SET(record, verified, effective);
	KA_CHANGE_SET(record, granted, effective);
	if (effected || (value == NULL && !setting->restart))
		record->state = KA_STATE_APPLIED;
	else if (setting->restart)
	{
		record->state = KA_STATE_PENDING_RESTART;
		KA_CHANGE_SET(record, granted, expected);
		if (record->hint[0] == '\0')
			KA_CHANGE_SET(record, hint, "Restart the server.");
	}
	else
	{
		record->state = KA_STATE_PARTIAL;
		ka_change_detail(record, "the value is in %s, but something wins over it", AUTO_FILE);
		KA_CHANGE_SET(record, hint,
					  "See pg_settings.source: the server's command line, ALTER ROLE and ALTER DATABASE, and SET in this session win.");
	}
}

/* With huge_pages = on, what else changes at the next start may keep the server from starting. */
static void
warn_of_need(const Setting *setting, KaChangeRecord *record)
{
	const char *huge_pages = ka_setting_now("huge_pages");

	if (record->state == KA_STATE_PENDING_RESTART && strcmp(setting->name, "huge_pages") != 0 &&
		huge_pages && strcmp(huge_pages, "on") == 0)
		KA_CHANGE_SET(record, hint,
					  "huge_pages is on: before the restart, compare the pool with \"postgres -C shared_memory_size_in_huge_pages\".");
}

/* The server's error about a change that was begun goes into its record as well. */
static void
write_or_record_error(const Setting *setting, const char *value, const char *expected, KaChangeRecord *record)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		write_setting(setting, value, expected, record);
		warn_of_need(setting, record);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		record->state = KA_STATE_FAILED;
		record->sqlstate = error->sqlerrcode;
		KA_CHANGE_SET(record, detail, error->message);
		KA_CHANGE_SET(record, hint, error->hint);
		ka_changes_finish(record);
		PG_RE_THROW();
	}
	PG_END_TRY();
	ka_changes_finish(record);
}

void
ka_setting_apply(const char *subject, const char *value, const KaApplyOptions *options,
				 KaChangeRecord *record)
{
	const Setting *setting = find_setting(subject);
	const char *prior;

	ka_change_init(record, KA_ACTION_ALTER_SYSTEM, subject, options->who);
	KA_CHANGE_SET(record, old, ka_setting_now(subject));
	KA_CHANGE_SET(record, asked, value);
	if (strlen(value) >= KA_CHANGE_VALUE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("value for \"%s\" is too long", subject)));

	/* As ALTER SYSTEM does: the right first, then the value (22023 from there). */
	if (!may_alter(subject, record))
		return;
	(void) set_config_option(subject, value, PGC_POSTMASTER, PGC_S_FILE, GUC_ACTION_SET, false, ERROR, false);

	prior = auto_file_value(subject);
	record->prior_set = prior != NULL;
	KA_CHANGE_SET(record, prior, prior);

	if (!may_be_on(setting, value, options, record))
		return;
	if (ka_setting_same(subject, record->old, value) && (!prior || ka_setting_same(subject, prior, value)))
	{
		record->state = KA_STATE_UNCHANGED;
		KA_CHANGE_SET(record, granted, record->old);
		KA_CHANGE_SET(record, verified, record->old);
		return;
	}
	if (setting->restart && prior && ka_setting_same(subject, prior, value))
	{
		record->state = KA_STATE_PENDING_RESTART;
		KA_CHANGE_SET(record, granted, value);
		KA_CHANGE_SET(record, verified, record->old);
		KA_CHANGE_SET(record, persisted_in, AUTO_FILE);
		ka_append_detail(record, AUTO_FILE " has the value already");
		if (record->hint[0] == '\0')
			KA_CHANGE_SET(record, hint, "Restart the server.");
		return;
	}
	if (options->dry_run)
	{
		record->state = KA_STATE_DRY_RUN;
		KA_CHANGE_SET(record, persisted_in, AUTO_FILE);
		if (record->detail[0] == '\0')
			ka_change_detail(record, "ALTER SYSTEM SET %s = '%s', in effect after a %s",
							 subject, value, setting->restart ? "restart" : "reload");
		return;
	}

	ka_changes_begin(record);
	write_or_record_error(setting, value, value, record);
}

void
ka_setting_rollback(const KaChangeRecord *change, const KaApplyOptions *options, KaChangeRecord *record)
{
	const Setting *setting = find_setting(change->subject);
	const char *current;

	if (!may_alter(change->subject, record))
		return;
	current = auto_file_value(change->subject);
	KA_CHANGE_SET(record, old, ka_setting_now(change->subject));
	KA_CHANGE_SET(record, asked, change->prior_set ? change->prior : NULL);
	record->prior_set = current != NULL;
	KA_CHANGE_SET(record, prior, current);

	if (current == NULL || strcmp(current, change->asked) != 0)
	{
		ka_change_refuse(record, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
			   current ? psprintf("%s sets \"%s\" to \"%s\" by now", AUTO_FILE, change->subject, current) :
			   psprintf("%s does not set \"%s\" any more", AUTO_FILE, change->subject),
			   "Set the value that you want with apply() or ALTER SYSTEM.");
		return;
	}
	if (change->prior_set && !may_be_on(setting, change->prior, options, record))
		return;
	if (options->dry_run)
	{
		record->state = KA_STATE_DRY_RUN;
		if (change->prior_set)
			ka_change_detail(record, "ALTER SYSTEM SET %s = '%s'", change->subject, change->prior);
		else
			ka_change_detail(record, "ALTER SYSTEM RESET %s", change->subject);
		return;
	}

	ka_changes_begin(record);
	write_or_record_error(setting, change->prior_set ? change->prior : NULL,
						  change->prior_set ? change->prior : change->old, record);
}
