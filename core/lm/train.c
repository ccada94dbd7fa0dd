#include "gaterq/train.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gaterq/blas.h"
#include "gaterq/file.h"
#include "gaterq/rng.h"
#include "lm/trainer.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

size_t lm_part_of_shard(const grq_train_config *config)
{
    enum { PART_TOKENS = 192 }; /* measured best of 64 to 384 for the recipe's model: docs/decisions.md */
    const size_t shard = config->batch / config->n_shards;
    size_t part = 1;
    for (size_t k = 1; k <= shard; k++)
        if (shard % k == 0 && k * config->window <= PART_TOKENS) part = k;
    return part;
}

/* ---- set-up ---- */

static grq_status check_text(const lm_trainer *t, grq_error *err)
{
    const uint32_t vocab_size = t->model->shape.vocab_size;
    for (uint64_t i = 0; i <= t->config->n_tokens; i++)
        if (t->text[i] < 0 || (uint32_t)t->text[i] >= vocab_size)
            return grq_fail(err, GRQ_E_DATA,
                            "training text: position %" PRIu64 ": token %d is outside the vocabulary of %u", i,
                            t->text[i], vocab_size);
    return GRQ_OK;
}

static grq_status order_windows(lm_trainer *t, grq_error *err)
{
    const size_t n_windows = t->config->n_tokens / t->config->window;
    t->order = lm_allocate(n_windows, sizeof *t->order);
    if (!t->order) return grq_fail(err, GRQ_E_NOMEM, "training: no memory for the order of %zu windows", n_windows);
    for (size_t i = 0; i < n_windows; i++) t->order[i] = (uint32_t)i;
    grq_rng rng;
    grq_rng_seed_for(&rng, t->seed, "windows");
    grq_rng_shuffle(&rng, t->order, n_windows, sizeof *t->order);
    return GRQ_OK;
}

static grq_status allocate_shards(lm_trainer *t, grq_error *err)
{
    const uint32_t n_shards = t->config->n_shards;
    t->n_passes = t->n_threads < n_shards ? t->n_threads : n_shards;
    t->passes = calloc(t->n_passes, sizeof *t->passes);
    t->gradients = calloc(n_shards, sizeof *t->gradients);
    t->loss_sums = calloc(n_shards, sizeof *t->loss_sums);
    t->gate_sums = calloc(n_shards, sizeof *t->gate_sums);
    bool complete = t->passes && t->gradients && t->loss_sums && t->gate_sums;
    for (uint32_t s = 0; complete && s < n_shards; s++)
        complete = (t->gradients[s] = lm_allocate(t->model->layout.n_dense, sizeof **t->gradients)) != NULL;
    if (!complete) return grq_fail(err, GRQ_E_NOMEM, "training: no memory for the gradients of %u shards", n_shards);
    grq_status st = GRQ_OK;
    for (uint32_t p = 0; p < t->n_passes && st == GRQ_OK; p++)
        st = lm_pass_new(&t->model->layout, t->part, t->config->window, &t->passes[p], err);
    return st;
}

static void trainer_free(lm_trainer *t)
{
    for (uint32_t p = 0; t->passes && p < t->n_passes; p++) lm_pass_free(t->passes[p]);
    for (uint32_t s = 0; t->gradients && s < t->config->n_shards; s++) free(t->gradients[s]);
    free(t->passes);
    free(t->gradients);
    free(t->loss_sums);
    free(t->gate_sums);
    free(t->order);
    lm_batch_free(&t->batch);
    lm_adamw_free(&t->adam);
}

static grq_status trainer_init(lm_trainer *t, grq_error *err)
{
    const grq_train_config *c = t->config;
    grq_status st = lm_train_config_check(c, err);
    if (st == GRQ_OK) st = grq_blas_init(err);
    if (st == GRQ_OK) st = check_text(t, err);
    if (st == GRQ_OK) st = grq_sha256(t->text, (c->n_tokens + 1) * sizeof *t->text, t->text_sha256, err);
    if (st != GRQ_OK) return st;
    t->n_steps = c->n_tokens / ((uint64_t)c->batch * c->window);
    t->part = lm_part_of_shard(c);
    st = order_windows(t, err);
    if (st == GRQ_OK) st = allocate_shards(t, err);
    if (st == GRQ_OK) st = lm_batch_new(&t->model->shape.memory, c->batch, c->window, &t->batch, err);
    if (st == GRQ_OK) st = lm_adamw_new(&t->model->layout, t->model->weights, c, t->n_steps, &t->adam, err);
    return st;
}

/* ---- one step ---- */

static grq_status load_batch(lm_trainer *t, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (uint32_t s = 0; s < t->config->batch && st == GRQ_OK; s++) {
        const size_t window = t->order[t->step * t->config->batch + s];
        st = lm_batch_load(&t->batch, s, t->text + window * t->config->window, err);
    }
    return st;
}

/* The gate cost grows from 0 over the first part of the training. */
static double gate_cost_at(const lm_trainer *t)
{
    const double done = (double)t->step / (double)t->n_steps, ramp = t->config->gate_cost_ramp;
    return t->config->gate_cost * (ramp > 0 ? fmin(1, done / ramp) : 1);
}

/* A shard is computed by one thread, part after part: its bytes do not depend on which thread, or how many. */
static void run_shard(lm_trainer *t, uint32_t shard, lm_pass *pass)
{
    const grq_train_config *c = t->config;
    const lm_objective objective = { .n_positions = (size_t)c->batch * c->window, .gate_cost = gate_cost_at(t) };
    const size_t sequences = c->batch / c->n_shards;
    t->loss_sums[shard] = 0;
    memset(t->gate_sums[shard], 0, sizeof t->gate_sums[shard]);
    for (size_t s = 0; s < sequences; s += t->part) {
        const lm_batch part = lm_batch_part(&t->batch, shard * sequences + s, t->part);
        lm_pass_forward(pass, t->model->weights, &part, &objective);
        lm_pass_backward(pass, t->model->weights, &part, &objective, t->gradients[shard]);
        t->loss_sums[shard] += pass->loss_sum;
        for (uint32_t l = 0; l < t->model->shape.memory.n_layers; l++)
            t->gate_sums[shard][l] += pass->memory[l].gate_sum;
    }
}

/* Means over the batch, from the shards' sums in shard order. */
static double collect(lm_trainer *t)
{
    const double n = (double)t->config->batch * t->config->window;
    double loss = 0;
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++) t->gate_mean[l] = 0;
    for (uint32_t s = 0; s < t->config->n_shards; s++) {
        loss += t->loss_sums[s] / n;
        for (uint32_t l = 0; l < t->model->shape.memory.n_layers; l++)
            t->gate_mean[l] += t->gate_sums[s][l] / (n * t->model->shape.memory.n_branches);
    }
    return loss;
}

static grq_status train_step(lm_trainer *t, grq_error *err)
{
    const uint32_t n_shards = t->config->n_shards;
    const grq_status st = load_batch(t, err);
    if (st != GRQ_OK) return st;
    lm_adamw_catch_up(&t->adam, t->step, &t->batch, t->n_threads);
#pragma omp parallel for num_threads(t->n_passes) schedule(dynamic)
    for (uint32_t s = 0; s < n_shards; s++) run_shard(t, s, t->passes[omp_get_thread_num()]);
    const double loss = collect(t), norm = lm_adamw_sum(&t->adam, t->gradients, n_shards, t->n_threads);
    if (!isfinite(loss) || !isfinite(norm))
        return grq_fail(err, GRQ_E_DATA,
                        "training diverged at step %" PRIu64 " of %" PRIu64
                        ": loss %g, gradient norm %g; lower train.learning_rate",
                        t->step + 1, t->n_steps, loss, norm);
    const float scale = norm > t->config->clip ? (float)(t->config->clip / norm) : 1;
    lm_adamw_dense(&t->adam, t->step, scale, t->gradients[0], t->n_threads);
    lm_adamw_rows(&t->adam, t->step, &t->batch, t->n_threads);
    t->loss_mean = t->step == 0 ? loss : 0.98 * t->loss_mean + 0.02 * loss;
    t->step++;
    return GRQ_OK;
}

/* ---- the run ---- */

static grq_status report(const lm_trainer *t, const grq_progress *progress, grq_error *err)
{
    const uint64_t per_step = (uint64_t)t->config->batch * t->config->window;
    char detail[128];
    int n = snprintf(detail, sizeof detail, "loss %.3f  gates", t->loss_mean);
    for (uint32_t l = 0; l < t->model->shape.memory.n_layers && n < (int)sizeof detail - 8; l++)
        n += snprintf(detail + n, sizeof detail - (size_t)n, " %.2f", t->gate_mean[l]);
    return grq_progress_step(progress, "training", t->step * per_step, t->n_steps * per_step, "tokens", detail, err);
}

/* Asks once per step whether to stop, so that nobody waits; draws about twice a second. */
static grq_status tell(const lm_trainer *t, const grq_progress *progress, double *told, grq_error *err)
{
    const bool finished = t->step == t->n_steps;
    if (finished || now() - *told >= 0.5) {
        *told = now();
        const grq_status st = report(t, progress, err);
        return finished ? GRQ_OK : st; /* too late to stop */
    }
    if (progress && progress->stop_requested && progress->stop_requested(progress->context))
        return grq_fail(err, GRQ_E_INTERRUPTED, "training: interrupted");
    return GRQ_OK;
}

static grq_status run(lm_trainer *t, const char *checkpoint, double checkpoint_seconds, const grq_progress *progress,
                      grq_error *err)
{
    double told = 0, saved = now();
    grq_status st = GRQ_OK;
    while (t->step < t->n_steps && st == GRQ_OK) {
        st = train_step(t, err);
        if (st == GRQ_OK) st = tell(t, progress, &told, err);
        if (st == GRQ_OK && checkpoint && now() - saved >= checkpoint_seconds && t->step < t->n_steps) {
            lm_adamw_catch_up_all(&t->adam, t->step, t->n_threads);
            st = lm_checkpoint_write(t, checkpoint, err);
            saved = now();
        }
    }
    return st;
}

grq_status grq_train(grq_model *model, const grq_train_config *config, const int32_t *text, uint64_t seed,
                     uint32_t n_threads, const char *checkpoint, double checkpoint_seconds,
                     const grq_progress *progress, grq_train_result *result, grq_error *err)
{
    const double started = now();
    *result = (grq_train_result){ 0 };
    lm_trainer t = {
        .model = model, .config = config, .text = text, .seed = seed, .n_threads = n_threads ? n_threads : 1
    };
    grq_status st = trainer_init(&t, err);
    if (st == GRQ_OK && checkpoint && grq_file_exists(checkpoint)) st = lm_checkpoint_read(&t, checkpoint, err);
    if (st == GRQ_OK) {
        st = run(&t, checkpoint, checkpoint_seconds, progress, err);
        lm_adamw_catch_up_all(&t.adam, t.step, t.n_threads); /* the model holds the weights of its last step, always */
    }
    if (st == GRQ_E_INTERRUPTED && checkpoint) {
        grq_error failed;
        if (lm_checkpoint_write(&t, checkpoint, &failed) != GRQ_OK)
            st = grq_fail(err, failed.status, "interrupted, and no checkpoint was written: %s", failed.message);
    }
    result->steps = t.step;
    result->n_tokens = t.step * config->batch * config->window;
    result->loss = t.loss_mean;
    memcpy(result->gate_mean, t.gate_mean, sizeof t.gate_mean);
    result->seconds = now() - started;
    trainer_free(&t);
    return st;
}
