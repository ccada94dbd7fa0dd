/* Product quantisation: eight values by a byte. Source: specs/encoders.md section 3. */
#ifndef GATERQ_PQ_H
#define GATERQ_PQ_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/pq_book.h"

/* A book in the forms that coding and decoding take; grq_encoder.detail of pq points to one (NULL: the built-in book).
 */
typedef struct grq_pq_coding grq_pq_coding;

const grq_pq_book *grq_pq_book_e8(void);
uint32_t grq_pq_crc32(const int8_t vector[GRQ_PQ_ENTRIES][GRQ_PQ_DIM]);

const grq_pq_coding *grq_pq_coding_e8(void);
grq_pq_coding *grq_pq_coding_new(const grq_pq_book *book); /* a copy; NULL when out of memory. free() ends it */
const grq_pq_book *grq_pq_coding_book(const grq_pq_coding *coding);

/* For training: values (n, a multiple of 8) in units of 1/32 of a scale, whole and clamped; numbers of the vectors that
 * are nearest to each eight of them. */
void grq_pq_quantise(const float *values, uint32_t n, float units, float *q);
void grq_pq_nearest(const grq_pq_coding *coding, const float *q, uint32_t n_subvectors, uint8_t *code);

#endif
