/* MXFP8: E4M3 codes with one E8M0 scale per 32 values. Source: specs/deepseek-v41-engram.md sections 8 and 9.
 *
 * The released model quantises the input of its key and value projection this way. Rows as released pass unchanged;
 * rows in any other format lose about 2.7 %, so our layers leave the step out (docs/decisions.md). */
#ifndef GATERQ_MXFP8_H
#define GATERQ_MXFP8_H

#include <stddef.h>
#include <stdint.h>

enum { GRQ_MXFP8_BLOCK = 32 };

/* x (n) finite -> codes (n), scales (ceil(n / 32)). A block's scale is the least power of two, not below 2^-22, that
 * brings its largest magnitude to 448 or less. */
void grq_mxfp8_quantise(const float *x, size_t n, uint8_t *codes, uint8_t *scales);

/* The inverse: exact in binary32. out (n). */
void grq_mxfp8_dequantise(const uint8_t *codes, const uint8_t *scales, size_t n, float *out);

#endif
