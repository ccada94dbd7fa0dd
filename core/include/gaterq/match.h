/* gaterq/match.h - is an answer right? Matching rules by name, as published.
 * Source: specs/evaluation-protocols.md. */
#ifndef GATERQ_MATCH_H
#define GATERQ_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "gaterq/status.h"

typedef struct grq_match_rule grq_match_rule;
struct grq_match_rule {
    const char *name; /* "exact", "popqa_contains" */
    const char *description;
    /* `output` is the raw text a model produced; the rule applies its own cut (PopQA: one leading blank line dropped,
     * then the first line). Returns GRQ_OK and sets *correct. */
    grq_status (*match)(const char *output, const char *const *accepted, size_t n_accepted, bool *correct,
                        grq_error *err);
};

grq_status grq_match_rule_find(const char *name, const grq_match_rule **out, grq_error *err); /* lists what it knows */

#endif
