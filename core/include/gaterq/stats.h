/* gaterq/stats.h - the statistics of the paper: correlations, concentration, paired tests, intervals (GSL underneath
 * where specs/evaluation-protocols.md says it is safe). */
#ifndef GATERQ_STATS_H
#define GATERQ_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/status.h"

typedef struct {
    double value, low, high; /* estimate and interval; NaN when undefined (constant input, no data) */
} grq_interval;

/* Average ranks (1-based) of x; ties share their mean rank. ranks (n). */
grq_status grq_ranks(const double *x, size_t n, double *ranks, grq_error *err);

/* Pearson correlation with a percentile bootstrap interval over clusters (sequences): `cluster` (n) gives each point's
 * cluster, 0 .. n_clusters - 1; whole clusters are drawn. With `n_resamples` 0 the interval is NaN. */
grq_status grq_pearson(const double *x, const double *y, const uint32_t *cluster, size_t n, uint32_t n_clusters,
                       uint32_t n_resamples, uint64_t seed, grq_interval *out, grq_error *err);
/* Spearman: Pearson of average ranks. Ranks are taken once over all points; resampling draws clusters of ranked points
 * (the usual fast form; docs/decisions.md says how it compares with re-ranking). */
grq_status grq_spearman(const double *x, const double *y, const uint32_t *cluster, size_t n, uint32_t n_clusters,
                        uint32_t n_resamples, uint64_t seed, grq_interval *out, grq_error *err);

/* Share of the total held by the largest `fraction` of the values (Lorenz curve read from the top). Values >= 0. */
grq_status grq_top_share(const double *x, size_t n, const double *fractions, size_t n_fractions, double *shares,
                         grq_error *err);

/* Wilson interval of k successes in n, at confidence 0.95. */
grq_interval grq_wilson(uint64_t k, uint64_t n);

typedef struct {
    uint64_t n, both, only_a, only_b, neither;
    double difference;        /* (only_a - only_b) / n */
    double low, high;         /* 95 % percentile bootstrap over clusters (items when cluster is NULL) */
    double bca_low, bca_high; /* the same replicates, bias-corrected and accelerated */
    double mid_low, mid_high; /* differences that mid-p would not reject at 5 %, given the discordant items */
    double p_exact, p_mid;    /* two-sided McNemar: exact and mid-p */
    double p_bootstrap;       /* of the replicates, centred at 0: (1 + #{|r - d| >= |d|}) / (R + 1); NaN without */
    double p_sign_flip;       /* signs flipped at random n_resamples times; NaN without */
    double detectable;        /* difference that so many items, discordant as often, show with 80 % power at 5 %; NaN
                               * when none that they could have */
} grq_paired;

/* a, b: correct or not, item by item (n). `cluster` (n) may be NULL. Exact for any counts (2 million discordant pairs).
 */
grq_status grq_paired_compare(const bool *a, const bool *b, const uint32_t *cluster, size_t n, uint32_t n_resamples,
                              uint64_t seed, grq_paired *out, grq_error *err);
double grq_mcnemar_exact(uint64_t only_a, uint64_t only_b);
double grq_mcnemar_mid_p(uint64_t only_a, uint64_t only_b);
/* One-sided, "A is better": P(X >= only_a), and P(X > only_a) + P(X = only_a) / 2. */
double grq_mcnemar_exact_a_better(uint64_t only_a, uint64_t only_b);
double grq_mcnemar_mid_p_a_better(uint64_t only_a, uint64_t only_b);
/* The mid-p interval of A's share among the discordant items, as a difference over n items; NaN without discordant. */
void grq_mcnemar_mid_interval(uint64_t only_a, uint64_t only_b, uint64_t n, double *low, double *high);
/* Natural logarithms of exact and mid-p: right where p itself is below the smallest double and 0. */
double grq_mcnemar_log_exact(uint64_t only_a, uint64_t only_b);
double grq_mcnemar_log_mid_p(uint64_t only_a, uint64_t only_b);
/* p of the chi-square form, and its statistic where that is not NULL (NaN without discordant items); `corrected`:
 * Edwards', which imitates the exact test. */
double grq_mcnemar_chi_square(uint64_t only_a, uint64_t only_b, bool corrected, double *statistic);
/* Normal 95 % intervals of the difference: Wald's, and Bonett and Price's, which has one more item of each kind and is
 * better where few are discordant. */
grq_interval grq_wald_difference(uint64_t only_a, uint64_t only_b, uint64_t n);
grq_interval grq_bonett_price(uint64_t only_a, uint64_t only_b, uint64_t n);
/* The smallest difference that n items, discordant as often, show with 80 % power at two-sided 5 %; NaN when none that
 * they allow. */
double grq_mcnemar_detectable(uint64_t only_a, uint64_t only_b, uint64_t n);

/* The difference of macro averages: the unweighted mean over strata (CMMLU's subjects) of each stratum's difference.
 * Items are drawn within strata. stratum (n) is below n_strata, and none is empty. */
typedef struct {
    double difference, low, high, bca_low, bca_high, p_bootstrap; /* as in grq_paired */
} grq_macro;
grq_status grq_macro_compare(const bool *a, const bool *b, const uint32_t *stratum, size_t n, uint32_t n_strata,
                             uint32_t n_resamples, uint64_t seed, grq_macro *out, grq_error *err);

/* Two-sided p of paired differences of any kind (n) under random signs: all 2^n for n up to 20, else n_resamples drawn.
 */
grq_status grq_sign_flip(const double *differences, size_t n, uint32_t n_resamples, uint64_t seed, double *p,
                         grq_error *err);

/* Adjusted p-values of a family, in the order given. adjusted (n). Chance of any false claim: Bonferroni and Holm under
 * any dependence, Hochberg and Hommel (O(n^2) time) under positive dependence. Share of false claims:
 * Benjamini-Hochberg under positive dependence, Benjamini-Yekutieli under any. */
grq_status grq_bonferroni(const double *p, size_t n, double *adjusted, grq_error *err);
grq_status grq_holm(const double *p, size_t n, double *adjusted, grq_error *err);
grq_status grq_hochberg(const double *p, size_t n, double *adjusted, grq_error *err);
grq_status grq_hommel(const double *p, size_t n, double *adjusted, grq_error *err);
grq_status grq_benjamini_hochberg(const double *p, size_t n, double *adjusted, grq_error *err);
grq_status grq_benjamini_yekutieli(const double *p, size_t n, double *adjusted, grq_error *err);

#endif
