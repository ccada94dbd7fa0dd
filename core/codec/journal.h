/* codec/journal.h - which blocks of an encoding are done: an append-only file that survives being cut anywhere. */
#ifndef GATERQ_CODEC_JOURNAL_H
#define GATERQ_CODEC_JOURNAL_H

#include <stdbool.h>

#include "blocks.h"

/* What is known of every block of a file: digests of its coded and of its source bytes, valid where done. */
typedef struct {
    uint64_t n_blocks;
    uint8_t *done;                                                   /* (n_blocks) 0 or 1 */
    uint8_t (*coded)[GRQ_SHA256_BYTES], (*source)[GRQ_SHA256_BYTES]; /* (n_blocks) */
} grq_block_list;

grq_status grq_block_list_new(uint64_t n_blocks, grq_block_list *out, grq_error *err);
void grq_block_list_free(grq_block_list *list);
uint64_t grq_block_list_n_done(const grq_block_list *list);

typedef struct grq_journal grq_journal;

/* Opens or starts the journal of the encoding that `job` is the digest of, takes its lock, and marks in `list` what it
 * holds. Refused: a journal of another encoding, one that another process writes. A record that was cut is dropped. */
grq_status grq_journal_open(const char *path, const uint8_t job[GRQ_SHA256_BYTES], grq_block_list *list,
                            grq_journal **out, grq_error *err);
/* A block is done and its bytes are in the partial file; list->coded and list->source hold its digests. */
grq_status grq_journal_append(grq_journal *journal, const grq_block_list *list, uint64_t block, grq_error *err);
void grq_journal_close(grq_journal *journal); /* takes NULL */

/* Marks in `list` what another rank's journal holds by now, and says whether that rank still writes it; a journal that
 * does not exist yet holds nothing, and nobody writes it. */
grq_status grq_journal_peek(const char *path, const uint8_t job[GRQ_SHA256_BYTES], grq_block_list *list, bool *busy,
                            grq_error *err);

#endif
