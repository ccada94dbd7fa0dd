#include "plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/file.h"
#include "gaterq/geometry.h"

/* What the config says, apart from world, model and train. */
typedef struct {
    const char *encoder, *budget, *readers;
    uint64_t seed, n_stages, counting_tokens, trace_tokens, trace_questions, n_questions, max_new, n_resamples;
    uint64_t layer_ids[GRQ_MAX_MEMORY_LAYERS];
    size_t n_layers;
} run_settings;

/* ---- steps ---- */

static char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *text(const char *format, ...)
{
    char *out = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&out, format, args) < 0) out = NULL;
    va_end(args);
    return out;
}

/* Takes ownership of name, result, output and of every argument; arguments end with NULL. An argument that could not be
 * allocated reads as the end, so the step is checked to be whole by its count. */
static grq_status add_step(plan *p, char *name, tool_function *run, char *result, char *output, int n_arguments,
                           char *const *arguments, grq_error *err)
{
    if (p->n_steps == PLAN_MAX_STEPS || n_arguments > PLAN_MAX_ARGUMENTS)
        return grq_fail(err, GRQ_E_USAGE, "the config asks for more than %d steps", PLAN_MAX_STEPS);
    plan_step *s = &p->steps[p->n_steps++];
    *s = (plan_step){ .name = name, .run = run, .result = result, .output = output, .argc = n_arguments };
    bool whole = name && (result || output);
    for (int i = 0; i < n_arguments; i++) {
        s->argv[i] = arguments[i];
        whole = whole && arguments[i];
    }
    return whole ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for the plan of a run");
}

#define STEP(p, name, run, result, output, err, ...)                                                                   \
    add_step(p, name, run, result, output, (int)TOOL_COUNT(((char *[]){ __VA_ARGS__ })), (char *[]){ __VA_ARGS__ }, err)

static char *number(uint64_t n)
{
    return text("%" PRIu64, n);
}

static char *word(const char *w)
{
    return strdup(w);
}

static grq_status plan_training(plan *p, const char *config, const run_settings *s, const char *v, double gate_cost,
                                grq_error *err)
{
    const char *f = p->folder;
    grq_status st =
        STEP(p, text("%s: train", v), cmd_train, text("%s/%s/train.json", f, v), text("%s/%s/model.safetensors", f, v),
             err, word("train"), word("--config"), word(config), word("--out"), text("%s/%s/model.safetensors", f, v),
             word("--gate-cost"), text("%.17g", gate_cost), word("--seed"), number(s->seed), word("--resume"));
    for (size_t l = 0; st == GRQ_OK && l < s->n_layers; l++) {
        const uint64_t layer = s->layer_ids[l];
        char *codes = text("%s/%s/codes/layer-%" PRIu64 ".safetensors", f, v, layer);
        if (!codes) return grq_fail(err, GRQ_E_NOMEM, "no memory for the plan of a run");
        st = STEP(p, text("%s: encode layer %" PRIu64, v, layer), cmd_encode, NULL, word(codes), err, word("encode"),
                  word("--memory"), text("%s/%s/model.safetensors", f, v), word("--layer"), number(layer),
                  word("--encoder"), word(s->encoder), word("--stages"), number(s->n_stages), word("--out"),
                  word(codes));
        if (st == GRQ_OK)
            st = STEP(p, text("%s: distortion of layer %" PRIu64, v, layer), cmd_distort,
                      text("%s/%s/distort-%" PRIu64 ".json", f, v, layer), NULL, err, word("distort"), word(codes),
                      word("--memory"), text("%s/%s/model.safetensors", f, v), word("--layer"), number(layer));
        if (st == GRQ_OK)
            st = STEP(p, text("%s: verify layer %" PRIu64, v, layer), cmd_verify,
                      text("%s/%s/verify-%" PRIu64 ".json", f, v, layer), text("%s.receipt.json", codes), err,
                      word("verify"), word(codes), word("--memory"), text("%s/%s/model.safetensors", f, v),
                      word("--layer"), number(layer), word("--seed"), number(s->seed));
        free(codes);
    }
    if (st == GRQ_OK)
        st = STEP(p, text("%s: count rows", v), cmd_count, NULL, text("%s/%s/counts.safetensors", f, v), err,
                  word("count"), word("--model"), text("%s/%s/model.safetensors", f, v), word("--codes"),
                  text("%s/%s/codes", f, v), word("--config"), word(config), word("--tokens"),
                  number(s->counting_tokens), word("--seed"), number(s->seed), word("--out"),
                  text("%s/%s/counts.safetensors", f, v));
    return st;
}

/* One trace and what is read out of it. `kind` is "text" or "questions". */
static grq_status plan_trace(plan *p, const char *config, const run_settings *s, const char *v, const char *kind,
                             uint64_t n, grq_error *err)
{
    const char *f = p->folder;
    const bool questions = !strcmp(kind, "questions");
    char *trace = text("%s/%s/%s.h5", f, v, kind);
    if (!trace) return grq_fail(err, GRQ_E_NOMEM, "no memory for the plan of a run");
    grq_status st =
        STEP(p, text("%s: trace %s", v, kind), cmd_trace, NULL, word(trace), err, word("trace"), word("--model"),
             text("%s/%s/model.safetensors", f, v), word("--codes"), text("%s/%s/codes", f, v), word("--counts"),
             text("%s/%s/counts.safetensors", f, v), word("--config"), word(config),
             questions ? word("--questions") : word("--tokens"), number(n), word("--budget"), word(s->budget),
             word("--seed"), number(s->seed), word("--out"), word(trace));
    if (st == GRQ_OK)
        st = STEP(p, text("%s: premise on %s", v, kind), cmd_premise, text("%s/%s/premise-%s.json", f, v, kind), NULL,
                  err, word("premise"), word(trace), word("--bootstrap"), number(s->n_resamples), word("--seed"),
                  number(s->seed));
    if (st == GRQ_OK)
        st = STEP(p, text("%s: ablate on %s", v, kind), cmd_ablate, text("%s/%s/ablate-%s.json", f, v, kind), NULL, err,
                  word("ablate"), word(trace), word("--budget"), word(s->budget), word("--bootstrap"),
                  number(s->n_resamples), word("--seed"), number(s->seed));
    free(trace);
    return st;
}

static grq_status plan_evaluation(plan *p, const char *config, const run_settings *s, const char *v, grq_error *err)
{
    const char *f = p->folder;
    return STEP(p, text("%s: ask questions", v), cmd_eval, text("%s/%s/accuracy.json", f, v),
                text("%s/%s/predictions", f, v), err, word("eval"), word("--model"),
                text("%s/%s/model.safetensors", f, v), word("--config"), word(config), word("--codes"),
                text("%s/%s/codes", f, v), word("--counts"), text("%s/%s/counts.safetensors", f, v), word("--budget"),
                word(s->budget), word("--readers"), word(s->readers), word("--questions"), number(s->n_questions),
                word("--max-new"), number(s->max_new), word("--bootstrap"), number(s->n_resamples), word("--seed"),
                number(s->seed), word("--out"), text("%s/%s/predictions", f, v));
}

static grq_status plan_variant(plan *p, const char *config, const run_settings *s, const char *v, double gate_cost,
                               grq_error *err)
{
    grq_status st = plan_training(p, config, s, v, gate_cost, err);
    if (st == GRQ_OK) st = plan_trace(p, config, s, v, "text", s->trace_tokens, err);
    if (st == GRQ_OK) st = plan_trace(p, config, s, v, "questions", s->trace_questions, err);
    if (st == GRQ_OK) st = plan_evaluation(p, config, s, v, err);
    return st;
}

/* ---- reading ---- */

static grq_status read_layers(grq_json_node *root, run_settings *s, grq_error *err)
{
    grq_json_node *model, *memory, *layers;
    grq_status st = grq_json_object(root, "model", &model, err);
    if (st == GRQ_OK) st = grq_json_object(model, "memory", &memory, err);
    if (st == GRQ_OK) st = grq_json_array(memory, "layer_ids", &layers, err);
    if (st != GRQ_OK) return st;
    s->n_layers = grq_json_count(layers);
    if (s->n_layers < 1 || s->n_layers > GRQ_MAX_MEMORY_LAYERS)
        return grq_fail(err, GRQ_E_USAGE, "%s: 1 to %d memory layers, not %zu", grq_json_where(layers),
                        GRQ_MAX_MEMORY_LAYERS, s->n_layers);
    for (size_t i = 0; st == GRQ_OK && i < s->n_layers; i++)
        st = grq_json_as_u64(grq_json_at(layers, i), 0, 1000, &s->layer_ids[i], err);
    return st;
}

static grq_status read_settings(grq_json_node *root, run_settings *s, grq_error *err)
{
    grq_json_node *codes, *counting, *trace, *evaluate;
    grq_status st = grq_json_u64(root, "seed", 0, UINT64_MAX / 2, &s->seed, err);
    if (st == GRQ_OK) st = grq_json_u64(root, "bootstrap", 0, 1000000, &s->n_resamples, err);
    if (st == GRQ_OK) st = grq_json_string(root, "budget", &s->budget, err);
    if (st == GRQ_OK) st = grq_json_object(root, "codes", &codes, err);
    if (st == GRQ_OK) st = grq_json_string(codes, "encoder", &s->encoder, err);
    if (st == GRQ_OK) st = grq_json_u64(codes, "stages", 2, 3, &s->n_stages, err);
    if (st == GRQ_OK) st = grq_json_finish(codes, err);
    if (st == GRQ_OK) st = grq_json_object(root, "counting", &counting, err);
    if (st == GRQ_OK) st = grq_json_u64(counting, "tokens", 1, 1000000000, &s->counting_tokens, err);
    if (st == GRQ_OK) st = grq_json_finish(counting, err);
    if (st == GRQ_OK) st = grq_json_object(root, "trace", &trace, err);
    if (st == GRQ_OK) st = grq_json_u64(trace, "tokens", 1, 1000000000, &s->trace_tokens, err);
    if (st == GRQ_OK) st = grq_json_u64(trace, "questions", 1, 1000000000, &s->trace_questions, err);
    if (st == GRQ_OK) st = grq_json_finish(trace, err);
    if (st == GRQ_OK) st = grq_json_object(root, "evaluate", &evaluate, err);
    if (st == GRQ_OK) st = grq_json_string(evaluate, "readers", &s->readers, err);
    if (st == GRQ_OK) st = grq_json_u64(evaluate, "questions", 0, 1000000000, &s->n_questions, err);
    if (st == GRQ_OK) st = grq_json_u64(evaluate, "max_new", 1, 1024, &s->max_new, err);
    if (st == GRQ_OK) st = grq_json_finish(evaluate, err);
    if (st == GRQ_OK) st = read_layers(root, s, err);
    return st;
}

/* Names become folders and file names, so they are kept plain. */
static grq_status check_name(grq_json_node *where, const char *key, const char *name, grq_error *err)
{
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (length == 0 || name[length] || length > 40)
        return grq_fail(err, GRQ_E_USAGE, "%s: %s \"%s\" may hold a-z, 0-9 and - only, at most 40 of them",
                        grq_json_where(where), key, name);
    return GRQ_OK;
}

static grq_status plan_variants(plan *p, grq_json_node *root, const char *config, const run_settings *s, grq_error *err)
{
    grq_json_node *variants;
    grq_status st = grq_json_array(root, "variants", &variants, err);
    if (st != GRQ_OK) return st;
    const size_t n = grq_json_count(variants);
    if (n < 1 || n > TOOL_COUNT(p->variants))
        return grq_fail(err, GRQ_E_USAGE, "%s: 1 to %zu variants, not %zu", grq_json_where(variants),
                        TOOL_COUNT(p->variants), n);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        grq_json_node *v = grq_json_at(variants, i);
        const char *name, *why;
        double gate_cost;
        st = grq_json_string(v, "name", &name, err);
        if (st == GRQ_OK) st = check_name(v, "name", name, err);
        if (st == GRQ_OK) st = grq_json_f64(v, "gate_cost", 0, 1000, &gate_cost, err);
        if (st == GRQ_OK) st = grq_json_string(v, "why", &why, err);
        if (st == GRQ_OK) st = grq_json_finish(v, err);
        for (size_t k = 0; st == GRQ_OK && k < i; k++)
            if (!strcmp(p->variants[k], name))
                st = grq_fail(err, GRQ_E_USAGE, "%s: variant \"%s\" is listed twice", grq_json_where(v), name);
        if (st != GRQ_OK) break;
        p->variants[p->n_variants++] = word(name);
        st = plan_variant(p, config, s, name, gate_cost, err);
    }
    return st;
}

static grq_status read_heading(grq_json_node *root, const char *folder, plan *p, grq_error *err)
{
    const char *id, *title, *about;
    grq_status st = grq_json_string(root, "id", &id, err);
    if (st == GRQ_OK) st = check_name(root, "id", id, err);
    if (st == GRQ_OK) st = grq_json_string(root, "title", &title, err);
    if (st == GRQ_OK) st = grq_json_string(root, "about", &about, err);
    if (st != GRQ_OK) return st;
    p->id = word(id);
    p->title = word(title);
    p->folder = folder ? word(folder) : text("results/%s", id);
    return p->id && p->title && p->folder ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for the plan of a run");
}

grq_status plan_read(const char *config_path, const char *folder, plan *p, grq_error *err)
{
    *p = (plan){ 0 };
    grq_json *document = NULL;
    run_settings s = { 0 };
    grq_status st = grq_json_open(config_path, &document, err);
    grq_json_node *root = st == GRQ_OK ? grq_json_root(document) : NULL, *unused;
    if (st == GRQ_OK) st = read_heading(root, folder, p, err);
    if (st == GRQ_OK) st = read_settings(root, &s, err);
    p->seed = s.seed;
    if (st == GRQ_OK) st = grq_json_object(root, "world", &unused, err); /* read by cmd_world */
    if (st == GRQ_OK) st = grq_json_object(root, "train", &unused, err); /* read by cmd_train */
    if (st == GRQ_OK)
        st = STEP(p, word("world"), cmd_world, text("%s/world.json", p->folder), text("%s/facts.tsv", p->folder), err,
                  word("world"), word("--config"), word(config_path), word("--out"), text("%s/facts.tsv", p->folder));
    if (st == GRQ_OK) st = plan_variants(p, root, config_path, &s, err);
    if (st == GRQ_OK) st = grq_json_finish(root, err);
    grq_json_close(document);
    if (st != GRQ_OK) plan_free(p);
    return grq_config_status(st, err);
}

void plan_free(plan *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        plan_step *s = &p->steps[i];
        for (int k = 0; k < s->argc; k++) free(s->argv[k]);
        free(s->name);
        free(s->result);
        free(s->output);
    }
    for (size_t i = 0; i < p->n_variants; i++) free(p->variants[i]);
    free(p->id);
    free(p->title);
    free(p->folder);
    *p = (plan){ 0 };
}
