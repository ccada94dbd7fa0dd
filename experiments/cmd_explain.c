/* gaterq explain: every look-up of a text, as the paper's worked example: what is read, how often, how much it matters
 * here, and how deep each ordering would read it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "explain.h"
#include "gaterq/blas.h"
#include "gaterq/file.h"
#include "inputs.h"

typedef struct {
    const char *model, *memory, *codes, *counts, *trace, *budget;
    uint64_t layer, top, sequence, n_texts;
    const char *texts[EXPLAIN_MAX_TEXTS + 1];
} explain_options;

enum { ALL_LAYERS = 1000000 };

/* ---- a trace of the texts, which exists only for the time of this command ---- */

typedef struct {
    size_t offsets[EXPLAIN_MAX_TEXTS + 1];
    int32_t *tokens;
    uint8_t *kinds;
} text_tokens;

static grq_status read_texts(const explain_options *o, const grq_vocab *vocab, text_tokens *t, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < o->n_texts; i++) {
        int32_t *ids = NULL;
        size_t n = 0;
        st = grq_vocab_encode(vocab, o->texts[i], strlen(o->texts[i]), &ids, &n, err);
        if (st == GRQ_E_DATA) st = grq_fail(err, GRQ_E_USAGE, "text %zu: %s", i + 1, err->message); /* an argument */
        if (st == GRQ_OK && n == 0) st = grq_fail(err, GRQ_E_USAGE, "text %zu is empty", i + 1);
        int32_t *const more = st == GRQ_OK ? realloc(t->tokens, (t->offsets[i] + n) * sizeof *more) : NULL;
        if (more) {
            t->tokens = more;
            memcpy(more + t->offsets[i], ids, n * sizeof *ids);
            t->offsets[i + 1] = t->offsets[i] + n;
        } else if (st == GRQ_OK) {
            st = grq_fail(err, GRQ_E_NOMEM, "no memory for the tokens of text %zu", i + 1);
        }
        free(ids);
    }
    if (st != GRQ_OK) return st;
    t->kinds = calloc(t->offsets[o->n_texts], 1);
    return t->kinds ? st : grq_fail(err, GRQ_E_NOMEM, "no memory for the texts");
}

static grq_status capture(tool_context *tool, const explain_options *o, const grq_model *model,
                          const grq_codes *const *codes, const grq_counts *counts, const grq_budget *budget,
                          grq_trace *out, grq_error *err)
{
    const char *const base = getenv("TMPDIR");
    char path[512];
    text_tokens t = { 0 };
    snprintf(path, sizeof path, "%.400s/gaterq-explain-%ld.h5", base && *base ? base : "/tmp", (long)getpid());
    grq_status st = read_texts(o, grq_model_vocab(model), &t, err);
    const grq_sequences sequences = {
        .n_sequences = o->n_texts, .offsets = t.offsets, .tokens = t.tokens, .kinds = t.kinds
    };
    const grq_trace_info info = { 0 };
    const grq_progress quiet = { 0 };
    (void)tool;
    if (st == GRQ_OK)
        st = grq_trace_capture(model, codes, counts, &sequences, budget, 1u << 20, &info, path, &quiet, err);
    if (st == GRQ_OK) st = grq_trace_open(path, out, err);
    unlink(path);
    free(t.tokens);
    free(t.kinds);
    return st;
}

/* ---- what a model's folder holds beside it ---- */

static grq_status beside(const char *given, const char *model, const char *name, const char *option, char **out,
                         grq_error *err)
{
    if (given) {
        *out = strdup(given);
    } else {
        const char *const slash = strrchr(model, '/');
        char folder[4096];
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - model) : 1, slash ? model : ".");
        *out = grq_path_join(folder, name);
    }
    if (!*out) return grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    if (given || grq_file_exists(*out)) return GRQ_OK;
    return grq_fail(err, GRQ_E_USAGE, "--%s: %s does not exist; gaterq %s makes it", option, *out,
                    strcmp(option, "codes") ? "count" : "encode");
}

static grq_status explain_model(tool_context *tool, const explain_options *o, const grq_budget *budget, grq_error *err)
{
    char *path = NULL, *codes_path = NULL, *counts_path = NULL;
    grq_model *model = NULL;
    grq_codes *codes[GRQ_MAX_MEMORY_LAYERS] = { NULL };
    grq_counts counts = { 0 };
    grq_trace trace = { 0 };
    grq_status st = input_model_path(o->model ? o->model : o->memory, &path, err);
    if (st == GRQ_OK) st = grq_blas_init(err);
    if (st == GRQ_OK) st = grq_model_open(path, &model, err);
    if (st == GRQ_OK) st = beside(o->codes, path, "codes", "codes", &codes_path, err);
    if (st == GRQ_OK) st = beside(o->counts, path, "counts.safetensors", "counts", &counts_path, err);
    if (st == GRQ_OK && !grq_model_vocab(model))
        st = grq_fail(err, GRQ_E_DATA, "%s: a model without vocabulary reads no text", path);
    if (st == GRQ_OK) st = input_codes(codes_path, model, false, codes, err);
    if (st == GRQ_OK) st = grq_counts_open(counts_path, &counts, err);
    if (st == GRQ_OK) st = capture(tool, o, model, (const grq_codes *const *)codes, &counts, budget, &trace, err);
    if (st == GRQ_OK) {
        const explain_view view = { .trace = &trace,
                                    .vocab = grq_model_vocab(model),
                                    .texts = o->texts,
                                    .n_texts = o->n_texts,
                                    .layer = o->layer == ALL_LAYERS ? -1 : (int64_t)o->layer,
                                    .top = o->top,
                                    .seed = tool->seed };
        st = explain_print(tool, &view, budget, err);
    }
    grq_trace_free(&trace);
    grq_counts_free(&counts);
    input_codes_close(codes);
    grq_model_free(model);
    free(path);
    free(codes_path);
    free(counts_path);
    return st;
}

/* A captured trace, as of a large model: its tokens are known by number only. */
static grq_status explain_trace(tool_context *tool, const explain_options *o, const grq_budget *budget, grq_error *err)
{
    grq_trace trace = { 0 };
    grq_status st = grq_trace_open(o->trace, &trace, err);
    if (st == GRQ_OK) {
        const explain_view view = { .trace = &trace,
                                    .only_sequence = true,
                                    .sequence = (uint32_t)o->sequence,
                                    .layer = o->layer == ALL_LAYERS ? -1 : (int64_t)o->layer,
                                    .top = o->top,
                                    .seed = tool->seed };
        st = explain_print(tool, &view, budget, err);
        if (st != GRQ_OK) grq_fail_prefix(err, st, "%s", o->trace);
    }
    grq_trace_free(&trace);
    return st;
}

grq_status cmd_explain(tool_context *tool, int argc, char **argv, grq_error *err)
{
    explain_options o = { .budget = "0.412", .layer = ALL_LAYERS };
    const tool_option options[] = {
        { "model", "FILE", "model file, or the run's folder that holds it", TOOL_TEXT, &o.model, false, 0, 0 },
        { "memory", "DIR", "the same", TOOL_TEXT, &o.memory, false, 0, 0 },
        { "codes", "DIR", "coded tables, layer-<L>.safetensors [codes beside the model]", TOOL_TEXT, &o.codes, false, 0,
          0 },
        { "counts", "FILE", "row counts [counts.safetensors beside the model]", TOOL_TEXT, &o.counts, false, 0, 0 },
        { "trace", "T.h5", "explain a sequence of a captured trace in place of a text", TOOL_TEXT, &o.trace, false, 0,
          0 },
        { "sequence", "S", "of --trace [0]", TOOL_U64, &o.sequence, false, 0, UINT32_MAX },
        { "layer", "L", "this memory layer only", TOOL_U64, &o.layer, false, 0, ALL_LAYERS - 1 },
        { "budget", "F[,F]", "stage fractions behind the depths; the texts are one batch [0.412]", TOOL_TEXT, &o.budget,
          false, 0, 0 },
        { "top", "N", "only the N look-ups of largest importance per layer [all]", TOOL_U64, &o.top, false, 1, 1e9 },
    };
    const tool_command command = {
        .name = "explain",
        .usage = "(--model M TEXT [TEXT ...] | --trace T.h5 [--sequence S])",
        .summary = "Every look-up of a text: n-gram, row, access count, gates, importance, depth under each ordering.",
        .details = "Rows that several positions read are listed once more with their contexts side by side.\n"
                   "Example: gaterq explain --model results/demo/priced --top 12 \"TEXT of the world\"",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = o.texts,
        .max_positionals = EXPLAIN_MAX_TEXTS,
    };
    bool done;
    grq_budget budget;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    while (o.n_texts < EXPLAIN_MAX_TEXTS && o.texts[o.n_texts]) o.n_texts++;
    st = grq_budget_parse(o.budget, &budget, err);
    if (st != GRQ_OK) return st;
    if (o.model && o.memory) return grq_fail(err, GRQ_E_USAGE, "--memory is another name for --model: give one");
    if ((o.trace != NULL) == (o.model || o.memory)) return grq_fail(err, GRQ_E_USAGE, "give either --model or --trace");
    if (o.trace && o.n_texts)
        return grq_fail(err, GRQ_E_USAGE, "--trace has its own tokens: \"%s\" is one too many", o.texts[0]);
    if (!o.trace && !o.n_texts) return grq_fail(err, GRQ_E_USAGE, "give a text to explain");
    return o.trace ? explain_trace(tool, &o, &budget, err) : explain_model(tool, &o, &budget, err);
}
