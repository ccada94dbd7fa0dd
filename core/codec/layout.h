/* codec/layout.h - the file of a coded table: its tensors in their order, and its metadata (docs/format.md). */
#ifndef GATERQ_CODEC_LAYOUT_H
#define GATERQ_CODEC_LAYOUT_H

#include "blocks.h"
#include "codec_internal.h"

#define GRQ_CODES_FORMAT "gaterq-codes-2"

enum {
    GRQ_PLANE_ALIGN = 64, /* a cache line: no code of 256 values crosses a sector */
    GRQ_MAX_CODE_TENSORS = 4 * GRQ_MAX_STAGES + 4,
    GRQ_PLANE_NAME_BYTES = 32
};

/* Every tensor starts at a multiple of GRQ_PLANE_ALIGN. The format allows no holes, so a short tensor of zeros fills up
 * the one before, where its size asks for that. */
typedef struct {
    size_t n;
    grq_tensor tensors[GRQ_MAX_CODE_TENSORS]; /* data as `c` has them, perhaps NULL */
    char names[GRQ_MAX_CODE_TENSORS][GRQ_PLANE_NAME_BYTES];
    size_t code[GRQ_MAX_STAGES], side[GRQ_MAX_STAGES], coded_digests, source_digests; /* numbers of tensors */
} grq_code_layout;

void grq_code_layout_make(const grq_codes *c, grq_code_layout *out);

enum { GRQ_MAX_CODE_METADATA = 17 + GRQ_MAX_DETAILS };

typedef struct {
    size_t n;
    grq_metadata items[GRQ_MAX_CODE_METADATA]; /* "digest" is the last */
    grq_details numbers, details;
    char source_digest[GRQ_SHA256_HEX], digest[GRQ_SHA256_HEX];
} grq_code_metadata;

/* What the file of `c` says; `c` must outlive it. Without block digests in `c` the digests are 64 zeros. */
grq_status grq_code_metadata_make(const grq_codes *c, grq_code_metadata *out, grq_error *err);

#endif
