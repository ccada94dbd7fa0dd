/* pq: each eight values by the nearest of 256 vectors of a book, one FP16 scale per row and stage. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "codec_internal.h"
#include "lane_sum.h"
#include "pq.h"
#include "shared/number.h"
#include "shared/simd.h"

enum { DIM = GRQ_PQ_DIM, ENTRIES = GRQ_PQ_ENTRIES };

static const float LARGEST_Q = 2047;

/* S(v) of terms(i), where the row's length is a multiple of 8 only. */
#define LANE_SUM(lane, n, term)                                                                                        \
    do {                                                                                                               \
        uint32_t i = 0;                                                                                                \
        for (; i + GRQ_SUM_LANES <= (n); i += GRQ_SUM_LANES)                                                           \
            for (uint32_t j = 0; j < GRQ_SUM_LANES; j++) (lane)[j] += term(i + j);                                     \
        for (uint32_t j = 0; i + j < (n); j++) (lane)[j] += term(i + j);                                               \
    } while (0)

GRQ_SIMD static double energy_of(const float *r, uint32_t n)
{
    double lane[GRQ_SUM_LANES] = { 0 };
#define SQUARE(i) ((double)r[i] * (double)r[i])
    LANE_SUM(lane, n, SQUARE);
    return grq_fold_lanes(lane);
}

GRQ_SIMD static double project(const float *r, const int8_t *c, uint32_t n, int64_t *squares)
{
    double lane[GRQ_SUM_LANES] = { 0 };
    *squares = 0;
    for (uint32_t i = 0; i < n; i++) *squares += c[i] * c[i];
#define PRODUCT(i) ((double)r[i] * (double)c[i])
    LANE_SUM(lane, n, PRODUCT);
    return grq_fold_lanes(lane);
}

/* ---- the nearest vector ---- */

/* |q - v|^2 less |q|^2 is norm[z] - 2 q.v: whole numbers below 2^24, so exact in binary32 in any order. Vectors lie in
 * groups, a lane each: group g, coordinate t, lane l holds -2 v[LANES g + l][t]. */
enum { LANES = 8, GROUPS = ENTRIES / LANES };
typedef float reals __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t wholes __attribute__((vector_size(LANES * sizeof(int32_t))));

struct grq_pq_coding {
    reals norm[GROUPS];
    reals twice[GROUPS][DIM];
    reals vector[ENTRIES]; /* the book itself, for decoding */
    grq_pq_book book;
};

static void transpose(const grq_pq_book *book, grq_pq_coding *out)
{
    out->book = *book;
    for (uint32_t z = 0; z < ENTRIES; z++) {
        int32_t norm = 0;
        for (uint32_t t = 0; t < DIM; t++) {
            const int32_t v = book->vector[z][t];
            norm += v * v;
            out->vector[z][t] = (float)v;
            out->twice[z / LANES][t][z % LANES] = (float)(-2 * v);
        }
        out->norm[z / LANES][z % LANES] = (float)norm;
    }
}

/* The least distance, at a tie the lowest number: in a lane the earliest group, of lanes the lowest number. */
GRQ_SIMD void grq_pq_nearest(const grq_pq_coding *book, const float *q, uint32_t n_subvectors, uint8_t *code)
{
    for (uint32_t s = 0; s < n_subvectors; s++, q += DIM) {
        wholes best = { 0 }, best_group = { 0 }, group = { 0 };
        best += INT32_MAX;
        for (uint32_t g = 0; g < GROUPS; g++, group += 1) {
            const reals *const v = book->twice[g];
            const reals distance = (book->norm[g] + q[0] * v[0] + q[1] * v[1] + q[2] * v[2]) +
                                   (q[3] * v[3] + q[4] * v[4] + q[5] * v[5]) + (q[6] * v[6] + q[7] * v[7]);
            const wholes whole = __builtin_convertvector(distance, wholes);
            const wholes closer = whole < best; /* all bits of a lane, or none */
            best = (closer & whole) | (~closer & best);
            best_group = (closer & group) | (~closer & best_group);
        }
        int32_t low = best[0];
        uint32_t z = (uint32_t)best_group[0] * LANES;
        for (uint32_t l = 1; l < LANES; l++) {
            const uint32_t other = (uint32_t)best_group[l] * LANES + l;
            if (best[l] < low || (best[l] == low && other < z)) low = best[l], z = other;
        }
        code[s] = (uint8_t)z;
    }
}

/* ---- a row ---- */

GRQ_SIMD void grq_pq_quantise(const float *r, uint32_t n, float inverse, float *q)
{
    for (uint32_t i = 0; i < n; i++) {
        const float x = r[i] * inverse;
        q[i] = rintf(x < -LARGEST_Q ? -LARGEST_Q : x > LARGEST_Q ? LARGEST_Q : x);
    }
}

GRQ_SIMD static void subtract(float *left, const int8_t *c, uint32_t n, float factor)
{
    for (uint32_t i = 0; i < n; i++) left[i] -= factor * (float)c[i];
}

static grq_status encode_stages(const grq_pq_coding *coding, uint32_t row_dim, uint32_t n_stages, float *left, float *q,
                                int8_t *c, uint8_t *codes, uint16_t *side, grq_error *err)
{
    const size_t code_bytes = grq_code_bytes(row_dim);
    grq_status st = GRQ_OK;
    for (uint32_t k = 0; st == GRQ_OK && k < n_stages; k++) {
        uint8_t *const code = codes + k * code_bytes;
        const double energy = energy_of(left, row_dim);
        const float inverse = energy > 0 ? (float)(32 / sqrt(energy / row_dim)) : HUGE_VALF;
        side[k] = 0;
        if (isfinite(inverse)) { /* else far below what FP16 can hold */
            int64_t squares;
            grq_pq_quantise(left, row_dim, inverse, q);
            grq_pq_nearest(coding, q, row_dim / DIM, code);
            for (uint32_t s = 0; s < row_dim / DIM; s++) memcpy(c + DIM * s, coding->book.vector[code[s]], DIM);
            const double n = project(left, c, row_dim, &squares);
            st = grq_f16_scale(squares > 0 && n > 0 ? n / (double)squares * 32 : 0, k, &side[k], err);
        }
        if (side[k]) subtract(left, c, row_dim, grq_f32_from_f16(side[k]) * 0x1p-5f);
        else memset(code, 0, code_bytes);
    }
    return st;
}

/* ---- books in this form ---- */

static grq_pq_coding e8;

static void transpose_e8(void)
{
    transpose(grq_pq_book_e8(), &e8);
}

const grq_pq_coding *grq_pq_coding_e8(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, transpose_e8);
    return &e8;
}

grq_pq_coding *grq_pq_coding_new(const grq_pq_book *book)
{
    grq_pq_coding *const coding = aligned_alloc(_Alignof(grq_pq_coding), sizeof *coding);
    if (coding) transpose(book, coding);
    return coding;
}

const grq_pq_book *grq_pq_coding_book(const grq_pq_coding *coding)
{
    return &coding->book;
}

static const grq_pq_coding *coding_of(const grq_encoder *encoder)
{
    return encoder->detail ? encoder->detail : grq_pq_coding_e8();
}

/* ---- the encoder ---- */

static grq_status encode_row(const grq_encoder *encoder, const float *row, uint32_t row_dim, uint32_t n_stages,
                             uint8_t *codes, uint16_t *side, grq_error *err)
{
    grq_status st = grq_check_finite(row, row_dim, err);
    if (st != GRQ_OK) return st;
    float *const left = malloc(row_dim * (2 * sizeof *left + sizeof(int8_t)));
    if (!left) return grq_fail(err, GRQ_E_NOMEM, "no memory to code a row of %u values", row_dim);
    memcpy(left, row, row_dim * sizeof *left);
    st = encode_stages(coding_of(encoder), row_dim, n_stages, left, left + row_dim, (int8_t *)(left + 2 * row_dim),
                       codes, side, err);
    free(left);
    return st;
}

/* ---- decoding ---- */

GRQ_SIMD static void sum_stages(const grq_pq_coding *book, const uint8_t *const *codes, const float *factor,
                                uint32_t row_dim, uint32_t depth, float *out)
{
    for (uint32_t s = 0; s < row_dim / DIM; s++) {
        reals y = { 0 };
        for (uint32_t k = 0; k < depth; k++) y += factor[k] * book->vector[codes[k][s]];
        memcpy(out + DIM * s, &y, sizeof y);
    }
}

static void decode_row(const grq_encoder *encoder, const uint8_t *const *codes, const uint16_t *side, uint32_t row_dim,
                       uint32_t depth, float *out)
{
    float factor[GRQ_MAX_STAGES];
    for (uint32_t k = 0; k < depth; k++) factor[k] = grq_f32_from_f16(side[k]) * 0x1p-5f;
    sum_stages(coding_of(encoder), codes, factor, row_dim, depth, out);
}

const grq_encoder grq_encoder_pq = {
    .name = "pq",
    .description = "eight values by a byte, E8 lattice book: fast, between integer and tcq",
    .scale_rule = "least-squares",
    .dim_multiple = DIM,
    .kind = GRQ_KIND_PQ,
    .encode_row = encode_row,
    .decode_row = decode_row,
    .side_fault = grq_f16_side_fault,
};
