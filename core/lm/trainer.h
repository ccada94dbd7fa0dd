/* lm/trainer.h - a training in progress. */
#ifndef GATERQ_LM_TRAINER_H
#define GATERQ_LM_TRAINER_H

#include "gaterq/digest.h"
#include "gaterq/train.h"
#include "lm/adamw.h"
#include "lm/model_internal.h"
#include "lm/pass.h"

typedef struct {
    grq_model *model;
    const grq_train_config *config;
    const int32_t *text;
    uint64_t seed;
    uint32_t n_threads;
    uint64_t n_steps, step; /* step: steps done */
    uint32_t *order;        /* (n_windows) the text's windows in training order */
    size_t part;            /* sequences that go through one pass; divides those of a shard */
    uint32_t n_passes;
    lm_pass **passes;                           /* (n_passes) one per thread that has shards to compute */
    float **gradients;                          /* (config->n_shards) each (layout.n_dense), all clear between steps */
    double *loss_sums;                          /* (n_shards) */
    double (*gate_sums)[GRQ_MAX_MEMORY_LAYERS]; /* (n_shards) */
    lm_batch batch;
    lm_adamw adam;
    double loss_mean; /* exponential mean */
    double gate_mean[GRQ_MAX_MEMORY_LAYERS];
    char text_sha256[GRQ_SHA256_HEX];
} lm_trainer;

/* How many sequences of a shard a pass takes: those that keep its activations in the second-level cache. */
size_t lm_part_of_shard(const grq_train_config *config);

/* Names the field of `config` that makes no sense. */
grq_status lm_train_config_check(const grq_train_config *config, grq_error *err);
/* The config as the JSON object that grq_train_config_read takes. */
void lm_train_config_write(const grq_train_config *config, const char *key, grq_json_writer *writer);
/* Names the first field in which `stored` differs from `wanted`, with both values. */
grq_status lm_train_config_compare(const grq_train_config *wanted, const grq_train_config *stored, const char *where,
                                   grq_error *err);

/* All rows must be caught up. Complete or not at all. */
grq_status lm_checkpoint_write(const lm_trainer *trainer, const char *path, grq_error *err);
/* Refuses a checkpoint of another shape, config, seed or text, naming the difference. */
grq_status lm_checkpoint_read(lm_trainer *trainer, const char *path, grq_error *err);

#endif
