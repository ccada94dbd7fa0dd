#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats_internal.h"

enum { DIGIT_BITS = 11, N_DIGITS = 6, N_BUCKETS = 1 << DIGIT_BITS };

typedef struct {
    uint64_t key;
    uint32_t index;
} keyed;

void *grq_stats_array(size_t n, size_t item_bytes, const char *what, grq_error *err)
{
    void *array = calloc(n ? n : 1, item_bytes); /* calloc refuses products that overflow */
    if (!array) grq_fail(err, GRQ_E_NOMEM, "no memory for %zu %s", n, what);
    return array;
}

/* Bits that compare as unsigned integers the way the values compare; +0 and -0 are one value. */
static uint64_t sortable_bits(double x)
{
    uint64_t bits;
    const double canonical = x + 0.0; /* -0 + 0 = +0 */
    memcpy(&bits, &canonical, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* One stable counting pass; tells whether it moved anything. */
static bool distribute(const keyed *from, keyed *to, size_t n, const size_t *counts, unsigned shift)
{
    size_t start[N_BUCKETS], sum = 0;
    for (size_t b = 0; b < N_BUCKETS; b++) {
        if (counts[b] == n) return false; /* all keys agree in this digit */
        start[b] = sum;
        sum += counts[b];
    }
    for (size_t i = 0; i < n; i++) to[start[from[i].key >> shift & (N_BUCKETS - 1)]++] = from[i];
    return true;
}

static grq_status sort_keys(keyed *items, size_t n, uint32_t *order, grq_error *err)
{
    keyed *other = grq_stats_array(n, sizeof *other, "sorted values", err);
    size_t(*counts)[N_BUCKETS] = grq_stats_array(N_DIGITS, sizeof *counts, "digit counts", err);
    const bool ready = other && counts;
    keyed *from = items, *to = other;
    if (ready) {
        for (size_t i = 0; i < n; i++)
            for (unsigned d = 0; d < N_DIGITS; d++) counts[d][items[i].key >> d * DIGIT_BITS & (N_BUCKETS - 1)]++;
        for (unsigned d = 0; d < N_DIGITS; d++)
            if (distribute(from, to, n, counts[d], d * DIGIT_BITS)) {
                keyed *const swap = from;
                from = to;
                to = swap;
            }
        for (size_t i = 0; i < n; i++) order[i] = from[i].index;
    }
    free(counts);
    free(other);
    return ready ? GRQ_OK : GRQ_E_NOMEM;
}

static grq_status check_count(size_t n, grq_error *err)
{
    if (n <= UINT32_MAX) return GRQ_OK;
    return grq_fail(err, GRQ_E_USAGE, "%zu values are too many to rank; the limit is %u", n, UINT32_MAX);
}

static grq_status order_by(const double *x, size_t n, bool descending, uint32_t *order, grq_error *err)
{
    grq_status st = check_count(n, err);
    if (st != GRQ_OK) return st;
    keyed *items = grq_stats_array(n, sizeof *items, "values to rank", err);
    if (!items) return GRQ_E_NOMEM;
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        if (isnan(x[i])) st = grq_fail(err, GRQ_E_DATA, "value %zu is NaN and has no rank", i);
        const uint64_t key = sortable_bits(x[i]);
        items[i] = (keyed){ descending ? ~key : key, (uint32_t)i };
    }
    if (st == GRQ_OK && n) st = sort_keys(items, n, order, err);
    free(items);
    return st;
}

grq_status grq_stable_order(const double *x, size_t n, uint32_t *order, grq_error *err)
{
    return order_by(x, n, false, order, err);
}

grq_status grq_stable_order_descending(const double *x, size_t n, uint32_t *order, grq_error *err)
{
    return order_by(x, n, true, order, err);
}

grq_status grq_stable_order_u64(const uint64_t *x, size_t n, uint32_t *order, grq_error *err)
{
    grq_status st = check_count(n, err);
    if (st != GRQ_OK) return st;
    keyed *items = grq_stats_array(n, sizeof *items, "values to sort", err);
    if (!items) return GRQ_E_NOMEM;
    for (size_t i = 0; i < n; i++) items[i] = (keyed){ x[i], (uint32_t)i };
    if (n) st = sort_keys(items, n, order, err);
    free(items);
    return st;
}

grq_status grq_ranks(const double *x, size_t n, double *ranks, grq_error *err)
{
    uint32_t *order = grq_stats_array(n, sizeof *order, "ranks", err);
    if (!order) return GRQ_E_NOMEM;
    const grq_status st = grq_stable_order(x, n, order, err);
    for (size_t first = 0; st == GRQ_OK && first < n;) {
        size_t end = first + 1;
        while (end < n && x[order[end]] == x[order[first]]) end++;
        const double mean = ((double)(first + 1) + (double)end) / 2; /* of the ranks first + 1 .. end */
        for (size_t i = first; i < end; i++) ranks[order[i]] = mean;
        first = end;
    }
    free(order);
    return st;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void grq_sort_values(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_value);
}

double grq_quantile_sorted(const double *sorted, size_t n, double p)
{
    if (n == 0) return NAN;
    const double at = p * (double)(n - 1);
    const size_t below = (size_t)at;
    if (below + 1 >= n) return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

void grq_percentile_interval(double *replicates, size_t n, double *low, double *high)
{
    grq_sort_values(replicates, n);
    *low = grq_quantile_sorted(replicates, n, 0.025);
    *high = grq_quantile_sorted(replicates, n, 0.975);
}

grq_status grq_top_share(const double *x, size_t n, const double *fractions, size_t n_fractions, double *shares,
                         grq_error *err)
{
    for (size_t k = 0; k < n_fractions; k++)
        if (!(fractions[k] >= 0 && fractions[k] <= 1))
            return grq_fail(err, GRQ_E_USAGE, "fraction %g is outside 0 to 1", fractions[k]);
    for (size_t i = 0; i < n; i++)
        if (!(x[i] >= 0) || isinf(x[i]))
            return grq_fail(err, GRQ_E_DATA, "value %zu is %g; shares of a total need finite values of at least 0", i,
                            x[i]);
    uint32_t *order = grq_stats_array(n, sizeof *order, "values", err);
    double *held = grq_stats_array(n + 1, sizeof *held, "cumulative shares", err); /* by the i largest values */
    grq_status st = order && held ? GRQ_OK : GRQ_E_NOMEM;
    if (st == GRQ_OK) st = grq_stable_order_descending(x, n, order, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) held[i + 1] = held[i] + x[order[i]];
    for (size_t k = 0; st == GRQ_OK && k < n_fractions; k++) {
        const double at = fractions[k] * (double)n;
        const size_t below = (size_t)at < n ? (size_t)at : n;
        const double next = below < n ? held[below + 1] : held[n];
        shares[k] = held[n] > 0 ? (held[below] + (at - (double)below) * (next - held[below])) / held[n] : NAN;
    }
    free(held);
    free(order);
    return st;
}
