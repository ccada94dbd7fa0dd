/* The search with AVX-512 (F, BW): 32 costs in a register. */
#include "cpu/viterbi.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#endif
#include <immintrin.h>

#define LANE_BITS 5
#define LANES 32
#define PRIMITIVE static inline __attribute__((always_inline))

typedef __m512i vec;

PRIMITIVE vec load(const void *p)
{
    return _mm512_load_si512(p);
}

PRIMITIVE void store(void *p, vec x)
{
    _mm512_storeu_si512(p, x);
}

PRIMITIVE vec add(vec a, vec b)
{
    return _mm512_add_epi16(a, b);
}

PRIMITIVE vec add_saturating(vec a, vec b)
{
    return _mm512_adds_epu16(a, b);
}

PRIMITIVE vec subtract(vec a, vec b)
{
    return _mm512_sub_epi16(a, b);
}

PRIMITIVE vec least(vec a, vec b)
{
    return _mm512_min_epu16(a, b);
}

PRIMITIVE vec spread_value(uint16_t x)
{
    return _mm512_set1_epi16((short)x);
}

PRIMITIVE void decide(uint32_t *words, vec took0, vec a0, vec took1, vec b0)
{
    words[0] = _mm512_cmpeq_epi16_mask(took0, a0);
    words[1] = _mm512_cmpeq_epi16_mask(took1, b0);
}

PRIMITIVE uint32_t decision_bit(uint32_t lane, uint32_t output)
{
    return lane | output << 5;
}

/* Permutations of both vectors; element e of the pair is x's e, or y's e - LANES. 32-bit ones are the faster. */
#define PAIR_16(b, l) (((l) & ~(1 << (b))) | ((l) >> (b)&1) << 5)
#define PAIR_32(b, l) (((l) & ~(1 << (b))) | ((l) >> (b)&1) << 4)
#define ALL_32(f, b, o)                                                                                                \
    f(b, 0) | o, f(b, 1) | o, f(b, 2) | o, f(b, 3) | o, f(b, 4) | o, f(b, 5) | o, f(b, 6) | o, f(b, 7) | o,            \
        f(b, 8) | o, f(b, 9) | o, f(b, 10) | o, f(b, 11) | o, f(b, 12) | o, f(b, 13) | o, f(b, 14) | o, f(b, 15) | o

PRIMITIVE vec swap_32(vec x, vec y, const uint32_t *index)
{
    return _mm512_permutex2var_epi32(x, _mm512_load_si512(index), y);
}

PRIMITIVE void swap_lanes(uint32_t lane_bit, vec x, vec y, vec *even, vec *odd)
{
    /* [bit of the 32-bit element][even, odd] */
    static const uint32_t index[4][2][16] __attribute__((aligned(64))) = {
        { { ALL_32(PAIR_32, 0, 0) }, { ALL_32(PAIR_32, 0, 1) } },
        { { ALL_32(PAIR_32, 1, 0) }, { ALL_32(PAIR_32, 1, 2) } },
        { { ALL_32(PAIR_32, 2, 0) }, { ALL_32(PAIR_32, 2, 4) } },
        { { ALL_32(PAIR_32, 3, 0) }, { ALL_32(PAIR_32, 3, 8) } },
    };
    if (lane_bit == 0) {
        const vec e = _mm512_mask_blend_epi16(0xAAAAAAAAu, x, _mm512_slli_epi32(y, 16));
        *odd = _mm512_mask_blend_epi16(0xAAAAAAAAu, _mm512_srli_epi32(x, 16), y);
        *even = e;
    } else {
        const vec e = swap_32(x, y, index[lane_bit - 1][0]);
        *odd = swap_32(x, y, index[lane_bit - 1][1]);
        *even = e;
    }
}

static void set_index(uint8_t *bytes, const uint8_t *lane_index)
{
    for (uint32_t l = 0; l < LANES; l++) bytes[l] = lane_index[l];
}

PRIMITIVE void make_metrics(const uint8_t *bytes, const uint16_t *metric, uint32_t n, vec *out)
{
    const vec table = _mm512_broadcast_i64x4(_mm256_load_si256((const __m256i *)metric));
    const vec index = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)bytes));
    for (uint32_t k = 0; k < n; k++)
        store(out + k, _mm512_permutexvar_epi16(_mm512_xor_si512(index, _mm512_set1_epi16((short)k)), table));
}

#include "cpu/viterbi_lanes.h"

bool grq_viterbi_search_avx512(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node,
                               uint32_t *begin_node)
{
    return search(v, path, bits, end_node, begin_node);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
bool grq_viterbi_search_avx512(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node,
                               uint32_t *begin_node)
{
    (void)v, (void)path, (void)bits, (void)end_node, (void)begin_node;
    return false;
}
#endif
