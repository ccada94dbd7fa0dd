/* Running a model over sequences and writing what every look-up is worth. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/blas.h"
#include "gaterq/policy.h"
#include "trace/lookups.h"
#include "trace/trace_internal.h"

typedef struct {
    const grq_model *model;
    const grq_codes *const *codes;
    const grq_counts *counts;
    const grq_budget *budget;
    grq_memory_hook hook;
    grq_lookups lookups;
    double *tau[GRQ_MAX_MEMORY_LAYERS]; /* (n_columns) */
    size_t first_position;              /* of the current batch, in the whole trace */
    size_t room;                        /* positions of the largest batch */
    grq_trace block;                    /* of the current batch: n_positions varies, the arrays have `room` */
    float *error, *moved;               /* (room, row_dim), (room, width) */
    double *score;                      /* (room, n_columns) */
    uint64_t *position_ids;             /* (room) */
} capture;

/* ---- one layer of one batch ---- */

static double square_norm(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sum;
}

static void describe_lookups(const capture *c, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows,
                             grq_trace_layer *out)
{
    const grq_geometry *g = layer->geometry;
    const uint32_t l = layer->layer_index;
    for (size_t i = 0; i < n_tokens * g->n_columns; i++) {
        const size_t t = i / g->n_columns;
        const uint32_t j = (uint32_t)(i % g->n_columns);
        out->row[i] = rows[i];
        out->head[i] = (uint8_t)(j % g->n_heads);
        out->order[i] = (uint8_t)grq_geometry_column_order(g, j);
        out->gate_energy[i] = c->lookups.energy_first[t];
        out->gate_energy_full[i] = c->lookups.energy_full[t];
        out->tau[i] = (float)c->tau[l][j];
        out->row_energy[i] = (float)square_norm(c->lookups.first + i * g->row_dim, g->row_dim);
        out->importance[i] = (float)(out->gate_energy[i] * c->tau[l][j] * out->row_energy[i]);
        out->frequency[i] = c->counts->count[l][rows[i]];
        out->prior[i] = (float)grq_counts_prior(c->counts, l, (uint64_t)rows[i]);
    }
}

/* Errors of column j at one depth, their energies, and the energies of what they move the value by. Adds sign times
 * both to (n_tokens) columns of the reductions; the caller weights them. */
static void add_column_errors(const capture *c, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows,
                              uint32_t j, uint32_t depth, double sign, double *row_error, double *value_error)
{
    const grq_geometry *g = layer->geometry;
    const uint32_t n = g->row_dim;
    for (size_t t = 0; t < n_tokens; t++) {
        float *error = c->error + t * n;
        const float *full = c->lookups.full + t * g->row_values + (size_t)j * n;
        grq_codes_decode(c->codes[layer->layer_index], (uint64_t)rows[t * g->n_columns + j], depth, error);
        for (uint32_t i = 0; i < n; i++) error[i] = full[i] - error[i];
        row_error[t] += sign * square_norm(error, n);
    }
    grq_sgemm(false, true, (int)n_tokens, (int)g->width, (int)n, c->error, (int)n, layer->value_weight + (size_t)j * n,
              (int)g->row_values, 0, c->moved, (int)g->width);
    for (size_t t = 0; t < n_tokens; t++) value_error[t] += sign * square_norm(c->moved + t * g->width, g->width);
}

static grq_status measure_reductions(const capture *c, const grq_memory_layer *layer, size_t n_tokens,
                                     const int64_t *rows, grq_trace_layer *out, grq_error *err)
{
    const grq_geometry *g = layer->geometry;
    double *row_error = grq_trace_array(2 * n_tokens, sizeof *row_error, "row errors", err);
    if (!row_error) return GRQ_E_NOMEM;
    double *value_error = row_error + n_tokens;
    for (uint32_t j = 0; j < g->n_columns; j++) {
        memset(row_error, 0, 2 * n_tokens * sizeof *row_error);
        add_column_errors(c, layer, n_tokens, rows, j, 1, 1, row_error, value_error);
        add_column_errors(c, layer, n_tokens, rows, j, 2, -1, row_error, value_error);
        for (size_t t = 0; t < n_tokens; t++) {
            const size_t i = t * g->n_columns + j;
            out->weighted_reduction[i] =
                (float)(out->gate_energy_full[i] * c->tau[layer->layer_index][j] * row_error[t]);
            out->injected_reduction[i] = (float)(out->gate_energy_full[i] * value_error[t]);
        }
    }
    free(row_error);
    return GRQ_OK;
}

static grq_status allocate(const capture *c, const grq_memory_layer *layer, size_t n_tokens, grq_trace_layer *out,
                           grq_error *err)
{
    const uint32_t n_columns = layer->geometry->n_columns;
    const grq_lookup_batch batch = {
        .n_positions = n_tokens,
        .n_columns = n_columns,
        .position_ids = c->position_ids,
        .gate_energy = c->lookups.energy_first,
        .tau = c->tau[layer->layer_index],
        .row_energy = out->row_energy,
        .prior = out->prior,
        .frequency = out->frequency,
        .true_reduction = out->injected_reduction,
    };
    grq_status st = grq_policy_score(GRQ_ORDER_GATE, &batch, 0, c->score, err); /* the gate ordering draws nothing */
    if (st == GRQ_OK) st = grq_budget_allocate(c->budget, c->score, n_tokens * n_columns, out->depth, err);
    return st;
}

static grq_status capture_layer(void *context, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows,
                                float *h, grq_error *err)
{
    capture *c = context;
    const grq_geometry *g = layer->geometry;
    grq_trace_layer *out = &c->block.layers[layer->layer_index];
    if (n_tokens != c->block.n_positions)
        return grq_fail(err, GRQ_E_DATA, "a batch of %zu positions reads its memory for %zu tokens",
                        c->block.n_positions, n_tokens);
    grq_status st = grq_lookups_read(&c->lookups, layer, c->codes[layer->layer_index], n_tokens, rows, h, err);
    if (st != GRQ_OK) return st;
    memcpy(out->gates_stage1, c->lookups.gates_first, n_tokens * g->n_branches * sizeof *out->gates_stage1);
    memcpy(out->gates_full, c->lookups.gates_full, n_tokens * g->n_branches * sizeof *out->gates_full);
    describe_lookups(c, layer, n_tokens, rows, out);
    st = measure_reductions(c, layer, n_tokens, rows, out, err);
    if (st == GRQ_OK) st = allocate(c, layer, n_tokens, out, err);
    if (st != GRQ_OK) return st == GRQ_E_NOMEM ? st : grq_fail_prefix(err, st, "trace of layer %" PRIu32, out->layer);
    grq_lookups_inject(&c->lookups, layer, n_tokens, h);
    return GRQ_OK;
}

/* ---- batches of whole sequences ---- */

/* The end of the batch that starts at sequence s: as many as fit into `batch_positions`, at least one. */
static size_t batch_end(const grq_sequences *q, size_t s, uint32_t batch_positions)
{
    size_t end = s + 1;
    while (end < q->n_sequences && q->offsets[end + 1] - q->offsets[s] <= batch_positions) end++;
    return end;
}

static void describe_positions(const grq_sequences *q, size_t s, size_t end, grq_trace *block)
{
    size_t at = 0;
    for (; s < end; s++)
        for (size_t k = q->offsets[s]; k < q->offsets[s + 1]; k++, at++) {
            block->token[at] = q->tokens[k];
            block->kind[at] = q->kinds[k];
            block->sequence[at] = (uint32_t)s;
            block->position[at] = (uint32_t)(k - q->offsets[s]);
        }
    block->n_positions = at;
}

static grq_status run_batch(capture *c, const grq_sequences *q, size_t s, size_t end, grq_error *err)
{
    const uint32_t n = (uint32_t)(end - s);
    uint32_t longest = 1;
    uint32_t *n_new = grq_trace_array(n, sizeof *n_new, "sequences", err);
    if (!n_new) return GRQ_E_NOMEM;
    for (uint32_t k = 0; k < n; k++) {
        n_new[k] = (uint32_t)(q->offsets[s + k + 1] - q->offsets[s + k]);
        if (n_new[k] > longest) longest = n_new[k];
    }
    describe_positions(q, s, end, &c->block);
    for (size_t t = 0; t < c->block.n_positions; t++) c->position_ids[t] = c->first_position + t;
    grq_decoder *decoder = NULL;
    grq_status st = grq_decoder_new(c->model, &c->hook, n, longest, &decoder, err);
    if (st == GRQ_OK) st = grq_decoder_step(decoder, n_new, q->tokens + q->offsets[s], NULL, NULL, err);
    grq_decoder_free(decoder);
    free(n_new);
    return st;
}

static grq_status run_batches(capture *c, const grq_sequences *q, uint32_t batch_positions, grq_trace_writer *writer,
                              const grq_progress *progress, grq_error *err)
{
    const size_t n_positions = q->offsets[q->n_sequences];
    grq_status st = GRQ_OK;
    for (size_t s = 0, end; st == GRQ_OK && s < q->n_sequences; s = end) {
        end = batch_end(q, s, batch_positions);
        const size_t n = q->offsets[end] - q->offsets[s];
        if (n == 0) continue;
        st = run_batch(c, q, s, end, err);
        if (st == GRQ_OK) st = grq_trace_writer_append(writer, &c->block, err);
        c->first_position += n;
        if (st == GRQ_OK)
            st = grq_progress_step(progress, "trace", c->first_position, n_positions, "tokens", NULL, err);
    }
    return st;
}

/* ---- checks and memory ---- */

static grq_status check_inputs(const capture *c, const grq_sequences *q, uint32_t batch_positions, grq_error *err)
{
    const grq_geometry *g = &grq_model_shape_of(c->model)->memory;
    if (q->n_sequences == 0 || q->offsets[0] != 0 || q->offsets[q->n_sequences] == 0)
        return grq_fail(err, GRQ_E_USAGE, "there are no tokens to trace");
    for (size_t s = 0; s < q->n_sequences; s++)
        if (q->offsets[s + 1] < q->offsets[s] || q->offsets[s + 1] - q->offsets[s] > INT32_MAX)
            return grq_fail(err, GRQ_E_USAGE, "sequence %zu runs from token %zu to %zu", s, q->offsets[s],
                            q->offsets[s + 1]);
    if (q->n_sequences > UINT32_MAX) return grq_fail(err, GRQ_E_USAGE, "%zu sequences are too many", q->n_sequences);
    if (batch_positions == 0) return grq_fail(err, GRQ_E_USAGE, "a batch needs at least one position");
    if (c->counts->n_layers != g->n_layers)
        return grq_fail(err, GRQ_E_DATA, "row counts are of %" PRIu32 " layers, the model has %" PRIu32,
                        c->counts->n_layers, g->n_layers);
    for (uint32_t l = 0; l < g->n_layers; l++)
        if (c->counts->n_rows[l] != g->n_rows[l])
            return grq_fail(err, GRQ_E_DATA,
                            "row counts of layer %" PRIu32 " are of %" PRIu64 " rows, the model's table has %" PRIu64,
                            g->layer_ids[l], c->counts->n_rows[l], g->n_rows[l]);
    const uint32_t deepest = 1 + c->budget->n_fractions;
    return grq_lookups_check(c->model, c->codes, deepest > 2 ? deepest : 2, err); /* the reductions need stage 2 */
}

static grq_trace_shape shape_of(const capture *c, size_t n_positions)
{
    const grq_geometry *g = &grq_model_shape_of(c->model)->memory;
    grq_trace_shape shape = {
        .n_positions = n_positions,
        .n_layers = g->n_layers,
        .n_columns = g->n_columns,
        .n_branches = g->n_branches,
        .row_dim = g->row_dim,
        .budget = *c->budget,
    };
    for (uint32_t l = 0; l < g->n_layers; l++) shape.layer_ids[l] = g->layer_ids[l];
    for (uint32_t j = 0; j < g->n_columns; j++) {
        shape.column_order[j] = grq_geometry_column_order(g, j);
        shape.column_head[j] = j % g->n_heads;
    }
    return shape;
}

static grq_status prepare(capture *c, const grq_trace_shape *shape, const grq_sequences *q, uint32_t batch_positions,
                          grq_error *err)
{
    const grq_geometry *g = &grq_model_shape_of(c->model)->memory;
    for (size_t s = 0, end; s < q->n_sequences; s = end) {
        end = batch_end(q, s, batch_positions);
        if (q->offsets[end] - q->offsets[s] > c->room) c->room = q->offsets[end] - q->offsets[s];
    }
    c->hook = (grq_memory_hook){ .apply = capture_layer, .context = c };
    c->error = grq_trace_array(c->room, g->row_dim * sizeof *c->error, "row errors", err);
    c->moved = grq_trace_array(c->room, g->width * sizeof *c->moved, "value errors", err);
    c->score = grq_trace_array(c->room, g->n_columns * sizeof *c->score, "scores", err);
    c->position_ids = grq_trace_array(c->room, sizeof *c->position_ids, "positions", err);
    if (!c->error || !c->moved || !c->score || !c->position_ids) return GRQ_E_NOMEM;
    for (uint32_t l = 0; l < g->n_layers; l++) {
        c->tau[l] = grq_trace_array(g->n_columns, sizeof *c->tau[l], "columns", err);
        if (!c->tau[l]) return GRQ_E_NOMEM;
        grq_layer_tau(grq_model_memory(c->model, l), c->tau[l]);
    }
    return grq_trace_new(shape, c->room, &c->block, err);
}

static void free_capture(capture *c)
{
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++) free(c->tau[l]);
    free(c->error);
    free(c->moved);
    free(c->score);
    free(c->position_ids);
    grq_trace_free(&c->block);
    grq_lookups_free(&c->lookups);
}

grq_status grq_trace_capture(const grq_model *model, const grq_codes *const *codes, const grq_counts *counts,
                             const grq_sequences *sequences, const grq_budget *budget, uint32_t batch_positions,
                             const grq_trace_info *info, const char *path, const grq_progress *progress, grq_error *err)
{
    capture c = { .model = model, .codes = codes, .counts = counts, .budget = budget };
    grq_status st = check_inputs(&c, sequences, batch_positions, err);
    if (st != GRQ_OK) return st;
    const grq_trace_shape shape = shape_of(&c, sequences->offsets[sequences->n_sequences]);
    grq_trace_writer *writer = NULL;
    st = prepare(&c, &shape, sequences, batch_positions, err);
    if (st == GRQ_OK) st = grq_trace_writer_open(path, &shape, info, &writer, err);
    if (st == GRQ_OK) st = run_batches(&c, sequences, batch_positions, writer, progress, err);
    if (st == GRQ_OK) st = grq_trace_writer_commit(writer, err);
    else grq_trace_writer_discard(writer);
    free_capture(&c);
    return st;
}
