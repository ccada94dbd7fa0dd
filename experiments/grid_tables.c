#include "grid_tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* ---- accuracy ---- */

/* Columns before the suites' two each; after them macro accuracies and reasons. */
enum { ROW_COLUMNS = 4 };

typedef struct {
    const grid *g;
    cells *c;
    table *out;
    size_t n_run, n_cells;
    char reasons[GRID_MOST][CELL_REASON_BYTES]; /* of the row, by suite; "" where there is none */
} accuracy_state;

/* "TriviaQA, CMMLU: not asked; PopQA: file x is not there": suites with the same reason together. */
static void put_reasons(const accuracy_state *s)
{
    char text[2048] = "";
    for (size_t i = 0; i < s->g->n_suites; i++) {
        bool said = !s->reasons[i][0];
        for (size_t k = 0; k < i; k++) said |= !strcmp(s->reasons[k], s->reasons[i]);
        if (said) continue;
        for (size_t k = i; k < s->g->n_suites; k++) {
            const size_t used = strlen(text);
            const char *const sep = k > i ? ", " : used ? "; " : "";
            if (!strcmp(s->reasons[k], s->reasons[i]))
                snprintf(text + used, sizeof text - used, "%s%s", sep, s->g->suites[k].title);
        }
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, ": %s", s->reasons[i]);
    }
    table_cell(s->out, ROW_COLUMNS + 2 * s->g->n_suites + 1, "%s", text);
}

/* Mean over CMMLU's subjects of their accuracies; NaN where ids have no subject. */
static double macro_accuracy(const scored_file *f)
{
    double sum = 0, n = 0, right = 0;
    size_t n_subjects = 0;
    for (size_t i = 0; i < f->n; i++) {
        const char *slash = strchr(f->ids[i], '/');
        if (!slash) return NAN;
        n++;
        right += f->correct[i];
        const size_t length = (size_t)(slash - f->ids[i]) + 1; /* ids are sorted: a subject is one stretch */
        if (i + 1 < f->n && !strncmp(f->ids[i], f->ids[i + 1], length)) continue;
        sum += right / n;
        n_subjects++;
        n = right = 0;
    }
    return sum / (double)n_subjects;
}

static grq_status accuracy_cell(accuracy_state *s, cell_key *key, size_t suite, grq_error *err)
{
    const grid_suite *const in = &s->g->suites[suite];
    const size_t column = ROW_COLUMNS + 2 * suite, macro_column = ROW_COLUMNS + 2 * s->g->n_suites;
    const scored_file *file;
    char *const reason = s->reasons[suite];
    key->suite = in->name;
    const grq_status st = cells_get(s->c, key, &file, reason, err);
    if (st != GRQ_OK) return st;
    s->n_cells++;
    if (!file) {
        table_cell(s->out, column, "NOT RUN");
        return GRQ_OK;
    }
    s->n_run++;
    const grq_interval wilson = grq_wilson(file->n_correct, file->n);
    table_cell(s->out, column, "%.2f", 100 * wilson.value);
    table_cell(s->out, column + 1, "%.2f to %.2f", 100 * wilson.low, 100 * wilson.high);
    if (!s->c->miniature && file->n != in->n_items)
        snprintf(reason, CELL_REASON_BYTES, "%zu of %" PRIu64 " items", file->n, in->n_items);
    if (!strcmp(in->name, "cmmlu") && !isnan(macro_accuracy(file)))
        table_cell(s->out, macro_column, "%.2f", 100 * macro_accuracy(file));
    return GRQ_OK;
}

static grq_status accuracy_row(accuracy_state *s, const grid_model *model, const grid_encoder *encoder,
                               const grid_budget *budget, const char *ordering, double bits, grq_error *err)
{
    cell_key key = { .model = model->name,
                     .encoder = encoder ? encoder->name : NULL,
                     .budget = budget ? budget->name : NULL,
                     .ordering = ordering };
    table_row(s->out);
    table_cell(s->out, 0, "%s", model->title);
    table_cell(s->out, 1, "%s", encoder ? encoder->title : "none");
    if (budget) table_cell(s->out, 2, "%s, %s", ordering, budget->title);
    else table_cell(s->out, 2, "%s", ordering);
    if (!isnan(bits)) table_cell(s->out, 3, "%.3f", bits);
    grq_status st = GRQ_OK;
    for (size_t k = 0; st == GRQ_OK && k < s->g->n_suites; k++) st = accuracy_cell(s, &key, k, err);
    put_reasons(s);
    return st;
}

static grq_status encoder_rows(accuracy_state *s, const grid_model *model, const grid_encoder *encoder, grq_error *err)
{
    const grid *const g = s->g;
    grq_status st = GRQ_OK;
    for (size_t r = 0; st == GRQ_OK && r < g->n_readings; r++) {
        if (!grid_is_coded(g->readings[r])) continue;
        grq_budget all = { .n_fractions = (uint32_t)(g->readings[r][5] - '1'), .fraction = { 1, 1 } };
        st = accuracy_row(s, model, encoder, NULL, g->readings[r], grq_budget_bits(&all, model->row_dim), err);
    }
    for (size_t b = 0; st == GRQ_OK && b < g->n_budgets; b++)
        for (size_t o = 0; st == GRQ_OK && o < g->n_orderings; o++)
            st = accuracy_row(s, model, encoder, &g->budgets[b], g->orderings[o],
                              grq_budget_bits(&g->budgets[b].budget, model->row_dim), err);
    return st;
}

grq_status grid_accuracy_table(const grid *g, cells *c, grid_headings *headings, table *out, size_t *n_run,
                               size_t *n_cells, grq_error *err)
{
    static const char *const first[ROW_COLUMNS] = { "model", "encoder", "what is read", "bits per value" };
    const char *names[TABLE_MAX_COLUMNS];
    const size_t n_columns = ROW_COLUMNS + 2 * g->n_suites + 2;
    for (size_t k = 0; k < n_columns; k++) names[k] = headings->text[k];
    for (size_t k = 0; k < ROW_COLUMNS; k++) snprintf(headings->text[k], sizeof *headings->text, "%s", first[k]);
    for (size_t k = 0; k < g->n_suites; k++) {
        snprintf(headings->text[ROW_COLUMNS + 2 * k], sizeof *headings->text, "%.40s %%", g->suites[k].title);
        snprintf(headings->text[ROW_COLUMNS + 2 * k + 1], sizeof *headings->text, "%.40s, 95 %%", g->suites[k].title);
    }
    snprintf(headings->text[n_columns - 2], sizeof *headings->text, "CMMLU macro %%");
    snprintf(headings->text[n_columns - 1], sizeof *headings->text, "not run, or in part");
    table_start(out, n_columns, names);
    accuracy_state s = { .g = g, .c = c, .out = out };
    grq_status st = GRQ_OK;
    for (size_t m = 0; st == GRQ_OK && m < g->n_models; m++) {
        for (size_t r = 0; st == GRQ_OK && r < g->n_readings; r++)
            if (!grid_is_coded(g->readings[r]))
                st = accuracy_row(&s, &g->models[m], NULL, NULL, g->readings[r], NAN, err);
        for (size_t e = 0; st == GRQ_OK && e < g->n_encoders; e++)
            st = encoder_rows(&s, &g->models[m], &g->encoders[e], err);
    }
    *n_run = s.n_run;
    *n_cells = s.n_cells;
    return st == GRQ_OK ? table_check(out, err) : st;
}

/* ---- comparisons ---- */

static grq_status compare_cell(const grid_family *f, cells *c, grid_comparison *one, grq_error *err)
{
    cell_key key = { one->model->name, one->encoder->name, one->budget->name, f->of, one->suite->name };
    const scored_file *a, *b = NULL;
    grq_status st = cells_get(c, &key, &a, one->reason, err);
    key.ordering = one->against;
    if (st == GRQ_OK && a) st = cells_get(c, &key, &b, one->reason, err);
    if (st != GRQ_OK || !a || !b) return st;
    one->run = true;
    if (!c->miniature && a->n != one->suite->n_items)
        snprintf(one->reason, sizeof one->reason, "%zu of %" PRIu64 " items", a->n, one->suite->n_items);
    return scored_compare(a, b, (uint32_t)f->n_resamples, f->seed, &one->result, err);
}

static void judge(const grid_family *f, grid_comparison *one)
{
    const grq_paired *const p = &one->result.paired;
    one->verdict = !one->run ? "NOT RUN" : p->difference > 0 && one->holm < f->alpha ? "REPRODUCED" : "NOT REPRODUCED";
    if (!one->run || !strcmp(one->verdict, "REPRODUCED")) return;
    const size_t used = strlen(one->reason);
    const char *const sep = used ? "; " : "";
    if (p->difference <= 0) snprintf(one->reason + used, sizeof one->reason - used, "%s%s is not ahead", sep, f->of);
    else snprintf(one->reason + used, sizeof one->reason - used, "%sHolm p is %.2g", sep, one->holm);
}

/* The family was fixed before any run: a comparison that was not run keeps its place in it, with p = 1. */
static grq_status correct_family(const grid_family *f, grid_comparison *items, size_t n, grq_error *err)
{
    double *p = malloc(3 * (n + 1) * sizeof *p);
    if (!p) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu comparisons", n);
    for (size_t i = 0; i < n; i++) p[i] = items[i].run ? items[i].result.paired.p_mid : 1;
    grq_status st = grq_holm(p, n, p + n, err);
    if (st == GRQ_OK) st = grq_benjamini_hochberg(p, n, p + 2 * n, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        items[i].holm = p[n + i];
        items[i].bh = p[2 * n + i];
        judge(f, &items[i]);
    }
    free(p);
    return st;
}

static grid_comparison *list_comparisons(const grid *g, const grid_family *f, size_t *n)
{
    grid_comparison *items =
        calloc(g->n_suites * g->n_models * g->n_encoders * g->n_budgets * f->n_against + 1, sizeof *items);
    *n = 0;
    for (size_t s = 0; items && s < g->n_suites; s++)
        for (size_t m = 0; m < g->n_models; m++)
            for (size_t e = 0; e < g->n_encoders; e++)
                for (size_t b = 0; b < g->n_budgets; b++)
                    for (size_t k = 0; k < f->n_against; k++)
                        items[(*n)++] = (grid_comparison){ .model = &g->models[m],
                                                           .encoder = &g->encoders[e],
                                                           .budget = &g->budgets[b],
                                                           .suite = &g->suites[s],
                                                           .of = f->of,
                                                           .against = f->against[k] };
    return items;
}

grq_status grid_compare(const grid *g, const grid_family *f, cells *c, const grq_progress *progress,
                        grid_comparisons *out, grq_error *err)
{
    *out = (grid_comparisons){ 0 };
    out->items = list_comparisons(g, f, &out->n);
    if (!out->items) return grq_fail(err, GRQ_E_NOMEM, "no memory for the family of comparisons");
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < out->n; i++) {
        st = compare_cell(f, c, &out->items[i], err);
        if (st == GRQ_OK) st = grq_progress_step(progress, "compare", i + 1, out->n, "comparisons", NULL, err);
    }
    const size_t per_suite = out->n / g->n_suites;
    for (size_t s = 0; st == GRQ_OK && s < g->n_suites; s++)
        st = correct_family(f, out->items + s * per_suite, per_suite, err);
    for (size_t i = 0; st == GRQ_OK && i < out->n; i++) {
        out->n_run += out->items[i].run;
        out->n_reproduced += !strcmp(out->items[i].verdict, "REPRODUCED");
    }
    if (st != GRQ_OK) grid_comparisons_free(out);
    return st;
}

void grid_comparisons_free(grid_comparisons *c)
{
    free(c->items);
    *c = (grid_comparisons){ 0 };
}

static void put_result(table *t, const grid_comparison *one)
{
    const grq_paired *const p = &one->result.paired;
    table_cell(t, 5, "%" PRIu64, p->n);
    table_cell(t, 6, "%" PRIu64 " / %" PRIu64, p->only_a, p->only_b);
    table_cell(t, 7, "%+.2f", 100 * p->difference);
    if (!isnan(p->mid_low)) table_cell(t, 8, "%+.2f to %+.2f", 100 * p->mid_low, 100 * p->mid_high);
    if (!isnan(p->bca_low)) table_cell(t, 9, "%+.2f to %+.2f", 100 * p->bca_low, 100 * p->bca_high);
    if (p->p_mid > 1e-300) table_cell(t, 10, "%.2g", p->p_mid);
    else table_cell(t, 10, "10^%.0f", grq_mcnemar_log_mid_p(p->only_a, p->only_b) / M_LN10);
    table_cell(t, 11, "%.2g", p->p_exact);
    table_cell(t, 12, "%.2g", one->holm);
    table_cell(t, 13, "%.2g", one->bh);
    if (!isnan(p->detectable)) table_cell(t, 14, "%.2f", 100 * p->detectable);
    if (one->result.has_macro)
        table_cell(t, 15, "%+.2f (%+.2f to %+.2f)", 100 * one->result.macro.difference, 100 * one->result.macro.bca_low,
                   100 * one->result.macro.bca_high);
}

grq_status grid_comparison_table(const grid_comparisons *c, table *out, grq_error *err)
{
    static const char *const headings[] = { "suite",
                                            "model",
                                            "encoder",
                                            "budget",
                                            "comparison",
                                            "items",
                                            "right only first / only second",
                                            "difference, points",
                                            "95 %, mid-p",
                                            "95 %, BCa",
                                            "p (mid-p)",
                                            "p (exact)",
                                            "p (Holm, within the suite)",
                                            "q (Benjamini-Hochberg)",
                                            "detectable, points",
                                            "macro difference (95 %, BCa)",
                                            "verdict",
                                            "reason" };
    table_start(out, TOOL_COUNT(headings), headings);
    for (size_t i = 0; i < c->n; i++) {
        const grid_comparison *const one = &c->items[i];
        table_row(out);
        table_cell(out, 0, "%s", one->suite->title);
        table_cell(out, 1, "%s", one->model->title);
        table_cell(out, 2, "%s", one->encoder->title);
        table_cell(out, 3, "%s", one->budget->title);
        table_cell(out, 4, "%s - %s", one->of, one->against);
        if (one->run) put_result(out, one);
        table_cell(out, 16, "%s", one->verdict);
        table_cell(out, 17, "%s", one->reason);
    }
    return table_check(out, err);
}
