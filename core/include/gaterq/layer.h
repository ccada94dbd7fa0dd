/* gaterq/layer.h - one memory layer: rows in, gated value added to the residual branches.
 *
 * For token t with concatenated rows e (row_values), branch m with stream h_m (width d), source
 * specs/deepseek-v41-engram.md sections 9 and 10:
 *     key_m = K_m e            value = V e
 *     s_m   = sum_j h_mj q_mj k_mj key_mj * rsqrt(mean h_m^2 + eps) * rsqrt(mean key_m^2 + eps) * d^-1/2
 *     r_m   = copysign(sqrt(max(|s_m|, clamp)), s_m)          gate_m = 1 / (1 + exp(-r_m)), 0 at a DEAD position
 *     h_m  += gate_m * value
 * The gates and the injection are separate calls because GateRQ ranks look-ups in between: gates come from stage 1,
 * the value from the depth that the ranking chose ("frozen" gates). grq_layer_forward does it all for any family, with
 * the short convolution where there is one (specs/qwen38-ple.md section 5, specs/original-engram.md section 8):
 *     u_m = gate_m * value      c = u_m rsqrt(mean u_m^2 + conv_eps) * conv_gain_m      y(t) = sum_k w_k c(t - (K-1-k)
 * D) h_m += u_m + silu(y_m) */
#ifndef GATERQ_LAYER_H
#define GATERQ_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/geometry.h"
#include "gaterq/layer_state.h"
#include "gaterq/table.h"

/* A view; owns nothing. Weights are row-major, (out, in). */
typedef struct {
    const grq_geometry *geometry;
    uint32_t layer_index;      /* into geometry->layer_ids */
    const float *table;        /* (n_rows, row_dim); NULL when only codes are at hand */
    const float *key_weight;   /* (n_branches * width, row_values) */
    const float *value_weight; /* (width, row_values) */
    const float *query_gain;   /* (n_branches, width); with gain_offset added, as the other gains */
    const float *key_gain;     /* (n_branches, width) */
    const float *key_bias;     /* (n_branches * width), or NULL */
    const float *value_bias;   /* (width), or NULL */
    const float *conv_gain;    /* (n_branches, width); NULL without a convolution */
    const float *conv_weight;  /* (conv_kernel, n_branches * width), oldest tap first; NULL without a convolution */
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

/* How a forward pass rounds and sums. */
typedef enum {
    GRQ_NUMERICS_REFERENCE, /* BF16 where the family's own code rounds (geometry->rounding), and a token's result does
                             * not depend on its batch: bit-exact over chunks, sequences, shards and threads */
    GRQ_NUMERICS_FP32       /* binary32 throughout, projections by BLAS: bits may depend on the batch's size */
} grq_numerics;

/* n_tokens consecutive tokens of one sequence, whose state they continue. */
typedef struct {
    grq_layer_state *state;
    size_t n_tokens;
} grq_segment;

typedef struct {
    grq_numerics numerics;
    uint32_t n_shards;  /* 0 or 1: rows are fetched at once; n: by n owners of row ranges whose results are summed */
    uint32_t n_threads; /* of the projections; 0 is 1. GRQ_NUMERICS_FP32 needs grq_blas_init */
    bool round_input; /* DeepSeek-V4.1 reference: MXFP8 rounding of the projection's input. Released rows pass unchanged
                       */
} grq_forward_options;

/* One memory layer over a batch: the tokens of segment 0, then those of segment 1, and so on. ids (n), h (n,
 * n_branches, width) in place, gates (n, n_branches) or NULL, with n the sum of the segments' tokens; rows come from
 * `table`, which may be the layer's own or codes at a depth. Advances the states. At a DEAD position h keeps its bits.
 * After an error, which names the segment's position, states are as before and h is unspecified. */
grq_status grq_layer_forward(const grq_memory_layer *layer, const grq_table *table, const grq_forward_options *options,
                             size_t n_segments, const grq_segment *segments, const int32_t *ids, float *h, float *gates,
                             grq_error *err);

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
