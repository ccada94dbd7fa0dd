/* What the kinds of checkpoints share: each is a set of functions over one object. */
#ifndef GATERQ_MEMORY_CHECKPOINT_INTERNAL_H
#define GATERQ_MEMORY_CHECKPOINT_INTERNAL_H

#include "gaterq/checkpoint.h"

enum { CHECKPOINT_PREFIX_BYTES = 256, CHECKPOINT_NAME_BYTES = 512 };

typedef struct {
    const char *name;
    /* Fills checkpoint->geometry, derived, from the configuration and, where it has them, the hash constants of the
     * file. */
    grq_status (*read_geometry)(grq_checkpoint *checkpoint, grq_json_node *config, grq_error *err);
    grq_status (*open_table)(grq_checkpoint *checkpoint, uint32_t layer_index, grq_table **out, grq_error *err);
    grq_status (*read_weights)(grq_checkpoint *checkpoint, uint32_t layer_index, grq_layer_weights *out,
                               grq_error *err);
} checkpoint_kind;

extern const checkpoint_kind checkpoint_deepseek, checkpoint_qwen, checkpoint_own;

struct grq_checkpoint {
    const checkpoint_kind *kind;
    grq_shards *shards;
    grq_geometry geometry;
    grq_e8m0_rule e8m0;
    char prefix[CHECKPOINT_PREFIX_BYTES]; /* of tensor names, up to and with "layers." */
    char note[256];
};

struct grq_layer_weights {
    grq_geometry geometry; /* a copy: weights may outlive the checkpoint */
    grq_memory_layer view;
    float *key_weight, *value_weight, *query_gain, *key_gain, *key_bias, *value_bias, *conv_gain,
        *conv_weight; /* owned */
};

/* A tensor of `n_rows` x `n_columns` (rank 1 when n_rows is 1: shape (n_columns)) as binary32: F32, BF16, F16, or
 * F8_E4M3 with E8M0 scales per 32 x 32 tile in `scale_name` (NULL: FP8 is refused). `out` has room for it, or *out is
 * allocated when it is NULL. NaN and infinity are refused by row. */
grq_status checkpoint_read(grq_checkpoint *c, const char *name, const char *scale_name, uint64_t n_rows,
                           uint64_t n_columns, float **out, grq_error *err);
/* The same with further axes of length 1, as (n_rows, 1, n_columns) of a depthwise convolution. */
grq_status checkpoint_read_shaped(grq_checkpoint *c, const char *name, const char *scale_name, uint32_t rank,
                                  const uint64_t *shape, float **out, grq_error *err);

/* A table of n_rows rows in one tensor (F32, BF16, F16, or F8_E4M3 with one E8M0 scale per row and 32 values in
 * `scale_name`). */
grq_status checkpoint_table(grq_checkpoint *c, const char *name, const char *scale_name, uint64_t n_rows,
                            uint32_t row_dim, grq_table **out, grq_error *err);

/* The part before `suffix` ("layers.1.engram.q_weight" without its prefix) of the one tensor name that ends with it. */
grq_status checkpoint_find_prefix(grq_checkpoint *c, const char *suffix, char prefix[CHECKPOINT_PREFIX_BYTES],
                                  grq_error *err);

/* Adds geometry->gain_offset to n gains. */
void checkpoint_offset_gains(const grq_geometry *g, float *gains, size_t n);
/* (channels, taps) as stored -> (taps, channels) as computed with; replaces *weights. */
grq_status checkpoint_transpose_taps(const grq_geometry *g, float **weights, grq_error *err);

/* A config's members, wherever they are: in text_config or at the root. Integers and lists of them. */
grq_status checkpoint_u64(grq_json_node *config, const char *key, uint64_t min, uint64_t max, uint64_t *out,
                          grq_error *err);
grq_status checkpoint_u32(grq_json_node *config, const char *key, uint32_t min, uint32_t max, uint32_t *out,
                          grq_error *err);

#endif
