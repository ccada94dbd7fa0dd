/* tests/layer_support.h - a memory layer made of golden or random numbers, and one way to run it. */
#ifndef GATERQ_TESTS_LAYER_SUPPORT_H
#define GATERQ_TESTS_LAYER_SUPPORT_H

#include "support.h"

#include "gaterq/layer.h"
#include "gaterq/rng.h"

/* Exactly n numbers from JSON, as floats. The caller frees. */
static inline float *test_floats(grq_json_node *node, size_t n)
{
    double *const wide = malloc((n + 1) * sizeof *wide);
    float *const out = malloc(n * sizeof *out);
    assert_int_equal(test_numbers(node, wide, n + 1), n);
    for (size_t i = 0; i < n; i++) out[i] = (float)wide[i];
    free(wide);
    return out;
}

/* (rows, columns) -> (columns, rows) */
static inline float *test_transposed(const float *from, size_t n_rows, size_t n_columns)
{
    float *const to = malloc(n_rows * n_columns * sizeof *to);
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < n_columns; c++) to[c * n_rows + r] = from[r * n_columns + c];
    return to;
}

static inline grq_table *test_table(const float *values, uint64_t n_rows, uint32_t row_dim)
{
    const void *const pieces[] = { values };
    const grq_table_layout layout = { .format = GRQ_ROWS_F32,
                                      .n_rows = n_rows,
                                      .row_dim = row_dim,
                                      .rows_per_piece = n_rows,
                                      .values = pieces,
                                      .name = "table" };
    grq_table *table = NULL;
    grq_error err = { 0 };
    assert_ok(grq_table_new(&layout, &table, &err), &err);
    return table;
}

/* A layer with weights of its own; test_layer_free ends it. */
typedef struct {
    grq_geometry geometry;
    grq_memory_layer view;
    grq_table *table;
    float *owned[9];
} test_layer;

static inline float *test_random(grq_rng *rng, size_t n, double scale)
{
    float *const out = malloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++) out[i] = (float)(scale * grq_rng_normal(rng));
    return out;
}

/* Random weights for memory layer `index` of a derived geometry. */
static inline void test_layer_random(test_layer *l, const grq_geometry *g, uint32_t index, grq_rng *rng)
{
    const size_t channels = (size_t)g->n_branches * g->width, in = g->row_values;
    *l = (test_layer){ .geometry = *g };
    float **o = l->owned;
    o[0] = test_random(rng, (size_t)g->n_rows[index] * g->row_dim, 1);
    o[1] = test_random(rng, channels * in, 1 / sqrt((double)in));
    o[2] = test_random(rng, g->width * in, 1 / sqrt((double)in));
    for (int i = 3; i < 6; i++) {
        o[i] = test_random(rng, channels, 0.3);
        for (size_t j = 0; j < channels; j++) o[i][j] += 1;
    }
    o[6] = test_random(rng, channels, 0.1);
    o[7] = test_random(rng, g->width, 0.1);
    o[8] = test_random(rng, channels * (g->conv_kernel ? g->conv_kernel : 1), 0.5);
    l->view = (grq_memory_layer){ .geometry = &l->geometry,
                                  .layer_index = index,
                                  .table = o[0],
                                  .key_weight = o[1],
                                  .value_weight = o[2],
                                  .query_gain = o[3],
                                  .key_gain = o[4],
                                  .key_bias = g->bias ? o[6] : NULL,
                                  .value_bias = g->bias ? o[7] : NULL,
                                  .conv_gain = g->conv_kernel ? o[5] : NULL,
                                  .conv_weight = g->conv_kernel ? o[8] : NULL };
    l->table = test_table(o[0], g->n_rows[index], g->row_dim);
}

static inline void test_layer_free(test_layer *l)
{
    grq_table_free(l->table);
    for (size_t i = 0; i < ARRAY_LEN(l->owned); i++) free(l->owned[i]);
}

#endif
