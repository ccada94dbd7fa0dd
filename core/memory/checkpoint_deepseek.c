/* DeepSeek-V4.1's checkpoints. Source: specs/deepseek-v41-engram.md sections 2 and 3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/checkpoint_internal.h"

static grq_status read_layers(grq_json_node *config, grq_geometry *g, grq_error *err)
{
    grq_json_node *list;
    grq_status st = grq_json_array(config, "engram_layer_ids", &list, err);
    if (st != GRQ_OK) return st;
    if (grq_json_count(list) < 1 || grq_json_count(list) > GRQ_MAX_MEMORY_LAYERS)
        return grq_fail(err, GRQ_E_DATA, "%s: %zu layers; 1 to %d are possible", grq_json_where(list),
                        grq_json_count(list), GRQ_MAX_MEMORY_LAYERS);
    g->n_layers = (uint32_t)grq_json_count(list);
    for (uint32_t l = 0; st == GRQ_OK && l < g->n_layers; l++) {
        uint64_t id;
        st = grq_json_as_u64(grq_json_at(list, l), 0, 100000, &id, err);
        if (st == GRQ_OK) g->layer_ids[l] = (uint32_t)id;
    }
    return st;
}

/* The file says engram_pad_token_id; transformers says engram_pad_id. Both are a raw id, whose compressed id is the
 * same number: the first ids of the tokenizer map to themselves. */
static grq_status read_pad(grq_json_node *config, grq_geometry *g, grq_error *err)
{
    uint64_t pad = 2;
    const char *const key = grq_json_find(config, "engram_pad_token_id") ? "engram_pad_token_id" : "engram_pad_id";
    const grq_status st = grq_json_find(config, key) ? grq_json_u64(config, key, 0, g->n_ids - 1, &pad, err) : GRQ_OK;
    g->pad_id = (int32_t)pad;
    return st;
}

/* What the checkpoint was made with must be what we derive: a table of another size means other hashes. */
static grq_status check_rows(grq_json_node *config, const grq_geometry *g, grq_error *err)
{
    grq_json_node *list;
    if (!grq_json_find(config, "engram_num_embeddings")) return GRQ_OK;
    grq_status st = grq_json_array(config, "engram_num_embeddings", &list, err);
    if (st == GRQ_OK && grq_json_count(list) != g->n_layers)
        st = grq_fail(err, GRQ_E_DATA, "%s: %zu numbers for %u layers", grq_json_where(list), grq_json_count(list),
                      g->n_layers);
    for (uint32_t l = 0; st == GRQ_OK && l < g->n_layers; l++) {
        uint64_t n;
        st = grq_json_as_u64(grq_json_at(list, l), 1, INT64_MAX, &n, err);
        if (st == GRQ_OK && n != g->n_rows[l])
            st = grq_fail(err, GRQ_E_DATA, "%s: layer %u has %llu rows, but its primes sum to %llu",
                          grq_json_where(list), g->layer_ids[l], (unsigned long long)n,
                          (unsigned long long)g->n_rows[l]);
    }
    return st;
}

static grq_status read_geometry(grq_checkpoint *c, grq_json_node *config, grq_error *err)
{
    grq_geometry *const g = &c->geometry;
    *g = (grq_geometry){ .family = "deepseek-v41",
                         .min_order = 2,
                         .multiplier_seed = 10007,
                         .gate_clamp = 1e-6,
                         .rounding = GRQ_ROUNDING_DEEPSEEK_V41 };
    grq_status st = read_layers(config, g, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "engram_max_ngram_size", 2, GRQ_MAX_ORDER, &g->max_order, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "engram_n_heads", 1, GRQ_MAX_COLUMNS, &g->n_heads, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "engram_head_dim", 1, 65536, &g->row_dim, err);
    if (st == GRQ_OK) st = checkpoint_u64(config, "engram_vocab_size", 2, (uint64_t)1 << 40, &g->prime_start, err);
    if (st == GRQ_OK) st = checkpoint_u64(config, "engram_compressed_vocab_size", 1, INT32_MAX, &g->n_ids, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "hidden_size", 1, 65536, &g->width, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "hc_mult", 1, 64, &g->n_branches, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "rms_norm_eps", 0, 1, &g->norm_eps, err);
    if (st == GRQ_OK) st = read_pad(config, g, err);
    if (st == GRQ_OK) {
        st = grq_geometry_derive(g, err);
        if (st != GRQ_OK) grq_fail_prefix(err, st, "%s", grq_json_where(config));
    }
    if (st == GRQ_OK) st = check_rows(config, g, err);
    char suffix[64];
    snprintf(suffix, sizeof suffix, "layers.%u.engram.q_weight", g->layer_ids[0]);
    return st == GRQ_OK ? checkpoint_find_prefix(c, suffix, c->prefix, err) : st;
}

static void tensor_name(const grq_checkpoint *c, uint32_t layer_index, const char *what, char *name)
{
    snprintf(name, CHECKPOINT_NAME_BYTES, "%slayers.%u.engram.%s", c->prefix, c->geometry.layer_ids[layer_index], what);
}

/* Exports call the scales .scale or .weight_scale_inv. */
static grq_status scale_name(grq_checkpoint *c, uint32_t layer_index, const char *module, char *name, grq_error *err)
{
    char what[64];
    const grq_tensor *t;
    snprintf(what, sizeof what, "%s.weight_scale_inv", module);
    tensor_name(c, layer_index, what, name);
    const grq_status st = grq_shards_find(c->shards, name, &t, NULL, err);
    if (st != GRQ_OK || t) return st;
    snprintf(what, sizeof what, "%s.scale", module);
    tensor_name(c, layer_index, what, name);
    return GRQ_OK;
}

static grq_status open_table(grq_checkpoint *c, uint32_t l, grq_table **out, grq_error *err)
{
    char name[CHECKPOINT_NAME_BYTES], scales[CHECKPOINT_NAME_BYTES];
    tensor_name(c, l, "embed.weight", name);
    const grq_status st = scale_name(c, l, "embed", scales, err);
    return st == GRQ_OK ? checkpoint_table(c, name, scales, c->geometry.n_rows[l], c->geometry.row_dim, out, err) : st;
}

/* wkv: the keys of all branches, then the value. */
static grq_status read_weights(grq_checkpoint *c, uint32_t l, grq_layer_weights *w, grq_error *err)
{
    const grq_geometry *const g = &c->geometry;
    const size_t channels = (size_t)g->n_branches * g->width;
    char name[CHECKPOINT_NAME_BYTES], scales[CHECKPOINT_NAME_BYTES];
    tensor_name(c, l, "wkv.weight", name);
    grq_status st = scale_name(c, l, "wkv", scales, err);
    if (st == GRQ_OK) st = checkpoint_read(c, name, scales, channels + g->width, g->row_values, &w->key_weight, err);
    if (st == GRQ_OK) {
        const size_t n = (size_t)g->width * g->row_values;
        w->value_weight = malloc(n * sizeof *w->value_weight);
        if (!w->value_weight) return grq_fail(err, GRQ_E_NOMEM, "no memory for %s", name);
        memcpy(w->value_weight, w->key_weight + channels * g->row_values, n * sizeof *w->value_weight);
    }
    tensor_name(c, l, "q_weight", name);
    if (st == GRQ_OK) st = checkpoint_read(c, name, NULL, g->n_branches, g->width, &w->query_gain, err);
    tensor_name(c, l, "k_weight", name);
    return st == GRQ_OK ? checkpoint_read(c, name, NULL, g->n_branches, g->width, &w->key_gain, err) : st;
}

const checkpoint_kind checkpoint_deepseek = { "DeepSeek-V4.1", read_geometry, open_table, read_weights };
