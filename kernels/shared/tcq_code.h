/* kernels/shared/tcq_code.h - a trellis code: what a window of code bits stands for, written once for every compiler.
 *
 * The value at position i is level[index], index bit j = parity(window & mask[j]), window = the n_bits code bits from
 * position i on (bit k of the window is code bit i + k). The index is linear in the window, so that it is also the XOR
 * of one table entry per four window bits: `part`. Source: specs/encoders.md section 4. */
#ifndef GATERQ_TCQ_CODE_H
#define GATERQ_TCQ_CODE_H

#include <stdint.h>

enum {
    GRQ_TCQ_MAX_BITS = 16,  /* longest window */
    GRQ_TCQ_MAX_MASKS = 4,  /* index bits */
    GRQ_TCQ_MAX_LEVELS = 16 /* 2^GRQ_TCQ_MAX_MASKS */
};

typedef struct {
    const char *id;   /* "T12"; "custom" for a code that only a file knows */
    uint32_t n_bits;  /* L: bits of a window; nodes of the trellis have one less */
    uint32_t n_masks; /* m */
    uint16_t mask[GRQ_TCQ_MAX_MASKS];
    int8_t level[GRQ_TCQ_MAX_LEVELS]; /* in units of 1/64 of the scale; the first 2^m count */
    uint8_t part[4][16];              /* follows from the masks: grq_tcq_code_complete */
} grq_tcq_code;

static inline uint32_t grq_tcq_index_by_masks(const grq_tcq_code *code, uint32_t window)
{
    uint32_t index = 0;
    for (uint32_t j = 0; j < code->n_masks; j++) {
        uint32_t kept = window & code->mask[j];
        kept ^= kept >> 8;
        kept ^= kept >> 4;
        kept ^= kept >> 2;
        kept ^= kept >> 1;
        index |= (kept & 1) << j;
    }
    return index;
}

static inline void grq_tcq_code_complete(grq_tcq_code *code)
{
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t x = 0; x < 16; x++) code->part[k][x] = (uint8_t)grq_tcq_index_by_masks(code, x << (4 * k));
}

static inline uint32_t grq_tcq_index(const grq_tcq_code *code, uint32_t window)
{
    return code->part[0][window & 15] ^ code->part[1][window >> 4 & 15] ^ code->part[2][window >> 8 & 15] ^
           code->part[3][window >> 12 & 15];
}

/* ((q - level)^2 of each level, less the least of them) / 32, rounded down: the cost of a branch. */
static inline void grq_tcq_metrics(const grq_tcq_code *code, int32_t q, uint32_t metric[GRQ_TCQ_MAX_LEVELS])
{
    const uint32_t n = 1u << code->n_masks;
    uint32_t least = UINT32_MAX;
    for (uint32_t j = 0; j < n; j++) {
        const int32_t off = q - code->level[j];
        metric[j] = (uint32_t)(off * off);
        if (metric[j] < least) least = metric[j];
    }
    for (uint32_t j = 0; j < n; j++) metric[j] = (metric[j] - least) >> 5;
}

#endif
