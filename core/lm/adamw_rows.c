/* AdamW of the memory rows. Work is cut by layer and column: no two columns share a row. */
#include <math.h>
#include <string.h>

#include "lm/adamw.h"
#include "shared/simd.h"

/* One step of one row; gradient NULL stands for zeroes. */
static inline __attribute__((always_inline)) void row_step(const lm_adamw *adam, const lm_adam_step *step, size_t at,
                                                           size_t n, const float *gradient)
{
    static const float EPS = 1e-9f;
    float *w = adam->weights + at, *m = adam->first + at, *v = adam->second + at;
    const float b1 = adam->beta1, b2 = adam->beta2, r1 = adam->rest1, r2 = adam->rest2;
    const float rate = step->table_rate, c1 = step->correction1, c2 = step->correction2;
    for (size_t i = 0; i < n; i++) {
        const float g = gradient ? gradient[i] : 0;
        m[i] = b1 * m[i] + r1 * g;
        v[i] = b2 * v[i] + r2 * g * g;
        w[i] -= rate * (m[i] * c1) / (sqrtf(v[i] * c2) + EPS);
    }
}

enum { AHEAD = 6 }; /* look-ups of a column whose rows are fetched early: they lie anywhere in memory */

static void prefetch_row(const lm_adamw *adam, uint32_t layer, size_t row)
{
    enum { LINE = 16 };
    const size_t n = adam->layout->shape->memory.row_dim, at = adam->layout->memory[layer].table + row * n;
    for (size_t i = 0; i < n; i += LINE) {
        __builtin_prefetch(adam->first + at + i);
        __builtin_prefetch(adam->second + at + i);
        __builtin_prefetch(adam->weights + at + i);
    }
}

/* A row that was never read: steps without a gradient change nothing. */
static bool is_at_rest(const lm_adamw *adam, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (adam->second[at + i] != 0 || adam->first[at + i] != 0) return false;
    return true;
}

static GRQ_SIMD void row_idle_steps(const lm_adamw *adam, uint64_t from, uint64_t to, size_t at, size_t n)
{
    for (uint64_t s = from; s < to; s++) row_step(adam, &adam->steps[s], at, n, NULL);
}

static void catch_up_row(const lm_adamw *adam, uint32_t layer, size_t row, uint64_t step)
{
    uint32_t *applied = &adam->applied[layer][row];
    const size_t n = adam->layout->shape->memory.row_dim, at = adam->layout->memory[layer].table + row * n;
    if (*applied < step && !is_at_rest(adam, at, n)) row_idle_steps(adam, *applied, step, at, n);
    *applied = (uint32_t)step;
}

void lm_adamw_catch_up(const lm_adamw *adam, uint64_t step, const lm_batch *batch, uint32_t n_threads)
{
    const grq_geometry *g = batch->geometry;
    const size_t n = batch->n_sequences * batch->window, n_columns = g->n_columns;
#pragma omp parallel for num_threads(n_threads) schedule(dynamic) collapse(2)
    for (uint32_t layer = 0; layer < g->n_layers; layer++)
        for (size_t c = 0; c < n_columns; c++)
            for (size_t t = 0; t < n; t++) {
                const int64_t *row = batch->rows[layer] + t * n_columns + c;
                if (t + AHEAD < n) prefetch_row(adam, layer, (size_t)row[AHEAD * n_columns]);
                catch_up_row(adam, layer, (size_t)*row, step);
            }
}

void lm_adamw_catch_up_all(const lm_adamw *adam, uint64_t step, uint32_t n_threads)
{
    const grq_geometry *g = &adam->layout->shape->memory;
    for (uint32_t layer = 0; layer < g->n_layers; layer++) {
#pragma omp parallel for num_threads(n_threads) schedule(static)
        for (size_t row = 0; row < g->n_rows[layer]; row++) catch_up_row(adam, layer, row, step);
    }
}

/* Sums the gradients of a column's repeated rows into the first token that read each. `reader` needs no clearing: what
 * it holds for a row counts only if that token, at or before this one, read the row in this very batch. */
static GRQ_SIMD void gather_column(const lm_batch *batch, uint32_t layer, size_t column, uint32_t *reader)
{
    const grq_geometry *g = batch->geometry;
    const size_t n = batch->n_sequences * batch->window, n_columns = g->n_columns, dim = g->row_dim;
    const int64_t *rows = batch->rows[layer];
    for (size_t t = 0; t < n; t++) {
        const int64_t row = rows[t * n_columns + column];
        const size_t first = reader[row];
        if (first < t && rows[first * n_columns + column] == row) {
            float *to = batch->lookups[layer] + (first * n_columns + column) * dim;
            const float *from = batch->lookups[layer] + (t * n_columns + column) * dim;
            for (size_t i = 0; i < dim; i++) to[i] += from[i];
        } else {
            reader[row] = (uint32_t)t;
        }
    }
}

static GRQ_SIMD void step_column(const lm_adamw *adam, uint64_t step, const lm_batch *batch, uint32_t layer,
                                 size_t column)
{
    const grq_geometry *g = batch->geometry;
    const size_t n = batch->n_sequences * batch->window, dim = g->row_dim;
    for (size_t t = 0; t < n; t++) {
        const size_t look_up = t * g->n_columns + column, row = (size_t)batch->rows[layer][look_up];
        if (t + AHEAD < n) prefetch_row(adam, layer, (size_t)batch->rows[layer][look_up + AHEAD * g->n_columns]);
        if (adam->reader[layer][row] != t) continue;
        row_step(adam, &adam->steps[step], adam->layout->memory[layer].table + row * dim, dim,
                 batch->lookups[layer] + look_up * dim);
        adam->applied[layer][row] = (uint32_t)(step + 1);
    }
}

void lm_adamw_rows(const lm_adamw *adam, uint64_t step, const lm_batch *batch, uint32_t n_threads)
{
    const grq_geometry *g = batch->geometry;
#pragma omp parallel for num_threads(n_threads) schedule(dynamic) collapse(2)
    for (uint32_t layer = 0; layer < g->n_layers; layer++)
        for (size_t column = 0; column < g->n_columns; column++) {
            gather_column(batch, layer, column, adam->reader[layer]);
            step_column(adam, step, batch, layer, column);
        }
}

void lm_adamw_set_applied(const lm_adamw *adam, uint64_t step)
{
    const grq_geometry *g = &adam->layout->shape->memory;
    for (uint32_t layer = 0; layer < g->n_layers; layer++)
        for (size_t row = 0; row < g->n_rows[layer]; row++) adam->applied[layer][row] = (uint32_t)step;
}
