/* The definition of every kernel, in plain C. */
#include <math.h>
#include <string.h>

#include "cpu/kernels.h"
#include "shared/number.h"
#include "shared/simd.h"

/* ---- rows ---- */

static bool row_f8_blocks(const void *codes, const void *scales, const float *scale_values, uint32_t dim, float *out)
{
    const uint8_t *const c = codes, *const s = scales;
    bool bad = false;
    for (uint32_t i = 0; i < dim; i++) {
        out[i] = grq_f32_from_e4m3(c[i]) * scale_values[s[i / GRQ_F8_BLOCK]];
        bad |= !isfinite(out[i]);
    }
    return bad;
}

static bool row_f8_scalar(const void *codes, float scale, uint32_t dim, float *out)
{
    const uint8_t *const c = codes;
    bool bad = false;
    for (uint32_t i = 0; i < dim; i++) {
        out[i] = grq_f32_from_bf16(grq_bf16_from_f32(grq_f32_from_e4m3(c[i]) * scale));
        bad |= !isfinite(out[i]);
    }
    return bad;
}

static uint16_t half_at(const void *bits, uint32_t i)
{
    uint16_t value;
    memcpy(&value, (const char *)bits + i * sizeof value, sizeof value);
    return value;
}

static bool row_bf16(const void *bits, uint32_t dim, float *out)
{
    bool bad = false;
    for (uint32_t i = 0; i < dim; i++) bad |= !isfinite(out[i] = grq_f32_from_bf16(half_at(bits, i)));
    return bad;
}

static bool row_f16(const void *bits, uint32_t dim, float *out)
{
    bool bad = false;
    for (uint32_t i = 0; i < dim; i++) bad |= !isfinite(out[i] = grq_f32_from_f16(half_at(bits, i)));
    return bad;
}

static bool row_f32(const void *values, uint32_t dim, float *out)
{
    bool bad = false;
    memcpy(out, values, dim * sizeof *out);
    for (uint32_t i = 0; i < dim; i++) bad |= !isfinite(out[i]);
    return bad;
}

/* ---- sums ---- */

static float fold(float lane[GRQ_LANES])
{
    for (uint32_t w = GRQ_LANES / 2; w > 0; w /= 2)
        for (uint32_t l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

static void project(size_t n_tokens, size_t n_out, size_t n_in, const float *x, const float *w, const float *bias,
                    float *out)
{
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t o = 0; o < n_out; o++) {
            float lane[GRQ_LANES] = { 0 };
            for (size_t i = 0; i < n_in; i++) lane[i % GRQ_LANES] += x[t * n_in + i] * w[o * n_in + i];
            out[t * n_out + o] = fold(lane) + (bias ? bias[o] : 0.0f);
        }
}

static void gate_sums(uint32_t width, const float *h, const float *key, const float *query_gain, const float *key_gain,
                      float sums[3])
{
    float hh[GRQ_LANES] = { 0 }, kk[GRQ_LANES] = { 0 }, hk[GRQ_LANES] = { 0 };
    for (uint32_t i = 0; i < width; i++) {
        const uint32_t l = i % GRQ_LANES;
        hh[l] += h[i] * h[i];
        kk[l] += key[i] * key[i];
        hk[l] += h[i] * (query_gain[i] * key_gain[i]) * key[i];
    }
    sums[0] = fold(hh);
    sums[1] = fold(kk);
    sums[2] = fold(hk);
}

static float sum(size_t n, const float *x)
{
    float lane[GRQ_LANES] = { 0 };
    for (size_t i = 0; i < n; i++) lane[i % GRQ_LANES] += x[i];
    return fold(lane);
}

static float sum_squares(size_t n, const float *x)
{
    float lane[GRQ_LANES] = { 0 };
    for (size_t i = 0; i < n; i++) lane[i % GRQ_LANES] += x[i] * x[i];
    return fold(lane);
}

/* ---- element by element ---- */

static void normalise(size_t n, const float *x, float factor, const float *gain, float *out)
{
    for (size_t i = 0; i < n; i++) out[i] = x[i] * factor * gain[i];
}

static void multiply(size_t n, const float *a, const float *b, float *out)
{
    for (size_t i = 0; i < n; i++) out[i] = a[i] * b[i];
}

static void add_scaled(size_t n, float gate, const float *value, float *h)
{
    for (size_t i = 0; i < n; i++) h[i] += gate * value[i];
}

static void convolve(size_t n, uint32_t n_taps, const float *const *taps, const float *weight, float *y)
{
    for (size_t i = 0; i < n; i++) y[i] = 0;
    for (uint32_t k = 0; k < n_taps; k++)
        for (size_t i = 0; taps[k] && i < n; i++) y[i] += weight[k * n + i] * taps[k][i];
}

static void round_bf16(size_t n, float *x)
{
    for (size_t i = 0; i < n; i++) x[i] = grq_f32_from_bf16(grq_bf16_from_f32(x[i]));
}

const grq_kernels grq_kernels_ref = {
    .name = "ref",
    .row_f8_blocks = row_f8_blocks,
    .row_f8_scalar = row_f8_scalar,
    .row_bf16 = row_bf16,
    .row_f16 = row_f16,
    .row_f32 = row_f32,
    .project = project,
    .gate_sums = gate_sums,
    .sum = sum,
    .sum_squares = sum_squares,
    .normalise = normalise,
    .multiply = multiply,
    .add_scaled = add_scaled,
    .convolve = convolve,
    .round_bf16 = round_bf16,
};
