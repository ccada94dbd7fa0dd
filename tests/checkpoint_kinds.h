/* tests/checkpoint_kinds.h - one small checkpoint of every kind that can be opened, full of random numbers.
 * Source of names, dtypes and shapes: specs/deepseek-v41-engram.md section 3, specs/qwen38-ple.md section 3,
 * docs/format.md "Memory folders". */
#ifndef GATERQ_TESTS_CHECKPOINT_KINDS_H
#define GATERQ_TESTS_CHECKPOINT_KINDS_H

#include "checkpoint_support.h"

/* All kinds share these; the primes from 20 on are 23 29 31 37, then 41 43 47 53. */
enum { KIND_WIDTH = 24, KIND_BRANCHES = 2, KIND_COLUMNS = 4, KIND_IDS = 50, KIND_ROWS = 120, KIND_ROWS_2 = 184 };
enum { KIND_CHANNELS = KIND_WIDTH * KIND_BRANCHES };

/* ---- DeepSeek-V4.1: layers 1 and 3, rows of 40 values, so that the last scale of a row and of a tile cover fewer ----
 */

enum { DEEPSEEK_DIM = 40, DEEPSEEK_IN = DEEPSEEK_DIM * KIND_COLUMNS, DEEPSEEK_OUT = KIND_CHANNELS + KIND_WIDTH };

static const char deepseek_config[] =
    "{\"model_type\": \"deepseek_v41\", \"image_token_id\": 7, \"text_config\": {\"engram_layer_ids\": [1, 3], "
    "\"engram_max_ngram_size\": 3, \"engram_n_heads\": 2, \"engram_head_dim\": 40, \"engram_vocab_size\": 20, "
    "\"engram_compressed_vocab_size\": 50, \"engram_pad_token_id\": 2, \"engram_num_embeddings\": [120, 184], "
    "\"hidden_size\": 24, \"hc_mult\": 2, \"rms_norm_eps\": 1e-20}}";

/* Two shards, a layer each, read through an index. */
static inline void kind_deepseek(test_checkpoint *c)
{
    snprintf(c->config_name, sizeof c->config_name, "config.json");
    snprintf(c->config, sizeof c->config, "%s", deepseek_config);
    c->index = true;
    for (int l = 1; l <= 3; l += 2) {
        const uint64_t n_rows = l == 1 ? KIND_ROWS : KIND_ROWS_2;
        const struct {
            const char *name;
            grq_dtype dtype;
            uint64_t shape[2];
            double deviation;
        } tensors[] = {
            { "embed.weight", GRQ_F8_E4M3, { n_rows, DEEPSEEK_DIM }, 40 },
            { "embed.scale", GRQ_F8_E8M0, { n_rows, (DEEPSEEK_DIM + 31) / 32 }, 0 },
            { "wkv.weight", GRQ_F8_E4M3, { DEEPSEEK_OUT, DEEPSEEK_IN }, 4 },
            { "wkv.scale", GRQ_F8_E8M0, { (DEEPSEEK_OUT + 31) / 32, (DEEPSEEK_IN + 31) / 32 }, 0 },
            { "q_weight", GRQ_BF16, { KIND_BRANCHES, KIND_WIDTH }, 1 },
            { "k_weight", GRQ_BF16, { KIND_BRANCHES, KIND_WIDTH }, 1 },
        };
        for (size_t i = 0; i < ARRAY_LEN(tensors); i++) {
            char name[96], file[64];
            snprintf(name, sizeof name, "layers.%d.engram.%s", l, tensors[i].name);
            snprintf(file, sizeof file, "model-%05d-of-00048.safetensors", l == 1 ? 47 : 48);
            test_add(c, file, name, tensors[i].dtype, 2, tensors[i].shape, tensors[i].deviation);
        }
    }
}

/* ---- Qwen3.8: layer 1, rows of 10 values, 120 rows rounded up to 128 in 16 pieces of 8 ---- */

enum { QWEN_DIM = 10, QWEN_IN = QWEN_DIM * KIND_COLUMNS, QWEN_PIECES = 16, QWEN_ROWS = 128, QWEN_TAPS = 4 };

static const char qwen_config[] =
    "{\"model_type\": \"qwen4_exp\", \"text_config\": {\"ple_layer_ids\": [2], \"ngram_size\": 3, "
    "\"heads_per_ngram\": 2, \"hidden_size\": 24, \"hc_count\": 2, \"ple_embed_dim\": 40, "
    "\"ngram_vocab_size_base\": 20, \"make_ngram_vocab_size_divisible_by\": 16, \"vocab_size\": 50, "
    "\"eos_token_id\": 7, \"ple_conv_kernel_size\": 4, \"rms_norm_eps\": 1e-06, \"seed\": 1234}}";

#define QWEN_PREFIX "model.language_model.layers.1.ple."

/* The rule of specs/qwen38-ple.md section 4.1, written once more. */
static inline uint64_t qwen_multiplier(uint64_t i)
{
    const uint64_t step = UINT64_C(0x9E3779B97F4A7C15), half = (uint64_t)INT64_MAX / KIND_IDS / 2;
    uint64_t v = 1234 + step * (i + 1) + step;
    v = (v ^ v >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    v = (v ^ v >> 27) * UINT64_C(0x94D049BB133111EB);
    return 2 * ((v ^ v >> 31) % half) + 1;
}

static inline void kind_integers(test_checkpoint *c, const char *file, const char *name, size_t n, const int64_t *x)
{
    test_tensor *const t = test_add(c, file, name, GRQ_I64, 1, (const uint64_t[]){ n }, 0);
    for (size_t i = 0; i < n; i++) test_set(t, i, &x[i]);
}

/* Without an index; the pieces lie in two files, even numbers in one and odd ones in the other. `table`: GRQ_BF16, or
 * GRQ_F8_E4M3, whose one scale has rank `scale_rank`. */
static inline void kind_qwen(test_checkpoint *c, grq_dtype table, uint32_t scale_rank)
{
    static const char first[] = "model-00001-of-00002.safetensors", second[] = "model-00002-of-00002.safetensors";
    snprintf(c->config_name, sizeof c->config_name, "config.json");
    snprintf(c->config, sizeof c->config, "%s", qwen_config);
    for (int i = 0; i < QWEN_PIECES; i++) {
        char name[128];
        snprintf(name, sizeof name, QWEN_PREFIX "ple_embedding.ngram_embedding.shard_%d.weight", i);
        test_add(c, i % 2 ? second : first, name, table, 2, (const uint64_t[]){ QWEN_ROWS / QWEN_PIECES, QWEN_DIM },
                 table == GRQ_BF16 ? 1 : 40);
    }
    if (table == GRQ_F8_E4M3)
        test_set_number(test_add(c, second, QWEN_PREFIX "ple_embedding.ngram_embedding.weight_scale", GRQ_BF16,
                                 scale_rank, (const uint64_t[]){ 1 }, 0),
                        0, 0.0251f);
    kind_integers(
        c, first, QWEN_PREFIX "ple_embedding.layer_multipliers", 3,
        (const int64_t[]){ (int64_t)qwen_multiplier(0), (int64_t)qwen_multiplier(1), (int64_t)qwen_multiplier(2) });
    kind_integers(c, first, QWEN_PREFIX "ple_embedding.ngram_heads_vocab_sizes", 4,
                  (const int64_t[]){ 23, 29, 31, 37 });
    kind_integers(c, first, QWEN_PREFIX "ple_embedding.ngram_heads_offsets", 4, (const int64_t[]){ 0, 23, 52, 83 });
    test_add(c, second, QWEN_PREFIX "key_proj.weight", GRQ_BF16, 2, (const uint64_t[]){ KIND_CHANNELS, QWEN_IN }, 0.2);
    test_add(c, second, QWEN_PREFIX "value_proj.weight", GRQ_BF16, 2, (const uint64_t[]){ KIND_WIDTH, QWEN_IN }, 0.2);
    test_add(c, second, QWEN_PREFIX "norm_query.weight", GRQ_BF16, 1, (const uint64_t[]){ KIND_CHANNELS }, 0.2);
    test_add(c, second, QWEN_PREFIX "norm_key.weight", GRQ_BF16, 1, (const uint64_t[]){ KIND_CHANNELS }, 0.2);
    test_add(c, second, QWEN_PREFIX "norm_conv.weight", GRQ_BF16, 1, (const uint64_t[]){ KIND_CHANNELS }, 0.2);
    test_add(c, second, QWEN_PREFIX "conv1d.weight", GRQ_BF16, 3, (const uint64_t[]){ KIND_CHANNELS, 1, QWEN_TAPS },
             0.5);
}

/* ---- our own folder, with the original Engram's rules: layer 1, biases, convolution ---- */

enum { OWN_DIM = 8, OWN_IN = OWN_DIM * KIND_COLUMNS, OWN_TAPS = 4 };

static const char own_config[] =
    "{\"family\": \"engram-v1\", \"layer_ids\": [1], \"min_order\": 2, \"max_order\": 3, \"n_heads\": 2, "
    "\"row_dim\": 8, \"width\": 24, \"n_branches\": 2, \"prime_start\": 20, \"n_ids\": 50, \"pad_id\": 2, "
    "\"multiplier_seed\": 10007, \"norm_eps\": 1e-6, \"gate_clamp\": 1e-6, \"text_only\": true, \"bias\": true, "
    "\"gain_offset\": 0, \"zero_rule\": \"half\", \"conv_kernel\": 4, \"conv_dilation\": 3, \"conv_eps\": 1e-5, "
    "\"n_rows\": [120]}";

/* One file. `table`: F32, BF16, F16 or F8_E4M3; all else is `weights`, but gains and biases where that is F8_E4M3. */
static inline void kind_own(test_checkpoint *c, grq_dtype table, grq_dtype weights)
{
    static const char file[] = "memory.safetensors";
    const grq_dtype small = weights == GRQ_F8_E4M3 ? GRQ_F32 : weights;
    snprintf(c->config_name, sizeof c->config_name, "memory.json");
    snprintf(c->config, sizeof c->config, "%s", own_config);
    test_add(c, file, "memory.1.table", table, 2, (const uint64_t[]){ KIND_ROWS, OWN_DIM },
             table == GRQ_F8_E4M3 ? 40 : 1);
    if (table == GRQ_F8_E4M3)
        test_add(c, file, "memory.1.table_scale", GRQ_F8_E8M0, 2, (const uint64_t[]){ KIND_ROWS, 1 }, 0);
    const double deviation = weights == GRQ_F8_E4M3 ? 8 : 0.2;
    test_add(c, file, "memory.1.key", weights, 2, (const uint64_t[]){ KIND_CHANNELS, OWN_IN }, deviation);
    test_add(c, file, "memory.1.value", weights, 2, (const uint64_t[]){ KIND_WIDTH, OWN_IN }, deviation);
    if (weights == GRQ_F8_E4M3) {
        test_add(c, file, "memory.1.key_scale", GRQ_F8_E8M0, 2, (const uint64_t[]){ 2, 1 }, 0);
        test_add(c, file, "memory.1.value_scale", GRQ_F8_E8M0, 2, (const uint64_t[]){ 1, 1 }, 0);
    }
    static const char *const gains[] = { "query_gain", "key_gain", "conv_gain" };
    for (size_t i = 0; i < ARRAY_LEN(gains); i++) {
        char name[64];
        snprintf(name, sizeof name, "memory.1.%s", gains[i]);
        test_add(c, file, name, small, 2, (const uint64_t[]){ KIND_BRANCHES, KIND_WIDTH }, 1);
    }
    test_add(c, file, "memory.1.key_bias", small, 1, (const uint64_t[]){ KIND_CHANNELS }, 0.1);
    test_add(c, file, "memory.1.value_bias", small, 1, (const uint64_t[]){ KIND_WIDTH }, 0.1);
    test_add(c, file, "memory.1.conv_weight", small, 2, (const uint64_t[]){ KIND_CHANNELS, OWN_TAPS }, 0.5);
}

#endif
