/* What is wrong with a checkpoint is said by the name of the tensor, the file or the setting. Sources:
 * specs/deepseek-v41-engram.md sections 2 and 3, specs/qwen38-ple.md sections 2 and 3, docs/format.md "Memory folders".
 */
#include "checkpoint_open.h"

/* ---- Qwen3.8's constants and pieces ---- */

static void hash_constants_that_make_no_sense(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t element;
        int64_t value;
        const char *message;
    } cases[] = {
        { "layer_multipliers", 1, -1, "layer_multipliers: element 1 is -1" },
        { "layer_multipliers", 2, INT64_MAX, "layer 1: multiplier 2, 9223372036854775807, is too large for 50 ids" },
        { "layer_multipliers", 0, INT64_MAX / 50 + 1, "multiplier 0, " },
        { "ngram_heads_vocab_sizes", 3, 0, "layer 1: head 3 has 0 rows" },
        { "ngram_heads_vocab_sizes", 0, -23, "ngram_heads_vocab_sizes: element 0 is -23" },
        { "ngram_heads_vocab_sizes", 2, INT64_MAX, "head 2 has 9223372036854775807 rows" },
        { "ngram_heads_vocab_sizes", 1, 28, "head 2 has 31 rows from 52 on, not from 51" },
        /* 129 rows are 144, 18 pieces of 8, of which two are missing */
        { "ngram_heads_vocab_sizes", 3, 46, "shard_16.weight\" is missing" },
        { "ngram_heads_offsets", 0, 1, "head 0 has 23 rows from 1 on, not from 0" },
        { "ngram_heads_offsets", 3, 84, "head 3 has 37 rows from 84 on, not from 83" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        test_checkpoint c;
        test_checkpoint_new(&c, "senseless");
        kind_qwen(&c, GRQ_BF16, 0);
        test_set(test_tensor_of(&c, cases[i].name), cases[i].element, &cases[i].value);
        assert_spoilt(&c, cases[i].message);
        test_checkpoint_free(&c);
    }
}

static void qwen_tables_that_make_no_sense(void **state)
{
    (void)state;
    static const uint64_t nine[] = { 9, QWEN_DIM }, wide[] = { 8, QWEN_DIM + 1 }, packed[] = { 8, QWEN_DIM / 2 },
                          none[] = { 0, QWEN_DIM }, whole[] = { QWEN_ROWS, QWEN_DIM }, two[] = { 2 },
                          eight[] = { 8, QWEN_DIM }, three[] = { 3 }, four[] = { 4 };
    static const struct {
        const char *name;
        grq_dtype dtype;
        uint32_t rank;
        const uint64_t *shape;
        const char *message;
    } cases[] = {
        { "shard_0.weight", GRQ_U8, 2, packed, "shard_0.weight is U8: NVFP4 tables cannot be read" },
        { "shard_7.weight", GRQ_U8, 2, packed, "shard_7.weight\" must be F8_E4M3 (8, 10), is U8 (8, 5)" },
        { "shard_0.weight", GRQ_F8_E4M3, 2, nine, "add up to 128 rows; this one is (9, 10)" },
        { "shard_0.weight", GRQ_F8_E4M3, 2, wide, "must be (rows, 10) and add up to 128 rows; this one is (8, 11)" },
        { "shard_0.weight", GRQ_F8_E4M3, 2, none, "this one is (0, 10)" },
        { "shard_0.weight", GRQ_F8_E4M3, 1, two, "this one is (2, 0)" },
        { "shard_0.weight", GRQ_F8_E4M3, 0, two, "this one is (0, 0)" },
        { "shard_0.weight", GRQ_F8_E4M3, 2, whole, "shard_1.weight: 1 pieces of 128 rows already hold the table" },
        { "shard_0.weight", GRQ_I32, 2, eight, "shard_0.weight is I32; BF16, F8_E4M3" },
        { "shard_10.weight", GRQ_BF16, 2, eight, "shard_10.weight\" must be F8_E4M3" },
        { "shard_15.weight", GRQ_F8_E4M3, 2, nine, "shard_15.weight\" must be F8_E4M3 (8, 10), is F8_E4M3 (9, 10)" },
        { "weight_scale", GRQ_BF16, 1, two, "weight_scale must be one BF16 or F32 number, is BF16 of 4 bytes" },
        { "weight_scale", GRQ_F16, 0, two, "weight_scale must be one BF16 or F32 number, is F16" },
        { "layer_multipliers", GRQ_F32, 1, three, "layer_multipliers\" must be I64 (3), is F32 (3)" },
        { "layer_multipliers", GRQ_I64, 1, two, "layer_multipliers\" must be I64 (3), is I64 (2)" },
        { "ngram_heads_offsets", GRQ_I32, 1, four, "ngram_heads_offsets\" must be I64 (4)" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        test_checkpoint c;
        test_checkpoint_new(&c, "pieces");
        kind_qwen(&c, GRQ_F8_E4M3, 1);
        test_reshape(&c, cases[i].name, cases[i].dtype, cases[i].rank, cases[i].shape);
        assert_spoilt(&c, cases[i].message);
        test_checkpoint_free(&c);
    }
    test_checkpoint c;
    test_checkpoint_new(&c, "scale");
    kind_qwen(&c, GRQ_F8_E4M3, 1);
    const uint16_t nan = 0x7FC0;
    test_set(test_tensor_of(&c, "weight_scale"), 0, &nan);
    assert_spoilt(&c, "ngram_embedding.weight_scale is nan");
    /* An FP8 projection has scales of which nothing is known. */
    kind_integers(&c, "model-00001-of-00002.safetensors", QWEN_PREFIX "key_proj.weight_scale_inv", 1, (int64_t[]){ 0 });
    test_set_number(test_tensor_of(&c, "ngram_embedding.weight_scale"), 0, 1);
    assert_spoilt(&c, "key_proj.weight_scale_inv\": quantised projections cannot be read");
    test_checkpoint_free(&c);
}

/* ---- what is missing or of another kind, tensor by tensor ---- */

typedef enum { DEEPSEEK, QWEN, QWEN_FP8, OWN, OWN_FP8, N_KINDS } kind;

static void make(test_checkpoint *c, kind k)
{
    test_checkpoint_new(c, "spoilt");
    if (k == DEEPSEEK) kind_deepseek(c);
    else if (k == QWEN || k == QWEN_FP8) kind_qwen(c, k == QWEN ? GRQ_BF16 : GRQ_F8_E4M3, 1);
    else kind_own(c, k == OWN ? GRQ_BF16 : GRQ_F8_E4M3, k == OWN ? GRQ_F32 : GRQ_F8_E4M3);
}

/* How many tensors layer 0 needs: those of DeepSeek's second layer follow. */
static size_t n_needed(const test_checkpoint *c, kind k)
{
    return k == DEEPSEEK ? c->n_tensors / 2 : c->n_tensors;
}

static void every_tensor_is_missed_by_name(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++) {
        test_checkpoint c;
        make(&c, (kind)k);
        const size_t n = n_needed(&c, (kind)k);
        test_checkpoint_free(&c);
        for (size_t i = 0; i < n; i++) {
            make(&c, (kind)k);
            char wanted[200];
            const char *const name = c.tensors[i].name, *const dot = strstr(name, "layers.");
            snprintf(wanted, sizeof wanted, "%s", dot ? dot : name); /* a missing q_weight takes the prefix with it */
            test_drop(&c, wanted);
            assert_spoilt(&c, wanted);
            if (!strstr(err.message, "missing")) fail_msg("not called missing: %s", err.message);
            test_checkpoint_free(&c);
        }
    }
}

/* I32 in place of the dtype; a row more, a column fewer, an axis more. Shapes are checked before memory is taken. */
static void every_tensor_has_one_dtype_and_shape(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++) {
        test_checkpoint c;
        make(&c, (kind)k);
        const size_t n = n_needed(&c, (kind)k);
        test_checkpoint_free(&c);
        for (size_t i = 0; i < n; i++)
            for (int how = 0; how < 4; how++) {
                make(&c, (kind)k);
                test_tensor *const t = &c.tensors[i];
                char name[160];
                snprintf(name, sizeof name, "%s", t->name);
                uint64_t shape[4] = { t->shape[0], t->shape[1], t->shape[2], 1 };
                uint32_t rank = t->rank;
                if (how == 1) shape[0]++;
                if (how == 2) shape[rank - 1]--;
                if (how == 3) shape[rank++] = 1;
                if (how == 3 && strstr(name, "weight_scale")) rank++, shape[1] = 2; /* () and (1) are both fine */
                if (how == 2 && test_elements(t) == 1) shape[0] = 0;
                test_reshape(&c, name, how == 0 ? GRQ_I32 : t->dtype, rank, shape);
                assert_spoilt(&c, name);
                test_checkpoint_free(&c);
            }
    }
}

/* ---- shards ---- */

static void cut(const test_checkpoint *c, const char *file, off_t n_bytes)
{
    char path[PATH_MAX + 80];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", c->folder, file);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - n_bytes), 0);
}

static void a_shard_that_is_cut_short(void **state)
{
    (void)state;
    opened o;
    test_checkpoint c;
    test_checkpoint_new(&c, "cut");
    kind_qwen(&c, GRQ_BF16, 0);
    test_save(&c);
    cut(&c, "model-00002-of-00002.safetensors", 1);
    assert_refused(try_open(c.folder, 0, &o), GRQ_E_DATA, &err, "model-00002-of-00002.safetensors");
    /* Through the index a file is opened when it is needed: DeepSeek's layer 1 lies in the other one. */
    test_checkpoint_free(&c);
    test_checkpoint_new(&c, "cut-index");
    kind_deepseek(&c);
    test_save(&c);
    cut(&c, "model-00048-of-00048.safetensors", 5);
    open_all(c.folder, 0, &o);
    close_all(&o);
    assert_refused(try_open(c.folder, 1, &o), GRQ_E_DATA, &err, "model-00048-of-00048.safetensors");
    cut(&c, "model-00047-of-00048.safetensors", 100);
    assert_refused(try_open(c.folder, 0, &o), GRQ_E_DATA, &err, "model-00047-of-00048.safetensors");
    test_checkpoint_free(&c);
}

static void an_index_that_is_wrong(void **state)
{
    (void)state;
    opened o;
    test_checkpoint c;
    char path[PATH_MAX + 80];
    test_checkpoint_new(&c, "index");
    kind_deepseek(&c);
    test_save(&c);
    snprintf(path, sizeof path, "%s/model-00047-of-00048.safetensors", c.folder);
    assert_int_equal(unlink(path), 0);
    assert_refused(try_open(c.folder, 0, &o), GRQ_E_IO, &err, "model-00047-of-00048.safetensors: No such file");
    open_all(c.folder, 1, &o);
    close_all(&o);
    /* The file is there, and the tensor in none. */
    test_tensor *const wkv = test_tensor_of(&c, "layers.1.engram.wkv.weight");
    test_save(&c);
    static const char name[] = "layers.1.engram.wkv.weight";
    strcpy(wkv->name, "layers.1.engram.other");
    test_save_file(&c, "model-00047-of-00048.safetensors");
    assert_refused(try_open(c.folder, 0, &o), GRQ_E_DATA, &err, name);
    if (!strstr(err.message, "though model.safetensors.index.json says")) fail_msg("%s", err.message);
    /* Two layers' worth of names that could be the layer's: which one is meant? */
    strcpy(wkv->name, name);
    test_add(&c, "model-00048-of-00048.safetensors", "draft.layers.1.engram.q_weight", GRQ_BF16, 2,
             (const uint64_t[]){ KIND_BRANCHES, KIND_WIDTH }, 1);
    assert_spoilt(&c, "both draft.layers.1.engram.q_weight and layers.1.engram.q_weight could be");
    test_checkpoint_free(&c);
}

static void nvfp4_is_refused(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "nvfp4");
    kind_deepseek(&c);
    test_reshape(&c, "layers.1.engram.embed.weight", GRQ_U8, 2, (const uint64_t[]){ KIND_ROWS, DEEPSEEK_DIM / 2 });
    assert_spoilt(&c, "layers.1.engram.embed.weight\" is U8; F32, BF16, F16 and F8_E4M3 can be read");
    test_checkpoint_free(&c);
    test_checkpoint_new(&c, "nvfp4-qwen");
    kind_qwen(&c, GRQ_BF16, 0);
    for (int i = 0; i < QWEN_PIECES; i++) {
        char name[64];
        snprintf(name, sizeof name, "shard_%d.weight", i);
        test_reshape(&c, name, GRQ_U8, 2, (const uint64_t[]){ QWEN_ROWS / QWEN_PIECES, QWEN_DIM / 2 });
    }
    assert_spoilt(&c, "NVFP4 tables cannot be read");
    test_checkpoint_free(&c);
}

/* ---- configurations ---- */

static const struct {
    kind kind;
    const char *from, *to, *message;
} configs[] = {
    { DEEPSEEK, "[1, 3]", "[]", "engram_layer_ids: 0 layers" },
    { DEEPSEEK, "[1, 3]", "[1, 1]", "config.json: text_config: layer_ids: 1 does not follow 1" },
    { DEEPSEEK, "[1, 3]", "[3, 1]", "layer_ids: 1 does not follow 3" },
    { DEEPSEEK, "[1, 3]", "[1, 2, 3, 4, 5, 6, 7, 8, 9]", "engram_layer_ids: 9 layers; 1 to 8 are possible" },
    { DEEPSEEK, "[1, 3]", "[1, -3]", "engram_layer_ids" },
    { DEEPSEEK, "[1, 3]", "[1.5, 3]", "engram_layer_ids" },
    { DEEPSEEK, "[1, 3]", "1", "engram_layer_ids" },
    { DEEPSEEK, "[1, 3]", "[2, 3]", "tensor \"layers.2.engram.q_weight\" is missing" },
    { DEEPSEEK, "[120, 184]", "[120, 185]", "layer 3 has 185 rows, but its primes sum to 184" },
    { DEEPSEEK, "[120, 184]", "[120]", "engram_num_embeddings: 1 numbers for 2 layers" },
    { DEEPSEEK, "[120, 184]", "120", "engram_num_embeddings" },
    { DEEPSEEK, "\"engram_vocab_size\": 20", "\"engram_vocab_size\": 24", "layer 1 has 120 rows, but" },
    { DEEPSEEK, "\"engram_vocab_size\": 20", "\"engram_vocab_size\": 1", "engram_vocab_size" },
    { DEEPSEEK, "\"engram_n_heads\": 2", "\"engram_n_heads\": 0", "engram_n_heads" },
    { DEEPSEEK, "\"engram_n_heads\": 2", "\"engram_n_heads\": 33", "are not 1 to 64 columns" },
    { DEEPSEEK, "\"engram_n_heads\": 2, ", "", "\"engram_n_heads\" is missing" },
    { DEEPSEEK, "\"engram_head_dim\": 40", "\"engram_head_dim\": 65536", "must be " },
    { DEEPSEEK, "\"engram_head_dim\": 40", "\"engram_head_dim\": 65537", "engram_head_dim" },
    { DEEPSEEK, "\"engram_pad_token_id\": 2", "\"engram_pad_token_id\": 50", "engram_pad_token_id" },
    { DEEPSEEK, "\"hc_mult\": 2", "\"hc_mult\": 4294967298", "hc_mult" },
    { DEEPSEEK, "\"hc_mult\": 2", "\"hc_mult\": 3", "must be " },
    { DEEPSEEK, "1e-20", "0", "norm_eps: 0 must be finite and at least" },
    { DEEPSEEK, "1e-20", "-1", "rms_norm_eps" },
    { DEEPSEEK, "1e-20", "NaN", "config.json" },
    { DEEPSEEK, "1e-20", "1e400", "rms_norm_eps" },
    { DEEPSEEK, "\"hidden_size\": 24", "\"hidden_size\": 24, \"hidden_size\": 24", "hidden_size: appears twice" },
    { DEEPSEEK, "1e-20}}", "1e-20}} {}", "config.json" },
    { DEEPSEEK, "1e-20}}", "1e-20}", "config.json" },
    { DEEPSEEK, "engram_layer_ids", "layer_ids", "neither engram_layer_ids (DeepSeek-V4.1) nor ple_layer_ids" },
    { QWEN, "[2]", "[0]", "ple_layer_ids" },
    { QWEN, "[2]", "[3]", "tensor \"layers.2.ple.norm_key.weight\" is missing" },
    { QWEN, "\"ple_embed_dim\": 40", "\"ple_embed_dim\": 41", "ple_embed_dim: 41 values do not divide over 4 heads" },
    { QWEN, "\"ple_embed_dim\": 40", "\"ple_embed_dim\": 0", "ple_embed_dim: 0 values" },
    { QWEN, "\"ple_embed_dim\": 40", "\"ple_embed_dim\": 44", "pieces must be (rows, 11)" },
    { QWEN, "divisible_by\": 16", "divisible_by\": 0", "make_ngram_vocab_size_divisible_by" },
    { QWEN, "divisible_by\": 16", "divisible_by\": 36", "shard_16.weight\" is missing" },
    { QWEN, "\"eos_token_id\": 7", "\"eos_token_id\": [7, 8]", "eos_token_id" },
    { QWEN, "\"eos_token_id\": 7", "\"eos_token_id\": 50", "eos_token_id" },
    { QWEN, "\"ple_conv_kernel_size\": 4", "\"ple_conv_kernel_size\": 17", "ple_conv_kernel_size" },
    { QWEN, "\"ple_conv_kernel_size\": 4", "\"ple_conv_kernel_size\": 3", "conv1d.weight\" must be BF16 (48, 1, 3)" },
    { QWEN, "\"ngram_size\": 3", "\"ngram_size\": 9", "ngram_size" },
    { QWEN, "\"vocab_size\": 50", "\"vocab_size\": 2147483648", "vocab_size" },
    { OWN, "\"gate_clamp\": 1e-6", "\"gate_clamp\": 1e-6, \"gates\": 1", "gates" },
    { OWN, "\"n_rows\": [120]", "\"n_rows\": [121]", "layer 1 would have 121 rows, but its primes sum to 120" },
    { OWN, "\"bias\": true", "\"bias\": 1", "bias" },
    { OWN, "\"conv_kernel\": 4", "\"conv_kernel\": 5", "memory.1.conv_weight\" must be F32 (48, 5)" },
    { OWN, "\"conv_dilation\": 3", "\"conv_dilation\": 0", "dilation 0" },
    { OWN, "\"layer_ids\": [1]", "\"layer_ids\": [2]", "tensor \"memory.2.table\" is missing" },
};

static void configurations_are_read_strictly(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
        test_checkpoint c;
        opened o;
        make(&c, configs[i].kind);
        test_replace(&c, configs[i].from, configs[i].to);
        const grq_status st = try_open(test_save(&c), 0, &o);
        if (st != GRQ_E_DATA || !strstr(err.message, configs[i].message))
            fail_msg("%s for %s: status %d: %s (expected %s)", configs[i].to, configs[i].from, (int)st,
                     st == GRQ_OK ? "accepted" : err.message, configs[i].message);
        test_checkpoint_free(&c);
    }
}

/* engram_pad_id is transformers' name for it; without either it is 2. */
static void the_names_of_the_pad_id(void **state)
{
    (void)state;
    static const char *const names[] = { "\"engram_pad_token_id\": 5, ", "\"engram_pad_id\": 5, ", "" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        test_checkpoint c;
        grq_checkpoint *open;
        make(&c, DEEPSEEK);
        test_replace(&c, "\"engram_pad_token_id\": 2, ", names[i]);
        assert_ok(grq_checkpoint_open(test_save(&c), NULL, &open, &err), &err);
        assert_int_equal(grq_checkpoint_geometry(open)->pad_id, i < 2 ? 5 : 2);
        grq_checkpoint_close(open);
        test_checkpoint_free(&c);
    }
}

/* Folders that are no checkpoint of any kind; a pipe where a file should be must not be waited for. */
static void what_is_no_checkpoint(void **state)
{
    (void)state;
    grq_checkpoint *open;
    test_checkpoint c;
    char path[PATH_MAX + 80];
    make(&c, OWN);
    c.config_name[0] = '\0';
    assert_refused(grq_checkpoint_open(test_save(&c), NULL, &open, &err), GRQ_E_DATA, &err,
                   "spoilt: no checkpoint with a memory: config.json (DeepSeek-V4.1, Qwen3.8), memory.json or");
    assert_null(open);
    snprintf(path, sizeof path, "%s/memory.safetensors", c.folder);
    assert_refused(grq_checkpoint_open(path, NULL, &open, &err), GRQ_E_DATA, &err, "memory.safetensors: no checkpoint");
    static const char *const names[] = { "memory.json", "config.json" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", c.folder, names[i]);
        test_save_text(&c, names[i], "");
        assert_refused(grq_checkpoint_open(c.folder, NULL, &open, &err), GRQ_E_DATA, &err, names[i]);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_refused(grq_checkpoint_open(c.folder, NULL, &open, &err), GRQ_E_IO, &err, names[i]);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        alarm(60);
        assert_refused(grq_checkpoint_open(c.folder, NULL, &open, &err), GRQ_E_IO, &err, names[i]);
        alarm(0);
        assert_int_equal(unlink(path), 0);
    }
    test_checkpoint_free(&c);
    grq_checkpoint_close(NULL);
    grq_layer_weights_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_constants_that_make_no_sense),
        cmocka_unit_test(qwen_tables_that_make_no_sense),
        cmocka_unit_test(every_tensor_is_missed_by_name),
        cmocka_unit_test(every_tensor_has_one_dtype_and_shape),
        cmocka_unit_test(a_shard_that_is_cut_short),
        cmocka_unit_test(an_index_that_is_wrong),
        cmocka_unit_test(nvfp4_is_refused),
        cmocka_unit_test(configurations_are_read_strictly),
        cmocka_unit_test(the_names_of_the_pad_id),
        cmocka_unit_test(what_is_no_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
