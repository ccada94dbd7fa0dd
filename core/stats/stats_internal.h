/* core/stats/stats_internal.h - what the statistics share: stable sorting, quantiles, percentile intervals. */
#ifndef GATERQ_STATS_INTERNAL_H
#define GATERQ_STATS_INTERNAL_H

#include "gaterq/stats.h"

/* Indices of x (n <= UINT32_MAX) in ascending order of value, equal values (also -0 and 0) by ascending index. Radix
 * sort: O(n) time, 24 n bytes of scratch. A NaN is an error that names its index. order (n). */
grq_status grq_stable_order(const double *x, size_t n, uint32_t *order, grq_error *err);
/* The same from the largest value down; equal values still by ascending index. */
grq_status grq_stable_order_descending(const double *x, size_t n, uint32_t *order, grq_error *err);
/* The same by unsigned integer, ascending. */
grq_status grq_stable_order_u64(const uint64_t *x, size_t n, uint32_t *order, grq_error *err);

void grq_sort_values(double *x, size_t n);
/* Type-7 quantile (numpy's and GSL's default): linear between order statistics. NaN for n = 0. */
double grq_quantile_sorted(const double *sorted, size_t n, double p);
/* 95 % percentile interval of bootstrap replicates, which are sorted in place. NaN for n = 0. */
void grq_percentile_interval(double *replicates, size_t n, double *low, double *high);

/* 95 % BCa interval of sorted replicates of `estimate`; without any spread the percentile interval. NaN for n = 0. */
void grq_bca_interval(const double *sorted, size_t n, double estimate, double acceleration, double *low, double *high);

/* An array, or NULL and a message that says for what there was no memory. */
void *grq_stats_array(size_t n, size_t item_bytes, const char *what, grq_error *err);

#endif
