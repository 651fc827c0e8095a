/*
 * advice.h: the advisor as a pure function, from facts to rows of advice.
 *
 * Each rule is one row of a table: its name, its formula and source as text,
 * and a function that may add rows.  Rules see the facts and what follows from
 * them (KaView, computed once), never the machine.
 */
#ifndef KA_ADVICE_H
#define KA_ADVICE_H

#include "facts.h"

typedef enum KaSeverity
{
	KA_CRITICAL,
	KA_WARNING,
	KA_INFO,
	KA_OK
} KaSeverity;

typedef enum KaConfidence
{
	KA_MEASURED,				/* "measured here" */
	KA_INFERRED,
	KA_DOCUMENTED
} KaConfidence;

typedef enum KaActivation
{
	KA_NONE,
	KA_RELOAD,
	KA_RESTART,
	KA_REBOOT
} KaActivation;

/* One item of the evidence: a fact that was observed, or a threshold. */
typedef struct KaEvidence
{
	bool		threshold;		/* evidence->threshold, else evidence->observed */
	const char *name;			/* the path of a fact, or a name of the rule's own */
	KaType		type;
	KaValue		value;
} KaEvidence;

typedef struct KaAdvice
{
	const char *rule;			/* "huge_pages.use" */
	KaSeverity	severity;
	const char *subject;
	const char *current;		/* NULL: not known */
	const char *recommended;	/* NULL: leave it */
	const char *reason;			/* one sentence a DBA understands */
	KaEvidence *evidence;
	size_t		nevidence;
	KaConfidence confidence;
	KaActivation activation;
	const char *command;		/* what a person would type, or NULL */
} KaAdvice;

typedef struct KaAdviceList
{
	KaArena    *arena;

	/*
	 * Called before each rule and in long loops, NULL: never.  It may leave by
	 * longjmp, as the server's errors do: nothing is held but memory of the arena.
	 */
	void		(*interrupt) (void);
	KaAdvice   *rows;
	size_t		count;
} KaAdviceList;

typedef struct KaRuleInfo
{
	const char *name;
	const char *speaks;			/* when it speaks, with its formula */
	const char *source;			/* where the formula comes from */
} KaRuleInfo;

/* Runs every rule; rows by severity, then in the order of the table.  False: out of memory. */
extern bool ka_advise(const KaFacts *facts, KaAdviceList *list);

/* The table of rules, for documentation and tests; returns their number. */
extern size_t ka_rules(const KaRuleInfo **rules);

extern const char *ka_severity_name(KaSeverity severity);
extern const char *ka_confidence_name(KaConfidence confidence);
extern const char *ka_activation_name(KaActivation activation);

/* {"observed": {...}, "threshold": {...}, "window": {...}}; empty parts left out. */
extern bool ka_evidence_encode(const KaAdvice *advice, const KaFacts *facts, const KaJsonSink *sink);

#endif							/* KA_ADVICE_H */
