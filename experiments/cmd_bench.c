/* gaterq bench: throughput beside its bound, both measured in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench.h"
#include "bench_codec.h"
#include "commands.h"
#include "gaterq/blas.h"
#include "gaterq/rng.h"
#include "gaterq/train.h"

/* The recipe of the miniature: the model and the batch that the speeds in docs/ and README speak of. */
static const uint32_t VOCAB_SIZE = 963;
static const grq_train_config RECIPE = {
    .n_tokens = 4000000,
    .batch = 24,
    .window = 64,
    .n_shards = 4,
    .learning_rate = 3e-3,
    .table_rate_factor = 5,
    .weight_decay = 0.1,
    .beta1 = 0.9,
    .beta2 = 0.95,
    .clip = 1,
    .warmup_steps = 100,
    .gate_cost = 0.03,
    .gate_cost_ramp = 0.2,
};

static grq_status recipe_shape(grq_model_shape *out, grq_error *err)
{
    *out = (grq_model_shape){
        .vocab_size = VOCAB_SIZE,
        .width = 64,
        .n_blocks = 4,
        .n_heads = 4,
        .mlp_width = 192,
        .norm_eps = 1e-6,
        .memory = { .family = "miniature",
                    .n_layers = 2,
                    .layer_ids = { 1, 2 },
                    .min_order = 2,
                    .max_order = 4,
                    .n_heads = 2,
                    .row_dim = 32,
                    .width = 64,
                    .n_branches = 4,
                    .prime_start = 8192,
                    .n_ids = VOCAB_SIZE,
                    .pad_id = 0,
                    .multiplier_seed = 10007,
                    .norm_eps = 1e-6,
                    .gate_clamp = 1e-6 },
    };
    return grq_geometry_derive(&out->memory, err);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* User time of all threads: what the work costs, also on a machine that others use. */
static double cpu_now(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)r.ru_utime.tv_sec + 1e-6 * (double)r.ru_utime.tv_usec;
}

/* The trainer asks after every step whether to stop; that is where time is taken. The first steps touch fresh memory
 * and are left out. */
typedef struct {
    const tool_context *tool;
    double seconds, wall[2], cpu[2]; /* at the first counted step and now */
    uint64_t asked;
    bool interrupted;
} stopwatch;

enum { LEFT_OUT = 3 };

static int time_step(void *context)
{
    stopwatch *w = context;
    w->wall[1] = now();
    w->cpu[1] = cpu_now();
    if (++w->asked <= LEFT_OUT) {
        w->wall[0] = w->wall[1];
        w->cpu[0] = w->cpu[1];
    }
    const grq_progress *p = &w->tool->progress;
    w->interrupted = p->stop_requested && p->stop_requested(p->context);
    return w->interrupted || (w->asked > LEFT_OUT && w->wall[1] - w->wall[0] >= w->seconds);
}

typedef struct {
    double tokens_per_second, cpu_seconds_per_token, bound_tokens_per_second;
    double flops_per_token;
} train_speed;

static grq_status time_training(const stopwatch *given, const int32_t *text, uint32_t n_threads, train_speed *out,
                                grq_error *err)
{
    stopwatch watch = *given;
    const grq_progress progress = { .stop_requested = time_step, .context = &watch };
    grq_model_shape shape;
    grq_model *model = NULL;
    grq_train_result result;
    grq_status st = recipe_shape(&shape, err);
    if (st == GRQ_OK) st = grq_model_new(&shape, NULL, 1, &model, err);
    if (st == GRQ_OK) st = grq_train(model, &RECIPE, text, 1, n_threads, NULL, 0, &progress, &result, err);
    grq_model_free(model);
    if (st == GRQ_E_INTERRUPTED && !watch.interrupted) st = GRQ_OK; /* the time was up */
    if (st != GRQ_OK) return st;
    const double tokens = (double)(watch.asked - LEFT_OUT) * RECIPE.batch * RECIPE.window;
    out->tokens_per_second = tokens / (watch.wall[1] - watch.wall[0]);
    out->cpu_seconds_per_token = (watch.cpu[1] - watch.cpu[0]) / tokens;
    return GRQ_OK;
}

/* The bound is taken before and after, so that a change of the machine's load meets both. */
static grq_status measure(const stopwatch *watch, const int32_t *text, uint32_t n_threads, train_speed *out,
                          grq_error *err)
{
    grq_model_shape shape;
    grq_train_bound before, after;
    grq_status st = recipe_shape(&shape, err);
    if (st == GRQ_OK) st = grq_train_bound_measure(&shape, &RECIPE, n_threads, watch->seconds / 4, &before, err);
    if (st == GRQ_OK) st = time_training(watch, text, n_threads, out, err);
    if (st == GRQ_OK) st = grq_train_bound_measure(&shape, &RECIPE, n_threads, watch->seconds / 4, &after, err);
    if (st != GRQ_OK) return st;
    out->bound_tokens_per_second = 2 * n_threads / (before.seconds_per_token + after.seconds_per_token);
    out->flops_per_token = before.flops_per_token;
    return GRQ_OK;
}

static void show(tool_context *tool, uint32_t n_threads, const train_speed *s)
{
    const double ratio = s->tokens_per_second / s->bound_tokens_per_second;
    const double gflops = s->tokens_per_second * s->flops_per_token * 1e-9;
    const double bound_gflops = s->bound_tokens_per_second * s->flops_per_token * 1e-9;
    grq_json_begin_object(tool->result, NULL);
    grq_json_put_u64(tool->result, "threads", n_threads);
    grq_json_put_f64(tool->result, "tokens_per_second", s->tokens_per_second);
    grq_json_put_f64(tool->result, "cpu_us_per_token", 1e6 * s->cpu_seconds_per_token);
    grq_json_put_f64(tool->result, "gflops", gflops);
    grq_json_put_f64(tool->result, "bound_tokens_per_second", s->bound_tokens_per_second);
    grq_json_put_f64(tool->result, "bound_gflops", bound_gflops);
    grq_json_put_f64(tool->result, "ratio", ratio);
    grq_json_end_object(tool->result);
    if (!tool->json)
        printf("%7u  %9.0f  %12.1f  %7.1f  %19.0f  %7.1f  %5.2f\n", n_threads, s->tokens_per_second,
               1e6 * s->cpu_seconds_per_token, gflops, s->bound_tokens_per_second, bound_gflops, ratio);
}

/* Skewed like words, and with enough repetition that the tables are read as in a real training. */
static int32_t *make_text(size_t n, uint64_t seed)
{
    int32_t *text = malloc(n * sizeof *text);
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "bench");
    for (size_t i = 0; text && i < n; i++) {
        const double u = grq_rng_uniform(&rng);
        const bool follows = i >= 2 && grq_rng_below(&rng, 4) > 0;
        text[i] = follows ? (text[i - 1] * 31 + text[i - 2] * 7 + (int32_t)(4 * u)) % (int32_t)VOCAB_SIZE
                          : (int32_t)(u * u * u * VOCAB_SIZE);
    }
    return text;
}

static grq_status bench_train(tool_context *tool, double seconds, grq_error *err)
{
    grq_status st = grq_blas_init(err);
    if (st != GRQ_OK) return st;
    int32_t *text = make_text(RECIPE.n_tokens + 1, tool->seed);
    if (!text) return grq_fail(err, GRQ_E_NOMEM, "bench: no memory for the text");
    train_speed speed = { 0 };
    const stopwatch watch = { .tool = tool, .seconds = seconds };
    grq_json_put_string(tool->result, "blas", grq_blas_description());
    grq_json_begin_array(tool->result, "runs");
    if (!tool->json)
        printf("Training the recipe's model; %s\n"
               "threads   tokens/s  CPU us/token  GFLOP/s  BLAS alone tokens/s  GFLOP/s  ratio\n",
               grq_blas_description());
    for (uint32_t n = 1; n <= tool->n_threads && st == GRQ_OK; n = n < tool->n_threads ? tool->n_threads : n + 1) {
        st = measure(&watch, text, n, &speed, err);
        if (st == GRQ_OK) show(tool, n, &speed);
    }
    grq_json_end_array(tool->result);
    grq_json_put_f64(tool->result, "flops_per_token", speed.flops_per_token);
    if (st == GRQ_OK && !tool->json)
        printf("%.3g MFLOP of matrix products per token. \"BLAS alone\" is a step of nothing but them.\n",
               1e-6 * speed.flops_per_token);
    free(text);
    return st;
}

grq_status cmd_bench(tool_context *tool, int argc, char **argv, grq_error *err)
{
    double seconds = 5, gib = 4;
    uint64_t width = 5120;
    const char *positionals[1] = { NULL };
    const tool_option options[] = {
        { "seconds", "N", "seconds per figure, and half as many for the bound of train [5]", TOOL_F64, &seconds, false,
          0.1, 3600 },
        { "gib", "N", "lookup: GiB of each table [4]", TOOL_F64, &gib, false, 0.01, 200 },
        { "width", "N", "layer: values of a residual stream; less needs less memory [5120]", TOOL_U64, &width, false,
          16, 65536 },
    };
    const tool_command command = {
        .name = "bench",
        .usage = "(train | lookup | layer | encode | decode | score | compare) [--seconds N]",
        .summary = "Throughput beside its bound, measured in one run.",
        .details =
            "train: training tokens per second of the recipe's miniature, on one thread and on --threads, beside what\n"
            "its matrix products alone would allow on this machine.\n"
            "lookup: rows per second from tables of --gib, beside random reads of the same memory.\n"
            "layer: tokens per second of a memory layer of DeepSeek-V4.1, beside its matrix products alone.\n"
            "encode: time to code a row by each encoder, and hours for the released tables on 64 cores.\n"
            "decode: time to decode a row at each depth from the cache, beside copying a row.\n"
            "score: milliseconds to score PopQA's 14,267 items by each matching rule, beside a plain search.\n"
            "compare: seconds of the paired tests of 144 comparisons, beside a bootstrap item by item.\n"
            "Example: gaterq bench train --seconds 10",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = positionals,
        .min_positionals = 1,
        .max_positionals = 1,
    };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if (!strcmp(positionals[0], "encode")) return bench_encode(tool, seconds, err);
    if (!strcmp(positionals[0], "decode")) return bench_decode(tool, seconds, err);
    if (!strcmp(positionals[0], "lookup")) return bench_lookup(tool, seconds, gib, err);
    if (!strcmp(positionals[0], "score")) return bench_score(tool, seconds, err);
    if (!strcmp(positionals[0], "compare")) return bench_compare(tool, err);
    if (!strcmp(positionals[0], "layer")) return bench_layer(tool, seconds, (uint32_t)width, err);
    if (strcmp(positionals[0], "train") != 0)
        return grq_fail(err, GRQ_E_USAGE,
                        "bench: no benchmark \"%s\"; there are: train, lookup, layer, encode, decode, score, compare",
                        positionals[0]);
    return bench_train(tool, seconds, err);
}
