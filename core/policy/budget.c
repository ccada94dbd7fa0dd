#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/policy.h"

/* ---- budgets ---- */

/* Plain decimals only: no sign, no hexadecimal, no "nan". */
static grq_status parse_fraction(const char *text, const char **end, double *out, grq_error *err)
{
    char *stop;
    errno = 0;
    *out = strtod(text, &stop);
    const bool decimal = stop > text && strspn(text, "0123456789.eE-") >= (size_t)(stop - text) && *text != '-';
    if (!decimal || errno || !(*out >= 0 && *out <= 1))
        return grq_fail(err, GRQ_E_USAGE, "budget: \"%s\" does not start with a fraction in 0 to 1", text);
    *end = stop;
    return GRQ_OK;
}

grq_status grq_budget_parse(const char *text, grq_budget *out, grq_error *err)
{
    *out = (grq_budget){ 0 };
    for (const char *p = text;;) {
        if (out->n_fractions == GRQ_MAX_STAGES - 1)
            return grq_fail(err, GRQ_E_USAGE, "budget \"%s\": at most %d fractions, for stages 2 and 3", text,
                            GRQ_MAX_STAGES - 1);
        double *fraction = &out->fraction[out->n_fractions];
        const grq_status st = parse_fraction(p, &p, fraction, err);
        if (st != GRQ_OK) return st;
        if (out->n_fractions && *fraction > fraction[-1])
            return grq_fail(
                err, GRQ_E_USAGE,
                "budget \"%s\": stage 3 is read by part of those that read stage 2, so %g may not exceed %g", text,
                *fraction, fraction[-1]);
        out->n_fractions++;
        if (!*p) return GRQ_OK;
        if (*p++ != ',') return grq_fail(err, GRQ_E_USAGE, "budget \"%s\": fractions are separated by one comma", text);
    }
}

size_t grq_budget_count(double fraction, size_t n_lookups)
{
    return (size_t)floor(fraction * (double)n_lookups + 0.5);
}

double grq_budget_bits(const grq_budget *budget, uint32_t row_dim)
{
    double stages = 1;
    for (uint32_t k = 0; k < budget->n_fractions; k++) stages += budget->fraction[k];
    return grq_code_bits_per_value(row_dim) * stages;
}

/* ---- allocation ---- */

typedef struct {
    double score;
    size_t index;
} ranked;

/* Larger scores first, equal ones by lower index: position, then column. A total order, so the result is unique. */
static bool comes_before(ranked a, ranked b)
{
    return a.score > b.score || (a.score == b.score && a.index < b.index);
}

static void swap(ranked *a, ranked *b)
{
    const ranked t = *a;
    *a = *b;
    *b = t;
}

static void median_to_front(ranked *x, size_t low, size_t high)
{
    const size_t middle = low + (high - low) / 2;
    if (comes_before(x[middle], x[low])) swap(&x[middle], &x[low]);
    if (comes_before(x[high], x[low])) swap(&x[high], &x[low]);
    if (comes_before(x[high], x[middle])) swap(&x[high], &x[middle]);
    swap(&x[low], &x[middle]);
}

/* Quickselect: afterwards the first k of x[0..n-1] are its k first in order, themselves in any order. */
static void select_first(ranked *x, size_t n, size_t k)
{
    size_t low = 0, high = n ? n - 1 : 0;
    while (k > low && k <= high) {
        median_to_front(x, low, high);
        const ranked pivot = x[low];
        size_t i = low, j = high + 1;
        for (;;) {
            do i++;
            while (i <= high && comes_before(x[i], pivot));
            do j--;
            while (comes_before(pivot, x[j]));
            if (i >= j) break;
            swap(&x[i], &x[j]);
        }
        swap(&x[low], &x[j]);
        if (j >= k) high = j ? j - 1 : 0;
        if (j < k) low = j + 1;
    }
}

grq_status grq_budget_allocate(const grq_budget *budget, const double *score, size_t n, uint8_t *depth, grq_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(score[i])) return grq_fail(err, GRQ_E_DATA, "look-up %zu of the batch has no score (NaN)", i);
    memset(depth, 1, n);
    if (n == 0 || budget->n_fractions == 0) return GRQ_OK;
    ranked *x = malloc(n * sizeof *x);
    if (!x) return grq_fail(err, GRQ_E_NOMEM, "no memory to rank %zu look-ups", n);
    for (size_t i = 0; i < n; i++) x[i] = (ranked){ score[i], i };
    size_t reach = n; /* deeper stages are chosen among those that read the stage before */
    for (uint32_t k = 0; k < budget->n_fractions; k++) {
        const size_t count = grq_budget_count(budget->fraction[k], n);
        select_first(x, reach, count);
        for (size_t i = 0; i < count; i++) depth[x[i].index] = (uint8_t)(k + 2);
        reach = count;
    }
    free(x);
    return GRQ_OK;
}
