/* experiments/seeds.h - one seed, several texts that never meet.
 *
 * The text a model is trained on, the text that row counts come from and the text that is traced are drawn from the
 * same world with different corpus seeds, so that frequencies and priors are never taken from what is evaluated. */
#ifndef GATERQ_SEEDS_H
#define GATERQ_SEEDS_H

#include <stdint.h>

static inline uint64_t seed_of_training_text(uint64_t seed)
{
    return seed;
}

static inline uint64_t seed_of_counting_text(uint64_t seed)
{
    return 1000003 + seed;
}

static inline uint64_t seed_of_trace_text(uint64_t seed)
{
    return 2000003 + seed;
}

#endif
