/* core/qa/vocab_internal.h - how a vocabulary is held. */
#ifndef GATERQ_VOCAB_INTERNAL_H
#define GATERQ_VOCAB_INTERNAL_H

#include <stdbool.h>

#include "gaterq/vocab.h"

enum { VOCAB_FIRST_BYTE = 1, VOCAB_FIRST_MERGE = 257 };

typedef struct {
    char *bytes; /* NUL-terminated, may hold NUL bytes before its end */
    size_t n_bytes;
} vocab_token;

struct grq_vocab {
    bool words;
    uint32_t size, room;
    vocab_token *tokens;
    /* `words`: token of a text. `bytes`: token of a merged pair. Open addressing; 0 is empty. */
    uint32_t *table;
    size_t table_size;    /* a power of two, at least twice the entries */
    int32_t (*merges)[2]; /* `bytes`: (size - VOCAB_FIRST_MERGE) pairs that were joined */
};

grq_status vocab_new(bool words, uint32_t room, grq_vocab **out, grq_error *err);
/* Appends a token. Copies the bytes. */
grq_status vocab_add(grq_vocab *v, const char *bytes, size_t n_bytes, grq_error *err);
/* Appends the token that joins two others, and remembers the pair. */
grq_status vocab_add_merge(grq_vocab *v, int32_t left, int32_t right, grq_error *err);
grq_status vocab_add_bytes(grq_vocab *v, grq_error *err); /* ids 1..256 */
/* Builds the look-up table over all tokens; fails on a repeated word or pair. */
grq_status vocab_index(grq_vocab *v, grq_error *err);
int32_t vocab_find_word(const grq_vocab *v, const char *bytes, size_t n_bytes); /* -1: unknown */
int32_t vocab_find_pair(const grq_vocab *v, int32_t left, int32_t right);       /* -1: never merged */

#endif
