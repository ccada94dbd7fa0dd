/* experiments/expected.h - the values that REPRODUCE.md promises, and whether a run keeps the promise.
 *
 * results/expected/<id>.json lists {"path", "value", "abs_tol", "why"}: a path into the run's files (results.h), the
 * value measured when the file was written, and how far another processor or compiler may be from it. */
#ifndef GATERQ_EXPECTED_H
#define GATERQ_EXPECTED_H

#include <stdbool.h>

#include "results.h"
#include "table.h"

/* Fills `out` with one row per expectation; *n_outside counts those that do not hold. A run that lacks a value is
 * outside. */
grq_status expected_check(const char *path, results *run, table *out, size_t *n_outside, bool *applies, grq_error *err);

#endif
