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
