/* The sign-flip permutation test of paired differences. Source: specs/evaluation-protocols.md 7.3. */
#include <inttypes.h>
#include <math.h>

#include "gaterq/rng.h"
#include "stats/stats_internal.h"

enum { MOST_ENUMERATED = 20 };

/* Sums that differ by rounding alone count as ties with the observed one. */
static const double TIE = 1e-12;

static bool as_far(double sum, double observed)
{
    return fabs(sum) >= observed - TIE;
}

/* All 2^n sign vectors, by Gray code: one sign changes from each to the next. Every 2^10 steps the sum is taken anew,
 * so that rounding does not pile up. */
static double enumerate(const double *d, size_t n, double observed)
{
    const uint64_t n_vectors = UINT64_C(1) << n;
    uint64_t n_as_far = 0, flipped = 0;
    double sum = 0;
    for (uint64_t v = 0; v < n_vectors; v++) {
        const uint64_t gray = v ^ v >> 1, changed = gray ^ flipped;
        flipped = gray;
        if (v % 1024 == 0) {
            sum = 0;
            for (size_t i = 0; i < n; i++) sum += gray >> i & 1 ? -d[i] : d[i];
        } else {
            const size_t i = (size_t)__builtin_ctzll(changed);
            sum += gray >> i & 1 ? -2 * d[i] : 2 * d[i];
        }
        n_as_far += as_far(sum, observed);
    }
    return (double)n_as_far / (double)n_vectors;
}

grq_status grq_sign_flip(const double *differences, size_t n, uint32_t n_resamples, uint64_t seed, double *p,
                         grq_error *err)
{
    double observed = 0;
    *p = NAN;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(differences[i]))
            return grq_fail(err, GRQ_E_DATA, "the difference of item %zu is %g", i, differences[i]);
        observed += differences[i];
    }
    observed = fabs(observed);
    if (n <= MOST_ENUMERATED) {
        *p = n ? enumerate(differences, n, observed) : 1;
        return GRQ_OK;
    }
    if (n_resamples == 0) return grq_fail(err, GRQ_E_USAGE, "%zu differences need resamples to flip signs", n);
    grq_rng rng;
    uint64_t n_as_far = 0, bits = 0;
    grq_rng_seed_for(&rng, seed, "sign flips");
    for (uint32_t r = 0; r < n_resamples; r++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            if (i % 64 == 0) bits = grq_rng_next(&rng);
            sum += bits >> i % 64 & 1 ? -differences[i] : differences[i];
        }
        n_as_far += as_far(sum, observed);
    }
    *p = (1 + (double)n_as_far) / (1 + (double)n_resamples);
    return GRQ_OK;
}
