#include "lm/ops.h"

#include "lm/lanes.h"

void lm_project(size_t n, size_t out, size_t in, const grq_real *x, const grq_real *w, grq_real *y)
{
    LM_GEMM(false, true, (int)n, (int)out, (int)in, x, (int)in, w, (int)in, 0, y, (int)out);
}

void lm_project_backward(size_t n, size_t out, size_t in, const grq_real *x, const grq_real *w, const grq_real *dy,
                         grq_real *dx, grq_real *dw)
{
    if (dx) LM_GEMM(false, false, (int)n, (int)in, (int)out, dy, (int)out, w, (int)in, 0, dx, (int)in);
    LM_GEMM(true, false, (int)out, (int)in, (int)n, dy, (int)out, x, (int)in, 1, dw, (int)in);
}

/* out (d) = sum_j c[j * stride] rows_j, rows (m, d) */
LM_INLINE void combine(size_t m, size_t d, const grq_real *c, size_t stride, const grq_real *rows, grq_real *out)
{
    size_t k = 0;
    for (; k + LM_LANES <= d; k += LM_LANES) {
        lm_lanes sum = c[0] * LM_LOAD(rows + k);
        for (size_t j = 1; j < m; j++) sum += c[j * stride] * LM_LOAD(rows + j * d + k);
        LM_STORE(out + k) = sum;
    }
    for (; k < d; k++) {
        grq_real sum = c[0] * rows[k];
        for (size_t j = 1; j < m; j++) sum += c[j * stride] * rows[j * d + k];
        out[k] = sum;
    }
}

LM_INLINE void read_norm(size_t n, size_t m, size_t d, double eps, const grq_real *h, const grq_real *read,
                         const grq_real *gain, grq_real *x, grq_real *scale, grq_real *y)
{
    for (size_t t = 0; t < n; t++) {
        grq_real *xt = x + t * d, *yt = y + t * d;
        combine(m, d, read, 1, h + t * m * d, xt);
        const grq_real r = 1 / LM_SQRT(lm_dot(xt, xt, d) / (grq_real)d + (grq_real)eps);
        for (size_t k = 0; k < d; k++) yt[k] = xt[k] * r * gain[k];
        scale[t] = r;
    }
}

GRQ_SIMD void lm_read_norm(size_t n, size_t m, size_t d, double eps, const grq_real *h, const grq_real *read,
                           const grq_real *gain, grq_real *x, grq_real *scale, grq_real *y)
{
    if (m == 4) read_norm(n, 4, d, eps, h, read, gain, x, scale, y);
    else read_norm(n, m, d, eps, h, read, gain, x, scale, y);
}

GRQ_SIMD void lm_read_norm_backward(size_t n, size_t m, size_t d, const grq_real *h, const grq_real *read,
                                    const grq_real *gain, const grq_real *x, const grq_real *scale, grq_real *dy,
                                    grq_real *dh, grq_real *d_read, grq_real *d_gain)
{
    for (size_t t = 0; t < n; t++) {
        const grq_real *xt = x + t * d, r = scale[t];
        grq_real *g = dy + t * d; /* gradient of y, then of y / gain, then of x */
        for (size_t k = 0; k < d; k++) {
            d_gain[k] += g[k] * (xt[k] * r);
            g[k] *= gain[k];
        }
        const grq_real along = lm_dot(g, xt, d) * r * r / (grq_real)d; /* the part of g that only changes the norm */
        for (size_t k = 0; k < d; k++) g[k] = r * (g[k] - xt[k] * along);
        for (size_t b = 0; b < m; b++) {
            d_read[b] += lm_dot(g, h + (t * m + b) * d, d);
            lm_add_scaled(dh + (t * m + b) * d, read[b], g, d);
        }
    }
}

/* The value of m is known where this is inlined for the usual number of branches. */
LM_INLINE void write_mix(size_t n, size_t m, size_t d, const grq_real *h, const grq_real *mix, const grq_real *write,
                         const grq_real *out, grq_real *next)
{
    for (size_t t = 0; t < n; t++) {
        const grq_real *ht = h + t * m * d, *o = out + t * d;
        grq_real *to = next + t * m * d;
        size_t k = 0;
        for (; k + LM_LANES <= d; k += LM_LANES)
            for (size_t i = 0; i < m; i++) {
                lm_lanes sum = write[i] * LM_LOAD(o + k);
                for (size_t j = 0; j < m; j++) sum += mix[i * m + j] * LM_LOAD(ht + j * d + k);
                LM_STORE(to + i * d + k) = sum;
            }
        for (; k < d; k++)
            for (size_t i = 0; i < m; i++) {
                grq_real sum = write[i] * o[k];
                for (size_t j = 0; j < m; j++) sum += mix[i * m + j] * ht[j * d + k];
                to[i * d + k] = sum;
            }
    }
}

GRQ_SIMD void lm_write_mix(size_t n, size_t m, size_t d, const grq_real *h, const grq_real *mix, const grq_real *write,
                           const grq_real *out, grq_real *next)
{
    if (m == 4) write_mix(n, 4, d, h, mix, write, out, next);
    else write_mix(n, m, d, h, mix, write, out, next);
}

/* Dot products of one branch's gradient g with the m streams and the sub-layer's output, over n tokens.
 * g, h start at the branch's and the first stream's values of token 0. */
static GRQ_SIMD void dots_of_four(size_t n, size_t d, const grq_real *g, const grq_real *h, const grq_real *out,
                                  grq_real d_mix[4], grq_real *d_write)
{
    lm_lanes s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 }, so = { 0 };
    grq_real tail[5] = { 0 };
    for (size_t t = 0; t < n; t++, g += 4 * d, h += 4 * d, out += d) {
        size_t k = 0;
        for (; k + LM_LANES <= d; k += LM_LANES) {
            const lm_lanes x = LM_LOAD(g + k);
            s0 += x * LM_LOAD(h + k);
            s1 += x * LM_LOAD(h + d + k);
            s2 += x * LM_LOAD(h + 2 * d + k);
            s3 += x * LM_LOAD(h + 3 * d + k);
            so += x * LM_LOAD(out + k);
        }
        for (; k < d; k++) {
            for (size_t j = 0; j < 4; j++) tail[j] += g[k] * h[j * d + k];
            tail[4] += g[k] * out[k];
        }
    }
    d_mix[0] += lm_fold(&s0) + tail[0];
    d_mix[1] += lm_fold(&s1) + tail[1];
    d_mix[2] += lm_fold(&s2) + tail[2];
    d_mix[3] += lm_fold(&s3) + tail[3];
    *d_write += lm_fold(&so) + tail[4];
}

static GRQ_SIMD void dots_of_any(size_t n, size_t m, size_t d, const grq_real *g, const grq_real *h,
                                 const grq_real *out, grq_real *d_mix, grq_real *d_write)
{
    for (size_t t = 0; t < n; t++, g += m * d, h += m * d, out += d) {
        for (size_t j = 0; j < m; j++) d_mix[j] += lm_dot(g, h + j * d, d);
        *d_write += lm_dot(g, out, d);
    }
}

LM_INLINE void spread(size_t n, size_t m, size_t d, const grq_real *mix, const grq_real *write, const grq_real *d_next,
                      grq_real *dh, grq_real *d_out)
{
    for (size_t t = 0; t < n; t++) {
        const grq_real *g = d_next + t * m * d;
        combine(m, d, write, 1, g, d_out + t * d);
        for (size_t j = 0; j < m; j++) combine(m, d, mix + j, m, g, dh + (t * m + j) * d);
    }
}

static GRQ_SIMD void spread_gradient(size_t n, size_t m, size_t d, const grq_real *mix, const grq_real *write,
                                     const grq_real *d_next, grq_real *dh, grq_real *d_out)
{
    if (m == 4) spread(n, 4, d, mix, write, d_next, dh, d_out);
    else spread(n, m, d, mix, write, d_next, dh, d_out);
}

void lm_write_mix_backward(size_t n, size_t m, size_t d, const grq_real *h, const grq_real *mix, const grq_real *write,
                           const grq_real *out, const grq_real *d_next, grq_real *dh, grq_real *d_out, grq_real *d_mix,
                           grq_real *d_write)
{
    enum { TILE = 8 }; /* tokens whose streams and gradients stay in the first-level cache */
    for (size_t t = 0; t < n; t += TILE) {
        const size_t tile = n - t < TILE ? n - t : TILE, at = t * m * d;
        spread_gradient(tile, m, d, mix, write, d_next + at, dh + at, d_out + t * d);
        for (size_t i = 0; i < m; i++) {
            const grq_real *g = d_next + at + i * d;
            if (m == 4) dots_of_four(tile, d, g, h + at, out + t * d, d_mix + 4 * i, d_write + i);
            else dots_of_any(tile, m, d, g, h + at, out + t * d, d_mix + m * i, d_write + i);
        }
    }
}

GRQ_SIMD void lm_relu(size_t n_values, grq_real *x)
{
    for (size_t i = 0; i < n_values; i++) x[i] = x[i] > 0 ? x[i] : 0;
}

GRQ_SIMD void lm_relu_backward(size_t n_values, const grq_real *x, grq_real *dx)
{
    for (size_t i = 0; i < n_values; i++) dx[i] = x[i] > 0 ? dx[i] : 0;
}

GRQ_SIMD double lm_cross_entropy(size_t n, size_t n_ids, const int32_t *targets, double weight, grq_real *logits)
{
    double loss = 0;
    for (size_t t = 0; t < n; t++) {
        grq_real *z = logits + t * n_ids;
        const grq_real top = lm_max(z, n_ids), at_target = z[targets[t]] - top;
        for (size_t v = 0; v < n_ids; v++) z[v] = LM_EXP(z[v] - top);
        const grq_real sum = lm_sum(z, n_ids), factor = (grq_real)weight / sum;
        for (size_t v = 0; v < n_ids; v++) z[v] *= factor;
        z[targets[t]] -= (grq_real)weight;
        loss += log((double)sum) - (double)at_target;
    }
    return loss;
}
