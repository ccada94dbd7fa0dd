/* lm/memory.h - a memory layer in training: the mathematics of gaterq/layer.h, keeping what the backward pass needs. */
#ifndef GATERQ_LM_MEMORY_H
#define GATERQ_LM_MEMORY_H

#include "lm/layout.h"
#include "lm/real.h"

/* Activations of one memory layer over n tokens. */
typedef struct {
    grq_real *key_value;               /* (n, n_branches + 1, width): the keys, then the value; later gradients */
    grq_real *key_scale, *query_scale; /* (n, n_branches) rsqrt of the mean squares */
    grq_real *score, *gate;            /* (n, n_branches) */
    grq_real *gain;                    /* (n_branches, width) query gain * key gain */
    double gate_sum, gate_square_sum;  /* over n tokens and all branches */
} lm_memory_pass;

/* next = h + gate * value. rows (n, n_columns) are fetched into lookups (n, row_values). */
void lm_memory_forward(const lm_layout *layout, uint32_t index, const grq_real *weights, size_t n, const int64_t *rows,
                       const grq_real *h, grq_real *lookups, lm_memory_pass *pass, grq_real *next);

/* dh (n, n_branches, width) is the gradient of `next` on entry and of h on return; lookups become their gradients;
 * `gate_weight` times the sum of squared gates is part of the objective. Tables' gradients are left to the caller. */
void lm_memory_backward(const lm_layout *layout, uint32_t index, const grq_real *weights, size_t n, const grq_real *h,
                        double gate_weight, grq_real *lookups, lm_memory_pass *pass, grq_real *dh, grq_real *gradient);

#endif
