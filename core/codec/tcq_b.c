/* Format B: a free end, whose bits share the side word with a small scale. Source: specs/encoders.md section 6. */
#include <math.h>

#include "codec_internal.h"
#include "tcq.h"

enum { RATIO_SHIFT = 11, TAIL_SHIFT = 8, MAX_TAIL_1 = 8 };

/* ---- side words ---- */

double grq_tcq_u8_scale(uint8_t byte)
{
    return byte == 0 ? 0 : ldexp(8 + (byte & 7), (byte >> 3) - 27);
}

int grq_tcq_u8_encode(double scale)
{
    int exponent;
    if (!(scale > 0)) return 0;
    if (!isfinite(scale)) return 256;
    const double fraction = frexp(scale, &exponent);
    int m = (int)rint(16 * fraction) - 8, e = exponent + 23;
    if (m == 8) m = 0, e++;
    return e < 1 ? 0 : e > 31 ? 256 : 8 * e + m;
}

/* The scale of a later stage, as a share of the one before: (20 + ratio) / 64. */
static double scale_of_ratio(double last, uint32_t ratio)
{
    return last * (20 + ratio) / 64;
}

static uint32_t ratio_of_scale(double last, double scale)
{
    const double ratio = rint(64 * (scale / last)) - 20;
    return ratio < 1 ? 1 : ratio > 31 ? 31 : (uint32_t)ratio;
}

static uint32_t tail_bits(const grq_tcq_code *code, uint32_t stage)
{
    const uint32_t n = code->n_bits - 1;
    return stage == 0 && n > MAX_TAIL_1 ? MAX_TAIL_1 : n;
}

bool grq_tcq_b_sides(const grq_tcq_code *code, const uint16_t *side, uint32_t n_stages, double *scale, uint32_t *tail,
                     uint32_t *stage)
{
    for (uint32_t k = 0; k < n_stages; k++) {
        const uint32_t low = k == 0 ? side[k] & 0xFFu : side[k] >> RATIO_SHIFT;
        *stage = k;
        tail[k] = k == 0 ? side[k] >> TAIL_SHIFT : side[k] & ((1u << RATIO_SHIFT) - 1);
        if (low == 0 ? side[k] != 0 : tail[k] >> tail_bits(code, k) != 0) return false;
        if (k == 0 && low > 0 && low < 8) return false;
        if (k > 0 && low > 0 && !(scale[k - 1] > 0)) return false; /* a zero stage is followed by zero ones */
        scale[k] = k == 0 ? grq_tcq_u8_scale((uint8_t)low) : low ? scale_of_ratio(scale[k - 1], low) : 0;
    }
    return true;
}

/* ---- a stage ---- */

grq_status grq_tcq_stage_b(grq_tcq_row *row, uint32_t stage, double last_scale, uint8_t *code, grq_tcq_stage *out,
                           grq_error *err)
{
    *out = (grq_tcq_stage){ 0 };
    const double rms = grq_tcq_rms(row);
    if (!(rms > 0) || (stage > 0 && !(last_scale > 0))) return GRQ_OK;
    const int byte = stage == 0 ? grq_tcq_u8_encode(0.88 * rms) : 0;
    const double search_scale = stage > 0    ? scale_of_ratio(last_scale, ratio_of_scale(last_scale, 0.88 * rms))
                                : byte < 256 ? grq_tcq_u8_scale((uint8_t)byte)
                                             : HUGE_VAL;
    if (search_scale == 0) return GRQ_OK;
    double scale = 0.88 * rms;
    uint32_t tail = 0;
    if (isfinite(search_scale)) {
        if (!grq_tcq_quantise(row, search_scale)) return GRQ_OK;
        grq_viterbi_begin(&row->search, row->q);
        grq_viterbi_search(&row->search,
                           &(grq_viterbi_path){ .n_steps = row->n,
                                                .n_traced = row->n,
                                                .start = GRQ_ANY_NODE,
                                                .end = GRQ_ANY_NODE,
                                                .n_ends = 1u << tail_bits(row->coding->code, stage) },
                           row->bits, &tail);
        grq_tcq_pack(row, code);
        grq_tcq_take_values(row, code, tail);
        scale = grq_tcq_least_squares(row);
    }
    if (stage == 0) {
        const int stored = grq_tcq_u8_encode(scale);
        if (stored > 255)
            return grq_fail(err, GRQ_E_DATA,
                            "the scale of stage 1 is %g, beyond format B's 240: scale out of range, set exp_tab",
                            scale);
        out->scale = grq_tcq_u8_scale((uint8_t)stored);
        if (stored) out->side = (uint16_t)((uint32_t)stored | tail << TAIL_SHIFT);
    } else {
        const uint32_t ratio = ratio_of_scale(last_scale, scale);
        out->scale = scale_of_ratio(last_scale, ratio);
        out->side = (uint16_t)(tail | ratio << RATIO_SHIFT);
        /* The ratio cannot be small enough: coding would make the row worse. */
        if (scale == 0 || out->scale > 2 * scale) *out = (grq_tcq_stage){ 0 };
    }
    return GRQ_OK;
}
