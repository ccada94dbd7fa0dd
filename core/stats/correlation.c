/* Correlations with a cluster bootstrap. The replicates never touch the points again: each cluster is reduced once to
 * (n, sx, sy, sxx, syy, sxy), so a replicate costs one draw and six additions per cluster. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gaterq/rng.h"
#include "stats/stats_internal.h"

typedef struct {
    double n, sx, sy, sxx, syy, sxy; /* of values centred and scaled over all points, so that nothing cancels */
} moments;

/* Below this share of its raw second moment a variance is rounding noise: the input is constant. */
static const double constant_limit = 1e-12;

static double correlation(const moments *m)
{
    const double vx = m->sxx - m->sx * m->sx / m->n, vy = m->syy - m->sy * m->sy / m->n;
    if (!(vx > constant_limit * m->sxx) || !(vy > constant_limit * m->syy)) return NAN;
    const double r = (m->sxy - m->sx * m->sy / m->n) / sqrt(vx) / sqrt(vy);
    return r < -1 ? -1 : r > 1 ? 1 : r; /* rounding may pass 1 by an ulp or two */
}

static void add_moments(moments *to, const moments *from)
{
    to->n += from->n;
    to->sx += from->sx;
    to->sy += from->sy;
    to->sxx += from->sxx;
    to->syy += from->syy;
    to->sxy += from->sxy;
}

/* Mean and largest deviation. The mean is corrected once by the mean of its own residuals. */
static grq_status centre_and_scale(const char *name, const double *x, size_t n, double *mean, double *scale,
                                   grq_error *err)
{
    double largest = 0, sum = 0, residual = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return grq_fail(err, GRQ_E_DATA, "%s value %zu is %g; a correlation needs finite values", name, i, x[i]);
        if (fabs(x[i]) > largest) largest = fabs(x[i]);
    }
    const double unit = largest > 0 ? largest : 1; /* keeps the sums away from overflow */
    for (size_t i = 0; i < n; i++) sum += x[i] / unit;
    const double first = sum / (double)n;
    for (size_t i = 0; i < n; i++) residual += x[i] / unit - first;
    *mean = (first + residual / (double)n) * unit;
    *scale = 0;
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i] - *mean) > *scale) *scale = fabs(x[i] - *mean);
    return GRQ_OK;
}

static bool is_constant(const double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (x[i] != x[0]) return false;
    return true;
}

/* Per-cluster moments, empty clusters squeezed out: *n_used of them hold points. */
static grq_status cluster_moments(const double *x, const double *y, const uint32_t *cluster, size_t n,
                                  uint32_t n_clusters, moments *per_cluster, size_t *n_used, grq_error *err)
{
    double mean_x, mean_y, scale_x, scale_y;
    grq_status st = centre_and_scale("x", x, n, &mean_x, &scale_x, err);
    if (st == GRQ_OK) st = centre_and_scale("y", y, n, &mean_y, &scale_y, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < n; i++) {
        const size_t c = cluster ? cluster[i] : i;
        if (cluster && c >= n_clusters)
            return grq_fail(err, GRQ_E_DATA, "point %zu is in cluster %zu, but there are %" PRIu32, i, c, n_clusters);
        const double dx = (x[i] - mean_x) / scale_x, dy = (y[i] - mean_y) / scale_y;
        const moments point = { 1, dx, dy, dx * dx, dy * dy, dx * dy };
        add_moments(&per_cluster[c], &point);
    }
    const size_t n_all = cluster ? n_clusters : n;
    *n_used = 0;
    for (size_t c = 0; c < n_all; c++)
        if (per_cluster[c].n > 0) per_cluster[(*n_used)++] = per_cluster[c];
    return GRQ_OK;
}

/* Replicates in which an input came out constant have no correlation and are left out. */
static grq_status bootstrap(const moments *clusters, size_t n_clusters, uint32_t n_resamples, uint64_t seed,
                            grq_interval *out, grq_error *err)
{
    if (n_resamples == 0 || n_clusters < 2) return GRQ_OK; /* one cluster says nothing about the spread of clusters */
    double *replicates = grq_stats_array(n_resamples, sizeof *replicates, "bootstrap replicates", err);
    if (!replicates) return GRQ_E_NOMEM;
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "bootstrap");
    size_t n = 0;
    for (uint32_t r = 0; r < n_resamples; r++) {
        moments sum = { 0 };
        for (size_t c = 0; c < n_clusters; c++) add_moments(&sum, &clusters[grq_rng_below(&rng, n_clusters)]);
        const double value = correlation(&sum);
        if (!isnan(value)) replicates[n++] = value;
    }
    grq_percentile_interval(replicates, n, &out->low, &out->high);
    free(replicates);
    return GRQ_OK;
}

grq_status grq_pearson(const double *x, const double *y, const uint32_t *cluster, size_t n, uint32_t n_clusters,
                       uint32_t n_resamples, uint64_t seed, grq_interval *out, grq_error *err)
{
    *out = (grq_interval){ NAN, NAN, NAN };
    if (n < 2 || is_constant(x, n) || is_constant(y, n)) return GRQ_OK;
    const size_t n_all = cluster ? n_clusters : n;
    moments *clusters = grq_stats_array(n_all, sizeof *clusters, "clusters", err);
    if (!clusters) return GRQ_E_NOMEM;
    size_t n_used = 0;
    grq_status st = cluster_moments(x, y, cluster, n, n_clusters, clusters, &n_used, err);
    if (st == GRQ_OK) {
        moments all = { 0 };
        for (size_t c = 0; c < n_used; c++) add_moments(&all, &clusters[c]);
        out->value = correlation(&all);
        if (!isnan(out->value)) st = bootstrap(clusters, n_used, n_resamples, seed, out, err);
    }
    free(clusters);
    return st;
}

grq_status grq_spearman(const double *x, const double *y, const uint32_t *cluster, size_t n, uint32_t n_clusters,
                        uint32_t n_resamples, uint64_t seed, grq_interval *out, grq_error *err)
{
    *out = (grq_interval){ NAN, NAN, NAN };
    double *rank_x = grq_stats_array(n, sizeof *rank_x, "ranks", err);
    double *rank_y = grq_stats_array(n, sizeof *rank_y, "ranks", err);
    grq_status st = rank_x && rank_y ? GRQ_OK : GRQ_E_NOMEM;
    if (st == GRQ_OK) st = grq_ranks(x, n, rank_x, err);
    if (st == GRQ_OK) st = grq_ranks(y, n, rank_y, err);
    if (st == GRQ_OK) st = grq_pearson(rank_x, rank_y, cluster, n, n_clusters, n_resamples, seed, out, err);
    free(rank_x);
    free(rank_y);
    return st;
}
