/* gaterq/analysis.h - what the paper reads out of a trace. */
#ifndef GATERQ_ANALYSIS_H
#define GATERQ_ANALYSIS_H

#include <stdbool.h>

#include "gaterq/policy.h"
#include "gaterq/stats.h"
#include "gaterq/trace.h"

/* Does gate or frequency ordering fit a model? Frequency ordering would be right if gates were larger on frequent rows,
 * so the answer is read off the Spearman correlation of gate energy with access count over look-ups, by a rule fixed
 * before any run. Cells whose correlation is undefined say nothing; then, over the others,
 *   "gate"       every interval ends below GRQ_PREMISE_MARGIN and the median estimate is below 0;
 *   "frequency"  every interval starts above 0 and the median estimate is above GRQ_PREMISE_MARGIN;
 *   "undecided"  anything else, also when no cell is left or an interval is undefined. */
#define GRQ_PREMISE_MARGIN 0.1
const char *grq_premise_verdict(const grq_interval *cells, size_t n_cells);
const char *grq_premise_rule(void); /* the rule in one sentence, to print beside the verdict */

/* Correlation of gate energy with access count, one cell per (layer, order, text kind). In running text the first
 * positions of a sequence are left out, as their n-grams would start before the trace's window; prompts are whole. */
typedef struct {
    uint32_t layer, order;
    int kind; /* grq_text_kind, or -1 for all positions */
    size_t n_lookups, n_rows;
    grq_interval spearman_lookups; /* over look-ups, interval over sequences */
    grq_interval pearson_lookups;  /* with log(1 + count) */
    grq_interval spearman_rows;    /* over distinct rows: mean gate energy of the row against its count, */
    grq_interval pearson_rows;     /* intervals over rows; Pearson with log(1 + count) */
} grq_premise_cell;

typedef struct {
    size_t n_cells;
    grq_premise_cell *cells;
    const char *verdict; /* "gate", "frequency" or "undecided", over the all-positions cells */
} grq_premise;

grq_status grq_premise_run(const grq_trace *trace, uint32_t n_resamples, uint64_t seed, grq_premise *out,
                           grq_error *err);
void grq_premise_free(grq_premise *premise);

/* The same question asked of an access log, for any model that can print one: CSV with header row_id,scale[,norm]
 * [,table_id], one line a look-up. A look-up's access count is how often its (table_id, row_id) occurs in the log;
 * scale^2 stands for the gate energy, scale^2 norm^2 for the importance. Intervals are over GRQ_LOG_BLOCKS contiguous
 * stretches of the log, as neighbouring look-ups are not independent. The verdict is over tables. */
enum { GRQ_LOG_BLOCKS = 200 };
typedef struct {
    uint64_t table_id; /* 0 when the log has none */
    uint64_t n_lookups, n_rows;
    grq_interval spearman;            /* scale^2 against access count, over look-ups */
    grq_interval pearson;             /* with log(1 + count) */
    grq_interval spearman_rows;       /* over distinct rows: mean scale^2 against count */
    grq_interval spearman_importance; /* scale^2 norm^2 against count; NaN without norm */
} grq_log_cell;

typedef struct {
    bool has_norm, has_table;
    grq_log_cell all; /* all tables together */
    size_t n_tables;
    grq_log_cell *tables; /* by ascending table_id */
    const char *verdict;
} grq_log_premise;

/* Strict: what cannot be read is an error with file, line and column. The caller ends *out with grq_log_premise_free.
 */
grq_status grq_log_premise_run(const char *path, uint32_t n_resamples, uint64_t seed, grq_log_premise *out,
                               grq_error *err);
void grq_log_premise_free(grq_log_premise *premise);

/* Gate fidelity, importance concentration and unseen rows, per layer. */
typedef struct {
    uint32_t layer;
    grq_interval gate_fidelity;   /* Pearson of stage-1 and full gates over (position, branch) */
    double top_1, top_10, top_41; /* share of importance held by the top 1, 10, 41.2 % of look-ups */
    double top_1_energy;          /* the same of gate energy alone */
    uint64_t n_lookups;
    uint64_t unseen_lookups[GRQ_MAX_ORDER + 1]; /* by order: rows never read in the counting corpus */
    double unseen_share[GRQ_MAX_ORDER + 1];     /* their share of the order's importance */
    double lorenz[101];                         /* share of importance held by the top i % of look-ups */
} grq_layer_profile;
grq_status grq_profile_run(const grq_trace *trace, uint32_t n_resamples, uint64_t seed,
                           grq_layer_profile out[GRQ_MAX_MEMORY_LAYERS], grq_error *err);

/* Captured share of the weighted-error reduction of stage 2, for every ordering over a curve of budgets. One batch per
 * layer is the whole trace. Random is the mean of GRQ_RANDOM_DRAWS draws. Oracle ranks by injected_reduction, so its
 * injected share is the bound and its weighted share need not be. */
enum { GRQ_RANDOM_DRAWS = 3 };
enum { GRQ_CURVE_POINTS = 21 }; /* 0, 5, ..., 100 % */
typedef struct {
    double budget;                    /* fraction of look-ups that read stage 2 */
    double captured[GRQ_N_ORDERINGS]; /* of weighted_reduction, all layers together */
    double captured_low[GRQ_N_ORDERINGS], captured_high[GRQ_N_ORDERINGS]; /* bootstrap over sequences */
    double captured_injected[GRQ_N_ORDERINGS];                            /* of injected_reduction */
    double captured_layer[GRQ_MAX_MEMORY_LAYERS][GRQ_N_ORDERINGS];
    double curve[GRQ_CURVE_POINTS][GRQ_N_ORDERINGS]; /* captured at each budget */
    double bound, bound_injected;                    /* the most that any ordering could capture */
} grq_ablation;
grq_status grq_ablate_run(const grq_trace *trace, double budget, uint32_t n_resamples, uint64_t seed, grq_ablation *out,
                          grq_error *err);

#endif
