#include "memory/mxfp8.h"

#include <math.h>

#include "shared/number.h"

/* Exponent k of the block's scale 2^k: log2 of max|x| / 448, rounded up. The floor keeps a block of zeros finite. */
static int block_exponent(const float *x, size_t n)
{
    float largest = 1e-4f;
    for (size_t i = 0; i < n; i++) largest = fmaxf(largest, fabsf(x[i]));
    const uint32_t bits = grq_bits_from_float(largest * (1.0f / 448.0f));
    return (int)(bits >> 23) - 127 + ((bits & 0x7FFFFFu) != 0);
}

void grq_mxfp8_quantise(const float *x, size_t n, uint8_t *codes, uint8_t *scales)
{
    for (size_t first = 0; first < n; first += GRQ_MXFP8_BLOCK) {
        const size_t length = n - first < GRQ_MXFP8_BLOCK ? n - first : GRQ_MXFP8_BLOCK;
        const int k = block_exponent(x + first, length);
        const float inverse = ldexpf(1.0f, -k); /* k is -22 to 120, so this is normal and the product exact */
        for (size_t i = first; i < first + length; i++) codes[i] = grq_e4m3_from_f32(x[i] * inverse);
        scales[first / GRQ_MXFP8_BLOCK] = (uint8_t)(k + 127);
    }
}

void grq_mxfp8_dequantise(const uint8_t *codes, const uint8_t *scales, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = grq_f32_from_e4m3(codes[i]) * grq_f32_from_e8m0(scales[i / GRQ_MXFP8_BLOCK]);
}
