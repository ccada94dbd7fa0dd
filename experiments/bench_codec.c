/* gaterq bench encode, gaterq bench decode: one core, Gaussian rows, the best of many short batches, so that what else
 * the machine does is left out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_codec.h"
#include "cpu/cpu_level.h"
#include "gaterq/codec.h"
#include "gaterq/rng.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool stopped(const tool_context *tool)
{
    return tool->progress.stop_requested && tool->progress.stop_requested(tool->progress.context);
}

static float *gaussian_rows(uint64_t seed, uint64_t n_rows, uint32_t row_dim)
{
    float *const rows = malloc(n_rows * row_dim * sizeof *rows);
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "bench codec");
    for (uint64_t i = 0; rows && i < n_rows * row_dim; i++) rows[i] = (float)grq_rng_normal(&rng);
    return rows;
}

/* ---- encode ---- */

/* The tables of the released models, coded on that many cores. */
static const struct {
    uint64_t n_rows;
    uint32_t row_dim;
} TABLES[] = { { 768022850, 256 }, { 320001536, 160 } };
enum { N_TABLES = 2, N_CORES = 64, N_STAGES = 3 };

/* Three stages of a row of 256, in microseconds; 0: none set. */
static double target_us(const char *encoder)
{
    static const struct {
        const char *encoder;
        double us;
    } targets[] = { { "integer", 1.5 }, { "integer-rms", 1.5 }, { "tcq", 180 }, { "tcq-b", 95 }, { "pq", 40 } };
    for (size_t i = 0; i < TOOL_COUNT(targets); i++)
        if (!strcmp(targets[i].encoder, encoder)) return targets[i].us;
    return 0;
}

static grq_status time_encoder(tool_context *tool, const grq_encoder *encoder, uint32_t row_dim, double seconds,
                               double *us, grq_error *err)
{
    enum { ROWS = 256 };
    float *const rows = gaussian_rows(tool->seed, ROWS, row_dim);
    uint8_t *const codes = malloc(N_STAGES * grq_code_bytes(row_dim));
    uint16_t side[N_STAGES];
    grq_status st = rows && codes ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "bench: no memory for rows");
    double best = 1e9;
    const double end = now() + seconds;
    /* A batch shall outlast the clock's own cost, and be short enough to find a quiet moment. */
    const uint32_t batch = encoder->kind == GRQ_KIND_TCQ ? 1 : 16;
    for (uint32_t r = 0; st == GRQ_OK && (best == 1e9 || now() < end) && !stopped(tool); r = (r + batch) % ROWS) {
        const double start = now();
        for (uint32_t i = 0; st == GRQ_OK && i < batch; i++)
            st = encoder->encode_row(encoder, rows + (size_t)(r + i) * row_dim, row_dim, N_STAGES, codes, side, err);
        const double each = (now() - start) / batch;
        best = each < best ? each : best;
    }
    *us = 1e6 * best;
    free(rows);
    free(codes);
    if (st == GRQ_OK && stopped(tool)) return grq_fail(err, GRQ_E_INTERRUPTED, "bench: stopped");
    return st;
}

static void show_encoder(tool_context *tool, const grq_encoder *encoder, const double us[N_TABLES])
{
    const double target = target_us(encoder->name);
    double hours[N_TABLES];
    for (int t = 0; t < N_TABLES; t++) hours[t] = us[t] * 1e-6 * (double)TABLES[t].n_rows / N_CORES / 3600;
    grq_json_begin_object(tool->result, NULL);
    grq_json_put_string(tool->result, "encoder", encoder->name);
    grq_json_put_f64(tool->result, "us_per_row", us[0]);
    if (target > 0) grq_json_put_f64(tool->result, "target_us_per_row", target);
    grq_json_put_f64(tool->result, "rows_per_second", 1e6 / us[0]);
    grq_json_put_f64(tool->result, "us_per_row_of_160", us[1]);
    grq_json_put_f64(tool->result, "hours_768022850_rows_of_256", hours[0]);
    grq_json_put_f64(tool->result, "hours_320001536_rows_of_160", hours[1]);
    grq_json_end_object(tool->result);
    if (tool->json) return;
    char beside[16] = "-";
    if (target > 0) snprintf(beside, sizeof beside, "%.1f", target);
    printf("%-12s %10.2f %10s %12.0f %16.3f %16.3f\n", encoder->name, us[0], beside, 1e6 / us[0], hours[0], hours[1]);
}

grq_status bench_encode(tool_context *tool, double seconds, grq_error *err)
{
    grq_status st = GRQ_OK;
    size_t n = 0;
    while (grq_encoder_at(n)) n++;
    grq_json_put_string(tool->result, "cpu", grq_cpu_level_name(grq_cpu_level()));
    grq_json_put_u64(tool->result, "cores", N_CORES);
    grq_json_begin_array(tool->result, "encoders");
    if (!tool->json)
        printf("Coding Gaussian rows in %d stages, one core, %s kernels; hours: whole tables on %d cores\n"
               "encoder      us/row 256     target       rows/s  768,022,850x256  320,001,536x160\n",
               N_STAGES, grq_cpu_level_name(grq_cpu_level()), N_CORES);
    for (size_t e = 0; st == GRQ_OK && e < n; e++) {
        double us[N_TABLES];
        for (int t = 0; st == GRQ_OK && t < N_TABLES; t++)
            st =
                time_encoder(tool, grq_encoder_at(e), TABLES[t].row_dim, seconds / (double)(n * N_TABLES), &us[t], err);
        if (st == GRQ_OK) show_encoder(tool, grq_encoder_at(e), us);
    }
    grq_json_end_array(tool->result);
    return st;
}

/* ---- decode ---- */

enum { CACHED_ROWS = 64, DECODE_DIM = 256, PASSES = 32 };

/* ns per row: decoding rows that lie in the cache, at a depth; at depth 0, copying what a row decodes to. */
static double time_decoding(const tool_context *tool, const grq_codes *codes, const float *rows, uint32_t depth,
                            double seconds, float *out)
{
    double best = 1e9;
    const double end = now() + seconds;
    do {
        const double start = now();
        for (int pass = 0; pass < PASSES; pass++)
            for (uint32_t r = 0; r < CACHED_ROWS; r++) {
                if (depth) grq_codes_decode(codes, r, depth, out);
                else memcpy(out, rows + (size_t)(r % 8) * DECODE_DIM, DECODE_DIM * sizeof *out);
                __asm__ volatile("" : : "r"(out) : "memory"); /* the row is needed */
            }
        const double each = (now() - start) / (PASSES * CACHED_ROWS);
        best = each < best ? each : best;
    } while (now() < end && !stopped(tool));
    return 1e9 * best;
}

static grq_status decode_encoder(tool_context *tool, const grq_encoder *encoder, const float *rows, double seconds,
                                 grq_error *err)
{
    float out[DECODE_DIM];
    double ns[1 + N_STAGES];
    grq_codes *codes = NULL;
    const grq_status st =
        grq_codes_encode(encoder, rows, CACHED_ROWS, DECODE_DIM, N_STAGES, NULL, 1, &tool->progress, &codes, err);
    if (st != GRQ_OK) return st;
    for (uint32_t d = 0; d <= N_STAGES; d++) ns[d] = time_decoding(tool, codes, rows, d, seconds / (1 + N_STAGES), out);
    grq_codes_close(codes);
    if (stopped(tool)) return grq_fail(err, GRQ_E_INTERRUPTED, "bench: stopped");
    grq_json_begin_object(tool->result, NULL);
    grq_json_put_string(tool->result, "encoder", encoder->name);
    grq_json_begin_array(tool->result, "ns_per_row");
    for (int d = 1; d <= N_STAGES; d++) grq_json_put_f64(tool->result, NULL, ns[d]);
    grq_json_end_array(tool->result);
    grq_json_put_f64(tool->result, "copy_ns_per_row", ns[0]);
    grq_json_begin_array(tool->result, "times_copy");
    for (int d = 1; d <= N_STAGES; d++) grq_json_put_f64(tool->result, NULL, ns[d] / ns[0]);
    grq_json_end_array(tool->result);
    grq_json_end_object(tool->result);
    if (!tool->json)
        printf("%-12s %8.1f %8.1f %8.1f %8.1f %11.1f %6.1f %6.1f\n", encoder->name, ns[1], ns[2], ns[3], ns[0],
               ns[1] / ns[0], ns[2] / ns[0], ns[3] / ns[0]);
    return st;
}

grq_status bench_decode(tool_context *tool, double seconds, grq_error *err)
{
    grq_status st = GRQ_OK;
    size_t n = 0;
    while (grq_encoder_at(n)) n++;
    float *const rows = gaussian_rows(tool->seed, CACHED_ROWS, DECODE_DIM);
    if (!rows) return grq_fail(err, GRQ_E_NOMEM, "bench: no memory for rows");
    grq_json_put_string(tool->result, "cpu", grq_cpu_level_name(grq_cpu_level()));
    grq_json_begin_array(tool->result, "encoders");
    if (!tool->json)
        printf("Decoding rows of %d values from the cache, one core, %s kernels; ns per row\n"
               "encoder       depth 1  depth 2  depth 3     copy  times copy: 1      2      3\n",
               DECODE_DIM, grq_cpu_level_name(grq_cpu_level()));
    for (size_t e = 0; st == GRQ_OK && e < n; e++)
        st = decode_encoder(tool, grq_encoder_at(e), rows, seconds / (double)n, err);
    grq_json_end_array(tool->result);
    free(rows);
    return st;
}
