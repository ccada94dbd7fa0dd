/* The bias-corrected and accelerated bootstrap interval. Source: Efron, "Better bootstrap confidence intervals" (1987).
 */
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "stats/stats_internal.h"

/* How far the estimate is from the replicates' median, in normal deviations; replicates equal to it count half, as
 * those of differences of proportions often are. */
static double bias(const double *sorted, size_t n, double estimate)
{
    size_t below = 0, equal = 0;
    for (size_t i = 0; i < n && sorted[i] <= estimate; i++) {
        below += sorted[i] < estimate;
        equal += sorted[i] == estimate;
    }
    const double share = ((double)below + (double)equal / 2) / (double)n;
    return share > 0 && share < 1 ? gsl_cdf_ugaussian_Pinv(share) : NAN;
}

void grq_bca_interval(const double *sorted, size_t n, double estimate, double acceleration, double *low, double *high)
{
    static const double Z = 1.959963984540054;
    const double z0 = n ? bias(sorted, n, estimate) : NAN, a = acceleration;
    double *const ends[] = { low, high };
    for (int i = 0; i < 2; i++) {
        const double z = z0 + (i ? Z : -Z), level = gsl_cdf_ugaussian_P(z0 + z / (1 - a * z));
        *ends[i] = isfinite(level) ? grq_quantile_sorted(sorted, n, level) : NAN;
    }
    /* All replicates on one side (no discordant item, say): nothing to correct. */
    if (isnan(z0) && n) {
        *low = grq_quantile_sorted(sorted, n, 0.025);
        *high = grq_quantile_sorted(sorted, n, 0.975);
    }
}
