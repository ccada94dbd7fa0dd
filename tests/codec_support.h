/* tests/codec_support.h - what the tests of coded tables share. */
#ifndef GATERQ_TESTS_CODEC_SUPPORT_H
#define GATERQ_TESTS_CODEC_SUPPORT_H

#include "support.h"

#include "gaterq/codec.h"
#include "gaterq/distortion.h"
#include "gaterq/rng.h"

static grq_rng rng;

static inline uint32_t between(uint32_t low, uint32_t high)
{
    return low + (uint32_t)grq_rng_below(&rng, high - low + 1);
}

static inline float *gaussian_table(uint64_t n_rows, uint32_t row_dim, double spread)
{
    float *const table = malloc(n_rows * row_dim * sizeof *table);
    assert_non_null(table);
    for (uint64_t r = 0; r < n_rows; r++) {
        const double size = exp(spread * grq_rng_normal(&rng)); /* rows of very different lengths */
        for (uint32_t i = 0; i < row_dim; i++) table[r * row_dim + i] = (float)(size * grq_rng_normal(&rng));
    }
    return table;
}

static inline grq_codes *encode(const grq_encoder *encoder, const float *table, uint64_t n_rows, uint32_t row_dim,
                                uint32_t n_stages, uint32_t n_threads)
{
    static const grq_codes_origin origin = { "random", 14, "table.safetensors:rows", NULL };
    grq_error err = { 0 };
    grq_codes *codes = NULL;
    assert_ok(grq_codes_encode(encoder, table, n_rows, row_dim, n_stages, &origin, n_threads, NULL, &codes, &err),
              &err);
    return codes;
}

/* A table of floats in memory; the caller frees it before them. */
static inline grq_table *table_of(const float *values, uint64_t n_rows, uint32_t row_dim)
{
    const void *const pieces[] = { values };
    const grq_table_layout layout = { .format = GRQ_ROWS_F32,
                                      .n_rows = n_rows,
                                      .row_dim = row_dim,
                                      .rows_per_piece = n_rows,
                                      .values = pieces,
                                      .name = "table.safetensors:rows" };
    grq_error err = { 0 };
    grq_table *table = NULL;
    assert_ok(grq_table_new(&layout, &table, &err), &err);
    return table;
}

static inline grq_status distortion_of(const grq_codes *codes, const float *values, uint64_t n_rows, uint32_t row_dim,
                                       grq_distortion *out, grq_error *err)
{
    grq_table *const table = table_of(values, n_rows, row_dim);
    const grq_status st = grq_codes_distortion(codes, table, NULL, 2, NULL, out, err);
    grq_table_free(table);
    return st;
}

static inline char *file_bytes(const char *path, size_t *n)
{
    grq_error err = { 0 };
    char *bytes = NULL;
    assert_ok(grq_file_read(path, 0, &bytes, n, &err), &err);
    return bytes;
}

static inline const grq_encoder *encoder_named(const char *name)
{
    const grq_encoder *encoder = NULL;
    grq_error err = { 0 };
    assert_ok(grq_encoder_find(name, &encoder, &err), &err);
    return encoder;
}

#endif
