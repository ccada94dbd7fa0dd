/* gaterq/checkpoint.h - the memory layers of a checkpoint on disk: geometry, tables, weights.
 *
 * A checkpoint is a folder (or one safetensors file) of one of three kinds, told apart by what config.json says:
 *  - DeepSeek-V4.1: layers.L.engram.{embed.weight, embed.scale, wkv.weight, wkv.scale, q_weight, k_weight}
 *  - Qwen3.8: model.language_model.layers.L.ple.{ple_embedding.ngram_embedding.shard_i.weight, key_proj, ...}
 *  - our own: memory.L.{table, key, value, query_gain, ...} with memory.json, or a miniature's model file.
 * Names, shapes, dtypes and what else may stand there: specs/deepseek-v41-engram.md section 3, specs/qwen38-ple.md
 * section 3, docs/format.md. Tables stay in the mapped files; they may be larger than memory. */
#ifndef GATERQ_CHECKPOINT_H
#define GATERQ_CHECKPOINT_H

#include "gaterq/layer.h"
#include "gaterq/shards.h"

typedef struct grq_checkpoint grq_checkpoint;

typedef struct {
    grq_e8m0_rule e8m0; /* how E8M0 scale bytes are read */
} grq_checkpoint_options;

/* Reads the configuration and finds the memory tensors. `options` may be NULL. Fails by file and field. */
grq_status grq_checkpoint_open(const char *path, const grq_checkpoint_options *options, grq_checkpoint **out,
                               grq_error *err);
void grq_checkpoint_close(grq_checkpoint *checkpoint); /* takes NULL; ends its tables, not its layers' weights */

const grq_geometry *grq_checkpoint_geometry(const grq_checkpoint *checkpoint);
/* What a user should know and no error says ("hash constants are the checkpoint's own, not those that follow from the
 * seed"), or "". */
const char *grq_checkpoint_note(const grq_checkpoint *checkpoint);

/* The table of memory layer `layer_index`, in the format it is stored in. The caller frees it before the checkpoint. */
grq_status grq_checkpoint_table(grq_checkpoint *checkpoint, uint32_t layer_index, grq_table **out, grq_error *err);

/* The other weights of a layer, in binary32 (DeepSeek-V4.1: 630 MB). */
typedef struct grq_layer_weights grq_layer_weights;
grq_status grq_checkpoint_weights(grq_checkpoint *checkpoint, uint32_t layer_index, grq_layer_weights **out,
                                  grq_error *err);
const grq_memory_layer *grq_layer_weights_view(const grq_layer_weights *weights); /* its table is NULL */
void grq_layer_weights_free(grq_layer_weights *weights);                          /* takes NULL */

#endif
