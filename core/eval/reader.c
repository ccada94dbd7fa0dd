#include "gaterq/reader.h"

#include <stdlib.h>
#include <string.h>

/* Room for one step of n_tokens look-ups at the largest layer; grown when a larger step comes. */
typedef struct {
    size_t n_tokens;
    float *e, *keys, *values, *gates, *energy, *row_energy, *prior, *reduction;
    uint64_t *frequency, *position_ids;
    double *score;
    uint8_t *depth;
} workspace;

struct grq_reader {
    const grq_model *model;
    grq_reader_config config;
    grq_memory_hook hook;
    double *tau[GRQ_MAX_MEMORY_LAYERS];
    uint64_t n_seen[GRQ_MAX_MEMORY_LAYERS]; /* positions of earlier steps, per layer: numbers positions for random */
    grq_reader_usage usage;
    workspace work;
};

static void free_workspace(workspace *w)
{
    free(w->e);
    free(w->keys);
    free(w->values);
    free(w->gates);
    free(w->energy);
    free(w->row_energy);
    free(w->prior);
    free(w->reduction);
    free(w->frequency);
    free(w->position_ids);
    free(w->score);
    free(w->depth);
    *w = (workspace){ 0 };
}

static grq_status grow(workspace *w, const grq_geometry *g, size_t n_tokens, grq_error *err)
{
    if (n_tokens <= w->n_tokens) return GRQ_OK;
    free_workspace(w);
    const size_t n_lookups = n_tokens * g->n_columns;
    w->e = malloc(n_tokens * g->row_values * sizeof *w->e);
    w->keys = malloc(n_tokens * g->n_branches * g->width * sizeof *w->keys);
    w->values = malloc(n_tokens * g->width * sizeof *w->values);
    w->gates = malloc(n_tokens * g->n_branches * sizeof *w->gates);
    w->energy = malloc(n_tokens * sizeof *w->energy);
    w->row_energy = malloc(n_lookups * sizeof *w->row_energy);
    w->prior = malloc(n_lookups * sizeof *w->prior);
    w->reduction = malloc(n_lookups * sizeof *w->reduction);
    w->frequency = malloc(n_lookups * sizeof *w->frequency);
    w->position_ids = malloc(n_tokens * sizeof *w->position_ids);
    w->score = malloc(n_lookups * sizeof *w->score);
    w->depth = malloc(n_lookups * sizeof *w->depth);
    if (!w->e || !w->keys || !w->values || !w->gates || !w->energy || !w->row_energy || !w->prior || !w->reduction ||
        !w->frequency || !w->position_ids || !w->score || !w->depth) {
        free_workspace(w);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for a step of %zu tokens", n_tokens);
    }
    w->n_tokens = n_tokens;
    return GRQ_OK;
}

static float square_norm(const float *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return (float)sum;
}

/* Decodes every look-up; `depth` gives each its own, or NULL for `all`. */
static void decode(const grq_codes *codes, const grq_geometry *g, size_t n_lookups, const int64_t *rows,
                   const uint8_t *depth, uint32_t all, float *e)
{
    for (size_t i = 0; i < n_lookups; i++)
        grq_codes_decode(codes, (uint64_t)rows[i], depth ? depth[i] : all, e + i * g->row_dim);
}

/* ||V_j x||^2 for one row error x: how far it moves the value. */
static double projected_energy(const grq_memory_layer *layer, uint32_t column, const float *x)
{
    const grq_geometry *g = layer->geometry;
    double sum = 0;
    for (uint32_t o = 0; o < g->width; o++) {
        const float *v = layer->value_weight + (size_t)o * g->row_values + (size_t)column * g->row_dim;
        double dot = 0;
        for (uint32_t i = 0; i < g->row_dim; i++) dot += (double)v[i] * x[i];
        sum += dot * dot;
    }
    return sum;
}

/* What stage 2 would take off the injected error of each look-up, gates included: what the oracle ranks by. */
static void true_reductions(const grq_memory_layer *layer, const grq_codes *codes, size_t n_tokens, const int64_t *rows,
                            const float *energy, float *e_row, float *reduction)
{
    const grq_geometry *g = layer->geometry;
    float *error = e_row + g->row_dim;
    for (size_t i = 0; i < n_tokens * g->n_columns; i++) {
        const float *row = layer->table + (size_t)rows[i] * g->row_dim;
        const uint32_t column = (uint32_t)(i % g->n_columns);
        double left[2];
        for (uint32_t depth = 1; depth <= 2; depth++) {
            grq_codes_decode(codes, (uint64_t)rows[i], depth, e_row);
            for (uint32_t k = 0; k < g->row_dim; k++) error[k] = row[k] - e_row[k];
            left[depth - 1] = projected_energy(layer, column, error);
        }
        reduction[i] = (float)(energy[i / g->n_columns] * (left[0] - left[1]));
    }
}

static void look_up_statistics(const grq_reader *r, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows)
{
    const grq_geometry *g = layer->geometry;
    const workspace *w = &r->work;
    for (size_t i = 0; i < n_tokens * g->n_columns; i++) {
        w->row_energy[i] = square_norm(w->e + i * g->row_dim, g->row_dim);
        if (!r->config.counts) continue;
        w->frequency[i] = r->config.counts->count[layer->layer_index][rows[i]];
        w->prior[i] = (float)grq_counts_prior(r->config.counts, layer->layer_index, (uint64_t)rows[i]);
    }
    for (size_t t = 0; t < n_tokens; t++) w->position_ids[t] = r->n_seen[layer->layer_index] + t;
}

static grq_status choose_depths(grq_reader *r, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows,
                                grq_error *err)
{
    const grq_geometry *g = layer->geometry;
    workspace *w = &r->work;
    look_up_statistics(r, layer, n_tokens, rows);
    if (r->config.ordering == GRQ_ORDER_ORACLE) {
        float scratch[2 * 4096];
        if (g->row_dim > 4096) return grq_fail(err, GRQ_E_USAGE, "oracle: rows of %u values are too wide", g->row_dim);
        true_reductions(layer, r->config.codes[layer->layer_index], n_tokens, rows, w->energy, scratch, w->reduction);
    }
    const grq_lookup_batch batch = {
        .n_positions = n_tokens,
        .n_columns = g->n_columns,
        .position_ids = w->position_ids,
        .gate_energy = w->energy,
        .tau = r->tau[layer->layer_index],
        .row_energy = w->row_energy,
        .prior = r->config.counts ? w->prior : NULL,
        .frequency = r->config.counts ? w->frequency : NULL,
        .true_reduction = w->reduction,
    };
    grq_status st = grq_policy_score(r->config.ordering, &batch, r->config.seed + layer->layer_index, w->score, err);
    if (st == GRQ_OK) st = grq_budget_allocate(&r->config.budget, w->score, n_tokens * g->n_columns, w->depth, err);
    return st;
}

static void inject(const workspace *w, const grq_memory_layer *layer, size_t n_tokens, float *h)
{
    grq_layer_values(layer, n_tokens, w->e, w->values);
    grq_layer_inject(layer, n_tokens, w->gates, w->values, h);
}

static void gates_from_rows(workspace *w, const grq_memory_layer *layer, size_t n_tokens, const float *h)
{
    grq_layer_keys(layer, n_tokens, w->e, w->keys);
    grq_layer_gates(layer, n_tokens, h, w->keys, NULL, w->gates);
}

static grq_status read_depth(void *context, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows,
                             float *h, grq_error *err)
{
    grq_reader *r = context;
    const grq_geometry *g = layer->geometry;
    const grq_status st = grow(&r->work, g, n_tokens, err);
    if (st != GRQ_OK) return st;
    const size_t n_lookups = n_tokens * g->n_columns;
    decode(r->config.codes[layer->layer_index], g, n_lookups, rows, NULL, r->config.depth, r->work.e);
    gates_from_rows(&r->work, layer, n_tokens, h);
    inject(&r->work, layer, n_tokens, h);
    r->usage.n_lookups += n_lookups;
    r->usage.n_at_depth[r->config.depth - 1] += n_lookups;
    return GRQ_OK;
}

static grq_status read_policy(void *context, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows,
                              float *h, grq_error *err)
{
    grq_reader *r = context;
    const grq_geometry *g = layer->geometry;
    const size_t n_lookups = n_tokens * g->n_columns;
    const grq_codes *codes = r->config.codes[layer->layer_index];
    workspace *w = &r->work;
    grq_status st = grow(w, g, n_tokens, err);
    if (st != GRQ_OK) return st;
    decode(codes, g, n_lookups, rows, NULL, 1, w->e);
    gates_from_rows(w, layer, n_tokens, h);
    grq_gate_energy(n_tokens, g->n_branches, w->gates, w->energy);
    st = choose_depths(r, layer, n_tokens, rows, err);
    if (st != GRQ_OK) return st;
    decode(codes, g, n_lookups, rows, w->depth, 0, w->e);
    if (r->config.gate_mode == GRQ_GATES_REFRESHED) gates_from_rows(w, layer, n_tokens, h);
    inject(w, layer, n_tokens, h);
    r->usage.n_lookups += n_lookups;
    for (size_t i = 0; i < n_lookups; i++) r->usage.n_at_depth[w->depth[i] - 1]++;
    r->n_seen[layer->layer_index] += n_tokens;
    return GRQ_OK;
}

static grq_status read_nothing(void *context, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows,
                               float *h, grq_error *err)
{
    (void)context, (void)layer, (void)n_tokens, (void)rows, (void)h, (void)err;
    return GRQ_OK;
}

static grq_status check_codes(const grq_model *model, const grq_reader_config *config, uint32_t deepest, grq_error *err)
{
    const grq_geometry *g = &grq_model_shape_of(model)->memory;
    if (!config->codes) return grq_fail(err, GRQ_E_USAGE, "this reader needs codes");
    for (uint32_t l = 0; l < g->n_layers; l++) {
        const grq_codes *codes = config->codes[l];
        if (grq_codes_n_rows(codes) != g->n_rows[l] || grq_codes_row_dim(codes) != g->row_dim)
            return grq_fail(err, GRQ_E_DATA,
                            "codes of layer %u hold %llu rows of %u values; the model's table has %llu of %u",
                            g->layer_ids[l], (unsigned long long)grq_codes_n_rows(codes), grq_codes_row_dim(codes),
                            (unsigned long long)g->n_rows[l], g->row_dim);
        if (deepest > grq_codes_n_stages(codes))
            return grq_fail(err, GRQ_E_USAGE, "codes of layer %u have %u stages; depth %u is asked for",
                            g->layer_ids[l], grq_codes_n_stages(codes), deepest);
    }
    return GRQ_OK;
}

static grq_status check_counts(const grq_model *model, const grq_reader_config *config, grq_error *err)
{
    const grq_geometry *g = &grq_model_shape_of(model)->memory;
    const grq_ordering o = config->ordering;
    if (!config->counts) {
        if (o == GRQ_ORDER_PRIOR || o == GRQ_ORDER_FREQUENCY || o == GRQ_ORDER_COLDEST)
            return grq_fail(err, GRQ_E_USAGE, "ordering %s needs row counts: make them with gaterq count",
                            grq_ordering_name(o));
        return GRQ_OK;
    }
    if (config->counts->n_layers != g->n_layers)
        return grq_fail(err, GRQ_E_DATA, "row counts are of %u layers, the model has %u", config->counts->n_layers,
                        g->n_layers);
    for (uint32_t l = 0; l < g->n_layers; l++)
        if (config->counts->n_rows[l] != g->n_rows[l])
            return grq_fail(err, GRQ_E_DATA, "row counts of layer %u are of %llu rows, the model's table has %llu",
                            g->layer_ids[l], (unsigned long long)config->counts->n_rows[l],
                            (unsigned long long)g->n_rows[l]);
    return GRQ_OK;
}

static grq_status prepare_policy(grq_reader *r, grq_error *err)
{
    const grq_geometry *g = &grq_model_shape_of(r->model)->memory;
    grq_status st = check_codes(r->model, &r->config, 1 + r->config.budget.n_fractions, err);
    if (st == GRQ_OK) st = check_counts(r->model, &r->config, err);
    for (uint32_t l = 0; st == GRQ_OK && l < g->n_layers; l++) {
        r->tau[l] = malloc(g->n_columns * sizeof *r->tau[l]);
        if (!r->tau[l]) return grq_fail(err, GRQ_E_NOMEM, "no memory for tau");
        grq_layer_tau(grq_model_memory(r->model, l), r->tau[l]);
    }
    return st;
}

grq_status grq_reader_new(const grq_model *model, const grq_reader_config *config, grq_reader **out, grq_error *err)
{
    *out = NULL;
    grq_reader *r = calloc(1, sizeof *r);
    if (!r) return grq_fail(err, GRQ_E_NOMEM, "no memory for a reader");
    r->model = model;
    r->config = *config;
    r->hook.context = r;
    grq_status st = GRQ_OK;
    switch (config->mode) {
    case GRQ_READ_FULL: break;
    case GRQ_READ_ZERO: r->hook.apply = read_nothing; break;
    case GRQ_READ_DEPTH:
        r->hook.apply = read_depth;
        if (config->depth < 1 || config->depth > GRQ_MAX_STAGES)
            st = grq_fail(err, GRQ_E_USAGE, "depth %u is outside 1 to %d", config->depth, GRQ_MAX_STAGES);
        else st = check_codes(model, config, config->depth, err);
        break;
    case GRQ_READ_POLICY:
        r->hook.apply = read_policy;
        st = prepare_policy(r, err);
        break;
    }
    if (st == GRQ_OK) *out = r;
    else grq_reader_free(r);
    return st;
}

void grq_reader_free(grq_reader *r)
{
    if (!r) return;
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++) free(r->tau[l]);
    free_workspace(&r->work);
    free(r);
}

const grq_memory_hook *grq_reader_hook(const grq_reader *r)
{
    return r->config.mode == GRQ_READ_FULL ? NULL : &r->hook;
}

grq_reader_usage grq_reader_used(const grq_reader *r)
{
    return r->usage;
}
