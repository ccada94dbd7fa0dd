/* lm/adamw.h - AdamW: m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2,
 *     w <- w (1 - rate decay) - rate (m c1) / (sqrt(v c2) + eps),   c1, c2 = 1 / (1 - b^(step + 1))
 *
 * Dense parameters are updated at every step. Memory rows are updated when their gradient comes or when they are about
 * to be read: the steps in between, whose gradients are 0, are then done one after another. Every value sees the same
 * operations in the same order as in a dense AdamW, so the bits are the same, but a row is fetched from memory once
 * instead of at every step. */
#ifndef GATERQ_LM_ADAMW_H
#define GATERQ_LM_ADAMW_H

#include "gaterq/train.h"
#include "lm/batch.h"
#include "lm/layout.h"

/* One step's numbers. */
typedef struct {
    float rate, table_rate;
    float decay;                    /* rate * weight decay */
    float correction1, correction2; /* c1, c2 */
} lm_adam_step;

/* A piece of one dense tensor, the unit of parallel work and of the norm's partial sums. */
typedef struct {
    size_t at, n;
    bool decays;
} lm_adam_chunk;

typedef struct {
    const lm_layout *layout;
    float *weights, *first, *second;  /* (layout->n_all) weights and moments; weights are the model's */
    float beta1, beta2, rest1, rest2; /* rest = 1 - beta */
    lm_adam_step *steps;              /* (n_steps) */
    uint64_t n_steps;
    lm_adam_chunk *chunks;
    double *square_sums; /* (n_chunks) */
    size_t n_chunks;
    uint32_t *applied[GRQ_MAX_MEMORY_LAYERS]; /* (n_rows) steps that the row has seen */
    uint32_t *reader[GRQ_MAX_MEMORY_LAYERS];  /* (n_rows) scratch: first token of the batch that read the row */
} lm_adamw;

/* Moments start at 0. The caller ends *out with lm_adamw_free, also after an error. */
grq_status lm_adamw_new(const lm_layout *layout, float *weights, const grq_train_config *config, uint64_t n_steps,
                        lm_adamw *out, grq_error *err);
void lm_adamw_free(lm_adamw *adam);

/* Adds gradients[1..] to gradients[0] (all (layout->n_dense)), in that order, clears them, and returns the norm of the
 * sum. */
double lm_adamw_sum(const lm_adamw *adam, float *const *gradients, size_t n_gradients, uint32_t n_threads);
/* Step `step` with the summed gradient times `scale`; the gradient is cleared. */
void lm_adamw_dense(const lm_adamw *adam, uint64_t step, float scale, float *gradient, uint32_t n_threads);

/* Brings the rows that `batch` reads, or all rows, to the state before step `step`. */
void lm_adamw_catch_up(const lm_adamw *adam, uint64_t step, const lm_batch *batch, uint32_t n_threads);
void lm_adamw_catch_up_all(const lm_adamw *adam, uint64_t step, uint32_t n_threads);
/* Step `step` of the rows that `batch` read, whose look-ups are now gradients; those of repeated rows are summed in
 * token order (in place). */
void lm_adamw_rows(const lm_adamw *adam, uint64_t step, const lm_batch *batch, uint32_t n_threads);

/* All rows have seen `step` steps: after a checkpoint was read. */
void lm_adamw_set_applied(const lm_adamw *adam, uint64_t step);

#endif
