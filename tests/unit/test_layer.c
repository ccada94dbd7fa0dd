/* The memory layer's own arithmetic: bits of the gates, what a NaN becomes, injection, gains and energies. Values
 * against published ones are in tests/golden/test_gate_golden.c. */
#include "support.h"

#include "gaterq/blas.h"
#include "gaterq/layer.h"
#include "gaterq/rng.h"
#include "shared/gate.h"
#include "shared/simd.h"

static grq_rng rng;

static grq_geometry geometry_of(uint32_t width, uint32_t n_branches, uint32_t n_columns, uint32_t row_dim)
{
    return (grq_geometry){ .width = width,
                           .n_branches = n_branches,
                           .n_columns = n_columns,
                           .row_dim = row_dim,
                           .row_values = n_columns * row_dim,
                           .norm_eps = 1e-20,
                           .gate_clamp = 1e-6 };
}

static float *normal_values(size_t n)
{
    float *const x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = (float)grq_rng_normal(&rng);
    return x;
}

/* ---- gates ---- */

/* Element j goes to lane j mod 16, lanes are folded by halves: the order of summation, without a vector in sight. */
__attribute__((optimize("no-tree-vectorize"), noinline)) static float plain_sum(uint32_t n, const float *terms)
{
    float lane[GRQ_LANES] = { 0 };
    for (uint32_t j = 0; j < n; j++) lane[j % GRQ_LANES] += terms[j];
    for (uint32_t w = GRQ_LANES / 2; w > 0; w /= 2)
        for (uint32_t l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

static float plain_gate(uint32_t d, const float *h, const float *key, const float *query_gain, const float *key_gain,
                        float *terms)
{
    float sums[3];
    for (uint32_t j = 0; j < d; j++) terms[j] = h[j] * h[j];
    sums[0] = plain_sum(d, terms);
    for (uint32_t j = 0; j < d; j++) terms[j] = key[j] * key[j];
    sums[1] = plain_sum(d, terms);
    for (uint32_t j = 0; j < d; j++) terms[j] = h[j] * (query_gain[j] * key_gain[j]) * key[j];
    sums[2] = plain_sum(d, terms);
    const float s = sums[2] * ((1 / sqrtf(sums[0] / (float)d + 1e-20f)) * (1 / sqrtf(sums[1] / (float)d + 1e-20f))) *
                    (1 / sqrtf((float)d));
    const float root = sqrtf(fmaxf(fabsf(s), 1e-6f));
    return 1 / (1 + grq_expf(signbit(s) ? root : -root));
}

static void vectors_have_the_plain_bits(void **state)
{
    (void)state;
    enum { MAX_WIDTH = 5120, BRANCHES = 3, TOKENS = 5 };
    for (int round = 0; round < 120; round++) {
        const uint32_t d = round == 0 ? MAX_WIDTH : 1 + (uint32_t)grq_rng_below(&rng, 200);
        const grq_geometry g = geometry_of(d, BRANCHES, 1, 1);
        float *const h = normal_values(TOKENS * BRANCHES * d), *const keys = normal_values(TOKENS * BRANCHES * d);
        float *const query_gain = normal_values(BRANCHES * d), *const key_gain = normal_values(BRANCHES * d);
        float *const terms = normal_values(d), gates[TOKENS * BRANCHES];
        const grq_memory_layer layer = { .geometry = &g, .query_gain = query_gain, .key_gain = key_gain };
        memset(keys, 0, d * sizeof *keys); /* a look-up of zeros */
        grq_layer_gates(&layer, TOKENS, h, keys, NULL, gates);
        for (size_t i = 0; i < TOKENS * BRANCHES; i++) {
            const size_t m = i % BRANCHES;
            const float want = plain_gate(d, h + i * d, keys + i * d, query_gain + m * d, key_gain + m * d, terms);
            if (memcmp(&want, &gates[i], sizeof want))
                fail_msg("round %d, width %u, gate %zu: %a instead of %a", round, d, i, (double)gates[i], (double)want);
        }
        free(h);
        free(keys);
        free(query_gain);
        free(key_gain);
        free(terms);
    }
}

/* A broken stream or key must not look like a gate near 1/2: nothing after it could tell. */
static void what_is_no_number_gives_no_gate(void **state)
{
    (void)state;
    enum { D = 20 };
    static const float bad[] = { NAN, -NAN, HUGE_VALF, -HUGE_VALF };
    const grq_geometry g = geometry_of(D, 1, 1, 1);
    float ones[D], x[D], gates[1];
    for (int j = 0; j < D; j++) ones[j] = 1;
    const grq_memory_layer layer = { .geometry = &g, .query_gain = ones, .key_gain = ones };
    for (size_t k = 0; k < ARRAY_LEN(bad); k++)
        for (int j = 0; j < D; j++) {
            memcpy(x, ones, sizeof x);
            x[j] = bad[k];
            grq_layer_gates(&layer, 1, x, ones, NULL, gates);
            if (!isnan(gates[0])) fail_msg("%g in stream place %d: gate %g", (double)bad[k], j, (double)gates[0]);
            grq_layer_gates(&layer, 1, ones, x, NULL, gates);
            if (!isnan(gates[0])) fail_msg("%g in key place %d: gate %g", (double)bad[k], j, (double)gates[0]);
            grq_layer_gates(&layer, 1, x, x, (const uint8_t[]){ 1 }, gates);
            assert_true(gates[0] == 0); /* a position that is not text, whatever its stream holds */
        }
    assert_true(isnan(grq_gate_of_score_f32(NAN, 1e-6f)) && isnan(grq_gate_of_score_f64(NAN, 1e-6)));
}

static void signs_and_the_clamp(void **state)
{
    (void)state;
    const double high = 1 / (1 + exp(-1e-3)), low = 1 / (1 + exp(1e-3)); /* r = +-sqrt(1e-6) */
    const double scores[] = { 0, 1e-30, 1e-7, 1e-6 };
    for (size_t i = 0; i < ARRAY_LEN(scores); i++) {
        assert_true(fabs(grq_gate_of_score_f64(scores[i], 1e-6) - high) < 1e-15);
        assert_true(fabs(grq_gate_of_score_f64(-scores[i], 1e-6) - low) < 1e-15); /* -0 counts as negative */
        assert_true(fabs((double)grq_gate_of_score_f32((float)scores[i], 1e-6f) - high) < 1e-7);
        assert_true(fabs((double)grq_gate_of_score_f32(-(float)scores[i], 1e-6f) - low) < 1e-7);
    }
    assert_true(grq_gate_of_score_f64(4, 1e-6) == 1 / (1 + exp(-2.0)));
    assert_true(grq_gate_of_score_f32(HUGE_VALF, 1e-6f) == 1 && grq_gate_of_score_f32(-HUGE_VALF, 1e-6f) == 0);
}

/* ---- injection, energies, gains ---- */

static void the_product_is_rounded_before_the_sum(void **state)
{
    (void)state;
    enum { D = 37 };
    const grq_geometry g = geometry_of(D, 2, 1, 1);
    const grq_memory_layer layer = { .geometry = &g };
    const float gates[2] = { 1 - 0x1p-12f, 0 };
    float values[D], h[2 * D];
    for (int j = 0; j < D; j++) {
        values[j] = 1 + 0x1p-12f;
        h[j] = -1;
        h[D + j] = -0.0f;
    }
    values[6] += 0x1p-23f; /* its product needs 36 bits: fused, h would keep what rounding drops */
    grq_layer_inject(&layer, 1, gates, values, h);
    for (int j = 0; j < D; j++) {
        volatile float product = gates[0] * values[j];
        const float want = product - 1;
        if (memcmp(&h[j], &want, sizeof want)) fail_msg("value %d: %a instead of %a", j, (double)h[j], (double)want);
        if (!signbit(h[D + j]) || h[D + j] != 0) fail_msg("value %d: a gate of 0 changed -0", j);
    }
    assert_true((double)h[6] != (double)gates[0] * (double)values[6] - 1);
}

static void gate_energy_is_the_sum_of_squares(void **state)
{
    (void)state;
    const float gates[] = { 0.5f, 0.25f, 0, 1, 1, 1 };
    float energy[2];
    grq_gate_energy(2, 3, gates, energy);
    assert_true(energy[0] == 0.3125f && energy[1] == 3);
}

static void rows_are_concatenated_in_column_order(void **state)
{
    (void)state;
    const grq_geometry g = geometry_of(1, 1, 3, 2);
    const float table[] = { 0, 1, 10, 11, 20, 21, 30, 31 };
    const grq_memory_layer layer = { .geometry = &g, .table = table };
    const int64_t rows[] = { 2, 0, 3, 1, 1, 0 };
    const float want[] = { 20, 21, 0, 1, 30, 31, 10, 11, 10, 11, 0, 1 };
    float e[12];
    grq_layer_fetch(&layer, 2, rows, e);
    assert_memory_equal(e, want, sizeof e);
}

/* tau is what it is used for: the mean, over the directions of a row, of what an error of size 1 does to the value. */
static void tau_is_the_mean_amplification(void **state)
{
    (void)state;
    enum { D = 19, COLUMNS = 3, DIM = 5, WIDE = COLUMNS * DIM };
    const grq_geometry g = geometry_of(D, 1, COLUMNS, DIM);
    float *const weight = normal_values(D * WIDE), e[WIDE * WIDE] = { 0 }, values[WIDE * D];
    const grq_memory_layer layer = { .geometry = &g, .value_weight = weight };
    double tau[COLUMNS], want[COLUMNS] = { 0 };
    grq_error err = { 0 };
    assert_ok(grq_blas_init(&err), &err);
    for (int i = 0; i < WIDE; i++) e[i * WIDE + i] = 1; /* one direction a token */
    grq_layer_values(&layer, WIDE, e, values);
    for (int i = 0; i < WIDE * D; i++) want[i / D / DIM] += (double)values[i] * (double)values[i] / DIM;
    grq_layer_tau(&layer, tau);
    for (int c = 0; c < COLUMNS; c++)
        if (fabs(tau[c] - want[c]) > 1e-12 * want[c])
            fail_msg("column %d: tau %.17g instead of %.17g", c, tau[c], want[c]);
    free(weight);
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_have_the_plain_bits),
        cmocka_unit_test(what_is_no_number_gives_no_gate),
        cmocka_unit_test(signs_and_the_clamp),
        cmocka_unit_test(the_product_is_rounded_before_the_sum),
        cmocka_unit_test(gate_energy_is_the_sum_of_squares),
        cmocka_unit_test(rows_are_concatenated_in_column_order),
        cmocka_unit_test(tau_is_the_mean_amplification),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
