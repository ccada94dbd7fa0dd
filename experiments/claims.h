/* experiments/claims.h - the paper's statements and what a run says about each.
 *
 * claims.json fixes, before any run, what is measured (paths into the run's JSON files, results.h) and the conditions
 * that must all hold. A condition compares one path with a number or with another path; a path that names several
 * values must satisfy it with every one. */
#ifndef GATERQ_CLAIMS_H
#define GATERQ_CLAIMS_H

#include "gaterq/json.h"
#include "results.h"

typedef struct {
    const char *id, *statement, *paper, *criterion; /* of claims.json; "" where it has none */
    const char *verdict;                            /* REPRODUCED, NOT REPRODUCED, NOT RUN */
    char ours[512];                                 /* "gate 88.9 %, prior 85.4 %" */
    char reason[512];                               /* NOT RUN: why; NOT REPRODUCED: the first condition that failed */
} claim;

typedef struct {
    grq_json *document; /* owns the texts above */
    size_t n;
    claim *items;
} claims;

/* Reads `path` and judges every claim by the run. A claim whose result files are missing is NOT RUN with that reason.
 */
grq_status claims_judge(const char *path, results *run, claims *out, grq_error *err);
void claims_free(claims *c);

#endif
