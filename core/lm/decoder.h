/* lm/decoder.h - the two halves of a decoder step, for callers that want logits of some tokens only. */
#ifndef GATERQ_LM_DECODER_H
#define GATERQ_LM_DECODER_H

#include "gaterq/model.h"

/* Feeds tokens as grq_decoder_step does, without the head. The final streams of the step's tokens stay in the decoder
 * until the next step; *n_fed is their number. */
grq_status lm_decoder_feed(grq_decoder *decoder, const uint32_t *n_new, const int32_t *tokens, size_t *n_fed,
                           grq_error *err);

/* Logits (n, vocab_size) after the step's tokens number which[0..n); which NULL: tokens first .. first + n - 1. */
void lm_decoder_logits(grq_decoder *decoder, size_t first, size_t n, const uint32_t *which, float *logits);

/* Most tokens that lm_decoder_logits takes at once. */
enum { LM_CHUNK = 256 };

#endif
