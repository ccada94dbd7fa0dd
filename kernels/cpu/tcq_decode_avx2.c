/* Decoding with AVX2, 32 values at a time: the 8 bits from each position on, as bytes; the index of a level is the XOR
 * of a look-up per four of them, and the level a look-up more. */
#include "cpu/tcq_decode.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef struct {
    __m256i part[4], level;
    bool is_long; /* windows of more than 12 bits */
} tables;

INLINE __m256i twice(const void *sixteen_bytes)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(sixteen_bytes));
}

INLINE tables load_tables(const grq_tcq_code *code)
{
    tables t = { .level = twice(code->level), .is_long = code->n_bits > 12 };
    for (int k = 0; k < 4; k++) t.part[k] = twice(code->part[k]);
    return t;
}

/* Byte i: bits i .. i + 7. Each value's two source bytes are multiplied so that its first bit comes to bit 8. */
INLINE __m256i eight_bits(uint64_t ahead)
{
    const __m256i source = _mm256_set1_epi64x((long long)ahead);
    const __m256i shift = _mm256_broadcastsi128_si256(_mm_setr_epi16(256, 128, 64, 32, 16, 8, 4, 2));
    /* The 128-bit halves of `low` hold values 0-7 and 16-23, those of `high` 8-15 and 24-31: packing orders them. */
    const __m256i low = _mm256_shuffle_epi8(source, _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2,
                                                                     3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3));
    const __m256i high = _mm256_shuffle_epi8(source, _mm256_setr_epi8(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3,
                                                                      4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4));
    return _mm256_packus_epi16(_mm256_srli_epi16(_mm256_mullo_epi16(low, shift), 8),
                               _mm256_srli_epi16(_mm256_mullo_epi16(high, shift), 8));
}

/* `here` are the bytes of these 32 positions, `next` those of the 32 after. */
INLINE __m256i levels(const tables *t, __m256i here, __m256i next)
{
    const __m256i four = _mm256_set1_epi8(15);
    const __m256i later = _mm256_permute4x64_epi64(_mm256_blend_epi32(here, next, 3), 0x39); /* 8 positions on */
    __m256i index = _mm256_shuffle_epi8(t->part[0], _mm256_and_si256(here, four));
    index =
        _mm256_xor_si256(index, _mm256_shuffle_epi8(t->part[1], _mm256_and_si256(_mm256_srli_epi16(here, 4), four)));
    index = _mm256_xor_si256(index, _mm256_shuffle_epi8(t->part[2], _mm256_and_si256(later, four)));
    if (t->is_long)
        index = _mm256_xor_si256(index,
                                 _mm256_shuffle_epi8(t->part[3], _mm256_and_si256(_mm256_srli_epi16(later, 4), four)));
    return _mm256_shuffle_epi8(t->level, index);
}

/* The 32 bits from position i on and the 32 that follow; the tail comes behind the row's end. */
INLINE uint64_t bits_from(const uint8_t *bits, uint32_t tail, uint32_t n, uint32_t i)
{
    uint64_t ahead;
    uint32_t word;
    if (i + 64 <= n) {
        memcpy(&ahead, bits + i / 8, sizeof ahead);
        return ahead;
    }
    if (i >= n) return tail;
    memcpy(&word, bits + i / 8, sizeof word);
    return word | (uint64_t)tail << 32;
}

/* Runs through the row; `use(i, values i .. i + 31)`. */
#define FOR_EACH_32(code, bits, tail, n, use)                                                                          \
    do {                                                                                                               \
        const tables t = load_tables(code);                                                                            \
        __m256i here = eight_bits(bits_from(bits, tail, n, 0));                                                        \
        for (uint32_t i = 0; i < n; i += 32) {                                                                         \
            const __m256i next = eight_bits(bits_from(bits, tail, n, i + 32));                                         \
            use(i, levels(&t, here, next));                                                                            \
            here = next;                                                                                               \
        }                                                                                                              \
    } while (0)

static void values(const grq_tcq_code *code, const uint8_t *bits, uint32_t tail, uint32_t n, int8_t *c)
{
#define STORE(i, v) _mm256_storeu_si256((__m256i *)(c + (i)), v)
    FOR_EACH_32(code, bits, tail, n, STORE);
}

/* Bytes 8k .. 8k + 7 of 16, which both halves of `c` hold: each goes to the top of its 32 bits, where it stands for
 * itself times 2^24. `factor` is divided by as much; the product is exact either way. */
INLINE void add_8(__m256i c, uint32_t k, __m256 factor, bool first, float *y)
{
    const __m256i top = _mm256_setr_epi8(-1, -1, -1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1, -1, 4, -1,
                                         -1, -1, 5, -1, -1, -1, 6, -1, -1, -1, 7);
    const __m256i next_8 = _mm256_set1_epi32(8 << 24); /* to the index of every byte that is taken */
    const __m256i whole = _mm256_shuffle_epi8(c, k ? _mm256_add_epi8(top, next_8) : top);
    const __m256 step = _mm256_mul_ps(_mm256_cvtepi32_ps(whole), factor);
    _mm256_storeu_ps(y, _mm256_add_ps(first ? _mm256_setzero_ps() : _mm256_loadu_ps(y), step));
}

INLINE void add_32(__m256i c, __m256 factor, bool first, float *y)
{
    const __m256i low = _mm256_permute4x64_epi64(c, 0x44), high = _mm256_permute4x64_epi64(c, 0xEE);
    add_8(low, 0, factor, first, y);
    add_8(low, 1, factor, first, y + 8);
    add_8(high, 0, factor, first, y + 16);
    add_8(high, 1, factor, first, y + 24);
}

static void add(const grq_tcq_code *code, const uint8_t *bits, uint32_t tail, uint32_t n, float factor, bool first,
                float *y)
{
    const __m256 f = _mm256_set1_ps(factor * 0x1p-24f);
#define ADD_TO(i, v) add_32(v, f, false, y + (i))
#define SET_TO(i, v) add_32(v, f, true, y + (i))
    if (first) FOR_EACH_32(code, bits, tail, n, SET_TO);
    else FOR_EACH_32(code, bits, tail, n, ADD_TO);
}

const grq_tcq_decoder grq_tcq_decoder_avx2 = { "avx2", values, add };

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
