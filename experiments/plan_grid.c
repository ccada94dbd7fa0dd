/* The plan of a grid's run (grid.h): every miniature that can be trained, each encoder, each budget, each ordering; and
 * predictions.json, which says which file is which cell, and why the others are not run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/file.h"
#include "grid.h"
#include "plan_steps.h"

/* ---- predictions.json ---- */

/* eval names files by readers, "random#1" as random-1. */
static void put_entry(grq_json_writer *w, const char *model, const char *encoder, const char *budget,
                      const char *ordering, const char *folder, const char *reader)
{
    char file[256];
    snprintf(file, sizeof file, "%s/predictions/%s.jsonl", folder, reader);
    grq_json_begin_object(w, NULL);
    grq_json_put_string(w, "model", model);
    grq_json_put_string(w, "encoder", encoder);
    grq_json_put_string(w, "budget", budget);
    grq_json_put_string(w, "ordering", ordering);
    grq_json_put_string(w, "suite", "popqa");
    grq_json_put_string(w, "file", file);
    grq_json_put_string(w, "data", "facts.tsv");
    grq_json_end_object(w);
}

static bool is_random(const char *ordering)
{
    return !strcmp(ordering, "random");
}

static void put_model(grq_json_writer *w, const grid *g, const char *model)
{
    char folder[160];
    snprintf(folder, sizeof folder, "%s/tables", model);
    for (size_t r = 0; r < g->n_readings; r++)
        if (!grid_is_coded(g->readings[r])) put_entry(w, model, NULL, NULL, g->readings[r], folder, g->readings[r]);
    for (size_t e = 0; e < g->n_encoders; e++) {
        const char *const encoder = g->encoders[e].name;
        snprintf(folder, sizeof folder, "%s/%s/stages", model, encoder);
        for (size_t r = 0; r < g->n_readings; r++)
            if (grid_is_coded(g->readings[r]))
                put_entry(w, model, encoder, NULL, g->readings[r], folder, g->readings[r]);
        for (size_t b = 0; b < g->n_budgets; b++)
            for (size_t o = 0; o < g->n_orderings; o++) {
                snprintf(folder, sizeof folder, "%s/%s/%s", model, encoder, g->budgets[b].name);
                put_entry(w, model, encoder, g->budgets[b].name, g->orderings[o], folder,
                          is_random(g->orderings[o]) ? "random-1" : g->orderings[o]);
            }
    }
}

static void put_not_run(grq_json_writer *w, const char *key, const char *name, const char *reason)
{
    grq_json_begin_object(w, NULL);
    grq_json_put_string(w, key, name);
    grq_json_put_string(w, "reason", reason);
    grq_json_end_object(w);
}

static grq_status write_manifest(plan *p, const grid *g, const char *about, grq_error *err)
{
    grq_json_writer *w = grq_json_writer_new();
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "no memory for predictions.json");
    grq_json_begin_object(w, NULL);
    grq_json_put_string(w, "schema", "gaterq-predictions-1");
    grq_json_put_string(w, "scale", "miniature");
    grq_json_put_string(w, "title", p->title);
    grq_json_put_string(w, "about", about);
    grq_json_put_string(w, "grid", "config.json");
    grq_json_begin_array(w, "entries");
    for (size_t m = 0; m < g->n_models; m++)
        if (!g->models[m].not_run) put_model(w, g, g->models[m].name);
    grq_json_end_array(w);
    grq_json_begin_array(w, "not_run");
    for (size_t m = 0; m < g->n_models; m++)
        if (g->models[m].not_run) put_not_run(w, "model", g->models[m].name, g->models[m].not_run);
    for (size_t s = 0; s < g->n_suites; s++)
        if (g->suites[s].not_run) put_not_run(w, "suite", g->suites[s].name, g->suites[s].not_run);
    grq_json_end_array(w);
    grq_json_end_object(w);
    const char *text;
    const grq_status st = grq_json_writer_text(w, false, &text, err);
    if (st == GRQ_OK) p->predictions = plan_text("%s\n", text);
    grq_json_writer_free(w);
    if (st == GRQ_OK && !p->predictions) return grq_fail(err, GRQ_E_NOMEM, "no memory for predictions.json");
    return st;
}

/* ---- steps ---- */

/* The readers of `names` that need codes, or those that do not; "random" is its first draw. */
static char *join_readers(const char *const *names, size_t n, bool readings, bool coded)
{
    char list[512] = "";
    for (size_t i = 0; i < n; i++) {
        if (readings && grid_is_coded(names[i]) != coded) continue;
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s%s", used ? "," : "", names[i],
                 !readings && is_random(names[i]) ? "#1" : "");
    }
    return *list ? strdup(list) : NULL;
}

/* The tables themselves, without codes. */
static grq_status plan_tables(plan *p, const char *config, const run_settings *s, const char *v, const char *readers,
                              grq_error *err)
{
    const char *f = p->folder;
    return PLAN_STEP(
        p, plan_text("%s/tables: ask questions", v), cmd_eval, plan_text("%s/%s/tables/accuracy.json", f, v),
        plan_text("%s/%s/tables/predictions", f, v), err, plan_word("eval"), plan_word("--model"),
        plan_text("%s/%s/model.safetensors", f, v), plan_word("--config"), plan_word(config), plan_word("--readers"),
        plan_word(readers), plan_word("--questions"), plan_number(s->n_questions), plan_word("--max-new"),
        plan_number(s->max_new), plan_word("--bootstrap"), plan_number(s->n_resamples), plan_word("--seed"),
        plan_number(s->seed), plan_word("--out"), plan_text("%s/%s/tables/predictions", f, v));
}

static grq_status plan_encoder(plan *p, const char *config, run_settings *s, const grid *g, const char *v, size_t e,
                               const char *depths, const char *orderings, grq_error *err)
{
    char at[100], into[160];
    snprintf(at, sizeof at, "%s/%s", v, g->encoders[e].name);
    s->encoder = g->encoders[e].miniature;
    grq_status st = plan_codes(p, config, s, v, at, err);
    if (st == GRQ_OK && depths) {
        snprintf(into, sizeof into, "%s/stages", at);
        s->readers = depths;
        s->budget = g->budgets[0].fractions; /* depths do not use it */
        st = plan_ask(p, config, s, v, at, into, err);
    }
    for (size_t b = 0; st == GRQ_OK && b < g->n_budgets; b++) {
        snprintf(into, sizeof into, "%s/%s", at, g->budgets[b].name);
        s->readers = orderings;
        s->budget = g->budgets[b].fractions;
        st = plan_ask(p, config, s, v, at, into, err);
    }
    return st;
}

static grq_status plan_model(plan *p, const char *config, run_settings *s, const grid *g, const grid_model *model,
                             grq_error *err)
{
    char *tables = join_readers(g->readings, g->n_readings, true, false);
    char *depths = join_readers(g->readings, g->n_readings, true, true);
    char *orderings = join_readers(g->orderings, g->n_orderings, false, true);
    grq_status st = orderings ? plan_train(p, config, s, model->name, model->gate_cost, err)
                              : grq_fail(err, GRQ_E_NOMEM, "no memory for the plan of a run");
    if (st == GRQ_OK && tables) st = plan_tables(p, config, s, model->name, tables, err);
    for (size_t e = 0; st == GRQ_OK && e < g->n_encoders; e++)
        st = plan_encoder(p, config, s, g, model->name, e, depths, orderings, err);
    free(tables);
    free(depths);
    free(orderings);
    return st;
}

/* ---- configs ---- */

static grq_status read_settings(grq_json_node *root, run_settings *s, grq_error *err)
{
    grq_json_node *codes, *evaluate;
    grq_status st = grq_json_u64(root, "seed", 0, UINT64_MAX / 2, &s->seed, err);
    if (st == GRQ_OK) st = grq_json_u64(root, "bootstrap", 0, 1000000, &s->n_resamples, err);
    if (st == GRQ_OK) st = grq_json_object(root, "codes", &codes, err);
    if (st == GRQ_OK) st = grq_json_u64(codes, "stages", 3, 3, &s->n_stages, err); /* depth3, and nested budgets */
    if (st == GRQ_OK) st = grq_json_finish(codes, err);
    if (st == GRQ_OK) st = plan_read_counting(root, s, err);
    if (st == GRQ_OK) st = grq_json_object(root, "evaluate", &evaluate, err);
    if (st == GRQ_OK) st = grq_json_u64(evaluate, "questions", 0, 1000000000, &s->n_questions, err);
    if (st == GRQ_OK) st = grq_json_u64(evaluate, "max_new", 1, 1024, &s->max_new, err);
    if (st == GRQ_OK) st = grq_json_finish(evaluate, err);
    return st == GRQ_OK ? plan_read_layers(root, s, err) : st;
}

grq_status plan_read_grid(grq_json_node *root, const char *config, plan *p, run_settings *s, grq_error *err)
{
    grid g;
    const char *about = "";
    grq_status st = grid_read(root, true, &g, err);
    if (st == GRQ_OK) st = read_settings(root, s, err);
    p->seed = s->seed;
    if (st == GRQ_OK) st = grq_json_string(root, "about", &about, err);
    if (st == GRQ_OK) st = plan_world(p, root, config, err);
    for (size_t m = 0; st == GRQ_OK && m < g.n_models; m++)
        if (!g.models[m].not_run) st = plan_model(p, config, s, &g, &g.models[m], err);
    return st == GRQ_OK ? write_manifest(p, &g, about, err) : st;
}

grq_status plan_read_family(grq_json_node *root, const char *config, plan *p, grq_error *err)
{
    grid_family f;
    grq_status st = grid_family_read(root, &f, err);
    if (st != GRQ_OK) return st;
    p->seed = f.seed;
    /* The run of table-accuracy.json is results/table-accuracy. */
    const size_t length = strlen(f.grid_path);
    if (length < 6 || strcmp(f.grid_path + length - 5, ".json") || strchr(f.grid_path, '/'))
        return grq_fail(err, GRQ_E_USAGE, "%s: table \"%s\" must be the name of a config beside it", config,
                        f.grid_path);
    p->report_on = plan_text("results/%.*s", (int)(length - 5), f.grid_path);
    if (!p->report_on) return grq_fail(err, GRQ_E_NOMEM, "no memory for the plan of a run");
    char *manifest = grq_path_join(p->report_on, "predictions.json");
    if (!manifest) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    else if (!grq_file_exists(manifest))
        st = grq_fail(err, GRQ_E_IO, "%s is not there: gaterq run experiments/configs/%s makes it", manifest,
                      f.grid_path);
    free(manifest);
    return st;
}
