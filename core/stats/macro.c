/* The difference of macro averages, with items drawn within strata. Source: specs/evaluation-protocols.md 7.2, 7.5. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "stats/resample.h"

typedef struct {
    uint64_t n, only_a, only_b;
} stratum_counts;

static grq_status collect(const bool *a, const bool *b, const uint32_t *stratum, size_t n, uint32_t n_strata,
                          stratum_counts *out, grq_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (stratum[i] >= n_strata)
            return grq_fail(err, GRQ_E_DATA, "item %zu is in stratum %" PRIu32 ", but there are %" PRIu32, i,
                            stratum[i], n_strata);
        stratum_counts *const s = &out[stratum[i]];
        s->n++;
        s->only_a += a[i] && !b[i];
        s->only_b += b[i] && !a[i];
    }
    for (uint32_t s = 0; s < n_strata; s++)
        if (!out[s].n) return grq_fail(err, GRQ_E_DATA, "stratum %" PRIu32 " has no item", s);
    return GRQ_OK;
}

static double mean_difference(const stratum_counts *strata, uint32_t n_strata)
{
    double sum = 0;
    for (uint32_t s = 0; s < n_strata; s++)
        sum += ((double)strata[s].only_a - (double)strata[s].only_b) / (double)strata[s].n;
    return sum / n_strata;
}

static double draw_mean(const stratum_counts *strata, uint32_t n_strata, const gsl_rng *generator)
{
    double sum = 0;
    for (uint32_t s = 0; s < n_strata; s++)
        sum += grq_draw_difference(generator, strata[s].only_a, strata[s].only_b, strata[s].n);
    return sum / n_strata;
}

/* BCa's acceleration of a stratified mean, from the items' influences (d - mean of the stratum) / n of the stratum
 * (Davison and Hinkley 1997); the number of strata divides out. */
static double acceleration(const stratum_counts *strata, uint32_t n_strata)
{
    double squares = 0, cubes = 0;
    for (uint32_t s = 0; s < n_strata; s++) {
        const double n = (double)strata[s].n, a = (double)strata[s].only_a, b = (double)strata[s].only_b;
        const double counts[3] = { a, b, n - a - b }, values[3] = { 1, -1, 0 };
        for (int k = 0; k < 3; k++) {
            const double influence = (values[k] - (a - b) / n) / n;
            squares += counts[k] * influence * influence;
            cubes += counts[k] * influence * influence * influence;
        }
    }
    return squares > 0 ? cubes / (6 * pow(squares, 1.5)) : 0;
}

grq_status grq_macro_compare(const bool *a, const bool *b, const uint32_t *stratum, size_t n, uint32_t n_strata,
                             uint32_t n_resamples, uint64_t seed, grq_macro *out, grq_error *err)
{
    *out = (grq_macro){ NAN, NAN, NAN, NAN, NAN, NAN };
    if (n > UINT32_MAX)
        return grq_fail(err, GRQ_E_USAGE, "%zu items are too many to compare; the limit is %u", n, UINT32_MAX);
    if (n_strata == 0) return GRQ_OK;
    stratum_counts *strata = grq_stats_array(n_strata, sizeof *strata, "strata", err);
    double *replicates = grq_stats_array(n_resamples, sizeof *replicates, "bootstrap replicates", err);
    grq_status st = strata && replicates ? collect(a, b, stratum, n, n_strata, strata, err) : GRQ_E_NOMEM;
    if (st == GRQ_OK) {
        grq_rng rng;
        grq_rng_seed_for(&rng, seed, "macro bootstrap");
        const gsl_rng generator = { &grq_gsl_view, &rng };
        out->difference = mean_difference(strata, n_strata);
        for (uint32_t r = 0; r < n_resamples; r++) replicates[r] = draw_mean(strata, n_strata, &generator);
        out->p_bootstrap = grq_bootstrap_p(replicates, n_resamples, out->difference);
        grq_percentile_interval(replicates, n_resamples, &out->low, &out->high); /* sorts them */
        grq_bca_interval(replicates, n_resamples, out->difference, acceleration(strata, n_strata), &out->bca_low,
                         &out->bca_high);
    }
    free(strata);
    free(replicates);
    return st;
}
