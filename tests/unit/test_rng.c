/* numpy's generator, bit for bit. Further draws of the released seeds are in tests/golden/test_hash_golden.c. */
#include "support.h"

#include "gaterq/rng.h"

/* numpy 1.24: default_rng(seed).bit_generator.random_raw(3), and default_rng(seed).random(). */
static void seeds_give_numpys_streams(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed, raw[3];
        double uniform;
    } cases[] = {
#include "unit/numpy_streams.inc"
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        grq_rng rng;
        grq_rng_seed(&rng, cases[i].seed);
        for (size_t k = 0; k < 3; k++)
            if (grq_rng_next(&rng) != cases[i].raw[k]) fail_msg("seed %" PRIu64 ", draw %zu", cases[i].seed, k);
        grq_rng_seed(&rng, cases[i].seed);
        assert_true(grq_rng_uniform(&rng) == cases[i].uniform);
    }
}

static void purposes_are_independent(void **state)
{
    (void)state;
    grq_rng a, b, c;
    grq_rng_seed_for(&a, 7, "corpus");
    grq_rng_seed_for(&b, 7, "windows");
    grq_rng_seed_for(&c, 7, "corpus");
    const uint64_t x = grq_rng_next(&a), y = grq_rng_next(&b), z = grq_rng_next(&c);
    assert_true(x != y);
    assert_true(x == z);
}

static void draws_have_their_moments(void **state)
{
    (void)state;
    enum { N = 200000 };
    grq_rng rng;
    double sum = 0, squares = 0, uniform = 0;
    uint64_t counts[7] = { 0 };
    grq_rng_seed(&rng, 11);
    for (int i = 0; i < N; i++) {
        const double x = grq_rng_normal(&rng);
        sum += x;
        squares += x * x;
        uniform += grq_rng_uniform(&rng);
        counts[grq_rng_below(&rng, 7)]++;
    }
    assert_true(fabs(sum / N) < 0.01);
    assert_true(fabs(squares / N - 1) < 0.015);
    assert_true(fabs(uniform / N - 0.5) < 0.003);
    for (int k = 0; k < 7; k++) assert_true(fabs((double)counts[k] / N - 1.0 / 7) < 0.004);
}

static void a_shuffle_is_a_permutation(void **state)
{
    (void)state;
    uint32_t items[100], seen[100] = { 0 };
    grq_rng rng;
    for (uint32_t i = 0; i < 100; i++) items[i] = i;
    grq_rng_seed(&rng, 3);
    grq_rng_shuffle(&rng, items, 100, sizeof *items);
    size_t moved = 0;
    for (uint32_t i = 0; i < 100; i++) {
        seen[items[i]]++;
        moved += items[i] != i;
    }
    for (uint32_t i = 0; i < 100; i++) assert_int_equal(seen[i], 1);
    assert_true(moved > 80);
    grq_rng_shuffle(&rng, items, 0, sizeof *items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_give_numpys_streams),
        cmocka_unit_test(purposes_are_independent),
        cmocka_unit_test(draws_have_their_moments),
        cmocka_unit_test(a_shuffle_is_a_permutation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
