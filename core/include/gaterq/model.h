/* gaterq/model.h - the miniature language model: a decoder-only transformer with residual branches and memory layers.
 *
 * Per token: n_branches streams of `width`, all equal to the embedding at the start. Before block l, if l is a memory
 * layer, the memory adds gate * value to every stream (layer.h). Each block has two sub-layers (causal attention with
 * ALiBi slopes, the last head without; ReLU MLP); a sub-layer reads sum_b a_b h_b, RMS-normalises it, computes out and
 * writes h_i <- sum_j m_ij h_j + b_i out. The head reads the branches through another a and norm. Source:
 * specs/miniature.md; recipe figures there. */
#ifndef GATERQ_MODEL_H
#define GATERQ_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/layer.h"
#include "gaterq/safetensors.h"
#include "gaterq/status.h"
#include "gaterq/vocab.h"

typedef struct {
    uint32_t vocab_size;
    uint32_t width; /* d; equals memory.width */
    uint32_t n_blocks;
    uint32_t n_heads; /* divides width */
    uint32_t mlp_width;
    double norm_eps;     /* eps of the backbone's RMS norms, 1e-6 */
    grq_geometry memory; /* layers, orders, heads, rows, branches */
} grq_model_shape;

/* Reads the "model" object of a config: width, n_blocks, n_heads, mlp_width, norm_eps and "memory" (the keys of
 * grq_geometry_read less family, width, n_ids, pad_id, which follow from the model and the vocabulary). */
grq_status grq_model_shape_read(grq_json_node *object, uint32_t vocab_size, grq_model_shape *out, grq_error *err);

typedef struct grq_model grq_model;

/* Initial weights as in the recipe, drawn from stream "init" of `seed`. The vocabulary is copied. */
grq_status grq_model_new(const grq_model_shape *shape, const grq_vocab *vocab, uint64_t seed, grq_model **out,
                         grq_error *err);
/* A model file is safetensors: weights F32, geometry, shape and vocabulary in the metadata (docs/format.md). */
grq_status grq_model_open(const char *path, grq_model **out, grq_error *err);
/* `metadata` adds provenance (config digest, seed, commit); complete or not at all. */
grq_status grq_model_save(const grq_model *model, const char *path, const grq_metadata *metadata, size_t n_metadata,
                          grq_error *err);
void grq_model_free(grq_model *model); /* takes NULL */

const grq_model_shape *grq_model_shape_of(const grq_model *model);
const grq_vocab *grq_model_vocab(const grq_model *model);
const grq_memory_layer *grq_model_memory(const grq_model *model, uint32_t index); /* 0 .. memory.n_layers - 1 */
const char *grq_model_metadata(const grq_model *model, const char *key);          /* NULL when absent */
uint64_t grq_model_n_parameters(const grq_model *model, int tables);              /* tables != 0: only the tables */

/* What stands in for a memory layer during inference: the full table, zeroes, codes at a depth, a policy, a trace.
 * apply() gets the look-ups of all tokens of one step (tokens of one sequence in order, sequences one after another)
 * and changes h (n_tokens, n_branches, width) in place. rows (n_tokens, n_columns). One hook serves one decoder at a
 * time. */
typedef struct grq_memory_hook {
    grq_status (*apply)(void *context, const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows, float *h,
                        grq_error *err);
    void *context;
} grq_memory_hook;

/* A batch of sequences being read or written, with their key/value caches and hash states. */
typedef struct grq_decoder grq_decoder;

/* `hook` NULL: the model's own table. The model and the hook must outlive the decoder. */
grq_status grq_decoder_new(const grq_model *model, const grq_memory_hook *hook, uint32_t n_sequences,
                           uint32_t max_tokens, grq_decoder **out, grq_error *err);
void grq_decoder_free(grq_decoder *decoder);
void grq_decoder_reset(grq_decoder *decoder); /* all sequences empty again */

/* Feeds n_new[s] more tokens to each sequence s (0 leaves it out), `tokens` concatenated in sequence order. On GRQ_OK,
 * `last_logits` (n_sequences, vocab_size; may be NULL) holds the logits after each fed sequence's last token (other
 * rows untouched), and `all_logits` (sum n_new, vocab_size; may be NULL) those after every token. A bad token or a
 * sequence that grows too long is refused before anything changes; after an error of the hook, reset or free the
 * decoder. */
grq_status grq_decoder_step(grq_decoder *decoder, const uint32_t *n_new, const int32_t *tokens, float *last_logits,
                            float *all_logits, grq_error *err);
uint32_t grq_decoder_length(const grq_decoder *decoder, uint32_t sequence);
/* The 0-based position of the first token of the current step of each sequence; for hooks, valid inside apply(). */
const uint32_t *grq_decoder_step_starts(const grq_decoder *decoder);
const uint32_t *grq_decoder_step_counts(const grq_decoder *decoder); /* n_new of the current step */

/* Greedy continuation of prompts, batched, with caches. Sequence s stops at `stop_token` (not included in the output)
 * or after max_new tokens. outputs[s] has room for max_new ids; n_outputs[s] is set. Ties go to the lower id. */
typedef struct {
    const int32_t *tokens;
    size_t n_tokens;
} grq_prompt;
grq_status grq_generate(const grq_model *model, const grq_memory_hook *hook, const grq_prompt *prompts,
                        size_t n_prompts, uint32_t max_new, int32_t stop_token, int32_t *const *outputs,
                        uint32_t *n_outputs, grq_error *err);

/* Sum of log-probabilities (nats) of continuation i after context i; results (n). */
grq_status grq_loglikelihood(const grq_model *model, const grq_memory_hook *hook, const grq_prompt *contexts,
                             const grq_prompt *continuations, size_t n, double *results, grq_error *err);

#endif
