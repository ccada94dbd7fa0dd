/* gaterq/reader.h - what a model reads from its memory while it answers: the full table, nothing, codes at one depth,
 * or a policy that gives every look-up its own depth.
 *
 * A policy at one layer and one decoder step (a "batch", the paper's quantile allocation):
 *   1. stage 1 of every row gives e1, the keys, the gates and the gate energies;
 *   2. the ordering scores the look-ups, the budget gives each a depth;
 *   3. value = V e with e at those depths; h += gate * value. */
#ifndef GATERQ_READER_H
#define GATERQ_READER_H

#include <stdint.h>

#include "gaterq/codec.h"
#include "gaterq/counts.h"
#include "gaterq/model.h"
#include "gaterq/policy.h"

typedef enum {
    GRQ_READ_FULL,  /* the model's own table */
    GRQ_READ_ZERO,  /* all rows zero: key = value = 0, so the streams pass unchanged */
    GRQ_READ_DEPTH, /* codes, every look-up at `depth`; the gates come from the same rows */
    GRQ_READ_POLICY /* codes, depth by ordering and budget */
} grq_read_mode;

typedef enum {
    GRQ_GATES_FROZEN,   /* the stage-1 gates rank and inject: the paper's */
    GRQ_GATES_REFRESHED /* ranked by stage-1 gates, injected with gates recomputed from the rows as read */
} grq_gate_mode;

typedef struct {
    grq_read_mode mode;
    uint32_t depth;        /* GRQ_READ_DEPTH */
    grq_ordering ordering; /* GRQ_READ_POLICY, as all below */
    grq_budget budget;
    grq_gate_mode gate_mode;
    uint64_t seed;                 /* of random and shuffled */
    const grq_codes *const *codes; /* one per memory layer; not for FULL and ZERO */
    const grq_counts *counts;      /* prior, frequency, coldest; else may be NULL */
} grq_reader_config;

typedef struct grq_reader grq_reader;

/* The model, codes and counts must outlive the reader and fit each other: rows, row width and layers are checked.
 * A reader serves one decoder at a time. */
grq_status grq_reader_new(const grq_model *model, const grq_reader_config *config, grq_reader **out, grq_error *err);
void grq_reader_free(grq_reader *reader);                         /* takes NULL */
const grq_memory_hook *grq_reader_hook(const grq_reader *reader); /* NULL for GRQ_READ_FULL: the model's own path */

/* How many look-ups were made so far, and how many of them at each depth (index 0: depth 1). */
typedef struct {
    uint64_t n_lookups;
    uint64_t n_at_depth[GRQ_MAX_STAGES];
} grq_reader_usage;
grq_reader_usage grq_reader_used(const grq_reader *reader);

#endif
