/* The search with AVX2: 16 costs in a register. */
#include "cpu/viterbi.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#include <immintrin.h>

#define LANE_BITS 4
#define LANES 16
#define PRIMITIVE static inline __attribute__((always_inline))

typedef __m256i vec;

PRIMITIVE vec load(const void *p)
{
    return _mm256_load_si256(p);
}

PRIMITIVE void store(void *p, vec x)
{
    _mm256_storeu_si256(p, x);
}

PRIMITIVE vec add(vec a, vec b)
{
    return _mm256_add_epi16(a, b);
}

PRIMITIVE vec add_saturating(vec a, vec b)
{
    return _mm256_adds_epu16(a, b);
}

PRIMITIVE vec subtract(vec a, vec b)
{
    return _mm256_sub_epi16(a, b);
}

PRIMITIVE vec least(vec a, vec b)
{
    return _mm256_min_epu16(a, b);
}

PRIMITIVE vec spread_value(uint16_t x)
{
    return _mm256_set1_epi16((short)x);
}

/* Packing interleaves by halves: lanes 0-7 of the first output, then of the second, then lanes 8-15 likewise. */
PRIMITIVE void decide(uint32_t *words, vec took0, vec a0, vec took1, vec b0)
{
    const vec first = _mm256_cmpeq_epi16(took0, a0), second = _mm256_cmpeq_epi16(took1, b0);
    words[0] = (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(first, second));
}

PRIMITIVE uint32_t decision_bit(uint32_t lane, uint32_t output)
{
    return (lane & 7) | output << 3 | (lane & 8) << 1;
}

PRIMITIVE void swap_lanes(uint32_t lane_bit, vec x, vec y, vec *even, vec *odd)
{
    switch (lane_bit) {
    case 0:
        *even = _mm256_blend_epi16(x, _mm256_slli_epi32(y, 16), 0xAA);
        *odd = _mm256_blend_epi16(_mm256_srli_epi32(x, 16), y, 0xAA);
        break;
    case 1:
        *even = _mm256_blend_epi32(x, _mm256_slli_epi64(y, 32), 0xAA);
        *odd = _mm256_blend_epi32(_mm256_srli_epi64(x, 32), y, 0xAA);
        break;
    case 2:
        *even = _mm256_unpacklo_epi64(x, y);
        *odd = _mm256_unpackhi_epi64(x, y);
        break;
    default:
        *even = _mm256_permute2x128_si256(x, y, 0x20);
        *odd = _mm256_permute2x128_si256(x, y, 0x31);
        break;
    }
}

/* Bytes for make_metrics: lanes 0-7 of vector 0 and of vector 1, then lanes 8-15 of both. */
static void set_index(uint8_t *bytes, const uint8_t *lane_index)
{
    for (uint32_t l = 0; l < LANES; l++) {
        bytes[l / 8 * 16 + l % 8] = lane_index[l];
        bytes[l / 8 * 16 + 8 + l % 8] = lane_index[l] ^ 1;
    }
}

/* Low and high bytes of the costs are looked up apart and laid together; two vectors at a time. */
PRIMITIVE void make_metrics(const uint8_t *bytes, const uint16_t *metric, uint32_t n, vec *out)
{
    const __m128i a = _mm_load_si128((const __m128i *)metric), b = _mm_load_si128((const __m128i *)metric + 1);
    const __m128i byte = _mm_set1_epi16(0xFF);
    const vec low = _mm256_broadcastsi128_si256(_mm_packus_epi16(_mm_and_si128(a, byte), _mm_and_si128(b, byte)));
    const vec high = _mm256_broadcastsi128_si256(_mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8)));
    const vec index = _mm256_loadu_si256((const __m256i *)bytes);
    for (uint32_t k = 0; k < n; k += 2) {
        const vec at = _mm256_xor_si256(index, _mm256_set1_epi8((char)k));
        const vec l = _mm256_shuffle_epi8(low, at), h = _mm256_shuffle_epi8(high, at);
        store(out + k, _mm256_unpacklo_epi8(l, h));
        store(out + k + 1, _mm256_unpackhi_epi8(l, h));
    }
}

/* Codes of fewer levels repeat theirs: neither the least nor the largest changes. */
uint16_t grq_viterbi_metrics_avx2(const grq_tcq_code *code, const int16_t *q, uint32_t n, uint16_t *metric,
                                  uint16_t *dearest)
{
    int32_t level[GRQ_TCQ_MAX_LEVELS];
    for (uint32_t j = 0; j < GRQ_TCQ_MAX_LEVELS; j++) level[j] = code->level[j & ((1u << code->n_masks) - 1)];
    const vec level0 = _mm256_loadu_si256((const vec *)level), level1 = _mm256_loadu_si256((const vec *)level + 1);
    __m128i largest = _mm_setzero_si128();
    for (uint32_t i = 0; i < n; i++) {
        const vec x = _mm256_set1_epi32(q[i]);
        const vec off0 = _mm256_sub_epi32(x, level0), off1 = _mm256_sub_epi32(x, level1);
        const vec square0 = _mm256_mullo_epi32(off0, off0), square1 = _mm256_mullo_epi32(off1, off1);
        vec low = _mm256_min_epi32(square0, square1);
        low = _mm256_min_epi32(low, _mm256_permute2x128_si256(low, low, 1));
        low = _mm256_min_epi32(low, _mm256_shuffle_epi32(low, 0x4E));
        low = _mm256_min_epi32(low, _mm256_shuffle_epi32(low, 0xB1));
        const vec cost =
            _mm256_permute4x64_epi64(_mm256_packus_epi32(_mm256_srli_epi32(_mm256_sub_epi32(square0, low), 5),
                                                         _mm256_srli_epi32(_mm256_sub_epi32(square1, low), 5)),
                                     0xD8);
        store(metric + (size_t)i * GRQ_TCQ_MAX_LEVELS, cost);
        /* The largest of eight is what is missing to the least of the complements. */
        const __m128i high = _mm_max_epu16(_mm256_castsi256_si128(cost), _mm256_extracti128_si256(cost, 1));
        const __m128i least_missing = _mm_minpos_epu16(_mm_xor_si128(high, _mm_set1_epi16(-1)));
        dearest[i] = (uint16_t)~_mm_extract_epi16(least_missing, 0);
        largest = _mm_max_epu16(largest, high);
    }
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(largest, _mm_set1_epi16(-1))), 0);
}

#include "cpu/viterbi_lanes.h"

bool grq_viterbi_search_avx2(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node,
                             uint32_t *begin_node)
{
    return search(v, path, bits, end_node, begin_node);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
uint16_t grq_viterbi_metrics_avx2(const grq_tcq_code *code, const int16_t *q, uint32_t n, uint16_t *metric,
                                  uint16_t *dearest)
{
    (void)code, (void)q, (void)n, (void)metric, (void)dearest;
    return UINT16_MAX;
}

bool grq_viterbi_search_avx2(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node,
                             uint32_t *begin_node)
{
    (void)v, (void)path, (void)bits, (void)end_node, (void)begin_node;
    return false;
}
#endif
