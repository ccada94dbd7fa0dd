/* experiments/bench_tables.h - large tables in mapped files, for benchmarks of look-ups. */
#ifndef GATERQ_BENCH_TABLES_H
#define GATERQ_BENCH_TABLES_H

#include "gaterq/codec.h"
#include "gaterq/geometry.h"
#include "gaterq/safetensors.h"
#include "gaterq/table.h"

enum { BENCH_ROW_DIM = 256 };

/* A table to fetch from, and the plane that its bound reads. */
typedef struct {
    const char *name; /* "FP8, 256 + 8 bytes" */
    uint32_t lines_per_row;
    grq_geometry geometry;
    grq_safetensors *file;
    grq_codes *codes;
    grq_table *table;
    const uint8_t *plane;
    uint64_t n_lines;
} bench_table;

/* Of about `bytes` bytes: FP8 rows of 256 values with their scales, as DeepSeek-V4.1 stores them; stage 1 of codes. */
grq_status bench_table_f8(double bytes, bench_table *out, grq_error *err);
grq_status bench_table_stage_1(double bytes, bench_table *out, grq_error *err);
void bench_table_close(bench_table *table);

/* Reads from every page once, so that no measured read is a page's first. Codes have a mapping of their own: a row per
 * page is fetched. *sum takes part of what was read, so that no compiler leaves it out. */
grq_status bench_table_touch(const bench_table *table, uint64_t *sum, grq_error *err);

#endif
