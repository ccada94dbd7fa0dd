#include "cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"
#include "tool.h"

static const char schema_name[] = "gaterq-predictions-1";

/* ---- the manifest ---- */

/* A text, or null: NULL. */
static grq_status read_or_null(grq_json_node *object, const char *key, const char **out, grq_error *err)
{
    grq_json_node *node = grq_json_find(object, key);
    *out = NULL;
    if (!node) return grq_fail(err, GRQ_E_DATA, "%s: there is no \"%s\"", grq_json_where(object), key);
    return grq_json_kind_of(node) == GRQ_JSON_NULL ? GRQ_OK : grq_json_string(object, key, out, err);
}

/* Files stay inside the folder, so that it can be moved and shared. */
static grq_status check_inside(grq_json_node *node, const char *key, const char *path, grq_error *err)
{
    if (*path && *path != '/' && strcmp(path, "..") && strncmp(path, "../", 3) && !strstr(path, "/../")) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "%s: %s \"%s\" must be a path inside the folder", grq_json_where(node), key, path);
}

static grq_status read_entry(grq_json_node *node, cell_entry *e, grq_error *err)
{
    grq_status st = grq_json_string(node, "model", &e->key.model, err);
    if (st == GRQ_OK) st = read_or_null(node, "encoder", &e->key.encoder, err);
    if (st == GRQ_OK) st = read_or_null(node, "budget", &e->key.budget, err);
    if (st == GRQ_OK) st = grq_json_string(node, "ordering", &e->key.ordering, err);
    if (st == GRQ_OK) st = grq_json_string(node, "suite", &e->key.suite, err);
    if (st == GRQ_OK) st = grq_json_string(node, "file", &e->file, err);
    if (st == GRQ_OK) st = check_inside(node, "file", e->file, err);
    if (st == GRQ_OK) st = read_or_null(node, "data", &e->data, err);
    return st == GRQ_OK ? grq_json_finish(node, err) : st;
}

static grq_status read_not_run(grq_json_node *node, cell_not_run *n, grq_error *err)
{
    static const char *const keys[] = { "model", "encoder", "budget", "ordering", "suite" };
    const char **const into[] = { &n->key.model, &n->key.encoder, &n->key.budget, &n->key.ordering, &n->key.suite };
    grq_status st = GRQ_OK;
    for (size_t k = 0; st == GRQ_OK && k < TOOL_COUNT(keys); k++)
        if (grq_json_find(node, keys[k])) st = grq_json_string(node, keys[k], into[k], err);
    if (st == GRQ_OK) st = grq_json_string(node, "reason", &n->reason, err);
    return st == GRQ_OK ? grq_json_finish(node, err) : st;
}

static grq_status read_heading(grq_json_node *root, cells *c, grq_error *err)
{
    const char *schema, *scale;
    grq_status st = grq_json_string(root, "schema", &schema, err);
    if (st == GRQ_OK && strcmp(schema, schema_name))
        st = grq_fail(err, GRQ_E_DATA, "%s: schema is \"%s\", not %s", grq_json_where(root), schema, schema_name);
    if (st == GRQ_OK) st = grq_json_string(root, "scale", &scale, err);
    if (st == GRQ_OK && strcmp(scale, "full") && strcmp(scale, "miniature"))
        st =
            grq_fail(err, GRQ_E_DATA, "%s: scale is \"%s\"; it must be full or miniature", grq_json_where(root), scale);
    if (st == GRQ_OK) c->miniature = !strcmp(scale, "miniature");
    if (st == GRQ_OK) st = grq_json_string(root, "title", &c->title, err);
    if (st == GRQ_OK) st = grq_json_string(root, "about", &c->about, err);
    if (st == GRQ_OK && grq_json_find(root, "grid")) {
        st = grq_json_string(root, "grid", &c->grid, err);
        if (st == GRQ_OK) st = check_inside(root, "grid", c->grid, err);
    }
    return st;
}

static grq_status read_manifest(grq_json_node *root, cells *c, grq_error *err)
{
    grq_json_node *entries, *not_run = NULL;
    grq_status st = read_heading(root, c, err);
    if (st == GRQ_OK) st = grq_json_array(root, "entries", &entries, err);
    if (st == GRQ_OK && grq_json_find(root, "not_run")) st = grq_json_array(root, "not_run", &not_run, err);
    if (st == GRQ_OK) st = grq_json_finish(root, err);
    if (st != GRQ_OK) return st;
    c->n = grq_json_count(entries);
    c->n_not_run = not_run ? grq_json_count(not_run) : 0;
    if (c->n > GRID_MAX_CELLS || c->n_not_run > GRID_MAX_CELLS)
        return grq_fail(err, GRQ_E_DATA, "%s: more than %d entries", grq_json_where(root), GRID_MAX_CELLS);
    c->entries = calloc(c->n + 1, sizeof *c->entries);
    c->not_run = calloc(c->n_not_run + 1, sizeof *c->not_run);
    if (!c->entries || !c->not_run) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory", grq_json_where(root));
    for (size_t i = 0; st == GRQ_OK && i < c->n; i++) st = read_entry(grq_json_at(entries, i), &c->entries[i], err);
    for (size_t i = 0; st == GRQ_OK && i < c->n_not_run; i++)
        st = read_not_run(grq_json_at(not_run, i), &c->not_run[i], err);
    return st;
}

grq_status cells_open(const char *folder, cells *out, grq_error *err)
{
    *out = (cells){ .folder = strdup(folder) };
    char *path = out->folder ? grq_path_join(folder, "predictions.json") : NULL;
    grq_status st =
        path ? grq_json_open(path, &out->document, err) : grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    if (st == GRQ_OK) st = read_manifest(grq_json_root(out->document), out, err);
    free(path);
    if (st == GRQ_E_USAGE)
        st = grq_fail(err, GRQ_E_DATA, "%s", err ? err->message : ""); /* data of a user's, no config */
    if (st != GRQ_OK) cells_close(out);
    return st;
}

void cells_close(cells *c)
{
    scored_close(&c->files);
    grq_json_close(c->document);
    free(c->entries);
    free(c->not_run);
    free(c->folder);
    *c = (cells){ 0 };
}

/* ---- against the grid ---- */

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_cell(const cell_key *a, const cell_key *b)
{
    return same(a->model, b->model) && same(a->encoder, b->encoder) && same(a->budget, b->budget) &&
           same(a->ordering, b->ordering) && same(a->suite, b->suite);
}

/* Fails unless `name` is among the n names that lie `step` bytes apart. */
static grq_status check_name(const cells *c, size_t i, const char *what, const char *name, const void *first, size_t n,
                             size_t step, grq_error *err)
{
    char known[240] = "";
    for (size_t k = 0; k < n; k++) {
        const char *const one = *(const char *const *)((const char *)first + k * step);
        if (!strcmp(one, name)) return GRQ_OK;
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", k ? ", " : "", one);
    }
    return grq_fail(err, GRQ_E_DATA, "%s/predictions.json: entries[%zu].%s \"%s\" is none of the grid's: %s", c->folder,
                    i, what, name, known);
}

#define CHECK_NAME(what, name, array, count)                                                                           \
    if (st == GRQ_OK) st = check_name(c, i, what, name, array, count, sizeof *(array), err)

static grq_status check_entry(const cells *c, size_t i, const grid *g, grq_error *err)
{
    const cell_key *const key = &c->entries[i].key;
    grq_status st = GRQ_OK;
    bool reading = false;
    for (size_t k = 0; k < g->n_readings; k++) reading |= !strcmp(g->readings[k], key->ordering);
    CHECK_NAME("model", key->model, g->models, g->n_models);
    CHECK_NAME("suite", key->suite, g->suites, g->n_suites);
    if (!reading) CHECK_NAME("ordering", key->ordering, g->orderings, g->n_orderings);
    if (st != GRQ_OK) return st;
    const bool coded = !reading || grid_is_coded(key->ordering);
    if (coded != (key->encoder != NULL) || !reading != (key->budget != NULL))
        return grq_fail(err, GRQ_E_DATA, "%s/predictions.json: entries[%zu]: \"%s\" has %s encoder and %s budget",
                        c->folder, i, key->ordering, coded ? "an" : "no", reading ? "no" : "a");
    if (key->encoder) CHECK_NAME("encoder", key->encoder, g->encoders, g->n_encoders);
    if (key->budget) CHECK_NAME("budget", key->budget, g->budgets, g->n_budgets);
    for (size_t k = 0; st == GRQ_OK && k < i; k++) {
        if (same_cell(key, &c->entries[k].key))
            st = grq_fail(err, GRQ_E_DATA, "%s/predictions.json: entries[%zu] and entries[%zu] are one cell", c->folder,
                          k, i);
        else if (!strcmp(key->suite, c->entries[k].key.suite) && !same(c->entries[i].data, c->entries[k].data))
            st = grq_fail(err, GRQ_E_DATA,
                          "%s/predictions.json: entries[%zu] and entries[%zu] of suite %s name other data: %s, %s",
                          c->folder, k, i, key->suite, c->entries[k].data ? c->entries[k].data : "null",
                          c->entries[i].data ? c->entries[i].data : "null");
    }
    return st;
}

grq_status cells_check(const cells *c, const grid *g, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < c->n; i++) st = check_entry(c, i, g, err);
    return st;
}

/* ---- files ---- */

static bool matches(const cell_key *pattern, const cell_key *key)
{
    const char *const wanted[] = { pattern->model, pattern->encoder, pattern->budget, pattern->ordering,
                                   pattern->suite };
    const char *const got[] = { key->model, key->encoder, key->budget, key->ordering, key->suite };
    for (size_t k = 0; k < TOOL_COUNT(wanted); k++)
        if (wanted[k] && !same(wanted[k], got[k])) return false;
    return true;
}

static void say_why(const cells *c, const cell_key *key, char reason[CELL_REASON_BYTES])
{
    for (size_t i = 0; i < c->n_not_run; i++)
        if (matches(&c->not_run[i].key, key)) {
            snprintf(reason, CELL_REASON_BYTES, "%s", c->not_run[i].reason);
            return;
        }
    snprintf(reason, CELL_REASON_BYTES, "predictions.json names no file for %s %s", key->suite, key->ordering);
}

grq_status cells_get(cells *c, const cell_key *key, const scored_file **out, char reason[CELL_REASON_BYTES],
                     grq_error *err)
{
    *out = NULL;
    *reason = '\0';
    const cell_entry *entry = NULL;
    for (size_t i = 0; i < c->n; i++)
        if (same_cell(&c->entries[i].key, key)) entry = &c->entries[i];
    if (!entry) return say_why(c, key, reason), GRQ_OK;
    char *path = grq_path_join(c->folder, entry->file);
    if (!path) return grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    grq_status st = GRQ_OK;
    if (!grq_file_exists(path)) snprintf(reason, CELL_REASON_BYTES, "%s is not there", entry->file);
    else st = scored_open(&c->files, path, out, err);
    if (st == GRQ_OK && *out && (*out)->suite && strcmp((*out)->suite, key->suite))
        st = grq_fail(err, GRQ_E_DATA, "%s: its items are of suite %s, in predictions.json of %s", path, (*out)->suite,
                      key->suite);
    free(path);
    return st;
}
