/* Adjusted p-values of a family of tests. Source: specs/evaluation-protocols.md 7.4. */
#include <stdlib.h>

#include "stats/stats_internal.h"

static grq_status sorted_family(const double *p, size_t n, uint32_t **order, grq_error *err)
{
    *order = NULL;
    for (size_t i = 0; i < n; i++)
        if (!(p[i] >= 0 && p[i] <= 1)) return grq_fail(err, GRQ_E_DATA, "p-value %zu is %g, outside 0 to 1", i, p[i]);
    *order = grq_stats_array(n, sizeof **order, "p-values", err);
    return *order ? grq_stable_order(p, n, *order, err) : GRQ_E_NOMEM;
}

grq_status grq_holm(const double *p, size_t n, double *adjusted, grq_error *err)
{
    uint32_t *order;
    const grq_status st = sorted_family(p, n, &order, err);
    double largest = 0;
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        const double scaled = (double)(n - i) * p[order[i]];
        if (scaled > largest) largest = scaled;
        adjusted[order[i]] = largest < 1 ? largest : 1;
    }
    free(order);
    return st;
}

grq_status grq_benjamini_hochberg(const double *p, size_t n, double *adjusted, grq_error *err)
{
    uint32_t *order;
    const grq_status st = sorted_family(p, n, &order, err);
    double smallest = 1;
    for (size_t i = n; st == GRQ_OK && i-- > 0;) {
        const double scaled = p[order[i]] * (double)n / (double)(i + 1);
        if (scaled < smallest) smallest = scaled;
        adjusted[order[i]] = smallest;
    }
    free(order);
    return st;
}

grq_status grq_hochberg(const double *p, size_t n, double *adjusted, grq_error *err)
{
    uint32_t *order;
    const grq_status st = sorted_family(p, n, &order, err);
    double smallest = 1;
    for (size_t i = n; st == GRQ_OK && i-- > 0;) {
        const double scaled = (double)(n - i) * p[order[i]];
        if (scaled < smallest) smallest = scaled;
        adjusted[order[i]] = smallest;
    }
    free(order);
    return st;
}

grq_status grq_benjamini_yekutieli(const double *p, size_t n, double *adjusted, grq_error *err)
{
    double harmonic = 0, smallest = 1;
    uint32_t *order;
    const grq_status st = sorted_family(p, n, &order, err);
    for (size_t k = 1; k <= n; k++) harmonic += 1 / (double)k;
    for (size_t i = n; st == GRQ_OK && i-- > 0;) {
        const double scaled = harmonic * p[order[i]] * (double)n / (double)(i + 1);
        if (scaled < smallest) smallest = scaled;
        adjusted[order[i]] = smallest;
    }
    free(order);
    return st;
}

grq_status grq_bonferroni(const double *p, size_t n, double *adjusted, grq_error *err)
{
    uint32_t *order;
    const grq_status st = sorted_family(p, n, &order, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) adjusted[i] = (double)n * p[i] < 1 ? (double)n * p[i] : 1;
    free(order);
    return st;
}

/* Wright's algorithm (Biometrics 1992, 48:1005); sorted and work (n) hold values by rank. */
static void hommel_ranks(const double *sorted, size_t n, double *work)
{
    for (size_t m = n; m > 1; m--) {
        double least = 1;
        for (size_t i = n - m + 1; i < n; i++) { /* the last m - 1 ranks */
            const double c = (double)m * sorted[i] / (double)(m + i - n + 1);
            if (c < least) least = c;
        }
        for (size_t i = 0; i < n; i++) {
            const double floor = i + m > n ? least : (double)m * sorted[i] < least ? (double)m * sorted[i] : least;
            if (work[i] < floor) work[i] = floor;
        }
    }
}

grq_status grq_hommel(const double *p, size_t n, double *adjusted, grq_error *err)
{
    uint32_t *order;
    double *sorted = grq_stats_array(n, sizeof *sorted, "p-values", err);
    double *work = grq_stats_array(n, sizeof *work, "p-values", err);
    grq_status st = sorted && work ? sorted_family(p, n, &order, err) : GRQ_E_NOMEM;
    if (st == GRQ_OK) {
        for (size_t i = 0; i < n; i++) work[i] = sorted[i] = p[order[i]];
        hommel_ranks(sorted, n, work);
        for (size_t i = 0; i < n; i++) adjusted[order[i]] = work[i] < 1 ? work[i] : 1;
        free(order);
    }
    free(sorted);
    free(work);
    return st;
}
