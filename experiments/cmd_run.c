/* gaterq run: one experiment config, end to end. A run is a list of public commands (plan.h); each step that is done is
 * stamped with a digest of the program, the config, its own options and everything before it, and with what it left, so
 * that an interrupted run continues where it was and a changed one repeats what it must. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "gaterq/digest.h"
#include "gaterq/file.h"
#include "plan.h"
#include "provenance.h"
#include "terminal.h"

typedef struct {
    tool_context *tool;
    const plan *plan;
    const char *config;
    char key[GRQ_SHA256_HEX]; /* of the steps so far */
} run_state;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* key <- sha256(key, step): a step's stamp vouches for all steps before it. */
static grq_status extend_key(char key[GRQ_SHA256_HEX], int argc, char *const *argv, grq_error *err)
{
    char *joined = NULL;
    size_t n = 0;
    FILE *stream = open_memstream(&joined, &n);
    if (!stream) return grq_fail(err, GRQ_E_NOMEM, "no memory for a digest");
    fprintf(stream, "%s", key);
    for (int i = 0; i < argc; i++) fprintf(stream, "%c%s", '\0', argv[i]);
    if (fclose(stream) != 0) {
        free(joined);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for a digest");
    }
    const grq_status st = grq_sha256(joined, n, key, err);
    free(joined);
    return st;
}

static grq_status first_key(run_state *run, grq_error *err)
{
    char program[GRQ_SHA256_HEX], config[GRQ_SHA256_HEX];
    grq_status st = grq_sha256_file("/proc/self/exe", program, err);
    if (st == GRQ_OK) st = grq_sha256_file(run->config, config, err);
    if (st != GRQ_OK) return st;
    run->key[0] = '\0';
    char *both[] = { program, config };
    return extend_key(run->key, 2, both, err);
}

static grq_status stamp_path(const run_state *run, size_t step, char *path, size_t room, grq_error *err)
{
    char folder[4096];
    if (snprintf(folder, sizeof folder, "%s/.stamps", run->plan->folder) >= (int)sizeof folder ||
        snprintf(path, room, "%s/%02zu", folder, step + 1) >= (int)room)
        return grq_fail(err, GRQ_E_USAGE, "%s: the path is too long", run->plan->folder);
    return grq_make_directories(folder, err);
}

/* Digest of what a step left: of its files' bytes, by name where it left a folder. */
static grq_status product_digest(const char *path, char digest[GRQ_SHA256_HEX], grq_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0) return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) return grq_sha256_file(path, digest, err);
    struct dirent **entries = NULL;
    const int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0) return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    grq_status st = GRQ_OK;
    digest[0] = '\0';
    for (int i = 0; i < n; i++) {
        if (st == GRQ_OK && entries[i]->d_name[0] != '.') {
            char own[GRQ_SHA256_HEX], *file = grq_path_join(path, entries[i]->d_name);
            st = file ? product_digest(file, own, err) : grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
            char *const both[] = { entries[i]->d_name, own };
            if (st == GRQ_OK) st = extend_key(digest, 2, both, err);
            free(file);
        }
        free(entries[i]);
    }
    free(entries);
    return st;
}

/* What the stamp of a step that is done says: the key, then the digests of its output and its result ("-": it has
 * none). */
static grq_status stamp_text(const run_state *run, const plan_step *step, char text[4 * GRQ_SHA256_HEX], grq_error *err)
{
    char output[GRQ_SHA256_HEX] = "-", result[GRQ_SHA256_HEX] = "-";
    grq_status st = step->output ? product_digest(step->output, output, err) : GRQ_OK;
    if (st == GRQ_OK && step->result) st = product_digest(step->result, result, err);
    if (st == GRQ_OK) snprintf(text, (size_t)4 * GRQ_SHA256_HEX, "%s\n%s\n%s\n", run->key, output, result);
    return st;
}

/* Done before, with these very products still there. */
static bool stamped(const run_state *run, const plan_step *step, const char *path)
{
    char *text = NULL, wanted[4 * GRQ_SHA256_HEX];
    size_t n = 0;
    const bool same = stamp_text(run, step, wanted, NULL) == GRQ_OK &&
                      grq_file_read(path, 4096, &text, &n, NULL) == GRQ_OK && !strcmp(text, wanted);
    free(text);
    return same;
}

static grq_status write_text(const char *path, const char *content, grq_error *err)
{
    grq_outfile *file;
    const grq_status st = grq_outfile_open(path, &file, err);
    if (st != GRQ_OK) return st;
    fputs(content, grq_outfile_stream(file));
    return grq_outfile_commit(file, err);
}

static grq_status make_parent(const char *path, grq_error *err)
{
    char folder[4096];
    if (!path) return GRQ_OK;
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder)
        return grq_fail(err, GRQ_E_USAGE, "%s: the path is too long", path);
    char *slash = strrchr(folder, '/');
    if (!slash) return GRQ_OK;
    *slash = '\0';
    return grq_make_directories(folder, err);
}

/* Runs the command as main() would with --json, and keeps its result. */
static grq_status call(run_state *run, const plan_step *step, grq_error *err)
{
    tool_context own = { .json = true,
                         .quiet = run->tool->quiet,
                         .seed = 1,
                         .n_threads = run->tool->n_threads,
                         .progress = run->tool->progress,
                         .result = grq_json_writer_new() };
    if (!own.result) return grq_fail(err, GRQ_E_NOMEM, "no memory for a result");
    grq_json_begin_object(own.result, NULL);
    char *argv[PLAN_MAX_ARGUMENTS + 1];
    memcpy(argv, step->argv, sizeof step->argv);
    argv[step->argc] = NULL;
    grq_status st = make_parent(step->output, err);
    if (st == GRQ_OK) st = make_parent(step->result, err);
    if (st == GRQ_OK) st = step->run(&own, step->argc, argv, err);
    terminal_end_line();
    grq_json_end_object(own.result);
    if (st == GRQ_OK && step->result) st = grq_json_writer_save(own.result, step->result, err);
    grq_json_writer_free(own.result);
    return st;
}

/* Times change from run to run, so they stay out of every other file. */
static void append_time(const run_state *run, const plan_step *step, double seconds)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/times.tsv", run->plan->folder);
    FILE *file = fopen(path, "a");
    if (!file) return;
    fprintf(file, "%s\t%.1f s\t%.0f MiB peak so far\n", step->name, seconds, peak_mib());
    fclose(file);
}

static grq_status run_step(run_state *run, size_t i, grq_error *err)
{
    const plan_step *step = &run->plan->steps[i];
    char path[4096];
    grq_status st = extend_key(run->key, step->argc, step->argv, err);
    if (st == GRQ_OK) st = stamp_path(run, i, path, sizeof path, err);
    if (st != GRQ_OK) return st;
    if (stamped(run, step, path)) {
        fprintf(stderr, "[%zu/%zu] %s: done before\n", i + 1, run->plan->n_steps, step->name);
        return GRQ_OK;
    }
    fprintf(stderr, "[%zu/%zu] %s\n", i + 1, run->plan->n_steps, step->name);
    const double started = now();
    st = call(run, step, err);
    char stamp[4 * GRQ_SHA256_HEX];
    if (st == GRQ_OK) st = stamp_text(run, step, stamp, err);
    if (st == GRQ_OK) st = write_text(path, stamp, err);
    if (st == GRQ_OK) append_time(run, step, now() - started);
    else grq_fail_prefix(err, st, "%s", step->name);
    return st;
}

static void print_command(FILE *to, const plan_step *step)
{
    fprintf(to, "gaterq");
    for (int i = 0; i < step->argc; i++) fprintf(to, " %s", step->argv[i]);
    if (step->result) fprintf(to, " --json > %s", step->result);
    fprintf(to, "\n");
}

static grq_status write_commands(const plan *p, const char *config, grq_error *err)
{
    char *path = grq_path_join(p->folder, "commands.sh");
    grq_outfile *file = NULL;
    grq_status st = path ? grq_outfile_open(path, &file, err) : grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    if (st == GRQ_OK) {
        FILE *to = grq_outfile_stream(file);
        fprintf(to,
                "# The steps of this run, one by one, from the repository's root. They write into the run's folder.\n"
                "set -e\n"
                "PATH=$PWD/build/release:$PATH\n"
                "command -v gaterq >/dev/null || { echo 'gaterq is not built: run make first' >&2; exit 3; }\n");
        for (size_t i = 0; i < p->n_steps; i++) print_command(to, &p->steps[i]);
        if (p->report_on)
            fprintf(to, "gaterq report --predictions %s --family %s --out %s\n", p->report_on, config, p->folder);
        else fprintf(to, "gaterq report %s\n", p->folder);
        st = grq_outfile_commit(file, err);
    }
    free(path);
    return st;
}

/* The manifest is known before any file that it names is there; report says of each whether it is. */
static grq_status write_predictions(const plan *p, grq_error *err)
{
    char *path = grq_path_join(p->folder, "predictions.json");
    const grq_status st =
        path ? write_text(path, p->predictions, err) : grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    free(path);
    return st;
}

/* run.json says what this run is; report reads it. */
static grq_status write_run(const run_state *run, grq_error *err)
{
    provenance source;
    grq_json_writer *w = grq_json_writer_new();
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "no memory for run.json");
    grq_status st = provenance_collect(&source, run->config, run->plan->seed, err);
    char *path = grq_path_join(run->plan->folder, "run.json");
    char *copy = grq_path_join(run->plan->folder, "config.json");
    char *text = NULL;
    size_t n = 0;
    if (!path || !copy) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    if (st == GRQ_OK) {
        grq_json_begin_object(w, NULL);
        grq_json_put_string(w, "id", run->plan->id);
        grq_json_put_string(w, "title", run->plan->title);
        grq_json_put_string(w, "config", run->config);
        grq_json_begin_array(w, "variants");
        for (size_t i = 0; i < run->plan->n_variants; i++) grq_json_put_string(w, NULL, run->plan->variants[i]);
        grq_json_end_array(w);
        provenance_write(&source, "provenance", w);
        grq_json_end_object(w);
        st = grq_json_writer_save(w, path, err);
    }
    if (st == GRQ_OK) st = grq_file_read(run->config, 1 << 20, &text, &n, err);
    if (st == GRQ_OK) st = write_text(copy, text, err);
    if (st == GRQ_OK && run->plan->predictions) st = write_predictions(run->plan, err);
    free(text);
    free(path);
    free(copy);
    grq_json_writer_free(w);
    return st;
}

static grq_status run_report(run_state *run, grq_error *err)
{
    char config[4096];
    tool_context own = *run->tool;
    if (!run->plan->report_on) return cmd_report(&own, 2, (char *[]){ "report", run->plan->folder, NULL }, err);
    snprintf(config, sizeof config, "%s", run->config);
    char *argv[] = { "report", "--predictions", run->plan->report_on, "--family",
                     config,   "--out",         run->plan->folder,    NULL };
    return cmd_report(&own, 7, argv, err);
}

static grq_status run_all(run_state *run, grq_error *err)
{
    grq_status st = grq_make_directories(run->plan->folder, err);
    if (st == GRQ_OK) st = write_commands(run->plan, run->config, err);
    if (st == GRQ_OK) st = write_run(run, err);
    if (st == GRQ_OK) st = first_key(run, err);
    for (size_t i = 0; st == GRQ_OK && i < run->plan->n_steps; i++) st = run_step(run, i, err);
    if (st == GRQ_OK) st = run_report(run, err);
    if (st == GRQ_E_INTERRUPTED) grq_fail_prefix(err, st, "the same command continues this run");
    return st;
}

grq_status cmd_run(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *out = NULL, *config[1] = { NULL };
    bool dry_run = false;
    const tool_option options[] = {
        { "out", "DIR", "run folder [results/<id>]", TOOL_TEXT, &out, false, 0, 0 },
        { "dry-run", NULL, "check the config and print the commands", TOOL_FLAG, &dry_run, false, 0, 0 },
    };
    const tool_command command = {
        .name = "run",
        .usage = "CONFIG.json [--out DIR] [--dry-run]",
        .summary = "Run one experiment config end to end; the same command continues an interrupted run.",
        .details = "Example: gaterq run experiments/configs/demo.json",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = config,
        .min_positionals = 1,
        .max_positionals = 1,
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if (tool->seed_given)
        return grq_fail(err, GRQ_E_USAGE,
                        "--seed: a run's seed is the config's; copy %s and change \"seed\" and \"id\"", config[0]);
    plan p;
    st = plan_read(config[0], out, &p, err);
    if (st != GRQ_OK) return st;
    if (dry_run) {
        for (size_t i = 0; i < p.n_steps; i++) print_command(tool->json ? stderr : stdout, &p.steps[i]);
    } else {
        run_state run = { .tool = tool, .plan = &p, .config = config[0] };
        st = run_all(&run, err);
    }
    plan_free(&p);
    return st;
}
