#include "lm/adamw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm/model_internal.h"
#include "shared/simd.h"

static const float EPS = 1e-9f;
enum { CHUNK = 4096 }; /* a chunk of every shard's gradient stays in the second-level cache */

static size_t list_chunks(const lm_layout *layout, lm_adam_chunk *out)
{
    size_t n = 0;
    for (size_t i = 0; i < layout->n_tensors; i++) {
        const lm_tensor *t = &layout->tensors[i];
        if (t->role == LM_TABLE) continue;
        for (size_t at = 0; at < t->n; at += CHUNK, n++)
            if (out)
                out[n] = (lm_adam_chunk){ .at = t->at + at,
                                          .n = t->n - at < CHUNK ? t->n - at : CHUNK,
                                          .decays = t->role == LM_MATRIX };
    }
    return n;
}

/* Warm-up, then a cosine from the peak to 5 % of it. */
static void plan_steps(const grq_train_config *c, uint64_t n_steps, lm_adam_step *out)
{
    for (uint64_t s = 0; s < n_steps; s++) {
        const double done = (double)s / (double)n_steps, warm = ((double)s + 1) / fmax(c->warmup_steps, 1);
        const double rate = c->learning_rate * fmin(1, warm) * (0.05 + 0.95 * 0.5 * (1 + cos(M_PI * done)));
        out[s] = (lm_adam_step){
            .rate = (float)rate,
            .table_rate = (float)(rate * c->table_rate_factor),
            .decay = (float)(rate * c->weight_decay),
            .correction1 = (float)(1 / (1 - pow(c->beta1, (double)s + 1))),
            .correction2 = (float)(1 / (1 - pow(c->beta2, (double)s + 1))),
        };
    }
}

grq_status lm_adamw_new(const lm_layout *layout, float *weights, const grq_train_config *config, uint64_t n_steps,
                        lm_adamw *out, grq_error *err)
{
    const grq_geometry *g = &layout->shape->memory;
    *out = (lm_adamw){ .layout = layout,
                       .weights = weights,
                       .n_steps = n_steps,
                       .beta1 = (float)config->beta1,
                       .beta2 = (float)config->beta2,
                       .rest1 = (float)(1 - config->beta1),
                       .rest2 = (float)(1 - config->beta2),
                       .n_chunks = list_chunks(layout, NULL) };
    out->first = lm_allocate(layout->n_all, sizeof *out->first);
    out->second = lm_allocate(layout->n_all, sizeof *out->second);
    out->steps = lm_allocate(n_steps, sizeof *out->steps);
    out->chunks = lm_allocate(out->n_chunks, sizeof *out->chunks);
    out->square_sums = lm_allocate(out->n_chunks, sizeof *out->square_sums);
    bool complete = out->first && out->second && out->steps && out->chunks && out->square_sums;
    for (uint32_t i = 0; i < g->n_layers; i++) {
        out->applied[i] = lm_allocate(g->n_rows[i], sizeof *out->applied[i]);
        out->reader[i] = lm_allocate(g->n_rows[i], sizeof *out->reader[i]);
        complete = complete && out->applied[i] && out->reader[i];
    }
    if (!complete)
        return grq_fail(err, GRQ_E_NOMEM, "training: no memory for the moments of %zu weights", layout->n_all);
    list_chunks(layout, out->chunks);
    plan_steps(config, n_steps, out->steps);
    return GRQ_OK;
}

void lm_adamw_free(lm_adamw *adam)
{
    free(adam->first);
    free(adam->second);
    free(adam->steps);
    free(adam->chunks);
    free(adam->square_sums);
    for (uint32_t i = 0; i < GRQ_MAX_MEMORY_LAYERS; i++) {
        free(adam->applied[i]);
        free(adam->reader[i]);
    }
    *adam = (lm_adamw){ 0 };
}

static GRQ_SIMD double add_all(float *const *gradients, size_t n_gradients, size_t at, size_t n)
{
    float *sum = gradients[0] + at;
    for (size_t k = 1; k < n_gradients; k++) {
        for (size_t i = 0; i < n; i++) sum[i] += gradients[k][at + i];
        memset(gradients[k] + at, 0, n * sizeof *sum);
    }
    double lanes[GRQ_LANES] = { 0 }, total = 0;
    size_t i = 0;
    for (; i + GRQ_LANES <= n; i += GRQ_LANES)
        for (size_t l = 0; l < GRQ_LANES; l++) lanes[l] += (double)sum[i + l] * sum[i + l];
    for (; i < n; i++) total += (double)sum[i] * sum[i];
    for (size_t l = 0; l < GRQ_LANES; l++) total += lanes[l];
    return total;
}

double lm_adamw_sum(const lm_adamw *adam, float *const *gradients, size_t n_gradients, uint32_t n_threads)
{
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (size_t c = 0; c < adam->n_chunks; c++)
        adam->square_sums[c] = add_all(gradients, n_gradients, adam->chunks[c].at, adam->chunks[c].n);
    double total = 0;
    for (size_t c = 0; c < adam->n_chunks; c++) total += adam->square_sums[c];
    return sqrt(total);
}

/* `keep` is 1 - decay. */
static GRQ_SIMD void update(const lm_adamw *adam, const lm_adam_step *step, float keep, float scale, size_t at,
                            size_t n, const float *gradient)
{
    float *w = adam->weights + at, *m = adam->first + at, *v = adam->second + at;
    const float b1 = adam->beta1, b2 = adam->beta2, r1 = adam->rest1, r2 = adam->rest2;
    for (size_t i = 0; i < n; i++) {
        const float g = gradient[i] * scale;
        m[i] = b1 * m[i] + r1 * g;
        v[i] = b2 * v[i] + r2 * g * g;
        w[i] = w[i] * keep - step->rate * (m[i] * step->correction1) / (sqrtf(v[i] * step->correction2) + EPS);
    }
}

void lm_adamw_dense(const lm_adamw *adam, uint64_t step, float scale, float *gradient, uint32_t n_threads)
{
    const lm_adam_step *s = &adam->steps[step];
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (size_t c = 0; c < adam->n_chunks; c++) {
        const lm_adam_chunk chunk = adam->chunks[c];
        update(adam, s, chunk.decays ? 1 - s->decay : 1, scale, chunk.at, chunk.n, gradient + chunk.at);
        memset(gradient + chunk.at, 0, chunk.n * sizeof *gradient);
    }
}
