/* gaterq/codec.h - residual 1-bit-per-stage codes of memory rows, and the files that hold them.
 *
 * A row of n values is coded in up to three stages; stage k codes what stages 1..k-1 left over, with one bit per value
 * and 16 bits of side data per row. Decoding at depth d sums the first d stages, in that order. Bit-level definitions:
 * specs/encoders.md. This header is the interface that every encoder (integer, pq, tcq) stands behind. */
#ifndef GATERQ_CODEC_H
#define GATERQ_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/progress.h"
#include "gaterq/status.h"

enum { GRQ_MAX_STAGES = 3 };

typedef enum { GRQ_KIND_INTEGER, GRQ_KIND_TCQ, GRQ_KIND_PQ } grq_encoder_kind;

typedef struct grq_encoder grq_encoder;
struct grq_encoder {
    const char *name;        /* "integer", "tcq", ...; also the --encoder value and the metadata */
    const char *description; /* one line for --help */
    const char *scale_rule;  /* "opt", "rms", "least-squares": metadata, decoding does not depend on it */
    uint32_t dim_multiple;   /* row_dim must be a multiple of this */
    grq_encoder_kind kind;
    bool side_words;    /* side data are words of the encoder's own (plane "side"), not FP16 scales (plane "scale") */
    const void *detail; /* the encoder's own: a trellis code or a book */
    /* Codes one row. codes: (n_stages, code_bytes), side: (n_stages). Fails on a NaN or infinity, naming the column,
     * and on a scale outside FP16. */
    grq_status (*encode_row)(const grq_encoder *encoder, const float *row, uint32_t row_dim, uint32_t n_stages,
                             uint8_t *codes, uint16_t *side, grq_error *err);
    /* Sums the first `depth` stages into out (row_dim). codes[k], side[k] are stage k + 1's. */
    void (*decode_row)(const grq_encoder *encoder, const uint8_t *const *codes, const uint16_t *side, uint32_t row_dim,
                       uint32_t depth, float *out);
    /* What no encoder writes: NULL when the row's side words are fine, else what is wrong with that of *stage. */
    const char *(*side_fault)(const grq_encoder *encoder, const uint16_t *side, uint32_t n_stages, uint32_t *stage);
};

/* By name; fails listing the names it knows. Encoders are static and shared. */
grq_status grq_encoder_find(const char *name, const grq_encoder **out, grq_error *err);
const grq_encoder *grq_encoder_at(size_t index); /* NULL past the end */

size_t grq_code_bytes(uint32_t row_dim);          /* ceil(row_dim / 8), per row and stage */
double grq_code_bits_per_value(uint32_t row_dim); /* per stage, side data included: 1 + 16 / row_dim */

/* A coded table, opened from its file (mmap) or just made. Never changes; any number of threads may read it. */
typedef struct grq_codes grq_codes;

typedef struct {
    const char *family;        /* "" when unknown */
    uint32_t layer;            /* backbone layer */
    const char *source;        /* what was coded, e.g. "model.safetensors:memory.1.table" (base name only, no folder) */
    const char *source_digest; /* of the table's stored bytes (docs/format.md); not looked at where codes are made */
} grq_codes_origin;

/* What is done to a row before it is coded, and undone after decoding. */
typedef struct {
    int32_t exp_tab; /* rows are divided by 2^exp_tab, so that scales fit their few bits; GRQ_MAX_EXP_TAB at most */
    bool rotate;     /* turned by a random-sign Hadamard transform, so that any row looks like a Gaussian one */
    uint64_t rotation_seed;
} grq_codes_transform;

enum { GRQ_MAX_EXP_TAB = 100 };

/* Codes `table` (n_rows, row_dim) on up to n_threads threads; same bytes for any number. Row numbers are in errors. */
grq_status grq_codes_encode_transformed(const grq_encoder *encoder, const grq_codes_transform *transform,
                                        const float *table, uint64_t n_rows, uint32_t row_dim, uint32_t n_stages,
                                        const grq_codes_origin *origin, uint32_t n_threads,
                                        const grq_progress *progress, grq_codes **out, grq_error *err);
/* The same with rows as they are. */
grq_status grq_codes_encode(const grq_encoder *encoder, const float *table, uint64_t n_rows, uint32_t row_dim,
                            uint32_t n_stages, const grq_codes_origin *origin, uint32_t n_threads,
                            const grq_progress *progress, grq_codes **out, grq_error *err);
grq_status grq_codes_save(const grq_codes *codes, const char *path, grq_error *err); /* layout: docs/format.md */
grq_status grq_codes_open(const char *path, grq_codes **out, grq_error *err);
/* As grq_codes_open, but a part of a table (gaterq/encode.h) is taken too: its rows count from 0. */
grq_status grq_codes_open_part(const char *path, grq_codes **out, grq_error *err);
void grq_codes_close(grq_codes *codes); /* takes NULL */

const grq_encoder *grq_codes_encoder(const grq_codes *codes);
uint64_t grq_codes_n_rows(const grq_codes *codes);
uint32_t grq_codes_row_dim(const grq_codes *codes);
uint32_t grq_codes_n_stages(const grq_codes *codes);
const grq_codes_origin *grq_codes_origin_of(const grq_codes *codes);
/* SHA-256, in hexadecimal, of what a file says of itself and of its blocks' digests: stands for the whole file. "" for
 * codes that never were in a file, and for files from before there were digests. */
const char *grq_codes_digest(const grq_codes *codes);
const grq_codes_transform *grq_codes_transform_of(const grq_codes *codes);

/* One row at depth 1..n_stages into out (row_dim). The row must exist: check with _n_rows. */
void grq_codes_decode(const grq_codes *codes, uint64_t row, uint32_t depth, float *out);
/* Asks the processor to load what _decode of this row at this depth will read; a hint, nothing waits. */
void grq_codes_prefetch(const grq_codes *codes, uint64_t row, uint32_t depth);

#endif
