/* Counting: batches of windows run through the model on any number of threads; what they saw is added up in text order,
 * so that the sums do not depend on the threads. */
#include "gaterq/counts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/lookups.h"

enum { BATCH_TOKENS = 4096 }; /* about this many tokens go through the model together */

/* One worker: its decoder, and what the hook saw in the current batch. */
typedef struct {
    const grq_codes *const *codes;
    grq_memory_hook hook;
    grq_decoder *decoder;
    grq_lookups lookups;
    size_t n_tokens;                      /* of the current batch */
    int64_t *rows[GRQ_MAX_MEMORY_LAYERS]; /* (n_tokens, n_columns) */
    float *energy[GRQ_MAX_MEMORY_LAYERS]; /* (n_tokens) */
    grq_status status;
    grq_error error;
} counter;

static grq_status count_lookups(void *context, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows,
                                float *h, grq_error *err)
{
    counter *c = context;
    const uint32_t l = layer->layer_index;
    const grq_status st = grq_lookups_read(&c->lookups, layer, c->codes[l], n_tokens, rows, h, err);
    if (st != GRQ_OK) return st;
    memcpy(c->rows[l], rows, n_tokens * layer->geometry->n_columns * sizeof *rows);
    memcpy(c->energy[l], c->lookups.energy_first, n_tokens * sizeof *c->energy[l]);
    grq_lookups_inject(&c->lookups, layer, n_tokens, h);
    return GRQ_OK;
}

static void free_counter(counter *c)
{
    grq_decoder_free(c->decoder);
    grq_lookups_free(&c->lookups);
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++) {
        free(c->rows[l]);
        free(c->energy[l]);
    }
}

static grq_status init_counter(counter *c, const grq_model *model, const grq_codes *const *codes, uint32_t n_windows,
                               uint32_t window, grq_error *err)
{
    const grq_geometry *g = &grq_model_shape_of(model)->memory;
    const size_t n_tokens = (size_t)n_windows * window;
    *c = (counter){ .codes = codes, .hook = { .apply = count_lookups, .context = c } };
    for (uint32_t l = 0; l < g->n_layers; l++) {
        c->rows[l] = grq_trace_array(n_tokens, g->n_columns * sizeof *c->rows[l], "look-ups", err);
        c->energy[l] = grq_trace_array(n_tokens, sizeof *c->energy[l], "gate energies", err);
        if (!c->rows[l] || !c->energy[l]) return GRQ_E_NOMEM;
    }
    return grq_decoder_new(model, &c->hook, n_windows, window, &c->decoder, err);
}

/* Runs tokens [0, n_tokens) as windows; the last one may be shorter. */
static void run_batch(counter *c, const int32_t *tokens, size_t n_tokens, uint32_t window, uint32_t n_windows)
{
    uint32_t n_new[BATCH_TOKENS];
    c->n_tokens = n_tokens;
    for (uint32_t w = 0; w < n_windows; w++) {
        const size_t start = (size_t)w * window;
        n_new[w] = start >= n_tokens ? 0 : n_tokens - start < window ? (uint32_t)(n_tokens - start) : window;
    }
    grq_decoder_reset(c->decoder);
    c->status = grq_decoder_step(c->decoder, n_new, tokens, NULL, NULL, &c->error);
}

static void add_batch(const counter *c, uint32_t n_columns, grq_counts *out)
{
    for (uint32_t l = 0; l < out->n_layers; l++)
        for (size_t t = 0; t < c->n_tokens; t++) {
            const double energy = c->energy[l][t];
            out->mean_gate_energy[l] += energy; /* a sum until the end */
            for (uint32_t j = 0; j < n_columns; j++) {
                const int64_t row = c->rows[l][t * n_columns + j];
                out->count[l][row]++;
                out->gate_energy_sum[l][row] += energy;
            }
        }
    out->n_positions += c->n_tokens;
}

static grq_status count_tokens(counter *counters, uint32_t n_counters, const int32_t *tokens, size_t n_tokens,
                               uint32_t window, uint32_t n_windows, uint32_t n_columns, const grq_progress *progress,
                               grq_counts *out, grq_error *err)
{
    const size_t per_batch = (size_t)n_windows * window;
    grq_status st = GRQ_OK;
    for (size_t start = 0; st == GRQ_OK && start < n_tokens; start += per_batch * n_counters) {
        const size_t left = n_tokens - start, n_batches = (left + per_batch - 1) / per_batch;
        const int n_now = (int)(n_batches < n_counters ? n_batches : n_counters);
#pragma omp parallel for num_threads(n_now) schedule(static, 1)
        for (int k = 0; k < n_now; k++) {
            const size_t from = (size_t)k * per_batch;
            run_batch(&counters[k], tokens + start + from, left - from < per_batch ? left - from : per_batch, window,
                      n_windows);
        }
        for (int k = 0; st == GRQ_OK && k < n_now; k++) {
            st = counters[k].status;
            if (st == GRQ_OK) add_batch(&counters[k], n_columns, out);
            else if (err) *err = counters[k].error;
        }
        if (st == GRQ_OK) st = grq_progress_step(progress, "count", out->n_positions, n_tokens, "tokens", NULL, err);
    }
    for (uint32_t l = 0; l < out->n_layers; l++) out->mean_gate_energy[l] /= (double)n_tokens;
    return st;
}

static grq_status new_counts(const grq_geometry *g, grq_counts *out, grq_error *err)
{
    *out = (grq_counts){ .n_layers = g->n_layers };
    for (uint32_t l = 0; l < g->n_layers; l++) {
        out->n_rows[l] = g->n_rows[l];
        out->count[l] = grq_trace_array(g->n_rows[l], sizeof *out->count[l], "row counts", err);
        out->gate_energy_sum[l] =
            grq_trace_array(g->n_rows[l], sizeof *out->gate_energy_sum[l], "gate energy sums", err);
        if (!out->count[l] || !out->gate_energy_sum[l]) return GRQ_E_NOMEM;
    }
    return GRQ_OK;
}

grq_status grq_counts_run(const grq_model *model, const grq_codes *const *codes, const int32_t *tokens, size_t n_tokens,
                          uint32_t window, uint32_t n_threads, const grq_progress *progress, grq_counts *out,
                          grq_error *err)
{
    const grq_geometry *g = &grq_model_shape_of(model)->memory;
    *out = (grq_counts){ 0 };
    if (n_tokens == 0) return grq_fail(err, GRQ_E_USAGE, "no tokens to count over");
    if (window == 0 || window > BATCH_TOKENS)
        return grq_fail(err, GRQ_E_USAGE, "window of %" PRIu32 " tokens: must be 1 to %d", window, BATCH_TOKENS);
    const uint32_t n_windows = BATCH_TOKENS / window;
    const size_t n_batches = (n_tokens - 1) / ((size_t)n_windows * window) + 1;
    const uint32_t n_counters = n_threads < 1 ? 1 : n_batches < n_threads ? (uint32_t)n_batches : n_threads;
    grq_status st = grq_lookups_check(model, codes, 1, err);
    if (st == GRQ_OK) st = new_counts(g, out, err);
    counter *counters = grq_trace_array(n_counters, sizeof *counters, "counters", err);
    if (!counters) st = GRQ_E_NOMEM;
    for (uint32_t k = 0; st == GRQ_OK && k < n_counters; k++)
        st = init_counter(&counters[k], model, codes, n_windows, window, err);
    if (st == GRQ_OK)
        st = count_tokens(counters, n_counters, tokens, n_tokens, window, n_windows, g->n_columns, progress, out, err);
    for (uint32_t k = 0; counters && k < n_counters; k++) free_counter(&counters[k]);
    free(counters);
    if (st != GRQ_OK) grq_counts_free(out);
    return st;
}

void grq_counts_free(grq_counts *counts)
{
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++) {
        free(counts->count[l]);
        free(counts->gate_energy_sum[l]);
    }
    *counts = (grq_counts){ 0 };
}

double grq_counts_prior(const grq_counts *counts, uint32_t layer_index, uint64_t row)
{
    return (counts->gate_energy_sum[layer_index][row] + counts->mean_gate_energy[layer_index]) /
           ((double)counts->count[layer_index][row] + 1);
}
