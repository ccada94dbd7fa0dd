/* gaterq bench layer: tokens per second of a whole memory layer, beside its two matrix products alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cpu/kernels.h"
#include "gaterq/blas.h"
#include "gaterq/layer.h"
#include "gaterq/rng.h"

/* DeepSeek-V4.1's layer with fewer rows: 0.6 GiB of FP8, beyond the caches. */
enum { PRIME_START = 100000, REPEATS = 3, N_IDS = 1 << 14 };
static const uint32_t batches[] = { 1, 16, 256 };
enum { LARGEST_BATCH = 256 };

typedef struct {
    grq_geometry geometry;
    grq_memory_layer layer;
    grq_table *table;
    grq_layer_state *state;
    uint8_t *codes, *scales;
    float *keys, *values, *gains; /* weights; both gains are ones */
    float *h, *e, *out;           /* streams, and the products' own input and output */
    int32_t *ids;                 /* (N_IDS) */
} bench;

static void bench_free(bench *b)
{
    grq_table_free(b->table);
    grq_layer_state_free(b->state);
    void *const owned[] = { b->codes, b->scales, b->keys, b->values, b->gains, b->h, b->e, b->out, b->ids };
    for (size_t i = 0; i < TOOL_COUNT(owned); i++) free(owned[i]);
}

/* Uniform in (-scale, scale), 4 values a draw: a gigabyte of normal ones would take longer than the measurement. */
static void fill(grq_rng *rng, float scale, size_t n, float *x)
{
    const float unit = 0x1p-15f * scale;
    for (size_t i = 0; i < n; i += 4) {
        uint64_t bits = grq_rng_next(rng);
        for (size_t j = i; j < n && j < i + 4; j++, bits >>= 16) x[j] = (float)(int16_t)bits * unit;
    }
}

static grq_status allocate(bench *b, grq_error *err)
{
    const grq_geometry *const g = &b->geometry;
    const size_t n_rows = g->n_rows[0], n_in = g->row_values, channels = (size_t)g->n_branches * g->width;
    b->codes = malloc(n_rows * g->row_dim);
    b->scales = malloc(n_rows * (g->row_dim / 32));
    b->keys = malloc(channels * n_in * sizeof *b->keys);
    b->values = malloc(g->width * n_in * sizeof *b->values);
    b->gains = malloc(channels * sizeof *b->gains);
    b->h = malloc(LARGEST_BATCH * channels * sizeof *b->h);
    b->e = malloc(LARGEST_BATCH * n_in * sizeof *b->e);
    b->out = malloc(LARGEST_BATCH * channels * sizeof *b->out);
    b->ids = malloc(N_IDS * sizeof *b->ids);
    if (b->codes && b->scales && b->keys && b->values && b->gains && b->h && b->e && b->out && b->ids) return GRQ_OK;
    return grq_fail(err, GRQ_E_NOMEM, "no memory for a layer of width %u: use a smaller --width", g->width);
}

static void fill_all(bench *b, uint64_t seed)
{
    const grq_geometry *const g = &b->geometry;
    const size_t n_codes = g->n_rows[0] * g->row_dim, channels = (size_t)g->n_branches * g->width;
    const float scale = 1.0f / 64;
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "bench layer");
    for (size_t i = 0; i < n_codes; i++) b->codes[i] = (uint8_t)(i * 2654435761u >> 13) & 0xBF; /* below 2, never NaN */
    memset(b->scales, 120, n_codes / 32);
    fill(&rng, scale, channels * g->row_values, b->keys);
    fill(&rng, scale, (size_t)g->width * g->row_values, b->values);
    fill(&rng, 1, LARGEST_BATCH * channels, b->h);
    fill(&rng, scale, (size_t)LARGEST_BATCH * g->row_values, b->e);
    for (size_t i = 0; i < channels; i++) b->gains[i] = 1;
    bench_text(seed, (uint32_t)g->n_ids, N_IDS, b->ids);
}

static grq_status bench_new(uint64_t seed, uint32_t width, bench *b, grq_error *err)
{
    grq_geometry *const g = &b->geometry;
    grq_status st = grq_geometry_family("deepseek-v41", g, err);
    if (st != GRQ_OK) return st;
    g->n_layers = 1;
    g->prime_start = PRIME_START;
    g->width = width;
    st = grq_geometry_derive(g, err);
    if (st == GRQ_OK) st = allocate(b, err);
    if (st != GRQ_OK) return st;
    fill_all(b, seed);
    b->layer = (grq_memory_layer){
        .geometry = g, .key_weight = b->keys, .value_weight = b->values, .query_gain = b->gains, .key_gain = b->gains
    };
    const void *const codes = b->codes, *const scales = b->scales;
    const grq_table_layout layout = { .format = GRQ_ROWS_F8_BLOCKS,
                                      .n_rows = g->n_rows[0],
                                      .row_dim = g->row_dim,
                                      .rows_per_piece = g->n_rows[0],
                                      .values = &codes,
                                      .scales = &scales,
                                      .name = "bench" };
    st = grq_table_new(&layout, &b->table, err);
    return st == GRQ_OK ? grq_layer_state_new(g, 0, &b->state, err) : st;
}

/* ---- measuring ---- */

typedef enum { PRODUCTS, FP32, REFERENCE, N_MEASURES } measure;

/* Keys and values of a batch, threads sharing the outputs. */
static void products_alone(bench *b, uint32_t batch, uint32_t n_threads)
{
    const size_t n_in = b->geometry.row_values;
    const size_t n_out[2] = { (size_t)b->geometry.n_branches * b->geometry.width, b->geometry.width };
    const float *const weights[2] = { b->keys, b->values };
    for (int k = 0; k < 2; k++)
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
        for (uint32_t i = 0; i < n_threads; i++) {
            const size_t first = n_out[k] * i / n_threads, n = n_out[k] * (i + 1) / n_threads - first;
            grq_sgemm(false, true, (int)batch, (int)n, (int)n_in, b->e, (int)n_in, weights[k] + first * n_in, (int)n_in,
                      0, b->out + first, (int)n_out[k]);
        }
}

static grq_status whole_layer(bench *b, grq_numerics numerics, uint32_t batch, uint32_t n_threads, size_t at,
                              grq_error *err)
{
    const grq_forward_options options = { .numerics = numerics, .n_threads = n_threads };
    const grq_segment segment = { b->state, batch };
    return grq_layer_forward(&b->layer, b->table, &options, 1, &segment, b->ids + at, b->h, NULL, err);
}

/* Tokens per second over at least one batch and `seconds`. */
static grq_status time_batches(bench *b, measure what, uint32_t batch, uint32_t n_threads, double seconds, double *rate,
                               grq_error *err)
{
    const double start = bench_now();
    grq_status st = GRQ_OK;
    uint64_t done = 0;
    double time;
    do {
        if (what == PRODUCTS) products_alone(b, batch, n_threads);
        else
            st = whole_layer(b, what == FP32 ? GRQ_NUMERICS_FP32 : GRQ_NUMERICS_REFERENCE, batch, n_threads,
                             done % N_IDS, err);
        done += batch;
        time = bench_now() - start;
    } while (st == GRQ_OK && time < seconds);
    *rate = (double)done / time;
    return st;
}

static grq_status measure_all(const tool_context *tool, bench *b, uint32_t batch, uint32_t n_threads, double seconds,
                              double best[N_MEASURES], grq_error *err)
{
    grq_status st = GRQ_OK;
    memset(best, 0, N_MEASURES * sizeof *best);
    for (uint64_t k = 0; st == GRQ_OK && k < REPEATS * N_MEASURES; k++) {
        double rate = 0;
        st = grq_progress_step(&tool->progress, "layer", k, REPEATS * N_MEASURES, "measurements", NULL, err);
        if (st == GRQ_OK)
            st = time_batches(b, (measure)(k % N_MEASURES), batch, n_threads, seconds / REPEATS, &rate, err);
        if (rate > best[k % N_MEASURES]) best[k % N_MEASURES] = rate;
    }
    return st;
}

static void show(tool_context *tool, uint32_t batch, uint32_t n_threads, double flops, const double best[N_MEASURES])
{
    grq_json_begin_object(tool->result, NULL);
    grq_json_put_u64(tool->result, "batch", batch);
    grq_json_put_u64(tool->result, "threads", n_threads);
    grq_json_put_f64(tool->result, "tokens_per_second", best[FP32]);
    grq_json_put_f64(tool->result, "reference_tokens_per_second", best[REFERENCE]);
    grq_json_put_f64(tool->result, "bound_tokens_per_second", best[PRODUCTS]);
    grq_json_put_f64(tool->result, "bound_gflops", 1e-9 * flops * best[PRODUCTS]);
    grq_json_put_f64(tool->result, "ratio", best[FP32] / best[PRODUCTS]);
    grq_json_put_f64(tool->result, "reference_ratio", best[REFERENCE] / best[PRODUCTS]);
    grq_json_end_object(tool->result);
    if (!tool->json)
        printf("%5u  %7u  %14.1f  %7.1f  %13.1f  %5.2f  %18.1f  %5.2f\n", batch, n_threads, best[PRODUCTS],
               1e-9 * flops * best[PRODUCTS], best[FP32], best[FP32] / best[PRODUCTS], best[REFERENCE],
               best[REFERENCE] / best[PRODUCTS]);
}

static grq_status bench_batches(tool_context *tool, double seconds, bench *b, grq_error *err)
{
    const double flops = 2.0 * b->geometry.row_values * (b->geometry.n_branches + 1.0) * b->geometry.width;
    grq_status st = GRQ_OK;
    grq_json_begin_array(tool->result, "runs");
    if (!tool->json)
        printf("A layer of DeepSeek-V4.1, width %u, %.3g MFLOP of products per token; %s kernels; best of %d\n"
               "%s\n"
               "batch  threads  BLAS: tokens/s  GFLOP/s  FP32 tokens/s  ratio  reference tokens/s  ratio\n",
               b->geometry.width, 1e-6 * flops, grq_cpu_kernels()->name, REPEATS, grq_blas_description());
    for (uint32_t n = 0; st == GRQ_OK && (n = bench_next_threads(tool, n)) > 0;)
        for (size_t i = 0; st == GRQ_OK && i < TOOL_COUNT(batches); i++) {
            double best[N_MEASURES];
            st = measure_all(tool, b, batches[i], n, seconds, best, err);
            if (st == GRQ_OK) show(tool, batches[i], n, flops, best);
        }
    grq_json_end_array(tool->result);
    if (st == GRQ_OK && !tool->json)
        printf(
            "BLAS: the products of keys and values alone. FP32: the whole layer through BLAS (hash, fetch from FP8,\n"
            "products, gates, injection). Reference: the same with rounding as the model's own code, and with "
            "products\n"
            "whose bits do not depend on the batch.\n");
    return st;
}

grq_status bench_layer(tool_context *tool, double seconds, uint32_t width, grq_error *err)
{
    bench b = { 0 };
    grq_status st = grq_blas_init(err);
    if (st == GRQ_OK) st = bench_new(tool->seed, width, &b, err);
    grq_json_put_u64(tool->result, "width", width);
    grq_json_put_string(tool->result, "kernels", grq_cpu_kernels()->name);
    if (st == GRQ_OK) grq_json_put_string(tool->result, "blas", grq_blas_description());
    if (st == GRQ_OK) st = bench_batches(tool, seconds, &b, err);
    bench_free(&b);
    return st;
}
