/* What the files of core/codec share: the coded table itself. */
#ifndef GATERQ_CODEC_INTERNAL_H
#define GATERQ_CODEC_INTERNAL_H

#include <string.h>

#include "base/sha256.h"
#include "gaterq/codec.h"
#include "gaterq/safetensors.h"
#include "gaterq/table.h"
#include "pq.h"
#include "tcq.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "code planes are mapped as they lie in the file, which is little-endian"
#endif

/* Planes are (n_rows, code_bytes) and (n_rows) words of 16 bits. They lie in `file`'s mapping, or in `owned`. */
struct grq_codes {
    const grq_encoder *encoder; /* of this name */
    grq_encoder reader;         /* the same, but with the detail that the file says */
    grq_tcq_coding coding;      /* reader's detail, when it is a trellis code read from a file */
    grq_tcq_code tcq_code;
    grq_pq_coding *book; /* the same of a book; owned */
    grq_codes_transform transform;
    uint64_t n_rows;
    uint32_t row_dim, n_stages;
    size_t code_bytes;
    const uint8_t *code[GRQ_MAX_STAGES];
    const uint8_t *side[GRQ_MAX_STAGES];           /* bytes, as a file need not align them */
    uint64_t first_row, table_rows;                /* of a part: where it lies in its table; else 0 and n_rows */
    const uint8_t *coded_digests, *source_digests; /* (grq_n_blocks(n_rows), GRQ_SHA256_BYTES); NULL in old files */
    grq_codes_origin origin;                       /* strings owned */
    char digest[GRQ_SHA256_HEX];                   /* of metadata and digests; "" in old files */
    grq_safetensors *file;
    uint8_t *owned[2 * GRQ_MAX_STAGES + 2]; /* planes, then digests */
};

static inline uint16_t grq_side_word(const grq_codes *codes, uint32_t stage, uint64_t row)
{
    uint16_t word;
    memcpy(&word, codes->side[stage] + row * sizeof word, sizeof word);
    return word;
}

/* A codes object without planes; copies the origin (NULL: unknown). Fails when the shape makes no sense. */
grq_status grq_codes_new(const grq_encoder *encoder, const grq_codes_transform *transform, uint64_t n_rows,
                         uint32_t row_dim, uint32_t n_stages, const grq_codes_origin *origin, grq_codes **out,
                         grq_error *err);

/* ---- for encoders ---- */

/* The first value that is NaN or infinite, or row_dim when there is none. */
uint32_t grq_first_not_finite(const float *row, uint32_t row_dim);
grq_status grq_check_finite(const float *row, uint32_t row_dim, grq_error *err); /* names the column */

/* The scale of a stage (from 0) as FP16; an error when it is beyond. */
grq_status grq_f16_scale(double scale, uint32_t stage, uint16_t *out, grq_error *err);
/* side_fault of encoders whose side words are FP16 scales: finite, sign bit 0. */
const char *grq_f16_side_fault(const grq_encoder *encoder, const uint16_t *side, uint32_t n_stages, uint32_t *stage);

extern const grq_encoder grq_encoder_integer, grq_encoder_integer_rms, grq_encoder_pq, grq_encoder_tcq,
    grq_encoder_tcq_b, grq_encoder_tcq_t10, grq_encoder_tcq_t8;

/* ---- for the store: metadata of one encoder's own ---- */

enum { GRQ_MAX_DETAILS = 12, GRQ_DETAIL_BYTES = 128 };

typedef struct {
    size_t n;
    const char *key[GRQ_MAX_DETAILS];
    char value[GRQ_MAX_DETAILS][GRQ_DETAIL_BYTES];
} grq_details;

void grq_details_add(grq_details *details, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
grq_status grq_metadata_text(const grq_safetensors *file, const char *key, const char **out, grq_error *err);
grq_status grq_metadata_number(const grq_safetensors *file, const char *key, int64_t min, int64_t max, int64_t *out,
                               grq_error *err);

void grq_tcq_describe(const grq_encoder *encoder, uint32_t row_dim, grq_details *details);
/* Makes c->reader from what the file says. */
grq_status grq_tcq_configure(grq_codes *c, const grq_safetensors *file, grq_error *err);
void grq_pq_describe(const grq_encoder *encoder, grq_details *details);
/* Makes c->reader from what the file says, with the file's book where that is not the built-in one. */
grq_status grq_pq_configure(grq_codes *c, const grq_safetensors *file, grq_error *err);
const int8_t *grq_pq_stored_book(const grq_encoder *encoder); /* (256, 8), what the file must carry; NULL: nothing */

/* ---- encode.c ---- */

/* Codes rows [first, first + n) of `table`, n of them at most GRQ_CODE_BLOCK_ROWS, as `c` says (its planes are not
 * looked at). code[k]: (n, code_bytes), side[k]: (n) words; rows (n, row_dim) is scratch. Errors name the row. */
grq_status grq_encode_block(const grq_codes *c, const grq_table *table, uint64_t first, uint64_t n, float *rows,
                            uint8_t *const *code, uint8_t *const *side, grq_error *err);

/* ---- rotation.c ---- */

/* In place. `rotate` is undone by `unrotate`, up to rounding. */
void grq_rotate(float *row, uint32_t row_dim, uint64_t seed);
void grq_unrotate(float *row, uint32_t row_dim, uint64_t seed);
void grq_scale_by_power(float *row, uint32_t row_dim, int exponent); /* row[i] *= 2^exponent */

#endif
