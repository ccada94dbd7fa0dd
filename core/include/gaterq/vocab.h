/* gaterq/vocab.h - text to token ids and back, for the miniatures.
 *
 * Two kinds: `words` (one token per space-separated word; unknown words are an error) for the generated world, and
 * `bytes` (byte-pair merges learnt from a file; every byte is representable) for real text. Id 0 is always padding. */
#ifndef GATERQ_VOCAB_H
#define GATERQ_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/json.h"
#include "gaterq/status.h"

enum { GRQ_PAD_TOKEN = 0 };

typedef struct grq_vocab grq_vocab;

typedef struct {
    const char *text;
    size_t n_bytes;
    uint64_t weight; /* how often the piece counts in learning */
} grq_weighted_text;

/* `words`: ids 1.. in the order given; duplicates are an error. */
grq_status grq_vocab_new_words(const char *const *words, size_t n_words, grq_vocab **out, grq_error *err);
/* `bytes`: pad, 256 bytes, then merges learnt from `texts` until vocab_size entries exist or no pair occurs twice.
 * Ties between pairs of equal weight go to the larger byte string, so the result does not depend on text order. */
grq_status grq_vocab_learn_bytes(const grq_weighted_text *texts, size_t n_texts, uint32_t vocab_size, grq_vocab **out,
                                 grq_error *err);
grq_status grq_vocab_copy(const grq_vocab *vocab, grq_vocab **out, grq_error *err);
void grq_vocab_free(grq_vocab *vocab);

/* As one JSON object, the form that model files carry in their metadata. */
void grq_vocab_write(const grq_vocab *vocab, const char *key, grq_json_writer *writer);
grq_status grq_vocab_read(grq_json_node *object, grq_vocab **out, grq_error *err);

uint32_t grq_vocab_size(const grq_vocab *vocab);
const char *grq_vocab_kind(const grq_vocab *vocab); /* "words" or "bytes" */
/* On GRQ_OK the caller frees *ids (never NULL). `words`: an unknown word is an error that names it. */
grq_status grq_vocab_encode(const grq_vocab *vocab, const char *text, size_t n_bytes, int32_t **ids, size_t *n_ids,
                            grq_error *err);
/* Caller frees *text (NUL-terminated; may hold broken UTF-8 in the middle of a character). Words are joined by spaces.
 */
grq_status grq_vocab_decode(const grq_vocab *vocab, const int32_t *ids, size_t n_ids, char **text, grq_error *err);
/* Bytes of one token, borrowed. */
const char *grq_vocab_token(const grq_vocab *vocab, int32_t id, size_t *n_bytes);

#endif
