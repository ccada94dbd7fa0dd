/* What each ordering captures of the error that stage 2 could remove. A layer's look-ups are sorted once per ordering;
 * every budget is a prefix of that order, which is exactly what grq_budget_allocate takes. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis_internal.h"
#include "gaterq/rng.h"
#include "stats/stats_internal.h"

/* One layer as the policies see it, and room to rank it. */
typedef struct {
    const grq_trace_layer *layer;
    size_t n_positions, n_lookups;
    float *gate_energy;     /* (n_positions) */
    double *tau;            /* (n_columns) */
    uint64_t *position_ids; /* (n_positions) */
    double *score;          /* (n_lookups) */
    uint32_t *order;        /* (n_lookups) look-ups, best first */
} ranking;

/* Sums over all layers; per sequence for the bootstrap. */
typedef struct {
    uint32_t n_clusters;
    uint32_t *cluster;                 /* (n_positions) */
    double *total;                     /* (n_clusters) weighted reduction */
    double *captured[GRQ_N_ORDERINGS]; /* (n_clusters) of it, at the budget */
    double sum_total, sum_injected, curve[GRQ_CURVE_POINTS][GRQ_N_ORDERINGS];
    double weighted[GRQ_N_ORDERINGS], injected[GRQ_N_ORDERINGS], bound, bound_injected;
} sums;

static void free_ranking(ranking *r)
{
    free(r->gate_energy);
    free(r->tau);
    free(r->position_ids);
    free(r->score);
    free(r->order);
}

/* Gate energy belongs to a position and tau to a column; a file in which they do not is no trace of this layer. */
static grq_status fill_ranking(ranking *r, grq_error *err)
{
    const grq_trace_layer *layer = r->layer;
    for (size_t i = 0; i < r->n_lookups; i++) {
        const size_t t = i / layer->n_columns, j = i % layer->n_columns;
        if (j == 0) {
            r->position_ids[t] = t;
            r->gate_energy[t] = layer->gate_energy[i];
        }
        if (t == 0) r->tau[j] = layer->tau[i];
        if (layer->gate_energy[i] != r->gate_energy[t])
            return grq_fail(err, GRQ_E_DATA,
                            "layer %u: gate_energy of position %zu is %g in column 0 and %g in column %zu",
                            layer->layer, t, r->gate_energy[t], layer->gate_energy[i], j);
        if (layer->tau[i] != (float)r->tau[j])
            return grq_fail(err, GRQ_E_DATA, "layer %u: tau of column %zu is %g at position 0 and %g at position %zu",
                            layer->layer, j, r->tau[j], layer->tau[i], t);
    }
    return GRQ_OK;
}

static grq_status new_ranking(const grq_trace *trace, const grq_trace_layer *layer, ranking *r, grq_error *err)
{
    const size_t n = trace->n_positions, n_lookups = n * layer->n_columns;
    *r = (ranking){
        .layer = layer,
        .n_positions = n,
        .n_lookups = n_lookups,
        .gate_energy = grq_stats_array(n, sizeof *r->gate_energy, "positions", err),
        .tau = grq_stats_array(layer->n_columns, sizeof *r->tau, "columns", err),
        .position_ids = grq_stats_array(n, sizeof *r->position_ids, "positions", err),
        .score = grq_stats_array(n_lookups, sizeof *r->score, "look-ups", err),
        .order = grq_stats_array(n_lookups, sizeof *r->order, "look-ups", err),
    };
    if (!r->gate_energy || !r->tau || !r->position_ids || !r->score || !r->order) return GRQ_E_NOMEM;
    return fill_ranking(r, err);
}

static grq_status rank(ranking *r, grq_ordering ordering, uint64_t seed, grq_error *err)
{
    const grq_trace_layer *layer = r->layer;
    const grq_lookup_batch batch = {
        .n_positions = r->n_positions,
        .n_columns = layer->n_columns,
        .position_ids = r->position_ids,
        .gate_energy = r->gate_energy,
        .tau = r->tau,
        .row_energy = layer->row_energy,
        .prior = layer->prior,
        .frequency = layer->frequency,
        .true_reduction = layer->injected_reduction,
    };
    grq_status st = grq_policy_score(ordering, &batch, seed, r->score, err);
    if (st == GRQ_OK) st = grq_stable_order_descending(r->score, r->n_lookups, r->order, err);
    return st;
}

/* The sum of the largest k values: no ordering can take more. */
static grq_status best_sum(ranking *r, const float *reduction, size_t k, double *sum, grq_error *err)
{
    for (size_t i = 0; i < r->n_lookups; i++) r->score[i] = reduction[i];
    const grq_status st = grq_stable_order_descending(r->score, r->n_lookups, r->order, err);
    for (size_t i = 0; st == GRQ_OK && i < k; i++) *sum += r->score[r->order[i]];
    return st;
}

/* Adds `share` (1, or 1 / draws) of what the current ranking captures; returns the layer's captured sum. */
static double add_captured(const ranking *r, grq_ordering ordering, size_t at_budget, double share, sums *s)
{
    const grq_trace_layer *layer = r->layer;
    double weighted = 0, injected = 0, at_budget_sum = 0;
    size_t i = 0;
    for (uint32_t point = 0; point < GRQ_CURVE_POINTS; point++) {
        const size_t k = grq_budget_count((double)point / (GRQ_CURVE_POINTS - 1), r->n_lookups);
        for (; i < k; i++) weighted += layer->weighted_reduction[r->order[i]];
        s->curve[point][ordering] += share * weighted;
    }
    for (i = 0; i < at_budget; i++) {
        const uint32_t look_up = r->order[i];
        const double gain = layer->weighted_reduction[look_up];
        at_budget_sum += gain;
        injected += layer->injected_reduction[look_up];
        s->captured[ordering][s->cluster[look_up / layer->n_columns]] += share * gain;
    }
    s->weighted[ordering] += share * at_budget_sum;
    s->injected[ordering] += share * injected;
    return share * at_budget_sum;
}

static grq_status ablate_layer(const grq_trace *trace, uint32_t l, uint64_t seed, sums *s, grq_ablation *out,
                               grq_error *err)
{
    ranking r;
    grq_status st = new_ranking(trace, &trace->layers[l], &r, err);
    const grq_trace_layer *layer = &trace->layers[l];
    const size_t k = grq_budget_count(out->budget, r.n_lookups);
    double total = 0;
    for (size_t i = 0; st == GRQ_OK && i < r.n_lookups; i++) {
        total += layer->weighted_reduction[i];
        s->sum_injected += layer->injected_reduction[i];
        s->total[s->cluster[i / layer->n_columns]] += layer->weighted_reduction[i];
    }
    s->sum_total += total;
    for (int o = 0; st == GRQ_OK && o < GRQ_N_ORDERINGS; o++) {
        const uint32_t n_draws = o == GRQ_ORDER_RANDOM ? GRQ_RANDOM_DRAWS : 1;
        double captured = 0;
        for (uint32_t draw = 0; st == GRQ_OK && draw < n_draws; draw++) {
            st = rank(&r, (grq_ordering)o, seed + l + 7919 * draw, err); /* 7919: as the readers number their draws */
            if (st == GRQ_OK) captured += add_captured(&r, (grq_ordering)o, k, 1.0 / n_draws, s);
        }
        out->captured_layer[l][o] = total > 0 ? captured / total : NAN;
    }
    if (st == GRQ_OK) st = best_sum(&r, layer->weighted_reduction, k, &s->bound, err);
    if (st == GRQ_OK) st = best_sum(&r, layer->injected_reduction, k, &s->bound_injected, err);
    free_ranking(&r);
    if (st != GRQ_OK) grq_fail_prefix(err, st, "layer %u", layer->layer);
    return st;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

/* All orderings share each replicate's draw of sequences. */
static grq_status bootstrap(const sums *s, uint32_t n_resamples, uint64_t seed, grq_ablation *out, grq_error *err)
{
    for (int o = 0; o < GRQ_N_ORDERINGS; o++) out->captured_low[o] = out->captured_high[o] = NAN;
    if (n_resamples == 0 || s->n_clusters < 2) return GRQ_OK;
    double *replicates = grq_stats_array((size_t)n_resamples * GRQ_N_ORDERINGS, sizeof *replicates, "replicates", err);
    if (!replicates) return GRQ_E_NOMEM;
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "captured");
    size_t n = 0;
    for (uint32_t r = 0; r < n_resamples; r++) {
        double total = 0, captured[GRQ_N_ORDERINGS] = { 0 };
        for (uint32_t k = 0; k < s->n_clusters; k++) {
            const uint64_t c = grq_rng_below(&rng, s->n_clusters);
            total += s->total[c];
            for (int o = 0; o < GRQ_N_ORDERINGS; o++) captured[o] += s->captured[o][c];
        }
        if (!(total > 0)) continue;
        for (int o = 0; o < GRQ_N_ORDERINGS; o++) replicates[(size_t)o * n_resamples + n] = captured[o] / total;
        n++;
    }
    for (int o = 0; o < GRQ_N_ORDERINGS; o++)
        grq_percentile_interval(replicates + (size_t)o * n_resamples, n, &out->captured_low[o], &out->captured_high[o]);
    free(replicates);
    return GRQ_OK;
}

static grq_status new_sums(const grq_trace *trace, sums *s, grq_error *err)
{
    *s = (sums){ 0 };
    grq_status st = grq_sequence_clusters(trace, &s->cluster, &s->n_clusters, err);
    if (st != GRQ_OK) return st;
    s->total = grq_stats_array(s->n_clusters, sizeof *s->total, "sequences", err);
    if (!s->total) return GRQ_E_NOMEM;
    for (int o = 0; o < GRQ_N_ORDERINGS; o++) {
        s->captured[o] = grq_stats_array(s->n_clusters, sizeof *s->captured[o], "sequences", err);
        if (!s->captured[o]) return GRQ_E_NOMEM;
    }
    return GRQ_OK;
}

static void free_sums(sums *s)
{
    for (int o = 0; o < GRQ_N_ORDERINGS; o++) free(s->captured[o]);
    free(s->total);
    free(s->cluster);
}

grq_status grq_ablate_run(const grq_trace *trace, double budget, uint32_t n_resamples, uint64_t seed, grq_ablation *out,
                          grq_error *err)
{
    *out = (grq_ablation){ .budget = budget };
    if (!(budget >= 0 && budget <= 1)) return grq_fail(err, GRQ_E_USAGE, "budget %g is outside 0 to 1", budget);
    sums s;
    grq_status st = new_sums(trace, &s, err);
    for (uint32_t l = 0; st == GRQ_OK && l < trace->n_layers; l++) st = ablate_layer(trace, l, seed, &s, out, err);
    for (int o = 0; st == GRQ_OK && o < GRQ_N_ORDERINGS; o++) {
        out->captured[o] = ratio(s.weighted[o], s.sum_total);
        out->captured_injected[o] = ratio(s.injected[o], s.sum_injected);
        for (int point = 0; point < GRQ_CURVE_POINTS; point++)
            out->curve[point][o] = ratio(s.curve[point][o], s.sum_total);
    }
    out->bound = ratio(s.bound, s.sum_total);
    out->bound_injected = ratio(s.bound_injected, s.sum_injected);
    if (st == GRQ_OK) st = bootstrap(&s, n_resamples, seed, out, err);
    free_sums(&s);
    return st;
}
