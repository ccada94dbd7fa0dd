/* experiments/accuracy.h - the accuracy table of one model: every reader's score, and paired tests between them. */
#ifndef GATERQ_ACCURACY_H
#define GATERQ_ACCURACY_H

#include <stdbool.h>
#include <stdint.h>

#include "gaterq/json.h"
#include "gaterq/reader.h"
#include "gaterq/world.h"

/* One way of reading the memory, and what came of it. */
typedef struct {
    char name[48]; /* "full", "zero", "depth2", "gate", "random#2", "gate/refreshed" */
    grq_reader_config config;
    grq_reader_usage usage;
    bool *correct; /* (questions->n) */
} accuracy_reader;

typedef struct {
    const grq_questions *questions;
    const accuracy_reader *readers;
    size_t n_readers;
    uint32_t row_dim;
    uint32_t n_resamples; /* bootstrap over subjects: questions about one subject are not independent */
    uint64_t seed;
} accuracy_table;

/* Members of the open object in `writer`:
 *   n, n_subjects
 *   readers.<name>: n correct accuracy low high by_quartile shown held; with codes also share_deeper, bits_per_value;
 *                   for orderings recovered {value low high}: (acc - depth1) / (depth2 - depth1)
 *   readers.random: mean over the draws random#1, random#2, ...
 *   comparisons.<a - b>: n only_a only_b difference low high p_exact p_mid, and holm over the rivals of "gate"
 *   changes.{zeroed,one_bit}: all of_accuracy coldest cold hot hottest   accuracy minus that of the full table */
grq_status accuracy_write(const accuracy_table *table, grq_json_writer *writer, grq_error *err);

#endif
