#include "memory/shard.h"

#include <stdlib.h>
#include <string.h>

void grq_shard_range(uint64_t n_rows, grq_shard shard, uint64_t *first, uint64_t *end)
{
    *first = (uint64_t)((unsigned __int128)n_rows * shard.index / shard.count);
    *end = (uint64_t)((unsigned __int128)n_rows * (shard.index + 1) / shard.count);
}

grq_status grq_table_fetch_shard(const grq_table *t, grq_shard shard, size_t n_positions, uint32_t n_columns,
                                 const int64_t *rows, float *out, grq_error *err)
{
    if (shard.count < 1 || shard.index >= shard.count)
        return grq_fail(err, GRQ_E_USAGE, "shard %u of %u", shard.index, shard.count);
    const size_t dim = grq_table_row_dim(t);
    uint64_t first, end;
    grq_shard_range(grq_table_n_rows(t), shard, &first, &end);
    grq_status st = GRQ_OK;
    for (size_t p = 0; st == GRQ_OK && p < n_positions; p++)
        for (uint32_t c = 0; st == GRQ_OK && c < n_columns; c++) {
            const size_t i = p * n_columns + c;
            const bool stranger = rows[i] < 0 || (uint64_t)rows[i] >= grq_table_n_rows(t);
            if (stranger || ((uint64_t)rows[i] >= first && (uint64_t)rows[i] < end)) {
                st = grq_table_fetch(t, 1, 1, rows + i, out + i * dim, err);
                if (st != GRQ_OK) grq_fail_prefix(err, st, "position %zu, head %u", p, c);
            } else {
                for (size_t j = 0; j < dim; j++) out[i * dim + j] = -0.0f;
            }
        }
    return st;
}

grq_status grq_table_fetch_sharded(const grq_table *t, uint32_t n_shards, size_t n_positions, uint32_t n_columns,
                                   const int64_t *rows, float *out, grq_error *err)
{
    if (n_shards == 1) return grq_table_fetch(t, n_positions, n_columns, rows, out, err);
    const size_t n = n_positions * n_columns * grq_table_row_dim(t);
    float *part = malloc(n * sizeof *part);
    if (!part) return grq_fail(err, GRQ_E_NOMEM, "no memory for a shard's rows");
    grq_status st = GRQ_OK;
    for (uint32_t s = 0; st == GRQ_OK && s < n_shards; s++) {
        st = grq_table_fetch_shard(t, (grq_shard){ s, n_shards }, n_positions, n_columns, rows, s ? part : out, err);
        for (size_t i = 0; st == GRQ_OK && s > 0 && i < n; i++) out[i] += part[i];
    }
    free(part);
    return st;
}
