/* The kernels for AVX2 with F16C: a register holds 8 floats, two of them the lanes of a sum. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif
#include <immintrin.h>
#include <stdint.h>

enum { REGISTER = 8, TILE_TOKENS = 3, TILE_OUTPUTS = 2 }; /* 12 of the 16 registers hold sums */
#define KEEP(x) __asm__("" : "+v"(x))
typedef uint16_t halves __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) halves halves_of_bytes(const uint8_t *p)
{
    return (halves)_mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i_u *)p));
}

static inline __attribute__((always_inline)) __m256 reals_of_halves(halves h)
{
    return _mm256_cvtph_ps((__m128i)h);
}

#include "cpu/kernels_lanes.h"

const grq_kernels grq_kernels_avx2 = LANES_TABLE("avx2");

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
