/* kernels/shared/expf.h - expf that vectorises and gives the same bits on every instruction set.
 *
 * exp(x) = 2^k exp(r), k = round(x / ln 2), |r| <= ln(2)/2 by a two-part reduction, exp(r) by a degree-6 polynomial
 * (Cephes' minimax coefficients); at most 1.5 ulp from the exact value (tests/unit/test_expf.c). Below -103.98 the
 * result is 0, above 88.73 infinity; NaN stays NaN; results below 2^-126 are rounded once through a two-step scaling.
 */
#ifndef GATERQ_EXPF_H
#define GATERQ_EXPF_H

#include "number.h"

static inline float grq_expf(float x)
{
    const float clamped = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    const float k = (clamped * 1.44269504088896341f + magic) - magic;
    const float r = (clamped - k * 0.693359375f) - k * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    /* 2^k in two factors: k reaches -150 and 128, beyond one exponent field. A NaN gives k = 0 here. */
    const int32_t whole = k == k ? (int32_t)k : 0, half = whole / 2;
    const float scaled = (p * grq_float_from_bits((uint32_t)(half + 127) << 23)) *
                         grq_float_from_bits((uint32_t)(whole - half + 127) << 23);
    return x == x ? scaled : x;
}

#endif
