/*
 * guc.h: the settings of the server library.
 */
#ifndef KA_GUC_H
#define KA_GUC_H

extern int	ka_sample_interval; /* ms */
extern int	ka_checkpoint_sample_interval;	/* ms */
extern int	ka_history_size;	/* kB, both rings */

/* Called from _PG_init only. */
extern void ka_define_settings(void);

#endif							/* KA_GUC_H */
