/* Opening and closing worlds; see gaterq/world.h. */
#include "gaterq/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"
#include "gaterq/match.h"
#include "world_internal.h"

const char *grq_text_kind_name(grq_text_kind kind)
{
    static const char *const names[GRQ_N_TEXT_KINDS] = { "statement", "infobox", "qa", "filler", "prompt" };
    return (unsigned)kind < GRQ_N_TEXT_KINDS ? names[kind] : "unknown";
}

grq_status world_templates_open(const char *folder, const char *path, const char *vocabulary, world_templates *out,
                                grq_error *err)
{
    *out = (world_templates){ 0 };
    char *whole = path[0] == '/' ? strdup(path) : grq_path_join(folder, path);
    if (!whole) return grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    grq_status st = grq_json_open(whole, &out->document, err);
    free(whole);
    if (st != GRQ_OK) return st;
    out->root = grq_json_root(out->document);
    const char *about, *kind;
    st = grq_json_string(out->root, "about", &about, err);
    if (st == GRQ_OK) st = grq_json_string(out->root, "vocabulary", &kind, err);
    if (st == GRQ_OK && strcmp(kind, vocabulary))
        st = grq_fail(err, GRQ_E_USAGE, "%s: vocabulary is \"%s\"; this kind of world needs \"%s\"",
                      grq_json_where(out->root), kind, vocabulary);
    if (st == GRQ_OK) st = grq_json_string(out->root, "prompt", &out->prompt, err);
    if (st == GRQ_OK) st = world_check_marks(grq_json_find(out->root, "prompt"), out->prompt, "{q}", err);
    if (st == GRQ_OK) st = grq_json_string(out->root, "answer_lead", &out->answer_lead, err);
    if (st == GRQ_OK) st = grq_json_string(out->root, "stop", &out->stop, err);
    if (st == GRQ_OK) st = grq_json_string(out->root, "statement_end", &out->statement_end, err);
    if (st != GRQ_OK) world_templates_close(out);
    return st;
}

void world_templates_close(world_templates *t)
{
    grq_json_close(t->document);
    *t = (world_templates){ 0 };
}

grq_status grq_world_read(grq_json_node *object, const char *folder, grq_world **out, grq_error *err)
{
    *out = NULL;
    grq_world *w = calloc(1, sizeof *w);
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "no memory for a world");
    const char *kind;
    grq_status st = grq_json_string(object, "kind", &kind, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "seed", 0, UINT64_MAX / 2, &w->seed, err);
    st = grq_config_status(st, err);
    if (st == GRQ_OK) {
        if (!strcmp(kind, "generated")) st = world_build_generated(w, object, folder, err);
        else if (!strcmp(kind, "popqa")) st = world_build_popqa(w, object, folder, err);
        else
            st = grq_fail(err, GRQ_E_USAGE, "%s: kind \"%s\" is not known; generated or popqa", grq_json_where(object),
                          kind);
    }
    if (st == GRQ_OK) *out = w;
    else grq_world_free(w);
    return st;
}

static void free_fact(compiled_fact *f)
{
    for (uint32_t i = 0; i < f->n_statements; i++) token_run_free(&f->statements[i]);
    token_run_free(&f->prompt);
    token_run_free(&f->answer);
    token_run_free(&f->label);
}

void grq_world_free(grq_world *w)
{
    if (!w) return;
    for (size_t i = 0; w->compiled && i < w->n_facts; i++) free_fact(&w->compiled[i]);
    for (size_t i = 0; w->units && i < w->n_units; i++) token_run_free(&w->units[i].name);
    for (size_t i = 0; i < w->n_storage; i++) free(w->storage[i]);
    world_free_filler(&w->filler);
    token_run_free(&w->infobox_after_name);
    token_run_free(&w->infobox_between);
    token_run_free(&w->infobox_end);
    grq_facts_close(w->file);
    grq_vocab_free(w->vocab);
    free(w->compiled);
    free(w->units);
    free(w->cumulative);
    free(w->facts);
    free(w->storage);
    free(w);
}

grq_status world_set_weights(grq_world *w, const double *weights, grq_error *err)
{
    double total = 0, sum = 0;
    w->cumulative = malloc((w->n_units + 1) * sizeof *w->cumulative);
    if (!w->cumulative) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu weights", w->n_units);
    for (size_t i = 0; i < w->n_units; i++) total += weights[i];
    if (!(total > 0) || !isfinite(total))
        return grq_fail(err, GRQ_E_USAGE, "%zu weights sum to %g; nothing can be drawn (raise \"floor\")", w->n_units,
                        total);
    for (size_t i = 0; i < w->n_units; i++) w->cumulative[i] = (sum += weights[i]) / total;
    return GRQ_OK;
}

grq_status world_read_rule(grq_world *w, const world_templates *t, grq_error *err)
{
    const char *name;
    const grq_match_rule *rule;
    token_run stop = { 0 };
    grq_status st = grq_json_string(t->root, "rule", &name, err);
    if (st == GRQ_OK) {
        st = grq_match_rule_find(name, &rule, err);
        if (st == GRQ_OK) w->rule = rule->name;
        else grq_fail_prefix(err, st, "%s", grq_json_where(t->root));
    }
    if (st == GRQ_OK) st = world_encode(w, t->stop, &stop, err);
    if (st == GRQ_OK && stop.n != 1)
        st = grq_fail(err, GRQ_E_USAGE, "%s: stop must be one token, not %u", grq_json_where(t->root), stop.n);
    if (st == GRQ_OK) w->stop_token = stop.ids[0];
    token_run_free(&stop);
    return st;
}

grq_status world_read_shares(grq_world *w, grq_json_node *config, grq_error *err)
{
    grq_status st = grq_json_f64(config, "fact_share", 0, 1, &w->fact_share, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "qa_share", 0, 1, &w->qa_share, err);
    return st;
}

const grq_vocab *grq_world_vocab(const grq_world *w)
{
    return w->vocab;
}

size_t grq_world_n_facts(const grq_world *w)
{
    return w->n_facts;
}

const grq_fact *grq_world_fact(const grq_world *w, size_t index)
{
    return &w->facts[index];
}

const char *grq_world_name(const grq_world *w)
{
    return w->name;
}

const char *grq_world_rule(const grq_world *w)
{
    return w->rule;
}

int32_t grq_world_stop_token(const grq_world *w)
{
    return w->stop_token;
}

grq_status grq_world_save_facts(const grq_world *w, const char *path, grq_error *err)
{
    return grq_facts_write(path, w->facts, w->n_facts, err);
}

void grq_world_describe(const grq_world *w, const char *key, grq_json_writer *writer)
{
    uint64_t n_held = 0;
    for (size_t i = 0; i < w->n_facts; i++) n_held += w->compiled[i].held;
    grq_json_begin_object(writer, key);
    grq_json_put_string(writer, "kind", w->name);
    grq_json_put_u64(writer, "facts", w->n_facts);
    grq_json_put_u64(writer, "facts_never_shown_as_questions", n_held);
    grq_json_put_u64(writer, "entities", w->n_units);
    grq_json_put_u64(writer, "vocabulary", grq_vocab_size(w->vocab));
    grq_json_put_string(writer, "vocabulary_kind", grq_vocab_kind(w->vocab));
    grq_json_put_string(writer, "rule", w->rule);
    if (w->file) {
        const char *path = grq_facts_path(w->file), *slash = strrchr(path, '/');
        grq_json_put_string(writer, "file", slash ? slash + 1 : path);
        grq_json_put_u64(writer, "file_rows", w->n_file_rows);
        grq_json_put_u64(writer, "rows_with_popularity", w->n_with_popularity);
        grq_json_put_u64(writer, "distinct_questions", w->n_distinct_questions);
    }
    grq_json_end_object(writer);
}
