/* experiments/predictions.h - predictions files: one strict JSON object a line, with at least `id`. */
#ifndef GATERQ_PREDICTIONS_H
#define GATERQ_PREDICTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "gaterq/status.h"

typedef struct {
    char *id;     /* 7 and "7" are the same id */
    char *suite;  /* NULL when the line has none */
    char *output; /* NULL when the line has none */
    int correct;  /* -1 when the line has none */
    size_t line;
} prediction;

typedef struct {
    size_t n;
    prediction *items; /* by id, ascending */
    char *path;
} predictions;

/* Repeated ids, broken lines and empty files are errors with file and line. Other keys are allowed. */
grq_status predictions_open(const char *path, predictions *out, grq_error *err);
void predictions_close(predictions *p);
const prediction *predictions_find(const predictions *p, const char *id); /* NULL when missing */

/* "a, b, c and 12 more": at most 10 of the ids for which `bad` is set; for messages. Buffer of 512 bytes. */
void id_list(const char *const *ids, const bool *bad, size_t n, char text[512]);

#endif
