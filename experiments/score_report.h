/* experiments/score_report.h - the results of `gaterq score`: shares, groups, the spread over rules, scored lines. */
#ifndef GATERQ_SCORE_REPORT_H
#define GATERQ_SCORE_REPORT_H

#include "score_suite.h"
#include "tool.h"

typedef struct {
    const score_items *items;
    const grq_predictions *predictions;
    const grq_prediction **of_item; /* (items->n) */
    grq_rule_score *scores;         /* (n_rules), the primary rule first */
    size_t n_rules;
    uint64_t n_empty, n_refusals;
    uint32_t *quartile; /* (items->n) of popularity; GRQ_N_QUARTILES where there is none or no prediction */
    double cuts[GRQ_N_QUARTILES - 1];
} score_results;

grq_status score_report(tool_context *tool, const score_results *r, grq_error *err);
/* One JSON line per item that has a prediction, in the suite's order; complete or not at all. */
grq_status score_write_lines(const score_results *r, const char *path, grq_error *err);

#endif
