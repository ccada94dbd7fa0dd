/* Errors of coded rows, summed block by block so that threads change nothing. */
#include "gaterq/distortion.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "block_run.h"
#include "blocks.h"
#include "codec_internal.h"

enum { FETCH_ROWS = 64 };

/* Sums over a block of the sample. */
typedef struct {
    uint64_t n_zero_rows, n_wrong_zero_rows;
    double relative[GRQ_MAX_STAGES], sign[GRQ_MAX_STAGES], shuffled[GRQ_MAX_STAGES], weighted[GRQ_MAX_STAGES], weight;
} sums;

typedef struct {
    const grq_codes *codes;
    const grq_table *table;
    const grq_row_sample *sample;
    uint64_t n;
} job;

static int64_t sampled(const job *j, uint64_t i)
{
    return j->sample ? j->sample->rows[i] : (int64_t)i;
}

static double square_distance(const float *x, const float *y, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    return sum;
}

/* error[d]: of d + 1 stages of signs, each times the mean magnitude of what those before left over. */
static void sign_errors(const float *x, uint32_t n, uint32_t n_stages, double *left, double error[GRQ_MAX_STAGES])
{
    for (uint32_t i = 0; i < n; i++) left[i] = x[i];
    for (uint32_t d = 0; d < n_stages; d++) {
        double scale = 0;
        error[d] = 0;
        for (uint32_t i = 0; i < n; i++) scale += fabs(left[i]);
        scale /= n;
        for (uint32_t i = 0; i < n; i++) {
            left[i] -= left[i] < 0 ? -scale : scale;
            error[d] += left[i] * left[i];
        }
    }
}

/* Scratch of one thread: a chunk of rows, and two sets of decoded ones, of this row and of the one before. */
typedef struct {
    float *rows, *decoded[2];
    double *left;
} scratch;

static void decode_depths(const grq_codes *c, uint64_t row, float *out)
{
    for (uint32_t d = 0; d < c->n_stages; d++) grq_codes_decode(c, row, d + 1, out + d * c->row_dim);
}

static void add_row(const job *j, uint64_t i, const float *x, scratch *s, sums *out)
{
    const grq_codes *const c = j->codes;
    const uint32_t n = c->row_dim;
    float *const y = s->decoded[i & 1], *const before = s->decoded[~i & 1];
    const double weight = j->sample && j->sample->weights ? j->sample->weights[i] : 0;
    double energy = 0, sign[GRQ_MAX_STAGES];
    decode_depths(c, (uint64_t)sampled(j, i), y);
    for (uint32_t k = 0; k < n; k++) energy += (double)x[k] * x[k];
    if (!(energy > 0)) {
        out->n_zero_rows++;
        out->n_wrong_zero_rows += square_distance(x, y + (c->n_stages - 1) * n, n) != 0;
        return;
    }
    sign_errors(x, n, c->n_stages, s->left, sign);
    out->weight += weight * energy;
    for (uint32_t d = 0; d < c->n_stages; d++) {
        const double error = square_distance(x, y + d * n, n);
        out->relative[d] += error / energy;
        out->sign[d] += sign[d] / energy;
        out->shuffled[d] += square_distance(x, before + d * n, n) / energy;
        out->weighted[d] += weight * error;
    }
}

static grq_status add_block(const job *j, uint64_t first, uint64_t n, sums *out, grq_error *err)
{
    const grq_codes *const c = j->codes;
    scratch s = { .rows = malloc(FETCH_ROWS * c->row_dim * sizeof *s.rows),
                  .decoded = { malloc(c->n_stages * c->row_dim * sizeof **s.decoded),
                               malloc(c->n_stages * c->row_dim * sizeof **s.decoded) },
                  .left = malloc(c->row_dim * sizeof *s.left) };
    grq_status st = s.rows && s.decoded[0] && s.decoded[1] && s.left
                        ? GRQ_OK
                        : grq_fail(err, GRQ_E_NOMEM, "no memory for rows of %u values", c->row_dim);
    if (st == GRQ_OK) decode_depths(c, (uint64_t)sampled(j, first ? first - 1 : j->n - 1), s.decoded[~first & 1]);
    for (uint64_t at = first; st == GRQ_OK && at < first + n; at += FETCH_ROWS) {
        int64_t rows[FETCH_ROWS];
        const uint64_t m = first + n - at < FETCH_ROWS ? first + n - at : FETCH_ROWS;
        for (uint64_t i = 0; i < m; i++) rows[i] = sampled(j, at + i);
        st = grq_table_fetch(j->table, m, 1, rows, s.rows, err);
        for (uint64_t i = 0; st == GRQ_OK && i < m; i++) add_row(j, at + i, s.rows + i * c->row_dim, &s, out);
    }
    free(s.rows);
    free(s.decoded[0]);
    free(s.decoded[1]);
    free(s.left);
    return st;
}

static void finish(const job *j, const sums *blocks, uint64_t n_blocks, grq_distortion *out)
{
    sums all = { 0 };
    for (uint64_t b = 0; b < n_blocks; b++) {
        all.n_zero_rows += blocks[b].n_zero_rows;
        all.n_wrong_zero_rows += blocks[b].n_wrong_zero_rows;
        all.weight += blocks[b].weight;
        for (uint32_t d = 0; d < j->codes->n_stages; d++) {
            all.relative[d] += blocks[b].relative[d];
            all.sign[d] += blocks[b].sign[d];
            all.shuffled[d] += blocks[b].shuffled[d];
            all.weighted[d] += blocks[b].weighted[d];
        }
    }
    const uint64_t n = j->n - all.n_zero_rows;
    *out =
        (grq_distortion){ .n_rows = j->n, .n_zero_rows = all.n_zero_rows, .n_wrong_zero_rows = all.n_wrong_zero_rows };
    for (uint32_t d = 0; d < GRQ_MAX_STAGES; d++) {
        const bool known = d < j->codes->n_stages && n > 0;
        out->relative_mse[d] = known ? all.relative[d] / (double)n : NAN;
        out->sign_mse[d] = known ? all.sign[d] / (double)n : NAN;
        out->shuffled_mse[d] = known && j->n > 1 ? all.shuffled[d] / (double)n : NAN;
        out->weighted_mse[d] = known && all.weight > 0 ? all.weighted[d] / all.weight : NAN;
    }
}

static grq_status check(const job *j, grq_error *err)
{
    const grq_codes *const c = j->codes;
    const grq_table *const t = j->table;
    if (grq_table_n_rows(t) != c->n_rows || grq_table_row_dim(t) != c->row_dim)
        return grq_fail(err, GRQ_E_DATA, "the codes hold %" PRIu64 " rows of %u values, the table %" PRIu64 " of %u",
                        c->n_rows, c->row_dim, grq_table_n_rows(t), grq_table_row_dim(t));
    if (j->n == 0) return grq_fail(err, GRQ_E_USAGE, "no row to look at");
    for (uint64_t i = 0; j->sample && i < j->n; i++) {
        if (sampled(j, i) < 0 || (uint64_t)sampled(j, i) >= c->n_rows)
            return grq_fail(err, GRQ_E_DATA, "look-up %" PRIu64 " is of row %" PRId64 "; the table has %" PRIu64, i,
                            sampled(j, i), c->n_rows);
        if (j->sample->weights && !(j->sample->weights[i] >= 0 && isfinite(j->sample->weights[i])))
            return grq_fail(err, GRQ_E_DATA, "the weight of look-up %" PRIu64 " is %g", i, j->sample->weights[i]);
    }
    return GRQ_OK;
}

grq_status grq_codes_distortion(const grq_codes *c, const grq_table *table, const grq_row_sample *sample,
                                uint32_t n_threads, const grq_progress *progress, grq_distortion *out, grq_error *err)
{
    const job j = { c, table, sample, sample ? sample->n : c->n_rows };
    grq_status st = check(&j, err);
    if (st != GRQ_OK) return st;
    const uint64_t n_blocks = grq_n_blocks(j.n);
    sums *const blocks = calloc(n_blocks, sizeof *blocks);
    if (!blocks) return grq_fail(err, GRQ_E_NOMEM, "no memory for sums over %" PRIu64 " blocks", n_blocks);
    grq_block_run run = grq_block_run_of(n_blocks, j.n, "distortion", progress);
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads ? n_threads : 1)
    for (uint64_t b = 0; b < n_blocks; b++) {
        if (grq_block_run_over(&run, b)) continue;
        grq_error own = { .status = GRQ_OK };
        const uint64_t n = grq_block_rows(j.n, b);
        const grq_status done = add_block(&j, b * GRQ_CODE_BLOCK_ROWS, n, &blocks[b], &own);
        grq_block_run_ended(&run, b, n, done, &own);
    }
    st = grq_block_run_status(&run, err);
    if (st == GRQ_OK) finish(&j, blocks, n_blocks, out);
    free(blocks);
    return st;
}

grq_status grq_codes_same_source(const grq_codes *c, const grq_table *table, bool *same, grq_error *err)
{
    const uint64_t n_blocks = grq_n_blocks(c->n_rows), probes[] = { 0, n_blocks / 2, n_blocks - 1 };
    *same = grq_table_n_rows(table) == c->n_rows && grq_table_row_dim(table) == c->row_dim;
    for (int i = 0; *same && i < 3; i++) {
        uint8_t digest[GRQ_SHA256_BYTES];
        const grq_status st = grq_digest_stored_rows(table, probes[i] * GRQ_CODE_BLOCK_ROWS,
                                                     grq_block_rows(c->n_rows, probes[i]), digest, err);
        if (st != GRQ_OK) return st;
        *same = !memcmp(digest, c->source_digests + probes[i] * GRQ_SHA256_BYTES, sizeof digest);
    }
    return GRQ_OK;
}
