/* gaterq/pq_book.h - books of the product quantiser: 256 vectors of eight values, one for all stages.
 *
 * The built-in book (240 shortest vectors of the E8 lattice and 16 axis vectors) suits rows that look Gaussian, and no
 * book trained on such rows has been better. Rows with heavy tails may gain by a trained one, which their coded file
 * then carries. Source: specs/encoders.md section 3. */
#ifndef GATERQ_PQ_BOOK_H
#define GATERQ_PQ_BOOK_H

#include <stdint.h>

#include "gaterq/codec.h"
#include "gaterq/table.h"

enum { GRQ_PQ_DIM = 8, GRQ_PQ_ENTRIES = 256 };

typedef struct {
    char id[16];                               /* "E8-256", "trained" */
    uint32_t crc32;                            /* of the 2048 bytes */
    int8_t vector[GRQ_PQ_ENTRIES][GRQ_PQ_DIM]; /* in 1/32 of a row's scale; -127 at least */
} grq_pq_book;

/* Lloyd's iterations from the built-in book over `n_sample` rows drawn with `seed` (all when the table has no more),
 * over what each of `n_stages` stages has to code. `weights` (rows of the table), non-negative, say how much a row's
 * errors count; NULL: all the same. Same bytes for any n_threads. */
grq_status grq_pq_train(const grq_table *table, uint64_t n_sample, const double *weights, uint32_t n_stages,
                        uint64_t seed, uint32_t n_threads, const grq_progress *progress, grq_pq_book *out,
                        grq_error *err);

/* An encoder like "pq" with this book. The caller frees it with grq_pq_encoder_free, after all codes made by it. */
grq_status grq_pq_encoder_new(const grq_pq_book *book, grq_encoder **out, grq_error *err);
void grq_pq_encoder_free(grq_encoder *encoder); /* takes NULL */

/* The book of codes made by pq; NULL for other encoders. */
const grq_pq_book *grq_codes_book(const grq_codes *codes);

#endif
