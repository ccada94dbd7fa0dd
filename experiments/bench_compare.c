/* gaterq bench compare: the bootstrap of the paper's whole family, 4 suites x 36 comparisons, beside the definition
 * that it must equal in distribution: items drawn one by one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "gaterq/rng.h"
#include "gaterq/stats.h"

enum { N_SUITES = 4, PER_SUITE = 36, N_RESAMPLES = 10000, MOST_ITEMS = 14267 };

static const struct {
    const char *name;
    size_t n_items;
} suites[N_SUITES] = { { "popqa", 14267 }, { "triviaqa", 11313 }, { "nq_open", 3610 }, { "cmmlu", 11582 } };

/* Answers that differ on 9 % of the items, 5 to A and 4 to B. */
static void make_up(grq_rng *rng, size_t n, bool *a, bool *b)
{
    for (size_t i = 0; i < n; i++) {
        const double u = grq_rng_uniform(rng);
        a[i] = u < 0.05 || u > 0.7;
        b[i] = (u >= 0.05 && u < 0.09) || u > 0.7;
    }
}

/* Seconds for PER_SUITE whole comparisons: tests, intervals, bootstrap, sign flips. */
static grq_status time_suite(tool_context *tool, size_t n, bool *a, bool *b, double *seconds, grq_error *err)
{
    grq_rng rng;
    grq_status st = GRQ_OK;
    grq_rng_seed_for(&rng, tool->seed, "bench compare");
    const double started = bench_now();
    for (uint64_t k = 0; st == GRQ_OK && k < PER_SUITE; k++) {
        grq_paired unused;
        make_up(&rng, n, a, b);
        st = grq_paired_compare(a, b, NULL, n, N_RESAMPLES, tool->seed + k, &unused, err);
    }
    *seconds = bench_now() - started;
    return st;
}

/* Seconds for PER_SUITE bootstraps item by item, from some replicates of one. */
static double time_items(tool_context *tool, size_t n, bool *a, bool *b, double *spread)
{
    enum { N_TIMED = 200 };
    grq_rng rng;
    double sum = 0, squares = 0;
    grq_rng_seed_for(&rng, tool->seed, "bench compare");
    make_up(&rng, n, a, b);
    const double started = bench_now();
    for (int r = 0; r < N_TIMED; r++) {
        int64_t difference = 0;
        for (size_t i = 0; i < n; i++) {
            const uint64_t at = grq_rng_below(&rng, n);
            difference += (int)a[at] - (int)b[at];
        }
        sum += (double)difference / (double)n;
        squares += (double)difference / (double)n * (double)difference / (double)n;
    }
    const double seconds = bench_now() - started;
    *spread = sqrt(squares / N_TIMED - sum * sum / N_TIMED / N_TIMED); /* keeps the loop, and is shown */
    return seconds * PER_SUITE * N_RESAMPLES / N_TIMED;
}

grq_status bench_compare(tool_context *tool, grq_error *err)
{
    static bool a[MOST_ITEMS], b[MOST_ITEMS];
    double total = 0, total_items = 0;
    grq_status st = GRQ_OK;
    grq_json_begin_array(tool->result, "suites");
    if (!tool->json)
        printf("%d comparisons a suite, %d resamples each, one thread\n"
               "suite      items  whole comparisons, s  bootstrap item by item, s\n",
               PER_SUITE, N_RESAMPLES);
    for (size_t s = 0; st == GRQ_OK && s < N_SUITES; s++) {
        double seconds = 0, spread;
        st = time_suite(tool, suites[s].n_items, a, b, &seconds, err);
        if (st != GRQ_OK) break;
        const double by_items = time_items(tool, suites[s].n_items, a, b, &spread);
        total += seconds;
        total_items += by_items;
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_string(tool->result, "suite", suites[s].name);
        grq_json_put_u64(tool->result, "items", suites[s].n_items);
        grq_json_put_f64(tool->result, "seconds", seconds);
        grq_json_put_f64(tool->result, "seconds_item_by_item", by_items);
        grq_json_end_object(tool->result);
        if (!tool->json)
            printf("%-9s %6zu  %20.2f  %25.1f   (sd of its replicates %.5f)\n", suites[s].name, suites[s].n_items,
                   seconds, by_items, spread);
    }
    grq_json_end_array(tool->result);
    grq_json_put_f64(tool->result, "seconds", total);
    grq_json_put_f64(tool->result, "seconds_item_by_item", total_items);
    grq_json_put_f64(tool->result, "ratio", total_items / total);
    if (st == GRQ_OK && !tool->json)
        printf("all %d     %23.2f  %25.1f   ratio %.0f\n", N_SUITES * PER_SUITE, total, total_items,
               total_items / total);
    return st;
}
