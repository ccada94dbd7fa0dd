/* The original Engram: constants and rows against engram_hash.json, and its layer with biases and the short convolution
 * against the binary64 numbers of engram_gate.json. */
#include "layer_support.h"

#include "gaterq/blas.h"
#include "gaterq/hash.h"

static grq_json *hashes, *gates;
static grq_geometry released;

static int open_golden(void **state)
{
    (void)state;
    grq_error err = { 0 };
    hashes = test_golden("engram_hash.json");
    gates = test_golden("engram_gate.json");
    assert_ok(grq_blas_init(&err), &err);
    assert_ok(grq_geometry_family("engram-v1", &released, &err), &err);
    return 0;
}

static int close_golden(void **state)
{
    (void)state;
    grq_json_close(hashes);
    grq_json_close(gates);
    return 0;
}

static void check_u64s(const char *what, grq_json_node *list, const uint64_t *values, size_t n)
{
    assert_int_equal(grq_json_count(list), n);
    for (size_t i = 0; i < n; i++)
        if (values[i] != test_u64(grq_json_at(list, i)))
            fail_msg("%s[%zu] is %" PRIu64 " instead of %" PRIu64, what, i, values[i], test_u64(grq_json_at(list, i)));
}

static void the_demo_constants_follow(void **state)
{
    (void)state;
    grq_json_node *const demo = test_walk(grq_json_root(hashes), "original_demo");
    assert_true(released.n_ids == test_u64(test_walk(demo, "compressed_vocab_size")));
    assert_true(released.pad_id == test_i64(test_walk(demo, "pad_compressed_id")));
    for (uint32_t l = 0; l < released.n_layers; l++) {
        char path[32];
        snprintf(path, sizeof path, "layers.%u", released.layer_ids[l]);
        grq_json_node *const layer = test_walk(demo, path);
        check_u64s("multipliers", test_walk(layer, "multipliers"), released.multipliers[l], released.max_order);
        check_u64s("primes", test_walk(layer, "primes_flat_col_order"), released.primes[l], released.n_columns);
        check_u64s("offsets", test_walk(layer, "offsets_flat_col_order"), released.offsets[l], released.n_columns);
        assert_true(released.n_rows[l] == test_u64(test_walk(layer, "sum_of_primes")));
    }
}

static void every_sequence(void **state)
{
    (void)state;
    grq_json_node *const sequences = test_walk(grq_json_root(hashes), "original_demo.sequences");
    assert_int_equal(grq_json_count(sequences), 3);
    for (size_t s = 0; s < grq_json_count(sequences); s++)
        for (uint32_t l = 0; l < released.n_layers; l++) {
            grq_json_node *const one = grq_json_at(sequences, s), *const list = test_walk(one, "compressed_ids");
            int32_t ids[64];
            int64_t rows[64 * GRQ_MAX_COLUMNS];
            char path[32];
            const size_t n = grq_json_count(list);
            assert_true(n <= ARRAY_LEN(ids));
            for (size_t i = 0; i < n; i++) ids[i] = (int32_t)test_i64(grq_json_at(list, i));
            grq_hash_state hash;
            grq_error err = { 0 };
            grq_hash_start(&hash);
            assert_ok(grq_hash_rows(&released, l, &hash, ids, n, rows, &err), &err);
            snprintf(path, sizeof path, "rows.%u", released.layer_ids[l]);
            for (size_t p = 0; p < n; p++)
                for (uint32_t c = 0; c < released.n_columns; c++) {
                    const int64_t want = test_i64(grq_json_at(grq_json_at(test_walk(one, path), p), c));
                    if (rows[p * released.n_columns + c] != want)
                        fail_msg("%s, layer %u, position %zu, column %u: %" PRId64 " instead of %" PRId64,
                                 test_string(test_walk(one, "name")), released.layer_ids[l], p, c,
                                 rows[p * released.n_columns + c], want);
                }
        }
}

static void no_placeholders(void **state)
{
    (void)state;
    int64_t rows[GRQ_MAX_COLUMNS];
    grq_hash_state hash;
    grq_error err = { 0 };
    grq_hash_start(&hash);
    assert_refused(grq_hash_rows(&released, 0, &hash, (const int32_t[]){ -1 }, 1, rows, &err), GRQ_E_USAGE, &err,
                   "position 0: id -1");
}

enum { N_TOKENS = 12, WIDTH = 4, BRANCHES = 2, CHANNELS = WIDTH * BRANCHES, TAPS = 4, IN = 8 };

/* The golden look-ups e (12, 8) are random, not hashed: each position's 2-gram and 3-gram row is put where the hash of
 * its id points, which works because all ids differ and no two rows collide. */
static void golden_table(const grq_geometry *g, grq_json_node *golden, const int32_t *ids, float *table)
{
    float *const e = test_floats(test_walk(golden, "e_concat"), N_TOKENS * IN);
    int64_t rows[N_TOKENS * 2];
    grq_hash_state hash;
    grq_error err = { 0 };
    grq_hash_start(&hash);
    assert_ok(grq_hash_rows(g, 0, &hash, ids, N_TOKENS, rows, &err), &err);
    for (size_t i = 0; i < 2 * N_TOKENS; i++)
        for (size_t j = 0; j < i; j++) assert_true(rows[i] != rows[j]);
    for (size_t i = 0; i < 2 * N_TOKENS; i++)
        memcpy(table + rows[i] * g->row_dim, e + i * g->row_dim, g->row_dim * sizeof *table);
    free(e);
}

static void the_layer(void **state)
{
    (void)state;
    grq_json_node *const golden = test_walk(grq_json_root(gates), "original_float64");
    test_layer l = { 0 };
    l.geometry = (grq_geometry){ .family = "small",
                                 .n_layers = 1,
                                 .layer_ids = { 1 },
                                 .min_order = 2,
                                 .max_order = 3,
                                 .n_heads = 1,
                                 .row_dim = IN / 2,
                                 .width = WIDTH,
                                 .n_branches = BRANCHES,
                                 .prime_start = 5000,
                                 .n_ids = 100,
                                 .multiplier_seed = 10007,
                                 .norm_eps = 1.1920928955078125e-07,
                                 .gate_clamp = 1e-6,
                                 .text_only = true,
                                 .bias = true,
                                 .zero_rule = GRQ_ZERO_HALF,
                                 .conv_kernel = TAPS,
                                 .conv_dilation = 3,
                                 .conv_eps = 1e-5 };
    grq_error err = { 0 };
    assert_ok(grq_geometry_derive(&l.geometry, &err), &err);
    int32_t ids[N_TOKENS];
    for (int32_t i = 0; i < N_TOKENS; i++) ids[i] = i + 1;
    float **o = l.owned;
    o[0] = calloc(l.geometry.n_rows[0] * l.geometry.row_dim, sizeof **o);
    golden_table(&l.geometry, golden, ids, o[0]);
    o[1] = test_floats(test_walk(golden, "key_proj_weight"), CHANNELS * IN);
    o[2] = test_floats(test_walk(golden, "value_proj_weight"), WIDTH * IN);
    o[3] = test_floats(test_walk(golden, "norm2_query_weight"), CHANNELS);
    o[4] = test_floats(test_walk(golden, "norm1_key_weight"), CHANNELS);
    o[5] = test_floats(test_walk(golden, "conv_norm_weight"), CHANNELS);
    o[6] = test_floats(test_walk(golden, "key_proj_bias"), CHANNELS);
    o[7] = test_floats(test_walk(golden, "value_proj_bias"), WIDTH);
    float *const taps = test_floats(test_walk(golden, "conv_weight_channel_tap_oldest_first"), CHANNELS * TAPS);
    o[8] = test_transposed(taps, CHANNELS, TAPS);
    free(taps);
    l.view = (grq_memory_layer){ .geometry = &l.geometry,
                                 .key_weight = o[1],
                                 .value_weight = o[2],
                                 .query_gain = o[3],
                                 .key_gain = o[4],
                                 .key_bias = o[6],
                                 .value_bias = o[7],
                                 .conv_gain = o[5],
                                 .conv_weight = o[8] };
    l.table = test_table(o[0], l.geometry.n_rows[0], l.geometry.row_dim);
    double wanted[N_TOKENS * CHANNELS], wanted_gates[N_TOKENS * BRANCHES];
    test_numbers(test_walk(golden, "h_out"), wanted, ARRAY_LEN(wanted));
    test_numbers(test_walk(golden, "gates"), wanted_gates, ARRAY_LEN(wanted_gates));
    for (grq_numerics numerics = GRQ_NUMERICS_REFERENCE; numerics <= GRQ_NUMERICS_FP32; numerics++) {
        float *const h = test_floats(test_walk(golden, "h_in"), N_TOKENS * CHANNELS);
        float gate[N_TOKENS * BRANCHES];
        grq_layer_state *past = NULL;
        assert_ok(grq_layer_state_new(&l.geometry, 0, &past, &err), &err);
        const grq_forward_options options = { .numerics = numerics };
        const grq_segment segment = { past, N_TOKENS };
        assert_ok(grq_layer_forward(&l.view, l.table, &options, 1, &segment, ids, h, gate, &err), &err);
        /* Sums of 8 and 4 terms of order 1, in binary32: a few units of 2^-23. */
        for (size_t i = 0; i < N_TOKENS * CHANNELS; i++)
            if (fabs(h[i] - wanted[i]) > 2e-6)
                fail_msg("numerics %d, token %zu, channel %zu: %.9g instead of %.9g", (int)numerics, i / CHANNELS,
                         i % CHANNELS, (double)h[i], wanted[i]);
        for (size_t i = 0; i < N_TOKENS * BRANCHES; i++)
            if (fabs(gate[i] - wanted_gates[i]) > 1e-6)
                fail_msg("numerics %d, token %zu, branch %zu: gate %.9g instead of %.9g", (int)numerics, i / BRANCHES,
                         i % BRANCHES, (double)gate[i], wanted_gates[i]);
        grq_layer_state_free(past);
        free(h);
    }
    test_layer_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_demo_constants_follow),
        cmocka_unit_test(every_sequence),
        cmocka_unit_test(no_placeholders),
        cmocka_unit_test(the_layer),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
