/* gaterq/tokenmap.h - tokenizer compression: raw token id -> compressed id, the ids that DeepSeek's Engram hashes.
 *
 * Tokens whose texts differ in case, accents, width or spaces only are one class. Classes are numbered 0, 1, 2 ... by
 * first appearance over ascending raw ids. Every multiplier of the hash depends on the number of classes, so a map that
 * is off by one class changes every row number silently: callers say how many they expect.
 * On disk: one little-endian int32 per raw id, nothing else (docs/format.md).
 * Sources: specs/deepseek-v41-engram.md section 4, specs/original-engram.md section 2. */
#ifndef GATERQ_TOKENMAP_H
#define GATERQ_TOKENMAP_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/status.h"

enum {
    GRQ_TOKENMAP_MAX_IDS = 1 << 24,
    /* DeepSeek-V4.1-Flash as released: the 128815 ids of the DeepSeek-V3 tokenizer and 465 reserved ones. */
    GRQ_TOKENMAP_V41_IDS = 129280,
    GRQ_TOKENMAP_V41_CLASSES = 99092
};
#define GRQ_TOKENMAP_V41_SHA256 "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481"

typedef struct grq_tokenmap grq_tokenmap; /* immutable: any number of threads may read it */

/* Reads a map. Checked: whole int32 values, at most GRQ_TOKENMAP_MAX_IDS of them, numbering by first appearance (so
 * there is no hole and the maximum is the number of classes less one), and what the caller expects: ids, classes (0:
 * any) and SHA-256 of the file (hex; NULL: any). On GRQ_OK the caller ends *out with grq_tokenmap_close. */
grq_status grq_tokenmap_open(const char *path, uint64_t expected_n_ids, uint64_t expected_n_classes,
                             const char *expected_sha256, grq_tokenmap **out, grq_error *err);

/* Builds the map of a Hugging Face tokenizer.json (byte-level BPE). Ids from the file's last one up to `n_ids` are
 * reserved tokens, each a class of its own; 0: as many ids as the file has. Fewer than it has is GRQ_E_USAGE. */
grq_status grq_tokenmap_build(const char *tokenizer_json, uint64_t n_ids, grq_tokenmap **out, grq_error *err);

grq_status grq_tokenmap_save(const grq_tokenmap *map, const char *path, grq_error *err); /* whole or not at all */
void grq_tokenmap_close(grq_tokenmap *map);                                              /* takes NULL */

uint32_t grq_tokenmap_n_ids(const grq_tokenmap *map);
uint32_t grq_tokenmap_n_reserved(const grq_tokenmap *map); /* how many of them grq_tokenmap_build added */
uint32_t grq_tokenmap_n_classes(const grq_tokenmap *map);
const int32_t *grq_tokenmap_ids(const grq_tokenmap *map); /* (n_ids) compressed ids; borrowed */
const char *grq_tokenmap_sha256(const grq_tokenmap *map); /* of the bytes on disk */
/* The key that a class of a built map stands for: UTF-8 of *n_bytes bytes, which may hold a NUL, and a NUL behind them;
 * borrowed. NULL for reserved classes, and in a map that was opened, which has numbers only. */
const char *grq_tokenmap_key(const grq_tokenmap *map, int32_t class_id, size_t *n_bytes);

/* raw (n) -> compressed (n), which may be the same array. `dead_id` is the raw id that is no text (the image token),
 * which becomes GRQ_DEAD; -1 for none. A negative id (the placeholder of speculative decoding) or one past the map is
 * GRQ_E_DATA with its position and value; then `compressed` is untouched. */
grq_status grq_tokenmap_apply(const grq_tokenmap *map, int32_t dead_id, const int32_t *raw, size_t n,
                              int32_t *compressed, grq_error *err);

#endif
