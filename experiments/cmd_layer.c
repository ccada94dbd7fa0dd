/* gaterq layer: run one memory layer of a checkpoint over hidden states. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/h5.h"
#include "commands.h"
#include "gaterq/blas.h"
#include "gaterq/checkpoint.h"
#include "gaterq/tokenmap.h"
#include "inputs.h"
#include "provenance.h"

typedef struct {
    const char *memory, *codes, *input, *output, *numerics, *token_map, *e8m0;
    uint64_t layer, depth, chunk, n_shards, image_id;
    bool keep_input;
} layer_options;

enum { NO_IMAGE = 1 << 24 };

/* What a run holds open. */
typedef struct {
    const layer_options *options;
    grq_checkpoint *checkpoint;
    grq_layer_weights *weights;
    grq_codes *codes;
    grq_table *table;
    grq_layer_state *state;
    grq_h5 *in, *out;
    grq_h5_dataset *hidden_out, *gates_out;
    int32_t *ids, *sequences; /* (n_tokens); sequences NULL: one */
    uint64_t n_tokens;
    double gate_sum;
} layer_run;

/* ---- what goes in ---- */

static grq_status choose(const char *option, const char *value, const char *first, const char *second, bool *is_second,
                         grq_error *err)
{
    *is_second = !strcmp(value, second);
    if (*is_second || !strcmp(value, first)) return GRQ_OK;
    return grq_fail(err, GRQ_E_USAGE, "--%s: \"%s\" is neither %s nor %s", option, value, first, second);
}

static grq_status open_table(layer_run *r, uint32_t index, grq_error *err)
{
    const layer_options *o = r->options;
    if (!o->codes) return grq_checkpoint_table(r->checkpoint, index, &r->table, err);
    grq_status st = grq_codes_open(o->codes, &r->codes, err);
    if (st != GRQ_OK) return st;
    const grq_codes_origin *origin = grq_codes_origin_of(r->codes);
    if (origin->family[0] && origin->layer != o->layer)
        return grq_fail(err, GRQ_E_DATA, "%s: codes of layer %u, not of layer %" PRIu64, o->codes, origin->layer,
                        o->layer);
    return grq_table_of_codes(r->codes, o->depth ? (uint32_t)o->depth : grq_codes_n_stages(r->codes), &r->table, err);
}

static grq_status open_memory(layer_run *r, grq_error *err)
{
    const layer_options *o = r->options;
    bool shift;
    uint32_t index;
    grq_status st = choose("e8m0", o->e8m0, "ocp", "shift", &shift, err);
    const grq_checkpoint_options options = { .e8m0 = shift ? GRQ_E8M0_SHIFT : GRQ_E8M0_OCP };
    if (st == GRQ_OK) st = grq_checkpoint_open(o->memory, &options, &r->checkpoint, err);
    if (st != GRQ_OK) return st;
    const grq_geometry *g = grq_checkpoint_geometry(r->checkpoint);
    if (grq_checkpoint_note(r->checkpoint)[0])
        fprintf(stderr, "gaterq layer: %s: %s\n", o->memory, grq_checkpoint_note(r->checkpoint));
    st = grq_geometry_layer_index(g, (uint32_t)o->layer, &index, err);
    if (st == GRQ_OK) st = open_table(r, index, err);
    if (st == GRQ_OK) st = grq_checkpoint_weights(r->checkpoint, index, &r->weights, err);
    return st == GRQ_OK ? grq_layer_state_new(g, 0, &r->state, err) : st;
}

/* An id that the library refuses as a bad argument is bad data when it comes from a file. */
static grq_status bad_input(grq_status status, const char *input, grq_error *err)
{
    if (status == GRQ_E_USAGE) status = grq_fail(err, GRQ_E_DATA, "%s", err->message);
    return grq_fail_prefix(err, status, "%s", input);
}

static grq_status map_ids(layer_run *r, grq_error *err)
{
    const layer_options *o = r->options;
    const grq_geometry *g = grq_checkpoint_geometry(r->checkpoint);
    grq_tokenmap *map = NULL;
    if (g->raw_ids) return grq_fail(err, GRQ_E_USAGE, "--token-map: family %s hashes raw ids", g->family);
    grq_status st = grq_tokenmap_open(o->token_map, 0, g->n_ids, NULL, &map, err);
    const int32_t dead = o->image_id == NO_IMAGE ? -1 : (int32_t)o->image_id;
    if (st == GRQ_OK) {
        st = grq_tokenmap_apply(map, dead, r->ids, r->n_tokens, r->ids, err);
        if (st != GRQ_OK) st = bad_input(st, o->input, err);
    }
    grq_tokenmap_close(map);
    return st;
}

static grq_status open_input(layer_run *r, grq_error *err)
{
    const layer_options *o = r->options;
    const grq_geometry *g = grq_checkpoint_geometry(r->checkpoint);
    void *ids = NULL, *sequences = NULL;
    grq_status st = grq_h5_open(o->input, &r->in, err);
    if (st == GRQ_OK) st = grq_h5_read(r->in, "/ids", GRQ_H5_I32, 1, NULL, &r->n_tokens, &ids, err);
    if (st != GRQ_OK) return st;
    r->ids = ids;
    const uint64_t shape[] = { r->n_tokens, g->n_branches, g->width };
    uint64_t found[3];
    st = grq_h5_shape(r->in, "/hidden", GRQ_H5_F32, 3, shape, found, err);
    if (st == GRQ_OK && grq_h5_exists(r->in, "/sequence")) {
        st = grq_h5_read(r->in, "/sequence", GRQ_H5_I32, 1, &r->n_tokens, NULL, &sequences, err);
        r->sequences = sequences;
    }
    return st == GRQ_OK && o->token_map ? map_ids(r, err) : st;
}

/* ---- what comes out ---- */

static grq_status describe_output(layer_run *r, tool_context *tool, grq_error *err)
{
    const layer_options *o = r->options;
    const grq_geometry *g = grq_checkpoint_geometry(r->checkpoint);
    provenance p;
    grq_status st = provenance_collect(&p, NULL, tool->seed, err);
    for (size_t i = 0; st == GRQ_OK && i < p.n_items; i++)
        if (strcmp(p.items[i].key, "gaterq.seed")) /* nothing is drawn here */
            st = grq_h5_put_string(r->out, "/", p.items[i].key, p.items[i].value, err);
    if (st == GRQ_OK) st = grq_h5_put_string(r->out, "/", "family", g->family, err);
    if (st == GRQ_OK) st = grq_h5_put_u64(r->out, "/", "layer", o->layer, err);
    if (st == GRQ_OK) st = grq_h5_put_string(r->out, "/", "numerics", o->numerics, err);
    if (st == GRQ_OK) st = grq_h5_put_string(r->out, "/", "e8m0", o->e8m0, err);
    if (st == GRQ_OK) st = grq_h5_put_string(r->out, "/", "table", grq_table_name(r->table), err);
    if (st == GRQ_OK && r->codes)
        st = grq_h5_put_u64(r->out, "/", "depth", o->depth ? o->depth : grq_codes_n_stages(r->codes), err);
    return st;
}

static grq_status open_output(layer_run *r, tool_context *tool, grq_error *err)
{
    const grq_geometry *g = grq_checkpoint_geometry(r->checkpoint);
    const grq_h5_spec hidden = { .name = "/hidden",
                                 .type = GRQ_H5_F32,
                                 .rank = 3,
                                 .shape = { 0, g->n_branches, g->width },
                                 .units = "1",
                                 .description = "residual branches after the memory layer" };
    const grq_h5_spec gates = { .name = "/gates",
                                .type = GRQ_H5_F32,
                                .rank = 2,
                                .shape = { 0, g->n_branches },
                                .units = "1",
                                .description = "gate per branch, in (0, 1); 0 where there is no text" };
    grq_status st = grq_h5_create(r->options->output, &r->out, err);
    if (st == GRQ_OK) st = describe_output(r, tool, err);
    if (st == GRQ_OK) st = grq_h5_dataset_create(r->out, &hidden, &r->hidden_out, err);
    return st == GRQ_OK ? grq_h5_dataset_create(r->out, &gates, &r->gates_out, err) : st;
}

/* ---- the work ---- */

/* Such a number would spread to every later token that the convolution reaches. */
static grq_status check_finite(const layer_run *r, const char *what, uint64_t at, size_t n, const float *h,
                               grq_error *err)
{
    const grq_geometry *g = grq_checkpoint_geometry(r->checkpoint);
    const size_t channels = (size_t)g->n_branches * g->width;
    for (size_t i = 0; i < n * channels; i++)
        if (!isfinite(h[i]))
            return grq_fail(err, GRQ_E_DATA, "%s: %s: position %" PRIu64 ", branch %zu, value %zu is %g",
                            r->options->input, what, at + i / channels, i % channels / g->width, i % g->width,
                            (double)h[i]);
    return GRQ_OK;
}

/* Tokens [at, at + n) belong to one sequence. */
static grq_status run_chunk(layer_run *r, const grq_forward_options *forward, uint64_t at, size_t n, float *h,
                            float *gates, grq_error *err)
{
    const grq_geometry *g = grq_checkpoint_geometry(r->checkpoint);
    const uint64_t shape[] = { r->n_tokens, g->n_branches, g->width };
    const grq_segment segment = { r->state, n };
    grq_status st = grq_h5_read_rows(r->in, "/hidden", GRQ_H5_F32, 3, shape, at, n, h, err);
    if (st == GRQ_OK) st = check_finite(r, "/hidden", at, n, h, err);
    if (st == GRQ_OK) {
        st = grq_layer_forward(grq_layer_weights_view(r->weights), r->table, forward, 1, &segment, r->ids + at, h,
                               gates, err);
        if (st != GRQ_OK) {
            grq_fail_prefix(err, st, "tokens from %" PRIu64 " on", at);
            st = bad_input(st, r->options->input, err);
        }
    }
    if (st == GRQ_OK) st = check_finite(r, "what the layer makes of /hidden", at, n, h, err);
    if (st == GRQ_OK) st = grq_h5_append(r->hidden_out, n, h, err);
    if (st == GRQ_OK) st = grq_h5_append(r->gates_out, n, gates, err);
    for (size_t i = 0; st == GRQ_OK && i < n * g->n_branches; i++) r->gate_sum += gates[i];
    return st;
}

static grq_status run_all(layer_run *r, tool_context *tool, const grq_forward_options *forward, grq_error *err)
{
    const grq_geometry *g = grq_checkpoint_geometry(r->checkpoint);
    const size_t chunk = (size_t)r->options->chunk;
    float *h = malloc(chunk * g->n_branches * g->width * sizeof *h);
    float *gates = malloc(chunk * g->n_branches * sizeof *gates);
    grq_status st = h && gates ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for %zu tokens", chunk);
    for (uint64_t at = 0, n; st == GRQ_OK && at < r->n_tokens; at += n) {
        n = 1;
        if (at > 0 && r->sequences && r->sequences[at] != r->sequences[at - 1]) grq_layer_state_reset(r->state);
        while (n < chunk && at + n < r->n_tokens && (!r->sequences || r->sequences[at + n] == r->sequences[at])) n++;
        st = run_chunk(r, forward, at, n, h, gates, err);
        if (st == GRQ_OK) st = grq_progress_step(&tool->progress, "layer", at + n, r->n_tokens, "tokens", NULL, err);
    }
    free(h);
    free(gates);
    return st;
}

static void print_result(const layer_run *r, tool_context *tool)
{
    const layer_options *o = r->options;
    const grq_geometry *g = grq_checkpoint_geometry(r->checkpoint);
    const double mean_gate = r->n_tokens ? r->gate_sum / ((double)r->n_tokens * g->n_branches) : 0;
    grq_json_put_string(tool->result, "output", o->output);
    grq_json_put_string(tool->result, "family", g->family);
    grq_json_put_u64(tool->result, "layer", o->layer);
    grq_json_put_u64(tool->result, "tokens", r->n_tokens);
    grq_json_put_string(tool->result, "numerics", o->numerics);
    grq_json_put_string(tool->result, "table", grq_table_name(r->table));
    grq_json_put_f64(tool->result, "mean_gate", mean_gate);
    if (!tool->json)
        printf("%s: %" PRIu64 " tokens through layer %" PRIu64 " of %s (%s, %s); mean gate %.4f\n", o->output,
               r->n_tokens, o->layer, g->family, o->numerics, r->codes ? "codes" : "full table", mean_gate);
}

static grq_status check_output(const layer_options *o, grq_error *err)
{
    const struct {
        const char *path, *what;
    } inputs[] = {
        { o->input, "input" }, { o->codes, "coded table" }, { o->token_map, "token map" }, { o->memory, "memory" }
    };
    for (size_t i = 0; i < TOOL_COUNT(inputs); i++)
        if (inputs[i].path && input_same_file(inputs[i].path, o->output))
            return grq_fail(err, GRQ_E_USAGE, "--output: %s is the %s", o->output, inputs[i].what);
    return GRQ_OK;
}

static grq_status layer(tool_context *tool, const layer_options *o, grq_error *err)
{
    layer_run r = { .options = o };
    bool fp32;
    grq_status st = choose("numerics", o->numerics, "reference", "fp32", &fp32, err);
    if (st == GRQ_OK && o->depth && !o->codes) st = grq_fail(err, GRQ_E_USAGE, "--depth needs --codes");
    if (st == GRQ_OK && o->image_id != NO_IMAGE && !o->token_map)
        st = grq_fail(err, GRQ_E_USAGE, "--image-id is a raw id: it needs --token-map");
    if (st == GRQ_OK) st = check_output(o, err);
    if (st == GRQ_OK && fp32) st = grq_blas_init(err);
    if (st == GRQ_OK) st = open_memory(&r, err);
    if (st == GRQ_OK) st = open_input(&r, err);
    if (st == GRQ_OK) st = open_output(&r, tool, err);
    const grq_forward_options forward = { .numerics = fp32 ? GRQ_NUMERICS_FP32 : GRQ_NUMERICS_REFERENCE,
                                          .n_shards = (uint32_t)o->n_shards,
                                          .n_threads = tool->n_threads,
                                          .round_input = !o->keep_input };
    if (st == GRQ_OK) st = run_all(&r, tool, &forward, err);
    if (st == GRQ_OK) {
        st = grq_h5_commit(r.out, err);
        r.out = NULL;
    }
    if (st == GRQ_OK) print_result(&r, tool);
    grq_h5_close(r.out);
    grq_h5_close(r.in);
    free(r.ids);
    free(r.sequences);
    grq_layer_state_free(r.state);
    grq_layer_weights_free(r.weights);
    grq_table_free(r.table);
    grq_codes_close(r.codes);
    grq_checkpoint_close(r.checkpoint);
    return st;
}

grq_status cmd_layer(tool_context *tool, int argc, char **argv, grq_error *err)
{
    layer_options o = { .numerics = "reference", .e8m0 = "ocp", .chunk = 256, .n_shards = 1, .image_id = NO_IMAGE };
    const tool_option options[] = {
        { "memory", "DIR", "checkpoint folder, or one of ours (memory.json, or a miniature's model)", TOOL_TEXT,
          &o.memory, true, 0, 0 },
        { "layer", "L", "0-based decoder layer", TOOL_U64, &o.layer, true, 0, 100000 },
        { "input", "X.h5",
          "/ids int32 [T], /hidden float32 [T, branches, width]; /sequence int32 [T] starts anew where it "
          "changes",
          TOOL_TEXT, &o.input, true, 0, 0 },
        { "output", "Y.h5", "/hidden and /gates [T, branches] to write", TOOL_TEXT, &o.output, true, 0, 0 },
        { "codes", "FILE", "rows from a coded table in place of the stored ones", TOOL_TEXT, &o.codes, false, 0, 0 },
        { "depth", "K", "stages of --codes to read [all]", TOOL_U64, &o.depth, false, 1, GRQ_MAX_STAGES },
        { "numerics", "NAME",
          "reference: BF16 where the family's own code rounds, the same bits for any chunk and thread "
          "count; fp32: no rounding, BLAS [reference]",
          TOOL_TEXT, &o.numerics, false, 0, 0 },
        { "no-input-rounding", NULL,
          "reference numerics of DeepSeek-V4.1 without the MXFP8 rounding of the projection's input", TOOL_FLAG,
          &o.keep_input, false, 0, 0 },
        { "token-map", "FILE", "the ids are raw; this maps them (gaterq tokenmap)", TOOL_TEXT, &o.token_map, false, 0,
          0 },
        { "image-id", "ID", "raw id of positions that are no text; with --token-map (DeepSeek-V4.1: 129264)", TOOL_U64,
          &o.image_id, false, 0, NO_IMAGE - 1 },
        { "e8m0", "RULE", "ocp: byte 0 is 2^-127; shift: byte 0 is 0. 255 is refused by both [ocp]", TOOL_TEXT, &o.e8m0,
          false, 0, 0 },
        { "chunk", "N", "tokens at a time: bounds memory, changes nothing in reference numerics [256]", TOOL_U64,
          &o.chunk, false, 1, 65536 },
        { "shards", "N", "fetch rows as N owners of row ranges and add their results [1]", TOOL_U64, &o.n_shards, false,
          1, 1024 },
    };
    const tool_command command = {
        .name = "layer",
        .usage = "--memory DIR --layer L --input X.h5 --output Y.h5 [--codes C [--depth K]]",
        .summary = "Run one memory layer of a checkpoint over hidden states: updated states and gates out.",
        .details =
            "Ids are compressed ids (deepseek-v41, where -1 is no text, and engram-v1) or raw ids (qwen38-ple).\n"
            "Example: gaterq layer --memory DeepSeek-V4.1-Flash --layer 1 --input x.h5 --output y.h5",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    return st != GRQ_OK || done ? st : layer(tool, &o, err);
}
