/* One line of our own layout, and what all lines of a file share. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qa/predictions_internal.h"

grq_status grq_no_memory_for_predictions(const char *path, grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its predictions", path);
}

grq_status grq_read_prediction_id(grq_json_node *object, const char *key, char **out, grq_error *err)
{
    grq_json_node *const node = grq_json_find(object, key);
    if (!node) return grq_fail(err, GRQ_E_DATA, "%s: there is no \"%s\"", grq_json_where(object), key);
    if (grq_json_kind_of(node) == GRQ_JSON_STRING) {
        const char *text;
        const grq_status st = grq_json_as_string(node, &text, err);
        if (st != GRQ_OK) return st;
        *out = strdup(text);
    } else {
        int64_t number;
        const grq_status st = grq_json_as_i64(node, INT64_MIN, INT64_MAX, &number, err);
        if (st != GRQ_OK) return st;
        if (asprintf(out, "%" PRId64, number) < 0) *out = NULL;
    }
    return *out ? GRQ_OK : grq_no_memory_for_predictions(grq_json_where(object), err);
}

static grq_status read_optional_text(grq_json_node *object, const char *key, char **out, grq_error *err)
{
    const char *text;
    if (!grq_json_find(object, key)) return GRQ_OK;
    const grq_status st = grq_json_string(object, key, &text, err);
    if (st != GRQ_OK) return st;
    *out = strdup(text);
    return *out ? GRQ_OK : grq_no_memory_for_predictions(grq_json_where(object), err);
}

static grq_status read_loglikelihoods(grq_json_node *object, grq_prediction *out, grq_error *err)
{
    grq_json_node *list;
    if (!grq_json_find(object, "loglikelihoods")) return GRQ_OK;
    grq_status st = grq_json_array(object, "loglikelihoods", &list, err);
    if (st != GRQ_OK) return st;
    const size_t n = grq_json_count(list);
    out->loglikelihoods = calloc(n + 1, sizeof *out->loglikelihoods);
    if (!out->loglikelihoods) return grq_no_memory_for_predictions(grq_json_where(object), err);
    out->n_loglikelihoods = n;
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        grq_json_node *const value = grq_json_at(list, i);
        if (grq_json_kind_of(value) == GRQ_JSON_NULL) out->loglikelihoods[i] = NAN; /* JSON has no NaN */
        else st = grq_json_as_f64(value, -INFINITY, INFINITY, &out->loglikelihoods[i], err);
    }
    return st;
}

grq_status grq_read_own_prediction(grq_json_node *root, grq_prediction *out, grq_error *err)
{
    grq_status st = grq_read_prediction_id(root, "id", &out->id, err);
    if (st == GRQ_OK) st = read_optional_text(root, "suite", &out->suite, err);
    if (st == GRQ_OK) st = read_optional_text(root, "prompt_sha256", &out->prompt_sha256, err);
    if (st == GRQ_OK) st = read_optional_text(root, "output", &out->output, err);
    if (st == GRQ_OK) st = read_loglikelihoods(root, out, err);
    if (st == GRQ_OK && grq_json_find(root, "correct")) {
        bool correct = false;
        st = grq_json_bool(root, "correct", &correct, err);
        out->correct = correct;
    }
    return st;
}

/* ---- what all lines share ---- */

static void put_node(grq_json_writer *w, const char *key, grq_json_node *node)
{
    const grq_json_kind kind = grq_json_kind_of(node);
    const char *text = NULL;
    double number = NAN;
    switch (kind) {
    case GRQ_JSON_OBJECT:
    case GRQ_JSON_ARRAY:
        if (kind == GRQ_JSON_OBJECT) grq_json_begin_object(w, key);
        else grq_json_begin_array(w, key);
        for (size_t i = 0; i < grq_json_count(node); i++)
            put_node(w, kind == GRQ_JSON_OBJECT ? grq_json_key_at(node, i) : NULL, grq_json_at(node, i));
        if (kind == GRQ_JSON_OBJECT) grq_json_end_object(w);
        else grq_json_end_array(w);
        break;
    case GRQ_JSON_STRING:
        if (grq_json_as_string(node, &text, NULL) == GRQ_OK) grq_json_put_string(w, key, text);
        break;
    case GRQ_JSON_NUMBER:
        if (grq_json_as_f64(node, -INFINITY, INFINITY, &number, NULL) == GRQ_OK) grq_json_put_f64(w, key, number);
        break;
    case GRQ_JSON_BOOL: grq_json_put_bool(w, key, grq_json_is_true(node)); break;
    case GRQ_JSON_NULL: grq_json_put_null(w, key); break;
    }
}

/* The value of a key as compact text, in the file's order of keys. */
static grq_status node_text(grq_json_node *node, char **out, grq_error *err)
{
    grq_json_writer *const w = grq_json_writer_new();
    const char *text = NULL;
    if (!w) return grq_no_memory_for_predictions(grq_json_where(node), err);
    put_node(w, NULL, node);
    grq_status st = grq_json_writer_text(w, true, &text, err);
    *out = st == GRQ_OK ? strdup(text) : NULL;
    if (st == GRQ_OK && !*out) st = grq_no_memory_for_predictions(grq_json_where(node), err);
    grq_json_writer_free(w);
    return st;
}

/* The first line that has the key sets *all; a line that says otherwise is of another run. Takes `text`. */
static grq_status check_same(grq_json_node *root, const char *key, char *text, char **all, grq_error *err)
{
    grq_status st = GRQ_OK;
    if (!*all) {
        *all = text;
        return GRQ_OK;
    }
    if (strcmp(text, *all) != 0)
        st = grq_fail(err, GRQ_E_DATA, "%s: \"%s\" is %.120s, and %.120s before: lines of two runs",
                      grq_json_where(root), key, text, *all);
    free(text);
    return st;
}

grq_status grq_check_prediction_run(grq_json_node *root, char **all, grq_error *err)
{
    char *text;
    if (!grq_json_find(root, "run")) return GRQ_OK;
    const grq_status st = grq_read_prediction_id(root, "run", &text, err);
    return st == GRQ_OK ? check_same(root, "run", text, all, err) : st;
}

grq_status grq_check_prediction_settings(grq_json_node *root, const char *key, char **all, grq_error *err)
{
    char *text;
    grq_json_node *const node = grq_json_find(root, key);
    if (!node) return GRQ_OK;
    const grq_status st = node_text(node, &text, err);
    return st == GRQ_OK ? check_same(root, key, text, all, err) : st;
}
