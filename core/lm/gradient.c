/* The gradient of a few windows in one call, tables included: the trainer's own pass, for the gradient check. */
#include <string.h>

#include "lm/pass.h"

static void scatter(const lm_layout *layout, const lm_batch *batch, grq_real *gradient)
{
    const grq_geometry *g = batch->geometry;
    const size_t n_rows = batch->n_sequences * batch->window * g->n_columns;
    for (uint32_t i = 0; i < g->n_layers; i++)
        for (size_t r = 0; r < n_rows; r++) {
            grq_real *to = gradient + layout->memory[i].table + (size_t)batch->rows[i][r] * g->row_dim;
            for (size_t k = 0; k < g->row_dim; k++) to[k] += batch->lookups[i][r * g->row_dim + k];
        }
}

static double objective_of(const lm_layout *layout, const lm_pass *pass, const lm_objective *objective)
{
    const grq_geometry *g = &layout->shape->memory;
    double value = pass->loss_sum / (double)objective->n_positions;
    for (uint32_t i = 0; i < g->n_layers; i++)
        value +=
            objective->gate_cost * pass->memory[i].gate_square_sum / ((double)objective->n_positions * g->n_branches);
    return value;
}

grq_status lm_gradient(const lm_layout *layout, const grq_real *weights, const int32_t *text, size_t n_sequences,
                       size_t window, double gate_cost, double *objective, grq_real *gradient, grq_error *err)
{
    const lm_objective mean = { .n_positions = n_sequences * window, .gate_cost = gate_cost };
    lm_batch batch;
    lm_pass *pass = NULL;
    grq_status st = grq_blas_init(err);
    if (st != GRQ_OK) return st;
    st = lm_batch_new(&layout->shape->memory, n_sequences, window, &batch, err);
    for (size_t s = 0; s < n_sequences && st == GRQ_OK; s++) st = lm_batch_load(&batch, s, text + s * window, err);
    if (st == GRQ_OK) st = lm_pass_new(layout, n_sequences, window, &pass, err);
    if (st == GRQ_OK) {
        memset(gradient, 0, layout->n_all * sizeof *gradient);
        lm_pass_forward(pass, weights, &batch, &mean);
        lm_pass_backward(pass, weights, &batch, &mean, gradient);
        scatter(layout, &batch, gradient);
        *objective = objective_of(layout, pass, &mean);
    }
    lm_pass_free(pass);
    lm_batch_free(&batch);
    return st;
}
