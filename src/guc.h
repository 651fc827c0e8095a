/*
 * guc.h: the settings of the server library.
 */
#ifndef KA_GUC_H
#define KA_GUC_H

extern int	ka_sample_interval; /* ms */
extern int	ka_checkpoint_sample_interval;	/* ms */
extern int	ka_history_size;	/* kB, both rings */
extern int	ka_auto_apply;		/* KaAutoApply */
extern char *ka_database;	/* the reporter's */
extern char *ka_reporter_role;	/* "": the owner of each history table */
extern int	ka_report_interval; /* s; 0: no reports */
extern int	ka_retention;		/* min; 0: history is kept for ever */
extern char *ka_helper_socket;	/* path; empty: no helper */
extern int	ka_helper_timeout;	/* ms, for one answer */
extern char *ka_probe_file;	/* path; empty: no probe */
extern char *ka_machine_root;	/* for tests: files of the kernel below this; "": this machine */

/* Called from _PG_init only. */
extern void ka_define_settings(void);

#endif							/* KA_GUC_H */
