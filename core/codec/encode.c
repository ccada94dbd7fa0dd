/* Coding a whole table, block by block on several threads. */
#include <inttypes.h>
#include <stdlib.h>

#include "codec_internal.h"

enum { BLOCK_ROWS = 4096 }; /* fixed, so that nothing depends on the number of threads */

static grq_status allocate_planes(grq_codes *c, grq_error *err)
{
    for (uint32_t k = 0; k < c->n_stages; k++) {
        c->owned[2 * k] = malloc(c->n_rows * c->code_bytes);
        c->owned[2 * k + 1] = malloc(c->n_rows * sizeof(uint16_t));
        if (!c->owned[2 * k] || !c->owned[2 * k + 1])
            return grq_fail(err, GRQ_E_NOMEM, "no memory for stage %u of %" PRIu64 " rows", k + 1, c->n_rows);
        c->code[k] = c->owned[2 * k];
        c->side[k] = c->owned[2 * k + 1];
    }
    return GRQ_OK;
}

static grq_status transform_row(const grq_codes *c, const float *row, float *out, grq_error *err)
{
    memcpy(out, row, c->row_dim * sizeof *out);
    grq_scale_by_power(out, c->row_dim, -c->transform.exp_tab);
    if (c->transform.rotate) grq_rotate(out, c->row_dim, c->transform.rotation_seed);
    /* What was finite may no longer be; what was not is named as the table holds it. */
    const grq_status st = grq_check_finite(row, c->row_dim, err);
    return st == GRQ_OK ? grq_check_finite(out, c->row_dim, err) : st;
}

static grq_status encode_block(const grq_codes *c, const float *table, uint64_t first, uint64_t n, grq_error *err)
{
    const bool changed = c->transform.rotate || c->transform.exp_tab;
    uint8_t *codes = malloc(c->n_stages * c->code_bytes);
    float *own = malloc(c->row_dim * sizeof *own);
    uint16_t side[GRQ_MAX_STAGES];
    grq_status st = codes && own ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for the codes of a row");
    for (uint64_t r = first; st == GRQ_OK && r < first + n; r++) {
        const float *const row = table + r * c->row_dim;
        if (changed) st = transform_row(c, row, own, err);
        if (st == GRQ_OK)
            st = c->encoder->encode_row(c->encoder, changed ? own : row, c->row_dim, c->n_stages, codes, side, err);
        if (st != GRQ_OK) grq_fail_prefix(err, st, "row %" PRIu64, r);
        for (uint32_t k = 0; st == GRQ_OK && k < c->n_stages; k++) {
            memcpy(c->owned[2 * k] + r * c->code_bytes, codes + k * c->code_bytes, c->code_bytes);
            memcpy(c->owned[2 * k + 1] + r * sizeof *side, &side[k], sizeof *side);
        }
    }
    free(codes);
    free(own);
    return st;
}

/* The error of the lowest row wins, whichever thread meets one first. */
static grq_status encode_rows(const grq_codes *c, const float *table, uint32_t n_threads, const grq_progress *progress,
                              grq_error *err)
{
    const uint64_t n_blocks = (c->n_rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    uint64_t failed_block = UINT64_MAX, n_done = 0;
    grq_error failure = { .status = GRQ_OK };
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads)
    for (uint64_t b = 0; b < n_blocks; b++) {
        uint64_t stop;
#pragma omp atomic read
        stop = failed_block;
        if (b > stop) continue;
        const uint64_t first = b * BLOCK_ROWS, left = c->n_rows - first;
        const uint64_t n = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        grq_error own = { .status = GRQ_OK };
        const grq_status st = encode_block(c, table, first, n, &own);
#pragma omp critical(grq_encode)
        {
            n_done += n;
            grq_status told = st;
            if (st == GRQ_OK && failed_block == UINT64_MAX)
                told = grq_progress_step(progress, "encode", n_done, c->n_rows, "rows", NULL, &own);
            if (told != GRQ_OK && b < failed_block) {
                failure = own;
#pragma omp atomic write
                failed_block = b;
            }
        }
    }
    return failure.status == GRQ_OK ? GRQ_OK : grq_fail(err, failure.status, "%s", failure.message);
}

grq_status grq_codes_encode(const grq_encoder *encoder, const float *table, uint64_t n_rows, uint32_t row_dim,
                            uint32_t n_stages, const grq_codes_origin *origin, uint32_t n_threads,
                            const grq_progress *progress, grq_codes **out, grq_error *err)
{
    return grq_codes_encode_transformed(encoder, NULL, table, n_rows, row_dim, n_stages, origin, n_threads, progress,
                                        out, err);
}

grq_status grq_codes_encode_transformed(const grq_encoder *encoder, const grq_codes_transform *transform,
                                        const float *table, uint64_t n_rows, uint32_t row_dim, uint32_t n_stages,
                                        const grq_codes_origin *origin, uint32_t n_threads,
                                        const grq_progress *progress, grq_codes **out, grq_error *err)
{
    grq_codes *c = NULL;
    *out = NULL;
    grq_status st = grq_codes_new(encoder, transform, n_rows, row_dim, n_stages, origin, &c, err);
    if (st == GRQ_OK) st = allocate_planes(c, err);
    if (st == GRQ_OK) st = encode_rows(c, table, n_threads ? n_threads : 1, progress, err);
    if (st == GRQ_OK) *out = c;
    else grq_codes_close(c);
    return st;
}
