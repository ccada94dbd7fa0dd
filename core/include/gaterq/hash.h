/* gaterq/hash.h - row numbers of every n-gram that ends at a position.
 *
 * mix_1 = t_0 m_0; mix_n = mix_(n-1) XOR t_(n-1) m_(n-1); row = offset + mix_n mod prime.
 * Sources: specs/deepseek-v41-engram.md section 7, specs/qwen38-ple.md sections 4.2 and 4.3, specs/original-engram.md
 * section 5. Bit-exact, independent of chunking. */
#ifndef GATERQ_HASH_H
#define GATERQ_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/geometry.h"

/* What a sequence must remember between chunks: the ids before the next position, newest first. A plain value: copy it
 * to save, assign it to rewind. Start: all slots GRQ_DEAD (before the beginning everything is padding). */
typedef struct {
    int32_t previous[GRQ_MAX_ORDER - 1];
} grq_hash_state;

void grq_hash_start(grq_hash_state *state);

/* Row numbers (n_ids, n_columns) of `ids` at memory layer `layer_index`, continuing from *state, which is advanced.
 * Ids are below n_ids, or GRQ_DEAD where the family has that; anything else is an error that names the position, the id
 * and the limit, and leaves *state and `rows` as they were. */
grq_status grq_hash_rows(const grq_geometry *geometry, uint32_t layer_index, grq_hash_state *state, const int32_t *ids,
                         size_t n_ids, int64_t *rows, grq_error *err);

#endif
