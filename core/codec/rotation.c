/* Rotation of a row: random signs and Hadamard transforms. Source: specs/encoders.md section 9. */
#include <math.h>

#include "codec_internal.h"

/* ---- signs: splitmix64, one bit each ---- */

static uint64_t sign_word(uint64_t seed, uint32_t index)
{
    uint64_t z = seed + (index + (uint64_t)1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Signs first, first + 1, ... on n values; all multiples of 32. */
static void flip(float *x, uint32_t n, uint64_t seed, uint32_t first)
{
    for (uint32_t i = 0; i < n; i += 32) {
        const uint32_t k = first + i;
        const uint32_t word = (uint32_t)(sign_word(seed, k / 64) >> k % 64);
        for (uint32_t j = 0; j < 32; j++) x[i + j] = word >> j & 1 ? -x[i + j] : x[i + j];
    }
}

/* ---- the transform, its own inverse ---- */

static void hadamard(float *x, uint32_t m)
{
    for (uint32_t h = 1; h < m; h *= 2)
        for (uint32_t block = 0; block < m; block += 2 * h)
            for (uint32_t j = block; j < block + h; j++) {
                const float a = x[j], b = x[j + h];
                x[j] = a + b;
                x[j + h] = a - b;
            }
    const float factor = (float)(1 / sqrt(m));
    for (uint32_t j = 0; j < m; j++) x[j] *= factor;
}

/* Rows of 160 take two overlapping transforms of 128; others, one on each block of the largest power of two that
 * divides them. Rows that are no multiple of 32 stay as they are. */
enum { LONG = 160, PART = 128 };

static uint32_t block_of(uint32_t row_dim)
{
    return row_dim & (~row_dim + 1);
}

void grq_rotate(float *row, uint32_t row_dim, uint64_t seed)
{
    const uint32_t m = block_of(row_dim);
    if (row_dim == LONG) {
        flip(row, PART, seed, 0);
        hadamard(row, PART);
        flip(row + LONG - PART, PART, seed, PART);
        hadamard(row + LONG - PART, PART);
        return;
    }
    for (uint32_t i = 0; m >= 32 && i < row_dim; i += m) {
        flip(row + i, m, seed, i);
        hadamard(row + i, m);
    }
}

void grq_unrotate(float *row, uint32_t row_dim, uint64_t seed)
{
    const uint32_t m = block_of(row_dim);
    if (row_dim == LONG) {
        hadamard(row + LONG - PART, PART);
        flip(row + LONG - PART, PART, seed, PART);
        hadamard(row, PART);
        flip(row, PART, seed, 0);
        return;
    }
    for (uint32_t i = 0; m >= 32 && i < row_dim; i += m) {
        hadamard(row + i, m);
        flip(row + i, m, seed, i);
    }
}

void grq_scale_by_power(float *row, uint32_t row_dim, int exponent)
{
    const float factor = ldexpf(1, exponent); /* normal: GRQ_MAX_EXP_TAB */
    for (uint32_t i = 0; i < row_dim; i++) row[i] *= factor;
}
