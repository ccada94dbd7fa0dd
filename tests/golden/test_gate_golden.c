/* DeepSeek-V4.1's gate and update against engram_gate.json: in binary64, through the released number formats, and with
 * scalars published for the released checkpoint. */
#include "support.h"

#include "gaterq/blas.h"
#include "gaterq/layer.h"
#include "memory/mxfp8.h"
#include "shared/number.h"

enum { MAX = 4096 };

static grq_json *document;

static int open_golden(void **state)
{
    (void)state;
    grq_error err = { 0 };
    document = test_golden("engram_gate.json");
    assert_ok(grq_blas_init(&err), &err);
    return 0;
}

static int close_golden(void **state)
{
    (void)state;
    grq_json_close(document);
    return 0;
}

/* Hexadecimal strings of nested lists, `digits` per element, in order. */
static size_t read_hex(grq_json_node *node, int digits, uint16_t *out, size_t room)
{
    size_t n = 0;
    if (grq_json_kind_of(node) == GRQ_JSON_STRING) {
        for (const char *p = test_string(node); *p; p += digits) {
            char one[5] = "";
            memcpy(one, p, (size_t)digits);
            assert_true(n < room);
            out[n++] = (uint16_t)strtoul(one, NULL, 16);
        }
        return n;
    }
    for (size_t i = 0; i < grq_json_count(node); i++) n += read_hex(grq_json_at(node, i), digits, out + n, room - n);
    return n;
}

static size_t read_bytes(grq_json_node *node, uint8_t *out, size_t room)
{
    uint16_t wide[MAX];
    const size_t n = read_hex(node, 2, wide, room < MAX ? room : MAX);
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)wide[i];
    return n;
}

static size_t read_bf16(grq_json_node *node, float *out, size_t room)
{
    uint16_t codes[MAX];
    const size_t n = read_hex(node, 4, codes, room < MAX ? room : MAX);
    for (size_t i = 0; i < n; i++) out[i] = grq_f32_from_bf16(codes[i]);
    return n;
}

static void to_float(const double *from, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++) to[i] = (float)from[i];
}

/* ---- binary64 -------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t d, branches, k, t;
    double e[MAX], weight[MAX], query_gain[MAX], key_gain[MAX], h[MAX], h_out[MAX], kv[MAX];
    uint8_t dead[16];
    grq_json_node *records;
} float_case;

static void read_float_case(float_case *c)
{
    grq_json_node *const golden = test_walk(grq_json_root(document), "v41_float64");
    c->d = (uint32_t)test_u64(test_walk(golden, "D"));
    c->branches = (uint32_t)test_u64(test_walk(golden, "hc_mult"));
    c->k = (uint32_t)test_u64(test_walk(golden, "K"));
    c->t = (uint32_t)test_u64(test_walk(golden, "T"));
    const size_t out = (c->branches + 1) * c->d, streams = c->t * c->branches * c->d;
    assert_int_equal(test_numbers(test_walk(golden, "e_concat_rows"), c->e, MAX), c->t * c->k);
    assert_int_equal(test_numbers(test_walk(golden, "wkv_weight_out_in"), c->weight, MAX), out * c->k);
    assert_int_equal(test_numbers(test_walk(golden, "q_weight"), c->query_gain, MAX), c->branches * c->d);
    assert_int_equal(test_numbers(test_walk(golden, "k_weight"), c->key_gain, MAX), c->branches * c->d);
    assert_int_equal(test_numbers(test_walk(golden, "h_in"), c->h, MAX), streams);
    assert_int_equal(test_numbers(test_walk(golden, "h_out"), c->h_out, MAX), streams);
    assert_int_equal(test_numbers(test_walk(golden, "kv"), c->kv, MAX), c->t * out);
    c->records = test_walk(golden, "records_token_branch");
    c->dead[4] = 1; /* token_mask_true_means_active: all but the last */
}

static grq_json_node *record(grq_json_node *records, uint32_t t, uint32_t m)
{
    return grq_json_at(grq_json_at(records, t), m);
}

static void the_definition_in_binary64(void **state)
{
    (void)state;
    static float_case c;
    read_float_case(&c);
    const uint32_t out = (c.branches + 1) * c.d;
    for (uint32_t t = 0; t < c.t; t++) {
        double kv[64];
        for (uint32_t o = 0; o < out; o++) {
            kv[o] = 0;
            for (uint32_t i = 0; i < c.k; i++) kv[o] += c.e[t * c.k + i] * c.weight[o * c.k + i];
            if (fabs(kv[o] - c.kv[t * out + o]) > 1e-12)
                fail_msg("kv[%u][%u]: %.17g instead of %.17g", t, o, kv[o], c.kv[t * out + o]);
        }
        for (uint32_t m = 0; m < c.branches; m++) {
            grq_json_node *const want = record(c.records, t, m);
            double s;
            const size_t at = (t * c.branches + m) * c.d;
            double gate = grq_gate_f64(c.d, c.h + at, kv + m * c.d, c.query_gain + m * c.d, c.key_gain + m * c.d, 1e-20,
                                       1e-6, &s);
            if (c.dead[t]) gate = 0;
            const double want_s = test_f64(test_walk(want, "normalised_dot_s")),
                         want_gate = test_f64(test_walk(want, "gate"));
            if (fabs(s - want_s) > 1e-12) fail_msg("token %u, branch %u: s %.17g instead of %.17g", t, m, s, want_s);
            if (fabs(gate - want_gate) > 1e-12)
                fail_msg("token %u, branch %u: gate %.17g instead of %.17g", t, m, gate, want_gate);
            for (uint32_t j = 0; j < c.d; j++) {
                const double h = c.h[at + j] + gate * kv[c.branches * c.d + j];
                if (fabs(h - c.h_out[at + j]) > 1e-12)
                    fail_msg("token %u, branch %u, %u: %.17g instead of %.17g", t, m, j, h, c.h_out[at + j]);
            }
        }
    }
}

static grq_geometry geometry_of(uint32_t d, uint32_t branches, uint32_t columns, uint32_t row_dim)
{
    return (grq_geometry){ .n_layers = 1,
                           .min_order = 2,
                           .max_order = 2,
                           .n_heads = columns,
                           .row_dim = row_dim,
                           .width = d,
                           .n_branches = branches,
                           .norm_eps = 1e-20,
                           .gate_clamp = 1e-6,
                           .n_columns = columns,
                           .row_values = columns * row_dim };
}

/* The float layer on the same case. Inputs have four decimals, so binary32 holds them to 6e-8 relative; sums of 12 and
 * 6 terms near 1 then stay within 2e-6 of the gates and 2e-5 of the streams. In token 2, branch 1, |s| is 1e-9:
 * binary32 may land on the other side of zero, where the clamp turns r = 1e-3 into -1e-3 and the gate moves by 5e-4. */
static void the_float_layer(void **state)
{
    (void)state;
    static float_case c;
    static float e[MAX], weight[MAX], query_gain[MAX], key_gain[MAX], h[MAX], before[MAX], keys[MAX], values[MAX],
        gates[64];
    read_float_case(&c);
    const grq_geometry g = geometry_of(c.d, c.branches, 3, c.k / 3);
    to_float(c.e, c.t * c.k, e);
    to_float(c.weight, (c.branches + 1) * c.d * c.k, weight);
    to_float(c.query_gain, c.branches * c.d, query_gain);
    to_float(c.key_gain, c.branches * c.d, key_gain);
    to_float(c.h, c.t * c.branches * c.d, h);
    memcpy(before, h, sizeof h);
    const grq_memory_layer layer = { .geometry = &g,
                                     .key_weight = weight,
                                     .value_weight = weight + c.branches * c.d * c.k,
                                     .query_gain = query_gain,
                                     .key_gain = key_gain };
    grq_layer_keys(&layer, c.t, e, keys);
    grq_layer_values(&layer, c.t, e, values);
    grq_layer_gates(&layer, c.t, h, keys, c.dead, gates);
    grq_layer_inject(&layer, c.t, gates, values, h);
    for (uint32_t t = 0; t < c.t; t++)
        for (uint32_t m = 0; m < c.branches; m++) {
            const size_t at = (t * c.branches + m) * c.d;
            const double want = test_f64(test_walk(record(c.records, t, m), "gate")), got = gates[t * c.branches + m];
            const double s = test_f64(test_walk(record(c.records, t, m), "normalised_dot_s"));
            const bool at_zero = fabs(s) < 1e-7 && s != 0;
            if (fabs(got - want) > (at_zero ? 5.1e-4 : 2e-6))
                fail_msg("token %u, branch %u: gate %.9g instead of %.9g", t, m, got, want);
            for (uint32_t j = 0; j < c.d; j++)
                if (fabs((double)h[at + j] - c.h_out[at + j]) > (at_zero ? 2e-3 : 2e-5))
                    fail_msg("token %u, branch %u, %u: %.9g instead of %.9g", t, m, j, (double)h[at + j],
                             c.h_out[at + j]);
        }
    /* An all-zero look-up has s = +0: gate 0.50025, streams unchanged. A position that is not text: gate 0, the same
     * bits. */
    const size_t streams = c.branches * c.d;
    assert_true(fabs(gates[3 * c.branches] - 0.50025) < 1e-6);
    assert_memory_equal(h + 3 * streams, before + 3 * streams, streams * sizeof *h);
    assert_true(gates[4 * c.branches] == 0 && gates[4 * c.branches + 1] == 0);
    assert_memory_equal(h + 4 * streams, before + 4 * streams, streams * sizeof *h);
}

/* ---- the released number formats -------------------------------------------------------------------------------- */

typedef struct {
    uint32_t d, branches, k, t;
    uint8_t codes[MAX], scales[64];
    float e[MAX], weight[3 * MAX], query_gain[MAX], key_gain[MAX], h[MAX];
    grq_json_node *golden;
} quantised_case;

static void read_quantised_case(quantised_case *c)
{
    grq_json_node *const g = c->golden = test_walk(grq_json_root(document), "v41_quantised_pipeline");
    c->d = (uint32_t)test_u64(test_walk(g, "D"));
    c->branches = (uint32_t)test_u64(test_walk(g, "hc_mult"));
    c->t = (uint32_t)test_u64(test_walk(g, "T"));
    c->k = (uint32_t)(test_u64(test_walk(g, "head_dim")) * test_u64(test_walk(g, "hash_cols")));
    assert_int_equal(read_bytes(test_walk(g, "row_codes_e4m3"), c->codes, MAX), c->t * c->k);
    assert_int_equal(read_bytes(test_walk(g, "row_scales_e8m0"), c->scales, 64), c->t * c->k / 32);
    assert_int_equal(read_bf16(test_walk(g, "q_weight_bf16"), c->query_gain, MAX), c->branches * c->d);
    assert_int_equal(read_bf16(test_walk(g, "k_weight_bf16"), c->key_gain, MAX), c->branches * c->d);
    assert_int_equal(read_bf16(test_walk(g, "h_in_bf16"), c->h, MAX), c->t * c->branches * c->d);
    grq_mxfp8_dequantise(c->codes, c->scales, c->t * c->k, c->e);
    /* wkv: one scale per 32 x 32 tile. */
    static uint8_t codes[3 * MAX];
    uint8_t tiles[64];
    const uint32_t rows = (c->branches + 1) * c->d;
    for (uint32_t o = 0; o < rows; o++)
        assert_int_equal(read_bytes(grq_json_at(test_walk(g, "wkv_codes_e4m3_rows"), o), codes + o * c->k, c->k), c->k);
    assert_int_equal(read_bytes(test_walk(g, "wkv_scales_e8m0_tiles"), tiles, 64), rows / 32 * (c->k / 32));
    for (uint32_t o = 0; o < rows; o++)
        grq_mxfp8_dequantise(codes + o * c->k, tiles + o / 32 * (c->k / 32), c->k, c->weight + o * c->k);
}

static void rows_and_activations_are_exact(void **state)
{
    (void)state;
    static quantised_case c;
    static float want[MAX];
    uint8_t codes[MAX], scales[64], want_codes[MAX], want_scales[64];
    read_quantised_case(&c);
    const size_t n = c.t * c.k;
    assert_int_equal(read_bf16(test_walk(c.golden, "row_dequant_bf16"), want, MAX), n);
    assert_memory_equal(c.e, want, n * sizeof *want);
    for (size_t i = 0; i < n; i++)
        assert_true(grq_f32_from_bf16(grq_bf16_from_f32(c.e[i])) == c.e[i]); /* BF16 holds a row */
    grq_mxfp8_quantise(c.e, n, codes, scales);
    assert_int_equal(read_bytes(test_walk(c.golden, "activation_codes_e4m3"), want_codes, MAX), n);
    assert_int_equal(read_bytes(test_walk(c.golden, "activation_scales_e8m0"), want_scales, 64), n / 32);
    assert_memory_equal(codes, want_codes, n);
    assert_memory_equal(scales, want_scales, n / 32);
}

/* Position of a BF16 number among all of them, so that neighbours differ by 1. */
static int place(uint16_t code)
{
    return code & 0x8000 ? -(code & 0x7FFF) : code;
}

static void expect_within_one_ulp(const char *what, grq_json_node *node, const float *got, size_t n)
{
    uint16_t want[MAX];
    assert_int_equal(read_hex(node, 4, want, MAX), n);
    for (size_t i = 0; i < n; i++)
        if (abs(place(grq_bf16_from_f32(got[i])) - place(want[i])) > 1)
            fail_msg("%s[%zu] is %a (bf16 %04x) instead of %04x", what, i, (double)got[i], grq_bf16_from_f32(got[i]),
                     want[i]);
}

static void round_to_bf16(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = grq_f32_from_bf16(grq_bf16_from_f32(x[i]));
}

/* The pipeline through our layer, rounded to BF16 where the released model rounds. */
static void the_pipeline_to_the_stated_tolerance(void **state)
{
    (void)state;
    static quantised_case c;
    static float keys[MAX], values[MAX], kv[MAX], gates[64];
    read_quantised_case(&c);
    const grq_geometry g = geometry_of(c.d, c.branches, c.k / 32, 32);
    const grq_memory_layer layer = { .geometry = &g,
                                     .key_weight = c.weight,
                                     .value_weight = c.weight + c.branches * c.d * c.k,
                                     .query_gain = c.query_gain,
                                     .key_gain = c.key_gain };
    const size_t n_keys = c.branches * c.d, n_out = n_keys + c.d;
    grq_layer_keys(&layer, c.t, c.e, keys);
    grq_layer_values(&layer, c.t, c.e, values);
    for (uint32_t t = 0; t < c.t; t++) {
        memcpy(kv + t * n_out, keys + t * n_keys, n_keys * sizeof *kv);
        memcpy(kv + t * n_out + n_keys, values + t * c.d, c.d * sizeof *kv);
    }
    expect_within_one_ulp("kv", test_walk(c.golden, "kv_bf16"), kv, c.t * n_out);
    round_to_bf16(keys, c.t * n_keys);
    round_to_bf16(values, c.t * c.d);
    grq_layer_gates(&layer, c.t, c.h, keys, NULL, gates);
    grq_json_node *const records = test_walk(c.golden, "gate_records_token_branch");
    for (uint32_t t = 0; t < c.t; t++)
        for (uint32_t m = 0; m < c.branches; m++) {
            double h[64], key[64], query_gain[64], key_gain[64], s;
            const size_t at = (t * c.branches + m) * c.d;
            for (uint32_t j = 0; j < c.d; j++) {
                h[j] = c.h[at + j];
                key[j] = keys[at + j];
                query_gain[j] = c.query_gain[m * c.d + j];
                key_gain[j] = c.key_gain[m * c.d + j];
            }
            const double exact = grq_gate_f64(c.d, h, key, query_gain, key_gain, 1e-20, 1e-6, &s);
            const double want_s = test_f64(test_walk(record(records, t, m), "float64.s"));
            if (fabs(s - want_s) > 1e-5 * fabs(want_s))
                fail_msg("token %u, branch %u: s %.9g instead of %.9g", t, m, s, want_s);
            const double want = test_f64(test_walk(record(records, t, m), "float32_sequential.gate")),
                         got = gates[t * c.branches + m];
            if (fabs(got - want) > 2e-6 || fabs(got - exact) > 2e-6)
                fail_msg("token %u, branch %u: gate %.9g instead of %.9g", t, m, got, want);
        }
    grq_layer_inject(&layer, c.t, gates, values, c.h);
    expect_within_one_ulp("h", test_walk(c.golden, "h_out_bf16"), c.h, c.t * n_keys);
}

/* The same through hash, stored FP8 rows and grq_layer_forward: the golden rows are put where the hash points, which
 * works because no two of them meet. */
static void the_pipeline_from_ids_to_streams(void **state)
{
    (void)state;
    static quantised_case c;
    read_quantised_case(&c);
    enum { ROW = 32, MAX_TOKENS = 16 };
    grq_error err = { 0 };
    grq_geometry g = { .family = "golden",
                       .n_layers = 1,
                       .layer_ids = { 1 },
                       .min_order = 2,
                       .max_order = 2,
                       .n_heads = c.k / ROW,
                       .row_dim = ROW,
                       .width = c.d,
                       .n_branches = c.branches,
                       .prime_start = 5000,
                       .n_ids = 1000,
                       .multiplier_seed = 10007,
                       .norm_eps = 1e-20,
                       .gate_clamp = 1e-6,
                       .rounding = GRQ_ROUNDING_DEEPSEEK_V41 };
    assert_ok(grq_geometry_derive(&g, &err), &err);
    int32_t ids[MAX_TOKENS];
    int64_t rows[MAX_TOKENS * GRQ_MAX_COLUMNS];
    assert_true(c.t <= MAX_TOKENS);
    for (uint32_t t = 0; t < c.t; t++) ids[t] = (int32_t)t + 7;
    grq_hash_state hash;
    grq_hash_start(&hash);
    assert_ok(grq_hash_rows(&g, 0, &hash, ids, c.t, rows, &err), &err);
    uint8_t *const codes = calloc(g.n_rows[0], ROW), *const scales = malloc(g.n_rows[0]);
    memset(scales, 127, g.n_rows[0]);
    for (size_t i = 0; i < c.t * g.n_columns; i++) {
        for (size_t j = 0; j < i; j++) assert_true(rows[i] != rows[j]);
        memcpy(codes + rows[i] * ROW, c.codes + i * ROW, ROW);
        scales[rows[i]] = c.scales[i];
    }
    const void *const value_pieces[] = { codes }, *const scale_pieces[] = { scales };
    const grq_table_layout layout = { .format = GRQ_ROWS_F8_BLOCKS,
                                      .n_rows = g.n_rows[0],
                                      .row_dim = ROW,
                                      .rows_per_piece = g.n_rows[0],
                                      .values = value_pieces,
                                      .scales = scale_pieces,
                                      .name = "golden" };
    grq_table *table = NULL;
    grq_layer_state *past = NULL;
    assert_ok(grq_table_new(&layout, &table, &err), &err);
    assert_ok(grq_layer_state_new(&g, 0, &past, &err), &err);
    const grq_memory_layer layer = { .geometry = &g,
                                     .key_weight = c.weight,
                                     .value_weight = c.weight + c.branches * c.d * c.k,
                                     .query_gain = c.query_gain,
                                     .key_gain = c.key_gain };
    const grq_forward_options options = { .numerics = GRQ_NUMERICS_REFERENCE, .round_input = true };
    const grq_segment segment = { past, c.t };
    float gates[64];
    assert_ok(grq_layer_forward(&layer, table, &options, 1, &segment, ids, c.h, gates, &err), &err);
    grq_json_node *const records = test_walk(c.golden, "gate_records_token_branch");
    for (uint32_t t = 0; t < c.t; t++)
        for (uint32_t m = 0; m < c.branches; m++) {
            const double want = test_f64(test_walk(record(records, t, m), "float32_sequential.gate"));
            if (fabs(gates[t * c.branches + m] - want) > 2e-6)
                fail_msg("token %u, branch %u: gate %.9g instead of %.9g", t, m, (double)gates[t * c.branches + m],
                         want);
        }
    expect_within_one_ulp("h", test_walk(c.golden, "h_out_bf16"), c.h, c.t * c.branches * c.d);
    grq_layer_state_free(past);
    grq_table_free(table);
    free(codes);
    free(scales);
}

/* ---- the released checkpoint ------------------------------------------------------------------------------------ */

/* Only mean squares and the weighted dot of 5120 values are published. One value beside a zero reproduces them. */
static void published_scalars(void **state)
{
    (void)state;
    grq_json_node *const golden = test_walk(grq_json_root(document), "v41_real_checkpoint_scalars");
    grq_json_node *const records = test_walk(golden, "records");
    const double d = test_f64(test_walk(golden, "D")), tolerance = 3.2e-7;
    assert_int_equal(grq_json_count(records), 8);
    for (size_t i = 0; i < grq_json_count(records); i++) {
        grq_json_node *const r = grq_json_at(records, i);
        const double hh = test_f64(test_walk(r, "mean_sq_h")), kk = test_f64(test_walk(r, "mean_sq_key"));
        const double dot = test_f64(test_walk(r, "raw_weighted_dot"));
        const double want_s = test_f64(test_walk(r, "published.s")),
                     want_gate = test_f64(test_walk(r, "published.gate"));
        /* s of width 2 has 2^-1/2 where width d has d^-1/2; the gain makes up for it. */
        const double h[2] = { sqrt(2 * hh), 0 }, key[2] = { sqrt(2 * kk), 0 };
        const double gain[2] = { dot / (h[0] * key[0]) * sqrt(2 / d), 1 }, ones[2] = { 1, 1 };
        double s;
        const double gate = grq_gate_f64(2, h, key, gain, ones, 1e-20, 1e-6, &s);
        if (fabs(s - want_s) > tolerance * fabs(want_s)) fail_msg("record %zu: s %.9g, published %.9g", i, s, want_s);
        if (fabs(gate - want_gate) > tolerance * want_gate)
            fail_msg("record %zu: gate %.9g, published %.9g", i, gate, want_gate);
    }
}

/* Gates reach 5.7e-6 in the released model and may be asked for far beyond: no overflow, no NaN, never outside 0 to 1.
 */
static void extreme_scores(void **state)
{
    (void)state;
    const grq_geometry g = geometry_of(2, 1, 1, 2);
    const float ones[2] = { 1, 1 };
    for (int exponent = -60; exponent <= 40; exponent++)
        for (int sign = -1; sign <= 1; sign += 2) {
            /* s = gain * 2^1/2: magnitudes 2^-59.5 to 2^40.5 */
            const float gain[2] = { ldexpf((float)sign, exponent), ldexpf((float)sign, exponent) };
            const grq_memory_layer layer = { .geometry = &g, .query_gain = gain, .key_gain = ones };
            float gate;
            grq_layer_gates(&layer, 1, ones, ones, NULL, &gate);
            const double dgain[2] = { gain[0], gain[1] }, done[2] = { 1, 1 };
            const double want = grq_gate_f64(2, done, done, dgain, done, 1e-20, 1e-6, NULL);
            /* Written so that a NaN on either side fails. */
            if (!(gate >= 0 && gate <= 1) || !(fabs(gate - want) <= 2e-7 + 2e-5 * want))
                fail_msg("gain %a: gate %.9g instead of %.9g", (double)gain[0], (double)gate, want);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_in_binary64),
        cmocka_unit_test(the_float_layer),
        cmocka_unit_test(rows_and_activations_are_exact),
        cmocka_unit_test(the_pipeline_to_the_stated_tolerance),
        cmocka_unit_test(the_pipeline_from_ids_to_streams),
        cmocka_unit_test(published_scalars),
        cmocka_unit_test(extreme_scores),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
