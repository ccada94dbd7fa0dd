/* Ids that repeat as those of a text do, for the benchmarks. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "gaterq/rng.h"

enum { SHORTEST_PHRASE = 3, LONGEST_PHRASE = 10 };

/* Zipf with exponent 1: the rank's logarithm is uniform. */
static int32_t draw_word(grq_rng *rng, uint32_t n_ids)
{
    const double rank = exp(grq_rng_uniform(rng) * log((double)n_ids + 1));
    return (int32_t)(rank >= n_ids ? n_ids - 1 : rank - 1);
}

void bench_text(uint64_t seed, uint32_t n_ids, size_t n, int32_t *ids)
{
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "bench text");
    for (size_t i = 0; i < n;) {
        const size_t length = SHORTEST_PHRASE + grq_rng_below(&rng, LONGEST_PHRASE - SHORTEST_PHRASE + 1);
        const bool repeats = i > length && grq_rng_below(&rng, 8) == 0; /* 1 of 8, times 6.5 ids: about half */
        if (!repeats) {
            ids[i++] = draw_word(&rng, n_ids);
            continue;
        }
        const size_t from = grq_rng_below(&rng, i - length);
        for (size_t j = 0; j < length && i < n; j++) ids[i++] = ids[from + j];
    }
}
