/* Two systems on the same items: counts, tests, and the paired bootstrap with its percentile and BCa intervals. Source:
 * specs/evaluation-protocols.md 7.2; BCa: Efron (1987). */
#include <gsl/gsl_randist.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "stats/resample.h"

/* ---- bootstrap of the difference ---- */

/* Our generator behind GSL's interface, so that GSL's samplers draw from named, seeded streams. */
static void no_seeding(void *state, unsigned long seed)
{
    (void)state, (void)seed;
}

static unsigned long get_32_bits(void *state)
{
    return (unsigned long)(grq_rng_next(state) >> 32);
}

static double get_double(void *state)
{
    return grq_rng_uniform(state);
}

const gsl_rng_type grq_gsl_view = { "grq_rng", UINT32_MAX, 0, sizeof(grq_rng), no_seeding, get_32_bits, get_double };

double grq_draw_difference(const gsl_rng *generator, uint64_t only_a, uint64_t only_b, uint64_t n)
{
    const double weights[3] = { (double)only_a, (double)only_b, (double)(n - only_a - only_b) };
    unsigned counts[3];
    gsl_ran_multinomial(generator, 3, (unsigned)n, weights, counts);
    return ((double)counts[0] - (double)counts[1]) / (double)n;
}

static void bootstrap_items(const grq_paired *p, uint32_t n_resamples, grq_rng *rng, double *replicates)
{
    const gsl_rng generator = { &grq_gsl_view, rng };
    for (uint32_t r = 0; r < n_resamples; r++)
        replicates[r] = grq_draw_difference(&generator, p->only_a, p->only_b, p->n);
}

typedef struct {
    int64_t n, difference; /* items, and only_a - only_b among them */
} paired_cluster;

static grq_status collect_clusters(const bool *a, const bool *b, const uint32_t *cluster, size_t n, paired_cluster *out,
                                   size_t *n_used, grq_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (cluster[i] >= n)
            return grq_fail(err, GRQ_E_DATA,
                            "item %zu is in cluster %" PRIu32 "; clusters of %zu items are numbered below it", i,
                            cluster[i], n);
        out[cluster[i]].n++;
        out[cluster[i]].difference += (int)a[i] - (int)b[i];
    }
    *n_used = 0;
    for (size_t c = 0; c < n; c++)
        if (out[c].n) out[(*n_used)++] = out[c];
    return GRQ_OK;
}

static void bootstrap_clusters(const paired_cluster *clusters, size_t n_clusters, uint32_t n_resamples, grq_rng *rng,
                               double *replicates)
{
    for (uint32_t r = 0; r < n_resamples; r++) {
        int64_t n = 0, difference = 0;
        for (size_t k = 0; k < n_clusters; k++) {
            const paired_cluster *c = &clusters[grq_rng_below(rng, n_clusters)];
            n += c->n;
            difference += c->difference;
        }
        replicates[r] = (double)difference / (double)n;
    }
}

/* Skewness of the jackknife over six: what BCa calls acceleration. Leaving out a unit of value d moves the mean by
 * (mean - d) / (n - 1), so the jackknife's third and second moments are those of the units. */
static double item_acceleration(const grq_paired *p)
{
    const double counts[3] = { (double)p->only_a, (double)p->only_b, (double)(p->both + p->neither) };
    static const double values[3] = { 1, -1, 0 };
    double squares = 0, cubes = 0;
    for (int k = 0; k < 3; k++) {
        const double away = values[k] - p->difference;
        squares += counts[k] * away * away;
        cubes += counts[k] * away * away * away;
    }
    return squares > 0 ? cubes / (6 * pow(squares, 1.5)) : 0;
}

/* The same over clusters of unequal size, of the ratio sum of differences / sum of items. */
static double cluster_acceleration(const paired_cluster *clusters, size_t n_clusters, const grq_paired *p)
{
    const double n = (double)p->n, sum = (double)p->only_a - (double)p->only_b;
    double mean = 0, squares = 0, cubes = 0;
    for (size_t c = 0; c < n_clusters; c++)
        mean += (sum - (double)clusters[c].difference) / (n - (double)clusters[c].n) / (double)n_clusters;
    for (size_t c = 0; c < n_clusters; c++) {
        const double away = mean - (sum - (double)clusters[c].difference) / (n - (double)clusters[c].n);
        squares += away * away;
        cubes += away * away * away;
    }
    return squares > 0 && isfinite(squares) ? cubes / (6 * pow(squares, 1.5)) : 0;
}

double grq_bootstrap_p(const double *replicates, size_t n, double observed)
{
    static const double TIE = 1e-12; /* differences of whole counts that are equal but for rounding */
    size_t as_far = 0;
    for (size_t i = 0; i < n; i++) as_far += fabs(replicates[i] - observed) >= fabs(observed) - TIE;
    return n ? (1 + (double)as_far) / (1 + (double)n) : NAN;
}

static void take_intervals(double *replicates, uint32_t n_resamples, double acceleration, grq_paired *out)
{
    out->p_bootstrap = grq_bootstrap_p(replicates, n_resamples, out->difference);
    grq_percentile_interval(replicates, n_resamples, &out->low, &out->high); /* sorts them */
    grq_bca_interval(replicates, n_resamples, out->difference, acceleration, &out->bca_low, &out->bca_high);
}

static grq_status bootstrap_intervals(const bool *a, const bool *b, const uint32_t *cluster, size_t n,
                                      uint32_t n_resamples, uint64_t seed, grq_paired *out, grq_error *err)
{
    double *replicates = grq_stats_array(n_resamples, sizeof *replicates, "bootstrap replicates", err);
    paired_cluster *clusters = grq_stats_array(cluster ? n : 0, sizeof *clusters, "clusters", err);
    grq_status st = replicates && clusters ? GRQ_OK : GRQ_E_NOMEM;
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "paired bootstrap");
    if (st == GRQ_OK && cluster) {
        size_t n_used = 0;
        st = collect_clusters(a, b, cluster, n, clusters, &n_used, err);
        if (st == GRQ_OK) {
            bootstrap_clusters(clusters, n_used, n_resamples, &rng, replicates);
            take_intervals(replicates, n_resamples, cluster_acceleration(clusters, n_used, out), out);
        }
    } else if (st == GRQ_OK) {
        bootstrap_items(out, n_resamples, &rng, replicates);
        take_intervals(replicates, n_resamples, item_acceleration(out), out);
    }
    free(clusters);
    free(replicates);
    return st;
}

/* Signs of all differences flipped at random: of the discordant items a binomial half goes either way, which is
 * McNemar's exact test by drawing. */
static double flip_signs(const grq_paired *p, uint32_t n_resamples, uint64_t seed)
{
    const uint64_t m = p->only_a + p->only_b;
    const uint64_t observed = p->only_a > p->only_b ? p->only_a - p->only_b : p->only_b - p->only_a;
    uint64_t n_as_far = 0;
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "sign flips");
    const gsl_rng generator = { &grq_gsl_view, &rng };
    for (uint32_t r = 0; r < n_resamples; r++) {
        const uint64_t a = gsl_ran_binomial(&generator, 0.5, (unsigned)m), b = m - a;
        n_as_far += (a > b ? a - b : b - a) >= observed;
    }
    return n_resamples ? (1 + (double)n_as_far) / (1 + (double)n_resamples) : NAN;
}

grq_status grq_paired_compare(const bool *a, const bool *b, const uint32_t *cluster, size_t n, uint32_t n_resamples,
                              uint64_t seed, grq_paired *out, grq_error *err)
{
    *out = (grq_paired){ .n = n, .difference = NAN, .low = NAN, .high = NAN, .bca_low = NAN, .bca_high = NAN };
    out->p_bootstrap = NAN;
    if (n > UINT32_MAX)
        return grq_fail(err, GRQ_E_USAGE, "%zu items are too many to compare; the limit is %u", n, UINT32_MAX);
    uint64_t table[2][2] = { { 0 } };
    for (size_t i = 0; i < n; i++) table[a[i]][b[i]]++;
    out->both = table[1][1];
    out->only_a = table[1][0];
    out->only_b = table[0][1];
    out->neither = table[0][0];
    out->p_exact = grq_mcnemar_exact(out->only_a, out->only_b);
    out->p_mid = grq_mcnemar_mid_p(out->only_a, out->only_b);
    out->p_sign_flip = flip_signs(out, n_resamples, seed);
    out->detectable = grq_mcnemar_detectable(out->only_a, out->only_b, n);
    grq_mcnemar_mid_interval(out->only_a, out->only_b, n, &out->mid_low, &out->mid_high);
    if (n == 0) return GRQ_OK;
    out->difference = ((double)out->only_a - (double)out->only_b) / (double)n;
    return n_resamples ? bootstrap_intervals(a, b, cluster, n, n_resamples, seed, out, err) : GRQ_OK;
}
