/* The kernels in vectors of 16 floats for any processor: what kernels_avx512.c includes, without its instructions, so
 * that machines without AVX-512 test that width too. */
#ifndef GATERQ_TESTS_KERNELS_WIDE_H
#define GATERQ_TESTS_KERNELS_WIDE_H

#include <stdint.h>

#include "shared/number.h"

/* These vectors are arguments of inlined functions only: no calling convention is involved. */
#pragma GCC diagnostic ignored "-Wpsabi"

enum { REGISTER = 16, TILE_TOKENS = 4, TILE_OUTPUTS = 4 };
#define KEEP(x) ((void)(x))
typedef uint16_t halves __attribute__((vector_size(32)));
typedef float wide_reals __attribute__((vector_size(64)));

static inline __attribute__((always_inline)) halves halves_of_bytes(const uint8_t *p)
{
    halves h;
    for (int i = 0; i < REGISTER; i++) h[i] = (uint16_t)(int16_t)(int8_t)p[i];
    return h;
}

static inline __attribute__((always_inline)) wide_reals reals_of_halves(halves h)
{
    wide_reals x;
    for (int i = 0; i < REGISTER; i++) x[i] = grq_f32_from_f16(h[i]);
    return x;
}

#include "cpu/kernels_lanes.h"

static const grq_kernels kernels_wide = LANES_TABLE("16 wide, portable");

#endif
