/* core/stats/resample.h - what the resampling tests share. */
#ifndef GATERQ_STATS_RESAMPLE_H
#define GATERQ_STATS_RESAMPLE_H

#include <gsl/gsl_rng.h>

#include "gaterq/rng.h"
#include "stats/stats_internal.h"

/* Our generator behind GSL's interface: a gsl_rng { &grq_gsl_view, rng } draws from a named, seeded stream. */
extern const gsl_rng_type grq_gsl_view;

/* One bootstrap replicate of (only_a - only_b) / n. Items drawn one by one give multinomial counts of the three
 * outcomes; one draw of the counts is the same thing. */
double grq_draw_difference(const gsl_rng *generator, uint64_t only_a, uint64_t only_b, uint64_t n);

/* p of replicates under the null, centred; NaN for n = 0. */
double grq_bootstrap_p(const double *replicates, size_t n, double observed);

#endif
