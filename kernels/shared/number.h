/* kernels/shared/number.h - the small number formats: BF16, FP16, FP8 E4M3 ("fn": no infinity) and E8M0.
 *
 * Written once for both compilers. Conversions from binary32 round to nearest, ties to even, as one rounding, and need
 * the default rounding mode; conversions to binary32 are exact. Checked against every code, and every tie between two
 * codes, in tests/unit/test_number.c. */
#ifndef GATERQ_NUMBER_H
#define GATERQ_NUMBER_H

#include <stdint.h>
#include <string.h>

static inline float grq_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t grq_bits_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- BF16: the upper half of binary32 ---- */

static inline float grq_f32_from_bf16(uint16_t code)
{
    return grq_float_from_bits((uint32_t)code << 16);
}

static inline uint16_t grq_bf16_from_f32(float x)
{
    const uint32_t bits = grq_bits_from_float(x);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x0040); /* NaN, made quiet */
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}

/* ---- FP16: 5 exponent bits, bias 15, 10 fraction bits ---- */

static inline float grq_f32_from_f16(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000) << 16, exponent = code >> 10 & 31, fraction = code & 0x3FF;
    if (exponent == 31) return grq_float_from_bits(sign | 0x7F800000u | fraction << 13);
    if (exponent > 0) return grq_float_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float magnitude = (float)fraction * 0x1p-24f; /* exact: subnormals are normal in binary32 */
    return grq_float_from_bits(sign | grq_bits_from_float(magnitude));
}

static inline uint16_t grq_f16_from_f32(float x)
{
    const uint32_t bits = grq_bits_from_float(x), magnitude = bits & 0x7FFFFFFFu;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7F800000u) return sign | 0x7E00;
    if (magnitude >= 0x477FF000u) return sign | 0x7C00; /* from 65520 on: infinity */
    if (magnitude < 0x38800000u) {
        /* Below 2^-14. The spacing of binary32 at 0.5 is that of FP16's subnormals, 2^-24. */
        const float shifted = grq_float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (grq_bits_from_float(shifted) - 0x3F000000u));
    }
    return (uint16_t)(sign | ((magnitude + 0xFFFu + (magnitude >> 13 & 1) - 0x38000000u) >> 13));
}

/* ---- FP8 E4M3: bias 7, 3 fraction bits, largest 448, 0x7F and 0xFF NaN ---- */

static inline float grq_f32_from_e4m3(uint8_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x80) << 24, exponent = code >> 3 & 15, fraction = code & 7;
    if ((code & 0x7F) == 0x7F) return grq_float_from_bits(sign | 0x7FC00000u);
    if (exponent > 0) return grq_float_from_bits(sign | (exponent + 120) << 23 | fraction << 20);
    return grq_float_from_bits(sign | grq_bits_from_float((float)fraction * 0x1p-9f));
}

/* Saturates: everything above 448, infinities too, gives 448. */
static inline uint8_t grq_e4m3_from_f32(float x)
{
    const uint32_t bits = grq_bits_from_float(x), magnitude = bits & 0x7FFFFFFFu;
    const uint8_t sign = (uint8_t)(bits >> 24 & 0x80);
    if (magnitude > 0x7F800000u) return sign | 0x7F;
    if (magnitude >= 0x43E00000u) return sign | 0x7E;
    if (magnitude < 0x3C800000u) {
        /* Below 2^-6. The spacing of binary32 at 2^14 is that of E4M3's subnormals, 2^-9. */
        const float shifted = grq_float_from_bits(magnitude) + 16384.0f;
        return (uint8_t)(sign | (grq_bits_from_float(shifted) - 0x46800000u));
    }
    return (uint8_t)(sign | ((magnitude + 0x7FFFFu + (magnitude >> 20 & 1) - 0x3C000000u) >> 20));
}

/* ---- E8M0: 2^(code - 127), 255 is NaN ---- */

static inline float grq_f32_from_e8m0(uint8_t code)
{
    if (code == 255) return grq_float_from_bits(0x7FC00000u);
    return grq_float_from_bits(code > 0 ? (uint32_t)code << 23 : 0x00400000u); /* 2^-127 is subnormal */
}

#endif
