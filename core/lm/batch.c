#include "lm/batch.h"

#include <stdlib.h>
#include <string.h>

#include "gaterq/hash.h"
#include "lm/model_internal.h"

grq_status lm_batch_new(const grq_geometry *geometry, size_t n_sequences, size_t window, lm_batch *out, grq_error *err)
{
    const size_t n = n_sequences * window;
    *out = (lm_batch){ .geometry = geometry, .n_sequences = n_sequences, .window = window };
    out->inputs = lm_allocate(n, sizeof *out->inputs);
    out->targets = lm_allocate(n, sizeof *out->targets);
    bool complete = out->inputs && out->targets;
    for (uint32_t i = 0; i < geometry->n_layers; i++) {
        out->rows[i] = lm_allocate(n, geometry->n_columns * sizeof *out->rows[i]);
        out->lookups[i] = lm_allocate(n, geometry->row_values * sizeof *out->lookups[i]);
        complete = complete && out->rows[i] && out->lookups[i];
    }
    return complete ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "training: no memory for a batch of %zu tokens", n);
}

void lm_batch_free(lm_batch *batch)
{
    free(batch->inputs);
    free(batch->targets);
    for (uint32_t i = 0; i < GRQ_MAX_MEMORY_LAYERS; i++) {
        free(batch->rows[i]);
        free(batch->lookups[i]);
    }
    *batch = (lm_batch){ 0 };
}

grq_status lm_batch_load(const lm_batch *batch, size_t sequence, const int32_t *ids, grq_error *err)
{
    const size_t at = sequence * batch->window;
    memcpy(batch->inputs + at, ids, batch->window * sizeof *ids);
    memcpy(batch->targets + at, ids + 1, batch->window * sizeof *ids);
    for (uint32_t i = 0; i < batch->geometry->n_layers; i++) {
        grq_hash_state state;
        grq_hash_start(&state);
        const grq_status st = grq_hash_rows(batch->geometry, i, &state, ids, batch->window,
                                            batch->rows[i] + at * batch->geometry->n_columns, err);
        if (st != GRQ_OK) return st;
    }
    return GRQ_OK;
}

lm_batch lm_batch_part(const lm_batch *batch, size_t first, size_t n_sequences)
{
    const size_t at = first * batch->window;
    lm_batch part = *batch;
    part.n_sequences = n_sequences;
    part.inputs += at;
    part.targets += at;
    for (uint32_t i = 0; i < batch->geometry->n_layers; i++) {
        part.rows[i] += at * batch->geometry->n_columns;
        part.lookups[i] += at * batch->geometry->row_values;
    }
    return part;
}
