/* gaterq trace: every look-up of a held-out text, or of questions with their answers, to HDF5. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/trace.h"
#include "inputs.h"
#include "provenance.h"
#include "seeds.h"

typedef struct {
    const char *model, *codes, *counts, *config, *budget, *out;
    uint64_t n_tokens, n_questions, window, batch;
    bool unverified;
} trace_options;

/* Owned sequences. */
typedef struct {
    size_t n, n_tokens;
    size_t *offsets;
    int32_t *tokens;
    uint8_t *kinds;
} sequence_list;

static grq_status allocate(sequence_list *s, size_t n, size_t n_tokens, grq_error *err)
{
    *s = (sequence_list){ .n = n, .n_tokens = n_tokens };
    s->offsets = malloc((n + 1) * sizeof *s->offsets);
    s->tokens = malloc((n_tokens + 1) * sizeof *s->tokens);
    s->kinds = malloc(n_tokens + 1);
    return s->offsets && s->tokens && s->kinds
               ? GRQ_OK
               : grq_fail(err, GRQ_E_NOMEM, "no memory for %zu tokens to trace", n_tokens);
}

static void free_sequences(sequence_list *s)
{
    free(s->offsets);
    free(s->tokens);
    free(s->kinds);
}

/* Windows of held-out text. */
static grq_status text_sequences(const grq_world *world, const trace_options *o, uint64_t seed, sequence_list *s,
                                 grq_error *err)
{
    grq_status st = allocate(s, (o->n_tokens + o->window - 1) / o->window, o->n_tokens, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < s->n; i++) s->offsets[i] = i * o->window;
    s->offsets[s->n] = o->n_tokens;
    return grq_world_corpus(world, o->n_tokens, seed_of_trace_text(seed), s->tokens, s->kinds, NULL, err);
}

/* Prompts, each followed by its trained answer. */
static grq_status question_sequences(const grq_world *world, const trace_options *o, uint64_t seed, sequence_list *s,
                                     grq_error *err)
{
    grq_questions q;
    size_t n_tokens = 0, at = 0;
    grq_status st = grq_world_questions(world, o->n_questions, seed, &q, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < q.n; i++) n_tokens += q.items[i].n_prompt + q.items[i].n_answer;
    st = allocate(s, q.n, n_tokens, err);
    for (size_t i = 0; st == GRQ_OK && i < q.n; i++) {
        const grq_question *item = &q.items[i];
        s->offsets[i] = at;
        memcpy(s->tokens + at, item->prompt, item->n_prompt * sizeof *s->tokens);
        memcpy(s->tokens + at + item->n_prompt, item->answer, item->n_answer * sizeof *s->tokens);
        at += item->n_prompt + item->n_answer;
    }
    if (st == GRQ_OK) {
        s->offsets[q.n] = at;
        memset(s->kinds, GRQ_TEXT_PROMPT, n_tokens);
    }
    grq_questions_free(&q);
    return st;
}

static grq_status capture(tool_context *tool, const trace_options *o, const grq_model *model,
                          const grq_codes *const *codes, const grq_counts *counts, const sequence_list *s,
                          grq_error *err)
{
    provenance p;
    grq_budget budget;
    grq_status st = grq_budget_parse(o->budget, &budget, err);
    if (st == GRQ_OK) st = provenance_collect(&p, o->config, tool->seed, err);
    if (st != GRQ_OK) return st;
    const grq_sequences sequences = {
        .n_sequences = s->n, .offsets = s->offsets, .tokens = s->tokens, .kinds = s->kinds
    };
    const grq_trace_info info = { .metadata = p.items, .n_metadata = p.n_items };
    st = grq_trace_capture(model, codes, counts, &sequences, &budget, (uint32_t)o->batch, &info, o->out,
                           &tool->progress, err);
    if (st != GRQ_OK) return st;
    const grq_geometry *g = &grq_model_shape_of(model)->memory;
    grq_json_put_string(tool->result, "trace", o->out);
    grq_json_put_u64(tool->result, "sequences", s->n);
    grq_json_put_u64(tool->result, "positions", s->n_tokens);
    grq_json_put_u64(tool->result, "lookups", (uint64_t)s->n_tokens * g->n_columns * g->n_layers);
    if (!tool->json)
        printf("%s: %zu sequences, %zu positions, %zu look-ups\n", o->out, s->n, s->n_tokens,
               s->n_tokens * g->n_columns * g->n_layers);
    return GRQ_OK;
}

static grq_status trace(tool_context *tool, const trace_options *o, grq_error *err)
{
    grq_model *model = NULL;
    grq_world *world = NULL;
    grq_codes *codes[GRQ_MAX_MEMORY_LAYERS] = { NULL };
    grq_counts counts = { 0 };
    sequence_list sequences = { 0 };
    grq_status st = grq_model_open(o->model, &model, err);
    if (st == GRQ_OK) st = input_world(o->config, model, &world, err);
    if (st == GRQ_OK) st = input_codes(o->codes, model, !o->unverified, codes, err);
    if (st == GRQ_OK) st = grq_counts_open(o->counts, &counts, err);
    if (st == GRQ_OK)
        st = o->n_questions ? question_sequences(world, o, tool->seed, &sequences, err)
                            : text_sequences(world, o, tool->seed, &sequences, err);
    if (st == GRQ_OK) st = capture(tool, o, model, (const grq_codes *const *)codes, &counts, &sequences, err);
    free_sequences(&sequences);
    grq_counts_free(&counts);
    input_codes_close(codes);
    grq_world_free(world);
    grq_model_free(model);
    return st;
}

grq_status cmd_trace(tool_context *tool, int argc, char **argv, grq_error *err)
{
    trace_options o = { .budget = "0.412", .window = 64, .batch = 4096 };
    const tool_option options[] = {
        { "model", "FILE", "model file", TOOL_TEXT, &o.model, true, 0, 0 },
        { "codes", "DIR", "coded tables, layer-<L>.safetensors", TOOL_TEXT, &o.codes, true, 0, 0 },
        { "counts", "FILE", "row counts (gaterq count)", TOOL_TEXT, &o.counts, true, 0, 0 },
        { "config", "FILE", "config whose world is read [the one in the model file]", TOOL_TEXT, &o.config, false, 0,
          0 },
        { "tokens", "N", "trace N tokens of held-out text", TOOL_U64, &o.n_tokens, false, 1, 1e10 },
        { "questions", "N", "trace N questions with their answers", TOOL_U64, &o.n_questions, false, 1, 1e9 },
        { "window", "N", "tokens of a text sequence [64]", TOOL_U64, &o.window, false, 1, 4096 },
        { "batch", "N", "positions that share one budget [4096]", TOOL_U64, &o.batch, false, 1, 1e6 },
        { "budget", "F[,F]", "stage fractions behind the dataset `depth` [0.412]", TOOL_TEXT, &o.budget, false, 0, 0 },
        INPUT_UNVERIFIED_OPTION(&o.unverified),
        { "out", "FILE", "trace to write (HDF5)", TOOL_TEXT, &o.out, true, 0, 0 },
    };
    const tool_command command = {
        .name = "trace",
        .usage = "--model M --codes DIR --counts S (--tokens N | --questions N) --out T.h5",
        .summary = "Write every look-up of a held-out text, or of questions with their answers, to HDF5.",
        .details = "h5dump -A T.h5 explains every dataset.\n"
                   "Example: gaterq trace --model mini.safetensors --codes codes --counts counts.safetensors --tokens "
                   "76800 --out text.h5",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if ((o.n_tokens != 0) == (o.n_questions != 0))
        return grq_fail(err, GRQ_E_USAGE, "give either --tokens or --questions");
    return trace(tool, &o, err);
}
