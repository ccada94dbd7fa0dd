/* One memory layer over a batch of sequences: hash, fetch, project, gate, convolve, inject.
 *
 * Rounding points (GRQ_NUMERICS_REFERENCE): DeepSeek-V4.1 as in specs/deepseek-v41-engram.md section 12, Qwen3.8 line
 * by line as in specs/qwen38-ple.md section 7, none otherwise. Work goes through the batch in blocks of tokens, so that
 * scratch memory does not grow with it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels.h"
#include "gaterq/blas.h"
#include "gaterq/layer.h"
#include "memory/layer_internal.h"
#include "memory/layer_state_internal.h"
#include "memory/mxfp8.h"
#include "memory/shard.h"
#include "shared/gate.h"
#include "shared/number.h"

enum { BLOCK_TOKENS = 256 };

typedef struct {
    const grq_memory_layer *layer;
    const grq_table *table;
    grq_forward_options options;
    const grq_kernels *kernels;
    grq_rounding rounding; /* in force: none in binary32 */
    size_t channels;       /* n_branches * width */
    int64_t *rows;         /* of the whole batch */
    /* scratch of a block */
    float *e, *keys, *values, *gates, *u, *c, *y;
    float *query, *key;        /* normalised, of one branch */
    grq_layer_state **working; /* per segment; becomes the caller's when all went well */
} forward;

static float bf16(float x)
{
    return grq_f32_from_bf16(grq_bf16_from_f32(x));
}

/* To BF16 where this family's reference rounds. */
static void round_all(const forward *f, size_t n, float *x)
{
    if (f->rounding != GRQ_ROUNDING_NONE) f->kernels->round_bf16(n, x);
}

/* ---- projections ---- */

/* Threads share tokens, or the outputs when there are fewer tokens than threads. */
static void project_exactly(const forward *f, size_t n_tokens, size_t n_out, const float *weight, const float *bias,
                            float *out)
{
    const size_t n_in = f->layer->geometry->row_values, n_threads = f->options.n_threads ? f->options.n_threads : 1;
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (size_t i = 0; i < n_threads; i++) {
        if (n_tokens >= n_threads) {
            const size_t first = n_tokens * i / n_threads, n = n_tokens * (i + 1) / n_threads - first;
            f->kernels->project(n, n_out, n_in, f->e + first * n_in, weight, bias, out + first * n_out);
            continue;
        }
        const size_t first = n_out * i / n_threads, n = n_out * (i + 1) / n_threads - first;
        for (size_t t = 0; t < n_tokens; t++)
            f->kernels->project(1, n, n_in, f->e + t * n_in, weight + first * n_in, bias ? bias + first : NULL,
                                out + t * n_out + first);
    }
}

/* Threads share the outputs, so that the weights are read once. */
static void project_by_blas(const forward *f, size_t n_tokens, size_t n_out, const float *weight, const float *bias,
                            float *out)
{
    const size_t n_in = f->layer->geometry->row_values, n_threads = f->options.n_threads ? f->options.n_threads : 1;
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (size_t i = 0; i < n_threads; i++) {
        const size_t first = n_out * i / n_threads, n = n_out * (i + 1) / n_threads - first;
        if (n)
            grq_sgemm(false, true, (int)n_tokens, (int)n, (int)n_in, f->e, (int)n_in, weight + first * n_in, (int)n_in,
                      0, out + first, (int)n_out);
    }
    for (size_t t = 0; bias && t < n_tokens; t++)
        for (size_t i = 0; i < n_out; i++) out[t * n_out + i] += bias[i];
}

/* So few tokens are a matrix times vectors, which is bound by reading the weights: our own loops read them once, and
 * OpenBLAS, which packs them first, is up to four times slower. */
enum { FEW_TOKENS = 8 };

static void project_block(const forward *f, size_t n_tokens)
{
    const grq_memory_layer *const l = f->layer;
    const size_t width = l->geometry->width;
    void (*const project)(const forward *, size_t, size_t, const float *, const float *, float *) =
        f->options.numerics == GRQ_NUMERICS_REFERENCE || n_tokens <= FEW_TOKENS ? project_exactly : project_by_blas;
    project(f, n_tokens, f->channels, l->key_weight, l->key_bias, f->keys);
    project(f, n_tokens, width, l->value_weight, l->value_bias, f->values);
    round_all(f, n_tokens * f->channels, f->keys);
    round_all(f, n_tokens * width, f->values);
}

/* What the projection reads: rows as the embedding's format holds them, then as the FP8 product takes them. */
static grq_status round_input(const forward *f, size_t n_tokens, grq_error *err)
{
    const size_t n = f->layer->geometry->row_values;
    round_all(f, n_tokens * n, f->e);
    if (f->rounding != GRQ_ROUNDING_DEEPSEEK_V41 || !f->options.round_input) return GRQ_OK;
    uint8_t *codes = malloc(n), *scales = malloc(n / GRQ_MXFP8_BLOCK + 1);
    const bool room = codes && scales;
    for (size_t t = 0; room && t < n_tokens; t++) {
        grq_mxfp8_quantise(f->e + t * n, n, codes, scales);
        grq_mxfp8_dequantise(codes, scales, n, f->e + t * n);
    }
    free(codes);
    free(scales);
    return room ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory to round a row of %zu values", n);
}

/* ---- gates ---- */

static float rms_factor(const forward *f, size_t n, const float *x, double eps)
{
    return 1 / sqrtf(f->kernels->sum_squares(n, x) / (float)n + (float)eps);
}

float grq_layer_gate_of_score_qwen38(const grq_geometry *g, float score)
{
    if (score == 0) return 0.5f;
    const float size = bf16(sqrtf(fabsf(score) < (float)g->gate_clamp ? (float)g->gate_clamp : fabsf(score)));
    return bf16(1 / (1 + grq_expf(-copysignf(size, score))));
}

/* Qwen3.8: every result is rounded to BF16 before it is used again. */
static float gate_qwen38(const forward *f, uint32_t branch, const float *h, const float *key)
{
    const grq_geometry *const g = f->layer->geometry;
    const grq_kernels *const k = f->kernels;
    const size_t d = g->width;
    k->normalise(d, key, rms_factor(f, d, key, g->norm_eps), f->layer->key_gain + branch * d, f->key);
    k->normalise(d, h, rms_factor(f, d, h, g->norm_eps), f->layer->query_gain + branch * d, f->query);
    k->round_bf16(d, f->key);
    k->round_bf16(d, f->query);
    k->multiply(d, f->key, f->query, f->key);
    k->round_bf16(d, f->key);
    return grq_layer_gate_of_score_qwen38(g, bf16(bf16(k->sum(d, f->key)) / sqrtf((float)d)));
}

static float gate_plain(const forward *f, uint32_t branch, const float *h, const float *key)
{
    const size_t d = f->layer->geometry->width;
    float sums[3];
    f->kernels->gate_sums((uint32_t)d, h, key, f->layer->query_gain + branch * d, f->layer->key_gain + branch * d,
                          sums);
    return grq_layer_gate_of_sums(f->layer->geometry, sums);
}

static void gates_of_token(const forward *f, const float *h, const float *keys, float *gates)
{
    const grq_geometry *const g = f->layer->geometry;
    for (uint32_t m = 0; m < g->n_branches; m++) {
        const size_t at = (size_t)m * g->width;
        gates[m] = f->rounding == GRQ_ROUNDING_QWEN38 ? gate_qwen38(f, m, h + at, keys + at)
                                                      : gate_plain(f, m, h + at, keys + at);
    }
}

/* ---- injection ---- */

/* u = gate * value, and without a convolution h += u. */
static void gate_value(const forward *f, const float *gates, const float *value, float *u)
{
    const grq_geometry *const g = f->layer->geometry;
    memset(u, 0, f->channels * sizeof *u);
    for (uint32_t m = 0; m < g->n_branches; m++) f->kernels->add_scaled(g->width, gates[m], value, u + m * g->width);
    if (f->rounding == GRQ_ROUNDING_QWEN38) f->kernels->round_bf16(f->channels, u);
}

/* The convolution's input of one token. */
static void norm_value(const forward *f, const float *u, float *c)
{
    const grq_geometry *const g = f->layer->geometry;
    for (uint32_t m = 0; m < g->n_branches; m++) {
        const size_t at = (size_t)m * g->width;
        f->kernels->normalise(g->width, u + at, rms_factor(f, g->width, u + at, g->conv_eps), f->layer->conv_gain + at,
                              c + at);
    }
    round_all(f, f->channels, c);
}

/* y of the token at `i` of a run, whose inputs are `c` (run, channels) and whose past `state` remembers. */
static void convolve(const forward *f, const grq_layer_state *state, const float *c, size_t i)
{
    const grq_geometry *const g = f->layer->geometry;
    const float *taps[GRQ_MAX_TAPS];
    for (uint32_t k = 0; k < g->conv_kernel; k++) {
        const size_t back = (size_t)(g->conv_kernel - 1 - k) * g->conv_dilation;
        taps[k] = back <= i ? c + (i - back) * f->channels : grq_layer_state_input(state, back - i);
    }
    f->kernels->convolve(f->channels, g->conv_kernel, taps, f->layer->conv_weight, f->y);
    round_all(f, f->channels, f->y);
}

/* h += u + silu(y), each rounded where the reference does. */
static void add_convolved(const forward *f, const float *u, float *h)
{
    float *const y = f->y;
    for (size_t j = 0; j < f->channels; j++) y[j] = y[j] * (1 / (1 + grq_expf(-y[j])));
    round_all(f, f->channels, y);
    for (size_t j = 0; j < f->channels; j++) y[j] = u[j] + y[j];
    round_all(f, f->channels, y);
    for (size_t j = 0; j < f->channels; j++) h[j] += y[j];
    round_all(f, f->channels, h);
}

static void inject_token(const forward *f, const float *gates, const float *value, float *h)
{
    const grq_geometry *const g = f->layer->geometry;
    for (uint32_t m = 0; m < g->n_branches; m++) f->kernels->add_scaled(g->width, gates[m], value, h + m * g->width);
    round_all(f, f->channels, h);
}

/* n tokens of one segment: `at` is the first one's place within the block, h and ids are theirs. */
static void finish_run(const forward *f, grq_layer_state *state, size_t at, size_t n, const int32_t *ids, float *h)
{
    const grq_geometry *const g = f->layer->geometry;
    float *const gates = f->gates + at * g->n_branches;
    const float *const values = f->values + at * g->width, *const keys = f->keys + at * f->channels;
    float *const u = f->u ? f->u + at * f->channels : NULL, *const c = f->c ? f->c + at * f->channels : NULL;
    for (size_t i = 0; i < n; i++) {
        float *const stream = h + i * f->channels;
        if (ids[i] == GRQ_DEAD) {
            memset(gates + i * g->n_branches, 0, g->n_branches * sizeof *gates);
            if (c) memset(u + i * f->channels, 0, f->channels * sizeof *u);
            if (c) memset(c + i * f->channels, 0, f->channels * sizeof *c);
            continue;
        }
        round_all(f, f->channels, stream); /* the reference's streams are BF16 */
        gates_of_token(f, stream, keys + i * f->channels, gates + i * g->n_branches);
        if (!c) {
            inject_token(f, gates + i * g->n_branches, values + i * g->width, stream);
            continue;
        }
        gate_value(f, gates + i * g->n_branches, values + i * g->width, u + i * f->channels);
        norm_value(f, u + i * f->channels, c + i * f->channels);
        convolve(f, state, c, i);
        add_convolved(f, u + i * f->channels, stream);
    }
    grq_layer_state_push(state, n, ids, c);
}

/* ---- the batch ---- */

static void forward_free(forward *f, size_t n_segments)
{
    for (size_t s = 0; f->working && s < n_segments; s++) grq_layer_state_free(f->working[s]);
    free(f->working);
    free(f->rows);
    float *const scratch[] = { f->e, f->keys, f->values, f->gates, f->u, f->c, f->y, f->query, f->key };
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++) free(scratch[i]);
}

static grq_status forward_new(forward *f, size_t n_segments, size_t n_tokens, grq_error *err)
{
    const grq_geometry *const g = f->layer->geometry;
    const size_t block = n_tokens < BLOCK_TOKENS ? n_tokens : BLOCK_TOKENS;
    f->rows = malloc(n_tokens * g->n_columns * sizeof *f->rows);
    f->e = malloc(block * g->row_values * sizeof *f->e);
    f->keys = malloc(block * f->channels * sizeof *f->keys);
    f->values = malloc(block * g->width * sizeof *f->values);
    f->gates = malloc(block * g->n_branches * sizeof *f->gates);
    f->query = malloc(g->width * sizeof *f->query);
    f->key = malloc(g->width * sizeof *f->key);
    f->working = calloc(n_segments, sizeof(grq_layer_state *));
    bool room = f->rows && f->e && f->keys && f->values && f->gates && f->query && f->key && f->working;
    if (g->conv_kernel) {
        f->u = malloc(block * f->channels * sizeof *f->u);
        f->c = malloc(block * f->channels * sizeof *f->c);
        f->y = malloc(f->channels * sizeof *f->y);
        room = room && f->u && f->c && f->y;
    }
    return room ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for a batch of %zu tokens", n_tokens);
}

static grq_status hash_segment(const forward *f, const grq_segment *segment, size_t first, const int32_t *ids,
                               grq_error *err)
{
    const grq_geometry *const g = f->layer->geometry;
    grq_hash_state state;
    grq_layer_state_hash(segment->state, &state);
    return grq_hash_rows(g, f->layer->layer_index, &state, ids + first, segment->n_tokens,
                         f->rows + first * g->n_columns, err);
}

static grq_status forward_block(const forward *f, size_t first, size_t n, grq_error *err)
{
    const grq_geometry *const g = f->layer->geometry;
    grq_status st = grq_table_fetch_sharded(f->table, f->options.n_shards ? f->options.n_shards : 1, n, g->n_columns,
                                            f->rows + first * g->n_columns, f->e, err);
    if (st == GRQ_OK) st = round_input(f, n, err);
    if (st == GRQ_OK) project_block(f, n);
    return st;
}

static grq_status run_segments(const forward *f, size_t n_segments, const grq_segment *segments, size_t n_tokens,
                               const int32_t *ids, float *h, float *gates, grq_error *err)
{
    const uint32_t n_branches = f->layer->geometry->n_branches;
    size_t segment = 0, done = 0; /* of that segment */
    for (size_t first = 0; first < n_tokens; first += BLOCK_TOKENS) {
        const size_t n = n_tokens - first < BLOCK_TOKENS ? n_tokens - first : BLOCK_TOKENS;
        const grq_status st = forward_block(f, first, n, err);
        if (st != GRQ_OK) return st;
        for (size_t at = 0; at < n;) {
            while (segment < n_segments && done == segments[segment].n_tokens) {
                segment++;
                done = 0;
            }
            const size_t left = segments[segment].n_tokens - done, run = left < n - at ? left : n - at;
            finish_run(f, f->working[segment], at, run, ids + first + at, h + (first + at) * f->channels);
            done += run;
            at += run;
        }
        if (gates) memcpy(gates + first * n_branches, f->gates, n * n_branches * sizeof *gates);
    }
    return GRQ_OK;
}

grq_status grq_layer_forward(const grq_memory_layer *layer, const grq_table *table, const grq_forward_options *options,
                             size_t n_segments, const grq_segment *segments, const int32_t *ids, float *h, float *gates,
                             grq_error *err)
{
    const grq_geometry *const g = layer->geometry;
    if (grq_table_n_rows(table) != g->n_rows[layer->layer_index] || grq_table_row_dim(table) != g->row_dim)
        return grq_fail(err, GRQ_E_DATA, "%s: %" PRIu64 " rows of %u values; layer %u has %" PRIu64 " of %u",
                        grq_table_name(table), grq_table_n_rows(table), grq_table_row_dim(table),
                        g->layer_ids[layer->layer_index], g->n_rows[layer->layer_index], g->row_dim);
    size_t n_tokens = 0;
    for (size_t s = 0; s < n_segments; s++) n_tokens += segments[s].n_tokens;
    if (n_tokens == 0) return GRQ_OK;
    forward f = { .layer = layer,
                  .table = table,
                  .options = *options,
                  .kernels = grq_cpu_kernels(),
                  .rounding = options->numerics == GRQ_NUMERICS_REFERENCE ? g->rounding : GRQ_ROUNDING_NONE,
                  .channels = (size_t)g->n_branches * g->width };
    grq_status st = forward_new(&f, n_segments, n_tokens, err);
    for (size_t s = 0, first = 0; st == GRQ_OK && s < n_segments; first += segments[s++].n_tokens) {
        st = hash_segment(&f, &segments[s], first, ids, err);
        if (st == GRQ_OK) st = grq_layer_state_clone(segments[s].state, &f.working[s], err);
        if (st != GRQ_OK && n_segments > 1) grq_fail_prefix(err, st, "sequence %zu", s);
    }
    if (st == GRQ_OK) st = run_segments(&f, n_segments, segments, n_tokens, ids, h, gates, err);
    for (size_t s = 0; st == GRQ_OK && s < n_segments; s++)
        st = grq_layer_state_copy(segments[s].state, f.working[s], err);
    forward_free(&f, n_segments);
    return st;
}
