#include "lm/attention.h"

#include "lm/lanes.h"

static double slope_of(size_t head, size_t n_heads)
{
    return head + 1 == n_heads ? 0 : pow(2, -8.0 / (double)n_heads * (double)(head + 1));
}

/* out[j] = sum_c x[c] t[c, j] for the n_keys first columns of t (n_channels, stride), rounded up to whole tiles. */
LM_INLINE void column_products(size_t n_keys, size_t n_channels, const grq_real *x, const grq_real *t, size_t stride,
                               grq_real *out)
{
    for (size_t j = 0; j < n_keys; j += LM_KEY_TILE) {
        lm_lanes s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };
        for (size_t c = 0; c < n_channels; c++) {
            const grq_real *tc = t + c * stride + j;
            s0 += x[c] * LM_LOAD(tc);
            s1 += x[c] * LM_LOAD(tc + LM_LANES);
            s2 += x[c] * LM_LOAD(tc + 2 * LM_LANES);
            s3 += x[c] * LM_LOAD(tc + 3 * LM_LANES);
        }
        LM_STORE(out + j) = s0;
        LM_STORE(out + j + LM_LANES) = s1;
        LM_STORE(out + j + 2 * LM_LANES) = s2;
        LM_STORE(out + j + 3 * LM_LANES) = s3;
    }
}

/* out[c] = sum_r weights[r * weight_stride] rows[r, c]: values by probabilities, keys by score gradients, and so on.
 * Two times two partial sums, so that an addition need not wait for the one before. */
LM_INLINE void weighted_rows(size_t n_rows, const grq_real *weights, size_t weight_stride, const grq_real *rows,
                             size_t row_stride, size_t n_channels, grq_real *out)
{
    size_t c = 0;
    for (; c + 2 * LM_LANES <= n_channels; c += 2 * LM_LANES) {
        lm_lanes a0 = { 0 }, a1 = { 0 }, b0 = { 0 }, b1 = { 0 };
        const grq_real *w = weights, *row = rows + c;
        size_t r = 0;
        for (; r + 2 <= n_rows; r += 2, w += 2 * weight_stride, row += 2 * row_stride) {
            a0 += w[0] * LM_LOAD(row);
            a1 += w[0] * LM_LOAD(row + LM_LANES);
            b0 += w[weight_stride] * LM_LOAD(row + row_stride);
            b1 += w[weight_stride] * LM_LOAD(row + row_stride + LM_LANES);
        }
        if (r < n_rows) {
            a0 += w[0] * LM_LOAD(row);
            a1 += w[0] * LM_LOAD(row + LM_LANES);
        }
        LM_STORE(out + c) = a0 + b0;
        LM_STORE(out + c + LM_LANES) = a1 + b1;
    }
    for (; c < n_channels; c++) {
        grq_real sum = 0;
        for (size_t r = 0; r < n_rows; r++) sum += weights[r * weight_stride] * rows[r * row_stride + c];
        out[c] = sum;
    }
}

/* t (n_channels, stride) from rows (n_rows, n_channels) with their own stride; columns beyond n_rows become 0. */
LM_INLINE void transpose(size_t n_rows, size_t n_channels, const grq_real *rows, size_t row_stride, size_t stride,
                         grq_real *t)
{
    for (size_t c = 0; c < n_channels; c++) {
        for (size_t r = 0; r < n_rows; r++) t[c * stride + r] = rows[r * row_stride + c];
        for (size_t r = n_rows; r < stride; r++) t[c * stride + r] = 0;
    }
}

/* Probabilities of the query at position n_keys - 1, whose keys are columns of keys_t; out (head_dim) is the value
 * read. p[j] is 0 from n_keys to the next multiple of LM_LANES. */
LM_INLINE void attend(size_t n_keys, size_t head_dim, grq_real slope, const grq_real *q, const grq_real *keys_t,
                      size_t key_stride, const grq_real *values, size_t value_stride, grq_real *p, grq_real *out)
{
    const grq_real scale = 1 / LM_SQRT((grq_real)head_dim);
    const size_t padded = (n_keys + LM_LANES - 1) / LM_LANES * LM_LANES;
    column_products(n_keys, head_dim, q, keys_t, key_stride, p);
    for (size_t j = 0; j < padded; j++) p[j] = p[j] * scale + slope * (grq_real)((int)j - (int)n_keys + 1);
    const grq_real top = lm_max(p, n_keys);
    for (size_t j = 0; j < padded; j++) p[j] = LM_EXP(p[j] - top);
    for (size_t j = n_keys; j < padded; j++) p[j] = 0;
    const grq_real factor = 1 / lm_sum(p, padded);
    for (size_t j = 0; j < padded; j++) p[j] *= factor;
    weighted_rows(n_keys, p, 1, values, value_stride, head_dim, out);
}

LM_INLINE void window_forward(size_t window, size_t head_dim, size_t width, grq_real slope, const grq_real *q,
                              grq_real *p, grq_real *out, grq_real *keys_t)
{
    const size_t stride = lm_key_stride(window), step = 3 * width;
    transpose(window, head_dim, q + width, step, stride, keys_t);
    for (size_t i = 0; i < window; i++)
        attend(i + 1, head_dim, slope, q + i * step, keys_t, stride, q + 2 * width, step, p + i * stride,
               out + i * width);
}

GRQ_SIMD void lm_attention(size_t n_sequences, size_t window, size_t n_heads, size_t head_dim, const grq_real *qkv,
                           grq_real *probabilities, grq_real *out, grq_real *scratch)
{
    const size_t width = n_heads * head_dim, map = window * lm_key_stride(window);
    for (size_t s = 0; s < n_sequences; s++)
        for (size_t h = 0; h < n_heads; h++) {
            const grq_real slope = (grq_real)slope_of(h, n_heads), *q = qkv + s * window * 3 * width + h * head_dim;
            grq_real *p = probabilities + (s * n_heads + h) * map, *o = out + s * window * width + h * head_dim;
            if (head_dim == 16) window_forward(window, 16, width, slope, q, p, o, scratch);
            else window_forward(window, head_dim, width, slope, q, p, o, scratch);
        }
}

/* q, dq point at the head's query of the window's first token; o, d_out likewise. d_scores (window, stride). */
LM_INLINE void window_backward(size_t window, size_t head_dim, size_t width, const grq_real *q, const grq_real *p,
                               const grq_real *d_out, grq_real *dq, grq_real *values_t, grq_real *d_scores)
{
    const size_t stride = lm_key_stride(window), step = 3 * width;
    const grq_real scale = 1 / LM_SQRT((grq_real)head_dim);
    const grq_real *k = q + width, *v = q + 2 * width;
    grq_real *dk = dq + width, *dv = dq + 2 * width;
    transpose(window, head_dim, v, step, stride, values_t);
    for (size_t i = 0; i < window; i++) {
        const grq_real *pi = p + i * stride;
        grq_real *ds = d_scores + i * stride;
        const size_t n_keys = i + 1, padded = (n_keys + LM_LANES - 1) / LM_LANES * LM_LANES;
        column_products(n_keys, head_dim, d_out + i * width, values_t, stride, ds);
        const grq_real mean = lm_dot(ds, pi, padded);
        for (size_t j = 0; j < padded; j++) ds[j] = pi[j] * (ds[j] - mean) * scale;
        weighted_rows(n_keys, ds, 1, k, step, head_dim, dq + i * step);
    }
    for (size_t j = 0; j < window; j++) {
        const size_t n_queries = window - j, at = j * stride + j;
        weighted_rows(n_queries, d_scores + at, stride, q + j * step, step, head_dim, dk + j * step);
        weighted_rows(n_queries, p + at, stride, d_out + j * width, width, head_dim, dv + j * step);
    }
}

GRQ_SIMD void lm_attention_backward(size_t n_sequences, size_t window, size_t n_heads, size_t head_dim,
                                    const grq_real *qkv, const grq_real *probabilities, const grq_real *d_out,
                                    grq_real *d_qkv, grq_real *scratch)
{
    const size_t width = n_heads * head_dim, stride = lm_key_stride(window);
    grq_real *d_scores = scratch + head_dim * stride;
    for (size_t s = 0; s < n_sequences; s++)
        for (size_t h = 0; h < n_heads; h++) {
            const size_t at = s * window * 3 * width + h * head_dim;
            const grq_real *p = probabilities + (s * n_heads + h) * window * stride;
            const grq_real *o = d_out + s * window * width + h * head_dim;
            if (head_dim == 16) window_backward(window, 16, width, qkv + at, p, o, d_qkv + at, scratch, d_scores);
            else window_backward(window, head_dim, width, qkv + at, p, o, d_qkv + at, scratch, d_scores);
        }
}

GRQ_SIMD void lm_attention_cached(size_t n, const lm_place *places, size_t n_heads, size_t head_dim,
                                  const grq_real *qkv, const lm_cache *cache, grq_real *probabilities, grq_real *out)
{
    const size_t width = n_heads * head_dim, capacity = cache->capacity;
    for (size_t t = 0; t < n; t++) {
        const grq_real *k = qkv + (t * 3 + 1) * width, *v = k + width;
        grq_real *keys = cache->keys + places[t].sequence * width * capacity;
        grq_real *values = cache->values + places[t].sequence * width * capacity;
        for (size_t c = 0; c < width; c++) keys[c * capacity + places[t].position] = k[c];
        for (size_t c = 0; c < width; c++) values[places[t].position * width + c] = v[c];
    }
    for (size_t h = 0; h < n_heads; h++) {
        const grq_real slope = (grq_real)slope_of(h, n_heads);
        const size_t at = h * head_dim;
        for (size_t t = 0; t < n; t++) {
            const size_t of_sequence = places[t].sequence * width * capacity;
            attend(places[t].position + 1, head_dim, slope, qkv + t * 3 * width + at,
                   cache->keys + of_sequence + at * capacity, capacity, cache->values + of_sequence + at, width,
                   probabilities, out + t * width + at);
        }
    }
}
