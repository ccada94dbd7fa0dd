/* Quartiles of popularity. */
#include <math.h>
#include <stdlib.h>

#include "gaterq/facts.h"

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Exact where both neighbours are equal, so that no tie falls beside its own cut point. */
static double quantile(const double *sorted, size_t n, double p)
{
    const double at = p * (double)(n - 1);
    const size_t low = (size_t)at;
    return low + 1 < n ? sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low]) : sorted[n - 1];
}

grq_status grq_popularity_quartiles(const double *popularity, size_t n, uint32_t *quartile, double *cuts,
                                    grq_error *err)
{
    double *sorted = malloc((n + 1) * sizeof *sorted), cut[GRQ_N_QUARTILES - 1] = { NAN, NAN, NAN };
    if (!sorted) return grq_fail(err, GRQ_E_NOMEM, "no memory for the quartiles of %zu popularities", n);
    size_t known = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(popularity[i])) sorted[known++] = popularity[i];
    qsort(sorted, known, sizeof *sorted, by_value);
    for (size_t k = 0; known && k < GRQ_N_QUARTILES - 1; k++)
        cut[k] = quantile(sorted, known, (double)(k + 1) / GRQ_N_QUARTILES);
    for (size_t i = 0; i < n; i++) {
        quartile[i] = isnan(popularity[i]) ? GRQ_N_QUARTILES : 0;
        for (size_t k = 0; k < GRQ_N_QUARTILES - 1; k++) quartile[i] += popularity[i] > cut[k];
    }
    for (size_t k = 0; cuts && k < GRQ_N_QUARTILES - 1; k++) cuts[k] = cut[k];
    free(sorted);
    return GRQ_OK;
}
