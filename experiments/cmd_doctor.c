/* gaterq doctor: what is installed here, and what each missing thing switches off. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "commands.h"
#include "cpu/cpu_level.h"
#include "gaterq/blas.h"
#include "gaterq/file.h"
#include "inputs.h"

#include "gaterq_commit.h"

typedef struct {
    tool_context *tool;
    bool all_good;
} doctor;

/* One finding: a name, what was found, and (when it is missing) what to do about it. */
static void finding(doctor *d, const char *name, bool good, const char *found, const char *remedy)
{
    grq_json_begin_object(d->tool->result, name);
    grq_json_put_bool(d->tool->result, "ok", good);
    grq_json_put_string(d->tool->result, "found", found);
    if (!good) grq_json_put_string(d->tool->result, "remedy", remedy);
    grq_json_end_object(d->tool->result);
    if (!d->tool->json) printf("%-4s %-12s %s\n", good ? "ok" : "--", name, found);
    if (!d->tool->json && !good) printf("     %-12s %s\n", "", remedy);
    d->all_good &= good;
}

static bool on_path(const char *program)
{
    const char *path = getenv("PATH");
    char *copy = path ? strdup(path) : NULL, *rest = NULL;
    bool found = false;
    for (char *folder = copy ? strtok_r(copy, ":", &rest) : NULL; folder && !found;
         folder = strtok_r(NULL, ":", &rest)) {
        char *file = grq_path_join(folder, program);
        found = file && access(file, X_OK) == 0;
        free(file);
    }
    free(copy);
    return found;
}

static void check_processor(doctor *d)
{
    struct utsname system;
    char text[300];
    if (uname(&system) != 0) strcpy(system.machine, "unknown");
    snprintf(text, sizeof text, "%s, %s kernels of at most %s, %u core%s, %.1f GiB memory", system.machine,
             grq_cpu_level_name(grq_cpu_level()), grq_cpu_level_name(grq_cpu_level_of_processor()), d->tool->n_threads,
             d->tool->n_threads == 1 ? "" : "s",
             (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1073741824.0);
    finding(d, "processor", true, text, "");
}

static void check_blas(doctor *d)
{
    grq_error err;
    if (grq_blas_init(&err) == GRQ_OK) finding(d, "blas", true, grq_blas_description(), "");
    else finding(d, "blas", false, err.message, "apt-get install libopenblas0-pthread: nothing runs without it");
}

static void check_data(doctor *d)
{
    char *root = input_root(NULL);
    const char *given = getenv("GATERQ_DATA");
    const char *const names[] = { "popqa/popQA.tsv", "popqa/popQA.reconstructed.tsv" };
    char path[8192] = "";
    bool found = false;
    for (size_t i = 0; !found && i < 2 * TOOL_COUNT(names); i++) {
        if (i < TOOL_COUNT(names) && !given) continue;
        if (i < TOOL_COUNT(names)) snprintf(path, sizeof path, "%s/%s", given, names[i]);
        else snprintf(path, sizeof path, "%s/../shared/datasets/%s", root ? root : ".", names[i - TOOL_COUNT(names)]);
        found = grq_file_exists(path);
    }
    finding(d, "popqa", found, found ? path : "no popQA.tsv in $GATERQ_DATA/popqa",
            "make reproduce WORLD=popqa needs it: put PopQA's test.tsv at $GATERQ_DATA/popqa/popQA.tsv");
    free(root);
}

grq_status cmd_doctor(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const tool_command command = { .name = "doctor",
                                   .usage = "",
                                   .summary = "What is installed here, and what each missing thing switches off.",
                                   .details = "" };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    doctor d = { .tool = tool, .all_good = true };
    finding(&d, "gaterq", true, GATERQ_VERSION ", commit " GATERQ_COMMIT ", " GATERQ_COMPILER ", " GATERQ_BUILD_TYPE,
            "");
    check_processor(&d);
    check_blas(&d);
    finding(&d, "gnuplot", on_path("gnuplot"), on_path("gnuplot") ? "on PATH" : "not on PATH",
            "apt-get install gnuplot-nox: without it reports have no figures");
    finding(&d, "h5dump", on_path("h5dump"), on_path("h5dump") ? "on PATH" : "not on PATH",
            "apt-get install hdf5-tools: shows what a trace holds; nothing else needs it");
    check_data(&d);
    return GRQ_OK;
}
