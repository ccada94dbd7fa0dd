/* gaterq/analysis.h - what the paper reads out of a trace. */
#ifndef GATERQ_ANALYSIS_H
#define GATERQ_ANALYSIS_H

#include "gaterq/json.h"
#include "gaterq/policy.h"
#include "gaterq/stats.h"
#include "gaterq/trace.h"

/* Correlation of gate energy with access count, one cell per (layer, order, text kind). */
typedef struct {
    uint32_t layer, order;
    int kind;                       /* grq_text_kind, or -1 for all positions */
    size_t n_lookups, n_rows;
    grq_interval spearman_lookups;  /* over look-ups, interval over sequences */
    grq_interval pearson_lookups;   /* with log(1 + count) */
    grq_interval spearman_rows;     /* over distinct rows: mean gate energy of the row against its count */
    grq_interval pearson_rows;
} grq_premise_cell;

typedef struct {
    size_t n_cells;
    grq_premise_cell *cells;
    const char *verdict;            /* "gate", "frequency" or "undecided", over the all-positions cells */
} grq_premise;

grq_status grq_premise_run(const grq_trace *trace, uint32_t n_resamples, uint64_t seed, grq_premise *out, grq_error *err);
void grq_premise_free(grq_premise *premise);

/* Gate fidelity, importance concentration and unseen rows, per layer. */
typedef struct {
    uint32_t layer;
    grq_interval gate_fidelity;                 /* Pearson of stage-1 and full gates over (position, branch) */
    double top_1, top_10, top_41;               /* share of importance held by the top 1, 10, 41.2 % of look-ups */
    double top_1_energy;                        /* the same of gate energy alone */
    uint64_t n_lookups;
    uint64_t unseen_lookups[GRQ_MAX_ORDER + 1]; /* by order: rows never read in the counting corpus */
    double unseen_share[GRQ_MAX_ORDER + 1];     /* their share of the order's importance */
    double lorenz[101];                         /* share of importance held by the top i % of look-ups */
} grq_layer_profile;
grq_status grq_profile_run(const grq_trace *trace, uint32_t n_resamples, uint64_t seed,
                           grq_layer_profile out[GRQ_MAX_MEMORY_LAYERS], grq_error *err);

/* Captured share of the weighted-error reduction of stage 2, for every ordering over a curve of budgets. */
enum { GRQ_CURVE_POINTS = 21 }; /* 0, 5, ..., 100 % */
typedef struct {
    double budget;                                            /* fraction of look-ups that read stage 2 */
    double captured[GRQ_N_ORDERINGS];                         /* of weighted_reduction, all layers together */
    double captured_low[GRQ_N_ORDERINGS], captured_high[GRQ_N_ORDERINGS]; /* bootstrap over sequences */
    double captured_injected[GRQ_N_ORDERINGS];                /* of injected_reduction */
    double captured_layer[GRQ_MAX_MEMORY_LAYERS][GRQ_N_ORDERINGS];
    double curve[GRQ_CURVE_POINTS][GRQ_N_ORDERINGS];          /* captured at each budget */
} grq_ablation;
grq_status grq_ablate_run(const grq_trace *trace, double budget, uint32_t n_resamples, uint64_t seed, grq_ablation *out,
                          grq_error *err);

#endif
