/* gaterq report: tables, figures and a verdict per claim, from what a run's commands left in its folder. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims.h"
#include "commands.h"
#include "expected.h"
#include "gaterq/file.h"
#include "grid_report.h"
#include "inputs.h"
#include "report_tables.h"
#include "table.h"
#include "terminal.h"

extern char **environ;

typedef struct {
    const char *folder;
    char *root, *claims_path;
    results *run;
    claims claims;
    table verdicts, expected;
    char *expected_path; /* NULL: this run has no expected values */
    size_t n_outside;
    bool expected_applies;
    grq_outfile *file;
    FILE *to;     /* report.md */
    bool figures; /* gnuplot drew them */
} report;

/* ---- claims ---- */

static grq_status verdict_table(report *r, grq_error *err)
{
    static const char *const headings[] = { "claim",   "statement", "paper", "here (miniature)",
                                            "verdict", "criterion", "reason" };
    table_start(&r->verdicts, TOOL_COUNT(headings), headings);
    for (size_t i = 0; i < r->claims.n; i++) {
        const claim *c = &r->claims.items[i];
        table_row(&r->verdicts);
        table_cell(&r->verdicts, 0, "%s", c->id);
        table_cell(&r->verdicts, 1, "%s", c->statement);
        table_cell(&r->verdicts, 2, "%s", c->paper);
        table_cell(&r->verdicts, 3, "%s", c->ours);
        table_cell(&r->verdicts, 4, "%s", c->verdict);
        table_cell(&r->verdicts, 5, "%s", c->criterion);
        table_cell(&r->verdicts, 6, "%s", c->reason);
    }
    return table_check(&r->verdicts, err);
}

/* ---- report.md ---- */

static const char *text_of(results *run, const char *path)
{
    grq_json_node *node;
    const char *text;
    if (results_node(run, path, &node, NULL) != GRQ_OK || grq_json_as_string(node, &text, NULL) != GRQ_OK)
        return "unknown";
    return text;
}

static void write_provenance(report *r)
{
    static const char *const keys[] = { "version", "commit", "compiler", "blas", "seed", "config_sha256" };
    grq_json_node *provenance;
    fprintf(r->to, "## Provenance\n\n");
    if (results_node(r->run, "run.json#provenance", &provenance, NULL) != GRQ_OK) return;
    for (size_t i = 0; i < TOOL_COUNT(keys); i++) {
        char key[64];
        const char *value = "unknown";
        snprintf(key, sizeof key, "gaterq.%s", keys[i]);
        if (grq_json_string(provenance, key, &value, NULL) == GRQ_OK) fprintf(r->to, "* %s: %s\n", keys[i], value);
    }
    fprintf(r->to, "* every step as a command: commands.sh; times and memory: times.tsv\n\n");
}

static double number_of(results *run, const char *variant, const char *rest)
{
    char path[256];
    double value = 0;
    snprintf(path, sizeof path, "%s/%s", variant, rest);
    return results_number(run, path, &value, NULL) == GRQ_OK ? value : 0;
}

static void write_heading(report *r, grq_json_node *variants)
{
    fprintf(r->to, "# %s\n\n%s\n\n", text_of(r->run, "config.json#title"), text_of(r->run, "config.json#about"));
    fprintf(r->to,
            "**Scale: miniature.** All figures are measurements of small models of our own, trained on this world's "
            "text; they are "
            "no evidence about the size of any effect in the paper's models. Rows of 32 values, so one stage costs "
            "%.2f bits per "
            "value here and 1.0625 at the paper's 256.\n\n",
            1.5);
    fprintf(r->to, "Models of this run:\n\n");
    for (size_t i = 0; i < grq_json_count(variants); i++) {
        char path[128];
        const char *name = "";
        snprintf(path, sizeof path, "config.json#variants[%zu].name", i);
        name = text_of(r->run, path);
        snprintf(path, sizeof path, "config.json#variants[%zu].why", i);
        fprintf(r->to, "* **%s**: gate cost %g, trained on %.3g tokens, final loss %.4f nats; %s.\n", name,
                number_of(r->run, name, "train.json#gate_cost"), number_of(r->run, name, "train.json#tokens"),
                number_of(r->run, name, "train.json#loss_nats"), text_of(r->run, path));
    }
    fprintf(r->to, "\n");
}

typedef grq_status table_maker(results *run, const char *variant, table *out, grq_error *err);

static grq_status write_table(report *r, const char *variant, const char *title, const char *csv, table_maker *make,
                              grq_error *err)
{
    table t;
    char path[4096];
    grq_status st = make(r->run, variant, &t, err);
    if (st == GRQ_OK) {
        fprintf(r->to, "### %s\n\n", title);
        table_markdown(&t, r->to);
        snprintf(path, sizeof path, "%s/%s/%s", r->folder, variant, csv);
        st = table_csv(&t, path, err);
    }
    table_free(&t);
    return st;
}

static grq_status write_variant(report *r, const char *v, grq_error *err)
{
    fprintf(r->to, "## Model %s\n\n", v);
    grq_status st =
        write_table(r, v, "Cold facts: accuracy by what is read", "table-accuracy.csv", report_accuracy, err);
    if (st == GRQ_OK)
        fprintf(r->to, "Orderings read stage 2 for the stated share of look-ups, exactly, per layer and batch. "
                       "*recovered*: share of the gap "
                       "between 1 and 2 stages. `/refreshed`: gates recomputed from the rows as read; without it the "
                       "stage-1 gates inject "
                       "(\"frozen\", the paper). `random` is the mean of its draws. Intervals: Wilson for accuracy, "
                       "bootstrap over subjects "
                       "for recovered shares.\n\n");
    if (st == GRQ_OK) st = write_table(r, v, "Paired tests", "table-comparisons.csv", report_comparisons, err);
    if (st == GRQ_OK)
        st = write_table(r, v, "Captured weighted-error reduction at the budget", "table-captured.csv", report_captured,
                         err);
    if (st == GRQ_OK)
        st = write_table(r, v, "Gate energy against access count", "table-correlation.csv", report_correlation, err);
    if (st == GRQ_OK)
        st = write_table(r, v, "Gates, concentration, unseen rows", "table-profile.csv", report_profile, err);
    if (st == GRQ_OK)
        st = write_table(r, v, "Relative squared error of the codes", "table-distortion.csv", report_distortion, err);
    if (st == GRQ_OK && r->figures)
        fprintf(
            r->to,
            "![accuracy](figures/accuracy-per-ordering-%s.svg)\n![captured](figures/captured-against-budget-%s.svg)\n"
            "![gate and frequency](figures/gate-against-frequency-%s.svg)\n\n",
            v, v, v);
    return st;
}

static grq_status write_report(report *r, grq_json_node *variants, grq_error *err)
{
    char *path = grq_path_join(r->folder, "report.md");
    grq_status st = path ? grq_outfile_open(path, &r->file, err) : grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    free(path);
    if (st != GRQ_OK) return st;
    r->to = grq_outfile_stream(r->file);
    write_heading(r, variants);
    fprintf(r->to,
            "## Claims\n\nCriteria were written before the run (experiments/claims.json) and are not tuned to it.\n\n");
    table_markdown(&r->verdicts, r->to);
    for (size_t i = 0; st == GRQ_OK && i < grq_json_count(variants); i++) {
        const char *v;
        st = grq_json_as_string(grq_json_at(variants, i), &v, err);
        if (st == GRQ_OK) st = write_variant(r, v, err);
    }
    if (st == GRQ_OK && r->expected_path && r->expected_applies) {
        fprintf(r->to, "## Expected values (REPRODUCE.md)\n\n");
        table_markdown(&r->expected, r->to);
    }
    if (st == GRQ_OK) write_provenance(r);
    if (st == GRQ_OK) st = grq_outfile_commit(r->file, err);
    else grq_outfile_discard(r->file);
    return st;
}

/* ---- figures ---- */

/* gnuplot reads plots/<name>.gp from the repository's root; its complaints go to figures/gnuplot.log. */
static grq_status run_gnuplot(const report *r, const char *name, const char *variant, grq_error *err)
{
    char folder[4096], settings[8300], script[128], log[4200];
    if (!realpath(r->folder, folder)) return grq_fail(err, GRQ_E_IO, "%s: %s", r->folder, strerror(errno));
    snprintf(settings, sizeof settings, "run='%s'; variant='%s'", folder, variant);
    snprintf(script, sizeof script, "plots/%s.gp", name);
    snprintf(log, sizeof log, "%s/figures/gnuplot.log", folder);
    char *argv[] = { "gnuplot", "-e", settings, script, NULL };
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0;
    if (posix_spawn_file_actions_init(&actions) != 0) return grq_fail(err, GRQ_E_NOMEM, "no memory to start gnuplot");
    posix_spawn_file_actions_addchdir_np(&actions, r->root);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    const int failed = posix_spawnp(&pid, "gnuplot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return grq_fail(err, GRQ_E_IO, "gnuplot cannot be started (%s): apt-get install gnuplot-nox", strerror(failed));
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return grq_fail(err, GRQ_E_IO, "gnuplot failed on plots/%s.gp; see %s", name, log);
    return GRQ_OK;
}

/* Figures are a service: a missing gnuplot is said and leaves the report without them. */
static grq_status draw_figures(report *r, grq_json_node *variants, grq_error *err)
{
    static const char *const names[] = { "accuracy-per-ordering", "captured-against-budget", "gate-against-frequency" };
    char *figures = grq_path_join(r->folder, "figures");
    grq_status st = figures ? grq_make_directories(figures, err) : grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    char *log = st == GRQ_OK ? grq_path_join(figures, "gnuplot.log") : NULL;
    struct stat said;
    if (log) unlink(log); /* complaints of an earlier report */
    free(figures);
    r->figures = true;
    for (size_t i = 0; st == GRQ_OK && i < grq_json_count(variants); i++) {
        const char *v;
        grq_error why;
        st = grq_json_as_string(grq_json_at(variants, i), &v, err);
        if (st == GRQ_OK) st = report_figure_data(r->run, r->folder, v, err);
        for (size_t k = 0; st == GRQ_OK && r->figures && k < TOOL_COUNT(names); k++)
            if (run_gnuplot(r, names[k], v, &why) != GRQ_OK) {
                terminal_end_line();
                fprintf(stderr, "gaterq report: no figures: %s\n", why.message);
                r->figures = false;
            }
    }
    if (log && stat(log, &said) == 0 && said.st_size == 0) unlink(log); /* nothing to complain about */
    free(log);
    return st;
}

/* ---- terminal ---- */

static void print_verdicts(const report *r, tool_context *tool)
{
    static const size_t columns[] = { 4, 0, 2, 3 };
    grq_json_begin_array(tool->result, "claims");
    for (size_t i = 0; i < r->claims.n; i++) {
        const claim *c = &r->claims.items[i];
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_string(tool->result, "id", c->id);
        grq_json_put_string(tool->result, "paper", c->paper);
        grq_json_put_string(tool->result, "ours", c->ours);
        grq_json_put_string(tool->result, "verdict", c->verdict);
        grq_json_put_string(tool->result, "reason", c->reason);
        grq_json_end_object(tool->result);
    }
    grq_json_end_array(tool->result);
    if (tool->json) return;
    printf("\n");
    table_terminal(&r->verdicts, stdout, columns, TOOL_COUNT(columns));
    printf("\nWhole report: %s/report.md\n", r->folder);
}

/* Expected values lie in results/expected/<id>.json, where the run's id has some. */
static grq_status check_expected(report *r, grq_error *err)
{
    char path[4096];
    if (!r->expected_path) {
        const char *id = text_of(r->run, "run.json#id");
        if (snprintf(path, sizeof path, "%s/results/expected/%s.json", r->root, id) >= (int)sizeof path)
            return grq_fail(err, GRQ_E_USAGE, "%s: the path is too long", r->root);
        if (!grq_file_exists(path)) return GRQ_OK;
        r->expected_path = strdup(path);
        if (!r->expected_path) return grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    }
    return expected_check(r->expected_path, r->run, &r->expected, &r->n_outside, &r->expected_applies, err);
}

static grq_status make_report(report *r, tool_context *tool, grq_error *err)
{
    char path[4096];
    grq_json_node *variants;
    grq_status st = results_open(r->folder, &r->run, err);
    if (st == GRQ_OK) st = results_node(r->run, "run.json#variants", &variants, err);
    if (st == GRQ_OK) st = claims_judge(r->claims_path, r->run, &r->claims, err);
    if (st == GRQ_OK) st = verdict_table(r, err);
    if (st == GRQ_OK) st = check_expected(r, err);
    if (st == GRQ_OK) st = draw_figures(r, variants, err);
    if (st == GRQ_OK) st = write_report(r, variants, err);
    if (st == GRQ_OK) {
        snprintf(path, sizeof path, "%s/claims.csv", r->folder);
        st = table_csv(&r->verdicts, path, err);
    }
    if (st == GRQ_OK) print_verdicts(r, tool);
    if (st == GRQ_OK && r->n_outside)
        st = grq_fail(err, GRQ_E_CHECK, "%zu of %zu expected values are outside their tolerance; see %s/report.md",
                      r->n_outside, r->expected.n_rows, r->folder);
    return st;
}

grq_status cmd_report(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *folder[1] = { NULL }, *claims_path = NULL, *expected_path = NULL;
    const char *predictions = NULL, *family = NULL, *out = NULL;
    const tool_option options[] = {
        { "claims", "FILE", "claims and criteria [experiments/claims.json]", TOOL_TEXT, &claims_path, false, 0, 0 },
        { "expected", "FILE", "expected values; outside their tolerance: exit 1 [results/expected/<id>.json]",
          TOOL_TEXT, &expected_path, false, 0, 0 },
        { "predictions", "DIR", "a folder of scored predictions with its predictions.json, in place of a run",
          TOOL_TEXT, &predictions, false, 0, 0 },
        { "family", "FILE", "with predictions: comparisons [experiments/configs/table-significance.json]", TOOL_TEXT,
          &family, false, 0, 0 },
        { "out", "DIR", "with predictions: where the report goes [the folder itself]", TOOL_TEXT, &out, false, 0, 0 },
    };
    const tool_command command = {
        .name = "report",
        .usage = "results/RUN | --predictions DIR [--family FILE] [--out DIR]",
        .summary = "Tables, figures and a verdict per claim from a run's folder, or from scored predictions.",
        .details =
            "Predictions: accuracy of every model, encoder, budget, ordering and suite, and the paper's family of\n"
            "paired tests; docs/format.md has the folder's layout. What is not there is NOT RUN, with the reason.\n"
            "Example: gaterq report results/demo\n"
            "         gaterq report --predictions full-scale --out results/full-scale",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = folder,
        .max_positionals = 1,
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if ((folder[0] != NULL) == (predictions != NULL))
        return grq_fail(err, GRQ_E_USAGE, "give a run's folder, or --predictions");
    if (folder[0] && grid_report_is_for(folder[0])) predictions = folder[0];
    if (predictions) {
        if (claims_path || expected_path)
            return grq_fail(err, GRQ_E_USAGE, "--claims and --expected belong to a run's report, not to predictions");
        return grid_report(tool, predictions, family, out ? out : predictions, err);
    }
    if (family || out) return grq_fail(err, GRQ_E_USAGE, "--family and --out belong to --predictions");
    report r = { .folder = folder[0], .root = input_root(NULL) };
    r.claims_path = claims_path ? strdup(claims_path)
                    : r.root    ? grq_path_join(r.root, "experiments/claims.json")
                                : NULL;
    if (expected_path) r.expected_path = strdup(expected_path);
    if (!r.root || !r.claims_path || (expected_path && !r.expected_path))
        st = grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    if (st == GRQ_OK) st = make_report(&r, tool, err);
    table_free(&r.verdicts);
    table_free(&r.expected);
    free(r.expected_path);
    claims_free(&r.claims);
    results_close(r.run);
    free(r.claims_path);
    free(r.root);
    return st;
}
