/* codec/blocks.h - blocks of rows: the unit of coding, of checksums and of an interrupted run's journal. */
#ifndef GATERQ_CODEC_BLOCKS_H
#define GATERQ_CODEC_BLOCKS_H

#include "base/sha256.h"
#include "gaterq/codec.h"
#include "gaterq/table.h"

/* Fixed, so that nothing depends on the number of threads, processes or parts. */
enum { GRQ_CODE_BLOCK_ROWS = 4096 };

static inline uint64_t grq_n_blocks(uint64_t n_rows)
{
    return (n_rows + GRQ_CODE_BLOCK_ROWS - 1) / GRQ_CODE_BLOCK_ROWS;
}

static inline uint64_t grq_block_rows(uint64_t n_rows, uint64_t block)
{
    const uint64_t left = n_rows - block * GRQ_CODE_BLOCK_ROWS;
    return left < GRQ_CODE_BLOCK_ROWS ? left : GRQ_CODE_BLOCK_ROWS;
}

/* Of n coded rows: stage 1's codes, its side words, stage 2's codes, and so on. code[k], side[k] are their first bytes.
 */
grq_status grq_digest_coded_rows(const uint8_t *const *code, const uint8_t *const *side, uint32_t n_stages,
                                 size_t code_bytes, uint64_t n, uint8_t digest[GRQ_SHA256_BYTES], grq_error *err);
/* Of rows [first, first + n) as the table stores them: all values, then all scales. */
grq_status grq_digest_stored_rows(const grq_table *table, uint64_t first, uint64_t n, uint8_t digest[GRQ_SHA256_BYTES],
                                  grq_error *err);

#endif
