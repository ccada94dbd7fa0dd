/* gaterq distort: how far coded rows are from the rows they stand for. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "gaterq/codec.h"
#include "tables.h"

static void print_distortion(tool_context *tool, const grq_codes *codes, const grq_distortion *d)
{
    const double bits = grq_code_bits_per_value(grq_codes_row_dim(codes));
    grq_json_put_string(tool->result, "encoder", grq_codes_encoder(codes)->name);
    grq_json_put_u64(tool->result, "rows", d->n_rows);
    grq_json_put_u64(tool->result, "zero_rows", d->n_zero_rows);
    grq_json_put_u64(tool->result, "row_dim", grq_codes_row_dim(codes));
    grq_json_put_f64(tool->result, "bits_per_value", bits);
    grq_json_begin_array(tool->result, "relative_mse");
    for (uint32_t k = 0; k < grq_codes_n_stages(codes); k++) grq_json_put_f64(tool->result, NULL, d->relative_mse[k]);
    grq_json_end_array(tool->result);
    grq_json_begin_array(tool->result, "shannon_bound"); /* of Gaussian rows at 1, 2, 3 code bits per value */
    for (uint32_t k = 0; k < grq_codes_n_stages(codes); k++) grq_json_put_f64(tool->result, NULL, exp2(-2.0 * (k + 1)));
    grq_json_end_array(tool->result);
    if (tool->json) return;
    printf("%s, %" PRIu64 " rows of %u values (%" PRIu64 " zero rows left out), %.4f bits per value and stage\n",
           grq_codes_encoder(codes)->name, d->n_rows, grq_codes_row_dim(codes), d->n_zero_rows, bits);
    printf("depth  relative MSE  Shannon bound 2^-2d (Gaussian rows, code bits only)\n");
    for (uint32_t k = 0; k < grq_codes_n_stages(codes); k++)
        printf("%5u  %12.4f  %.4f\n", k + 1, d->relative_mse[k], exp2(-2.0 * (k + 1)));
}

grq_status cmd_distort(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *path[1] = { NULL }, *name = NULL;
    const tool_option options[] = {
        { "table", "FILE:NAME", "the table that was coded", TOOL_TEXT, &name, true, 0, 0 },
    };
    const tool_command command = {
        .name = "distort",
        .usage = "C --table FILE.safetensors:NAME",
        .summary = "Relative mean squared error of codes, per depth.",
        .details = "Example: gaterq distort codes/layer-1.safetensors --table mini.safetensors:memory.1.table",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = path,
        .min_positionals = 1,
        .max_positionals = 1,
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    grq_codes *codes = NULL;
    input_table table = { 0 };
    grq_distortion distortion;
    st = grq_codes_open(path[0], &codes, err);
    if (st == GRQ_OK) st = input_table_open(name, &table, err);
    if (st == GRQ_OK) st = grq_codes_distortion(codes, table.values, table.n_rows, table.row_dim, &distortion, err);
    if (st == GRQ_OK) {
        const char *coded = grq_codes_origin_of(codes)->source_sha256;
        const bool same = !*coded || !strcmp(coded, table.sha256);
        grq_json_put_bool(tool->result, "same_source", same);
        if (!same) fprintf(stderr, "gaterq distort: %s was coded from another table than %s\n", path[0], name);
        print_distortion(tool, codes, &distortion);
    }
    input_table_close(&table);
    grq_codes_close(codes);
    return st;
}
