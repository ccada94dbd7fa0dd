/* codec/partial.h - a coded table's file while it is made: blocks are written to their places in any order. */
#ifndef GATERQ_CODEC_PARTIAL_H
#define GATERQ_CODEC_PARTIAL_H

#include "gaterq/encode.h"
#include "journal.h"
#include "layout.h"

typedef struct {
    char *path, *final_path; /* "C.partial" and "C" */
    int fd;
    grq_codes *shape; /* borrowed */
    grq_code_layout layout;
    uint64_t offset[GRQ_MAX_CODE_TENSORS], n_bytes; /* of every tensor, and of the whole file */
} grq_partial;

/* Opens or makes the file that will become `path`; what is there stays. The disk's room is taken at once where the file
 * system can. */
grq_status grq_partial_open(const char *path, grq_codes *shape, grq_partial *out, grq_error *err);
/* One block; code[k], side[k] as in grq_encode_block. */
grq_status grq_partial_write(const grq_partial *p, uint64_t block, const uint8_t *const *code,
                             const uint8_t *const *side, grq_error *err);
grq_status grq_partial_read(const grq_partial *p, uint64_t block, uint8_t *const *code, uint8_t *const *side,
                            grq_error *err);
/* Writes header and digests, and gives the file its name. Every block of `list` is done. */
grq_status grq_partial_finish(grq_partial *p, const grq_block_list *list, grq_error *err);
/* Fills what a result says of the file. */
void grq_encode_result_take(const grq_codes *shape, grq_encode_result *out);
void grq_partial_close(grq_partial *p);  /* what was written stays */
void grq_partial_remove(grq_partial *p); /* closes too */

#endif
