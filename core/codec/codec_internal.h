/* What the files of core/codec share: the coded table itself. */
#ifndef GATERQ_CODEC_INTERNAL_H
#define GATERQ_CODEC_INTERNAL_H

#include <string.h>

#include "gaterq/codec.h"
#include "gaterq/safetensors.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "code planes are mapped as they lie in the file, which is little-endian"
#endif

/* Planes are (n_rows, code_bytes) and (n_rows) words of 16 bits. They lie in `file`'s mapping, or in `owned`. */
struct grq_codes {
    const grq_encoder *encoder;
    uint64_t n_rows;
    uint32_t row_dim, n_stages;
    size_t code_bytes;
    const uint8_t *code[GRQ_MAX_STAGES];
    const uint8_t *side[GRQ_MAX_STAGES]; /* bytes, as a file need not align them */
    grq_codes_origin origin;             /* strings owned */
    grq_safetensors *file;
    uint8_t *owned[2 * GRQ_MAX_STAGES];
};

static inline uint16_t grq_side_word(const grq_codes *codes, uint32_t stage, uint64_t row)
{
    uint16_t word;
    memcpy(&word, codes->side[stage] + row * sizeof word, sizeof word);
    return word;
}

/* A codes object without planes; copies the origin (NULL: unknown). Fails when the shape makes no sense. */
grq_status grq_codes_new(const grq_encoder *encoder, uint64_t n_rows, uint32_t row_dim, uint32_t n_stages,
                         const grq_codes_origin *origin, grq_codes **out, grq_error *err);

/* The first value that is NaN or infinite, or row_dim when there is none. */
uint32_t grq_first_not_finite(const float *row, uint32_t row_dim);

extern const grq_encoder grq_encoder_integer, grq_encoder_integer_rms;

#endif
