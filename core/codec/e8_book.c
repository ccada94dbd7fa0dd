/* The built-in book: the 240 shortest vectors of the E8 lattice and 16 axis vectors, in units of 1/32. */
#include <pthread.h>
#include <stddef.h>

#include "pq.h"

enum { PAIR = 38, HALF = 19, AXIS = 57 }; /* sizes of coordinates: of two, of all eight, of one */

static grq_pq_book book = { .id = "E8-256" };

/* CRC-32 with polynomial 0xEDB88320, bit by bit: once per program and book. */
uint32_t grq_pq_crc32(const int8_t vector[GRQ_PQ_ENTRIES][GRQ_PQ_DIM])
{
    uint32_t crc = 0xFFFFFFFFu;
    const uint8_t *const bytes = (const uint8_t *)vector;
    for (size_t i = 0; i < (size_t)GRQ_PQ_ENTRIES * GRQ_PQ_DIM; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void fill(void)
{
    int8_t(*v)[GRQ_PQ_DIM] = book.vector;
    uint32_t z = 0;
    for (uint32_t a = 0; a < GRQ_PQ_DIM; a++)
        for (uint32_t b = a + 1; b < GRQ_PQ_DIM; b++)
            for (uint32_t s = 0; s < 4; s++, z++) {
                v[z][a] = s & 1 ? -PAIR : PAIR;
                v[z][b] = s & 2 ? -PAIR : PAIR;
            }
    for (uint32_t t = 0; t < 128; t++, z++) { /* an even number of minus signs */
        for (uint32_t k = 0; k < 7; k++) v[z][k] = t >> k & 1 ? -HALF : HALF;
        v[z][7] = __builtin_parity(t) ? -HALF : HALF;
    }
    for (uint32_t s = 0; s < 16; s++, z++) v[z][s / 2] = s & 1 ? -AXIS : AXIS;
    book.crc32 = grq_pq_crc32(book.vector);
}

const grq_pq_book *grq_pq_book_e8(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    return &book;
}
