/* gaterq/suite.h - the questions of an evaluation suite, from its official files.
 *
 *   popqa     a TSV file with PopQA's columns (gaterq/facts.h)
 *   triviaqa  the official JSON ("Data"), JSON lines (FiD, lm-evaluation-harness), or DPR's tab-separated file
 *   nq_open   JSON lines (NQ-open, EfficientQA), or DPR's file
 *   cmmlu     a folder with test/<subject>.csv and dev/<subject>.csv
 *
 * Readers are strict: what cannot be read is an error with file, line and field, and nothing is dropped. Refused:
 * broken UTF-8, NUL bytes, lines and records beyond 16 MiB, repeated keys and ids, blank questions and choices, empty
 * ids. CRLF is taken, a byte order mark skipped. A question without an accepted answer stays, and no output is right
 * for it. Traps of each format: specs/evaluation-protocols.md sections 2 to 5. */
#ifndef GATERQ_SUITE_H
#define GATERQ_SUITE_H

#include <stddef.h>

#include "gaterq/match.h" /* GRQ_N_CHOICES */
#include "gaterq/status.h"

/* None: n = 0. */
typedef struct {
    size_t n;
    const char *const *texts;
} grq_answer_list;

typedef struct {
    const char *id; /* PopQA: `id`; TriviaQA: QuestionId, or the 0-based row; NQ-open: the row; CMMLU: subject/row */
    const char *question;
    const char *group; /* PopQA: the relation; CMMLU: the subject; else NULL */
    double popularity; /* PopQA: s_pop; NaN where there is none */
    size_t n_accepted;
    const char *const *accepted; /* none is empty; CMMLU: one letter */
    const char *shown; /* the answer that a demonstration shows: PopQA's obj, TriviaQA's canonical value (FiD's target,
                          which need not be accepted); without one the first accepted; NULL where there is none */
    /* TriviaQA, where the file tells them apart; parts of `accepted`, which holds them and the canonical value. Rules
     * that compare with aliases alone must not be given the normalised ones: they accept more. */
    grq_answer_list aliases, normalized, human;
    const char *const *choices; /* CMMLU: (GRQ_N_CHOICES); else NULL */
} grq_suite_item;

typedef struct grq_suite grq_suite;

/* `name` is one of the four. Ends with grq_suite_close. */
grq_status grq_suite_open(const char *name, const char *path, grq_suite **out, grq_error *err);
/* CMMLU's dev/ questions, five a subject, of the same folder. */
grq_status grq_suite_open_dev(const char *folder, grq_suite **out, grq_error *err);
void grq_suite_close(grq_suite *suite); /* takes NULL */

size_t grq_suite_count(const grq_suite *suite);
const grq_suite_item *grq_suite_items(const grq_suite *suite); /* in the file's order; borrowed */

typedef struct {
    const char *name;
    size_t n; /* items */
} grq_suite_group;
/* Relations or subjects in the order of their names, to be printed; none where items have no group. Borrowed. */
const grq_suite_group *grq_suite_groups(const grq_suite *suite, size_t *n_groups);

/* CMMLU's 67 subjects, as its prompts name them ("agronomy": the Chinese name); NULL for others. */
const char *grq_cmmlu_subject_name(const char *subject);

#endif
