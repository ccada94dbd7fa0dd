/* kernels/cpu/tcq_decode.h - the values that the bits of a trellis code stand for.
 *
 * `ref` is the definition; the twins give its bits. n is a multiple of 32; `tail` holds the code bits that follow the
 * last one (the first bits again in format A, bits of the side word in format B). Source: specs/encoders.md section 4.
 */
#ifndef GATERQ_CPU_TCQ_DECODE_H
#define GATERQ_CPU_TCQ_DECODE_H

#include <stdbool.h>

#include "shared/tcq_code.h"

typedef struct {
    const char *name;
    /* c (n): the integers. */
    void (*values)(const grq_tcq_code *code, const uint8_t *bits, uint32_t tail, uint32_t n, int8_t *c);
    /* y (n): y[i] += factor * c[i], or factor * c[i] + 0 when `first`. The product is exact. */
    void (*add)(const grq_tcq_code *code, const uint8_t *bits, uint32_t tail, uint32_t n, float factor, bool first,
                float *y);
} grq_tcq_decoder;

const grq_tcq_decoder *grq_tcq_decoder_of_cpu(void);
const grq_tcq_decoder *grq_tcq_decoder_at(int level); /* of cpu_level.h */

extern const grq_tcq_decoder grq_tcq_decoder_ref, grq_tcq_decoder_avx2, grq_tcq_decoder_avx512;

#endif
