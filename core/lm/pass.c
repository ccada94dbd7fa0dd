#include "lm/pass.h"

#include <stdlib.h>
#include <string.h>

#include "lm/attention.h"
#include "lm/model_internal.h"
#include "lm/ops.h"

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Called twice: first with base NULL to find the size, then with the storage to set every pointer. */
typedef struct {
    grq_real *base;
    size_t used;
} carver;

static grq_real *carve(carver *c, size_t n)
{
    enum { LINE = 16 };
    grq_real *const at = c->base ? c->base + c->used : NULL;
    c->used += (n + LINE - 1) / LINE * LINE;
    return at;
}

static void carve_sublayer(carver *c, const lm_pass *pass, int which, lm_sublayer_pass *out)
{
    const grq_model_shape *s = pass->layout->shape;
    const size_t n = pass->n, d = s->width;
    out->x = carve(c, n * d);
    out->scale = carve(c, n);
    out->y = carve(c, n * d);
    out->inner = carve(c, n * (which == LM_ATTENTION ? 3 * d : s->mlp_width));
    out->mixed = out->inner;
    if (which == LM_ATTENTION) {
        out->probabilities = carve(c, n * s->n_heads * lm_key_stride(pass->window));
        out->mixed = carve(c, n * d);
    }
    out->out = carve(c, n * d);
}

static void carve_memory(carver *c, const lm_pass *pass, lm_memory_pass *out)
{
    const size_t n = pass->n, d = pass->layout->shape->width, m = pass->layout->shape->memory.n_branches;
    out->key_value = carve(c, n * (m + 1) * d);
    out->key_scale = carve(c, n * m);
    out->query_scale = carve(c, n * m);
    out->score = carve(c, n * m);
    out->gate = carve(c, n * m);
    out->gain = carve(c, m * d);
}

static void carve_all(carver *c, lm_pass *pass)
{
    const grq_model_shape *s = pass->layout->shape;
    const size_t n = pass->n, d = s->width, stream = n * s->memory.n_branches * d;
    for (size_t i = 0; i <= pass->n_stages; i++) pass->h[i] = carve(c, stream);
    for (uint32_t b = 0; b < s->n_blocks; b++)
        for (int which = 0; which < LM_SUBLAYERS; which++) carve_sublayer(c, pass, which, &pass->blocks[b][which]);
    for (uint32_t i = 0; i < s->memory.n_layers; i++) carve_memory(c, pass, &pass->memory[i]);
    pass->x = carve(c, n * d);
    pass->scale = carve(c, n);
    pass->y = carve(c, n * d);
    pass->logits = carve(c, n * s->vocab_size);
    pass->dh = carve(c, stream);
    pass->dh_next = carve(c, stream);
    pass->d_out = carve(c, n * d);
    pass->d_mixed = carve(c, n * larger(d, s->mlp_width));
    pass->d_inner = carve(c, n * 3 * d);
    pass->dy = carve(c, n * d);
    pass->scratch = carve(c, lm_attention_scratch(pass->window, d / s->n_heads));
}

grq_status lm_pass_new(const lm_layout *layout, size_t n_sequences, size_t window, lm_pass **out, grq_error *err)
{
    *out = NULL;
    const grq_model_shape *s = layout->shape;
    lm_pass *pass = calloc(1, sizeof *pass);
    if (!pass) return grq_fail(err, GRQ_E_NOMEM, "training: no memory");
    pass->layout = layout;
    pass->n_sequences = n_sequences;
    pass->window = window;
    pass->n = n_sequences * window;
    pass->n_stages = (size_t)LM_SUBLAYERS * s->n_blocks + s->memory.n_layers;
    pass->h = calloc(pass->n_stages + 1, sizeof *pass->h);
    pass->blocks = calloc(s->n_blocks, sizeof *pass->blocks);
    if (pass->h && pass->blocks) {
        carver c = { 0 };
        carve_all(&c, pass);
        c = (carver){ .base = pass->storage = lm_allocate(c.used, sizeof *pass->storage) };
        if (pass->storage) carve_all(&c, pass);
    }
    if (!pass->storage) {
        lm_pass_free(pass);
        return grq_fail(err, GRQ_E_NOMEM, "training: no memory for the activations of %zu windows of %zu tokens",
                        n_sequences, window);
    }
    *out = pass;
    return GRQ_OK;
}

void lm_pass_free(lm_pass *pass)
{
    if (!pass) return;
    free(pass->storage);
    free(pass->blocks);
    free(pass->h);
    free(pass);
}

static void embed(const lm_pass *pass, const grq_real *weights, const int32_t *inputs)
{
    const size_t d = pass->layout->shape->width, m = pass->layout->shape->memory.n_branches;
    const grq_real *table = weights + pass->layout->embed;
    for (size_t t = 0; t < pass->n; t++)
        for (size_t b = 0; b < m; b++)
            memcpy(pass->h[0] + (t * m + b) * d, table + (size_t)inputs[t] * d, d * sizeof *table);
}

static void embed_backward(const lm_pass *pass, const int32_t *inputs, grq_real *gradient)
{
    const size_t d = pass->layout->shape->width, m = pass->layout->shape->memory.n_branches;
    grq_real *table = gradient + pass->layout->embed;
    for (size_t t = 0; t < pass->n; t++)
        for (size_t b = 0; b < m; b++) {
            const grq_real *from = pass->dh + (t * m + b) * d;
            grq_real *to = table + (size_t)inputs[t] * d;
            for (size_t i = 0; i < d; i++) to[i] += from[i];
        }
}

static void sublayer_forward(lm_pass *pass, const grq_real *w, uint32_t block, int which, const grq_real *h,
                             grq_real *next)
{
    const grq_model_shape *s = pass->layout->shape;
    const lm_sublayer_at *at = &pass->layout->blocks[block][which];
    lm_sublayer_pass *a = &pass->blocks[block][which];
    const size_t n = pass->n, d = s->width, m = s->memory.n_branches;
    lm_read_norm(n, m, d, s->norm_eps, h, w + at->read, w + at->norm, a->x, a->scale, a->y);
    if (which == LM_ATTENTION) {
        lm_project(n, 3 * d, d, a->y, w + at->in, a->inner);
        lm_attention(pass->n_sequences, pass->window, s->n_heads, d / s->n_heads, a->inner, a->probabilities, a->mixed,
                     pass->scratch);
        lm_project(n, d, d, a->mixed, w + at->out, a->out);
    } else {
        lm_project(n, s->mlp_width, d, a->y, w + at->in, a->inner);
        lm_relu(n * s->mlp_width, a->inner);
        lm_project(n, d, s->mlp_width, a->inner, w + at->out, a->out);
    }
    lm_write_mix(n, m, d, h, w + at->mix, w + at->write, a->out, next);
}

/* pass->dh is the gradient of what the sub-layer left, then of h, which it saw. */
static void sublayer_backward(lm_pass *pass, const grq_real *w, uint32_t block, int which, const grq_real *h,
                              grq_real *g)
{
    const grq_model_shape *s = pass->layout->shape;
    const lm_sublayer_at *at = &pass->layout->blocks[block][which];
    const lm_sublayer_pass *a = &pass->blocks[block][which];
    const size_t n = pass->n, d = s->width, m = s->memory.n_branches;
    lm_write_mix_backward(n, m, d, h, w + at->mix, w + at->write, a->out, pass->dh, pass->dh_next, pass->d_out,
                          g + at->mix, g + at->write);
    if (which == LM_ATTENTION) {
        lm_project_backward(n, d, d, a->mixed, w + at->out, pass->d_out, pass->d_mixed, g + at->out);
        lm_attention_backward(pass->n_sequences, pass->window, s->n_heads, d / s->n_heads, a->inner, a->probabilities,
                              pass->d_mixed, pass->d_inner, pass->scratch);
        lm_project_backward(n, 3 * d, d, a->y, w + at->in, pass->d_inner, pass->dy, g + at->in);
    } else {
        lm_project_backward(n, d, s->mlp_width, a->inner, w + at->out, pass->d_out, pass->d_mixed, g + at->out);
        lm_relu_backward(n * s->mlp_width, a->inner, pass->d_mixed);
        lm_project_backward(n, s->mlp_width, d, a->y, w + at->in, pass->d_mixed, pass->dy, g + at->in);
    }
    lm_read_norm_backward(n, m, d, h, w + at->read, w + at->norm, a->x, a->scale, pass->dy, pass->dh_next, g + at->read,
                          g + at->norm);
    grq_real *const swap = pass->dh;
    pass->dh = pass->dh_next;
    pass->dh_next = swap;
}

static void head_forward(lm_pass *pass, const grq_real *w, const int32_t *targets, double weight)
{
    const lm_layout *layout = pass->layout;
    const grq_model_shape *s = layout->shape;
    lm_read_norm(pass->n, s->memory.n_branches, s->width, s->norm_eps, pass->h[pass->n_stages], w + layout->final_read,
                 w + layout->final_norm, pass->x, pass->scale, pass->y);
    lm_project(pass->n, s->vocab_size, s->width, pass->y, w + layout->head, pass->logits);
    pass->loss_sum = lm_cross_entropy(pass->n, s->vocab_size, targets, weight, pass->logits);
}

static void head_backward(lm_pass *pass, const grq_real *w, grq_real *g)
{
    const lm_layout *layout = pass->layout;
    const grq_model_shape *s = layout->shape;
    const size_t m = s->memory.n_branches;
    lm_project_backward(pass->n, s->vocab_size, s->width, pass->y, w + layout->head, pass->logits, pass->dy,
                        g + layout->head);
    memset(pass->dh, 0, pass->n * m * s->width * sizeof *pass->dh);
    lm_read_norm_backward(pass->n, m, s->width, pass->h[pass->n_stages], w + layout->final_read, w + layout->final_norm,
                          pass->x, pass->scale, pass->dy, pass->dh, g + layout->final_read, g + layout->final_norm);
}

void lm_pass_forward(lm_pass *pass, const grq_real *weights, const lm_batch *batch, const lm_objective *objective)
{
    const grq_model_shape *s = pass->layout->shape;
    size_t stage = 0;
    embed(pass, weights, batch->inputs);
    for (uint32_t b = 0; b < s->n_blocks; b++) {
        const int i = lm_memory_before(s, b);
        if (i >= 0) {
            lm_memory_forward(pass->layout, (uint32_t)i, weights, pass->n, batch->rows[i], pass->h[stage],
                              batch->lookups[i], &pass->memory[i], pass->h[stage + 1]);
            stage++;
        }
        for (int which = 0; which < LM_SUBLAYERS; which++, stage++)
            sublayer_forward(pass, weights, b, which, pass->h[stage], pass->h[stage + 1]);
    }
    head_forward(pass, weights, batch->targets, 1 / (double)objective->n_positions);
}

void lm_pass_backward(lm_pass *pass, const grq_real *weights, const lm_batch *batch, const lm_objective *objective,
                      grq_real *gradient)
{
    const grq_model_shape *s = pass->layout->shape;
    const double gate_weight = objective->gate_cost / ((double)objective->n_positions * s->memory.n_branches);
    size_t stage = pass->n_stages;
    head_backward(pass, weights, gradient);
    for (uint32_t b = s->n_blocks; b-- > 0;) {
        for (int which = LM_SUBLAYERS; which-- > 0;)
            sublayer_backward(pass, weights, b, which, pass->h[--stage], gradient);
        const int i = lm_memory_before(s, b);
        if (i >= 0)
            lm_memory_backward(pass->layout, (uint32_t)i, weights, pass->n, pass->h[--stage], gate_weight,
                               batch->lookups[i], &pass->memory[i], pass->dh, gradient);
    }
    embed_backward(pass, batch->inputs, gradient);
}
