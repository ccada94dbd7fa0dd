/* gaterq train: a miniature language model from an experiment config. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "gaterq/blas.h"
#include "gaterq/file.h"
#include "gaterq/train.h"
#include "gaterq/world.h"
#include "inputs.h"
#include "provenance.h"
#include "seeds.h"
#include "terminal.h"

typedef struct {
    const char *config, *out;
    double gate_cost; /* NaN: as in the config */
    bool resume;
} train_options;

static const double CHECKPOINT_SECONDS = 60;

/* Everything the config says about training; the world is opened apart. */
static grq_status read_config(const train_options *o, const grq_world *world, grq_model_shape *shape,
                              grq_train_config *config, grq_error *err)
{
    grq_json *document = NULL;
    grq_json_node *model = NULL, *train = NULL;
    grq_status st = grq_json_open(o->config, &document, err);
    if (st == GRQ_OK) st = grq_json_object(grq_json_root(document), "model", &model, err);
    if (st == GRQ_OK) st = grq_json_object(grq_json_root(document), "train", &train, err);
    if (st == GRQ_OK) st = grq_model_shape_read(model, grq_vocab_size(grq_world_vocab(world)), shape, err);
    if (st == GRQ_OK) st = grq_train_config_read(train, config, err);
    if (st == GRQ_OK && !isnan(o->gate_cost)) config->gate_cost = o->gate_cost;
    grq_json_close(document);
    return grq_config_status(st, err);
}

/* The config text goes into the model file whole, so that a model alone says what it is and which world it knows. */
static grq_status save_model(const grq_model *model, const train_options *o, uint64_t seed, double gate_cost,
                             grq_error *err)
{
    provenance p;
    char *text = NULL, cost[32];
    size_t n_bytes;
    grq_status st = provenance_collect(&p, o->config, seed, err);
    if (st == GRQ_OK) st = grq_file_read(o->config, 1 << 20, &text, &n_bytes, err);
    if (st != GRQ_OK) return st;
    snprintf(cost, sizeof cost, "%.17g", gate_cost);
    grq_metadata metadata[PROVENANCE_ITEMS + 2];
    memcpy(metadata, p.items, p.n_items * sizeof *metadata);
    metadata[p.n_items] = (grq_metadata){ INPUT_CONFIG_KEY, text };
    metadata[p.n_items + 1] = (grq_metadata){ "gaterq.gate_cost", cost };
    st = grq_model_save(model, o->out, metadata, p.n_items + 2, err);
    free(text);
    return st;
}

static grq_status train(tool_context *tool, const train_options *o, const char *checkpoint, const grq_world *world,
                        grq_error *err)
{
    grq_model_shape shape;
    grq_train_config config;
    grq_train_result result = { 0 };
    grq_model *model = NULL;
    int32_t *text = NULL;
    grq_status st = read_config(o, world, &shape, &config, err);
    if (st == GRQ_OK) st = grq_model_new(&shape, grq_world_vocab(world), tool->seed, &model, err);
    if (st == GRQ_OK) {
        text = malloc((config.n_tokens + 1) * sizeof *text);
        if (!text)
            st = grq_fail(err, GRQ_E_NOMEM, "%s: no memory for train.n_tokens = %" PRIu64, o->config, config.n_tokens);
    }
    if (st == GRQ_OK)
        st = grq_world_corpus(world, config.n_tokens + 1, seed_of_training_text(tool->seed), text, NULL, NULL, err);
    if (st == GRQ_OK) st = grq_blas_init(err); /* for its description; every user of it initialises it again */
    if (st == GRQ_OK) {
        const uint64_t n_tables = grq_model_n_parameters(model, 1), n_all = grq_model_n_parameters(model, 0);
        fprintf(stderr,
                "training %" PRIu64 " backbone and %" PRIu64
                " table parameters on %.3g tokens, gate cost %g, %u thread%s; %s\n",
                n_all - n_tables, n_tables, (double)config.n_tokens, config.gate_cost, tool->n_threads,
                tool->n_threads == 1 ? "" : "s", grq_blas_description());
        st = grq_train(model, &config, text, tool->seed, tool->n_threads, checkpoint, CHECKPOINT_SECONDS,
                       &tool->progress, &result, err);
        if (st == GRQ_E_INTERRUPTED) grq_fail_prefix(err, st, "continue with --resume (checkpoint %s)", checkpoint);
    }
    if (st == GRQ_OK) st = save_model(model, o, tool->seed, config.gate_cost, err);
    if (st == GRQ_OK) unlink(checkpoint); /* the model is safe: the checkpoint would only be in the way */
    if (st == GRQ_OK) {
        grq_json_put_string(tool->result, "model", o->out);
        grq_json_put_u64(tool->result, "steps", result.steps);
        grq_json_put_u64(tool->result, "tokens", result.n_tokens);
        grq_json_put_f64(tool->result, "loss_nats", result.loss);
        grq_json_put_f64(tool->result, "gate_cost", config.gate_cost);
        grq_json_begin_array(tool->result, "gate_mean");
        for (uint32_t l = 0; l < shape.memory.n_layers; l++) grq_json_put_f64(tool->result, NULL, result.gate_mean[l]);
        grq_json_end_array(tool->result);
        terminal_end_line();
        fprintf(stderr, "trained in %.0f s: loss %.4f nats; %s\n", result.seconds, result.loss, o->out);
    }
    free(text);
    grq_model_free(model);
    return st;
}

grq_status cmd_train(tool_context *tool, int argc, char **argv, grq_error *err)
{
    train_options o = { .gate_cost = NAN };
    const tool_option options[] = {
        { "config", "FILE", "experiment config: its world, model and train objects", TOOL_TEXT, &o.config, true, 0, 0 },
        { "out", "FILE", "model file to write (safetensors)", TOOL_TEXT, &o.out, true, 0, 0 },
        { "gate-cost", "X", "price on reading memory, in place of the config's", TOOL_F64, &o.gate_cost, false, 0,
          1000 },
        { "resume", NULL, "continue from OUT.checkpoint if it is there", TOOL_FLAG, &o.resume, false, 0, 0 },
    };
    const tool_command command = {
        .name = "train",
        .usage = "--config W.json --out MODEL [--resume]",
        .summary = "Train a miniature language model with memory layers on its world's text.",
        .details = "A checkpoint is kept at OUT.checkpoint every minute and at Ctrl-C; --resume continues from it and "
                   "ends in\n"
                   "the same bytes. Same config, seed and build: same bytes on any number of threads.\n"
                   "Example: gaterq train --config experiments/configs/demo.json --out mini.safetensors",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    char checkpoint[4096];
    if (snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", o.out) >= (int)sizeof checkpoint)
        return grq_fail(err, GRQ_E_USAGE, "--out: the path is too long");
    if (!o.resume && grq_file_exists(checkpoint))
        return grq_fail(err, GRQ_E_USAGE,
                        "%s is there from an interrupted training: continue with --resume, or delete it", checkpoint);
    grq_world *world = NULL;
    st = input_world(o.config, NULL, &world, err);
    if (st == GRQ_OK) st = train(tool, &o, checkpoint, world, err);
    grq_world_free(world);
    return st;
}
