/* gaterq/predictions.h - predictions files: one strict JSON object a line. docs/format.md has the keys.
 *
 * Two layouts, told apart by the first line: our own (`id`, and `output` or `loglikelihoods`), and the samples_*.jsonl
 * of lm-evaluation-harness (`doc_id`, `resps`, `doc`). */
#ifndef GATERQ_PREDICTIONS_H
#define GATERQ_PREDICTIONS_H

#include <stddef.h>

#include "gaterq/status.h"

/* Texts are NULL where the line has none. */
typedef struct {
    char *id;               /* 7 and "7" are the same id */
    char *suite;            /* "popqa" */
    char *prompt_sha256;    /* digest of the prompt */
    char *output;           /* as the model gave it, uncut */
    double *loglikelihoods; /* (n_loglikelihoods); NaN where the line has null (harness: "nan") */
    size_t n_loglikelihoods;
    int correct;      /* -1 when the line has none */
    size_t line;      /* 1-based */
    const char *file; /* borrowed from the predictions */
} grq_prediction;

typedef struct {
    size_t n;
    grq_prediction *items; /* by id, ascending */
    char *path;            /* as given: a file, or a folder of *.jsonl */
    char *run;             /* the run id that lines carry; NULL when none does */
    char *settings;        /* the settings that lines carry, as JSON text; NULL when none does */
    size_t n_files;
    char **files;
} grq_predictions;

enum { GRQ_MAX_PREDICTION_LINE = 1 << 24 }; /* bytes */

/* A file, or every *.jsonl of a folder in order of their names (CMMLU's samples are a file per subject). Errors name
 * file and line: broken lines, lines of more than GRQ_MAX_PREDICTION_LINE bytes, a byte order mark, repeated ids
 * (listed), no prediction at all, lines of two runs or of different settings. Lines end with LF or CRLF; blank ones are
 * skipped. Other keys are allowed. Caller ends with _close. */
grq_status grq_predictions_open(const char *path, grq_predictions *out, grq_error *err);
/* The same from memory; `name` stands for the file. */
grq_status grq_predictions_parse(const char *name, const char *text, size_t n_bytes, grq_predictions *out,
                                 grq_error *err);
void grq_predictions_close(grq_predictions *p);
const grq_prediction *grq_predictions_find(const grq_predictions *p, const char *id); /* NULL when missing */

#endif
