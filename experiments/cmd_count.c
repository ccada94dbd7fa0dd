/* gaterq count: how often each row is read, and with what gates, in a corpus of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/counts.h"
#include "inputs.h"
#include "provenance.h"
#include "seeds.h"

typedef struct {
    const char *model, *codes, *config, *out;
    uint64_t n_tokens, window;
} count_options;

static grq_status save_counts(const grq_counts *counts, const count_options *o, uint64_t seed, grq_error *err)
{
    provenance p;
    const grq_status st = provenance_collect(&p, o->config, seed, err);
    return st == GRQ_OK ? grq_counts_save(counts, o->out, p.items, p.n_items, err) : st;
}

static void print_counts(tool_context *tool, const grq_geometry *g, const grq_counts *counts)
{
    grq_json_put_u64(tool->result, "positions", counts->n_positions);
    grq_json_begin_array(tool->result, "layers");
    for (uint32_t l = 0; l < counts->n_layers; l++) {
        uint64_t n_read = 0;
        for (uint64_t r = 0; r < counts->n_rows[l]; r++) n_read += counts->count[l][r] > 0;
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_u64(tool->result, "layer", g->layer_ids[l]);
        grq_json_put_u64(tool->result, "rows", counts->n_rows[l]);
        grq_json_put_u64(tool->result, "rows_read", n_read);
        grq_json_put_f64(tool->result, "mean_gate_energy", counts->mean_gate_energy[l]);
        grq_json_end_object(tool->result);
        if (!tool->json)
            printf("layer %u: %" PRIu64 " of %" PRIu64 " rows read in %" PRIu64 " positions, mean gate energy %.4f\n",
                   g->layer_ids[l], n_read, counts->n_rows[l], counts->n_positions, counts->mean_gate_energy[l]);
    }
    grq_json_end_array(tool->result);
}

static grq_status count(tool_context *tool, const count_options *o, const grq_model *model, const grq_world *world,
                        const grq_codes *const *codes, grq_error *err)
{
    grq_counts counts = { 0 };
    int32_t *tokens = malloc((o->n_tokens + 1) * sizeof *tokens);
    if (!tokens) return grq_fail(err, GRQ_E_NOMEM, "--tokens %" PRIu64 ": no memory for the text", o->n_tokens);
    grq_status st = grq_world_corpus(world, o->n_tokens, seed_of_counting_text(tool->seed), tokens, NULL, NULL, err);
    if (st == GRQ_OK)
        st = grq_counts_run(model, codes, tokens, o->n_tokens, (uint32_t)o->window, tool->n_threads, &tool->progress,
                            &counts, err);
    if (st == GRQ_OK) st = save_counts(&counts, o, tool->seed, err);
    if (st == GRQ_OK) print_counts(tool, &grq_model_shape_of(model)->memory, &counts);
    grq_counts_free(&counts);
    free(tokens);
    return st;
}

grq_status cmd_count(tool_context *tool, int argc, char **argv, grq_error *err)
{
    count_options o = { .n_tokens = 1000000, .window = 64 };
    const tool_option options[] = {
        { "model", "FILE", "model file", TOOL_TEXT, &o.model, true, 0, 0 },
        { "codes", "DIR", "coded tables, layer-<L>.safetensors: gate energies are stage-1 ones", TOOL_TEXT, &o.codes,
          true, 0, 0 },
        { "config", "FILE", "config whose world is read [the one in the model file]", TOOL_TEXT, &o.config, false, 0,
          0 },
        { "tokens", "N", "tokens of the counting corpus [1000000]", TOOL_U64, &o.n_tokens, false, 1, 1e10 },
        { "window", "N", "tokens of a sequence [64]", TOOL_U64, &o.window, false, 1, 4096 },
        { "out", "FILE", "row counts to write (safetensors)", TOOL_TEXT, &o.out, true, 0, 0 },
    };
    const tool_command command = {
        .name = "count",
        .usage = "--model M --codes DIR [--config C] [--tokens N] --out S",
        .summary =
            "Row access counts and expected gate energies, from a corpus that is neither trained on nor evaluated.",
        .details = "Example: gaterq count --model mini.safetensors --codes codes --out counts.safetensors",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    grq_model *model = NULL;
    grq_world *world = NULL;
    grq_codes *codes[GRQ_MAX_MEMORY_LAYERS] = { NULL };
    st = grq_model_open(o.model, &model, err);
    if (st == GRQ_OK) st = input_world(o.config, model, &world, err);
    if (st == GRQ_OK) st = input_codes(o.codes, model, false, codes, err);
    if (st == GRQ_OK) st = count(tool, &o, model, world, (const grq_codes *const *)codes, err);
    input_codes_close(codes);
    grq_world_free(world);
    grq_model_free(model);
    return st;
}
