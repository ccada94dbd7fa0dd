/* gaterq/table.h - rows of a memory table, however and wherever they are stored.
 *
 * A table is a view of stored rows: one plane or many pieces, binary32 or BF16, F16, FP8 (with an E8M0 scale per row
 * and 32 values, as DeepSeek-V4.1, or one scale for all, as Qwen3.8's FP8 variant), or codes at a depth. It owns no
 * rows: they usually lie in a mapped file, which may be larger than memory. An open table never changes; any number of
 * threads may read it. Sources: specs/deepseek-v41-engram.md sections 3 and 8, specs/qwen38-ple.md sections 3 and 7. */
#ifndef GATERQ_TABLE_H
#define GATERQ_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/codec.h"
#include "gaterq/status.h"

typedef enum {
    GRQ_ROWS_F32,
    GRQ_ROWS_BF16,
    GRQ_ROWS_F16,
    GRQ_ROWS_F8_BLOCKS, /* E4M3 codes, an E8M0 scale per row and 32 values: exact in binary32 and in BF16 */
    GRQ_ROWS_F8_SCALAR  /* E4M3 codes, one scale for the table; a value is rounded to BF16 */
} grq_row_format;

/* The two readings of an E8M0 byte b that are in use. They differ in the corners only. */
typedef enum {
    GRQ_E8M0_OCP,  /* 2^(b - 127); 255 is NaN, which a fetch refuses. The default */
    GRQ_E8M0_SHIFT /* b << 23 read as binary32: 0 is 0, 255 is infinity, which a fetch refuses too */
} grq_e8m0_rule;

typedef struct {
    grq_row_format format;
    uint64_t n_rows;
    uint32_t row_dim;
    uint64_t rows_per_piece;   /* row r lies in piece r / rows_per_piece; n_rows or more when there is one piece */
    const void *const *values; /* per piece: (rows of the piece, row_dim) in `format`, of any alignment */
    const void *const *scales; /* per piece: (rows, ceil(row_dim / 32)) bytes; GRQ_ROWS_F8_BLOCKS only */
    float scale;               /* GRQ_ROWS_F8_SCALAR only */
    grq_e8m0_rule e8m0;
    const char *name; /* for messages: "model-00047.safetensors: layers.1.engram.embed.weight" */
} grq_table_layout;

typedef struct grq_table grq_table;

/* Copies the layout, its pointers and its name, but no rows: those must outlive the table. */
grq_status grq_table_new(const grq_table_layout *layout, grq_table **out, grq_error *err);
/* The rows as `codes` have them at `depth` (1 to its stages); `codes` must outlive the table. */
grq_status grq_table_of_codes(const grq_codes *codes, uint32_t depth, grq_table **out, grq_error *err);
void grq_table_free(grq_table *table); /* takes NULL */

uint64_t grq_table_n_rows(const grq_table *table);
uint32_t grq_table_row_dim(const grq_table *table);
const char *grq_table_name(const grq_table *table);
double grq_table_row_bytes(const grq_table *table); /* that a fetch of one row reads, scales included */

/* rows (n_positions, n_columns) -> out (n_positions, n_columns, row_dim). A row number that is not in the table is an
 * error that names position, column, number and table size; a stored NaN or infinity one that names the row. */
grq_status grq_table_fetch(const grq_table *table, size_t n_positions, uint32_t n_columns, const int64_t *rows,
                           float *out, grq_error *err);

/* The bytes of one row as they are stored: values, then its scales (n_scales 0: none). Nothing (all 0) for rows of
 * codes. */
typedef struct {
    const void *values, *scales;
    size_t n_values, n_scales;
} grq_stored_row;
grq_stored_row grq_table_stored(const grq_table *table, uint64_t row);

/* One of `count` owners of the table's rows: owner i has rows floor(n i / count) to floor(n (i + 1) / count) - 1,
 * perhaps none. */
typedef struct {
    uint32_t index, count;
} grq_shard;

void grq_shard_range(uint64_t n_rows, grq_shard shard, uint64_t *first, uint64_t *end);

/* As grq_table_fetch, for the rows that this owner has; others become -0, which added to anything changes nothing: the
 * sum over all owners has the unsharded bits (an all-reduce, say). Source: specs/integration.md section 5.5, rule 3. */
grq_status grq_table_fetch_shard(const grq_table *table, grq_shard shard, size_t n_positions, uint32_t n_columns,
                                 const int64_t *rows, float *out, grq_error *err);

#endif
