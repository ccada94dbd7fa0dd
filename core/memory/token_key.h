/* memory/token_key.h - the key of a token: tokens with equal keys are one class (tokenmap.h). */
#ifndef GATERQ_MEMORY_TOKEN_KEY_H
#define GATERQ_MEMORY_TOKEN_KEY_H

#include <stddef.h>

#include "gaterq/status.h"

/* The key of a token whose bytes are bytes[0..n_bytes) and which the vocabulary spells `spelling`. Bytes that are not
 * UTF-8, or that hold U+FFFD, have their spelling as key; text has its normal form, or itself where that is empty.
 * On GRQ_OK the caller frees *key (*n_key bytes and a NUL). */
grq_status grq_token_key(const char *bytes, size_t n_bytes, const char *spelling, char **key, size_t *n_key,
                         grq_error *err);

#endif
