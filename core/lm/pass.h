/* lm/pass.h - the model forward and backward over a few training windows at once. */
#ifndef GATERQ_LM_PASS_H
#define GATERQ_LM_PASS_H

#include "lm/batch.h"
#include "lm/layout.h"
#include "lm/memory.h"

/* What the objective says about this part of a batch: means are over all n_positions tokens of the batch.
 *     objective = sum of losses / n_positions + gate_cost * sum over layers of sum of gate^2 / (n_positions * branches)
 */
typedef struct {
    size_t n_positions;
    double gate_cost;
} lm_objective;

/* One sub-layer's activations; (n, ...) */
typedef struct {
    grq_real *x, *scale, *y; /* see lm_read_norm */
    grq_real *inner;         /* attention: (n, 3 width) q, k, v; MLP: (n, mlp_width) after the ReLU */
    grq_real *probabilities; /* attention only */
    grq_real *mixed;         /* attention: (n, width) values read; MLP: same as inner */
    grq_real *out;           /* (n, width) */
} lm_sublayer_pass;

typedef struct {
    const lm_layout *layout;
    size_t n_sequences, window, n; /* n = n_sequences * window tokens */
    grq_real **h; /* (n, n_branches, width) before every stage: a memory layer or a sub-layer, in order; and the last */
    size_t n_stages;
    lm_sublayer_pass (*blocks)[LM_SUBLAYERS];
    lm_memory_pass memory[GRQ_MAX_MEMORY_LAYERS];
    grq_real *x, *scale, *y; /* of the head */
    grq_real *logits;        /* (n, vocab_size); their gradient after the forward pass */
    grq_real *dh, *dh_next, *d_out, *d_mixed, *d_inner, *dy, *scratch;
    double loss_sum;   /* nats over n tokens, of the last forward pass */
    grq_real *storage; /* all of the above */
} lm_pass;

/* For n_sequences windows. The layout must outlive the pass; the caller ends *out with lm_pass_free (takes NULL). */
grq_status lm_pass_new(const lm_layout *layout, size_t n_sequences, size_t window, lm_pass **out, grq_error *err);
void lm_pass_free(lm_pass *pass);

/* batch: n_sequences windows with inputs, targets and rows set. Fills its look-ups, loss_sum and the memory's gate
 * sums, and leaves everything ready for the backward pass. */
void lm_pass_forward(lm_pass *pass, const grq_real *weights, const lm_batch *batch, const lm_objective *objective);
/* Adds to the dense part of `gradient` (layout->n_dense); the look-ups become their gradients. */
void lm_pass_backward(lm_pass *pass, const grq_real *weights, const lm_batch *batch, const lm_objective *objective,
                      grq_real *gradient);

/* The objective and its whole gradient (layout->n_all), tables included, over n_sequences windows that follow each
 * other in `text` (n_sequences * window + 1 ids): for the gradient check. */
grq_status lm_gradient(const lm_layout *layout, const grq_real *weights, const int32_t *text, size_t n_sequences,
                       size_t window, double gate_cost, double *objective, grq_real *gradient, grq_error *err);

#endif
