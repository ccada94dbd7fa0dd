/* Decoding with AVX-512 and VBMI, 64 values at a time: fields of six window bits, a 64-entry look-up each, their XOR,
 * and a look-up of the level. */
#include "cpu/tcq_decode.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi"))),                 \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")
#endif
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef struct {
    __m512i part[3], level; /* of window bits 0-5, 6-11, 12-15 */
    bool is_long;           /* windows of more than 12 bits */
} tables;

INLINE tables load_tables(const grq_tcq_code *code)
{
    static const uint8_t count[64] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                       16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                       32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                       48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63 };
    const __m512i entry = _mm512_loadu_si512(count);
    const __m512i low4 = _mm512_and_si512(entry, _mm512_set1_epi8(15));
    const __m512i low2 = _mm512_and_si512(entry, _mm512_set1_epi8(3));
    const __m512i high2 = _mm512_and_si512(_mm512_srli_epi16(entry, 4), _mm512_set1_epi8(3));
    const __m512i high4 = _mm512_and_si512(_mm512_srli_epi16(entry, 2), _mm512_set1_epi8(15));
    const __m512i by4[4] = {
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)code->part[0])),
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)code->part[1])),
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)code->part[2])),
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)code->part[3])),
    };
    tables t = { .is_long = code->n_bits > 12 };
    /* Bits 4 and 5 of the window are the low ones of the second part, 6 and 7 its high ones. */
    t.part[0] = _mm512_xor_si512(_mm512_shuffle_epi8(by4[0], low4), _mm512_shuffle_epi8(by4[1], high2));
    t.part[1] =
        _mm512_xor_si512(_mm512_shuffle_epi8(by4[1], _mm512_slli_epi16(low2, 2)), _mm512_shuffle_epi8(by4[2], high4));
    t.part[2] = _mm512_shuffle_epi8(by4[3], low4);
    t.level = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)code->level));
    return t;
}

/* Values of positions whose bits are `ahead`'s: 64 and the 15 that follow, in 16 bytes and more. */
INLINE __m512i levels(const tables *t, __m512i ahead)
{
    /* Each quadword gets the 8 bytes from its own first one on; then each byte a field from its own bit on. */
    const __m512i own_bytes =
        _mm512_set_epi64(0x0E0D0C0B0A090807, 0x0D0C0B0A09080706, 0x0C0B0A0908070605, 0x0B0A090807060504,
                         0x0A09080706050403, 0x0908070605040302, 0x0807060504030201, 0x0706050403020100);
    const __m512i source = _mm512_permutexvar_epi8(own_bytes, ahead);
    const __m512i first = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x0706050403020100), source);
    const __m512i second = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x0D0C0B0A09080706), source);
    __m512i index =
        _mm512_xor_si512(_mm512_permutexvar_epi8(first, t->part[0]), _mm512_permutexvar_epi8(second, t->part[1]));
    if (t->is_long)
        index = _mm512_xor_si512(
            index, _mm512_permutexvar_epi8(_mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x131211100F0E0D0C), source),
                                           t->part[2]));
    return _mm512_shuffle_epi8(t->level, index);
}

/* The bytes from position i on, with the tail behind the row's end. */
INLINE __m512i bytes_from(const uint8_t *bits, uint32_t tail, uint32_t n, uint32_t i)
{
    if (i + 96 <= n) { /* 12 bytes lie in the row */
        uint64_t low;
        uint32_t high;
        memcpy(&low, bits + i / 8, sizeof low);
        memcpy(&high, bits + i / 8 + 8, sizeof high);
        return _mm512_castsi128_si512(_mm_set_epi64x(high, (long long)low));
    }
    uint32_t word[4] = { tail, tail, tail, 0 };
    for (uint32_t k = 0; k < 2 && i + 32 * k < n; k++) memcpy(&word[k], bits + i / 8 + 4 * k, sizeof *word);
    return _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)word));
}

static void values(const grq_tcq_code *code, const uint8_t *bits, uint32_t tail, uint32_t n, int8_t *c)
{
    const tables t = load_tables(code);
    for (uint32_t i = 0; i < n; i += 64) {
        const __mmask64 within = n - i < 64 ? 0xFFFFFFFFu : ~(__mmask64)0;
        _mm512_mask_storeu_epi8(c + i, within, levels(&t, bytes_from(bits, tail, n, i)));
    }
}

INLINE void add_16(__m128i c, __m512 factor, bool first, float *y)
{
    const __m512 step = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(c)), factor);
    _mm512_storeu_ps(y, _mm512_add_ps(first ? _mm512_setzero_ps() : _mm512_loadu_ps(y), step));
}

INLINE void add_all(const grq_tcq_code *code, const uint8_t *bits, uint32_t tail, uint32_t n, float factor, bool first,
                    float *y)
{
    const tables t = load_tables(code);
    const __m512 f = _mm512_set1_ps(factor);
    for (uint32_t i = 0; i < n; i += 64) {
        const __m512i c = levels(&t, bytes_from(bits, tail, n, i));
        add_16(_mm512_castsi512_si128(c), f, first, y + i);
        add_16(_mm512_extracti32x4_epi32(c, 1), f, first, y + i + 16);
        if (n - i < 64) break; /* n is a multiple of 32 */
        add_16(_mm512_extracti32x4_epi32(c, 2), f, first, y + i + 32);
        add_16(_mm512_extracti32x4_epi32(c, 3), f, first, y + i + 48);
    }
}

static void add(const grq_tcq_code *code, const uint8_t *bits, uint32_t tail, uint32_t n, float factor, bool first,
                float *y)
{
    if (first) add_all(code, bits, tail, n, factor, true, y);
    else add_all(code, bits, tail, n, factor, false, y);
}

const grq_tcq_decoder grq_tcq_decoder_avx512 = { "avx512", values, add };

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
