/* experiments/grid_tables.h - the accuracy table and the families of comparisons of a folder of scored predictions; the
 * same for a miniature's and for a released model's. */
#ifndef GATERQ_GRID_TABLES_H
#define GATERQ_GRID_TABLES_H

#include "cells.h"
#include "table.h"

/* One comparison of the family of a suite. */
typedef struct {
    const grid_model *model;
    const grid_encoder *encoder;
    const grid_budget *budget;
    const grid_suite *suite;
    const char *of, *against;
    bool run;
    scored_comparison result;
    double holm, bh; /* within the suite; those that were not run count as p = 1 */
    const char *verdict;
    char reason[CELL_REASON_BYTES]; /* NOT RUN: why; NOT REPRODUCED: what fell short; run in part: how many items */
} grid_comparison;

typedef struct {
    size_t n, n_run, n_reproduced;
    grid_comparison *items; /* suite by suite */
} grid_comparisons;

grq_status grid_compare(const grid *g, const grid_family *f, cells *c, const grq_progress *progress,
                        grid_comparisons *out, grq_error *err);
void grid_comparisons_free(grid_comparisons *c);

/* Both fill `out`; table_free it. Headings are borrowed from `headings`, which must outlive it. */
typedef struct {
    char text[TABLE_MAX_COLUMNS][64];
} grid_headings;
grq_status grid_accuracy_table(const grid *g, cells *c, grid_headings *headings, table *out, size_t *n_run,
                               size_t *n_cells, grq_error *err);
grq_status grid_comparison_table(const grid_comparisons *c, table *out, grq_error *err);

#endif
