#include "blocks.h"

grq_status grq_digest_coded_rows(const uint8_t *const *code, const uint8_t *const *side, uint32_t n_stages,
                                 size_t code_bytes, uint64_t n, uint8_t digest[GRQ_SHA256_BYTES], grq_error *err)
{
    grq_sha256_stream *stream;
    const grq_status st = grq_sha256_start(&stream, err);
    if (st != GRQ_OK) return st;
    for (uint32_t k = 0; k < n_stages; k++) {
        grq_sha256_add(stream, code[k], n * code_bytes);
        grq_sha256_add(stream, side[k], n * sizeof(uint16_t));
    }
    return grq_sha256_finish(stream, digest, err);
}

grq_status grq_digest_stored_rows(const grq_table *table, uint64_t first, uint64_t n, uint8_t digest[GRQ_SHA256_BYTES],
                                  grq_error *err)
{
    grq_sha256_stream *stream;
    const grq_status st = grq_sha256_start(&stream, err);
    if (st != GRQ_OK) return st;
    for (uint64_t r = first; r < first + n; r++) {
        const grq_stored_row row = grq_table_stored(table, r);
        grq_sha256_add(stream, row.values, row.n_values);
    }
    for (uint64_t r = first; r < first + n; r++) {
        const grq_stored_row row = grq_table_stored(table, r);
        if (row.n_scales) grq_sha256_add(stream, row.scales, row.n_scales);
    }
    return grq_sha256_finish(stream, digest, err);
}
