/*
 * guc.c: the settings of the server library, all of them.
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"

#include "kernel_advisor_probe/probe_file.h"
#include "kernel_advisord/protocol.h"
#include "auto.h"
#include "guc.h"

#define MIN_INTERVAL 10			/* ms */
#define MAX_INTERVAL (60 * 60 * 1000)	/* ms */
#define MINS_PER_DAY 1440
#define MAX_REPORT_INTERVAL (24 * 60 * 60)	/* s */
#define MAX_RETENTION (100 * 366 * MINS_PER_DAY)	/* min */
#define MAX_HELPER_TIMEOUT (60 * 60 * 1000) /* ms */

int			ka_sample_interval = 1000;
int			ka_checkpoint_sample_interval = 200;
int			ka_history_size = 8192;
int			ka_auto_apply = KA_AUTO_APPLY_OFF;
char	   *ka_database = NULL;
char	   *ka_reporter_role = NULL;
int			ka_report_interval = 60;
int			ka_retention = 30 * MINS_PER_DAY;
char	   *ka_helper_socket = NULL;
int			ka_helper_timeout = 60000;
char	   *ka_probe_file = NULL;
char	   *ka_machine_root = "";

static const struct config_enum_entry auto_apply_options[] = {
	{"off", KA_AUTO_APPLY_OFF, false},
	{"safe", KA_AUTO_APPLY_SAFE, false},
	{"false", KA_AUTO_APPLY_OFF, true},
	{"no", KA_AUTO_APPLY_OFF, true},
	{"0", KA_AUTO_APPLY_OFF, true},
	{NULL, 0, false}
};

void
ka_define_settings(void)
{
	DefineCustomIntVariable("kernel_advisor.sample_interval",
							"Time between two samples while no checkpoint runs.",
							NULL,
							&ka_sample_interval,
							1000, MIN_INTERVAL, MAX_INTERVAL,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("kernel_advisor.checkpoint_sample_interval",
							"Time between two samples while a checkpoint runs.",
							"Every checkpoint gets a sample at its start and at its end as well.",
							&ka_checkpoint_sample_interval,
							200, MIN_INTERVAL, MAX_INTERVAL,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomEnumVariable("kernel_advisor.auto_apply",
							 "Which advice is applied without asking.",
							 "safe: kernel settings that were measured to be wrong here, one at a time, watched and taken back when they make it worse.",
							 &ka_auto_apply,
							 KA_AUTO_APPLY_OFF, auto_apply_options,
							 PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							 NULL, NULL, NULL);
	DefineCustomStringVariable("kernel_advisor.database",
							   "Database in which the reporter keeps the history of checkpoints and advice.",
							   "The extension has to be created there.",
							   &ka_database,
							   "postgres",
							   PGC_SIGHUP, GUC_IS_NAME,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("kernel_advisor.role",
							   "Role as which the reporter reads and writes the history tables.",
							   "Empty: the owner of each table.",
							   &ka_reporter_role,
							   "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY | GUC_IS_NAME,
							   NULL, NULL, NULL);
	DefineCustomIntVariable("kernel_advisor.report_interval",
							"Time between two reports: history is stored, and news about advice is told.",
							"There is one after a checkpoint as well, at most every ten seconds. 0: no reports.",
							&ka_report_interval,
							60, 0, MAX_REPORT_INTERVAL,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomIntVariable("kernel_advisor.retention",
							"How long the history of checkpoints and advice is kept.",
							"0: for ever.",
							&ka_retention,
							30 * MINS_PER_DAY, 0, MAX_RETENTION,
							PGC_SIGHUP, GUC_UNIT_MIN,
							NULL, NULL, NULL);
	DefineCustomStringVariable("kernel_advisor.helper_socket",
							   "Socket of kernel_advisord, the root helper.",
							   "Empty: kernel settings are not changed from here.",
							   &ka_helper_socket,
							   KA_SOCKET_PATH,
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomIntVariable("kernel_advisor.helper_timeout",
							"Time to wait for an answer of the root helper.",
							"A reservation of huge pages takes up to half of it, and not more than half a minute.",
							&ka_helper_timeout,
							60000, 100, MAX_HELPER_TIMEOUT,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomStringVariable("kernel_advisor.probe_file",
							   "File that kernel_advisor_probe publishes.",
							   "Empty: what only the probe can count stays null.",
							   &ka_probe_file,
							   KA_PROBE_PATH,
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);

	/*
	 * What follows takes effect at server start only.  Without shared memory it
	 * must neither be defined nor be complained about, because the setting may
	 * well stand in the configuration file.
	 */
	if (!process_shared_preload_libraries_in_progress)
		return;

	DefineCustomIntVariable("kernel_advisor.history_size",
							"Shared memory for samples and checkpoints.",
							"Seven eighths hold samples, one eighth holds checkpoints.",
							&ka_history_size,
							8192, 256, MAX_KILOBYTES,
							PGC_POSTMASTER, GUC_UNIT_KB,
							NULL, NULL, NULL);

	DefineCustomStringVariable("kernel_advisor.machine_root",
							   "Directory below which the kernel's files are read.",
							   "For tests: a copy of another machine's /proc and /sys. Empty: this machine.",
							   &ka_machine_root,
							   "",
							   PGC_POSTMASTER,
							   GUC_SUPERUSER_ONLY | GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_AUTO_FILE,
							   NULL, NULL, NULL);

	MarkGUCPrefixReserved("kernel_advisor");
}
