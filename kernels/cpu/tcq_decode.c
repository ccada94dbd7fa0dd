/* The definition of decoding, and the choice of the instruction set. */
#include <string.h>

#include "cpu/cpu_level.h"
#include "cpu/tcq_decode.h"

/* The windows of 32 values lie in 32 + 15 bits. */
static uint64_t bits_from(const uint8_t *bits, uint32_t tail, uint32_t n, uint32_t i)
{
    uint32_t word[2] = { 0, tail };
    memcpy(&word[0], bits + i / 8, sizeof word[0]);
    if (i + 32 < n) memcpy(&word[1], bits + i / 8 + 4, sizeof word[1]);
    return word[0] | (uint64_t)word[1] << 32;
}

static int8_t value_of(const grq_tcq_code *code, uint64_t bits)
{
    return code->level[grq_tcq_index(code, (uint32_t)(bits & ((1u << code->n_bits) - 1)))];
}

static void values(const grq_tcq_code *code, const uint8_t *bits, uint32_t tail, uint32_t n, int8_t *c)
{
    for (uint32_t i = 0; i < n; i += 32) {
        const uint64_t ahead = bits_from(bits, tail, n, i);
        for (uint32_t j = 0; j < 32; j++) c[i + j] = value_of(code, ahead >> j);
    }
}

static void add(const grq_tcq_code *code, const uint8_t *bits, uint32_t tail, uint32_t n, float factor, bool first,
                float *y)
{
    for (uint32_t i = 0; i < n; i += 32) {
        const uint64_t ahead = bits_from(bits, tail, n, i);
        for (uint32_t j = 0; j < 32; j++)
            y[i + j] = (first ? 0.0f : y[i + j]) + factor * (float)value_of(code, ahead >> j);
    }
}

const grq_tcq_decoder grq_tcq_decoder_ref = { "ref", values, add };

const grq_tcq_decoder *grq_tcq_decoder_at(int level)
{
#if defined(__x86_64__)
    if (level == GRQ_CPU_AVX512) return &grq_tcq_decoder_avx512;
    if (level == GRQ_CPU_AVX2) return &grq_tcq_decoder_avx2;
#endif
    (void)level;
    return &grq_tcq_decoder_ref;
}

const grq_tcq_decoder *grq_tcq_decoder_of_cpu(void)
{
    return grq_tcq_decoder_at(grq_cpu_level());
}
