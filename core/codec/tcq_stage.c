/* What both formats of the trellis codes do in a stage: quantise, take the bits, fit the scale. */
#include <math.h>
#include <string.h>

#include "cpu/tcq_decode.h"
#include "lane_sum.h"
#include "shared/simd.h"
#include "tcq.h"

enum { LANES = GRQ_SUM_LANES };

static const float LARGEST_Q = 2047;

GRQ_SIMD double grq_tcq_rms(const grq_tcq_row *row)
{
    const float *const r = row->left;
    double lane[LANES] = { 0 };
    for (uint32_t i = 0; i < row->n; i += LANES)
        for (uint32_t j = 0; j < LANES; j++) lane[j] += (double)r[i + j] * (double)r[i + j];
    const double energy = grq_fold_lanes(lane);
    return energy > 0 ? sqrt(energy / row->n) : 0;
}

GRQ_SIMD static void quantise(const float *r, uint32_t n, float inverse, int16_t *q)
{
    for (uint32_t i = 0; i < n; i++) {
        const float x = r[i] * inverse;
        const float within = x < -LARGEST_Q ? -LARGEST_Q : x > LARGEST_Q ? LARGEST_Q : x;
        q[i] = (int16_t)rintf(within);
    }
}

bool grq_tcq_quantise(grq_tcq_row *row, double search_scale)
{
    const float inverse = (float)(64 / search_scale);
    /* Scales below 2^-122: far below what a side word can hold, so the stage would be zero in any case. */
    if (!isfinite(inverse)) return false;
    quantise(row->left, row->n, inverse, row->q);
    return true;
}

void grq_tcq_pack(const grq_tcq_row *row, uint8_t *code)
{
    for (uint32_t i = 0; i < row->n / 8; i++) {
        uint64_t eight;
        memcpy(&eight, row->bits + 8 * i, sizeof eight);
        code[i] = (uint8_t)(eight * 0x0102040810204080u >> 56); /* bit of byte k to bit 56 + k */
    }
}

void grq_tcq_take_values(grq_tcq_row *row, const uint8_t *code, uint32_t tail)
{
    grq_tcq_decoder_of_cpu()->values(row->coding->code, code, tail, row->n, row->c);
}

/* N = S(r c); D = sum of c^2. */
GRQ_SIMD static double project(const float *r, const int8_t *c, uint32_t n, int64_t *squares)
{
    double lane[LANES] = { 0 };
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i += LANES) {
        int32_t part = 0;
        for (uint32_t j = 0; j < LANES; j++) part += c[i + j] * c[i + j];
        sum += part;
        for (uint32_t j = 0; j < LANES; j++) lane[j] += (double)r[i + j] * (double)c[i + j];
    }
    *squares = sum;
    return grq_fold_lanes(lane);
}

double grq_tcq_least_squares(const grq_tcq_row *row)
{
    int64_t squares;
    const double n = project(row->left, row->c, row->n, &squares);
    return squares > 0 && n > 0 ? n / (double)squares * 64 : 0;
}
