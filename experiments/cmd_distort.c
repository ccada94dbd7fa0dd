/* gaterq distort: how far coded rows are from the rows they stand for. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/distortion.h"
#include "gaterq/rng.h"
#include "gaterq/trace.h"
#include "tables.h"

typedef struct {
    input_rows_options rows;
    const char *trace;
    uint64_t n_sample;
} distort_options;

/* ---- which rows ---- */

static grq_status random_rows(uint64_t n, uint64_t n_rows, uint64_t seed, grq_row_sample *out, grq_error *err)
{
    int64_t *const rows = malloc(n * sizeof *rows);
    if (!rows) return grq_fail(err, GRQ_E_NOMEM, "no memory for a sample of %" PRIu64 " rows", n);
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "distort");
    for (uint64_t i = 0; i < n; i++) rows[i] = (int64_t)grq_rng_below(&rng, n_rows);
    *out = (grq_row_sample){ .n = n, .rows = rows };
    return GRQ_OK;
}

/* The layer of a trace that look-ups of these codes are in. */
static grq_status layer_of(const grq_trace *trace, const char *path, const grq_codes *codes,
                           const grq_trace_layer **out, grq_error *err)
{
    const grq_codes_origin *const origin = grq_codes_origin_of(codes);
    for (uint32_t l = 0; l < trace->n_layers; l++)
        if (trace->layers[l].layer == origin->layer) *out = &trace->layers[l];
    if (!*out && !*origin->family && trace->n_layers == 1) *out = &trace->layers[0]; /* coded from a bare tensor */
    if (*out) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "%s: has no look-ups of layer %u, of which the codes are", path, origin->layer);
}

/* Every look-up of the trace, with what its error is multiplied by on its way into the stream: gate energy of the full
 * table times the gain of the head's block of the value projection. */
static grq_status traced_rows(const char *path, const grq_codes *codes, grq_row_sample *out, grq_error *err)
{
    grq_trace trace;
    const grq_trace_layer *layer = NULL;
    grq_status st = grq_trace_open(path, &trace, err);
    if (st != GRQ_OK) return st;
    st = layer_of(&trace, path, codes, &layer, err);
    const uint64_t n = st == GRQ_OK ? trace.n_positions * (uint64_t)layer->n_columns : 0;
    int64_t *const rows = malloc((n + 1) * sizeof *rows);
    double *const weights = malloc((n + 1) * sizeof *weights);
    if (st == GRQ_OK && !(rows && weights)) st = grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its look-ups", path);
    for (uint64_t i = 0; st == GRQ_OK && i < n; i++) {
        rows[i] = layer->row[i];
        weights[i] = (double)layer->gate_energy_full[i] * layer->tau[i];
    }
    grq_trace_free(&trace);
    *out = (grq_row_sample){ .n = n, .rows = rows, .weights = weights };
    if (st != GRQ_OK) {
        free(rows);
        free(weights);
    }
    return st;
}

/* ---- results ---- */

static void put_depths(tool_context *tool, const char *key, const double *values, uint32_t n)
{
    grq_json_begin_array(tool->result, key);
    for (uint32_t k = 0; k < n; k++) grq_json_put_f64(tool->result, NULL, values[k]);
    grq_json_end_array(tool->result);
}

/* Shannon's least distortion of Gaussian rows at 1, 2, 3 stages' bits: of code bits only, and of side bits too, which
 * short rows have many of. */
typedef struct {
    double code_bits[GRQ_MAX_STAGES], all_bits[GRQ_MAX_STAGES];
} shannon_bounds;

static shannon_bounds bounds_of(const grq_codes *codes)
{
    shannon_bounds b;
    for (uint32_t k = 0; k < GRQ_MAX_STAGES; k++) {
        b.code_bits[k] = exp2(-2.0 * (k + 1));
        b.all_bits[k] = exp2(-2.0 * (k + 1) * grq_code_bits_per_value(grq_codes_row_dim(codes)));
    }
    return b;
}

static void print_table(const grq_codes *codes, const grq_distortion *d, const shannon_bounds *shannon, bool weighted)
{
    printf("%s, %" PRIu64 " rows of %u values (%" PRIu64 " zero rows left out), %.4f bits per value and stage\n",
           grq_codes_encoder(codes)->name, d->n_rows, grq_codes_row_dim(codes), d->n_zero_rows,
           grq_code_bits_per_value(grq_codes_row_dim(codes)));
    printf("depth  relative MSE  plain signs  Shannon: code bits  all bits%s\n", weighted ? "  gate-weighted" : "");
    for (uint32_t k = 0; k < grq_codes_n_stages(codes); k++) {
        printf("%5u  %12.4f  %11.4f  %18.4f  %8.4f", k + 1, d->relative_mse[k], d->sign_mse[k], shannon->code_bits[k],
               shannon->all_bits[k]);
        if (weighted) printf("  %13.4f", d->weighted_mse[k]);
        printf("\n");
    }
    printf("plain signs: times the mean magnitude of what is left over; Shannon: 2^(-2 bits), Gaussian rows\n");
    if (weighted) printf("gate-weighted: sum of G tau |e - e'|^2 over sum of G tau |e|^2, over the trace's look-ups\n");
}

static void put_distortion(tool_context *tool, const grq_codes *codes, const grq_distortion *d, bool weighted)
{
    const uint32_t n = grq_codes_n_stages(codes);
    const shannon_bounds shannon = bounds_of(codes);
    grq_json_put_string(tool->result, "encoder", grq_codes_encoder(codes)->name);
    grq_json_put_u64(tool->result, "rows", d->n_rows);
    grq_json_put_u64(tool->result, "zero_rows", d->n_zero_rows);
    grq_json_put_u64(tool->result, "row_dim", grq_codes_row_dim(codes));
    grq_json_put_f64(tool->result, "bits_per_value", grq_code_bits_per_value(grq_codes_row_dim(codes)));
    put_depths(tool, "relative_mse", d->relative_mse, n);
    put_depths(tool, "sign_mse", d->sign_mse, n);
    put_depths(tool, "shannon_bound", shannon.code_bits, n);
    put_depths(tool, "shannon_bound_all_bits", shannon.all_bits, n);
    if (weighted) put_depths(tool, "gate_weighted_mse", d->weighted_mse, n);
    if (!tool->json) print_table(codes, d, &shannon, weighted);
}

/* ---- what is asked for ---- */

static grq_status choose_rows(tool_context *tool, const distort_options *o, const grq_codes *codes, grq_row_sample *out,
                              grq_error *err)
{
    if (o->trace && o->n_sample) return grq_fail(err, GRQ_E_USAGE, "give --trace or --sample, not both");
    if (o->trace) return traced_rows(o->trace, codes, out, err);
    if (o->n_sample && o->n_sample < grq_codes_n_rows(codes))
        return random_rows(o->n_sample, grq_codes_n_rows(codes), tool->seed, out, err);
    return GRQ_OK;
}

static grq_status distort(tool_context *tool, const distort_options *o, const char *path, grq_error *err)
{
    grq_codes *codes = NULL;
    input_rows rows = { .family = "" };
    grq_row_sample sample = { 0 };
    grq_distortion distortion;
    bool same = true;
    grq_status st = grq_codes_open(path, &codes, err);
    if (st == GRQ_OK) st = input_rows_open(&o->rows, &rows, err);
    if (st == GRQ_OK) st = choose_rows(tool, o, codes, &sample, err);
    if (st == GRQ_OK)
        st = grq_codes_distortion(codes, rows.table, sample.rows ? &sample : NULL, tool->n_threads, &tool->progress,
                                  &distortion, err);
    if (st == GRQ_OK) st = grq_codes_same_source(codes, rows.table, &same, err);
    if (st == GRQ_OK) {
        grq_json_put_bool(tool->result, "same_source", same);
        if (!same)
            fprintf(stderr, "gaterq distort: %s was coded from another table than %s\n", path,
                    grq_table_name(rows.table));
        put_distortion(tool, codes, &distortion, o->trace != NULL);
    }
    free((int64_t *)sample.rows);
    free((double *)sample.weights);
    input_rows_close(&rows);
    grq_codes_close(codes);
    return st;
}

grq_status cmd_distort(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *path[1] = { NULL };
    distort_options o = { .rows = INPUT_ROWS_DEFAULTS };
    const tool_option options[] = {
        INPUT_ROWS_OPTIONS(o.rows),
        { "sample", "N", "so many rows, drawn with --seed [all]", TOOL_U64, &o.n_sample, false, 1, 1e12 },
        { "trace", "T.h5", "the rows that a trace looks up, and the error weighted by its gates", TOOL_TEXT, &o.trace,
          false, 0, 0 },
    };
    const tool_command command = {
        .name = "distort",
        .usage = "C (--memory DIR --layer L | --table FILE.safetensors:NAME) [--sample N | --trace T.h5]",
        .summary = "Relative mean squared error of codes, per depth, beside plain signs and the Shannon bound.",
        .details = "Example: gaterq distort codes/layer-1.safetensors --memory mini.safetensors --layer 1",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = path,
        .min_positionals = 1,
        .max_positionals = 1,
    };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    return st != GRQ_OK || done ? st : distort(tool, &o, path[0], err);
}
