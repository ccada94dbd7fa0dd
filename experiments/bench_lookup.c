/* gaterq bench lookup: rows per second of grq_table_fetch, beside random reads of the same memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "bench.h"
#include "bench_tables.h"
#include "cpu/kernels.h"
#include "cpu/prefetch.h"
#include "gaterq/hash.h"
#include "gaterq/rng.h"

enum {
    N_ROWS = 1 << 22,  /* row numbers of a thread: distinct lines beyond any cache */
    BATCH_TOKENS = 16, /* of a fetch: its rows, decoded, still fit the second cache */
    LINES_AT_ONCE = 4096
};

/* A figure is the median of many slices. The measures take turns, so that whatever else the machine does meets all of
 * them; short slices also keep the odd long interruption out of most. */
static const double SLICE_SECONDS = 0.02;

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

static grq_status worker_fill(const bench_table *s, uint64_t seed, worker *w, grq_error *err)
{
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "bench rows");
    w->uniform = malloc(N_ROWS * sizeof *w->uniform);
    w->text = malloc(N_ROWS * sizeof *w->text);
    w->lines = malloc(N_ROWS * sizeof *w->lines);
    w->out = malloc((size_t)BATCH_TOKENS * s->geometry.n_columns * BENCH_ROW_DIM * sizeof *w->out);
    if (!w->uniform || !w->text || !w->lines || !w->out)
        return grq_fail(err, GRQ_E_NOMEM, "no memory for %d row numbers a thread", N_ROWS);
    for (size_t i = 0; i < N_ROWS; i++) {
        w->uniform[i] = (int64_t)grq_rng_below(&rng, s->geometry.n_rows[0]);
        w->lines[i] = (uint32_t)grq_rng_below(&rng, s->n_lines);
    }
    return fill_text(&s->geometry, seed, w->text, err);
}

static grq_status workers_new(const bench_table *s, uint64_t seed, uint32_t n, worker **out, grq_error *err)
{
    worker *const w = *out = calloc(n, sizeof *w);
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "no memory for %u threads", n);
    grq_status st = GRQ_OK;
    for (uint32_t i = 0; st == GRQ_OK && i < n; i++) st = worker_fill(s, seed + i, &w[i], err);
    return st;
}

/* Fetches one batch after the other until the slice is over. */
static void fetch_rows(const bench_table *s, worker *w, measure what)
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
static void read_lines(const bench_table *s, worker *w)
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
static grq_status run_workers(const bench_table *s, measure what, uint32_t n_threads, worker *w, double *rate,
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
static grq_status measure_all(const tool_context *tool, const bench_table *s, uint32_t n_threads, double seconds,
                              worker *w, double median[N_MEASURES], grq_error *err)
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

static void show(tool_context *tool, const bench_table *s, uint32_t n_threads, const double rate[N_MEASURES])
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

static grq_status bench_subject(tool_context *tool, double seconds, const bench_table *s, grq_error *err)
{
    worker *w = NULL;
    double rate[N_MEASURES];
    grq_status st = workers_new(s, tool->seed, tool->n_threads, &w, err);
    if (st == GRQ_OK) st = bench_table_touch(s, &w->seen, err);
    for (uint32_t n = 0; st == GRQ_OK && (n = bench_next_threads(tool, n)) > 0;) {
        st = measure_all(tool, s, n, seconds, w, rate, err);
        if (st == GRQ_OK) show(tool, s, n, rate);
    }
    workers_free(w, tool->n_threads);
    return st;
}

grq_status bench_lookup(tool_context *tool, double seconds, double gib, grq_error *err)
{
    static grq_status (*const open[])(double, bench_table *, grq_error *) = { bench_table_f8, bench_table_stage_1 };
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
        bench_table s;
        st = open[i](bytes, &s, err);
        if (st == GRQ_OK) st = bench_subject(tool, seconds, &s, err);
        bench_table_close(&s);
    }
    grq_json_end_array(tool->result);
    if (st == GRQ_OK && !tool->json)
        printf("Bound: random lines of 64 bytes of the same memory with as many asked for ahead; a row touches 5 (FP8) "
               "or 2\n"
               "(stage 1). Ids are uniform, or hashed from text-like ids whose words follow Zipf's law and whose "
               "phrases return.\n");
    return st;
}
