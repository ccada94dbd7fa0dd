/* memory/tokenizer_json.h - the tokens of a Hugging Face tokenizer.json, byte-level BPE: spelling and bytes of each.
 *
 * Merges, normaliser and pre-tokeniser are not read: they say how text is split, not what a token means. */
#ifndef GATERQ_MEMORY_TOKENIZER_JSON_H
#define GATERQ_MEMORY_TOKENIZER_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/status.h"

typedef struct {
    const char *spelling; /* as the file has it, in the byte-level alphabet; NUL-terminated */
    const char *bytes;    /* what the id decodes to alone, special tokens kept; may be broken UTF-8 and hold NULs */
    size_t n_bytes;
    bool added; /* listed in added_tokens */
} grq_token;

typedef struct grq_tokenizer_json grq_tokenizer_json; /* owns the tokens */

/* Every id from 0 to the largest must have exactly one token. Broken content is GRQ_E_DATA with file and field. */
grq_status grq_tokenizer_json_open(const char *path, grq_tokenizer_json **out, grq_error *err);
void grq_tokenizer_json_close(grq_tokenizer_json *file); /* takes NULL */

uint32_t grq_tokenizer_json_count(const grq_tokenizer_json *file);
const grq_token *grq_tokenizer_json_at(const grq_tokenizer_json *file, uint32_t id); /* id below the count */

#endif
