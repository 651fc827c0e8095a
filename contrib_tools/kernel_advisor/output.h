/*
 * output.h: facts and advice for people and for programs.
 */
#ifndef KA_TOOL_OUTPUT_H
#define KA_TOOL_OUTPUT_H

#include <stdio.h>

#include "advice.h"

/* One JSON document; false: no memory, or stdout cannot be written. */
extern bool ka_print_facts(KaArena *arena, const KaFacts *facts);
extern bool ka_print_advice_json(KaArena *arena, const KaFacts *facts, const KaAdvice *const *rows, size_t count);

/* A list for people, one paragraph per row, and their number by severity. */
extern void ka_print_advice(const KaAdvice *const *rows, size_t count);

/* Text of any origin: control characters, which could drive a terminal, become '?'. */
extern void ka_print_safe(FILE *stream, const char *text);

/* A paragraph, wrapped on a terminal, each line behind "indent" spaces. */
extern void ka_print_wrapped(const char *text, int indent);

/* Lines as they are, each behind "indent" spaces. */
extern void ka_print_lines(const char *text, int indent);

/* "1.5 GiB (1610612736 bytes)" */
extern const char *ka_size_text(KaArena *arena, int64_t bytes);

#endif							/* KA_TOOL_OUTPUT_H */
