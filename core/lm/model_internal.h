/* lm/model_internal.h - what the files of core/lm know about a model. */
#ifndef GATERQ_LM_MODEL_INTERNAL_H
#define GATERQ_LM_MODEL_INTERNAL_H

#include "gaterq/model.h"
#include "lm/layout.h"

struct grq_model {
    grq_model_shape shape;
    lm_layout layout;                               /* of `shape` */
    float *weights;                                 /* (layout.n_all), 64-byte aligned */
    grq_vocab *vocab;                               /* NULL when the model has none */
    grq_memory_layer memory[GRQ_MAX_MEMORY_LAYERS]; /* views into weights */
    grq_safetensors *file;                          /* NULL unless opened; kept for its metadata */
};

/* Names the field that makes no sense; `where` ("file: model") begins the message. */
grq_status lm_shape_check(const grq_model_shape *shape, const char *where, grq_error *err);

/* Zero weights, views set. The vocabulary is copied and must have shape->vocab_size entries. */
grq_status lm_model_allocate(const grq_model_shape *shape, const grq_vocab *vocab, grq_model **out, grq_error *err);

/* Weights of a new model: normal draws of stream "init" of `seed`, tensor after tensor in layout order; everything
 * that is not drawn has the value of the recipe. */
void lm_model_init(grq_model *model, uint64_t seed);

/* The shape as the JSON object that model files and checkpoints carry. */
void lm_shape_write(const grq_model_shape *shape, const char *key, grq_json_writer *writer);
/* Reads that object, all keys required, and derives the geometry. */
grq_status lm_shape_read(grq_json_node *object, grq_model_shape *out, grq_error *err);

/* Zeroed memory for n numbers of `bytes` each at a cache line; NULL when there is none. Free with free(). */
void *lm_allocate(size_t n, size_t bytes);

#endif
