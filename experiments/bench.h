/* experiments/bench.h - the benchmarks behind `gaterq bench NAME`: each prints figures beside a bound of the same run.
 */
#ifndef GATERQ_BENCH_H
#define GATERQ_BENCH_H

#include <time.h>

#include "tool.h"

/* Rows per second from tables of `gib` GiB, beside random reads of the same memory; `seconds` per figure. */
grq_status bench_lookup(tool_context *tool, double seconds, double gib, grq_error *err);
/* Tokens per second of a whole memory layer of that width, beside its matrix products. */
grq_status bench_layer(tool_context *tool, double seconds, uint32_t width, grq_error *err);

/* Milliseconds to score 14,267 items by each rule, beside a plain search for the same answers. */
grq_status bench_score(tool_context *tool, double seconds, grq_error *err);

/* The paired tests of the paper's family of comparisons, beside a bootstrap item by item. */
grq_status bench_compare(tool_context *tool, grq_error *err);

/* Fills ids (n) with text-like ids below n_ids: words by Zipf's law, and half of the text in phrases that were there
 * before, which is what makes n-grams repeat. */
void bench_text(uint64_t seed, uint32_t n_ids, size_t n, int32_t *ids);

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The next number of threads to measure: 1, then all of them, then 0. */
static inline uint32_t bench_next_threads(const tool_context *tool, uint32_t n)
{
    return n == 0 ? 1 : n < tool->n_threads ? tool->n_threads : 0;
}

#endif
