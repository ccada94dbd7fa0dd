/* experiments/grid.h - the paper's grid: which models, encoders, budgets, orderings and suites its accuracy table has,
 * and the family of comparisons that is tested on them. Both are configs: table-accuracy.json, table-significance.json.
 */
#ifndef GATERQ_GRID_H
#define GATERQ_GRID_H

#include "gaterq/json.h"
#include "gaterq/policy.h"

enum { GRID_MOST = 8, GRID_MAX_CELLS = 4096 };

typedef struct {
    const char *name, *title; /* of the paper's model, or, at the scale "miniature", of the one that stands in for it */
    uint32_t row_dim;         /* values of a row; its bits per value follow */
    double gate_cost;         /* miniature: of its training */
    const char *why, *not_run; /* miniature: what it is; or why it is not trained, else NULL */
} grid_model;

typedef struct {
    const char *name, *title, *miniature; /* miniature: the encoder's name for rows as short as a miniature's */
} grid_encoder;

typedef struct {
    const char *name, *title, *fractions; /* "bits-150", "1.50 bits", "0.412" */
    grq_budget budget;
} grid_budget;

typedef struct {
    const char *name, *title;
    uint64_t n_items;    /* of the whole suite */
    const char *not_run; /* miniature: why it is not asked, else NULL */
} grid_suite;

typedef struct {
    grq_json *document; /* owns the texts */
    bool miniature;
    size_t n_models, n_encoders, n_budgets, n_orderings, n_readings, n_suites;
    grid_model models[GRID_MOST];
    grid_encoder encoders[GRID_MOST];
    grid_budget budgets[GRID_MOST];
    const char *orderings[GRID_MOST];
    const char *readings[GRID_MOST]; /* "full", "zero": without codes; "depth1" to "depth3": of each encoder */
    grid_suite suites[GRID_MOST];
} grid;

/* Reads the object "grid" of a config, whose other keys are left to others. `miniature` chooses the names of the models
 * and what does not run. */
grq_status grid_read(grq_json_node *root, bool miniature, grid *out, grq_error *err);
/* The same from a file of its own. grid_close it. */
grq_status grid_open(const char *path, bool miniature, grid *out, grq_error *err);
void grid_close(grid *g);

bool grid_is_coded(const char *reading); /* depth1 to depth3: needs an encoder */

typedef struct {
    grq_json *document;
    const char *title, *about, *of, *criterion;
    const char *grid_path; /* beside the config */
    size_t n_against;
    const char *against[GRID_MOST];
    double alpha;
    uint64_t seed, n_resamples;
} grid_family;

/* table-significance.json: which ordering is compared with which, per suite, model, encoder and budget. */
grq_status grid_family_open(const char *path, grid_family *out, grq_error *err);
grq_status grid_family_read(grq_json_node *root, grid_family *out, grq_error *err);
void grid_family_close(grid_family *f);

#endif
