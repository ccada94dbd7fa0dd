/* gaterq/train.h - training the miniature: hand-written backward pass, AdamW, resumable, bit-reproducible.
 *
 * Loss: mean next-token cross-entropy (nats) + gate_cost * sum over memory layers of mean(gate^2). The second term is a
 * declared deviation from DeepSeek's training (specs/miniature.md, "Which regulariser is needed"): 0 switches it off.
 * A batch is always cut into the same shards, whatever the number of threads, and their gradients are summed in shard
 * order: same config, seed, build and machine give the same bytes on 1, 2 or more threads. */
#ifndef GATERQ_TRAIN_H
#define GATERQ_TRAIN_H

#include <stdint.h>

#include "gaterq/model.h"
#include "gaterq/progress.h"

typedef struct {
    uint64_t n_tokens;        /* tokens of training text; one pass */
    uint32_t batch;           /* sequences per step */
    uint32_t window;          /* tokens per sequence */
    uint32_t n_shards;        /* parts of a batch computed apart; divides batch */
    double learning_rate;     /* peak; warm-up then cosine to 5 % */
    double table_rate_factor; /* tables learn this many times faster */
    double weight_decay;      /* on matrices only; not embeddings, norms, mixers, tables */
    double beta1, beta2;
    double clip; /* global norm of all gradients but the tables' */
    uint32_t warmup_steps;
    double gate_cost;      /* see above */
    double gate_cost_ramp; /* fraction of the steps over which it grows from 0 */
} grq_train_config;

/* Reads the "train" object of a config; every key is required. */
grq_status grq_train_config_read(grq_json_node *object, grq_train_config *out, grq_error *err);

typedef struct {
    uint64_t steps, n_tokens;
    double loss;                             /* exponential mean over about 50 steps, nats */
    double gate_mean[GRQ_MAX_MEMORY_LAYERS]; /* last step */
    double seconds;                          /* this call only */
} grq_train_result;

/* Trains `model` in place on `text` (config->n_tokens ids and one more). `checkpoint` (may be NULL) is a path that is
 * rewritten every `checkpoint_seconds` and at an interruption; if it exists and belongs to the same config, seed and
 * shape, training continues from it (else an error names the difference) and ends in the bytes of an uninterrupted run.
 * The caller removes it once the trained model is safe on disk. */
grq_status grq_train(grq_model *model, const grq_train_config *config, const int32_t *text, uint64_t seed,
                     uint32_t n_threads, const char *checkpoint, double checkpoint_seconds,
                     const grq_progress *progress, grq_train_result *result, grq_error *err);

/* What training can at most reach on this machine: its matrix products alone, at the sizes that grq_train gives them.
 */
typedef struct {
    double flops_per_token;   /* of all matrix products of a step, forward and backward */
    double seconds_per_token; /* one thread's time for them, while n_threads measure at once */
} grq_train_bound;
grq_status grq_train_bound_measure(const grq_model_shape *shape, const grq_train_config *config, uint32_t n_threads,
                                   double seconds, grq_train_bound *out, grq_error *err);

#endif
