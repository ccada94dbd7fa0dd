/* The kernels for AVX-512 (F, BW, VL, DQ): a register holds the 16 lanes of a sum. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,f16c"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,f16c")
#endif
#include <immintrin.h>
#include <stdint.h>

enum { REGISTER = 16, TILE_TOKENS = 4, TILE_OUTPUTS = 4 }; /* 16 of the 32 registers hold sums */
#define KEEP(x) __asm__("" : "+v"(x))
typedef uint16_t halves __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) halves halves_of_bytes(const uint8_t *p)
{
    return (halves)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i_u *)p));
}

static inline __attribute__((always_inline)) __m512 reals_of_halves(halves h)
{
    return _mm512_cvtph_ps((__m256i)h);
}

#include "cpu/kernels_lanes.h"

const grq_kernels grq_kernels_avx512 = LANES_TABLE("avx512");

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
