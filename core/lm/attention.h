/* lm/attention.h - causal attention with ALiBi: score(i, j) = q_i k_j / sqrt(head_dim) + slope (j - i), j <= i.
 *
 * Slopes are 2^(-8 (h + 1) / n_heads), but 0 for the last head. Query, key and value of a token lie side by side in
 * qkv (n, 3 width); heads are slices of each. */
#ifndef GATERQ_LM_ATTENTION_H
#define GATERQ_LM_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

#include "lm/real.h"

enum { LM_KEY_TILE = 32 }; /* keys scored together; rows of scores and caches are padded to a multiple */

static inline size_t lm_key_stride(size_t n_keys)
{
    return (n_keys + LM_KEY_TILE - 1) / LM_KEY_TILE * LM_KEY_TILE;
}

/* Numbers of scratch that both window functions need. */
static inline size_t lm_attention_scratch(size_t window, size_t head_dim)
{
    return (window + head_dim) * lm_key_stride(window);
}

/* Windows of equal length, each a sequence of its own. qkv (n_sequences * window, 3 width), out (.., width),
 * probabilities (n_sequences, n_heads, window, lm_key_stride(window)), kept for the backward pass. */
void lm_attention(size_t n_sequences, size_t window, size_t n_heads, size_t head_dim, const grq_real *qkv,
                  grq_real *probabilities, grq_real *out, grq_real *scratch);
void lm_attention_backward(size_t n_sequences, size_t window, size_t n_heads, size_t head_dim, const grq_real *qkv,
                           const grq_real *probabilities, const grq_real *d_out, grq_real *d_qkv, grq_real *scratch);

/* Key and value caches of one block. `capacity` is a multiple of LM_KEY_TILE. */
typedef struct {
    grq_real *keys;   /* (n_sequences, width, capacity): transposed, so that the keys of one channel lie together */
    grq_real *values; /* (n_sequences, capacity, width) */
    size_t capacity;
} lm_cache;

typedef struct {
    uint32_t sequence, position;
} lm_place;

/* Adds n tokens to the caches, in order, each of which then attends to its sequence up to itself.
 * probabilities (capacity) is scratch. */
void lm_attention_cached(size_t n, const lm_place *places, size_t n_heads, size_t head_dim, const grq_real *qkv,
                         const lm_cache *cache, grq_real *probabilities, grq_real *out);

#endif
