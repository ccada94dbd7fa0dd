/* What a forward pass does with a layer's state. */
#ifndef GATERQ_MEMORY_LAYER_STATE_INTERNAL_H
#define GATERQ_MEMORY_LAYER_STATE_INTERNAL_H

#include "gaterq/layer_state.h"

/* A copy, for the caller to free. */
grq_status grq_layer_state_clone(const grq_layer_state *state, grq_layer_state **out, grq_error *err);
/* The hash state before the next token. */
void grq_layer_state_hash(const grq_layer_state *state, grq_hash_state *out);
/* The convolution's input `back` positions before the next token (1: the last one), or NULL before the start. */
const float *grq_layer_state_input(const grq_layer_state *state, uint64_t back);
/* Takes n_tokens tokens: their ids, and the convolution's inputs (n_tokens, channels), NULL without one. */
void grq_layer_state_push(grq_layer_state *state, size_t n_tokens, const int32_t *ids, const float *inputs);

#endif
