/* Format A: tail-biting, one FP16 scale per stage. Source: specs/encoders.md section 5. */
#include "codec_internal.h"
#include "shared/number.h"
#include "tcq.h"

grq_status grq_tcq_stage_a(grq_tcq_row *row, uint32_t stage, uint8_t *code, grq_tcq_stage *out, grq_error *err)
{
    const uint32_t n = row->n, warm_up = grq_tcq_warm_up(row->coding, n),
                   n_nodes = 1u << (row->coding->code->n_bits - 1);
    const double rms = grq_tcq_rms(row);
    *out = (grq_tcq_stage){ 0 };
    if (!(rms > 0) || !grq_tcq_quantise(row, row->coding->rms ? rms : 0.87 * rms)) return GRQ_OK;
    grq_viterbi_begin(&row->search, row->q);
    /* Once around from anywhere, to learn in which node a good cycle passes the row's start ... */
    uint32_t end;
    const uint32_t node = grq_viterbi_search(&row->search,
                                             &(grq_viterbi_path){ .first = (n - warm_up % n) % n,
                                                                  .n_steps = 2 * warm_up,
                                                                  .n_traced = warm_up,
                                                                  .start = GRQ_ANY_NODE,
                                                                  .end = GRQ_ANY_NODE,
                                                                  .n_ends = n_nodes },
                                             NULL, &end);
    /* ... and from that node back to it. */
    grq_viterbi_search(
        &row->search,
        &(grq_viterbi_path){
            .n_steps = n, .n_traced = n, .start = (int32_t)node, .end = (int32_t)node, .n_ends = n_nodes },
        row->bits, &end);
    grq_tcq_pack(row, code);
    grq_tcq_take_values(row, code, grq_tcq_wrapped(code));
    const double scale = row->coding->rms ? rms : grq_tcq_least_squares(row);
    const grq_status st = grq_f16_scale(scale, stage, &out->side, err);
    out->scale = (double)grq_f32_from_f16(out->side);
    return st;
}
