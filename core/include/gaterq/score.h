/* gaterq/score.h - a suite's items, the predictions for them, and the score of each by a rule. */
#ifndef GATERQ_SCORE_H
#define GATERQ_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/match.h"
#include "gaterq/predictions.h"
#include "gaterq/suite.h"

/* The prediction of each item, of_item (n_items); NULL where it has none. Every prediction must belong to an item and
 * to `suite` (where its line names one), and without `partial` every item must have one: else GRQ_E_DATA with the list.
 * `data` names the items in messages. */
grq_status grq_score_align(const char *suite, const char *data, const grq_suite_item *items, size_t n_items,
                           const grq_predictions *predictions, bool partial, const grq_prediction **of_item,
                           grq_error *err);

typedef struct {
    const grq_match_rule *rule;
    const grq_match_cut *cut;     /* NULL for likelihoods */
    uint64_t n, n_correct;        /* correct: a score of 1 */
    double sum;                   /* of the scores; n_correct but for graded rules */
    double *scores;               /* (n_items), owned; NaN where an item has no prediction */
    uint64_t n_no_choice;         /* choices: outputs without a letter, undefined likelihoods */
    uint64_t n_tied, n_undefined; /* likelihoods: the first of equals was taken; one of them was NaN */
    /* What the rule credits when every output is the item's own question, or a sentence that refuses to answer: how
     * much of a score can be had for nothing. Text rules only. */
    uint64_t n_question_echo, n_refusal_sentence;
} grq_rule_score;

extern const char *const grq_refusal_sentence; /* "I do not know the answer to this question." */

/* Scores all items that have a prediction. `cut` NULL: the rule's own, and where it has none `suite_cut`. A prediction
 * without what the rule needs (output, four loglikelihoods) is GRQ_E_DATA with its line. Ends with _free, also after a
 * failure. */
grq_status grq_score_by_rule(const grq_match_rule *rule, const grq_match_cut *cut, const grq_match_cut *suite_cut,
                             const grq_suite_item *items, size_t n_items, const grq_prediction *const *of_item,
                             grq_rule_score *out, grq_error *err);
void grq_rule_score_free(grq_rule_score *score);

#endif
