/* integer: sign codes and one FP16 scale per row and stage. Source: specs/encoders.md sections 1 and 2.
 *
 * A stage's residual is never stored: it is the row less what the earlier stages' codes say, formed again in blocks, so
 * that coding needs no memory beside its output. */
#include <math.h>

#include "codec_internal.h"
#include "lane_sum.h"
#include "shared/number.h"
#include "shared/simd.h"

enum { BLOCK = GRQ_SUM_LANES }; /* values per code word, and lanes of a sum */

#define INLINE static inline __attribute__((always_inline)) /* into every clone of a GRQ_SIMD function */

INLINE uint32_t block_length(uint32_t row_dim, uint32_t first)
{
    return row_dim - first < BLOCK ? row_dim - first : BLOCK;
}

INLINE uint32_t load_word(const uint8_t *bytes, uint32_t n_bits)
{
    uint32_t word = 0;
    if (n_bits == BLOCK) memcpy(&word, bytes, sizeof word);
    else memcpy(&word, bytes, (n_bits + 7) / 8);
    return word;
}

INLINE void store_word(uint8_t *bytes, uint32_t n_bits, uint32_t word)
{
    if (n_bits < BLOCK) word &= (1u << n_bits) - 1; /* unused bits of a last byte are 0 */
    memcpy(bytes, &word, (n_bits + 7) / 8);
}

/* values += factor * c, where c is +1 for a set bit and -1 for a clear one. Exact but for the sum. */
INLINE void add_signs(uint32_t word, float factor, float values[BLOCK])
{
    for (uint32_t j = 0; j < BLOCK; j++) values[j] += word & (1u << j) ? factor : -factor;
}

/* Codes what stages 0..stage-1 left over. Returns S(|r|), or S(r^2) when `squares`. codes (n_stages, code_bytes). */
GRQ_SIMD static double code_signs(const float *row, uint32_t row_dim, uint32_t stage, const float *factor, bool squares,
                                  uint8_t *codes)
{
    const size_t code_bytes = grq_code_bytes(row_dim);
    double lane[BLOCK] = { 0 };
    for (uint32_t i = 0; i < row_dim; i += BLOCK) {
        const uint32_t n = block_length(row_dim, i);
        float r[BLOCK] = { 0 };
        memcpy(r, row + i, n * sizeof *r);
        for (uint32_t k = 0; k < stage; k++) add_signs(load_word(codes + k * code_bytes + i / 8, n), -factor[k], r);
        for (uint32_t j = n; j < BLOCK; j++) r[j] = 0; /* past the end: adds nothing */
        if (squares)
            for (uint32_t j = 0; j < BLOCK; j++) lane[j] += (double)r[j] * (double)r[j];
        else
            for (uint32_t j = 0; j < BLOCK; j++) lane[j] += fabs((double)r[j]);
        uint32_t word = 0;
        for (uint32_t j = 0; j < BLOCK; j++) word |= (r[j] >= 0 ? 1u : 0u) << j;
        store_word(codes + stage * code_bytes + i / 8, n, word);
    }
    return grq_fold_lanes(lane);
}

static grq_status encode_row(bool rms, const float *row, uint32_t row_dim, uint32_t n_stages, uint8_t *codes,
                             uint16_t *side, grq_error *err)
{
    grq_status st = grq_check_finite(row, row_dim, err);
    const size_t code_bytes = grq_code_bytes(row_dim);
    float factor[GRQ_MAX_STAGES];
    for (uint32_t k = 0; st == GRQ_OK && k < n_stages; k++) {
        const double mean = code_signs(row, row_dim, k, factor, rms, codes) / row_dim;
        st = grq_f16_scale(rms ? sqrt(mean) : mean, k, &side[k], err);
        factor[k] = grq_f32_from_f16(side[k]);
        if (side[k] == 0) memset(codes + k * code_bytes, 0, code_bytes); /* zero rule */
    }
    return st;
}

static grq_status encode_opt(const grq_encoder *encoder, const float *row, uint32_t row_dim, uint32_t n_stages,
                             uint8_t *codes, uint16_t *side, grq_error *err)
{
    (void)encoder;
    return encode_row(false, row, row_dim, n_stages, codes, side, err);
}

static grq_status encode_rms(const grq_encoder *encoder, const float *row, uint32_t row_dim, uint32_t n_stages,
                             uint8_t *codes, uint16_t *side, grq_error *err)
{
    (void)encoder;
    return encode_row(true, row, row_dim, n_stages, codes, side, err);
}

/* Stages are summed one after another from +0, never in another order and never with factors added up first. A zero
 * factor adds a zero of either sign, which changes nothing. */
GRQ_SIMD static void sum_stages(const uint8_t *const *codes, const float *factor, uint32_t row_dim, uint32_t depth,
                                float *out)
{
    const uint32_t whole = row_dim / BLOCK * BLOCK, rest = row_dim - whole;
    memset(out, 0, row_dim * sizeof *out);
    for (uint32_t k = 0; k < depth; k++)
        for (uint32_t i = 0; i < whole; i += BLOCK) add_signs(load_word(codes[k] + i / 8, BLOCK), factor[k], out + i);
    if (rest == 0) return;
    float y[BLOCK] = { 0 };
    for (uint32_t k = 0; k < depth; k++) add_signs(load_word(codes[k] + whole / 8, rest), factor[k], y);
    memcpy(out + whole, y, rest * sizeof *y);
}

static void decode_row(const grq_encoder *encoder, const uint8_t *const *codes, const uint16_t *side, uint32_t row_dim,
                       uint32_t depth, float *out)
{
    (void)encoder;
    float factor[GRQ_MAX_STAGES];
    for (uint32_t k = 0; k < depth; k++) factor[k] = grq_f32_from_f16(side[k]);
    sum_stages(codes, factor, row_dim, depth, out);
}

const grq_encoder grq_encoder_integer = {
    .name = "integer",
    .scale_rule = "opt",
    .dim_multiple = 1,
    .encode_row = encode_opt,
    .decode_row = decode_row,
    .side_fault = grq_f16_side_fault,
    .description = "signs, scale = mean magnitude: best at depth 1",
};
const grq_encoder grq_encoder_integer_rms = {
    .name = "integer-rms",
    .scale_rule = "rms",
    .dim_multiple = 1,
    .encode_row = encode_rms,
    .decode_row = decode_row,
    .side_fault = grq_f16_side_fault,
    .description = "signs, scale = root mean square: the paper's toy, better from depth 2 on",
};
