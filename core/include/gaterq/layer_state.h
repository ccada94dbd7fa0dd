/* gaterq/layer_state.h - what a memory layer remembers of one sequence between calls.
 *
 * Two things: the last ids, from which windows are hashed, and, in families with a short convolution, the last inputs
 * of that convolution (conv_span positions of n_branches * width values). Any chunking of a sequence gives the same
 * rows, gates and outputs. A state can be copied (a shared prefix), saved as bytes, and rewound by as many tokens as it
 * was made for (speculation that was rejected). Sources: specs/qwen38-ple.md section 6, specs/integration.md
 * section 5.5. */
#ifndef GATERQ_LAYER_STATE_H
#define GATERQ_LAYER_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/geometry.h"
#include "gaterq/hash.h"

typedef struct grq_layer_state grq_layer_state;

/* The state before a sequence's first token. It can later be rewound by up to max_rewind tokens. */
grq_status grq_layer_state_new(const grq_geometry *geometry, uint32_t max_rewind, grq_layer_state **out,
                               grq_error *err);
void grq_layer_state_free(grq_layer_state *state); /* takes NULL */
void grq_layer_state_reset(grq_layer_state *state);

/* *to becomes what *from is; both must have been made for the same geometry and max_rewind. */
grq_status grq_layer_state_copy(grq_layer_state *to, const grq_layer_state *from, grq_error *err);
/* Forgets the last n_tokens tokens. Fails, and changes nothing, for more than max_rewind or than there are. */
grq_status grq_layer_state_rewind(grq_layer_state *state, uint64_t n_tokens, grq_error *err);
uint64_t grq_layer_state_position(const grq_layer_state *state); /* tokens since the start */

/* The state as bytes, for a cache on disk or another process (same build and byte order): _save writes _bytes bytes;
 * _load refuses bytes of another shape. */
size_t grq_layer_state_bytes(const grq_layer_state *state);
void grq_layer_state_save(const grq_layer_state *state, void *bytes);
grq_status grq_layer_state_load(grq_layer_state *state, const void *bytes, size_t n_bytes, grq_error *err);

#endif
