#include <stdlib.h>

#include "analysis/analysis_internal.h"
#include "stats/stats_internal.h"

static grq_status fidelity(const grq_trace *trace, const grq_trace_layer *layer, const uint32_t *cluster,
                           uint32_t n_clusters, uint32_t n_resamples, uint64_t seed, grq_interval *out, grq_error *err)
{
    const size_t n = trace->n_positions * layer->n_branches;
    double *first = grq_stats_array(n, sizeof *first, "gates", err),
           *full = grq_stats_array(n, sizeof *full, "gates", err);
    uint32_t *of_gate = grq_stats_array(n, sizeof *of_gate, "gates", err);
    grq_status st = first && full && of_gate ? GRQ_OK : GRQ_E_NOMEM;
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        first[i] = layer->gates_stage1[i];
        full[i] = layer->gates_full[i];
        of_gate[i] = cluster[i / layer->n_branches];
    }
    if (st == GRQ_OK) st = grq_pearson(first, full, of_gate, n, n_clusters, n_resamples, seed, out, err);
    free(first);
    free(full);
    free(of_gate);
    return st;
}

/* `values` (n) is room for the look-ups' importances, then gate energies. */
static grq_status concentration(const grq_trace_layer *layer, size_t n, double *values, grq_layer_profile *out,
                                grq_error *err)
{
    double percents[101], top[3] = { 0.01, 0.10, 0.412 }, shares[3];
    for (int i = 0; i <= 100; i++) percents[i] = i / 100.0;
    for (size_t i = 0; i < n; i++) values[i] = layer->importance[i];
    grq_status st = grq_top_share(values, n, percents, 101, out->lorenz, err);
    if (st == GRQ_OK) st = grq_top_share(values, n, top, 3, shares, err);
    if (st != GRQ_OK) return grq_fail_prefix(err, st, "importance of layer %u", layer->layer);
    out->top_1 = shares[0];
    out->top_10 = shares[1];
    out->top_41 = shares[2];
    for (size_t i = 0; i < n; i++) values[i] = layer->gate_energy[i];
    st = grq_top_share(values, n, top, 1, &out->top_1_energy, err);
    if (st != GRQ_OK) grq_fail_prefix(err, st, "gate energy of layer %u", layer->layer);
    return st;
}

static void unseen(const grq_trace_layer *layer, size_t n, grq_layer_profile *out)
{
    double total[GRQ_MAX_ORDER + 1] = { 0 }, of_unseen[GRQ_MAX_ORDER + 1] = { 0 };
    for (size_t i = 0; i < n; i++) {
        const uint32_t order = layer->order[i];
        total[order] += layer->importance[i];
        if (layer->frequency[i]) continue;
        of_unseen[order] += layer->importance[i];
        out->unseen_lookups[order]++;
    }
    for (uint32_t order = 0; order <= GRQ_MAX_ORDER; order++)
        out->unseen_share[order] = total[order] > 0 ? of_unseen[order] / total[order] : 0;
}

grq_status grq_profile_run(const grq_trace *trace, uint32_t n_resamples, uint64_t seed,
                           grq_layer_profile out[GRQ_MAX_MEMORY_LAYERS], grq_error *err)
{
    uint32_t *cluster = NULL, n_clusters = 0;
    grq_status st = grq_sequence_clusters(trace, &cluster, &n_clusters, err);
    for (uint32_t l = 0; st == GRQ_OK && l < trace->n_layers; l++) {
        const grq_trace_layer *layer = &trace->layers[l];
        const size_t n = trace->n_positions * layer->n_columns;
        out[l] = (grq_layer_profile){ .layer = layer->layer, .n_lookups = n };
        double *values = grq_stats_array(n, sizeof *values, "look-ups", err);
        st = values ? fidelity(trace, layer, cluster, n_clusters, n_resamples, seed, &out[l].gate_fidelity, err)
                    : GRQ_E_NOMEM;
        if (st == GRQ_OK) st = concentration(layer, n, values, &out[l], err);
        if (st == GRQ_OK) unseen(layer, n, &out[l]);
        free(values);
    }
    free(cluster);
    return st;
}
