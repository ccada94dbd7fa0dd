/* Tables for benchmarks. They lie in mapped files, as real ones do. The files are in memory (or in $TMPDIR where that
 * has no room) and lose their name at once. They hold zeros: no part of a fetch depends on a value. */
#include "bench_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cpu/prefetch.h"
#include "gaterq/file.h"
#include "tool.h"

enum { N_SCALES = BENCH_ROW_DIM / 32, CODE_BYTES = BENCH_ROW_DIM / 8 };

void bench_table_close(bench_table *s)
{
    grq_table_free(s->table);
    grq_codes_close(s->codes);
    grq_safetensors_close(s->file);
}

/* DeepSeek-V4.1's geometry with fewer rows: as many as `bytes` hold. */
static grq_status scale_geometry(double bytes, double row_bytes, grq_geometry *g, grq_error *err)
{
    const grq_status st = grq_geometry_family("deepseek-v41", g, err);
    if (st != GRQ_OK) return st;
    g->n_layers = 1;
    g->prime_start = (uint64_t)(bytes / row_bytes / g->n_columns);
    return grq_geometry_derive(g, err);
}

/* In memory where there is room: the name of a file that does not exist yet. Caller frees. */
static char *scratch_path(uint64_t n_bytes)
{
    struct statvfs room;
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    if (statvfs("/dev/shm", &room) == 0 && (double)room.f_bavail * (double)room.f_frsize > 1.1 * (double)n_bytes)
        folder = "/dev/shm";
    char name[64];
    snprintf(name, sizeof name, "gaterq-bench-%ld.safetensors", (long)getpid());
    return grq_path_join(folder, name);
}

/* Zeros that take no memory: a mapping that nobody has written to. */
static const void *zeros(uint64_t n_bytes)
{
    void *const at = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Writes tensors of zeros, the largest first, opens the file (as codes too when `metadata` describes some) and removes
 * its name. */
static grq_status map_zeros(bench_table *s, grq_tensor *tensors, size_t n_tensors, const grq_metadata *metadata,
                            size_t n_metadata, grq_error *err)
{
    const uint64_t n_bytes = tensors[0].n_bytes;
    char *const path = scratch_path(tensors[0].n_bytes + tensors[1].n_bytes);
    const void *const data = zeros(n_bytes);
    grq_status st =
        path && data ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no address space for %" PRIu64 " bytes", n_bytes);
    for (size_t i = 0; i < n_tensors; i++) tensors[i].data = data;
    if (st == GRQ_OK) st = grq_safetensors_write(path, tensors, n_tensors, metadata, n_metadata, err);
    if (st == GRQ_OK) {
        st = grq_safetensors_open(path, &s->file, err);
        if (st == GRQ_OK && n_metadata) st = grq_codes_open(path, &s->codes, err);
        unlink(path);
    }
    if (st == GRQ_OK) {
        s->plane = grq_safetensors_at(s->file, 0)->data;
        s->n_lines = n_bytes / GRQ_CACHE_LINE;
    }
    if (data) munmap((void *)data, n_bytes);
    free(path);
    return st;
}

grq_status bench_table_f8(double bytes, bench_table *s, grq_error *err)
{
    *s = (bench_table){ .name = "FP8, 256 + 8 bytes", .lines_per_row = BENCH_ROW_DIM / GRQ_CACHE_LINE + 1 };
    grq_status st = scale_geometry(bytes, BENCH_ROW_DIM + N_SCALES, &s->geometry, err);
    if (st != GRQ_OK) return st;
    const uint64_t n = s->geometry.n_rows[0];
    grq_tensor tensors[2] = {
        { .name = "weight",
          .dtype = GRQ_F8_E4M3,
          .rank = 2,
          .shape = { n, BENCH_ROW_DIM },
          .n_bytes = n * BENCH_ROW_DIM },
        { .name = "scale", .dtype = GRQ_F8_E8M0, .rank = 2, .shape = { n, N_SCALES }, .n_bytes = n * N_SCALES }
    };
    st = map_zeros(s, tensors, 2, NULL, 0, err);
    if (st != GRQ_OK) return st;
    const void *const values = grq_safetensors_at(s->file, 0)->data, *const scales =
                                                                         grq_safetensors_at(s->file, 1)->data;
    const grq_table_layout layout = { .format = GRQ_ROWS_F8_BLOCKS,
                                      .n_rows = n,
                                      .row_dim = BENCH_ROW_DIM,
                                      .rows_per_piece = n,
                                      .values = &values,
                                      .scales = &scales,
                                      .name = s->name };
    return grq_table_new(&layout, &s->table, err);
}

grq_status bench_table_stage_1(double bytes, bench_table *s, grq_error *err)
{
    *s = (bench_table){ .name = "stage 1, 32 + 2 bytes", .lines_per_row = 2 };
    grq_status st = scale_geometry(bytes, CODE_BYTES + sizeof(uint16_t), &s->geometry, err);
    if (st != GRQ_OK) return st;
    const uint64_t n = s->geometry.n_rows[0], n_blocks = (n + 4095) / 4096;
    char rows[24];
    snprintf(rows, sizeof rows, "%" PRIu64, n);
    grq_tensor tensors[] = {
        { .name = "stage1.code", .dtype = GRQ_U8, .rank = 2, .shape = { n, CODE_BYTES }, .n_bytes = n * CODE_BYTES },
        { .name = "stage1.scale", .dtype = GRQ_F16, .rank = 1, .shape = { n }, .n_bytes = n * sizeof(uint16_t) },
        { .name = "blocks.sha256", .dtype = GRQ_U8, .rank = 2, .shape = { n_blocks, 32 }, .n_bytes = n_blocks * 32 },
        { .name = "blocks.source_sha256",
          .dtype = GRQ_U8,
          .rank = 2,
          .shape = { n_blocks, 32 },
          .n_bytes = n_blocks * 32 },
    };
    const grq_metadata metadata[] = {
        { "format", "gaterq-codes-2" },
        { "family", "deepseek-v41" },
        { "layer", "1" },
        { "encoder", "integer" },
        { "scale_rule", "opt" },
        { "rows", rows },
        { "row_dim", "256" },
        { "stages", "1" },
        { "exp_tab", "0" },
        { "source", "zeros" },
        { "source_digest", "" },
        { "block_rows", "4096" },
        { "digest", "0000000000000000000000000000000000000000000000000000000000000000" }, /* nobody verifies it */
    };
    st = map_zeros(s, tensors, TOOL_COUNT(tensors), metadata, TOOL_COUNT(metadata), err);
    return st == GRQ_OK ? grq_table_of_codes(s->codes, 1, &s->table, err) : st;
}

grq_status bench_table_touch(const bench_table *s, uint64_t *sum, grq_error *err)
{
    const uint64_t page = 4096, n_rows = s->geometry.n_rows[0], step = page * n_rows / (s->n_lines * GRQ_CACHE_LINE);
    float out[BENCH_ROW_DIM];
    grq_status st = GRQ_OK;
    for (uint64_t line = 0; line < s->n_lines; line += page / GRQ_CACHE_LINE) *sum += s->plane[line * GRQ_CACHE_LINE];
    for (uint64_t row = 0; st == GRQ_OK && row < n_rows; row += step)
        st = grq_table_fetch(s->table, 1, 1, (const int64_t[]){ (int64_t)row }, out, err);
    return st;
}
