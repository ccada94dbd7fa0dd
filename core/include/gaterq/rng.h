/* gaterq/rng.h - random numbers: numpy's SeedSequence and PCG64 (XSL-RR 128/64), bit for bit.
 *
 * Source: specs/deepseek-v41-engram.md section 6. The released hash multipliers are draws of this generator, so it
 * has to be numpy's; everything else of the project that is random uses it as well. */
#ifndef GATERQ_RNG_H
#define GATERQ_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t state_hi, state_lo; /* 128-bit state */
    uint64_t inc_hi, inc_lo;     /* 128-bit odd increment */
} grq_rng;

/* Same stream as numpy.random.default_rng(seed). */
void grq_rng_seed(grq_rng *rng, uint64_t seed);

/* An independent stream for one purpose ("corpus", "init", "random ordering"): SeedSequence entropy is the seed and a
 * 64-bit FNV-1a hash of `purpose`, as four 32-bit words. Adding a draw to one purpose never shifts another. */
void grq_rng_seed_for(grq_rng *rng, uint64_t seed, const char *purpose);

uint64_t grq_rng_next(grq_rng *rng);                  /* 64 uniform bits */
uint64_t grq_rng_below(grq_rng *rng, uint64_t bound); /* [0, bound), bound > 0; Lemire's 64-bit method, as numpy for
                                                         bounds above 2^32 (numpy's 32-bit path is not followed) */
double grq_rng_uniform(grq_rng *rng);                 /* [0, 1), 53 bits: (next >> 11) * 2^-53 */
double grq_rng_normal(grq_rng *rng);                  /* N(0, 1), polar method, no cached second value */
void grq_rng_shuffle(grq_rng *rng, void *items, size_t n_items, size_t item_bytes); /* Fisher-Yates, from the end */

#endif
