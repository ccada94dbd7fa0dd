/* Product quantisation: eight values by a byte. Source: specs/encoders.md section 3. */
#ifndef GATERQ_PQ_H
#define GATERQ_PQ_H

#include <stdint.h>

enum { GRQ_PQ_DIM = 8, GRQ_PQ_ENTRIES = 256 };

typedef struct {
    const char *id;
    uint32_t crc32;                            /* of the 2048 bytes */
    int8_t vector[GRQ_PQ_ENTRIES][GRQ_PQ_DIM]; /* in 1/32 of the scale; -127 at least */
} grq_pq_book;

const grq_pq_book *grq_pq_book_e8(void);

uint32_t grq_pq_crc32(const int8_t vector[GRQ_PQ_ENTRIES][GRQ_PQ_DIM]);

#endif
