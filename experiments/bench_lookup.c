/* gaterq bench lookup: rows per second of grq_table_fetch, beside random reads of the same memory.
 *
 * Both tables lie in mapped files, as real ones do. The files are in memory (or in $TMPDIR where that has no room) and
 * lose their name at once. They hold zeros: no part of a fetch depends on a value. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench.h"
#include "cpu/kernels.h"
#include "cpu/prefetch.h"
#include "gaterq/codec.h"
#include "gaterq/file.h"
#include "gaterq/hash.h"
#include "gaterq/rng.h"
#include "gaterq/safetensors.h"
#include "gaterq/table.h"

enum {
    ROW_DIM = 256,
    N_SCALES = ROW_DIM / 32,
    CODE_BYTES = ROW_DIM / 8,
    N_ROWS = 1 << 22,  /* row numbers of a thread: distinct lines beyond any cache */
    BATCH_TOKENS = 16, /* of a fetch: its rows, decoded, still fit the second cache */
    LINES_AT_ONCE = 4096
};

/* A figure is the median of many slices. The measures take turns, so that whatever else the machine does meets all of
 * them; short slices also keep the odd long interruption out of most. */
static const double SLICE_SECONDS = 0.02;

/* ---- tables in mapped files ---- */

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
} subject;

static void subject_close(subject *s)
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
static grq_status map_zeros(subject *s, grq_tensor *tensors, size_t n_tensors, const grq_metadata *metadata,
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

static grq_status open_f8(double bytes, subject *s, grq_error *err)
{
    *s = (subject){ .name = "FP8, 256 + 8 bytes", .lines_per_row = ROW_DIM / GRQ_CACHE_LINE + 1 };
    grq_status st = scale_geometry(bytes, ROW_DIM + N_SCALES, &s->geometry, err);
    if (st != GRQ_OK) return st;
    const uint64_t n = s->geometry.n_rows[0];
    grq_tensor tensors[2] = {
        { .name = "weight", .dtype = GRQ_F8_E4M3, .rank = 2, .shape = { n, ROW_DIM }, .n_bytes = n * ROW_DIM },
        { .name = "scale", .dtype = GRQ_F8_E8M0, .rank = 2, .shape = { n, N_SCALES }, .n_bytes = n * N_SCALES }
    };
    st = map_zeros(s, tensors, 2, NULL, 0, err);
    if (st != GRQ_OK) return st;
    const void *const values = grq_safetensors_at(s->file, 0)->data, *const scales =
                                                                         grq_safetensors_at(s->file, 1)->data;
    const grq_table_layout layout = { .format = GRQ_ROWS_F8_BLOCKS,
                                      .n_rows = n,
                                      .row_dim = ROW_DIM,
                                      .rows_per_piece = n,
                                      .values = &values,
                                      .scales = &scales,
                                      .name = s->name };
    return grq_table_new(&layout, &s->table, err);
}

static grq_status open_stage_1(double bytes, subject *s, grq_error *err)
{
    *s = (subject){ .name = "stage 1, 32 + 2 bytes", .lines_per_row = 2 };
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

/* Reads from every page once, so that no measured read is a page's first. Codes have a mapping of their own: a row per
 * page is fetched. */
static grq_status touch_pages(const subject *s, uint64_t *sum, grq_error *err)
{
    const uint64_t page = 4096, n_rows = s->geometry.n_rows[0], step = page * n_rows / (s->n_lines * GRQ_CACHE_LINE);
    float out[ROW_DIM];
    grq_status st = GRQ_OK;
    for (uint64_t line = 0; line < s->n_lines; line += page / GRQ_CACHE_LINE) *sum += s->plane[line * GRQ_CACHE_LINE];
    for (uint64_t row = 0; st == GRQ_OK && row < n_rows; row += step)
        st = grq_table_fetch(s->table, 1, 1, (const int64_t[]){ (int64_t)row }, out, err);
    return st;
}

/* ---- what each thread does ---- */

typedef enum { LINES, UNIFORM, TEXT, N_MEASURES } measure;

typedef struct {
    int64_t *uniform, *text; /* row numbers (N_ROWS) */
    uint32_t *lines;         /* line numbers (N_ROWS) */
    float *out;
    size_t at[N_MEASURES]; /* where the next slice goes on */
    double rate;           /* per second, of the last slice */
    uint64_t seen;         /* keeps the bound's reads from being optimised away */
    grq_status status;
    grq_error error;
} worker;

static void workers_free(worker *w, uint32_t n)
{
    for (uint32_t i = 0; w && i < n; i++) {
        free(w[i].uniform);
        free(w[i].text);
        free(w[i].lines);
        free(w[i].out);
    }
    free(w);
}

static grq_status fill_text(const grq_geometry *g, uint64_t seed, int64_t *rows, grq_error *err)
{
    const size_t n = N_ROWS / g->n_columns;
    int32_t *const ids = malloc(n * sizeof *ids);
    if (!ids) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu ids", n);
    grq_hash_state state;
    grq_hash_start(&state);
    bench_text(seed, (uint32_t)g->n_ids, n, ids);
    const grq_status st = grq_hash_rows(g, 0, &state, ids, n, rows, err);
    free(ids);
    return st;
}

static grq_status worker_fill(const subject *s, uint64_t seed, worker *w, grq_error *err)
{
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "bench rows");
    w->uniform = malloc(N_ROWS * sizeof *w->uniform);
    w->text = malloc(N_ROWS * sizeof *w->text);
    w->lines = malloc(N_ROWS * sizeof *w->lines);
    w->out = malloc((size_t)BATCH_TOKENS * s->geometry.n_columns * ROW_DIM * sizeof *w->out);
    if (!w->uniform || !w->text || !w->lines || !w->out)
        return grq_fail(err, GRQ_E_NOMEM, "no memory for %d row numbers a thread", N_ROWS);
    for (size_t i = 0; i < N_ROWS; i++) {
        w->uniform[i] = (int64_t)grq_rng_below(&rng, s->geometry.n_rows[0]);
        w->lines[i] = (uint32_t)grq_rng_below(&rng, s->n_lines);
    }
    return fill_text(&s->geometry, seed, w->text, err);
}

static grq_status workers_new(const subject *s, uint64_t seed, uint32_t n, worker **out, grq_error *err)
{
    worker *const w = *out = calloc(n, sizeof *w);
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "no memory for %u threads", n);
    grq_status st = GRQ_OK;
    for (uint32_t i = 0; st == GRQ_OK && i < n; i++) st = worker_fill(s, seed + i, &w[i], err);
    return st;
}

/* Fetches one batch after the other until the slice is over. */
static void fetch_rows(const subject *s, worker *w, measure what)
{
    const int64_t *const rows = what == TEXT ? w->text : w->uniform;
    const uint32_t n_columns = s->geometry.n_columns;
    const size_t n = (size_t)BATCH_TOKENS * n_columns;
    const double start = bench_now();
    double time;
    uint64_t done = 0;
    size_t at = w->at[what];
    do {
        w->status = grq_table_fetch(s->table, BATCH_TOKENS, n_columns, rows + at, w->out, &w->error);
        if (w->status != GRQ_OK) return;
        done += n;
        at = at + 2 * n <= N_ROWS / n_columns * n_columns ? at + n : 0;
        time = bench_now() - start;
    } while (time < SLICE_SECONDS);
    w->at[what] = at;
    w->rate = (double)done / time;
}

/* The bound: random lines, read as far behind their prefetch as the lines of a fetch's rows are. */
static void read_lines(const subject *s, worker *w)
{
    const size_t ahead = (size_t)GRQ_PREFETCH_ROWS * s->lines_per_row;
    const double start = bench_now();
    double time;
    uint64_t done = 0, sum = 0;
    size_t at = w->at[LINES];
    do {
        for (size_t i = at; i < at + LINES_AT_ONCE; i++) {
            uint64_t word;
            __builtin_prefetch(s->plane + (uint64_t)w->lines[i + ahead] * GRQ_CACHE_LINE);
            memcpy(&word, s->plane + (uint64_t)w->lines[i] * GRQ_CACHE_LINE, sizeof word);
            sum += word;
        }
        done += LINES_AT_ONCE;
        at = at + 2 * LINES_AT_ONCE + ahead <= N_ROWS ? at + LINES_AT_ONCE : 0;
        time = bench_now() - start;
    } while (time < SLICE_SECONDS);
    w->at[LINES] = at;
    w->seen += sum;
    w->rate = (double)done / time;
}

/* All threads at once; the sum of their rates. */
static grq_status run_workers(const subject *s, measure what, uint32_t n_threads, worker *w, double *rate,
                              grq_error *err)
{
#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (uint32_t i = 0; i < n_threads; i++) {
        if (what == LINES) read_lines(s, &w[i]);
        else fetch_rows(s, &w[i], what);
    }
    *rate = 0;
    for (uint32_t i = 0; i < n_threads; i++) {
        if (w[i].status != GRQ_OK) {
            *err = w[i].error;
            return w[i].status;
        }
        *rate += w[i].rate;
    }
    return GRQ_OK;
}

static int compare_rates(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median slice of each measure. */
static grq_status measure_all(const tool_context *tool, const subject *s, uint32_t n_threads, double seconds, worker *w,
                              double median[N_MEASURES], grq_error *err)
{
    const size_t n = (size_t)(seconds / SLICE_SECONDS) + 1;
    double *const rates = malloc(N_MEASURES * n * sizeof *rates); /* (measure, slice) */
    grq_status st = rates ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for %zu slices", n);
    for (size_t k = 0; st == GRQ_OK && k < n; k++)
        for (int what = 0; st == GRQ_OK && what < N_MEASURES; what++) {
            st = grq_progress_step(&tool->progress, s->name, k, n, "slices", NULL, err);
            if (st == GRQ_OK) st = run_workers(s, (measure)what, n_threads, w, &rates[(size_t)what * n + k], err);
        }
    for (int what = 0; st == GRQ_OK && what < N_MEASURES; what++) {
        qsort(rates + (size_t)what * n, n, sizeof *rates, compare_rates);
        median[what] = rates[(size_t)what * n + n / 2];
    }
    free(rates);
    return st;
}

static void show(tool_context *tool, const subject *s, uint32_t n_threads, const double rate[N_MEASURES])
{
    const double bound = rate[LINES] / s->lines_per_row, line_bytes = GRQ_CACHE_LINE;
    for (int what = UNIFORM; what <= TEXT; what++) {
        const char *const ids = what == TEXT ? "text" : "uniform";
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_string(tool->result, "rows", s->name);
        grq_json_put_string(tool->result, "ids", ids);
        grq_json_put_u64(tool->result, "threads", n_threads);
        grq_json_put_u64(tool->result, "table_rows", s->geometry.n_rows[0]);
        grq_json_put_u64(tool->result, "lines_per_row", s->lines_per_row);
        grq_json_put_f64(tool->result, "rows_per_second", rate[what]);
        grq_json_put_f64(tool->result, "stored_bytes_per_second", rate[what] * grq_table_row_bytes(s->table));
        grq_json_put_f64(tool->result, "bound_lines_per_second", rate[LINES]);
        grq_json_put_f64(tool->result, "bound_rows_per_second", bound);
        grq_json_put_f64(tool->result, "bound_bytes_per_second", rate[LINES] * line_bytes);
        grq_json_put_f64(tool->result, "ratio", rate[what] / bound);
        grq_json_end_object(tool->result);
        if (!tool->json)
            printf("%-22s %7u  %-7s  %8.2f  %10.2f  %15.2f  %10.2f  %5.2f\n", s->name, n_threads, ids,
                   1e-6 * rate[what], 1e-9 * rate[what] * s->lines_per_row * line_bytes, 1e-6 * bound,
                   1e-9 * rate[LINES] * line_bytes, rate[what] / bound);
    }
}

static grq_status bench_subject(tool_context *tool, double seconds, const subject *s, grq_error *err)
{
    worker *w = NULL;
    double rate[N_MEASURES];
    grq_status st = workers_new(s, tool->seed, tool->n_threads, &w, err);
    if (st == GRQ_OK) st = touch_pages(s, &w->seen, err);
    for (uint32_t n = 0; st == GRQ_OK && (n = bench_next_threads(tool, n)) > 0;) {
        st = measure_all(tool, s, n, seconds, w, rate, err);
        if (st == GRQ_OK) show(tool, s, n, rate);
    }
    workers_free(w, tool->n_threads);
    return st;
}

grq_status bench_lookup(tool_context *tool, double seconds, double gib, grq_error *err)
{
    static grq_status (*const open[])(double, subject *, grq_error *) = { open_f8, open_stage_1 };
    const double bytes = gib * 0x1p30, memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (bytes > memory / 2)
        return grq_fail(err, GRQ_E_USAGE, "--gib %g: more than half of this machine's memory, which is %.1f GiB", gib,
                        memory * 0x1p-30);
    grq_json_put_f64(tool->result, "table_gib", gib);
    grq_json_put_string(tool->result, "kernels", grq_cpu_kernels()->name);
    grq_json_put_u64(tool->result, "prefetch_rows", GRQ_PREFETCH_ROWS);
    grq_json_begin_array(tool->result, "runs");
    if (!tool->json)
        printf("Rows from mapped tables of %g GiB, %s kernels, %d rows ahead\n%s"
               "%-22s threads  %-7s  M rows/s  GB/s lines  bound: M rows/s  GB/s lines  ratio\n",
               gib, grq_cpu_kernels()->name, GRQ_PREFETCH_ROWS,
               gib < 4 ? "Below 4 GiB caches hide some of the memory.\n" : "", "stored row", "ids");
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < TOOL_COUNT(open); i++) {
        subject s;
        st = open[i](bytes, &s, err);
        if (st == GRQ_OK) st = bench_subject(tool, seconds, &s, err);
        subject_close(&s);
    }
    grq_json_end_array(tool->result);
    if (st == GRQ_OK && !tool->json)
        printf("Bound: random lines of 64 bytes of the same memory with as many asked for ahead; a row touches 5 (FP8) "
               "or 2\n"
               "(stage 1). Ids are uniform, or hashed from text-like ids whose words follow Zipf's law and whose "
               "phrases return.\n");
    return st;
}
