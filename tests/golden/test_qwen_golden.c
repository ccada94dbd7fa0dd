/* Qwen3.8-Flash-Next's memory against qwen_ple.json: constants, rows, gates, FP8 rows, and a small layer in binary64
 * and in BF16 bits, whole and in chunks. */
#include "layer_support.h"

#include "gaterq/blas.h"
#include "gaterq/hash.h"
#include "memory/layer_internal.h"
#include "memory/layer_state_internal.h"
#include "shared/number.h"

static grq_json *document;
static grq_geometry released;

static int open_golden(void **state)
{
    (void)state;
    grq_error err = { 0 };
    document = test_golden("qwen_ple.json");
    assert_ok(grq_blas_init(&err), &err);
    assert_ok(grq_geometry_family("qwen38-ple", &released, &err), &err);
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

static void check_constants(const grq_geometry *g, const char *where, const char *multipliers)
{
    char path[96];
    for (uint32_t i = 0; i < g->max_order; i++) {
        snprintf(path, sizeof path, "%s.%s.%u", where, multipliers, i);
        assert_true(test_u64(golden(path)) == g->multipliers[0][i]);
    }
    for (uint32_t c = 0; c < g->n_columns; c++) {
        snprintf(path, sizeof path, "%s.head_vocab_sizes.%u", where, c);
        assert_true(test_u64(golden(path)) == g->primes[0][c]);
        snprintf(path, sizeof path, "%s.head_offsets.%u", where, c);
        assert_true(test_u64(golden(path)) == g->offsets[0][c]);
    }
    snprintf(path, sizeof path, "%s.padded_rows", where);
    assert_true(test_u64(golden(path)) == g->n_rows[0]);
    snprintf(path, sizeof path, "%s.total_rows", where);
    assert_true(test_u64(golden(path)) == g->offsets[0][g->n_columns - 1] + g->primes[0][g->n_columns - 1]);
}

static void the_released_constants_follow(void **state)
{
    (void)state;
    check_constants(&released, "released", "multipliers");
    assert_true(test_u64(golden("released.vocab_size")) == released.n_ids);
    assert_true(test_i64(golden("released.eos_token_id")) == released.pad_id);
}

/* ---- rows ---- */

enum { MAX_POSITIONS = 16 };

static size_t read_ids(grq_json_node *list, int32_t *ids, size_t room)
{
    const size_t n = grq_json_count(list);
    assert_true(n <= room);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)test_i64(grq_json_at(list, i));
    return n;
}

static void check_rows(grq_json_node *wanted, const int64_t *rows, size_t n, uint32_t n_columns, const char *name)
{
    assert_int_equal(grq_json_count(wanted), n);
    for (size_t p = 0; p < n; p++)
        for (uint32_t c = 0; c < n_columns; c++) {
            const int64_t want = test_i64(grq_json_at(grq_json_at(wanted, p), c));
            if (rows[p * n_columns + c] != want)
                fail_msg("%s, position %zu, head %u: %" PRId64 " instead of %" PRId64, name, p, c,
                         rows[p * n_columns + c], want);
        }
}

/* What the file calls the context: the two ids before the next position, oldest first, with EOS for missing ones. */
static void check_context(grq_json_node *context, const grq_geometry *g, const grq_hash_state *hash)
{
    for (uint32_t i = 0; i < 2; i++) {
        const int32_t id = hash->previous[1 - i];
        assert_true(test_i64(grq_json_at(context, i)) == (id == GRQ_DEAD ? g->pad_id : id));
    }
}

static void every_sequence_whole_and_in_chunks(void **state)
{
    (void)state;
    grq_json_node *const cases = golden("hash_cases");
    assert_int_equal(grq_json_count(cases), 8);
    for (size_t k = 0; k < grq_json_count(cases); k++) {
        grq_json_node *const one = grq_json_at(cases, k);
        const char *const name = test_string(test_walk(one, "name"));
        int64_t rows[MAX_POSITIONS * GRQ_MAX_COLUMNS];
        int32_t ids[MAX_POSITIONS];
        const size_t n = read_ids(test_walk(one, "tokens"), ids, MAX_POSITIONS);
        grq_error err = { 0 };
        grq_hash_state hash;
        grq_hash_start(&hash);
        assert_ok(grq_hash_rows(&released, 0, &hash, ids, n, rows, &err), &err);
        check_rows(test_walk(one, "rows"), rows, n, released.n_columns, name);
        check_context(test_walk(one, "context_after"), &released, &hash);
        grq_json_node *const chunks = grq_json_find(one, "chunks");
        grq_hash_start(&hash);
        memset(rows, 0, sizeof rows);
        for (size_t i = 0, at = 0; chunks && i < grq_json_count(chunks); i++) {
            const size_t part = test_u64(test_walk(grq_json_at(chunks, i), "n"));
            check_context(test_walk(grq_json_at(chunks, i), "context_before"), &released, &hash);
            assert_ok(grq_hash_rows(&released, 0, &hash, ids + at, part, rows + at * released.n_columns, &err), &err);
            at += part;
        }
        if (chunks) check_rows(test_walk(one, "rows"), rows, n, released.n_columns, name);
    }
}

static uint64_t mix64(uint64_t v)
{
    v += UINT64_C(0x9E3779B97F4A7C15);
    v = (v ^ v >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    v = (v ^ v >> 27) * UINT64_C(0x94D049BB133111EB);
    return v ^ v >> 31;
}

static void four_thousand_generated_ids(void **state)
{
    (void)state;
    const size_t n = test_u64(golden("hash_bulk.n"));
    int32_t *const ids = malloc(n * sizeof *ids);
    int64_t *const rows = malloc(n * released.n_columns * sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        const uint64_t v = mix64(i);
        ids[i] = (int32_t)(v % 61 == 0 ? 248044 : (v >> 8) % 248320);
    }
    for (size_t i = 0; i < 8; i++) {
        char path[64];
        snprintf(path, sizeof path, "hash_bulk.first_tokens.%zu", i);
        assert_true(ids[i] == test_i64(golden(path)));
    }
    grq_hash_state hash;
    grq_error err = { 0 };
    grq_hash_start(&hash);
    assert_ok(grq_hash_rows(&released, 0, &hash, ids, n, rows, &err), &err);
    uint64_t sum = 0, fnv = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < n * released.n_columns; i++) {
        sum += (uint64_t)rows[i];
        for (int b = 0; b < 4; b++) fnv = (fnv ^ ((uint64_t)rows[i] >> (8 * b) & 0xFF)) * UINT64_C(0x100000001B3);
    }
    assert_true(sum == test_u64(golden("hash_bulk.sum_of_all_row_ids")));
    assert_true(fnv == strtoull(test_string(golden("hash_bulk.fnv1a64_of_rows_le_u32")), NULL, 16));
    free(rows);
    free(ids);
}

static void placeholders_and_foreign_ids_are_refused(void **state)
{
    (void)state;
    int64_t rows[2 * GRQ_MAX_COLUMNS];
    grq_hash_state hash;
    grq_error err = { 0 };
    grq_hash_start(&hash);
    assert_refused(grq_hash_rows(&released, 0, &hash, (const int32_t[]){ 5, -1 }, 2, rows, &err), GRQ_E_USAGE, &err,
                   "position 1: id -1");
    assert_refused(grq_hash_rows(&released, 0, &hash, (const int32_t[]){ 248320 }, 1, rows, &err), GRQ_E_USAGE, &err,
                   "id 248320 is not below 248320");
}

/* ---- gates and rows in their number formats ---- */

static void gates_of_scores(void **state)
{
    (void)state;
    grq_json_node *const cases = golden("gate_scalar");
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *const one = grq_json_at(cases, i);
        const double s = test_f64(test_walk(one, "s")), want = test_f64(test_walk(one, "gate"));
        /* sums that give this score: hh = kk = width and eps = 0 but for its least value */
        grq_geometry g = { .width = 1, .norm_eps = 0x1p-126, .gate_clamp = 1e-6, .zero_rule = GRQ_ZERO_HALF };
        const float gate = grq_layer_gate_of_sums(&g, (const float[]){ 1, 1, (float)s });
        if (fabs(gate - want) > 1e-7) fail_msg("s %g: gate %.9g instead of %.9g", s, (double)gate, want);
        const float rounded = grq_f32_from_bf16((uint16_t)test_u64(test_walk(one, "bf16_mode.s_bits")));
        const uint16_t bits = grq_bf16_from_f32(grq_layer_gate_of_score_qwen38(&g, rounded));
        if (bits != test_u64(test_walk(one, "bf16_mode.gate_bits")))
            fail_msg("s %g in BF16: gate bits 0x%04X instead of 0x%04X", s, bits,
                     (unsigned)test_u64(test_walk(one, "bf16_mode.gate_bits")));
    }
}

static void rows_of_the_fp8_variant(void **state)
{
    (void)state;
    grq_json_node *const samples = golden("fp8_rows.samples");
    const float scale = grq_f32_from_bf16((uint16_t)test_u64(golden("fp8_rows.scale_bits")));
    for (size_t i = 0; i < grq_json_count(samples); i++) {
        const uint8_t byte = (uint8_t)test_u64(test_walk(grq_json_at(samples, i), "byte"));
        const void *const pieces[] = { &byte };
        const grq_table_layout layout = { .format = GRQ_ROWS_F8_SCALAR,
                                          .n_rows = 1,
                                          .row_dim = 1,
                                          .rows_per_piece = 1,
                                          .values = pieces,
                                          .scale = scale,
                                          .name = "fp8" };
        grq_table *table = NULL;
        grq_error err = { 0 };
        float value = 0;
        assert_ok(grq_table_new(&layout, &table, &err), &err);
        assert_ok(grq_table_fetch(table, 1, 1, (const int64_t[]){ 0 }, &value, &err), &err);
        assert_int_equal(grq_bf16_from_f32(value), test_u64(test_walk(grq_json_at(samples, i), "bf16_bits")));
        grq_table_free(table);
    }
}

/* ---- the small layer ---- */

enum { N_TOKENS = 14, WIDTH = 8, BRANCHES = 4, CHANNELS = WIDTH * BRANCHES, TAPS = 4, IN = 16 };

static void small_layer(test_layer *l)
{
    l->geometry = (grq_geometry){ .family = "small",
                                  .n_layers = 1,
                                  .layer_ids = { 1 },
                                  .min_order = 2,
                                  .max_order = 3,
                                  .n_heads = 2,
                                  .row_dim = 4,
                                  .width = WIDTH,
                                  .n_branches = BRANCHES,
                                  .prime_start = 29,
                                  .n_ids = 512,
                                  .pad_id = 7,
                                  .multiplier_seed = 10007,
                                  .norm_eps = 1e-6,
                                  .gate_clamp = 1e-6,
                                  .multiplier_rule = GRQ_MULTIPLIERS_SPLITMIX64,
                                  .hash_seed = 1234,
                                  .row_multiple = 8,
                                  .raw_ids = true,
                                  .text_only = true,
                                  .pad_cuts = true,
                                  .gain_offset = 1,
                                  .zero_rule = GRQ_ZERO_HALF,
                                  .rounding = GRQ_ROUNDING_QWEN38,
                                  .conv_kernel = TAPS,
                                  .conv_dilation = 3,
                                  .conv_eps = 1e-6 };
    grq_error err = { 0 };
    assert_ok(grq_geometry_derive(&l->geometry, &err), &err);
    check_constants(&l->geometry, "small_layer.hash_constants", "multipliers");
    const size_t n_rows = l->geometry.n_rows[0];
    float **o = l->owned;
    memset(o, 0, sizeof l->owned);
    o[0] = test_floats(golden("small_layer.weights.table"), n_rows * 4);
    o[1] = test_floats(golden("small_layer.weights.key_proj"), CHANNELS * IN);
    o[2] = test_floats(golden("small_layer.weights.value_proj"), WIDTH * IN);
    o[3] = test_floats(golden("small_layer.weights.norm_query"), CHANNELS);
    o[4] = test_floats(golden("small_layer.weights.norm_key"), CHANNELS);
    o[5] = test_floats(golden("small_layer.weights.norm_conv"), CHANNELS);
    for (int i = 3; i < 6; i++)
        for (int j = 0; j < CHANNELS; j++) o[i][j] += 1;
    float *const taps = test_floats(golden("small_layer.weights.conv1d"), CHANNELS * TAPS);
    o[6] = test_transposed(taps, CHANNELS, TAPS);
    free(taps);
    l->view = (grq_memory_layer){ .geometry = &l->geometry,
                                  .key_weight = o[1],
                                  .value_weight = o[2],
                                  .query_gain = o[3],
                                  .key_gain = o[4],
                                  .conv_gain = o[5],
                                  .conv_weight = o[6] };
    l->table = test_table(o[0], n_rows, 4);
}

static void run(const test_layer *l, grq_numerics numerics, grq_layer_state *state, size_t first, size_t n,
                const int32_t *ids, float *h, float *gates)
{
    const grq_forward_options options = { .numerics = numerics };
    const grq_segment segment = { state, n };
    grq_error err = { 0 };
    assert_ok(grq_layer_forward(&l->view, l->table, &options, 1, &segment, ids + first, h + first * CHANNELS,
                                gates + first * BRANCHES, &err),
              &err);
}

/* Within what binary32 loses against binary64 over sums of 16 and 8 terms: 1e-6 of values of order 1. */
static void the_small_layer_in_binary32(void **state)
{
    (void)state;
    test_layer l;
    small_layer(&l);
    int32_t ids[N_TOKENS];
    float gates[N_TOKENS * BRANCHES];
    read_ids(golden("small_layer.tokens"), ids, N_TOKENS);
    float *const h = test_floats(golden("small_layer.hidden_in"), N_TOKENS * CHANNELS);
    double wanted[N_TOKENS * CHANNELS], wanted_gates[N_TOKENS * BRANCHES];
    test_numbers(golden("small_layer.float64.out"), wanted, N_TOKENS * CHANNELS);
    test_numbers(golden("small_layer.float64.gate"), wanted_gates, N_TOKENS * BRANCHES);
    grq_layer_state *past = NULL;
    grq_error err = { 0 };
    assert_ok(grq_layer_state_new(&l.geometry, 0, &past, &err), &err);
    int64_t rows[N_TOKENS * 4];
    grq_hash_state hash;
    grq_hash_start(&hash);
    assert_ok(grq_hash_rows(&l.geometry, 0, &hash, ids, N_TOKENS, rows, &err), &err);
    check_rows(golden("small_layer.rows"), rows, N_TOKENS, 4, "small layer");
    run(&l, GRQ_NUMERICS_FP32, past, 0, N_TOKENS, ids, h, gates);
    for (size_t i = 0; i < N_TOKENS * CHANNELS; i++)
        if (fabs(h[i] - wanted[i]) > 2e-6)
            fail_msg("token %zu, channel %zu: %.9g instead of %.9g", i / CHANNELS, i % CHANNELS, (double)h[i],
                     wanted[i]);
    for (size_t i = 0; i < N_TOKENS * BRANCHES; i++)
        if (fabs(gates[i] - wanted_gates[i]) > 1e-6)
            fail_msg("token %zu, branch %zu: gate %.9g instead of %.9g", i / BRANCHES, i % BRANCHES, (double)gates[i],
                     wanted_gates[i]);
    grq_layer_state_free(past);
    free(h);
    test_layer_free(&l);
}

static void check_bits(const char *what, grq_json_node *wanted, const float *values, size_t n)
{
    double bits[N_TOKENS * CHANNELS];
    assert_int_equal(test_numbers(wanted, bits, ARRAY_LEN(bits)), n);
    for (size_t i = 0; i < n; i++)
        if (grq_bits_from_float(values[i]) != (uint32_t)bits[i] << 16)
            fail_msg("%s[%zu]: %a, not the BF16 number 0x%04X", what, i, (double)values[i], (unsigned)bits[i]);
}

/* Sizes of chunks as the file has them, and the state after each. */
static void the_small_layer_in_bf16_bits(void **state)
{
    (void)state;
    test_layer l;
    small_layer(&l);
    int32_t ids[N_TOKENS];
    float gates[N_TOKENS * BRANCHES];
    read_ids(golden("small_layer.tokens"), ids, N_TOKENS);
    grq_json_node *const sizes = golden("small_layer.chunked.sizes");
    for (int chunked = 0; chunked < 2; chunked++) {
        float *const h = test_floats(golden("small_layer.hidden_in"), N_TOKENS * CHANNELS);
        grq_layer_state *past = NULL;
        grq_error err = { 0 };
        assert_ok(grq_layer_state_new(&l.geometry, 0, &past, &err), &err);
        if (!chunked) run(&l, GRQ_NUMERICS_REFERENCE, past, 0, N_TOKENS, ids, h, gates);
        for (size_t i = 0, at = 0; chunked && i < grq_json_count(sizes); i++) {
            const size_t n = test_u64(grq_json_at(sizes, i));
            char path[96];
            run(&l, GRQ_NUMERICS_REFERENCE, past, at, n, ids, h, gates);
            at += n;
            grq_hash_state hash;
            grq_layer_state_hash(past, &hash);
            snprintf(path, sizeof path, "small_layer.chunked.after.%zu.context", i);
            check_context(golden(path), &l.geometry, &hash);
            for (uint32_t back = l.geometry.conv_span; back > 0; back--) {
                static const float start[CHANNELS];
                const float *const input = grq_layer_state_input(past, back);
                snprintf(path, sizeof path, "small_layer.chunked.after.%zu.conv_state_bf16_bits_oldest_first.%u", i,
                         l.geometry.conv_span - back);
                check_bits(path, golden(path), input ? input : start, CHANNELS);
            }
        }
        check_bits("gate", golden("small_layer.bf16_bits.gate"), gates, N_TOKENS * BRANCHES);
        check_bits("out", golden("small_layer.bf16_bits.out"), h, N_TOKENS * CHANNELS);
        grq_layer_state_free(past);
        free(h);
    }
    test_layer_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_released_constants_follow),
        cmocka_unit_test(every_sequence_whole_and_in_chunks),
        cmocka_unit_test(four_thousand_generated_ids),
        cmocka_unit_test(placeholders_and_foreign_ids_are_refused),
        cmocka_unit_test(gates_of_scores),
        cmocka_unit_test(rows_of_the_fp8_variant),
        cmocka_unit_test(the_small_layer_in_binary32),
        cmocka_unit_test(the_small_layer_in_bf16_bits),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
