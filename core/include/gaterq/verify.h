/* gaterq/verify.h - is a coded table what it says it is? Checks that trust neither the encoder nor the file. */
#ifndef GATERQ_VERIFY_H
#define GATERQ_VERIFY_H

#include "gaterq/distortion.h"

typedef struct {
    uint64_t n_sample; /* rows decoded and compared, drawn with `seed`; all rows when the table has no more */
    uint64_t seed;
    double limit[GRQ_MAX_STAGES]; /* greatest relative MSE allowed per depth; 0: what grq_verify_factor says */
    uint32_t n_threads;
    const grq_progress *progress;
} grq_verify_options;

typedef struct {
    const char *name; /* "header", "code blocks", "side words", "source", "distortion", "other rows", "zero rows" */
    bool passed;
    char detail[256]; /* what was found, in words */
} grq_verify_check;

enum { GRQ_MAX_VERIFY_CHECKS = 8 };

typedef struct {
    bool passed; /* all checks did */
    size_t n_checks;
    grq_verify_check checks[GRQ_MAX_VERIFY_CHECKS];
    grq_distortion distortion;    /* of the sample */
    double limit[GRQ_MAX_STAGES]; /* that were applied */
} grq_verify_report;

/* Without a limit of the caller's, the relative MSE at each depth may be this factor times what plain signs with the
 * mean magnitude leave on the same rows: 1.25, as trellis codes of 12 bits are up to 1.12 times as bad on rows of 32
 * values (and 0.7 times on rows of 256); 2.05 for signs with the root mean square, which at most doubles their error.
 * Codes of other rows are far beyond. */
double grq_verify_factor(const grq_encoder *encoder);

/* Reads all codes and all of the table once. GRQ_OK when every check could be made: report->passed has the verdict. */
grq_status grq_codes_verify(const grq_codes *codes, const grq_table *table, const grq_verify_options *options,
                            grq_verify_report *report, grq_error *err);

#endif
