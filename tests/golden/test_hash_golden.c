/* DeepSeek-V4.1's hash: generator, multipliers, primes, offsets and rows against engram_hash.json, whose fixtures are
 * digests of the official code's output. */
#include "support.h"

#include "base/seed_sequence.h"
#include "gaterq/digest.h"
#include "gaterq/hash.h"
#include "gaterq/rng.h"

static grq_json *document;
static grq_geometry geometry;

static int open_golden(void **state)
{
    (void)state;
    grq_error err = { 0 };
    document = test_golden("engram_hash.json");
    assert_ok(grq_geometry_family("deepseek-v41", &geometry, &err), &err);
    return 0;
}

static int close_golden(void **state)
{
    (void)state;
    grq_json_close(document);
    return 0;
}

static grq_json_node *golden(const char *path)
{
    return test_walk(grq_json_root(document), path);
}

/* The golden object of memory layer `index`: "1" and "14" of v41.layers. */
static grq_json_node *golden_layer(uint32_t index)
{
    char path[64];
    snprintf(path, sizeof path, "v41.layers.%u", geometry.layer_ids[index]);
    return golden(path);
}

static void check_u64s(const char *what, grq_json_node *list, const uint64_t *values, size_t n)
{
    if (grq_json_count(list) != n) fail_msg("%s: %zu golden values, %zu here", what, grq_json_count(list), n);
    for (size_t i = 0; i < n; i++) {
        const uint64_t want = test_u64(grq_json_at(list, i));
        if (values[i] != want) fail_msg("%s[%zu] is %" PRIu64 " instead of %" PRIu64, what, i, values[i], want);
    }
}

static void seed_sequence_and_generator(void **state)
{
    (void)state;
    for (uint32_t l = 0; l < geometry.n_layers; l++) {
        grq_json_node *const layer = golden_layer(l);
        const uint64_t seed = test_u64(test_walk(layer, "seed"));
        assert_true(seed == geometry.multiplier_seed * geometry.layer_ids[l]);
        uint32_t pool[GRQ_SEED_WORDS], words[8];
        uint64_t wide[16];
        grq_seed_pool((const uint32_t[GRQ_SEED_WORDS]){ (uint32_t)seed }, pool);
        for (size_t i = 0; i < ARRAY_LEN(pool); i++) wide[i] = pool[i];
        check_u64s("pool", test_walk(layer, "seedsequence_pool_u32"), wide, ARRAY_LEN(pool));
        grq_seed_generate(pool, words, 8);
        for (size_t i = 0; i < 8; i++) wide[i] = words[i];
        check_u64s("generated words", test_walk(layer, "seedsequence_generate_state_u32_8"), wide, 8);
        grq_rng rng;
        char hex[33];
        grq_rng_seed(&rng, seed);
        snprintf(hex, sizeof hex, "%016" PRIx64 "%016" PRIx64, rng.state_hi, rng.state_lo);
        assert_string_equal(hex, test_string(test_walk(layer, "pcg64_after_seeding.state_hex128")));
        snprintf(hex, sizeof hex, "%016" PRIx64 "%016" PRIx64, rng.inc_hi, rng.inc_lo);
        assert_string_equal(hex, test_string(test_walk(layer, "pcg64_after_seeding.inc_hex128")));
        for (size_t i = 0; i < 16; i++) wide[i] = grq_rng_next(&rng);
        check_u64s("raw outputs", test_walk(layer, "pcg64_raw_first16_dec"), wide, 16);
        grq_rng_seed(&rng, seed);
        for (size_t i = 0; i < 4; i++) wide[i] = grq_rng_below(&rng, test_u64(golden("v41.multiplier_bound")));
        check_u64s("bounded draws", test_walk(layer, "integers_0_to_bound_exclusive"), wide, 4);
    }
}

static void the_released_constants_follow(void **state)
{
    (void)state;
    assert_true(geometry.n_layers * geometry.n_columns == 48);
    for (uint32_t l = 0; l < geometry.n_layers; l++) {
        grq_json_node *const layer = golden_layer(l);
        check_u64s("multipliers", test_walk(layer, "multipliers"), geometry.multipliers[l], geometry.max_order);
        check_u64s("primes", test_walk(layer, "primes_flat_col_order"), geometry.primes[l], geometry.n_columns);
        check_u64s("offsets", test_walk(layer, "offsets_flat_col_order"), geometry.offsets[l], geometry.n_columns);
        assert_true(geometry.n_rows[l] == test_u64(test_walk(layer, "sum_of_primes")));
    }
    check_u64s("rows per table", golden("v41.num_embeddings_expected"), geometry.n_rows, geometry.n_layers);
    assert_true(geometry.n_ids == test_u64(golden("v41.compressed_vocab_size")));
    assert_true(geometry.pad_id == test_i64(golden("v41.pad_compressed_id")));
}

static size_t read_ids(grq_json_node *sequence, int32_t *ids, size_t room)
{
    grq_json_node *const list = test_walk(sequence, "compressed_ids");
    assert_true(grq_json_count(list) <= room);
    for (size_t i = 0; i < grq_json_count(list); i++) ids[i] = (int32_t)test_i64(grq_json_at(list, i));
    return grq_json_count(list);
}

enum { MAX_POSITIONS = 256 };

static void check_rows(grq_json_node *sequence, uint32_t l, size_t n, const int64_t *rows, const char *how)
{
    char path[32];
    snprintf(path, sizeof path, "rows.%u", geometry.layer_ids[l]);
    grq_json_node *const positions = test_walk(sequence, path);
    assert_int_equal(grq_json_count(positions), n);
    for (size_t p = 0; p < n; p++) {
        grq_json_node *const columns = grq_json_at(positions, p);
        assert_int_equal(grq_json_count(columns), geometry.n_columns);
        for (uint32_t c = 0; c < geometry.n_columns; c++) {
            const int64_t want = test_i64(grq_json_at(columns, c)), got = rows[p * geometry.n_columns + c];
            if (got != want)
                fail_msg("%s, layer %u, position %zu, column %u, %s: %" PRId64 " instead of %" PRId64,
                         test_string(test_walk(sequence, "name")), geometry.layer_ids[l], p, c, how, got, want);
        }
    }
}

static void every_sequence_whole_and_token_by_token(void **state)
{
    (void)state;
    grq_json_node *const sequences = golden("v41.sequences");
    assert_int_equal(grq_json_count(sequences), 10);
    for (size_t s = 0; s < grq_json_count(sequences); s++) {
        static int64_t rows[MAX_POSITIONS * GRQ_MAX_COLUMNS];
        int32_t ids[MAX_POSITIONS];
        const size_t n = read_ids(grq_json_at(sequences, s), ids, MAX_POSITIONS);
        grq_error err = { 0 };
        for (uint32_t l = 0; l < geometry.n_layers; l++) {
            grq_hash_state hash;
            grq_hash_start(&hash);
            assert_ok(grq_hash_rows(&geometry, l, &hash, ids, n, rows, &err), &err);
            check_rows(grq_json_at(sequences, s), l, n, rows, "whole");
            memset(rows, 0, sizeof rows);
            grq_hash_start(&hash);
            for (size_t p = 0; p < n; p++)
                assert_ok(grq_hash_rows(&geometry, l, &hash, ids + p, 1, rows + p * geometry.n_columns, &err), &err);
            check_rows(grq_json_at(sequences, s), l, n, rows, "token by token");
        }
    }
}

static void check_digest(const char *path, const int64_t *rows, size_t n)
{
    char hex[GRQ_SHA256_HEX];
    grq_error err = { 0 };
    assert_ok(grq_sha256(rows, n * sizeof *rows, hex, &err), &err); /* int64 little-endian, as on this machine */
    assert_string_equal(hex, test_string(golden(path)));
}

/* Digests of the official code's row numbers for tokens [0, 3]. */
static void digests_of_the_official_code(void **state)
{
    (void)state;
    enum { N = 2 * 24 };
    int64_t rows[2][N];
    grq_error err = { 0 };
    for (uint32_t l = 0; l < 2; l++) {
        grq_hash_state hash;
        grq_hash_start(&hash);
        assert_ok(grq_hash_rows(&geometry, l, &hash, (const int32_t[]){ 0, 3 }, 2, rows[l], &err), &err);
    }
    int64_t both[2 * N]; /* (batch 1, token, layer, column) */
    for (size_t p = 0; p < 2; p++)
        for (size_t l = 0; l < 2; l++) memcpy(both + (2 * p + l) * 24, rows[l] + p * 24, 24 * sizeof *both);
    check_digest("v41.fixture_sha256.shape_1_2_2_24", both, 2 * N);
    check_digest("v41.fixture_sha256.layer1_shape_1_2_24", rows[0], N);
    check_digest("v41.fixture_sha256.layer14_shape_1_2_24", rows[1], N);
}

static void bad_ids_are_refused_and_change_nothing(void **state)
{
    (void)state;
    int64_t rows[3 * GRQ_MAX_COLUMNS] = { 77 };
    grq_hash_state hash, before;
    grq_error err = { 0 };
    grq_hash_start(&hash);
    before = hash;
    assert_refused(grq_hash_rows(&geometry, 0, &hash, (const int32_t[]){ 0, 1, 99092 }, 3, rows, &err), GRQ_E_USAGE,
                   &err, "position 2: id 99092");
    assert_refused(grq_hash_rows(&geometry, 0, &hash, (const int32_t[]){ -2 }, 1, rows, &err), GRQ_E_USAGE, &err,
                   "id -2");
    assert_memory_equal(&hash, &before, sizeof hash);
    assert_true(rows[0] == 77);
}

static void geometry_refuses_what_makes_no_sense(void **state)
{
    (void)state;
    grq_error err = { 0 };
    grq_geometry g = geometry;
    uint32_t index;
    g.pad_id = 99092;
    assert_refused(grq_geometry_derive(&g, &err), GRQ_E_USAGE, &err, "pad_id: 99092");
    g = geometry, g.layer_ids[1] = 1;
    assert_refused(grq_geometry_derive(&g, &err), GRQ_E_USAGE, &err, "layer_ids");
    g = geometry, g.max_order = 9;
    assert_refused(grq_geometry_derive(&g, &err), GRQ_E_USAGE, &err, "orders 2 to 9");
    g = geometry, g.n_heads = 22;
    assert_refused(grq_geometry_derive(&g, &err), GRQ_E_USAGE, &err, "n_heads");
    g = geometry, g.norm_eps = NAN;
    assert_refused(grq_geometry_derive(&g, &err), GRQ_E_USAGE, &err, "norm_eps");
    g = geometry, g.norm_eps = 0;
    assert_refused(grq_geometry_derive(&g, &err), GRQ_E_USAGE, &err, "norm_eps: 0 must");
    g = geometry, g.norm_eps = 1e-46; /* 0 in binary32 */
    assert_refused(grq_geometry_derive(&g, &err), GRQ_E_USAGE, &err, "norm_eps: 1e-46");
    assert_refused(grq_geometry_layer_index(&geometry, 2, &index, &err), GRQ_E_USAGE, &err, "1, 14");
    assert_refused(grq_geometry_family("nobody", &g, &err), GRQ_E_USAGE, &err, "deepseek-v41");
}

/* A geometry written as JSON reads back as itself, derived part included. */
static void geometry_survives_json(void **state)
{
    (void)state;
    grq_error err = { 0 };
    grq_json_writer *const writer = grq_json_writer_new();
    const char *text = NULL;
    grq_json *copy = NULL;
    grq_geometry g;
    grq_json_begin_object(writer, NULL);
    grq_geometry_write(&geometry, writer);
    grq_json_end_object(writer);
    assert_ok(grq_json_writer_text(writer, false, &text, &err), &err);
    assert_ok(grq_json_parse("geometry", text, strlen(text), &copy, &err), &err);
    assert_ok(grq_geometry_read(grq_json_root(copy), &g, &err), &err);
    assert_string_equal(g.family, geometry.family);
    assert_memory_equal(g.primes, geometry.primes, sizeof g.primes);
    assert_memory_equal(g.multipliers, geometry.multipliers, sizeof g.multipliers);
    assert_true(g.norm_eps == geometry.norm_eps && g.gate_clamp == geometry.gate_clamp &&
                g.row_values == geometry.row_values);
    grq_json_close(copy);
    grq_json_writer_free(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_sequence_and_generator),
        cmocka_unit_test(the_released_constants_follow),
        cmocka_unit_test(every_sequence_whole_and_token_by_token),
        cmocka_unit_test(digests_of_the_official_code),
        cmocka_unit_test(bad_ids_are_refused_and_change_nothing),
        cmocka_unit_test(geometry_refuses_what_makes_no_sense),
        cmocka_unit_test(geometry_survives_json),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
