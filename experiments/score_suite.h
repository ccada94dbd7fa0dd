/* experiments/score_suite.h - what `gaterq score` knows about each suite, and its items. */
#ifndef GATERQ_SCORE_SUITE_H
#define GATERQ_SCORE_SUITE_H

#include "gaterq/facts.h"
#include "gaterq/score.h"

typedef struct {
    const char *name;                   /* "popqa" */
    const char *rule;                   /* its primary rule; NULL: choices, see score_rules_choose */
    const char *cut;                    /* for rules without one of their own */
    const char *group_key, *groups_key; /* of JSON: "relation", "by_relation"; NULL: it has no groups */
} score_suite;

grq_status score_suite_find(const char *name, const score_suite **out, grq_error *err);

/* The items of a suite's file or folder. */
typedef struct {
    const score_suite *suite;
    const char *data;
    grq_suite *opened;
    size_t n;
    const grq_suite_item *items; /* borrowed from it */
} score_items;

grq_status score_items_open(const score_suite *suite, const char *data, score_items *out, grq_error *err);
void score_items_close(score_items *items);

/* The rules to score by, the primary one first: `names` is NULL (the suite's own), "all", or a list with commas.
 * Choices are scored by likelihood when every prediction has some, else by the letter in the output. Caller frees *out.
 */
grq_status score_rules_choose(const score_suite *suite, const char *names, const grq_predictions *predictions,
                              const grq_match_rule ***out, size_t *n_out, grq_error *err);

#endif
