/* lm/batch.h - the tokens of a training batch, their look-ups, and what the passes over them leave behind. */
#ifndef GATERQ_LM_BATCH_H
#define GATERQ_LM_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/model.h"
#include "lm/real.h"

/* Sequences of `window` tokens, one after another, each of which starts from nothing. */
typedef struct {
    const grq_geometry *geometry;
    size_t n_sequences, window;
    int32_t *inputs, *targets;            /* (n_sequences * window) */
    int64_t *rows[GRQ_MAX_MEMORY_LAYERS]; /* (.., n_columns) */
    grq_real
        *lookups[GRQ_MAX_MEMORY_LAYERS]; /* (.., row_values): the rows read; after a backward pass, their gradients */
} lm_batch;

/* The geometry must outlive the batch. The caller ends *out with lm_batch_free, also after an error. */
grq_status lm_batch_new(const grq_geometry *geometry, size_t n_sequences, size_t window, lm_batch *out, grq_error *err);
void lm_batch_free(lm_batch *batch);

/* Makes ids (window + 1) the inputs and targets of one sequence, and hashes it. */
grq_status lm_batch_load(const lm_batch *batch, size_t sequence, const int32_t *ids, grq_error *err);

/* A view of n_sequences of the batch from `first` on. */
lm_batch lm_batch_part(const lm_batch *batch, size_t first, size_t n_sequences);

#endif
