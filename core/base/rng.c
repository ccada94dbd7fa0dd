#include "gaterq/rng.h"

#include <math.h>
#include <string.h>

#include "base/seed_sequence.h"

typedef unsigned __int128 u128;

/* ---- SeedSequence (all arithmetic modulo 2^32) ----------------------------------------------------------------- */

/* The running constant changes between the xor and the product. */
static uint32_t seed_hash(uint32_t value, uint32_t *constant, uint32_t factor)
{
    value ^= *constant;
    *constant *= factor;
    value *= *constant;
    return value ^ value >> 16;
}

static uint32_t seed_mix(uint32_t x, uint32_t y)
{
    const uint32_t z = 0xCA01F9DDu * x - 0x4973F715u * y;
    return z ^ z >> 16;
}

void grq_seed_pool(const uint32_t entropy[GRQ_SEED_WORDS], uint32_t pool[GRQ_SEED_WORDS])
{
    uint32_t constant = 0x43B0D7E5u;
    for (unsigned i = 0; i < GRQ_SEED_WORDS; i++) pool[i] = seed_hash(entropy[i], &constant, 0x931E8875u);
    for (unsigned from = 0; from < GRQ_SEED_WORDS; from++)
        for (unsigned to = 0; to < GRQ_SEED_WORDS; to++)
            if (from != to) pool[to] = seed_mix(pool[to], seed_hash(pool[from], &constant, 0x931E8875u));
}

void grq_seed_generate(const uint32_t pool[GRQ_SEED_WORDS], uint32_t *words, size_t n_words)
{
    uint32_t constant = 0x8B51F9DDu;
    for (size_t i = 0; i < n_words; i++) words[i] = seed_hash(pool[i % GRQ_SEED_WORDS], &constant, 0x58F38DEDu);
}

/* ---- PCG64 XSL-RR ---------------------------------------------------------------------------------------------- */

static u128 join(uint64_t hi, uint64_t lo)
{
    return (u128)hi << 64 | lo;
}

static void step(grq_rng *rng)
{
    const u128 factor = join(0x2360ED051FC65DA4u, 0x4385DF649FCCF645u);
    const u128 state = join(rng->state_hi, rng->state_lo) * factor + join(rng->inc_hi, rng->inc_lo);
    rng->state_hi = (uint64_t)(state >> 64);
    rng->state_lo = (uint64_t)state;
}

static void seed_words(grq_rng *rng, const uint32_t entropy[GRQ_SEED_WORDS])
{
    uint32_t pool[GRQ_SEED_WORDS], w[8];
    grq_seed_pool(entropy, pool);
    grq_seed_generate(pool, w, 8);
    uint64_t q[4];
    for (unsigned k = 0; k < 4; k++) q[k] = w[2 * k] | (uint64_t)w[2 * k + 1] << 32;
    const u128 increment = join(q[2], q[3]) << 1 | 1;
    *rng = (grq_rng){ .inc_hi = (uint64_t)(increment >> 64), .inc_lo = (uint64_t)increment };
    step(rng);
    const u128 state = join(rng->state_hi, rng->state_lo) + join(q[0], q[1]);
    rng->state_hi = (uint64_t)(state >> 64);
    rng->state_lo = (uint64_t)state;
    step(rng);
}

void grq_rng_seed(grq_rng *rng, uint64_t seed)
{
    seed_words(rng, (const uint32_t[]){ (uint32_t)seed, (uint32_t)(seed >> 32), 0, 0 });
}

void grq_rng_seed_for(grq_rng *rng, uint64_t seed, const char *purpose)
{
    uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a */
    for (const char *p = purpose; *p; p++) hash = (hash ^ (unsigned char)*p) * 0x100000001B3u;
    seed_words(rng,
               (const uint32_t[]){ (uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)hash, (uint32_t)(hash >> 32) });
}

uint64_t grq_rng_next(grq_rng *rng)
{
    step(rng);
    const uint64_t folded = rng->state_hi ^ rng->state_lo;
    const unsigned turn = (unsigned)(rng->state_hi >> 58);
    return folded >> turn | folded << (-turn & 63);
}

/* ---- distributions --------------------------------------------------------------------------------------------- */

uint64_t grq_rng_below(grq_rng *rng, uint64_t bound)
{
    u128 product = (u128)grq_rng_next(rng) * bound;
    if ((uint64_t)product < bound) { /* only then can the draw lie in the part that would favour small values */
        const uint64_t reject = -bound % bound; /* 2^64 mod bound */
        while ((uint64_t)product < reject) product = (u128)grq_rng_next(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

double grq_rng_uniform(grq_rng *rng)
{
    return (double)(grq_rng_next(rng) >> 11) * 0x1p-53;
}

double grq_rng_normal(grq_rng *rng)
{
    for (;;) {
        const double x = 2 * grq_rng_uniform(rng) - 1, y = 2 * grq_rng_uniform(rng) - 1;
        const double r2 = x * x + y * y;
        if (r2 > 0 && r2 < 1) return x * sqrt(-2 * log(r2) / r2);
    }
}

static void swap_bytes(unsigned char *a, unsigned char *b, size_t n_bytes)
{
    unsigned char held[64];
    while (n_bytes > 0) {
        const size_t n = n_bytes < sizeof held ? n_bytes : sizeof held;
        memcpy(held, a, n);
        memcpy(a, b, n);
        memcpy(b, held, n);
        a += n;
        b += n;
        n_bytes -= n;
    }
}

void grq_rng_shuffle(grq_rng *rng, void *items, size_t n_items, size_t item_bytes)
{
    unsigned char *const base = items;
    for (size_t i = n_items; i-- > 1;) {
        const size_t j = (size_t)grq_rng_below(rng, (uint64_t)i + 1);
        if (i != j) swap_bytes(base + i * item_bytes, base + j * item_bytes, item_bytes);
    }
}
