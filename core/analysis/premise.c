#include <math.h>
#include <stdlib.h>

#include "analysis/analysis_internal.h"
#include "gaterq/world.h"
#include "stats/stats_internal.h"

/* ---- the verdict ---- */

const char *grq_premise_rule(void)
{
    return "gate: every interval ends below 0.1 and the median correlation is negative; frequency: every interval "
           "starts above 0 and the median is above 0.1; otherwise undecided";
}

static bool is_defined(const grq_interval *cell)
{
    return !isnan(cell->value);
}

static double median_estimate(const grq_interval *cells, size_t n_cells)
{
    double sorted[GRQ_MAX_MEMORY_LAYERS * GRQ_MAX_ORDER], *values = sorted;
    double *heap = NULL; /* logs may have more tables than any trace has cells */
    if (n_cells > sizeof sorted / sizeof *sorted) {
        heap = grq_stats_array(n_cells, sizeof *heap, "estimates", NULL);
        if (!heap) return NAN; /* leaves the verdict undecided */
        values = heap;
    }
    size_t n = 0;
    for (size_t i = 0; i < n_cells; i++)
        if (is_defined(&cells[i])) values[n++] = cells[i].value;
    grq_sort_values(values, n);
    const double median = grq_quantile_sorted(values, n, 0.5);
    free(heap);
    return median;
}

const char *grq_premise_verdict(const grq_interval *cells, size_t n_cells)
{
    const double median = median_estimate(cells, n_cells);
    bool all_below = true, all_above = true;
    for (size_t i = 0; i < n_cells; i++) {
        if (!is_defined(&cells[i])) continue;
        all_below &= cells[i].high < GRQ_PREMISE_MARGIN; /* false for NaN */
        all_above &= cells[i].low > 0;
    }
    if (all_below && median < 0) return "gate";
    if (all_above && median > GRQ_PREMISE_MARGIN) return "frequency";
    return "undecided";
}

/* ---- cells of a trace ---- */

/* The look-ups of one cell, side by side. */
typedef struct {
    size_t n;
    uint64_t *row;
    double *energy, *count;
    uint32_t *cluster;
} cell_points;

static void free_points(cell_points *p)
{
    free(p->row);
    free(p->energy);
    free(p->count);
    free(p->cluster);
}

static grq_status new_points(size_t n, cell_points *p, grq_error *err)
{
    *p = (cell_points){
        .row = grq_stats_array(n, sizeof *p->row, "look-ups", err),
        .energy = grq_stats_array(n, sizeof *p->energy, "look-ups", err),
        .count = grq_stats_array(n, sizeof *p->count, "look-ups", err),
        .cluster = grq_stats_array(n, sizeof *p->cluster, "look-ups", err),
    };
    return p->row && p->energy && p->count && p->cluster ? GRQ_OK : GRQ_E_NOMEM;
}

static uint32_t longest_order(const grq_trace *trace)
{
    uint32_t longest = 0;
    for (uint32_t l = 0; l < trace->n_layers; l++)
        for (uint32_t j = 0; trace->n_positions && j < trace->layers[l].n_columns; j++)
            if (trace->layers[l].order[j] > longest) longest = trace->layers[l].order[j];
    return longest;
}

static void collect(const grq_trace *trace, const grq_trace_layer *layer, uint32_t order, int kind, uint32_t longest,
                    const uint32_t *cluster, cell_points *p)
{
    p->n = 0;
    for (size_t t = 0; t < trace->n_positions; t++) {
        if (kind >= 0 && trace->kind[t] != kind) continue;
        if (trace->kind[t] != GRQ_TEXT_PROMPT && trace->position[t] + 1 < longest) continue;
        for (uint32_t j = 0; j < layer->n_columns; j++) {
            const size_t i = t * layer->n_columns + j;
            if (layer->order[i] != order) continue;
            p->row[p->n] = (uint64_t)layer->row[i];
            p->energy[p->n] = layer->gate_energy[i];
            p->count[p->n] = (double)layer->frequency[i];
            p->cluster[p->n++] = cluster[t];
        }
    }
}

static grq_status measure(cell_points *p, uint32_t n_clusters, uint32_t n_resamples, uint64_t seed,
                          grq_premise_cell *cell, grq_error *err)
{
    uint64_t n_rows = 0;
    grq_status st = grq_spearman(p->energy, p->count, p->cluster, p->n, n_clusters, n_resamples, seed,
                                 &cell->spearman_lookups, err);
    if (st == GRQ_OK)
        st = grq_row_correlations(p->row, p->energy, p->count, p->n, n_resamples, seed, &n_rows, &cell->spearman_rows,
                                  &cell->pearson_rows, err);
    for (size_t i = 0; i < p->n; i++) p->count[i] = log1p(p->count[i]);
    if (st == GRQ_OK)
        st = grq_pearson(p->energy, p->count, p->cluster, p->n, n_clusters, n_resamples, seed, &cell->pearson_lookups,
                         err);
    cell->n_lookups = p->n;
    cell->n_rows = n_rows;
    return st;
}

static bool has_order(const grq_trace_layer *layer, uint32_t order)
{
    for (uint32_t j = 0; j < layer->n_columns; j++)
        if (layer->order[j] == order) return true;
    return false;
}

/* Which cells there are: every layer and order, all positions first, then each kind that occurs beside another. */
static size_t list_cells(const grq_trace *trace, grq_premise_cell *cells)
{
    size_t of_kind[GRQ_N_TEXT_KINDS] = { 0 }, n_kinds = 0, n = 0;
    for (size_t t = 0; t < trace->n_positions; t++) of_kind[trace->kind[t]]++;
    for (int k = 0; k < GRQ_N_TEXT_KINDS; k++) n_kinds += of_kind[k] > 0;
    for (uint32_t l = 0; trace->n_positions && l < trace->n_layers; l++)
        for (uint32_t order = 1; order <= GRQ_MAX_ORDER; order++) {
            if (!has_order(&trace->layers[l], order)) continue;
            for (int k = -1; k < GRQ_N_TEXT_KINDS; k++) {
                if (k >= 0 && (!of_kind[k] || n_kinds < 2)) continue;
                if (cells) cells[n] = (grq_premise_cell){ .layer = trace->layers[l].layer, .order = order, .kind = k };
                n++;
            }
        }
    return n;
}

static const grq_trace_layer *layer_of(const grq_trace *trace, uint32_t layer)
{
    uint32_t l = 0;
    while (trace->layers[l].layer != layer) l++;
    return &trace->layers[l];
}

static const char *verdict_of(const grq_premise *premise, grq_error *err)
{
    grq_interval *over_all = grq_stats_array(premise->n_cells, sizeof *over_all, "cells", err);
    if (!over_all) return NULL;
    size_t n = 0;
    for (size_t i = 0; i < premise->n_cells; i++)
        if (premise->cells[i].kind < 0) over_all[n++] = premise->cells[i].spearman_lookups;
    const char *verdict = grq_premise_verdict(over_all, n);
    free(over_all);
    return verdict;
}

grq_status grq_premise_run(const grq_trace *trace, uint32_t n_resamples, uint64_t seed, grq_premise *out,
                           grq_error *err)
{
    *out = (grq_premise){ .n_cells = list_cells(trace, NULL) };
    size_t most_columns = 0;
    for (uint32_t l = 0; l < trace->n_layers; l++)
        if (trace->layers[l].n_columns > most_columns) most_columns = trace->layers[l].n_columns;
    uint32_t *cluster = NULL, n_clusters = 0;
    cell_points points = { 0 };
    out->cells = grq_stats_array(out->n_cells, sizeof *out->cells, "cells", err);
    grq_status st = out->cells ? GRQ_OK : GRQ_E_NOMEM;
    if (st == GRQ_OK) st = grq_sequence_clusters(trace, &cluster, &n_clusters, err);
    if (st == GRQ_OK) st = new_points(trace->n_positions * most_columns, &points, err);
    if (st == GRQ_OK) list_cells(trace, out->cells);
    const uint32_t longest = longest_order(trace);
    for (size_t i = 0; st == GRQ_OK && i < out->n_cells; i++) {
        grq_premise_cell *cell = &out->cells[i];
        collect(trace, layer_of(trace, cell->layer), cell->order, cell->kind, longest, cluster, &points);
        st = measure(&points, n_clusters, n_resamples, seed, cell, err);
    }
    if (st == GRQ_OK && !(out->verdict = verdict_of(out, err))) st = GRQ_E_NOMEM;
    free_points(&points);
    free(cluster);
    if (st != GRQ_OK) grq_premise_free(out);
    return st;
}

void grq_premise_free(grq_premise *premise)
{
    free(premise->cells);
    *premise = (grq_premise){ 0 };
}
