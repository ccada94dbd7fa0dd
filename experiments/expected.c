#include "expected.h"

#include <math.h>

#include "gaterq/json.h"
#include "tool.h"

static grq_status check_one(grq_json_node *node, results *run, table *out, size_t *n_outside, grq_error *err)
{
    const char *path, *why;
    double value, tolerance, measured = NAN;
    grq_status st = grq_json_string(node, "path", &path, err);
    if (st == GRQ_OK) st = grq_json_f64(node, "value", -INFINITY, INFINITY, &value, err);
    if (st == GRQ_OK) st = grq_json_f64(node, "abs_tol", 0, INFINITY, &tolerance, err);
    if (st == GRQ_OK) st = grq_json_string(node, "why", &why, err);
    if (st == GRQ_OK) st = grq_json_finish(node, err);
    if (st != GRQ_OK) return grq_config_status(st, err);
    const bool there = results_number(run, path, &measured, NULL) == GRQ_OK;
    const bool holds = there && fabs(measured - value) <= tolerance; /* false for NaN */
    *n_outside += !holds;
    table_row(out);
    table_cell(out, 0, "%s", path);
    table_cell(out, 1, "%.4g", value);
    table_cell(out, 2, "%.4g", tolerance);
    if (there) table_cell(out, 3, "%.4g", measured);
    else table_cell(out, 3, "missing");
    table_cell(out, 4, "%s", holds ? "within" : "OUTSIDE");
    table_cell(out, 5, "%s", why);
    return GRQ_OK;
}

static grq_status check_applies(grq_json_node *root, results *run, bool *applies, grq_error *err)
{
    grq_json_node *condition;
    const char *path;
    double value, measured;
    *applies = true;
    if (!grq_json_find(root, "only_if")) return GRQ_OK;
    grq_status st = grq_json_object(root, "only_if", &condition, err);
    if (st == GRQ_OK) st = grq_json_string(condition, "path", &path, err);
    if (st == GRQ_OK) st = grq_json_f64(condition, "value", -INFINITY, INFINITY, &value, err);
    if (st == GRQ_OK) st = grq_json_finish(condition, err);
    if (st == GRQ_OK) *applies = results_number(run, path, &measured, NULL) == GRQ_OK && measured == value;
    return grq_config_status(st, err);
}

grq_status expected_check(const char *path, results *run, table *out, size_t *n_outside, bool *applies, grq_error *err)
{
    static const char *const headings[] = { "value", "expected", "tolerance", "here", "", "why this tolerance" };
    grq_json *document = NULL;
    grq_json_node *list = NULL;
    const char *about;
    table_start(out, TOOL_COUNT(headings), headings);
    *n_outside = 0;
    grq_status st = grq_config_status(grq_json_open(path, &document, err), err);
    if (st == GRQ_OK) st = grq_config_status(grq_json_string(grq_json_root(document), "about", &about, err), err);
    if (st == GRQ_OK) st = grq_config_status(grq_json_array(grq_json_root(document), "values", &list, err), err);
    if (st == GRQ_OK) st = check_applies(grq_json_root(document), run, applies, err);
    if (st == GRQ_OK) st = grq_config_status(grq_json_finish(grq_json_root(document), err), err);
    for (size_t i = 0; st == GRQ_OK && *applies && i < grq_json_count(list); i++)
        st = check_one(grq_json_at(list, i), run, out, n_outside, err);
    grq_json_close(document);
    return st == GRQ_OK ? table_check(out, err) : st;
}
