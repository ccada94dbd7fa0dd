/* Coding tables in memory, block by block on several threads. Files: encode_file.c. */
#include <inttypes.h>
#include <stdlib.h>

#include "block_run.h"
#include "blocks.h"
#include "codec_internal.h"

/* ---- one block ---- */

/* What was finite may no longer be. */
static grq_status transform_row(const grq_codes *c, float *row, grq_error *err)
{
    if (c->transform.exp_tab) grq_scale_by_power(row, c->row_dim, -c->transform.exp_tab);
    if (c->transform.rotate) grq_rotate(row, c->row_dim, c->transform.rotation_seed);
    return c->transform.exp_tab || c->transform.rotate ? grq_check_finite(row, c->row_dim, err) : GRQ_OK;
}

static grq_status fetch_block(const grq_table *table, uint64_t first, uint64_t n, float *rows, grq_error *err)
{
    int64_t numbers[GRQ_CODE_BLOCK_ROWS];
    for (uint64_t i = 0; i < n; i++) numbers[i] = (int64_t)(first + i);
    return grq_table_fetch(table, n, 1, numbers, rows, err);
}

grq_status grq_encode_block(const grq_codes *c, const grq_table *table, uint64_t first, uint64_t n, float *rows,
                            uint8_t *const *code, uint8_t *const *side, grq_error *err)
{
    uint16_t words[GRQ_MAX_STAGES];
    uint8_t *const codes = malloc(c->n_stages * c->code_bytes);
    if (!codes) return grq_fail(err, GRQ_E_NOMEM, "no memory for the codes of a row");
    grq_status st = fetch_block(table, first, n, rows, err);
    for (uint64_t i = 0; st == GRQ_OK && i < n; i++) {
        float *const row = rows + i * c->row_dim;
        st = transform_row(c, row, err);
        if (st == GRQ_OK) st = c->reader.encode_row(&c->reader, row, c->row_dim, c->n_stages, codes, words, err);
        if (st != GRQ_OK) grq_fail_prefix(err, st, "%s: row %" PRIu64, grq_table_name(table), first + i);
        for (uint32_t k = 0; st == GRQ_OK && k < c->n_stages; k++) {
            memcpy(code[k] + i * c->code_bytes, codes + k * c->code_bytes, c->code_bytes);
            memcpy(side[k] + i * sizeof *words, &words[k], sizeof *words);
        }
    }
    free(codes);
    return st;
}

/* ---- a table ---- */

static grq_status allocate(grq_codes *c, grq_error *err)
{
    const uint64_t n_digests = grq_n_blocks(c->n_rows) * GRQ_SHA256_BYTES;
    bool all = true;
    for (uint32_t k = 0; k < c->n_stages; k++) {
        c->code[k] = c->owned[2 * k] = malloc(c->n_rows * c->code_bytes);
        c->side[k] = c->owned[2 * k + 1] = malloc(c->n_rows * sizeof(uint16_t));
        all = all && c->code[k] && c->side[k];
    }
    c->coded_digests = c->owned[2 * GRQ_MAX_STAGES] = malloc(n_digests);
    c->source_digests = c->owned[2 * GRQ_MAX_STAGES + 1] = malloc(n_digests);
    if (all && c->coded_digests && c->source_digests) return GRQ_OK;
    return grq_fail(err, GRQ_E_NOMEM, "no memory for codes of %" PRIu64 " rows", c->n_rows);
}

static grq_status encode_into(const grq_codes *c, const grq_table *table, uint64_t block, grq_error *err)
{
    const uint64_t first = block * GRQ_CODE_BLOCK_ROWS, n = grq_block_rows(c->n_rows, block);
    uint8_t *code[GRQ_MAX_STAGES], *side[GRQ_MAX_STAGES];
    for (uint32_t k = 0; k < c->n_stages; k++) {
        code[k] = c->owned[2 * k] + first * c->code_bytes;
        side[k] = c->owned[2 * k + 1] + first * sizeof(uint16_t);
    }
    float *const rows = malloc(n * c->row_dim * sizeof *rows);
    if (!rows) return grq_fail(err, GRQ_E_NOMEM, "no memory for a block of rows");
    uint8_t *const digests = c->owned[2 * GRQ_MAX_STAGES], *const source = c->owned[2 * GRQ_MAX_STAGES + 1];
    grq_status st = grq_encode_block(c, table, first, n, rows, code, side, err);
    if (st == GRQ_OK)
        st = grq_digest_coded_rows((const uint8_t *const *)code, (const uint8_t *const *)side, c->n_stages,
                                   c->code_bytes, n, digests + block * GRQ_SHA256_BYTES, err);
    if (st == GRQ_OK) st = grq_digest_stored_rows(table, first, n, source + block * GRQ_SHA256_BYTES, err);
    free(rows);
    return st;
}

static grq_status encode_rows(const grq_codes *c, const grq_table *table, uint32_t n_threads,
                              const grq_progress *progress, grq_error *err)
{
    const uint64_t n_blocks = grq_n_blocks(c->n_rows);
    grq_block_run run = grq_block_run_of(n_blocks, c->n_rows, "encode", progress);
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads)
    for (uint64_t b = 0; b < n_blocks; b++) {
        if (grq_block_run_over(&run, b)) continue;
        grq_error own = { .status = GRQ_OK };
        const grq_status st = encode_into(c, table, b, &own);
        grq_block_run_ended(&run, b, grq_block_rows(c->n_rows, b), st, &own);
    }
    return grq_block_run_status(&run, err);
}

static grq_status table_of_floats(const float *values, uint64_t n_rows, uint32_t row_dim, const char *name,
                                  grq_table **out, grq_error *err)
{
    const void *const pieces[] = { values };
    const grq_table_layout layout = { .format = GRQ_ROWS_F32,
                                      .n_rows = n_rows,
                                      .row_dim = row_dim,
                                      .rows_per_piece = n_rows,
                                      .values = pieces,
                                      .name = name && *name ? name : "table" };
    return grq_table_new(&layout, out, err);
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
    grq_table *rows = NULL;
    *out = NULL;
    grq_status st = grq_codes_new(encoder, transform, n_rows, row_dim, n_stages, origin, &c, err);
    if (st == GRQ_OK) st = table_of_floats(table, n_rows, row_dim, origin ? origin->source : NULL, &rows, err);
    if (st == GRQ_OK) st = allocate(c, err);
    if (st == GRQ_OK) st = encode_rows(c, rows, n_threads ? n_threads : 1, progress, err);
    grq_table_free(rows);
    if (st == GRQ_OK) *out = c;
    else grq_codes_close(c);
    return st;
}
