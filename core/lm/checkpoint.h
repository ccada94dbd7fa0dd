/* lm/checkpoint.h - a training in the middle, as a file: weights, moments, step; and what it is a training of. */
#ifndef GATERQ_LM_CHECKPOINT_H
#define GATERQ_LM_CHECKPOINT_H

#include "gaterq/train.h"
#include "lm/adamw.h"
#include "lm/model_internal.h"

enum { LM_CHECKPOINT_ITEMS = 20 };

/* What must agree for a checkpoint to be continued: shape, every config value, seed, text. */
typedef struct {
    grq_metadata items[LM_CHECKPOINT_ITEMS];
    size_t n;
    char text[LM_CHECKPOINT_ITEMS][80];
    grq_json_writer *shape; /* owns the text of item "shape" */
} lm_identity;

grq_status lm_identity_new(const grq_model *model, const grq_train_config *config, const int32_t *text, uint64_t seed, lm_identity *out,
                           grq_error *err);
void lm_identity_free(lm_identity *identity);

typedef struct {
    uint64_t step; /* steps done */
    double loss;   /* running mean */
} lm_progress;

/* Complete or not at all. */
grq_status lm_checkpoint_save(const char *path, const grq_model *model, const lm_adamw *optimiser, const lm_identity *identity,
                              lm_progress progress, grq_error *err);
/* Refuses a file of another training, naming what differs. */
grq_status lm_checkpoint_load(const char *path, grq_model *model, lm_adamw *optimiser, const lm_identity *identity, lm_progress *progress,
                              grq_error *err);

#endif
