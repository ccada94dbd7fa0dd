#include "grid_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/digest.h"
#include "gaterq/file.h"
#include "grid_tables.h"
#include "inputs.h"
#include "provenance.h"

typedef struct {
    cells cells;
    grid grid;
    grid_family family;
    grid_comparisons comparisons;
    grid_headings headings;
    table accuracy, significance, files;
    size_t n_run, n_cells;
} grid_state;

/* ---- opening ---- */

static grq_status no_path(grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
}

/* `name` beside the file `path`. */
static char *beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    char *joined = folder ? grq_path_join(folder, name) : NULL;
    free(folder);
    return joined;
}

/* The family compares orderings that the grid has. */
static grq_status check_family(const grid *g, const grid_family *f, grq_error *err)
{
    for (size_t i = 0; i <= f->n_against; i++) {
        const char *const name = i < f->n_against ? f->against[i] : f->of;
        bool known = false;
        for (size_t k = 0; k < g->n_orderings; k++) known |= !strcmp(name, g->orderings[k]);
        if (!known) return grq_fail(err, GRQ_E_USAGE, "family: \"%s\" is none of the grid's orderings", name);
    }
    return GRQ_OK;
}

static grq_status open_all(grid_state *s, const char *folder, const char *family_path, grq_error *err)
{
    char *root = input_root(NULL), *grid_path = NULL;
    char *own = family_path ? strdup(family_path)
                : root      ? grq_path_join(root, "experiments/configs/table-significance.json")
                            : NULL;
    grq_status st = own ? cells_open(folder, &s->cells, err) : no_path(err);
    if (st == GRQ_OK) st = grid_family_open(own, &s->family, err);
    if (st == GRQ_OK) {
        grid_path = s->cells.grid ? grq_path_join(folder, s->cells.grid) : beside(own, s->family.grid_path);
        st = grid_path ? grid_open(grid_path, s->cells.miniature, &s->grid, err) : no_path(err);
    }
    if (st == GRQ_OK) st = check_family(&s->grid, &s->family, err);
    if (st == GRQ_OK) st = cells_check(&s->cells, &s->grid, err);
    free(root);
    free(own);
    free(grid_path);
    return st;
}

/* What was read, so that the tables can be traced to bytes. */
static grq_status list_files(grid_state *s, grq_error *err)
{
    static const char *const headings[] = { "file", "items", "correct", "sha256" };
    table_start(&s->files, TOOL_COUNT(headings), headings);
    const size_t skip = strlen(s->cells.folder) + 1;
    for (size_t i = 0; i < s->cells.files.n; i++) {
        const scored_file *const f = s->cells.files.files[i];
        char digest[GRQ_SHA256_HEX];
        const grq_status st = grq_sha256_file(f->path, digest, err);
        if (st != GRQ_OK) return st;
        table_row(&s->files);
        table_cell(&s->files, 0, "%s", f->path + skip);
        table_cell(&s->files, 1, "%zu", f->n);
        table_cell(&s->files, 2, "%zu", f->n_correct);
        table_cell(&s->files, 3, "%s", digest);
    }
    return table_check(&s->files, err);
}

/* ---- writing ---- */

static void write_heading(const grid_state *s, FILE *to)
{
    fprintf(to, "# %s\n\n%s\n\n", s->cells.title, s->cells.about);
    if (s->cells.miniature)
        fprintf(to,
                "**Scale: miniature.** Small models of our own stand in for the paper's; their figures are no evidence "
                "about the size of any effect in the paper's models.\n\n");
    else fprintf(to, "**Scale: full.** Predictions of the released models, scored by `gaterq score`.\n\n");
}

static void write_family_note(const grid_state *s, FILE *to)
{
    const size_t per_suite = s->comparisons.n / s->grid.n_suites;
    fprintf(
        to,
        "%s\n\nVerdict REPRODUCED: %s. p-values are McNemar's mid-p; Holm and Benjamini-Hochberg correct them within "
        "the suite's family of %zu, in which a comparison that was not run keeps its place with p = 1. BCa: paired "
        "bootstrap over items, %" PRIu64 " resamples, seed %" PRIu64 ". *Detectable*: the difference that so many "
        "items, discordant as often, show with 80 %% power at an uncorrected 5 %%.\n\n",
        s->family.about, s->family.criterion, per_suite, s->family.n_resamples, s->family.seed);
    for (size_t i = 0; i < s->grid.n_suites; i++) {
        size_t n_run = 0, n_reproduced = 0;
        for (size_t k = i * per_suite; k < (i + 1) * per_suite; k++) {
            n_run += s->comparisons.items[k].run;
            n_reproduced += !strcmp(s->comparisons.items[k].verdict, "REPRODUCED");
        }
        fprintf(to, "* %s: %zu of %zu comparisons run, %zu REPRODUCED\n", s->grid.suites[i].title, n_run, per_suite,
                n_reproduced);
    }
    fprintf(to, "\n");
}

static grq_status write_provenance_of(const grid_state *s, FILE *to, grq_error *err)
{
    provenance p;
    const grq_status st = provenance_collect(&p, NULL, s->family.seed, err);
    if (st != GRQ_OK) return st;
    fprintf(to, "## Provenance\n\n");
    for (size_t i = 0; i < p.n_items; i++) fprintf(to, "* %s: %s\n", p.items[i].key, p.items[i].value);
    fprintf(to, "* files read, with digests: files.csv\n");
    for (size_t i = 0; i < s->grid.n_suites; i++)
        for (size_t k = 0; k < s->cells.n; k++)
            if (!strcmp(s->cells.entries[k].key.suite, s->grid.suites[i].name)) {
                fprintf(to, "* %s was scored against: %s\n", s->grid.suites[i].title,
                        s->cells.entries[k].data ? s->cells.entries[k].data : "not said");
                break;
            }
    return GRQ_OK;
}

static grq_status write_markdown(const grid_state *s, const char *out, grq_error *err)
{
    grq_outfile *file = NULL;
    char *path = grq_path_join(out, "report.md");
    grq_status st = path ? grq_outfile_open(path, &file, err) : no_path(err);
    free(path);
    if (st != GRQ_OK) return st;
    FILE *to = grq_outfile_stream(file);
    write_heading(s, to);
    fprintf(to,
            "## Accuracy\n\n%zu of %zu cells run. Intervals: Wilson. Budgets are named by their bits at rows of 256 "
            "values; "
            "*bits per value* is for the model's own rows: one bit and the row's share of an FP16 scale per stage "
            "read.\n\n",
            s->n_run, s->n_cells);
    table_markdown(&s->accuracy, to);
    fprintf(to, "## %s\n\n", s->family.title);
    write_family_note(s, to);
    table_markdown(&s->significance, to);
    st = write_provenance_of(s, to, err);
    if (st == GRQ_OK) return grq_outfile_commit(file, err);
    grq_outfile_discard(file);
    return st;
}

static grq_status write_csv(const table *t, const char *out, const char *name, grq_error *err)
{
    char *path = grq_path_join(out, name);
    const grq_status st = path ? table_csv(t, path, err) : no_path(err);
    free(path);
    return st;
}

static grq_status write_all(const grid_state *s, const char *out, grq_error *err)
{
    grq_status st = grq_make_directories(out, err);
    if (st == GRQ_OK) st = write_csv(&s->accuracy, out, "table-accuracy.csv", err);
    if (st == GRQ_OK) st = write_csv(&s->significance, out, "table-significance.csv", err);
    if (st == GRQ_OK) st = write_csv(&s->files, out, "files.csv", err);
    return st == GRQ_OK ? write_markdown(s, out, err) : st;
}

static void put_comparison(grq_json_writer *w, const grid_comparison *one)
{
    const grq_paired *const p = &one->result.paired;
    grq_json_begin_object(w, NULL);
    grq_json_put_string(w, "suite", one->suite->name);
    grq_json_put_string(w, "model", one->model->name);
    grq_json_put_string(w, "encoder", one->encoder->name);
    grq_json_put_string(w, "budget", one->budget->name);
    grq_json_put_string(w, "of", one->of);
    grq_json_put_string(w, "against", one->against);
    grq_json_put_string(w, "verdict", one->verdict);
    grq_json_put_string(w, "reason", one->reason);
    if (one->run) {
        grq_json_put_u64(w, "n", p->n);
        grq_json_put_u64(w, "only_a", p->only_a);
        grq_json_put_u64(w, "only_b", p->only_b);
        grq_json_put_f64(w, "difference", p->difference);
        grq_json_put_f64(w, "low", p->mid_low);
        grq_json_put_f64(w, "high", p->mid_high);
        grq_json_put_f64(w, "p_exact", p->p_exact);
        grq_json_put_f64(w, "p_mid", p->p_mid);
        grq_json_put_f64(w, "holm", one->holm);
        grq_json_put_f64(w, "bh", one->bh);
        grq_json_put_f64(w, "detectable", p->detectable);
    }
    grq_json_end_object(w);
}

static void put_result(tool_context *tool, const grid_state *s, const char *out)
{
    grq_json_writer *w = tool->result;
    grq_json_put_string(w, "scale", s->cells.miniature ? "miniature" : "full");
    grq_json_put_u64(w, "cells", s->n_cells);
    grq_json_put_u64(w, "cells_run", s->n_run);
    grq_json_put_u64(w, "comparisons_run", s->comparisons.n_run);
    grq_json_begin_array(w, "comparisons");
    for (size_t i = 0; i < s->comparisons.n; i++) put_comparison(w, &s->comparisons.items[i]);
    grq_json_end_array(w);
    if (tool->json) return;
    printf("%s: %zu of %zu cells run; of %zu comparisons %zu run, %zu REPRODUCED, %zu NOT REPRODUCED, %zu NOT RUN\n"
           "Whole report: %s/report.md\n",
           s->cells.miniature ? "miniature" : "full scale", s->n_run, s->n_cells, s->comparisons.n,
           s->comparisons.n_run, s->comparisons.n_reproduced, s->comparisons.n_run - s->comparisons.n_reproduced,
           s->comparisons.n - s->comparisons.n_run, out);
}

bool grid_report_is_for(const char *folder)
{
    char *path = grq_path_join(folder, "predictions.json");
    const bool there = path && grq_file_exists(path);
    free(path);
    return there;
}

grq_status grid_report(tool_context *tool, const char *folder, const char *family_path, const char *out, grq_error *err)
{
    grid_state *s = calloc(1, sizeof *s);
    if (!s) return grq_fail(err, GRQ_E_NOMEM, "no memory for a report");
    grq_status st = open_all(s, folder, family_path, err);
    if (st == GRQ_OK)
        st = grid_accuracy_table(&s->grid, &s->cells, &s->headings, &s->accuracy, &s->n_run, &s->n_cells, err);
    if (st == GRQ_OK) st = grid_compare(&s->grid, &s->family, &s->cells, &tool->progress, &s->comparisons, err);
    if (st == GRQ_OK) st = grid_comparison_table(&s->comparisons, &s->significance, err);
    if (st == GRQ_OK) st = list_files(s, err);
    if (st == GRQ_OK) st = write_all(s, out, err);
    if (st == GRQ_OK) put_result(tool, s, out);
    table_free(&s->accuracy);
    table_free(&s->significance);
    table_free(&s->files);
    grid_comparisons_free(&s->comparisons);
    grid_family_close(&s->family);
    grid_close(&s->grid);
    cells_close(&s->cells);
    free(s);
    return st;
}
