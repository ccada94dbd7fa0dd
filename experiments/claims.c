#include "claims.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(char *to, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void append(char *to, size_t room, const char *format, ...)
{
    const size_t used = strlen(to);
    va_list args;
    va_start(args, format);
    vsnprintf(to + used, room - used, format, args);
    va_end(args);
}

/* ---- what is shown ---- */

/* With so many digits; what would round to zero keeps its size ("3e-08"). */
static void append_number(claim *c, double value, int digits)
{
    const bool vanishes = value != 0 && fabs(value) < 0.5 * pow(10, -digits);
    if (vanishes) append(c->ours, sizeof c->ours, "%.0e", value);
    else append(c->ours, sizeof c->ours, "%.*f", digits, value);
}

/* {"label", "path", "unit": "%" | "points" | "", "digits"}: one value, or the range of several. */
static grq_status show_value(grq_json_node *node, results *run, claim *c, grq_error *err)
{
    const char *label, *path, *unit;
    uint64_t digits;
    grq_status st = grq_json_string(node, "label", &label, err);
    if (st == GRQ_OK) st = grq_json_string(node, "path", &path, err);
    if (st == GRQ_OK) st = grq_json_string(node, "unit", &unit, err);
    if (st == GRQ_OK) st = grq_json_u64(node, "digits", 0, 9, &digits, err);
    if (st == GRQ_OK) st = grq_json_finish(node, err);
    if (st != GRQ_OK) return st;
    double values[RESULTS_MAX];
    size_t n;
    if (results_numbers(run, path, values, &n, err) != GRQ_OK) return GRQ_E_DATA;
    double low = values[0], high = values[0];
    for (size_t i = 1; i < n; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    const double scale = *unit ? 100 : 1;
    append(c->ours, sizeof c->ours, "%s%s ", *c->ours ? ", " : "", label);
    append_number(c, scale * low, (int)digits);
    if (n > 1) {
        append(c->ours, sizeof c->ours, " to ");
        append_number(c, scale * high, (int)digits);
    }
    if (*unit) append(c->ours, sizeof c->ours, " %s", unit);
    return GRQ_OK;
}

/* ---- what decides ---- */

typedef struct {
    const char *left, *op, *right_path;
    double right;
} condition;

static grq_status read_condition(grq_json_node *node, condition *c, grq_error *err)
{
    grq_status st = grq_json_string(node, "left", &c->left, err);
    if (st == GRQ_OK) st = grq_json_string(node, "op", &c->op, err);
    if (st != GRQ_OK) return st;
    if (strcmp(c->op, "<") && strcmp(c->op, ">"))
        return grq_fail(err, GRQ_E_USAGE, "%s: op is \"<\" or \">\", not \"%s\"", grq_json_where(node), c->op);
    grq_json_node *right = grq_json_find(node, "right");
    c->right_path = NULL;
    if (right && grq_json_kind_of(right) == GRQ_JSON_STRING) st = grq_json_string(node, "right", &c->right_path, err);
    else st = grq_json_f64(node, "right", -INFINITY, INFINITY, &c->right, err);
    return st == GRQ_OK ? grq_json_finish(node, err) : st;
}

/* A NaN (undefined) never satisfies a condition. */
static grq_status test_condition(condition *c, results *run, bool *holds, char *reason, size_t room, grq_error *err)
{
    double values[RESULTS_MAX];
    size_t n;
    grq_status st = results_numbers(run, c->left, values, &n, err);
    if (st == GRQ_OK && c->right_path) st = results_number(run, c->right_path, &c->right, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < n; i++) {
        const bool ok = *c->op == '<' ? values[i] < c->right : values[i] > c->right;
        if (ok) continue;
        *holds = false;
        snprintf(reason, room, "%s is %.4g, not %s %.4g%s%s", c->left, values[i], c->op, c->right,
                 c->right_path ? " = " : "", c->right_path ? c->right_path : "");
        return GRQ_OK;
    }
    *holds = true;
    return GRQ_OK;
}

static grq_status judge_conditions(grq_json_node *list, results *run, claim *c, grq_error *err)
{
    c->verdict = "REPRODUCED";
    for (size_t i = 0; i < grq_json_count(list); i++) {
        condition one;
        bool holds;
        grq_status st = read_condition(grq_json_at(list, i), &one, err);
        if (st == GRQ_OK) st = test_condition(&one, run, &holds, c->reason, sizeof c->reason, err);
        if (st != GRQ_OK) return st;
        if (!holds) {
            c->verdict = "NOT REPRODUCED";
            return GRQ_OK;
        }
    }
    return GRQ_OK;
}

static grq_status judge_measured(grq_json_node *node, results *run, claim *c, grq_error *err)
{
    grq_json_node *values, *conditions;
    grq_status st = grq_json_string(node, "criterion", &c->criterion, err);
    if (st == GRQ_OK) st = grq_json_array(node, "values", &values, err);
    if (st == GRQ_OK) st = grq_json_array(node, "conditions", &conditions, err);
    if (st == GRQ_OK && !grq_json_count(conditions))
        st = grq_fail(err, GRQ_E_USAGE, "%s: a claim that is measured needs a condition", grq_json_where(node));
    if (st != GRQ_OK) return st;
    grq_error missing = { .status = GRQ_OK };
    for (size_t i = 0; st == GRQ_OK && i < grq_json_count(values); i++)
        st = show_value(grq_json_at(values, i), run, c, &missing);
    if (st == GRQ_OK) st = judge_conditions(conditions, run, c, &missing);
    if (st == GRQ_E_USAGE) return grq_fail(err, st, "%s", missing.message); /* claims.json itself is wrong */
    if (st != GRQ_OK) {
        c->verdict = "NOT RUN";
        snprintf(c->reason, sizeof c->reason, "%.500s", missing.message);
    }
    return GRQ_OK;
}

static grq_status judge(grq_json_node *node, results *run, claim *c, grq_error *err)
{
    *c = (claim){ .criterion = "" };
    const char *why;
    grq_status st = grq_json_string(node, "id", &c->id, err);
    if (st == GRQ_OK) st = grq_json_string(node, "statement", &c->statement, err);
    if (st == GRQ_OK) st = grq_json_string(node, "paper", &c->paper, err);
    if (st != GRQ_OK) return st;
    if (grq_json_find(node, "not_run")) {
        st = grq_json_string(node, "not_run", &why, err);
        if (st != GRQ_OK) return st;
        c->verdict = "NOT RUN";
        snprintf(c->reason, sizeof c->reason, "%.500s", why);
    } else {
        st = judge_measured(node, run, c, err);
    }
    return st == GRQ_OK ? grq_json_finish(node, err) : st;
}

grq_status claims_judge(const char *path, results *run, claims *out, grq_error *err)
{
    *out = (claims){ 0 };
    grq_json_node *list = NULL;
    const char *about;
    grq_status st = grq_json_open(path, &out->document, err);
    if (st == GRQ_OK) st = grq_json_string(grq_json_root(out->document), "about", &about, err);
    if (st == GRQ_OK) st = grq_json_array(grq_json_root(out->document), "claims", &list, err);
    if (st == GRQ_OK) st = grq_json_finish(grq_json_root(out->document), err);
    if (st == GRQ_OK) {
        out->n = grq_json_count(list);
        out->items = calloc(out->n + 1, sizeof *out->items);
        if (!out->items) st = grq_fail(err, GRQ_E_NOMEM, "no memory for %zu claims", out->n);
    }
    for (size_t i = 0; st == GRQ_OK && i < out->n; i++) st = judge(grq_json_at(list, i), run, &out->items[i], err);
    if (st != GRQ_OK) claims_free(out);
    return st;
}

void claims_free(claims *c)
{
    free(c->items);
    grq_json_close(c->document);
    *c = (claims){ 0 };
}
