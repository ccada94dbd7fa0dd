/* gaterq world: a knowledge world's facts as a file, and a look at its text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "inputs.h"
#include "seeds.h"

static grq_status print_sample(tool_context *tool, const grq_world *world, uint64_t n_tokens, grq_error *err)
{
    int32_t *tokens = malloc((n_tokens + 1) * sizeof *tokens);
    char *text = NULL;
    if (!tokens) return grq_fail(err, GRQ_E_NOMEM, "no memory for %" PRIu64 " tokens", n_tokens);
    grq_status st = grq_world_corpus(world, n_tokens, seed_of_training_text(tool->seed), tokens, NULL, NULL, err);
    if (st == GRQ_OK) st = grq_vocab_decode(grq_world_vocab(world), tokens, n_tokens, &text, err);
    if (st == GRQ_OK && tool->json) grq_json_put_string(tool->result, "sample", text);
    else if (st == GRQ_OK) printf("%s\n", text);
    free(text);
    free(tokens);
    return st;
}

grq_status cmd_world(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *config = NULL, *out = NULL;
    uint64_t n_sample = 0;
    const tool_option options[] = {
        { "config", "FILE", "experiment config with a world object", TOOL_TEXT, &config, true, 0, 0 },
        { "out", "FILE", "fact file to write, in PopQA's TSV layout", TOOL_TEXT, &out, false, 0, 0 },
        { "sample", "N", "print the first N tokens of the training text", TOOL_U64, &n_sample, false, 1, 1e6 },
    };
    const tool_command command = {
        .name = "world",
        .usage = "--config C.json [--out FACTS.tsv] [--sample N]",
        .summary = "Write a knowledge world's facts, and show its text.",
        .details = "Example: gaterq world --config experiments/configs/demo.json --sample 100",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    grq_world *world = NULL;
    st = input_world(config, NULL, &world, err);
    if (st == GRQ_OK) {
        grq_world_describe(world, "world", tool->result);
        if (!tool->json)
            printf("world %s: %zu facts, vocabulary of %u tokens (%s), rule %s\n", grq_world_name(world),
                   grq_world_n_facts(world), grq_vocab_size(grq_world_vocab(world)),
                   grq_vocab_kind(grq_world_vocab(world)), grq_world_rule(world));
    }
    if (st == GRQ_OK && out) st = grq_world_save_facts(world, out, err);
    if (st == GRQ_OK && n_sample) st = print_sample(tool, world, n_sample, err);
    grq_world_free(world);
    return st;
}
