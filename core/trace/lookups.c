#include "trace/lookups.h"

#include <inttypes.h>
#include <stdlib.h>

void *grq_trace_array(size_t n, size_t item_bytes, const char *what, grq_error *err)
{
    void *array = calloc(n ? n : 1, item_bytes);
    if (!array) grq_fail(err, GRQ_E_NOMEM, "no memory for %zu %s", n, what);
    return array;
}

void grq_lookups_free(grq_lookups *l)
{
    free(l->full);
    free(l->first);
    free(l->keys);
    free(l->values);
    free(l->gates_full);
    free(l->gates_first);
    free(l->energy_full);
    free(l->energy_first);
    *l = (grq_lookups){ 0 };
}

static grq_status grow(grq_lookups *l, const grq_geometry *g, size_t n, grq_error *err)
{
    if (n <= l->room) return GRQ_OK;
    grq_lookups_free(l);
    const size_t value_bytes = g->row_values * sizeof(float), gate_bytes = g->n_branches * sizeof(float);
    *l = (grq_lookups){
        .room = n,
        .full = grq_trace_array(n, value_bytes, "rows", err),
        .first = grq_trace_array(n, value_bytes, "rows", err),
        .keys = grq_trace_array(n, gate_bytes * g->width, "keys", err),
        .values = grq_trace_array(n, g->width * sizeof(float), "values", err),
        .gates_full = grq_trace_array(n, gate_bytes, "gates", err),
        .gates_first = grq_trace_array(n, gate_bytes, "gates", err),
        .energy_full = grq_trace_array(n, sizeof(float), "gate energies", err),
        .energy_first = grq_trace_array(n, sizeof(float), "gate energies", err),
    };
    if (l->full && l->first && l->keys && l->values && l->gates_full && l->gates_first && l->energy_full &&
        l->energy_first)
        return GRQ_OK;
    grq_lookups_free(l);
    return GRQ_E_NOMEM;
}

grq_status grq_lookups_read(grq_lookups *l, const grq_memory_layer *layer, const grq_codes *codes, size_t n_tokens,
                            const int64_t *rows, const float *h, grq_error *err)
{
    const grq_geometry *g = layer->geometry;
    const grq_status st = grow(l, g, n_tokens, err);
    if (st != GRQ_OK) return st;
    grq_layer_fetch(layer, n_tokens, rows, l->full);
    for (size_t i = 0; i < n_tokens * g->n_columns; i++)
        grq_codes_decode(codes, (uint64_t)rows[i], 1, l->first + i * g->row_dim);
    grq_layer_keys(layer, n_tokens, l->first, l->keys);
    grq_layer_gates(layer, n_tokens, h, l->keys, NULL, l->gates_first);
    grq_layer_keys(layer, n_tokens, l->full, l->keys);
    grq_layer_gates(layer, n_tokens, h, l->keys, NULL, l->gates_full);
    grq_gate_energy(n_tokens, g->n_branches, l->gates_first, l->energy_first);
    grq_gate_energy(n_tokens, g->n_branches, l->gates_full, l->energy_full);
    return GRQ_OK;
}

void grq_lookups_inject(grq_lookups *l, const grq_memory_layer *layer, size_t n_tokens, float *h)
{
    grq_layer_values(layer, n_tokens, l->full, l->values);
    grq_layer_inject(layer, n_tokens, l->gates_full, l->values, h);
}

grq_status grq_lookups_check(const grq_model *model, const grq_codes *const *codes, uint32_t n_stages, grq_error *err)
{
    const grq_geometry *g = &grq_model_shape_of(model)->memory;
    for (uint32_t l = 0; l < g->n_layers; l++) {
        if (grq_codes_n_rows(codes[l]) != g->n_rows[l] || grq_codes_row_dim(codes[l]) != g->row_dim)
            return grq_fail(err, GRQ_E_DATA,
                            "codes of layer %" PRIu32 " hold %" PRIu64 " rows of %" PRIu32
                            " values; the model's table has %" PRIu64 " of %" PRIu32 ": encode this model's table",
                            g->layer_ids[l], grq_codes_n_rows(codes[l]), grq_codes_row_dim(codes[l]), g->n_rows[l],
                            g->row_dim);
        if (grq_codes_n_stages(codes[l]) < n_stages)
            return grq_fail(err, GRQ_E_DATA,
                            "codes of layer %" PRIu32 " have %" PRIu32 " stages; %" PRIu32 " are needed",
                            g->layer_ids[l], grq_codes_n_stages(codes[l]), n_stages);
    }
    return GRQ_OK;
}
