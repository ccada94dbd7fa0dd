/* Two systems on the same items: McNemar's tests and the paired bootstrap. Source: specs/evaluation-protocols.md 7. */
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sf_gamma.h>
#include <gsl/gsl_sf_log.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gaterq/rng.h"
#include "stats/stats_internal.h"

/* ---- binomial(m, 1/2): accurate to about 1e-13 whatever m, where GSL's own tail is NaN from 2 million on ---- */

/* k ln(k / mu) + mu - k without cancellation; mu > 0. */
static double deviance(double k, double mu)
{
    return k > 0 ? -k * gsl_sf_log_1plusx_mx((mu - k) / k) : mu;
}

/* ln(n!) minus Stirling's approximation. */
static double stirling_error(double n)
{
    return log(gsl_sf_gammastar(n));
}

/* P(X = k), X ~ Binomial(m, 1/2), by Loader's saddle point (2000): no difference of large logarithms. */
static double half_binomial(double k, double m)
{
    if (k == 0 || k == m) return exp(-m * M_LN2);
    const double correction = stirling_error(m) - stirling_error(k) - stirling_error(m - k);
    const double exponent = correction - deviance(k, m / 2) - deviance(m - k, m / 2);
    return exp(exponent + 0.5 * log(m / (2 * M_PI * k * (m - k)))); /* one exp: tiny values stay denormal, not 0 */
}

/* P(X <= k) / P(X = k) for k < m / 2: terms fall at least as fast as a normal density, so about sqrt(m) of them count.
 */
static double tail_ratio(double k, double m)
{
    double term = 1, sum = 1;
    for (double i = 0; i < k && term > 1e-18 * sum; i++) {
        term *= (k - i) / (m - k + 1 + i);
        sum += term;
    }
    return sum;
}

double grq_mcnemar_exact(uint64_t only_a, uint64_t only_b)
{
    if (only_a == only_b) return 1;
    const double k = (double)(only_a < only_b ? only_a : only_b), m = (double)only_a + (double)only_b;
    const double p = 2 * half_binomial(k, m) * tail_ratio(k, m);
    return p < 1 ? p : 1;
}

double grq_mcnemar_mid_p(uint64_t only_a, uint64_t only_b)
{
    const double k = (double)(only_a < only_b ? only_a : only_b), m = (double)only_a + (double)only_b;
    if (m == 0) return 1;
    if (only_a == only_b) return 1 - 0.5 * half_binomial(k, m);
    return 2 * half_binomial(k, m) * (tail_ratio(k, m) - 0.5);
}

grq_interval grq_wilson(uint64_t k, uint64_t n)
{
    if (n == 0 || k > n) return (grq_interval){ NAN, NAN, NAN };
    const double z = 1.959963984540054; /* 97.5 % point of the normal distribution */
    const double total = (double)n, p = (double)k / total, z2n = z * z / total;
    const double centre = (p + z2n / 2) / (1 + z2n);
    const double half = z * sqrt(p * (1 - p) / total + z2n / (4 * total)) / (1 + z2n);
    return (grq_interval){ p, k == 0 ? 0 : centre - half, k == n ? 1 : centre + half };
}

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

static const gsl_rng_type gsl_view_of_grq_rng = { "grq_rng",  UINT32_MAX,  0,         sizeof(grq_rng),
                                                  no_seeding, get_32_bits, get_double };

/* Items drawn one by one give multinomial counts of the three outcomes; one draw of the counts is the same thing. */
static void bootstrap_items(const grq_paired *p, uint32_t n_resamples, grq_rng *rng, double *replicates)
{
    const gsl_rng generator = { &gsl_view_of_grq_rng, rng };
    const double weights[3] = { (double)p->only_a, (double)p->only_b, (double)(p->both + p->neither) };
    for (uint32_t r = 0; r < n_resamples; r++) {
        unsigned counts[3];
        gsl_ran_multinomial(&generator, 3, (unsigned)p->n, weights, counts);
        replicates[r] = ((double)counts[0] - (double)counts[1]) / (double)p->n;
    }
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

static grq_status bootstrap_interval(const bool *a, const bool *b, const uint32_t *cluster, size_t n,
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
        if (st == GRQ_OK) bootstrap_clusters(clusters, n_used, n_resamples, &rng, replicates);
    } else if (st == GRQ_OK) {
        bootstrap_items(out, n_resamples, &rng, replicates);
    }
    if (st == GRQ_OK) grq_percentile_interval(replicates, n_resamples, &out->low, &out->high);
    free(clusters);
    free(replicates);
    return st;
}

grq_status grq_paired_compare(const bool *a, const bool *b, const uint32_t *cluster, size_t n, uint32_t n_resamples,
                              uint64_t seed, grq_paired *out, grq_error *err)
{
    *out = (grq_paired){ .n = n, .difference = NAN, .low = NAN, .high = NAN };
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
    if (n == 0) return GRQ_OK;
    out->difference = ((double)out->only_a - (double)out->only_b) / (double)n;
    return n_resamples ? bootstrap_interval(a, b, cluster, n, n_resamples, seed, out, err) : GRQ_OK;
}
