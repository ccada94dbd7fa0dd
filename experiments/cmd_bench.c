/* gaterq bench: throughput beside its bound, measured in one run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "gaterq/blas.h"
#include "gaterq/rng.h"
#include "gaterq/train.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the recipe's model (specs/miniature.md) on tokens without meaning ---- */

enum { VOCABULARY = 963, BENCH_BATCH = 24, BENCH_WINDOW = 64, BENCH_SHARDS = 4, PART_TOKENS = 192 };

static grq_status recipe_shape(grq_model_shape *shape, grq_error *err)
{
    *shape = (grq_model_shape){
        .vocab_size = VOCABULARY, .width = 64, .n_blocks = 4, .n_heads = 4, .mlp_width = 192, .norm_eps = 1e-6,
        .memory = { .family = "miniature", .n_layers = 2, .layer_ids = { 1, 2 }, .min_order = 2, .max_order = 4, .n_heads = 2, .row_dim = 32,
                    .width = 64, .n_branches = 4, .prime_start = 8192, .n_ids = VOCABULARY, .pad_id = 0, .multiplier_seed = 10007,
                    .norm_eps = 1e-6, .gate_clamp = 1e-6 },
    };
    return grq_geometry_derive(&shape->memory, err);
}

static grq_train_config recipe_config(uint64_t n_steps)
{
    return (grq_train_config){ .n_tokens = n_steps * BENCH_BATCH * BENCH_WINDOW, .batch = BENCH_BATCH, .window = BENCH_WINDOW,
                               .n_shards = BENCH_SHARDS, .learning_rate = 3e-3, .table_rate_factor = 5, .weight_decay = 0.1, .beta1 = 0.9,
                               .beta2 = 0.95, .clip = 1, .warmup_steps = 100, .gate_cost = 0.03, .gate_cost_ramp = 0.2 };
}

/* Zipf-like ids, so that some rows are hot and some are cold, as in text. */
static int32_t *make_text(uint64_t n, uint64_t seed)
{
    int32_t *text = malloc(n * sizeof *text);
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "bench text");
    for (uint64_t i = 0; text && i < n; i++) text[i] = (int32_t)(pow(VOCABULARY, grq_rng_uniform(&rng)) - 1) % VOCABULARY;
    return text;
}

static grq_status train_rate(const grq_model_shape *shape, uint64_t n_steps, uint32_t n_threads, uint64_t seed,
                             const grq_progress *progress, double *tokens_per_second, grq_error *err)
{
    const grq_train_config config = recipe_config(n_steps);
    grq_model *model = NULL;
    grq_train_result result;
    int32_t *text = make_text(config.n_tokens + 1, seed);
    grq_status st = text ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for %" PRIu64 " tokens", config.n_tokens);
    if (st == GRQ_OK) st = grq_model_new(shape, NULL, seed, &model, err);
    if (st == GRQ_OK) st = grq_train(model, &config, text, seed, n_threads, NULL, 1e9, progress, &result, err);
    if (st == GRQ_OK) *tokens_per_second = (double)result.n_tokens / result.seconds;
    grq_model_free(model);
    free(text);
    return st;
}

/* ---- the bound: the same matrix products and nothing else ---- */

typedef struct {
    int out, in, count; /* y (n, out) = x (n, in) W^T, so many times per token */
} projection;

enum { MAX_PROJECTIONS = 8 };

static size_t list_projections(const grq_model_shape *s, projection out[MAX_PROJECTIONS])
{
    const int d = (int)s->width, blocks = (int)s->n_blocks, mlp = (int)s->mlp_width;
    const projection all[] = {
        { 3 * d, d, blocks }, { d, d, blocks }, { mlp, d, blocks }, { d, mlp, blocks }, { (int)s->vocab_size, d, 1 },
        { (int)(s->memory.n_branches + 1) * d, (int)s->memory.row_values, (int)s->memory.n_layers },
    };
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof *all;
}

/* Forward, gradient of the input, gradient of the weights: three products of 2 n out in operations each. */
static void run_projection(const projection *p, int n, const float *x, const float *w, float *y, float *dx, float *dw)
{
    grq_sgemm(false, true, n, p->out, p->in, x, p->in, w, p->in, 0, y, p->out);
    grq_sgemm(false, false, n, p->in, p->out, y, p->out, w, p->in, 0, dx, p->in);
    grq_sgemm(true, false, p->out, p->in, n, y, p->out, x, p->in, 1, dw, p->in);
}

/* Seconds per token of the model's matrix products on one thread: the fastest of several rounds. */
static grq_status gemm_seconds(const grq_model_shape *shape, double *seconds, double *operations, grq_error *err)
{
    projection list[MAX_PROJECTIONS];
    const size_t n_projections = list_projections(shape, list), room = (size_t)1 << 19;
    float *memory = calloc(5 * room, sizeof *memory);
    if (!memory) return grq_fail(err, GRQ_E_NOMEM, "no memory for matrix products");
    *seconds = *operations = 0;
    for (size_t i = 0; i < n_projections; i++) {
        double best = INFINITY;
        for (int round = 0; round < 7; round++) {
            const double started = now();
            for (int k = 0; k < 20; k++)
                run_projection(&list[i], PART_TOKENS, memory, memory + room, memory + 2 * room, memory + 3 * room, memory + 4 * room);
            best = fmin(best, (now() - started) / 20);
        }
        *seconds += list[i].count * best / PART_TOKENS;
        *operations += list[i].count * 3 * 2.0 * list[i].out * list[i].in;
    }
    free(memory);
    return GRQ_OK;
}

/* ---- gaterq bench train ---- */

static grq_status bench_train(tool_context *tool, double seconds, grq_error *err)
{
    grq_model_shape shape;
    double gemm = 0, operations = 0, probe = 0, rate[2] = { 0 };
    const uint32_t threads[2] = { 1, tool->n_threads };
    grq_status st = grq_blas_init(err);
    if (st == GRQ_OK) st = recipe_shape(&shape, err);
    if (st == GRQ_OK) st = train_rate(&shape, 8, 1, tool->seed, NULL, &probe, err);
    const double steps = probe * seconds / (BENCH_BATCH * BENCH_WINDOW);
    for (int i = 0; st == GRQ_OK && i < (threads[1] > 1 ? 2 : 1); i++)
        st = train_rate(&shape, (uint64_t)fmax(8, steps * threads[i]), threads[i], tool->seed, &tool->progress, &rate[i], err);
    if (st == GRQ_OK) st = gemm_seconds(&shape, &gemm, &operations, err);
    if (st != GRQ_OK) return st;
    grq_json_put_string(tool->result, "blas", grq_blas_description());
    grq_json_put_f64(tool->result, "tokens_per_second_1_thread", rate[0]);
    if (threads[1] > 1) grq_json_put_f64(tool->result, "tokens_per_second", rate[1]);
    grq_json_put_u64(tool->result, "threads", threads[1]);
    grq_json_put_f64(tool->result, "sgemm_bound_tokens_per_second_1_thread", 1 / gemm);
    grq_json_put_f64(tool->result, "sgemm_gflops_1_thread", operations / gemm * 1e-9);
    grq_json_put_f64(tool->result, "matrix_operations_per_token", operations);
    grq_json_put_f64(tool->result, "share_of_bound_1_thread", rate[0] * gemm);
    if (tool->json) return GRQ_OK;
    printf("training the recipe's model: %.3g matrix operations per token\n%s\n", operations, grq_blas_description());
    printf("%-28s %9.0f tokens/s\n", "1 thread", rate[0]);
    if (threads[1] > 1) printf("%-2u %-25s %9.0f tokens/s, %.2f times one thread\n", threads[1], "threads", rate[1], rate[1] / rate[0]);
    printf("%-28s %9.0f tokens/s at %.1f GFLOP/s: 1 thread reaches %.0f %% of it\n", "its matrix products alone", 1 / gemm,
           operations / gemm * 1e-9, 100 * rate[0] * gemm);
    return GRQ_OK;
}

grq_status cmd_bench(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *name[1] = { NULL };
    double seconds = 8;
    const tool_option options[] = {
        { "seconds", "S", "measure for about S seconds each [8]", TOOL_F64, &seconds, false, 0.5, 600 },
    };
    const tool_command command = {
        .name = "bench", .usage = "train [--seconds S]", .summary = "Throughput beside its bound, measured in one run.",
        .details = "train   tokens per second of the miniature's trainer, beside its matrix products alone\n"
                   "Example: gaterq bench train --threads 2", .options = options, .n_options = TOOL_COUNT(options), .positionals = name,
        .min_positionals = 1, .max_positionals = 1,
    };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if (!strcmp(name[0], "train")) return bench_train(tool, seconds, err);
    return grq_fail(err, GRQ_E_USAGE, "there is no bench \"%s\"; known: train", name[0]);
}
