/* The hash on random geometries: against a direct reading of the definition, in any chunks, after rewinding, and with
 * positions that are not text. */
#include "support.h"

#include "gaterq/hash.h"
#include "gaterq/rng.h"

enum { N_ROUNDS = 60, MAX_IDS = 80 };

static grq_rng rng;

static uint32_t between(uint32_t low, uint32_t high)
{
    return low + (uint32_t)grq_rng_below(&rng, high - low + 1);
}

static grq_geometry random_geometry(void)
{
    grq_geometry g = {
        .family = "random", .row_dim = 8, .width = 16, .n_branches = 2, .norm_eps = 1e-20, .gate_clamp = 1e-6
    };
    g.n_layers = between(1, 3);
    for (uint32_t l = 0; l < g.n_layers; l++) g.layer_ids[l] = (l ? g.layer_ids[l - 1] + 1 : 0) + between(0, 9);
    g.min_order = between(2, 4);
    g.max_order = between(g.min_order, GRQ_MAX_ORDER);
    g.n_heads = between(1, GRQ_MAX_COLUMNS / (g.max_order - g.min_order + 1));
    g.prime_start = between(2, 5000);
    g.n_ids = grq_rng_below(&rng, 4) ? between(1, 3000) : between(1, INT32_MAX);
    g.pad_id = (int32_t)grq_rng_below(&rng, g.n_ids);
    g.multiplier_seed = between(0, 20000);
    grq_error err = { 0 };
    assert_ok(grq_geometry_derive(&g, &err), &err);
    return g;
}

static size_t random_ids(const grq_geometry *g, int32_t *ids)
{
    const size_t n = between(1, MAX_IDS);
    const bool largest = grq_rng_below(&rng, 5) == 0;
    for (size_t p = 0; p < n; p++) {
        ids[p] = largest ? (int32_t)(g->n_ids - 1) : (int32_t)grq_rng_below(&rng, g->n_ids);
        if (grq_rng_below(&rng, 6) == 0) ids[p] = GRQ_DEAD;
    }
    return n;
}

/* Section 7 of the specification, one position at a time and with 128-bit products. */
static int64_t row_by_definition(const grq_geometry *g, uint32_t layer, const int32_t *ids, size_t p, uint32_t column)
{
    const uint32_t order = g->min_order + column / g->n_heads;
    unsigned __int128 mix = 0;
    bool blocked = false;
    for (uint32_t i = 0; i < order; i++) {
        blocked = blocked || p < i || ids[p - i] == GRQ_DEAD;
        const uint64_t t = (uint64_t)(blocked ? g->pad_id : ids[p - i]);
        mix ^= (unsigned __int128)t * g->multipliers[layer][i];
    }
    assert_true(mix >> 63 == 0); /* so that signed and unsigned 64-bit arithmetic agree */
    return (int64_t)(g->offsets[layer][column] + (uint64_t)(mix % g->primes[layer][column]));
}

static void hash_all(const grq_geometry *g, uint32_t layer, const int32_t *ids, size_t n, int64_t *rows)
{
    grq_error err = { 0 };
    grq_hash_state state;
    grq_hash_start(&state);
    assert_ok(grq_hash_rows(g, layer, &state, ids, n, rows, &err), &err);
}

static void matches_the_definition(void **state)
{
    (void)state;
    static int64_t rows[MAX_IDS * GRQ_MAX_COLUMNS];
    for (int round = 0; round < N_ROUNDS; round++) {
        const grq_geometry g = random_geometry();
        int32_t ids[MAX_IDS];
        const size_t n = random_ids(&g, ids);
        for (uint32_t l = 0; l < g.n_layers; l++) {
            hash_all(&g, l, ids, n, rows);
            for (size_t i = 0; i < n * g.n_columns; i++) {
                const uint32_t c = (uint32_t)(i % g.n_columns);
                const int64_t want = row_by_definition(&g, l, ids, i / g.n_columns, c);
                if (rows[i] != want)
                    fail_msg("round %d, layer %u, position %zu, column %u: %" PRId64 " instead of %" PRId64, round, l,
                             i / g.n_columns, c, rows[i], want);
                if (rows[i] < (int64_t)g.offsets[l][c] || (uint64_t)rows[i] >= g.offsets[l][c] + g.primes[l][c])
                    fail_msg("round %d: row %" PRId64 " is not in column %u's part of the table", round, rows[i], c);
            }
        }
    }
}

static void chunks_make_no_difference(void **state)
{
    (void)state;
    static int64_t whole[MAX_IDS * GRQ_MAX_COLUMNS], parts[MAX_IDS * GRQ_MAX_COLUMNS];
    for (int round = 0; round < N_ROUNDS; round++) {
        const grq_geometry g = random_geometry();
        int32_t ids[MAX_IDS];
        const size_t n = random_ids(&g, ids);
        const uint32_t l = (uint32_t)grq_rng_below(&rng, g.n_layers);
        hash_all(&g, l, ids, n, whole);
        memset(parts, 0xFF, sizeof parts);
        grq_error err = { 0 };
        grq_hash_state hash;
        grq_hash_start(&hash);
        for (size_t p = 0; p < n;) {
            const size_t step = grq_rng_below(&rng, n - p + 1); /* 0 is a chunk too */
            const grq_hash_state saved = hash;
            assert_ok(grq_hash_rows(&g, l, &hash, ids + p, step, parts + p * g.n_columns, &err), &err);
            if (grq_rng_below(&rng, 3) == 0) { /* rewind, and read something else before reading it again */
                const int32_t other = 0;
                int64_t scratch[GRQ_MAX_COLUMNS];
                hash = saved;
                assert_ok(grq_hash_rows(&g, l, &hash, &other, 1, scratch, &err), &err);
                hash = saved;
                continue;
            }
            p += step;
        }
        for (size_t i = 0; i < n * g.n_columns; i++)
            if (whole[i] != parts[i])
                fail_msg("round %d, position %zu, column %zu: %" PRId64 " whole, %" PRId64 " in chunks", round,
                         i / g.n_columns, i % g.n_columns, whole[i], parts[i]);
    }
}

/* Changing one id changes nothing before it and nothing from max_order positions on; a column of order n is the same
 * again n positions later. */
static void an_id_reaches_no_further_than_its_order(void **state)
{
    (void)state;
    static int64_t before[MAX_IDS * GRQ_MAX_COLUMNS], after[MAX_IDS * GRQ_MAX_COLUMNS];
    for (int round = 0; round < N_ROUNDS; round++) {
        const grq_geometry g = random_geometry();
        int32_t ids[MAX_IDS];
        const size_t n = random_ids(&g, ids), changed = grq_rng_below(&rng, n);
        const uint32_t l = (uint32_t)grq_rng_below(&rng, g.n_layers);
        hash_all(&g, l, ids, n, before);
        ids[changed] = ids[changed] == GRQ_DEAD ? 0 : GRQ_DEAD;
        hash_all(&g, l, ids, n, after);
        for (size_t i = 0; i < n * g.n_columns; i++) {
            const size_t p = i / g.n_columns;
            const uint32_t order = grq_geometry_column_order(&g, (uint32_t)(i % g.n_columns));
            if (before[i] != after[i] && (p < changed || p >= changed + order))
                fail_msg("round %d: id %zu of %zu changed a row of order %u at position %zu", round, changed, n, order,
                         p);
        }
    }
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_the_definition),
        cmocka_unit_test(chunks_make_no_difference),
        cmocka_unit_test(an_id_reaches_no_further_than_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
