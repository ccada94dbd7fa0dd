#include "lm/memory.h"

#include <string.h>

#include "lm/lanes.h"
#include "lm/ops.h"

/* Rows lie anywhere in a table larger than the caches: ask for those of tokens ahead while copying. */
static void fetch(const grq_geometry *g, const grq_real *table, size_t n, const int64_t *rows, grq_real *lookups)
{
    enum { AHEAD = 24 };
    const size_t n_rows = n * g->n_columns, row_dim = g->row_dim;
    for (size_t i = 0; i < n_rows; i++) {
        if (i + AHEAD < n_rows) {
            const grq_real *ahead = table + (size_t)rows[i + AHEAD] * row_dim;
            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + row_dim / 2);
        }
        memcpy(lookups + i * row_dim, table + (size_t)rows[i] * row_dim, row_dim * sizeof *table);
    }
}

/* Sum of k h gain, which is not yet normalised. */
LM_INLINE grq_real triple_product(size_t width, const grq_real *k, const grq_real *h, const grq_real *gain)
{
    lm_lanes s0 = { 0 }, s1 = { 0 };
    size_t i = 0;
    for (; i + 2 * LM_LANES <= width; i += 2 * LM_LANES) {
        s0 += LM_LOAD(k + i) * LM_LOAD(h + i) * LM_LOAD(gain + i);
        s1 += LM_LOAD(k + i + LM_LANES) * LM_LOAD(h + i + LM_LANES) * LM_LOAD(gain + i + LM_LANES);
    }
    grq_real tail = 0;
    for (; i < width; i++) tail += k[i] * h[i] * gain[i];
    s0 += s1;
    return lm_fold(&s0) + tail;
}

static GRQ_SIMD void gate_forward(const grq_geometry *g, size_t n, const grq_real *h, lm_memory_pass *pass,
                                  grq_real *next)
{
    const size_t m = g->n_branches, d = g->width;
    const grq_real eps = (grq_real)g->norm_eps, clamp = (grq_real)g->gate_clamp, rsqrt_d = 1 / LM_SQRT((grq_real)d);
    for (size_t t = 0; t < n; t++) {
        const grq_real *keys = pass->key_value + t * (m + 1) * d, *value = keys + m * d;
        for (size_t b = 0; b < m; b++) {
            const grq_real *k = keys + b * d, *q = h + (t * m + b) * d;
            const grq_real rk = 1 / LM_SQRT(lm_dot(k, k, d) / (grq_real)d + eps);
            const grq_real rq = 1 / LM_SQRT(lm_dot(q, q, d) / (grq_real)d + eps);
            const grq_real s = triple_product(d, k, q, pass->gain + b * d) * rk * rq * rsqrt_d;
            const grq_real size = s < 0 ? -s : s, root = LM_SQRT(size < clamp ? clamp : size);
            const grq_real gate = 1 / (1 + LM_EXP(s < 0 ? root : -root));
            pass->key_scale[t * m + b] = rk;
            pass->query_scale[t * m + b] = rq;
            pass->score[t * m + b] = s;
            pass->gate[t * m + b] = gate;
            pass->gate_sum += (double)gate;
            pass->gate_square_sum += (double)gate * (double)gate;
            grq_real *to = next + (t * m + b) * d;
            for (size_t i = 0; i < d; i++) to[i] = q[i] + gate * value[i];
        }
    }
}

void lm_memory_forward(const lm_layout *layout, uint32_t index, const grq_real *weights, size_t n, const int64_t *rows,
                       const grq_real *h, grq_real *lookups, lm_memory_pass *pass, grq_real *next)
{
    const grq_geometry *g = &layout->shape->memory;
    const lm_memory_at *at = &layout->memory[index];
    const size_t m = g->n_branches, d = g->width;
    for (size_t i = 0; i < m * d; i++) pass->gain[i] = weights[at->query_gain + i] * weights[at->key_gain + i];
    fetch(g, weights + at->table, n, rows, lookups);
    lm_project(n, (m + 1) * d, g->row_values, lookups, weights + at->key, pass->key_value);
    pass->gate_sum = pass->gate_square_sum = 0;
    gate_forward(g, n, h, pass, next);
}

/* Derivative of the gate by its score, less the constant d^-1/2: 0 where the clamp holds the root constant. */
LM_INLINE grq_real gate_slope(grq_real gate, grq_real s, grq_real clamp)
{
    const grq_real size = s < 0 ? -s : s;
    return size > clamp ? gate * (1 - gate) / (2 * LM_SQRT(size)) : 0;
}

/* One token and branch. ds is the gradient of the unnormalised score sum_i gain_i k^_i q^_i, where k^, q^ are
 * normalised; `along` is the part that only changes a norm. k becomes its own gradient; dq is added to. */
LM_INLINE void score_backward(size_t d, grq_real ds, grq_real along, grq_real rk, grq_real rq, const grq_real *gain,
                              const grq_real *query_gain, const grq_real *key_gain, const grq_real *q, grq_real *k,
                              grq_real *dq, grq_real *d_query_gain, grq_real *d_key_gain)
{
    for (size_t i = 0; i < d; i++) {
        const grq_real kn = k[i] * rk, qn = q[i] * rq, both = ds * kn * qn, through = ds * gain[i];
        d_query_gain[i] += both * key_gain[i];
        d_key_gain[i] += both * query_gain[i];
        k[i] = rk * (through * qn - kn * along);
        dq[i] += rq * (through * kn - qn * along);
    }
}

static GRQ_SIMD void gate_backward(const grq_geometry *g, size_t n, const grq_real *query_gain,
                                   const grq_real *key_gain, const grq_real *h, double gate_weight,
                                   lm_memory_pass *pass, grq_real *dh, grq_real *d_query_gain, grq_real *d_key_gain)
{
    const size_t m = g->n_branches, d = g->width;
    const grq_real clamp = (grq_real)g->gate_clamp, rsqrt_d = 1 / LM_SQRT((grq_real)d),
                   cost = (grq_real)(2 * gate_weight);
    for (size_t t = 0; t < n; t++) {
        grq_real *keys = pass->key_value + t * (m + 1) * d, *value = keys + m * d;
        const grq_real *gate = pass->gate + t * m, *score = pass->score + t * m;
        grq_real d_score[LM_MAX_BRANCHES]; /* all of them before the value gives way to its gradient */
        for (size_t b = 0; b < m; b++) {
            const grq_real through = lm_dot(dh + (t * m + b) * d, value, d) + cost * gate[b];
            d_score[b] = through * gate_slope(gate[b], score[b], clamp) * rsqrt_d;
        }
        for (size_t i = 0; i < d; i++) value[i] = 0;
        for (size_t b = 0; b < m; b++) {
            grq_real *dq = dh + (t * m + b) * d;
            lm_add_scaled(value, gate[b], dq, d);
            const grq_real ds = d_score[b], along = score[b] / rsqrt_d * ds / (grq_real)d;
            score_backward(d, ds, along, pass->key_scale[t * m + b], pass->query_scale[t * m + b], pass->gain + b * d,
                           query_gain + b * d, key_gain + b * d, h + (t * m + b) * d, keys + b * d, dq,
                           d_query_gain + b * d, d_key_gain + b * d);
        }
    }
}

void lm_memory_backward(const lm_layout *layout, uint32_t index, const grq_real *weights, size_t n, const grq_real *h,
                        double gate_weight, grq_real *lookups, lm_memory_pass *pass, grq_real *dh, grq_real *gradient)
{
    const grq_geometry *g = &layout->shape->memory;
    const lm_memory_at *at = &layout->memory[index];
    const size_t outputs = (size_t)(g->n_branches + 1) * g->width;
    gate_backward(g, n, weights + at->query_gain, weights + at->key_gain, h, gate_weight, pass, dh,
                  gradient + at->query_gain, gradient + at->key_gain);
    /* lm_project_backward's two products, weights first: the second overwrites the look-ups with their gradients. */
    lm_project_backward(n, outputs, g->row_values, lookups, NULL, pass->key_value, NULL, gradient + at->key);
    LM_GEMM(false, false, (int)n, (int)g->row_values, (int)outputs, pass->key_value, (int)outputs, weights + at->key,
            (int)g->row_values, 0, lookups, (int)g->row_values);
}
