/*
 * kernel_change.h: what apply_kernel.c and rollback_kernel.c share.
 */
#ifndef KA_KERNEL_CHANGE_H
#define KA_KERNEL_CHANGE_H

#include "apply.h"
#include "helper.h"
#include "machine.h"

/* Adds a phrase to the record's detail; NULL: nothing. */
extern void ka_append_detail(KaChangeRecord *record, const char *text);

/* A value as text in a field of the record; negative: none. */
extern void ka_set_value_text(char *field, const KaKnob *knob, int64 value);

/* Reads the kernel into record->verified; KA_NO_VALUE when there is nothing to read. */
extern int64 ka_verify_knob(const KaKnob *knob, int node, KaChangeRecord *record);

/* The helper's status with what belongs to it: bounds, line, errno. */
extern const char *ka_status_detail(const KaKnob *knob, const KaReply *reply);

/* An answer that says no: state, sqlstate, detail and hint of the record. */
extern KaChangeState ka_refusal_state(uint32 status);
extern void ka_refused_by_helper(const KaKnob *knob, const KaReply *reply, KaChangeRecord *record);

/* Whether the status tells of a value that was written, or was there already. */
extern bool ka_is_done(uint32 status);

/* Warns when huge_pages = on does not have its pages any more. */
extern void ka_warn_of_start(const KaKnob *knob, KaChangeRecord *record);

/* The answer to set, reserve or rollback, against what the kernel shows. */
extern void ka_judge_answer(const KaKnob *knob, int node, int64 old, const KaReply *reply, KaChangeRecord *record);

/* A trial of the subject is running: true, and the record says so. */
extern bool ka_refused_by_trial(KaChangeRecord *record);

/* Asks the helper; false: the record says why there is no answer. */
extern bool ka_ask_helper(const KaRequest *request, KaReply *reply, KaChangeRecord *record);

/*
 * The same for a change that is in the log: an error that comes while we wait,
 * a cancel above all, is written into the record before it goes on.
 */
extern bool ka_ask_recorded(const KaRequest *request, KaReply *reply, KaChangeRecord *record,
							const KaKnob *knob, int node);

/* Our file for the next boot, and what the helper found out about that boot. */
extern const char *ka_own_file(const KaKnob *knob);
extern void ka_take_boot(const KaReply *reply, KaChangeRecord *record);

#endif							/* KA_KERNEL_CHANGE_H */
