/* qa/suite_internal.h - what the readers of suites share: items that own their texts. */
#ifndef GATERQ_QA_SUITE_INTERNAL_H
#define GATERQ_QA_SUITE_INTERNAL_H

#include <stdbool.h>

#include "gaterq/facts.h"
#include "gaterq/suite.h"

struct grq_suite {
    size_t n, room;
    grq_suite_item *items; /* texts owned, but PopQA's, which the facts own */
    grq_facts *facts;
    size_t n_groups;
    grq_suite_group *groups; /* names borrowed from items */
};

enum { GRQ_MAX_SUITE_LINE = 16 << 20, SUITE_ID_BYTES = 320 };

grq_status suite_no_memory(const char *path, grq_error *err);
/* A new item at the end, without answers; NULL when out of memory. Texts may be NULL. */
grq_suite_item *suite_add_item(grq_suite *suite, const char *id, const char *question, const char *group);
bool suite_is_blank(const char *text, size_t n);                 /* nothing but ASCII white space */
bool suite_add_answer(grq_suite_item *item, const char *answer); /* an empty one is none */

grq_status suite_read_questions(grq_suite *suite, const char *path, bool own_ids,
                                grq_error *err); /* JSON, lines, DPR */
grq_status suite_read_dpr(grq_suite *suite, const char *path, char *text, size_t n, grq_error *err);
/* <folder>/<part>/<subject>.csv */
grq_status suite_read_cmmlu(grq_suite *suite, const char *folder, const char *part, grq_error *err);

#endif
