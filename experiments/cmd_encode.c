/* gaterq encode: a table in residual 1-bit stages. */
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "gaterq/codec.h"
#include "gaterq/model.h"
#include "inputs.h"
#include "tables.h"

typedef struct {
    const char *table, *model, *encoder, *out;
    uint64_t layer, n_stages;
} encode_options;

enum { NO_LAYER = 1000000 };

static grq_status encode(tool_context *tool, const encode_options *o, const char *name, const char *family,
                         grq_error *err)
{
    input_table table;
    const grq_encoder *encoder;
    grq_codes *codes = NULL;
    grq_status st = grq_encoder_find(o->encoder, &encoder, err);
    if (st != GRQ_OK) return st;
    st = input_table_open(name, &table, err);
    if (st != GRQ_OK) return st;
    if (input_same_file(grq_safetensors_path(table.file), o->out)) {
        input_table_close(&table);
        return grq_fail(err, GRQ_E_USAGE, "--out: %s is the file with the table itself", o->out);
    }
    const grq_codes_origin origin = { .family = family,
                                      .layer = o->layer == NO_LAYER ? 0 : (uint32_t)o->layer,
                                      .source = table.source,
                                      .source_sha256 = table.sha256 };
    st = grq_codes_encode(encoder, table.values, table.n_rows, table.row_dim, (uint32_t)o->n_stages, &origin,
                          tool->n_threads, &tool->progress, &codes, err);
    if (st != GRQ_OK) grq_fail_prefix(err, st, "%s", name);
    if (st == GRQ_OK) st = grq_codes_save(codes, o->out, err);
    if (st == GRQ_OK) {
        const double bits = grq_code_bits_per_value(table.row_dim);
        grq_json_put_string(tool->result, "codes", o->out);
        grq_json_put_string(tool->result, "encoder", encoder->name);
        grq_json_put_u64(tool->result, "rows", table.n_rows);
        grq_json_put_u64(tool->result, "row_dim", table.row_dim);
        grq_json_put_u64(tool->result, "stages", o->n_stages);
        grq_json_put_f64(tool->result, "bits_per_value", bits);
        if (!tool->json)
            printf("%s: %" PRIu64 " rows of %u values in %" PRIu64 " stages of %.4f bits per value\n", o->out,
                   table.n_rows, table.row_dim, o->n_stages, bits);
    }
    grq_codes_close(codes);
    input_table_close(&table);
    return st;
}

/* The table of a model's memory layer, and the model's family. */
static grq_status encode_layer(tool_context *tool, const encode_options *o, grq_error *err)
{
    grq_model *model = NULL;
    uint32_t index;
    char name[4200], family[32] = "";
    grq_status st = grq_model_open(o->model, &model, err);
    if (st == GRQ_OK)
        st = grq_geometry_layer_index(&grq_model_shape_of(model)->memory, (uint32_t)o->layer, &index, err);
    if (st == GRQ_OK) snprintf(family, sizeof family, "%s", grq_model_shape_of(model)->memory.family);
    grq_model_free(model);
    if (st == GRQ_OK &&
        snprintf(name, sizeof name, "%s:memory.%" PRIu64 ".table", o->model, o->layer) >= (int)sizeof name)
        st = grq_fail(err, GRQ_E_USAGE, "--model: the path is too long");
    return st == GRQ_OK ? encode(tool, o, name, family, err) : st;
}

grq_status cmd_encode(tool_context *tool, int argc, char **argv, grq_error *err)
{
    encode_options o = { .encoder = "integer", .n_stages = 3, .layer = NO_LAYER };
    const tool_option options[] = {
        { "table", "FILE:NAME", "table in a safetensors file: F32, F16, BF16, or F8_E4M3 with its .scale", TOOL_TEXT,
          &o.table, false, 0, 0 },
        { "model", "FILE", "model file; with --layer", TOOL_TEXT, &o.model, false, 0, 0 },
        { "layer", "L", "backbone layer of the table", TOOL_U64, &o.layer, false, 0, NO_LAYER - 1 },
        { "encoder", "NAME", "integer (scale: mean magnitude) or integer-rms [integer]", TOOL_TEXT, &o.encoder, false,
          0, 0 },
        { "stages", "K", "stages to write [3]", TOOL_U64, &o.n_stages, false, 1, GRQ_MAX_STAGES },
        { "out", "FILE", "coded table to write (safetensors)", TOOL_TEXT, &o.out, true, 0, 0 },
    };
    const tool_command command = {
        .name = "encode",
        .usage = "(--table FILE.safetensors:NAME | --model FILE --layer L) [--encoder E] [--stages K] --out C",
        .summary = "Code a table in residual 1-bit stages, each with one FP16 scale per row.",
        .details = "Example: gaterq encode --model mini.safetensors --layer 1 --out codes/layer-1.safetensors",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if ((o.table != NULL) == (o.model != NULL)) return grq_fail(err, GRQ_E_USAGE, "give either --table or --model");
    if (o.table) return encode(tool, &o, o.table, "", err);
    if (o.layer == NO_LAYER) return grq_fail(err, GRQ_E_USAGE, "--model needs --layer");
    return encode_layer(tool, &o, err);
}
