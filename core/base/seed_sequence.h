/* base/seed_sequence.h - numpy's SeedSequence for up to four words of entropy; behind grq_rng_seed, and for tests. */
#ifndef GATERQ_BASE_SEED_SEQUENCE_H
#define GATERQ_BASE_SEED_SEQUENCE_H

#include <stddef.h>
#include <stdint.h>

enum { GRQ_SEED_WORDS = 4 };

/* The pool after mixing. Missing words count as 0, as in numpy, so a 32-bit seed is (seed, 0, 0, 0). */
void grq_seed_pool(const uint32_t entropy[GRQ_SEED_WORDS], uint32_t pool[GRQ_SEED_WORDS]);
/* SeedSequence.generate_state(n_words, uint32). */
void grq_seed_generate(const uint32_t pool[GRQ_SEED_WORDS], uint32_t *words, size_t n_words);

#endif
