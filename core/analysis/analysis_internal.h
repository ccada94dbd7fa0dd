/* core/analysis/analysis_internal.h - what the analyses share: sequences and rows as dense numbers. */
#ifndef GATERQ_ANALYSIS_INTERNAL_H
#define GATERQ_ANALYSIS_INTERNAL_H

#include "gaterq/analysis.h"

/* Numbers the trace's sequences 0, 1, ... in the order they come: cluster (n_positions). Caller frees *cluster. */
grq_status grq_sequence_clusters(const grq_trace *trace, uint32_t **cluster, uint32_t *n_clusters, grq_error *err);

/* Distinct rows numbered 0, 1, ... by ascending row number. dense (n), caller's. */
grq_status grq_dense_rows(const uint64_t *rows, size_t n, uint32_t *dense, uint32_t *n_rows, grq_error *err);

/* Over distinct rows: mean of `energy` over a row's look-ups against `count`, which all look-ups of a row share.
 * Spearman and, with log(1 + count), Pearson; `pearson` may be NULL. Rows are exchangeable, so the bootstrap draws
 * fixed random groups of them: the same interval as drawing rows, at a cost that does not grow with their number. */
grq_status grq_row_correlations(const uint64_t *rows, const double *energy, const double *count, size_t n,
                                uint32_t n_resamples, uint64_t seed, uint64_t *n_rows, grq_interval *spearman,
                                grq_interval *pearson, grq_error *err);

#endif
