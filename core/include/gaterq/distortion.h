/* gaterq/distortion.h - how far coded rows are from the rows they stand for. Source: specs/encoders.md section 0. */
#ifndef GATERQ_DISTORTION_H
#define GATERQ_DISTORTION_H

#include "gaterq/codec.h"
#include "gaterq/table.h"

/* Which rows are looked at, a row as often as it is listed; NULL stands for every row once. */
typedef struct {
    uint64_t n;
    const int64_t *rows;   /* (n) */
    const double *weights; /* (n) non-negative, as gate energy times head gain of a look-up; NULL: none */
} grq_row_sample;

/* Per depth d, x a row, y what it decodes to. Zero rows have no relative error: they are left out, and counted. */
typedef struct {
    uint64_t n_rows, n_zero_rows, n_wrong_zero_rows; /* the last: that decode to something else */
    double relative_mse[GRQ_MAX_STAGES];             /* mean of ||x - y||^2 / ||x||^2 */
    double sign_mse[GRQ_MAX_STAGES];     /* the same for the plainest code: signs, times the mean magnitude of what is
                                          * left over, not rounded */
    double shuffled_mse[GRQ_MAX_STAGES]; /* the same with the codes of the row before in the sample: what codes of
                                          * another row give. NaN when there is one row */
    double weighted_mse[GRQ_MAX_STAGES]; /* sum of w ||x - y||^2 / sum of w ||x||^2; NaN without weights */
} grq_distortion;

/* The table must be the coded one. Same result for any number of threads. */
grq_status grq_codes_distortion(const grq_codes *codes, const grq_table *table, const grq_row_sample *sample,
                                uint32_t n_threads, const grq_progress *progress, grq_distortion *out, grq_error *err);

/* Whether the first, a middle and the last block of rows have the digests that the coded ones had. Quick;
 * grq_codes_verify looks at all. */
grq_status grq_codes_same_source(const grq_codes *codes, const grq_table *table, bool *same, grq_error *err);

#endif
