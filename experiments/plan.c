#include "plan_steps.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/file.h"

/* ---- steps ---- */

char *plan_text(const char *format, ...)
{
    char *out = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&out, format, args) < 0) out = NULL;
    va_end(args);
    return out;
}

grq_status plan_add_step(plan *p, char *name, tool_function *run, char *result, char *output, int n_arguments,
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

char *plan_number(uint64_t n)
{
    return plan_text("%" PRIu64, n);
}

char *plan_word(const char *w)
{
    return strdup(w);
}

grq_status plan_train(plan *p, const char *config, const run_settings *s, const char *v, double gate_cost,
                      grq_error *err)
{
    const char *f = p->folder;
    return PLAN_STEP(p, plan_text("%s: train", v), cmd_train, plan_text("%s/%s/train.json", f, v),
                     plan_text("%s/%s/model.safetensors", f, v), err, plan_word("train"), plan_word("--config"),
                     plan_word(config), plan_word("--out"), plan_text("%s/%s/model.safetensors", f, v),
                     plan_word("--gate-cost"), plan_text("%.17g", gate_cost), plan_word("--seed"), plan_number(s->seed),
                     plan_word("--resume"));
}

grq_status plan_codes(plan *p, const char *config, const run_settings *s, const char *v, const char *at, grq_error *err)
{
    const char *f = p->folder;
    grq_status st = GRQ_OK;
    for (size_t l = 0; st == GRQ_OK && l < s->n_layers; l++) {
        const uint64_t layer = s->layer_ids[l];
        char *codes = plan_text("%s/%s/codes/layer-%" PRIu64 ".safetensors", f, at, layer);
        if (!codes) return grq_fail(err, GRQ_E_NOMEM, "no memory for the plan of a run");
        st = PLAN_STEP(p, plan_text("%s: encode layer %" PRIu64, at, layer), cmd_encode, NULL, plan_word(codes), err,
                       plan_word("encode"), plan_word("--memory"), plan_text("%s/%s/model.safetensors", f, v),
                       plan_word("--layer"), plan_number(layer), plan_word("--encoder"), plan_word(s->encoder),
                       plan_word("--stages"), plan_number(s->n_stages), plan_word("--out"), plan_word(codes));
        if (st == GRQ_OK)
            st = PLAN_STEP(p, plan_text("%s: distortion of layer %" PRIu64, at, layer), cmd_distort,
                           plan_text("%s/%s/distort-%" PRIu64 ".json", f, at, layer), NULL, err, plan_word("distort"),
                           plan_word(codes), plan_word("--memory"), plan_text("%s/%s/model.safetensors", f, v),
                           plan_word("--layer"), plan_number(layer));
        if (st == GRQ_OK)
            st = PLAN_STEP(p, plan_text("%s: verify layer %" PRIu64, at, layer), cmd_verify,
                           plan_text("%s/%s/verify-%" PRIu64 ".json", f, at, layer),
                           plan_text("%s.receipt.json", codes), err, plan_word("verify"), plan_word(codes),
                           plan_word("--memory"), plan_text("%s/%s/model.safetensors", f, v), plan_word("--layer"),
                           plan_number(layer), plan_word("--seed"), plan_number(s->seed));
        free(codes);
    }
    if (st == GRQ_OK)
        st =
            PLAN_STEP(p, plan_text("%s: count rows", at), cmd_count, NULL, plan_text("%s/%s/counts.safetensors", f, at),
                      err, plan_word("count"), plan_word("--model"), plan_text("%s/%s/model.safetensors", f, v),
                      plan_word("--codes"), plan_text("%s/%s/codes", f, at), plan_word("--config"), plan_word(config),
                      plan_word("--tokens"), plan_number(s->counting_tokens), plan_word("--seed"), plan_number(s->seed),
                      plan_word("--out"), plan_text("%s/%s/counts.safetensors", f, at));
    return st;
}

/* One trace and what is read out of it. `kind` is "text" or "questions". */
static grq_status plan_trace(plan *p, const char *config, const run_settings *s, const char *v, const char *kind,
                             uint64_t n, grq_error *err)
{
    const char *f = p->folder;
    const bool questions = !strcmp(kind, "questions");
    char *trace = plan_text("%s/%s/%s.h5", f, v, kind);
    if (!trace) return grq_fail(err, GRQ_E_NOMEM, "no memory for the plan of a run");
    grq_status st = PLAN_STEP(p, plan_text("%s: trace %s", v, kind), cmd_trace, NULL, plan_word(trace), err,
                              plan_word("trace"), plan_word("--model"), plan_text("%s/%s/model.safetensors", f, v),
                              plan_word("--codes"), plan_text("%s/%s/codes", f, v), plan_word("--counts"),
                              plan_text("%s/%s/counts.safetensors", f, v), plan_word("--config"), plan_word(config),
                              questions ? plan_word("--questions") : plan_word("--tokens"), plan_number(n),
                              plan_word("--budget"), plan_word(s->budget), plan_word("--seed"), plan_number(s->seed),
                              plan_word("--out"), plan_word(trace));
    if (st == GRQ_OK)
        st =
            PLAN_STEP(p, plan_text("%s: premise on %s", v, kind), cmd_premise,
                      plan_text("%s/%s/premise-%s.json", f, v, kind), NULL, err, plan_word("premise"), plan_word(trace),
                      plan_word("--bootstrap"), plan_number(s->n_resamples), plan_word("--seed"), plan_number(s->seed));
    if (st == GRQ_OK)
        st = PLAN_STEP(p, plan_text("%s: ablate on %s", v, kind), cmd_ablate,
                       plan_text("%s/%s/ablate-%s.json", f, v, kind), NULL, err, plan_word("ablate"), plan_word(trace),
                       plan_word("--budget"), plan_word(s->budget), plan_word("--bootstrap"),
                       plan_number(s->n_resamples), plan_word("--seed"), plan_number(s->seed));
    free(trace);
    return st;
}

grq_status plan_ask(plan *p, const char *config, const run_settings *s, const char *v, const char *at, const char *into,
                    grq_error *err)
{
    const char *f = p->folder;
    return PLAN_STEP(p, plan_text("%s: ask questions", into), cmd_eval, plan_text("%s/%s/accuracy.json", f, into),
                     plan_text("%s/%s/predictions", f, into), err, plan_word("eval"), plan_word("--model"),
                     plan_text("%s/%s/model.safetensors", f, v), plan_word("--config"), plan_word(config),
                     plan_word("--codes"), plan_text("%s/%s/codes", f, at), plan_word("--counts"),
                     plan_text("%s/%s/counts.safetensors", f, at), plan_word("--budget"), plan_word(s->budget),
                     plan_word("--readers"), plan_word(s->readers), plan_word("--questions"),
                     plan_number(s->n_questions), plan_word("--max-new"), plan_number(s->max_new),
                     plan_word("--bootstrap"), plan_number(s->n_resamples), plan_word("--seed"), plan_number(s->seed),
                     plan_word("--out"), plan_text("%s/%s/predictions", f, into));
}

static grq_status plan_variant(plan *p, const char *config, const run_settings *s, const char *v, double gate_cost,
                               grq_error *err)
{
    grq_status st = plan_train(p, config, s, v, gate_cost, err);
    if (st == GRQ_OK) st = plan_codes(p, config, s, v, v, err);
    if (st == GRQ_OK) st = plan_trace(p, config, s, v, "text", s->trace_tokens, err);
    if (st == GRQ_OK) st = plan_trace(p, config, s, v, "questions", s->trace_questions, err);
    if (st == GRQ_OK) st = plan_ask(p, config, s, v, v, v, err);
    return st;
}

/* ---- reading ---- */

grq_status plan_read_layers(grq_json_node *root, run_settings *s, grq_error *err)
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

grq_status plan_read_counting(grq_json_node *root, run_settings *s, grq_error *err)
{
    grq_json_node *counting;
    grq_status st = grq_json_object(root, "counting", &counting, err);
    if (st == GRQ_OK) st = grq_json_u64(counting, "tokens", 1, 1000000000, &s->counting_tokens, err);
    return st == GRQ_OK ? grq_json_finish(counting, err) : st;
}

static grq_status read_settings(grq_json_node *root, run_settings *s, grq_error *err)
{
    grq_json_node *codes, *trace, *evaluate;
    grq_status st = grq_json_u64(root, "seed", 0, UINT64_MAX / 2, &s->seed, err);
    if (st == GRQ_OK) st = grq_json_u64(root, "bootstrap", 0, 1000000, &s->n_resamples, err);
    if (st == GRQ_OK) st = grq_json_string(root, "budget", &s->budget, err);
    if (st == GRQ_OK) st = grq_json_object(root, "codes", &codes, err);
    if (st == GRQ_OK) st = grq_json_string(codes, "encoder", &s->encoder, err);
    if (st == GRQ_OK) st = grq_json_u64(codes, "stages", 2, 3, &s->n_stages, err);
    if (st == GRQ_OK) st = grq_json_finish(codes, err);
    if (st == GRQ_OK) st = plan_read_counting(root, s, err);
    if (st == GRQ_OK) st = grq_json_object(root, "trace", &trace, err);
    if (st == GRQ_OK) st = grq_json_u64(trace, "tokens", 1, 1000000000, &s->trace_tokens, err);
    if (st == GRQ_OK) st = grq_json_u64(trace, "questions", 1, 1000000000, &s->trace_questions, err);
    if (st == GRQ_OK) st = grq_json_finish(trace, err);
    if (st == GRQ_OK) st = grq_json_object(root, "evaluate", &evaluate, err);
    if (st == GRQ_OK) st = grq_json_string(evaluate, "readers", &s->readers, err);
    if (st == GRQ_OK) st = grq_json_u64(evaluate, "questions", 0, 1000000000, &s->n_questions, err);
    if (st == GRQ_OK) st = grq_json_u64(evaluate, "max_new", 1, 1024, &s->max_new, err);
    if (st == GRQ_OK) st = grq_json_finish(evaluate, err);
    if (st == GRQ_OK) st = plan_read_layers(root, s, err);
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
        p->variants[p->n_variants++] = plan_word(name);
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
    p->id = plan_word(id);
    p->title = plan_word(title);
    p->folder = folder ? plan_word(folder) : plan_text("results/%s", id);
    return p->id && p->title && p->folder ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for the plan of a run");
}

grq_status plan_world(plan *p, grq_json_node *root, const char *config, grq_error *err)
{
    grq_json_node *unused;
    grq_status st = grq_json_object(root, "world", &unused, err);        /* read by cmd_world */
    if (st == GRQ_OK) st = grq_json_object(root, "train", &unused, err); /* read by cmd_train */
    if (st != GRQ_OK) return st;
    return PLAN_STEP(p, plan_word("world"), cmd_world, plan_text("%s/world.json", p->folder),
                     plan_text("%s/facts.tsv", p->folder), err, plan_word("world"), plan_word("--config"),
                     plan_word(config), plan_word("--out"), plan_text("%s/facts.tsv", p->folder));
}

static grq_status read_variants(grq_json_node *root, const char *config, plan *p, run_settings *s, grq_error *err)
{
    grq_status st = read_settings(root, s, err);
    p->seed = s->seed;
    if (st == GRQ_OK) st = plan_world(p, root, config, err);
    return st == GRQ_OK ? plan_variants(p, root, config, s, err) : st;
}

grq_status plan_read(const char *config_path, const char *folder, plan *p, grq_error *err)
{
    *p = (plan){ 0 };
    grq_json *document = NULL;
    run_settings s = { 0 };
    grq_status st = grq_json_open(config_path, &document, err);
    grq_json_node *root = st == GRQ_OK ? grq_json_root(document) : NULL;
    if (st == GRQ_OK) st = read_heading(root, folder, p, err);
    if (st == GRQ_OK && grq_json_find(root, "family")) st = plan_read_family(root, config_path, p, err);
    else if (st == GRQ_OK && grq_json_find(root, "grid")) st = plan_read_grid(root, config_path, p, &s, err);
    else if (st == GRQ_OK) st = read_variants(root, config_path, p, &s, err);
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
    free(p->predictions);
    free(p->report_on);
    free(p->id);
    free(p->title);
    free(p->folder);
    *p = (plan){ 0 };
}
