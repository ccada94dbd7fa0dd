/* lm/ops.h - the operations of the backbone, forward and backward. Matrices are row-major; n is a number of tokens,
 * m of branches, d the width. Backward functions add to parameter gradients and overwrite activation gradients unless
 * said otherwise. */
#ifndef GATERQ_LM_OPS_H
#define GATERQ_LM_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "lm/real.h"

/* y (n, out) = x (n, in) w^T, w (out, in) */
void lm_project(size_t n, size_t out, size_t in, const grq_real *x, const grq_real *w, grq_real *y);
/* dx (n, in) = dy w, dw += dy^T x. dx may be NULL. */
void lm_project_backward(size_t n, size_t out, size_t in, const grq_real *x, const grq_real *w, const grq_real *dy,
                         grq_real *dx, grq_real *dw);

/* What a sub-layer sees: x (n, d) = sum_b read_b h_b, scale (n) = rsqrt(mean x^2 + eps), y = x * scale * gain. */
void lm_read_norm(size_t n, size_t m, size_t d, double eps, const grq_real *h, const grq_real *read,
                  const grq_real *gain, grq_real *x, grq_real *scale, grq_real *y);
/* dy (n, d) is consumed; dh (n, m, d) is added to. */
void lm_read_norm_backward(size_t n, size_t m, size_t d, const grq_real *h, const grq_real *read, const grq_real *gain,
                           const grq_real *x, const grq_real *scale, grq_real *dy, grq_real *dh, grq_real *d_read,
                           grq_real *d_gain);

/* What a sub-layer leaves: next_i = write_i out + sum_j mix_ij h_j. h, next (n, m, d); out (n, d). */
void lm_write_mix(size_t n, size_t m, size_t d, const grq_real *h, const grq_real *mix, const grq_real *write,
                  const grq_real *out, grq_real *next);
void lm_write_mix_backward(size_t n, size_t m, size_t d, const grq_real *h, const grq_real *mix, const grq_real *write,
                           const grq_real *out, const grq_real *d_next, grq_real *dh, grq_real *d_out, grq_real *d_mix,
                           grq_real *d_write);

void lm_relu(size_t n_values, grq_real *x);
/* dx is cleared wherever the result x of lm_relu is 0. */
void lm_relu_backward(size_t n_values, const grq_real *x, grq_real *dx);

/* Sum over tokens of -log softmax(logits)[target]; logits (n, n_ids) become the gradient of `weight` times that sum. */
double lm_cross_entropy(size_t n, size_t n_ids, const int32_t *targets, double weight, grq_real *logits);

#endif
