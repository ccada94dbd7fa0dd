/* experiments/scored.h - scored predictions (docs/format.md), kept small: ids and verdicts; each file is read once. */
#ifndef GATERQ_SCORED_H
#define GATERQ_SCORED_H

#include <stdbool.h>
#include <stddef.h>

#include "gaterq/stats.h"
#include "gaterq/status.h"

typedef struct {
    char *path, *suite; /* suite: of the first line that names one; NULL */
    size_t n, n_correct;
    char **ids; /* (n), ascending */
    bool *correct;
    char **prompts; /* (n) digests; NULL where a line has none */
} scored_file;

/* The files read so far, by path. */
typedef struct {
    scored_file **files;
    size_t n, room;
} scored_set;

/* *out lives as long as the set. A line without `correct` is GRQ_E_DATA and names the command that scores. */
grq_status scored_open(scored_set *set, const char *path, const scored_file **out, grq_error *err);
void scored_close(scored_set *set);

typedef struct {
    grq_paired paired;
    bool has_macro; /* CMMLU: ids are <subject>/<row> */
    size_t n_subjects;
    grq_macro macro;
} scored_comparison;

/* Both must have the same items, of the same suite, asked with the same prompts where both lines have a digest: else
 * GRQ_E_DATA with the items. */
grq_status scored_compare(const scored_file *a, const scored_file *b, uint32_t n_resamples, uint64_t seed,
                          scored_comparison *out, grq_error *err);

#endif
