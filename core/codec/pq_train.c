/* Training a book: Lloyd's iterations over what the stages have to code. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec_internal.h"
#include "gaterq/pq_book.h"
#include "gaterq/rng.h"

/* Rounds of drawing residuals anew with the book so far, and iterations in each. */
enum { ROUNDS = 3, ITERATIONS = 10, LARGEST = 127 };

/* Sampled rows, and what is left of them before each stage, in units of 1/32 of its root mean square. */
typedef struct {
    uint64_t n_rows;
    uint32_t row_dim, n_stages, n_subvectors; /* of a row */
    float *rows;                              /* (n_rows, row_dim) */
    float *q;                                 /* (n_rows, n_stages, row_dim) */
    double *weight;                           /* (n_rows) */
    uint8_t *code;                            /* (n_rows, n_stages, n_subvectors) */
    uint32_t n_threads;
} sample;

static grq_status sample_new(const grq_table *table, uint64_t n_sample, const double *weights, uint32_t n_stages,
                             uint64_t seed, sample *s, grq_error *err)
{
    const uint64_t n_table = grq_table_n_rows(table);
    const bool all = n_sample >= n_table;
    s->n_rows = all ? n_table : n_sample;
    s->row_dim = grq_table_row_dim(table);
    s->n_stages = n_stages;
    s->n_subvectors = s->row_dim / GRQ_PQ_DIM;
    const size_t n_values = s->n_rows * s->row_dim;
    int64_t *const numbers = malloc(s->n_rows * sizeof *numbers);
    s->rows = malloc(n_values * sizeof *s->rows);
    s->q = malloc(n_values * n_stages * sizeof *s->q);
    s->weight = malloc(s->n_rows * sizeof *s->weight);
    s->code = malloc(n_values / GRQ_PQ_DIM * n_stages);
    grq_status st = numbers && s->rows && s->q && s->weight && s->code
                        ? GRQ_OK
                        : grq_fail(err, GRQ_E_NOMEM, "no memory for a sample of %" PRIu64 " rows", s->n_rows);
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "pq book");
    for (uint64_t i = 0; st == GRQ_OK && i < s->n_rows; i++) {
        numbers[i] = (int64_t)(all ? i : grq_rng_below(&rng, n_table));
        s->weight[i] = weights ? weights[numbers[i]] : 1;
        if (!(s->weight[i] >= 0 && isfinite(s->weight[i])))
            st = grq_fail(err, GRQ_E_DATA, "the weight of row %" PRId64 " is %g", numbers[i], s->weight[i]);
    }
    if (st == GRQ_OK) st = grq_table_fetch(table, s->n_rows, 1, numbers, s->rows, err);
    free(numbers);
    return st;
}

static void sample_free(sample *s)
{
    free(s->rows);
    free(s->q);
    free(s->weight);
    free(s->code);
}

/* Codes a row with the book so far, and notes what each stage found. */
static grq_status residuals_of_row(sample *s, const grq_encoder *encoder, uint64_t i, float *left, uint8_t *codes,
                                   grq_error *err)
{
    const uint32_t n = s->row_dim;
    const float *const row = s->rows + i * n;
    uint16_t side[GRQ_MAX_STAGES];
    const uint8_t *code[GRQ_MAX_STAGES];
    for (uint32_t k = 0; k < s->n_stages; k++) code[k] = codes + k * s->n_subvectors;
    const grq_status st = encoder->encode_row(encoder, row, n, s->n_stages, codes, side, err);
    for (uint32_t k = 0; st == GRQ_OK && k < s->n_stages; k++) {
        double energy = 0;
        if (k) encoder->decode_row(encoder, code, side, n, k, left);
        for (uint32_t j = 0; j < n; j++) left[j] = k ? row[j] - left[j] : row[j];
        for (uint32_t j = 0; j < n; j++) energy += (double)left[j] * left[j];
        const float units = energy > 0 ? (float)(32 / sqrt(energy / n)) : 0;
        grq_pq_quantise(left, n, isfinite(units) ? units : 0, s->q + (i * s->n_stages + k) * n);
    }
    return st;
}

static grq_status draw_residuals(sample *s, const grq_encoder *encoder, grq_error *err)
{
    grq_error failure = { .status = GRQ_OK };
#pragma omp parallel num_threads(s->n_threads)
    {
        float *const left = malloc(s->row_dim * sizeof *left);
        uint8_t *const codes = malloc((size_t)s->n_stages * s->n_subvectors);
#pragma omp for schedule(static)
        for (uint64_t i = 0; i < s->n_rows; i++) {
            grq_error own = { .status = GRQ_OK };
            const grq_status st = left && codes ? residuals_of_row(s, encoder, i, left, codes, &own)
                                                : grq_fail(&own, GRQ_E_NOMEM, "no memory for a row");
#pragma omp critical(grq_pq_train)
            if (st != GRQ_OK && failure.status == GRQ_OK) failure = own;
        }
        free(left);
        free(codes);
    }
    return failure.status == GRQ_OK ? GRQ_OK : grq_fail(err, failure.status, "%s", failure.message);
}

/* Each vector becomes the weighted mean of what is nearest to it. A vector that nothing is near stays. Sums go over
 * rows in order, so that threads change nothing. */
static void iterate(sample *s, grq_pq_book *book, const grq_pq_coding *coding)
{
    static const double NOTHING[GRQ_PQ_DIM];
    double sum[GRQ_PQ_ENTRIES][GRQ_PQ_DIM], weight[GRQ_PQ_ENTRIES] = { 0 };
    const uint32_t per_row = s->n_stages * s->n_subvectors;
    for (uint32_t z = 0; z < GRQ_PQ_ENTRIES; z++) memcpy(sum[z], NOTHING, sizeof NOTHING);
#pragma omp parallel for num_threads(s->n_threads) schedule(static)
    for (uint64_t i = 0; i < s->n_rows; i++)
        grq_pq_nearest(coding, s->q + i * per_row * GRQ_PQ_DIM, per_row, s->code + i * per_row);
    for (uint64_t i = 0; i < s->n_rows; i++)
        for (uint32_t v = 0; v < per_row; v++) {
            const float *const q = s->q + (i * per_row + v) * GRQ_PQ_DIM;
            const uint8_t z = s->code[i * per_row + v];
            weight[z] += s->weight[i];
            for (uint32_t t = 0; t < GRQ_PQ_DIM; t++) sum[z][t] += s->weight[i] * q[t];
        }
    for (uint32_t z = 0; z < GRQ_PQ_ENTRIES; z++)
        for (uint32_t t = 0; weight[z] > 0 && t < GRQ_PQ_DIM; t++) {
            const double mean = rint(sum[z][t] / weight[z]);
            book->vector[z][t] = (int8_t)(mean < -LARGEST ? -LARGEST : mean > LARGEST ? LARGEST : mean);
        }
}

static grq_status train(sample *s, const grq_progress *progress, grq_pq_book *book, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (uint32_t i = 0; st == GRQ_OK && i < ROUNDS * ITERATIONS; i++) {
        grq_encoder *encoder;
        st = grq_pq_encoder_new(book, &encoder, err);
        if (st == GRQ_OK && i % ITERATIONS == 0) st = draw_residuals(s, encoder, err);
        if (st == GRQ_OK) iterate(s, book, encoder->detail);
        if (st == GRQ_OK)
            st = grq_progress_step(progress, "train a book", i + 1, ROUNDS * ITERATIONS, "rounds", NULL, err);
        grq_pq_encoder_free(encoder);
    }
    return st;
}

grq_status grq_pq_train(const grq_table *table, uint64_t n_sample, const double *weights, uint32_t n_stages,
                        uint64_t seed, uint32_t n_threads, const grq_progress *progress, grq_pq_book *out,
                        grq_error *err)
{
    sample s = { .n_threads = n_threads ? n_threads : 1 };
    if (grq_table_row_dim(table) % GRQ_PQ_DIM || n_stages < 1 || n_stages > GRQ_MAX_STAGES || n_sample == 0)
        return grq_fail(err, GRQ_E_USAGE, "a book for %u stages of rows of %u values, from %" PRIu64 " rows", n_stages,
                        grq_table_row_dim(table), n_sample);
    *out = *grq_pq_book_e8();
    snprintf(out->id, sizeof out->id, "trained");
    grq_status st = sample_new(table, n_sample, weights, n_stages, seed, &s, err);
    if (st == GRQ_OK) st = train(&s, progress, out, err);
    out->crc32 = grq_pq_crc32(out->vector);
    sample_free(&s);
    return st;
}
