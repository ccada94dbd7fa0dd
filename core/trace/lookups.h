/* core/trace/lookups.h - what a memory hook of this folder reads at one layer and step: the full rows, the stage-1
 * rows, and the gates that either gives at the same hidden states. The streams then follow the full table. */
#ifndef GATERQ_TRACE_LOOKUPS_H
#define GATERQ_TRACE_LOOKUPS_H

#include "gaterq/codec.h"
#include "gaterq/model.h"

/* Grown to the largest step seen. Shapes with T = n_tokens of the step. */
typedef struct {
    size_t room;                       /* in tokens */
    float *full, *first;               /* (T, row_values) rows: of the table, of stage 1 */
    float *keys;                       /* (T, n_branches, width) scratch */
    float *values;                     /* (T, width) scratch */
    float *gates_full, *gates_first;   /* (T, n_branches) */
    float *energy_full, *energy_first; /* (T) gate energies */
} grq_lookups;

grq_status grq_lookups_read(grq_lookups *lookups, const grq_memory_layer *layer, const grq_codes *codes,
                            size_t n_tokens, const int64_t *rows, const float *h, grq_error *err);
/* h += gates_full * values of the full rows. */
void grq_lookups_inject(grq_lookups *lookups, const grq_memory_layer *layer, size_t n_tokens, float *h);
void grq_lookups_free(grq_lookups *lookups);

/* Codes of every memory layer must hold the model's rows in at least `n_stages` stages. */
grq_status grq_lookups_check(const grq_model *model, const grq_codes *const *codes, uint32_t n_stages, grq_error *err);

/* n items of `item_bytes`, or NULL and a message; products that overflow are refused. */
void *grq_trace_array(size_t n, size_t item_bytes, const char *what, grq_error *err);

#endif
