/* gaterq/layer.h - one memory layer: rows in, gated value added to the residual branches.
 *
 * For token t with concatenated rows e (row_values), branch m with stream h_m (width d), source
 * specs/deepseek-v41-engram.md sections 9 and 10:
 *     key_m = K_m e            value = V e
 *     s_m   = sum_j h_mj q_mj k_mj key_mj * rsqrt(mean h_m^2 + eps) * rsqrt(mean key_m^2 + eps) * d^-1/2
 *     r_m   = copysign(sqrt(max(|s_m|, clamp)), s_m)          gate_m = 1 / (1 + exp(-r_m)), 0 at a DEAD position
 *     h_m  += gate_m * value
 * The gates and the injection are separate calls because GateRQ ranks look-ups in between: gates come from stage 1,
 * the value from the depth that the ranking chose ("frozen" gates). */
#ifndef GATERQ_LAYER_H
#define GATERQ_LAYER_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/geometry.h"

/* A view; owns nothing. Weights are row-major, (out, in). */
typedef struct {
    const grq_geometry *geometry;
    uint32_t layer_index;      /* into geometry->layer_ids */
    const float *table;        /* (n_rows, row_dim); NULL when only codes are at hand */
    const float *key_weight;   /* (n_branches * width, row_values) */
    const float *value_weight; /* (width, row_values) */
    const float *query_gain;   /* (n_branches, width) */
    const float *key_gain;     /* (n_branches, width) */
} grq_memory_layer;

/* rows (n_tokens, n_columns) -> e (n_tokens, row_values), from layer->table. */
void grq_layer_fetch(const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows, float *e);

/* e (n_tokens, row_values) -> keys (n_tokens, n_branches, width). Needs grq_blas_init. */
void grq_layer_keys(const grq_memory_layer *layer, size_t n_tokens, const float *e, float *keys);
/* e -> values (n_tokens, width). */
void grq_layer_values(const grq_memory_layer *layer, size_t n_tokens, const float *e, float *values);

/* h (n_tokens, n_branches, width), keys -> gates (n_tokens, n_branches), in (0, 1). `dead` (n_tokens) may be NULL;
 * where it is non-zero the gates are 0. A NaN or infinity in h or keys gives a NaN gate. */
void grq_layer_gates(const grq_memory_layer *layer, size_t n_tokens, const float *h, const float *keys,
                     const uint8_t *dead, float *gates);

/* h += gate * value, in place; the product is rounded before the sum. A gate of 0 leaves the stream's bits alone. */
void grq_layer_inject(const grq_memory_layer *layer, size_t n_tokens, const float *gates, const float *values,
                      float *h);

/* Gate energy G[t] = sum over branches of gate^2. gates (n_tokens, n_branches) -> energy (n_tokens). */
void grq_gate_energy(size_t n_tokens, uint32_t n_branches, const float *gates, float *energy);

/* tau[column] = ||V[:, column's block]||_F^2 / row_dim: mean squared amplification of an isotropic error of that row by
 * the value projection. tau (n_columns). */
void grq_layer_tau(const grq_memory_layer *layer, double *tau);

/* The same gate in binary64, one token and branch: the definition that the float kernels are tested against.
 * h, key, query_gain, key_gain have `width` elements. Returns the gate; *s may be NULL. */
double grq_gate_f64(uint32_t width, const double *h, const double *key, const double *query_gain,
                    const double *key_gain, double eps, double clamp, double *s);

#endif
