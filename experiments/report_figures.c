/* Numbers for the figures: what gnuplot reads. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"
#include "gaterq/trace.h"
#include "report_tables.h"
#include "tool.h"

static grq_status open_csv(const char *folder, const char *variant, const char *name, grq_outfile **out, grq_error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s/%s", folder, variant, name) >= (int)sizeof path)
        return grq_fail(err, GRQ_E_USAGE, "%s: the path is too long", folder);
    return grq_outfile_open(path, out, err);
}

static double number_or_nan(results *run, const char *path)
{
    double value;
    return results_number(run, path, &value, NULL) == GRQ_OK ? value : NAN;
}

/* reader, accuracy, low, high */
static grq_status accuracy_csv(results *run, const char *folder, const char *variant, grq_error *err)
{
    char path[256];
    grq_json_node *readers;
    grq_outfile *file;
    snprintf(path, sizeof path, "%s/accuracy.json#readers", variant);
    grq_status st = results_node(run, path, &readers, err);
    if (st == GRQ_OK) st = open_csv(folder, variant, "accuracy.csv", &file, err);
    if (st != GRQ_OK) return st;
    fprintf(grq_outfile_stream(file), "reader,accuracy,low,high\n");
    for (size_t i = 0; i < grq_json_count(readers); i++) {
        static const char *const keys[] = { "accuracy", "low", "high" };
        const char *name = grq_json_key_at(readers, i);
        if (!strcmp(name, "random")) continue; /* the mean of the draws has no interval of its own */
        fprintf(grq_outfile_stream(file), "%s", name);
        for (size_t k = 0; k < 3; k++) {
            snprintf(path, sizeof path, "%s/accuracy.json#readers.%s.%s", variant, name, keys[k]);
            fprintf(grq_outfile_stream(file), ",%.6f", number_or_nan(run, path));
        }
        fprintf(grq_outfile_stream(file), "\n");
    }
    return grq_outfile_commit(file, err);
}

/* budget, captured share per ordering */
static grq_status curve_csv(results *run, const char *folder, const char *variant, grq_error *err)
{
    char path[256];
    grq_json_node *curve;
    grq_outfile *file;
    snprintf(path, sizeof path, "%s/ablate-questions.json#curve", variant);
    grq_status st = results_node(run, path, &curve, err);
    if (st == GRQ_OK) st = open_csv(folder, variant, "curve.csv", &file, err);
    if (st != GRQ_OK) return st;
    FILE *to = grq_outfile_stream(file);
    fprintf(to, "budget");
    for (int o = 0; o < GRQ_N_ORDERINGS; o++) fprintf(to, ",%s", grq_ordering_name((grq_ordering)o));
    fprintf(to, "\n");
    for (size_t i = 0; i < grq_json_count(curve); i++) {
        snprintf(path, sizeof path, "%s/ablate-questions.json#curve[%zu].budget", variant, i);
        fprintf(to, "%.4f", number_or_nan(run, path));
        for (int o = 0; o < GRQ_N_ORDERINGS; o++) {
            snprintf(path, sizeof path, "%s/ablate-questions.json#curve[%zu].%s", variant, i,
                     grq_ordering_name((grq_ordering)o));
            fprintf(to, ",%.6f", number_or_nan(run, path));
        }
        fprintf(to, "\n");
    }
    return grq_outfile_commit(file, err);
}

/* ---- gate energy by access count ---- */

enum { N_BINS = 48 }; /* powers of two of the access count; bin 0 is "never" */

static int by_float(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static unsigned bin_of(uint64_t count)
{
    unsigned bin = 0;
    while (count) {
        bin++;
        count >>= 1;
    }
    return bin < N_BINS ? bin : N_BINS - 1;
}

/* One block (`first`: of the file): the look-ups of one layer and order, binned. energies (room for all of them) is
 * scratch. */
static void write_block(FILE *to, bool first, const grq_trace *trace, const grq_trace_layer *layer, unsigned order,
                        float *energies)
{
    if (!first) fprintf(to, "\n\n"); /* what gnuplot calls an index */
    fprintf(to, "\"layer %u: %u-grams\"\n", layer->layer, order);
    for (unsigned bin = 0; bin < N_BINS; bin++) {
        size_t n = 0;
        double sum = 0;
        for (size_t i = 0; i < trace->n_positions * layer->n_columns; i++) {
            if (layer->order[i] != order || bin_of(layer->frequency[i]) != bin) continue;
            energies[n++] = layer->gate_energy[i];
            sum += (double)layer->gate_energy[i];
        }
        if (n < 20) continue; /* too few to show a spread */
        qsort(energies, n, sizeof *energies, by_float);
        fprintf(to, "%u,%u,%.1f,%zu,%.6f,%.6f,%.6f\n", layer->layer, order,
                bin ? (double)((uint64_t)1 << (bin - 1)) : 0.5, n, sum / (double)n, (double)energies[n / 4],
                (double)energies[3 * n / 4]);
    }
}

static grq_status frequency_csv(const char *folder, const char *variant, grq_error *err)
{
    char path[4096];
    grq_trace trace;
    unsigned first_order = 0;
    grq_outfile *file = NULL;
    if (snprintf(path, sizeof path, "%s/%s/text.h5", folder, variant) >= (int)sizeof path)
        return grq_fail(err, GRQ_E_USAGE, "%s: the path is too long", folder);
    grq_status st = grq_trace_open(path, &trace, err);
    if (st != GRQ_OK) return st;
    st = open_csv(folder, variant, "gate-by-frequency.csv", &file, err);
    for (uint32_t l = 0; st == GRQ_OK && l < trace.n_layers; l++) {
        const grq_trace_layer *layer = &trace.layers[l];
        float *energies = malloc((trace.n_positions * layer->n_columns + 1) * sizeof *energies);
        if (!energies) st = grq_fail(err, GRQ_E_NOMEM, "no memory for the look-ups of %s", path);
        for (unsigned order = 2; st == GRQ_OK && order <= GRQ_MAX_ORDER; order++) {
            bool any = false;
            for (uint32_t c = 0; trace.n_positions && c < layer->n_columns; c++) any |= layer->order[c] == order;
            if (any && first_order == 0) first_order = order;
            if (any)
                write_block(grq_outfile_stream(file), l == 0 && order == first_order, &trace, layer, order, energies);
        }
        free(energies);
    }
    grq_trace_free(&trace);
    if (st == GRQ_OK) return grq_outfile_commit(file, err);
    grq_outfile_discard(file);
    return st;
}

grq_status report_figure_data(results *run, const char *folder, const char *variant, grq_error *err)
{
    grq_status st = accuracy_csv(run, folder, variant, err);
    if (st == GRQ_OK) st = curve_csv(run, folder, variant, err);
    if (st == GRQ_OK) st = frequency_csv(folder, variant, err);
    return st;
}
