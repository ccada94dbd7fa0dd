/* tcq: trellis-coded stages. A row goes through its stages here; a stage is in tcq_a.c or tcq_b.c. */
#include <stdlib.h>
#include <string.h>

#include "codec_internal.h"
#include "cpu/cpu_level.h"
#include "cpu/tcq_decode.h"
#include "shared/number.h"
#include "shared/simd.h"
#include "tcq.h"

enum { DIM_MULTIPLE = 32 };

uint32_t grq_tcq_warm_up(const grq_tcq_coding *coding, uint32_t row_dim)
{
    return row_dim / 2 * (row_dim < coding->short_row ? coding->short_warm_up : coding->warm_up);
}

/* ---- coding ---- */

static bool row_init(grq_tcq_row *row, const grq_tcq_coding *coding, const float *x, uint32_t n)
{
    const uint32_t warm_up = coding->format == 'A' ? grq_tcq_warm_up(coding, n) : 0;
    const uint32_t max_traced = warm_up > n ? warm_up : n, max_steps = 2 * warm_up > n ? 2 * warm_up : n;
    *row = (grq_tcq_row){ .coding = coding, .n = n };
    if (!grq_viterbi_init(&row->search, coding->code, n, max_steps, max_traced, grq_cpu_level())) return false;
    row->left = malloc(n * (sizeof *row->left + sizeof *row->q + sizeof *row->bits + sizeof *row->c));
    if (!row->left) return false;
    row->q = (int16_t *)(row->left + n);
    row->bits = (uint8_t *)(row->q + n);
    row->c = (int8_t *)(row->bits + n);
    memcpy(row->left, x, n * sizeof *x);
    return true;
}

static void row_clear(grq_tcq_row *row)
{
    grq_viterbi_clear(&row->search);
    free(row->left);
}

GRQ_SIMD static void subtract(float *left, const int8_t *c, uint32_t n, float factor)
{
    for (uint32_t i = 0; i < n; i++) left[i] -= factor * (float)c[i];
}

grq_status grq_tcq_encode_row(const grq_encoder *encoder, const float *row, uint32_t row_dim, uint32_t n_stages,
                              uint8_t *codes, uint16_t *side, grq_error *err)
{
    const grq_tcq_coding *const coding = encoder->detail;
    const size_t code_bytes = grq_code_bytes(row_dim);
    grq_tcq_row work;
    grq_status st = grq_check_finite(row, row_dim, err);
    if (st != GRQ_OK) return st;
    if (!row_init(&work, coding, row, row_dim)) {
        row_clear(&work);
        return grq_fail(err, GRQ_E_NOMEM, "no memory to code a row of %u values", row_dim);
    }
    double last_scale = 0;
    for (uint32_t k = 0; st == GRQ_OK && k < n_stages; k++) {
        uint8_t *const code = codes + k * code_bytes;
        grq_tcq_stage stage;
        st = coding->format == 'A' ? grq_tcq_stage_a(&work, k, code, &stage, err)
                                   : grq_tcq_stage_b(&work, k, last_scale, code, &stage, err);
        if (st != GRQ_OK) break;
        side[k] = stage.side;
        last_scale = stage.scale;
        if (stage.scale > 0) subtract(work.left, work.c, row_dim, (float)(stage.scale / 64));
        else memset(code, 0, code_bytes);
    }
    row_clear(&work);
    return st;
}

/* ---- decoding ---- */

void grq_tcq_decode_row(const grq_encoder *encoder, const uint8_t *const *codes, const uint16_t *side, uint32_t row_dim,
                        uint32_t depth, float *out)
{
    const grq_tcq_coding *const coding = encoder->detail;
    const grq_tcq_decoder *const decoder = grq_tcq_decoder_of_cpu();
    double scale[GRQ_MAX_STAGES];
    uint32_t tail[GRQ_MAX_STAGES], stage;
    if (coding->format == 'A') {
        for (uint32_t k = 0; k < depth; k++) {
            scale[k] = (double)grq_f32_from_f16(side[k]);
            tail[k] = grq_tcq_wrapped(codes[k]);
        }
    } else if (!grq_tcq_b_sides(coding->code, side, depth, scale, tail, &stage)) {
        memset(out, 0, row_dim * sizeof *out); /* opening a file refuses such words */
        return;
    }
    for (uint32_t k = 0; k < depth; k++)
        decoder->add(coding->code, codes[k], tail[k], row_dim, (float)(scale[k] / 64), k == 0, out);
}

const char *grq_tcq_side_fault(const grq_encoder *encoder, const uint16_t *side, uint32_t n_stages, uint32_t *stage)
{
    const grq_tcq_coding *const coding = encoder->detail;
    double scale[GRQ_MAX_STAGES];
    uint32_t tail[GRQ_MAX_STAGES];
    if (coding->format == 'A') return grq_f16_side_fault(encoder, side, n_stages, stage);
    return grq_tcq_b_sides(coding->code, side, n_stages, scale, tail, stage) ? NULL : "no side word of format B";
}

/* ---- the encoders ---- */

static const grq_tcq_coding t12 = { .code = &grq_tcq_t12, .format = 'A', .warm_up = 1 };
static const grq_tcq_coding t10 = { .code = &grq_tcq_t10, .format = 'A', .warm_up = 1 };
/* T8 is for short rows, which lose most by a short warm-up: there once around costs little and gains much. */
static const grq_tcq_coding t8 = {
    .code = &grq_tcq_t8, .format = 'A', .warm_up = 1, .short_row = 128, .short_warm_up = 2
};
static const grq_tcq_coding b12 = { .code = &grq_tcq_t12, .format = 'B' };

const grq_encoder grq_encoder_tcq = {
    .name = "tcq",
    .description = "trellis code, 12-bit window, tail-biting: least error in the paper's layout",
    .scale_rule = "least-squares",
    .dim_multiple = DIM_MULTIPLE,
    .kind = GRQ_KIND_TCQ,
    .detail = &t12,
    .encode_row = grq_tcq_encode_row,
    .decode_row = grq_tcq_decode_row,
    .side_fault = grq_tcq_side_fault,
};
const grq_encoder grq_encoder_tcq_b = {
    .name = "tcq-b",
    .description = "trellis code, 12-bit window, free end and small scales: the same bytes, less error, half the time",
    .scale_rule = "least-squares",
    .dim_multiple = DIM_MULTIPLE,
    .kind = GRQ_KIND_TCQ,
    .side_words = true,
    .detail = &b12,
    .encode_row = grq_tcq_encode_row,
    .decode_row = grq_tcq_decode_row,
    .side_fault = grq_tcq_side_fault,
};
const grq_encoder grq_encoder_tcq_t10 = {
    .name = "tcq-t10",
    .description = "as tcq with a 10-bit window: a third of the time",
    .scale_rule = "least-squares",
    .dim_multiple = DIM_MULTIPLE,
    .kind = GRQ_KIND_TCQ,
    .detail = &t10,
    .encode_row = grq_tcq_encode_row,
    .decode_row = grq_tcq_decode_row,
    .side_fault = grq_tcq_side_fault,
};
const grq_encoder grq_encoder_tcq_t8 = {
    .name = "tcq-t8",
    .description = "as tcq with an 8-bit window: for rows of 32 and 64 values",
    .scale_rule = "least-squares",
    .dim_multiple = DIM_MULTIPLE,
    .kind = GRQ_KIND_TCQ,
    .detail = &t8,
    .encode_row = grq_tcq_encode_row,
    .decode_row = grq_tcq_decode_row,
    .side_fault = grq_tcq_side_fault,
};
