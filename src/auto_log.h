/*
 * auto_log.h: auto_apply's view of the change log.
 */
#ifndef KA_AUTO_LOG_H
#define KA_AUTO_LOG_H

#include "changes.h"

typedef struct KaAutoLog
{
	KaChangeRecord *records;	/* oldest first */
	int			n;
} KaAutoLog;

/* The change of ours that still has to be judged, or taken back; -1: none. */
extern int	ka_auto_find_watched(const KaAutoLog *log);

/* Something is, or was, different because of it, or may be. */
extern bool ka_auto_had_effect(const KaChangeRecord *record);

/* Is the value there that it left?  Also true when the kernel cannot be read. */
extern bool ka_auto_in_effect(const KaChangeRecord *change);

/* Has somebody else decided about the subject of record i since? */
extern bool ka_auto_touched_since(const KaAutoLog *log, int i);

/* Has anything else got another value since? */
extern bool ka_auto_disturbed_since(const KaAutoLog *log, int i);

/* When the change was over; when it began, where its end is not known. */
extern TimestampTz ka_auto_end_of(const KaChangeRecord *record);

/* Since when the server runs as it did right before record i: its start, or the change or trial before. */
extern TimestampTz ka_auto_undisturbed_since(const KaAutoLog *log, int i);

/*
 * Why a subject is not to be touched, NULL: it may be.  The last decision about
 * it counts.  A new kernel (release; NULL: not known) is a new chance for what
 * did not work; what a person decided stands until a person decides anew.
 */
extern const char *ka_auto_hands_off(const KaAutoLog *log, const char *subject, const char *value,
									 const char *release, TimestampTz now);

/* Writes what was found out about a change into its record. */
extern void ka_auto_mark(int64 change_id, KaWatch watch, const char *why);

#endif							/* KA_AUTO_LOG_H */
