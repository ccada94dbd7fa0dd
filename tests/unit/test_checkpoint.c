/* Checkpoints of every kind: opened layers hold the numbers that were written. Sources: specs/deepseek-v41-engram.md
 * sections 2, 3 and 8, specs/qwen38-ple.md sections 2, 3 and 7, docs/format.md "Memory folders". */
#include "checkpoint_open.h"

#include "gaterq/hash.h"

static float bf16(float x)
{
    return grq_f32_from_bf16(grq_bf16_from_f32(x));
}

static const test_tensor *tensor(test_checkpoint *c, const char *format, ...)
{
    char name[128];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return test_tensor_of(c, name);
}

/* ---- what is opened against what was written ---- */

static void check_bits(const char *what, uint64_t i, float got, float want)
{
    if (memcmp(&got, &want, sizeof got))
        fail_msg("%s: number %" PRIu64 " is %a instead of %a", what, i, (double)got, (double)want);
}

/* All rows of a table; `want` says what stands at a row and column. */
static void check_table(test_checkpoint *c, grq_table *t, uint64_t n_rows, uint32_t dim,
                        float (*want)(test_checkpoint *, uint64_t, uint32_t))
{
    assert_int_equal(grq_table_n_rows(t), n_rows);
    assert_int_equal(grq_table_row_dim(t), dim);
    int64_t *const rows = malloc(n_rows * sizeof *rows);
    float *const got = malloc(n_rows * dim * sizeof *got);
    for (uint64_t r = 0; r < n_rows; r++) rows[r] = (int64_t)(n_rows - 1 - r);
    assert_ok(grq_table_fetch(t, n_rows, 1, rows, got, &err), &err);
    for (uint64_t r = 0; r < n_rows; r++)
        for (uint32_t i = 0; i < dim; i++)
            check_bits(grq_table_name(t), (uint64_t)rows[r] * dim + i, got[r * dim + i], want(c, (uint64_t)rows[r], i));
    free(got);
    free(rows);
}

/* (n_rows, n_columns) from row `first` of a stored matrix; `scales` is NULL or one E8M0 byte per 32 x 32 values. */
static void check_matrix(const float *got, const test_tensor *t, const test_tensor *scales, uint64_t first,
                         uint64_t n_rows, float offset)
{
    const uint64_t n_columns = t->shape[t->rank - 1], tiles = (n_columns + 31) / 32;
    assert_non_null(got);
    for (uint64_t r = 0; r < n_rows; r++)
        for (uint64_t i = 0; i < n_columns; i++) {
            const float scale = scales ? test_number(scales, (first + r) / 32 * tiles + i / 32) : 1;
            const float want = test_number(t, (first + r) * n_columns + i) * scale;
            check_bits(t->name, r * n_columns + i, got[r * n_columns + i], offset ? want + offset : want);
        }
}

/* Stored (channels, taps), with or without an axis of 1 between; held (taps, channels). */
static void check_taps(const float *got, const test_tensor *t)
{
    const uint64_t n_taps = t->shape[t->rank - 1];
    assert_non_null(got);
    for (uint64_t i = 0; i < KIND_CHANNELS; i++)
        for (uint64_t k = 0; k < n_taps; k++)
            check_bits(t->name, i * n_taps + k, got[k * KIND_CHANNELS + i], test_number(t, i * n_taps + k));
}

/* ---- DeepSeek-V4.1 ---- */

static int layer_wanted; /* of deepseek_row */

static float deepseek_row(test_checkpoint *c, uint64_t row, uint32_t column)
{
    const test_tensor *const t = tensor(c, "layers.%d.engram.embed.weight", layer_wanted);
    const float x = test_number(t, row * DEEPSEEK_DIM + column);
    if (t->dtype != GRQ_F8_E4M3) return x;
    return x * test_number(tensor(c, "layers.%d.engram.embed.scale", layer_wanted), row * 2 + column / 32);
}

static void check_deepseek(test_checkpoint *c, const char *path)
{
    for (uint32_t l = 0; l < 2; l++) {
        opened o;
        open_all(path, l, &o);
        layer_wanted = l ? 3 : 1;
        check_table(c, o.table, l ? KIND_ROWS_2 : KIND_ROWS, DEEPSEEK_DIM, deepseek_row);
        const grq_memory_layer *const w = grq_layer_weights_view(o.weights);
        const test_tensor *const wkv = tensor(c, "layers.%d.engram.wkv.weight", layer_wanted);
        const test_tensor *const scales =
            wkv->dtype == GRQ_F8_E4M3 ? tensor(c, "layers.%d.engram.wkv.scale", layer_wanted) : NULL;
        check_matrix(w->key_weight, wkv, scales, 0, KIND_CHANNELS, 0);
        check_matrix(w->value_weight, wkv, scales, KIND_CHANNELS, KIND_WIDTH, 0);
        check_matrix(w->query_gain, tensor(c, "layers.%d.engram.q_weight", layer_wanted), NULL, 0, KIND_BRANCHES, 0);
        check_matrix(w->key_gain, tensor(c, "layers.%d.engram.k_weight", layer_wanted), NULL, 0, KIND_BRANCHES, 0);
        assert_true(!w->key_bias && !w->value_bias && !w->conv_gain && !w->conv_weight && !w->table);
        assert_int_equal(w->layer_index, l);
        close_all(&o);
    }
}

static void deepseek_in_shards_and_in_one_file(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "deepseek");
    kind_deepseek(&c);
    check_deepseek(&c, test_save(&c));
    grq_checkpoint *open;
    assert_ok(grq_checkpoint_open(c.folder, NULL, &open, &err), &err);
    const grq_geometry *const g = grq_checkpoint_geometry(open);
    assert_string_equal(g->family, "deepseek-v41");
    assert_true(g->n_layers == 2 && g->layer_ids[1] == 3 && g->n_columns == 4 && g->n_ids == 50 && g->pad_id == 2);
    assert_true(g->norm_eps == 1e-20 && !g->gain_offset && !g->raw_ids && !g->conv_kernel);
    assert_string_equal(grq_checkpoint_note(open), "");
    grq_checkpoint_close(open);
    /* Without the index; with the names' prefix of another export, in one file, behind a tensor that makes all the
     * others begin at odd addresses; with the settings at the root. */
    test_checkpoint_free(&c);
    test_checkpoint_new(&c, "deepseek-plain");
    kind_deepseek(&c);
    c.index = false;
    check_deepseek(&c, test_save(&c));
    test_checkpoint_free(&c);
    test_checkpoint_new(&c, "deepseek-one");
    test_add(&c, "model.safetensors", "crooked", GRQ_U8, 1, (const uint64_t[]){ 1 }, 0);
    kind_deepseek(&c);
    test_replace(&c, "\"text_config\": {", "");
    test_replace(&c, "}}", "}");
    for (size_t i = 1; i < c.n_tensors; i++) {
        char name[160];
        snprintf(name, sizeof name, "model.%.150s", c.tensors[i].name);
        strcpy(c.tensors[i].name, name);
        strcpy(c.tensors[i].file, "model.safetensors");
    }
    check_deepseek(&c, test_save(&c));
    test_checkpoint_free(&c);
}

/* What the scales are called where the weights came through another export. */
static void deepseek_with_inverse_scale_names(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "inverse");
    kind_deepseek(&c);
    opened o;
    strcpy(test_tensor_of(&c, "layers.1.engram.embed.scale")->name, "layers.1.engram.embed.weight_scale_inv");
    strcpy(test_tensor_of(&c, "layers.1.engram.wkv.scale")->name, "layers.1.engram.wkv.weight_scale_inv");
    open_all(test_save(&c), 0, &o);
    check_matrix(grq_layer_weights_view(o.weights)->key_weight, tensor(&c, "layers.1.engram.wkv.weight"),
                 tensor(&c, "layers.1.engram.wkv.weight_scale_inv"), 0, KIND_CHANNELS, 0);
    close_all(&o);
    test_checkpoint_free(&c);
}

/* Exports without FP8 need no scales. */
static void deepseek_of_wide_numbers(void **state)
{
    (void)state;
    static const grq_dtype dtypes[] = { GRQ_BF16, GRQ_F16, GRQ_F32 };
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
        test_checkpoint c;
        test_checkpoint_new(&c, "wide");
        kind_deepseek(&c);
        for (int l = 1; l <= 3; l += 2) {
            static const char *const changed[] = { "embed.weight", "wkv.weight", "q_weight", "k_weight" };
            for (size_t i = 0; i < ARRAY_LEN(changed); i++) {
                char name[64];
                snprintf(name, sizeof name, "layers.%d.engram.%s", l, changed[i]);
                test_tensor *const t = test_tensor_of(&c, name);
                test_reshape(&c, name, dtypes[d], 2, t->shape);
                for (uint64_t k = 0; k < test_elements(t); k++) test_set_number(t, k, (float)grq_rng_normal(&c.rng));
            }
            char scale[64];
            snprintf(scale, sizeof scale, "layers.%d.engram.embed.scale", l);
            test_drop(&c, scale);
            snprintf(scale, sizeof scale, "layers.%d.engram.wkv.scale", l);
            test_drop(&c, scale);
        }
        check_deepseek(&c, test_save(&c));
        test_checkpoint_free(&c);
    }
}

/* Byte 0 is 2^-127 to one rule and nothing to the other, in tables and in tiles; byte 255 is refused by both. */
static void both_readings_of_scale_bytes(void **state)
{
    (void)state;
    for (int rule = 0; rule < 2; rule++) {
        const float zero = rule == GRQ_E8M0_OCP ? 0x1p-127f : 0;
        test_checkpoint c;
        test_checkpoint_new(&c, "corners");
        kind_deepseek(&c);
        test_tensor *const scales = test_tensor_of(&c, "layers.1.engram.embed.scale");
        test_tensor *const tiles = test_tensor_of(&c, "layers.1.engram.wkv.scale");
        scales->bytes[2 * 9 + 1] = 0; /* row 9, columns 32 to 39 */
        tiles->bytes[5 + 2] = 0;      /* rows 32 to 63, columns 64 to 95 */
        test_tensor_of(&c, "layers.1.engram.embed.weight")->bytes[9 * DEEPSEEK_DIM + 33] = 0x40;         /* 2 */
        test_tensor_of(&c, "layers.1.engram.wkv.weight")->bytes[(uint64_t)33 * DEEPSEEK_IN + 70] = 0xC0; /* -2 */
        opened o;
        float row[DEEPSEEK_DIM];
        assert_ok(try_rule(test_save(&c), 0, (grq_e8m0_rule)rule, &o), &err);
        assert_ok(grq_table_fetch(o.table, 1, 1, (const int64_t[]){ 9 }, row, &err), &err);
        check_bits("byte 0 of a table", 33, row[33], 2 * zero);
        check_bits("byte 0 of a tile", 70, grq_layer_weights_view(o.weights)->key_weight[33 * DEEPSEEK_IN + 70],
                   -2 * zero);
        close_all(&o);
        scales->bytes[2 * 9 + 1] = 255;
        assert_ok(try_rule(test_save(&c), 0, (grq_e8m0_rule)rule, &o), &err);
        assert_refused(grq_table_fetch(o.table, 1, 1, (const int64_t[]){ 9 }, row, &err), GRQ_E_DATA, &err,
                       "model-00047-of-00048.safetensors:layers.1.engram.embed.weight: row 9, column 32");
        assert_ok(grq_table_fetch(o.table, 1, 2, (const int64_t[]){ 8, 10 }, (float[2 * DEEPSEEK_DIM]){ 0 }, &err),
                  &err);
        close_all(&o);
        tiles->bytes[5 + 2] = 255;
        assert_refused(try_rule(test_save(&c), 0, (grq_e8m0_rule)rule, &o), GRQ_E_DATA, &err,
                       "model-00047-of-00048.safetensors: layers.1.engram.wkv.weight: row 32, column 64");
        test_checkpoint_free(&c);
    }
}

static void codes_that_are_no_numbers(void **state)
{
    (void)state;
    for (int sign = 0; sign < 2; sign++) {
        test_checkpoint c;
        test_checkpoint_new(&c, "nan");
        kind_deepseek(&c);
        const uint8_t code = sign ? 0xFF : 0x7F;
        test_tensor_of(&c, "layers.1.engram.embed.weight")->bytes[119 * DEEPSEEK_DIM + 39] = code;
        opened o;
        float row[DEEPSEEK_DIM];
        char text[128];
        open_all(test_save(&c), 0, &o);
        snprintf(text, sizeof text, "layers.1.engram.embed.weight: row 119, column 39: code 0x%02X", code);
        assert_refused(grq_table_fetch(o.table, 1, 1, (const int64_t[]){ 119 }, row, &err), GRQ_E_DATA, &err, text);
        close_all(&o);
        test_tensor_of(&c, "layers.1.engram.wkv.weight")->bytes[DEEPSEEK_OUT * DEEPSEEK_IN - 1] = code;
        assert_spoilt(&c, "layers.1.engram.wkv.weight: row 71, column 159 is");
        test_checkpoint_free(&c);
    }
    test_checkpoint c;
    test_checkpoint_new(&c, "infinite");
    kind_deepseek(&c);
    const uint16_t infinity = 0x7F80;
    test_set(test_tensor_of(&c, "layers.1.engram.q_weight"), KIND_WIDTH + 5, &infinity);
    assert_spoilt(&c, "layers.1.engram.q_weight: row 1, column 5 is inf");
    test_checkpoint_free(&c);
}

/* ---- Qwen3.8 ---- */

static float qwen_row(test_checkpoint *c, uint64_t row, uint32_t column)
{
    const uint64_t n = QWEN_ROWS / QWEN_PIECES;
    const test_tensor *const t = tensor(c, QWEN_PREFIX "ple_embedding.ngram_embedding.shard_%d.weight", (int)(row / n));
    const float x = test_number(t, row % n * QWEN_DIM + column);
    return t->dtype == GRQ_F8_E4M3 ? bf16(x * test_number(tensor(c, "ngram_embedding.weight_scale"), 0)) : x;
}

static void check_qwen(test_checkpoint *c, const char *path)
{
    opened o;
    open_all(path, 0, &o);
    check_table(c, o.table, QWEN_ROWS, QWEN_DIM, qwen_row);
    const grq_memory_layer *const w = grq_layer_weights_view(o.weights);
    check_matrix(w->key_weight, tensor(c, "key_proj.weight"), NULL, 0, KIND_CHANNELS, 0);
    check_matrix(w->value_weight, tensor(c, "value_proj.weight"), NULL, 0, KIND_WIDTH, 0);
    check_matrix(w->query_gain, tensor(c, "norm_query.weight"), NULL, 0, 1, 1);
    check_matrix(w->key_gain, tensor(c, "norm_key.weight"), NULL, 0, 1, 1);
    check_matrix(w->conv_gain, tensor(c, "norm_conv.weight"), NULL, 0, 1, 1);
    check_taps(w->conv_weight, tensor(c, "conv1d.weight"));
    assert_true(!w->key_bias && !w->value_bias);
    close_all(&o);
}

static void qwen_in_pieces(void **state)
{
    (void)state;
    static const struct {
        grq_dtype dtype;
        uint32_t scale_rank;
        bool index;
    } cases[] = { { GRQ_BF16, 0, false }, { GRQ_F8_E4M3, 0, true }, { GRQ_F8_E4M3, 1, false },
                  { GRQ_BF16, 0, true },  { GRQ_F32, 0, true },     { GRQ_F16, 0, false } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        test_checkpoint c;
        test_checkpoint_new(&c, "qwen");
        test_add(&c, "model-00001-of-00002.safetensors", "crooked", GRQ_U8, 1, (const uint64_t[]){ i % 2 + 1 }, 0);
        kind_qwen(&c, cases[i].dtype, cases[i].scale_rank);
        c.index = cases[i].index;
        check_qwen(&c, test_save(&c));
        grq_checkpoint *open;
        assert_ok(grq_checkpoint_open(c.folder, NULL, &open, &err), &err);
        const grq_geometry *const g = grq_checkpoint_geometry(open);
        assert_string_equal(g->family, "qwen38-ple");
        assert_true(g->n_layers == 1 && g->layer_ids[0] == 1 && g->n_rows[0] == 128 && g->pad_id == 7);
        assert_true(g->raw_ids && g->text_only && g->pad_cuts && g->conv_span == 9 && g->gain_offset == 1);
        assert_string_equal(grq_checkpoint_note(open), "");
        grq_checkpoint_close(open);
        test_checkpoint_free(&c);
    }
}

/* The table's height follows the file's moduli, and so do the rows of a window. */
static void the_files_hash_constants_win(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "constants");
    kind_qwen(&c, GRQ_BF16, 0);
    static const int64_t multipliers[] = { 3, 5, 9 }, sizes[] = { 20, 30, 25, 45 }, offsets[] = { 0, 20, 50, 75 };
    for (uint64_t i = 0; i < 3; i++) test_set(test_tensor_of(&c, "layer_multipliers"), i, &multipliers[i]);
    for (uint64_t i = 0; i < 4; i++) test_set(test_tensor_of(&c, "ngram_heads_vocab_sizes"), i, &sizes[i]);
    for (uint64_t i = 0; i < 4; i++) test_set(test_tensor_of(&c, "ngram_heads_offsets"), i, &offsets[i]);
    opened o;
    open_all(test_save(&c), 0, &o);
    if (!strstr(grq_checkpoint_note(o.checkpoint), "layer 1 hashes with the constants that the checkpoint holds"))
        fail_msg("the note is \"%s\"", grq_checkpoint_note(o.checkpoint));
    grq_hash_state past;
    int64_t rows[3 * KIND_COLUMNS];
    grq_hash_start(&past);
    static const int32_t ids[] = { 11, 40, 33 };
    assert_ok(grq_hash_rows(grq_checkpoint_geometry(o.checkpoint), 0, &past, ids, 3, rows, &err), &err);
    const int64_t x2 = (33 * 3) ^ (40 * 5), x3 = x2 ^ (11 * 9);
    const int64_t want[] = { x2 % 20, 20 + x2 % 30, 50 + x3 % 25, 75 + x3 % 45 };
    assert_memory_equal(rows + 2 * KIND_COLUMNS, want, sizeof want);
    close_all(&o);
    test_checkpoint_free(&c);
}

static void qwen_codes_that_are_no_numbers(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "qwen-nan");
    kind_qwen(&c, GRQ_F8_E4M3, 1);
    test_tensor_of(&c, "shard_9.weight")->bytes[3 * QWEN_DIM + 4] = 0x7F;
    opened o;
    float row[QWEN_DIM];
    open_all(test_save(&c), 0, &o);
    assert_refused(grq_table_fetch(o.table, 1, 1, (const int64_t[]){ 9 * 8 + 3 }, row, &err), GRQ_E_DATA, &err,
                   "model-00001-of-00002.safetensors:model.language_model.layers.1.ple.ple_embedding.ngram_embedding."
                   "shard_0.weight and 15 more: row 75, column 4: code 0x7F is no finite number");
    assert_refused(grq_table_fetch(o.table, 1, 2, (const int64_t[]){ 0, QWEN_ROWS }, row, &err), GRQ_E_DATA, &err,
                   "position 0, head 1: row 128 is not in the table of 128 rows");
    close_all(&o);
    test_checkpoint_free(&c);
}

/* ---- our own folders ---- */

static float own_row(test_checkpoint *c, uint64_t row, uint32_t column)
{
    const test_tensor *const t = tensor(c, "memory.1.table");
    const float x = test_number(t, row * OWN_DIM + column);
    return t->dtype == GRQ_F8_E4M3 ? x * test_number(tensor(c, "memory.1.table_scale"), row) : x;
}

static void check_own(test_checkpoint *c, const char *path, float offset)
{
    opened o;
    open_all(path, 0, &o);
    check_table(c, o.table, KIND_ROWS, OWN_DIM, own_row);
    const grq_memory_layer *const w = grq_layer_weights_view(o.weights);
    const bool fp8 = tensor(c, "memory.1.key")->dtype == GRQ_F8_E4M3;
    check_matrix(w->key_weight, tensor(c, "memory.1.key"), fp8 ? tensor(c, "memory.1.key_scale") : NULL, 0,
                 KIND_CHANNELS, 0);
    check_matrix(w->value_weight, tensor(c, "memory.1.value"), fp8 ? tensor(c, "memory.1.value_scale") : NULL, 0,
                 KIND_WIDTH, 0);
    check_matrix(w->query_gain, tensor(c, "memory.1.query_gain"), NULL, 0, KIND_BRANCHES, offset);
    check_matrix(w->key_gain, tensor(c, "memory.1.key_gain"), NULL, 0, KIND_BRANCHES, offset);
    check_matrix(w->conv_gain, tensor(c, "memory.1.conv_gain"), NULL, 0, KIND_BRANCHES, offset);
    check_matrix(w->key_bias, tensor(c, "memory.1.key_bias"), NULL, 0, 1, 0);
    check_matrix(w->value_bias, tensor(c, "memory.1.value_bias"), NULL, 0, 1, 0);
    check_taps(w->conv_weight, tensor(c, "memory.1.conv_weight"));
    close_all(&o);
}

static void own_folders_of_every_dtype(void **state)
{
    (void)state;
    static const grq_dtype dtypes[] = { GRQ_F32, GRQ_BF16, GRQ_F16, GRQ_F8_E4M3 };
    for (size_t i = 0; i < ARRAY_LEN(dtypes) * ARRAY_LEN(dtypes); i++) {
        test_checkpoint c;
        test_checkpoint_new(&c, "own");
        if (i % 3 == 0) test_add(&c, "memory.safetensors", "crooked", GRQ_U8, 1, (const uint64_t[]){ 1 }, 0);
        kind_own(&c, dtypes[i % 4], dtypes[i / 4]);
        if (i % 2) test_replace(&c, "\"gain_offset\": 0", "\"gain_offset\": 1");
        check_own(&c, test_save(&c), i % 2 ? 1 : 0);
        test_checkpoint_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deepseek_in_shards_and_in_one_file), cmocka_unit_test(deepseek_with_inverse_scale_names),
        cmocka_unit_test(deepseek_of_wide_numbers),           cmocka_unit_test(both_readings_of_scale_bytes),
        cmocka_unit_test(codes_that_are_no_numbers),          cmocka_unit_test(qwen_in_pieces),
        cmocka_unit_test(the_files_hash_constants_win),       cmocka_unit_test(qwen_codes_that_are_no_numbers),
        cmocka_unit_test(own_folders_of_every_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
