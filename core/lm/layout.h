/* lm/layout.h - where every parameter of a model lies in one flat array.
 *
 * Weights, gradients and optimiser moments are arrays of the same layout. The dense parameters come first, then the
 * memory tables: the two parts are cleared, summed and optimised differently. */
#ifndef GATERQ_LM_LAYOUT_H
#define GATERQ_LM_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/model.h"

typedef enum {
    LM_MATRIX, /* decays */
    LM_PLAIN,  /* embedding, norms, mixers: no weight decay */
    LM_TABLE   /* memory rows: their own rate, no decay, no clipping */
} lm_role;

enum { LM_TENSOR_NAME = 48, LM_MAX_BRANCHES = 64 };

typedef struct {
    char name[LM_TENSOR_NAME]; /* as in the model file: "blocks.0.attention.qkv" */
    lm_role role;
    uint32_t rank;
    uint64_t shape[3];
    size_t at, n;     /* first element and number of elements */
    double deviation; /* of the initial normal draws; 0: not drawn, see lm_model_init */
} lm_tensor;

/* Offsets of one sub-layer. `in` maps the normalised stream to the inside (attention: q, k and v stacked), `out` back.
 */
typedef struct {
    size_t norm, in, out;    /* (width), (inner, width), (width, inner') */
    size_t read, write, mix; /* (branches), (branches), (branches, branches) */
} lm_sublayer_at;

/* `value` directly follows `key`, so that both are one matrix (n_branches * width + width, row_values). */
typedef struct {
    size_t key, value, query_gain, key_gain, table;
} lm_memory_at;

enum { LM_ATTENTION, LM_MLP, LM_SUBLAYERS };

typedef struct {
    const grq_model_shape *shape; /* borrowed */
    size_t embed, head, final_read, final_norm;
    lm_sublayer_at (*blocks)[LM_SUBLAYERS]; /* (n_blocks) */
    lm_memory_at memory[GRQ_MAX_MEMORY_LAYERS];
    size_t n_tensors;
    lm_tensor *tensors;    /* in order of `at` */
    size_t n_dense, n_all; /* elements before the tables, and in all (with padding) */
} lm_layout;

/* `shape` must outlive the layout. The caller ends *out with lm_layout_free. */
grq_status lm_layout_new(const grq_model_shape *shape, lm_layout *out, grq_error *err);
void lm_layout_free(lm_layout *layout);

/* Index among the memory layers of the one that acts before `block`, or -1. */
int lm_memory_before(const grq_model_shape *shape, uint32_t block);

#endif
