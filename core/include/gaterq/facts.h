/* gaterq/facts.h - fact files in PopQA's TSV layout: real ones and the generated world's.
 *
 * Columns by header name: id subj prop obj subj_id prop_id obj_id s_aliases o_aliases s_uri o_uri s_wiki_title
 * o_wiki_title s_pop o_pop question possible_answers. Fields may be quoted ("" is a quote). possible_answers is a JSON
 * list in a string. Source: specs/evaluation-protocols.md section 2 (with its traps). */
#ifndef GATERQ_FACTS_H
#define GATERQ_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/status.h"

typedef struct {
    const char *id; /* the official id; where the column is blank the 0-based row number, or
                       "row<number>" if that is another row's official id */
    uint64_t row;   /* 0-based data row in the file */
    const char *subject, *relation, *object, *question;
    double popularity; /* s_pop; NaN where blank */
    size_t n_accepted;
    const char *const *accepted; /* possible_answers, empty strings removed */
} grq_fact;

typedef struct grq_facts grq_facts;

/* Strict: a row it cannot read is an error with file, line and column. Caller ends with _close. */
grq_status grq_facts_open(const char *path, grq_facts **out, grq_error *err);
void grq_facts_close(grq_facts *facts);
size_t grq_facts_count(const grq_facts *facts);
const grq_fact *grq_facts_at(const grq_facts *facts, size_t index);
const char *grq_facts_path(const grq_facts *facts);

/* Writes facts in the same layout (columns without a value stay blank), complete or not at all. What _open would refuse
 * (broken UTF-8, no question, a negative s_pop) is refused. */
grq_status grq_facts_write(const char *path, const grq_fact *facts, size_t n_facts, grq_error *err);

enum { GRQ_N_QUARTILES = 4 };
/* The quartile of each popularity, 0 coldest .. 3 hottest; GRQ_N_QUARTILES where it is NaN. Cut points are the 25, 50
 * and 75 % quantiles of the known ones, interpolated linearly; a value at a cut point lies below it, so that equal
 * values are never parted and bins may differ in size. quartile (n); cuts (3), NaN when nothing is known, may be NULL.
 * Source: specs/evaluation-protocols.md section 2. */
grq_status grq_popularity_quartiles(const double *popularity, size_t n, uint32_t *quartile, double *cuts,
                                    grq_error *err);

#endif
