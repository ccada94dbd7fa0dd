/* kernels/cpu/kernels.h - the hot loops of a memory layer, one table of functions per instruction set.
 *
 * `ref` is plain C and the definition. `avx2` and `avx512` give its bits: a sum is kept in GRQ_LANES lanes (element i
 * goes to lane i mod GRQ_LANES, lanes are folded by halves), products are rounded before they are added, and nothing is
 * reassociated. tests/twins/test_kernels.c compares them. The level is chosen once at start (cpu_level.h).
 *
 * Row readers take the bytes of one stored row, of any alignment, and return true when the row holds a value that is
 * not finite (a NaN code, say); `out` is then unspecified. */
#ifndef GATERQ_CPU_KERNELS_H
#define GATERQ_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GRQ_F8_BLOCK = 32 }; /* values that share an E8M0 scale */

typedef struct {
    const char *name; /* "ref", "avx2", "avx512" */

    /* E4M3 codes (dim) times scale_values[scales[i / 32]]; scale_values (256) is the E8M0 rule in force. Exact. */
    bool (*row_f8_blocks)(const void *codes, const void *scales, const float *scale_values, uint32_t dim, float *out);
    /* E4M3 codes (dim) times one scale, rounded to BF16. */
    bool (*row_f8_scalar)(const void *codes, float scale, uint32_t dim, float *out);
    bool (*row_bf16)(const void *bits, uint32_t dim, float *out);
    bool (*row_f16)(const void *bits, uint32_t dim, float *out);
    bool (*row_f32)(const void *values, uint32_t dim, float *out);

    /* x (n_tokens, n_in), w (n_out, n_in), bias (n_out) or NULL -> out (n_tokens, n_out). One output is a sum in lanes
     * over n_in, then + bias: it does not depend on what else is in the batch. */
    void (*project)(size_t n_tokens, size_t n_out, size_t n_in, const float *x, const float *w, const float *bias,
                    float *out);
    /* sums[0] = sum h^2, sums[1] = sum key^2, sums[2] = sum (h w) key with w = query_gain * key_gain. */
    void (*gate_sums)(uint32_t width, const float *h, const float *key, const float *query_gain, const float *key_gain,
                      float sums[3]);
    float (*sum)(size_t n, const float *x);
    float (*sum_squares)(size_t n, const float *x);
    /* out = (x * factor) * gain */
    void (*normalise)(size_t n, const float *x, float factor, const float *gain, float *out);
    /* out = a * b */
    void (*multiply)(size_t n, const float *a, const float *b, float *out);
    /* h += gate * value */
    void (*add_scaled)(size_t n, float gate, const float *value, float *h);
    /* y = sum over taps, oldest first, from +0, of weight[tap] * taps[tap]. weight (n_taps, n), each tap (n) or NULL
     * before the start of the sequence. */
    void (*convolve)(size_t n, uint32_t n_taps, const float *const *taps, const float *weight, float *y);
    /* To BF16, in place: nearest, ties to even. */
    void (*round_bf16)(size_t n, float *x);
} grq_kernels;

/* The fastest table that this processor and GATERQ_CPU allow. */
const grq_kernels *grq_cpu_kernels(void);
/* Every table this processor can run, `ref` first; NULL past the end. For the twins test and the bench. */
const grq_kernels *grq_cpu_kernels_at(size_t index);

extern const grq_kernels grq_kernels_ref, grq_kernels_avx2, grq_kernels_avx512;

#endif
