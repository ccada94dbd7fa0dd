/* Qwen3.8-Flash-Next's checkpoints. Source: specs/qwen38-ple.md sections 2 and 3. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/checkpoint_internal.h"
#include "shared/number.h"

static void tensor_name(const grq_checkpoint *c, uint32_t layer_index, const char *what, char *name)
{
    snprintf(name, CHECKPOINT_NAME_BYTES, "%slayers.%u.ple.%s", c->prefix, c->geometry.layer_ids[layer_index], what);
}

/* ple_layer_ids counts from 1. */
static grq_status read_layers(grq_json_node *config, grq_geometry *g, grq_error *err)
{
    grq_json_node *list;
    grq_status st = grq_json_array(config, "ple_layer_ids", &list, err);
    if (st != GRQ_OK) return st;
    if (grq_json_count(list) < 1 || grq_json_count(list) > GRQ_MAX_MEMORY_LAYERS)
        return grq_fail(err, GRQ_E_DATA, "%s: %zu layers; 1 to %d are possible", grq_json_where(list),
                        grq_json_count(list), GRQ_MAX_MEMORY_LAYERS);
    g->n_layers = (uint32_t)grq_json_count(list);
    for (uint32_t l = 0; st == GRQ_OK && l < g->n_layers; l++) {
        uint64_t id;
        st = grq_json_as_u64(grq_json_at(list, l), 1, 100000, &id, err);
        if (st == GRQ_OK) g->layer_ids[l] = (uint32_t)id - 1;
    }
    return st;
}

static grq_status optional_u64(grq_json_node *config, const char *key, uint64_t fallback, uint64_t min, uint64_t max,
                               uint64_t *out, grq_error *err)
{
    *out = fallback;
    return grq_json_find(config, key) ? grq_json_u64(config, key, min, max, out, err) : GRQ_OK;
}

static grq_status read_settings(grq_json_node *config, grq_geometry *g, grq_error *err)
{
    uint64_t eos = 0, row_values = 0, multiple = 0;
    grq_status st = read_layers(config, g, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "ngram_size", 2, GRQ_MAX_ORDER, &g->max_order, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "heads_per_ngram", 1, GRQ_MAX_COLUMNS, &g->n_heads, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "hidden_size", 1, 65536, &g->width, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "hc_count", 1, 64, &g->n_branches, err);
    if (st == GRQ_OK) st = optional_u64(config, "ple_embed_dim", g->width, 0, 1 << 20, &row_values, err);
    if (st == GRQ_OK) st = checkpoint_u64(config, "ngram_vocab_size_base", 2, (uint64_t)1 << 40, &g->prime_start, err);
    if (st == GRQ_OK) st = optional_u64(config, "make_ngram_vocab_size_divisible_by", 128, 1, 1 << 20, &multiple, err);
    if (st == GRQ_OK) st = optional_u64(config, "seed", 1234, 0, UINT32_MAX, &g->hash_seed, err);
    if (st == GRQ_OK) st = checkpoint_u64(config, "vocab_size", 1, INT32_MAX, &g->n_ids, err);
    if (st == GRQ_OK) st = checkpoint_u64(config, "eos_token_id", 0, g->n_ids - 1, &eos, err);
    if (st == GRQ_OK) st = checkpoint_u32(config, "ple_conv_kernel_size", 1, GRQ_MAX_TAPS, &g->conv_kernel, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "rms_norm_eps", 0, 1, &g->norm_eps, err);
    if (st != GRQ_OK) return st;
    const uint32_t n_columns = (g->max_order - 1) * g->n_heads;
    if (row_values == 0 || row_values % n_columns)
        return grq_fail(err, GRQ_E_DATA, "%s.ple_embed_dim: %" PRIu64 " values do not divide over %u heads",
                        grq_json_where(config), row_values, n_columns);
    g->row_dim = (uint32_t)(row_values / n_columns);
    g->row_multiple = (uint32_t)multiple;
    g->pad_id = (int32_t)eos;
    g->conv_dilation = g->max_order;
    g->conv_eps = g->norm_eps;
    st = grq_geometry_derive(g, err);
    return st == GRQ_OK ? st : grq_fail_prefix(err, st, "%s", grq_json_where(config));
}

/* ---- hash constants of the file ---- */

static grq_status read_constants(grq_checkpoint *c, uint32_t l, const char *what, uint64_t n, uint64_t *out,
                                 grq_error *err)
{
    char name[CHECKPOINT_NAME_BYTES];
    const grq_tensor *t;
    const char *file = NULL;
    snprintf(name, sizeof name, "%slayers.%u.ple.ple_embedding.%s", c->prefix, c->geometry.layer_ids[l], what);
    grq_status st = grq_shards_find(c->shards, name, &t, &file, err);
    if (st != GRQ_OK) return st;
    /* A detour through a float dtype corrupts 45-bit multipliers, so any other dtype is refused. */
    st = grq_shards_get(c->shards, name, GRQ_I64, 1, (const uint64_t[]){ n }, &t, err);
    if (st != GRQ_OK) return st;
    for (uint64_t i = 0; i < n; i++) {
        int64_t value;
        memcpy(&value, (const char *)t->data + i * sizeof value, sizeof value);
        if (value < 0)
            return grq_fail(err, GRQ_E_DATA, "%s: %s: element %" PRIu64 " is %" PRId64, file, name, i, value);
        out[i] = (uint64_t)value;
    }
    return GRQ_OK;
}

/* The file's constants win over what follows from the seed, if they make sense at all: moduli of at least 1, offsets
 * that are their running sum, products that stay below 2^63. */
static grq_status take_constants(grq_checkpoint *c, uint32_t l, grq_error *err)
{
    grq_geometry *const g = &c->geometry;
    uint64_t multipliers[GRQ_MAX_ORDER], sizes[GRQ_MAX_COLUMNS], offsets[GRQ_MAX_COLUMNS], sum = 0;
    grq_status st = read_constants(c, l, "layer_multipliers", g->max_order, multipliers, err);
    if (st == GRQ_OK) st = read_constants(c, l, "ngram_heads_vocab_sizes", g->n_columns, sizes, err);
    if (st == GRQ_OK) st = read_constants(c, l, "ngram_heads_offsets", g->n_columns, offsets, err);
    if (st != GRQ_OK) return st;
    const char *const path = grq_shards_path(c->shards);
    for (uint32_t i = 0; i < g->max_order; i++)
        if (multipliers[i] > (uint64_t)INT64_MAX / g->n_ids)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: layer %u: multiplier %u, %" PRIu64 ", is too large for %" PRIu64 " ids", path,
                            g->layer_ids[l], i, multipliers[i], g->n_ids);
    for (uint32_t i = 0; i < g->n_columns; sum += sizes[i++])
        if (sizes[i] < 1 || sizes[i] > (uint64_t)1 << 40 || offsets[i] != sum)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: layer %u: head %u has %" PRIu64 " rows from %" PRIu64 " on, not from %" PRIu64, path,
                            g->layer_ids[l], i, sizes[i], offsets[i], sum);
    const bool same = !memcmp(multipliers, g->multipliers[l], g->max_order * sizeof *multipliers) &&
                      !memcmp(sizes, g->primes[l], g->n_columns * sizeof *sizes);
    if (same) return GRQ_OK;
    memcpy(g->multipliers[l], multipliers, g->max_order * sizeof *multipliers);
    memcpy(g->primes[l], sizes, g->n_columns * sizeof *sizes);
    memcpy(g->offsets[l], offsets, g->n_columns * sizeof *offsets);
    g->n_rows[l] = (sum + g->row_multiple - 1) / g->row_multiple * g->row_multiple;
    snprintf(c->note, sizeof c->note,
             "layer %u hashes with the constants that the checkpoint holds; they are not those of seed %" PRIu64,
             g->layer_ids[l], g->hash_seed);
    return GRQ_OK;
}

static grq_status read_geometry(grq_checkpoint *c, grq_json_node *config, grq_error *err)
{
    grq_geometry *const g = &c->geometry;
    *g = (grq_geometry){ .family = "qwen38-ple",
                         .min_order = 2,
                         .multiplier_seed = 10007,
                         .gate_clamp = 1e-6,
                         .multiplier_rule = GRQ_MULTIPLIERS_SPLITMIX64,
                         .raw_ids = true,
                         .text_only = true,
                         .pad_cuts = true,
                         .gain_offset = 1,
                         .zero_rule = GRQ_ZERO_HALF,
                         .rounding = GRQ_ROUNDING_QWEN38 };
    grq_status st = read_settings(config, g, err);
    char suffix[64];
    snprintf(suffix, sizeof suffix, "layers.%u.ple.norm_key.weight", g->layer_ids[0]);
    if (st == GRQ_OK) st = checkpoint_find_prefix(c, suffix, c->prefix, err);
    for (uint32_t l = 0; st == GRQ_OK && l < g->n_layers; l++) st = take_constants(c, l, err);
    return st;
}

/* ---- the table ---- */

static void piece_name(const grq_checkpoint *c, uint32_t l, uint32_t piece, char *name)
{
    char what[64];
    snprintf(what, sizeof what, "ple_embedding.ngram_embedding.shard_%u.weight", piece);
    tensor_name(c, l, what, name);
}

/* One BF16 or F32 number for all pieces of an FP8 table, of shape () or (1). */
static grq_status read_scale(grq_checkpoint *c, uint32_t l, float *out, grq_error *err)
{
    char name[CHECKPOINT_NAME_BYTES];
    const grq_tensor *t;
    const char *file = NULL;
    tensor_name(c, l, "ple_embedding.ngram_embedding.weight_scale", name);
    const grq_status st = grq_shards_find(c->shards, name, &t, &file, err);
    if (st != GRQ_OK) return st;
    if (!t)
        return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is missing: an FP8 table needs its scale",
                        grq_shards_path(c->shards), name);
    if ((t->dtype != GRQ_BF16 && t->dtype != GRQ_F32) || t->n_bytes != grq_dtype_bytes(t->dtype))
        return grq_fail(err, GRQ_E_DATA, "%s: %s must be one BF16 or F32 number, is %s of %" PRIu64 " bytes", file,
                        name, grq_dtype_name(t->dtype), t->n_bytes);
    uint16_t bits = 0;
    if (t->dtype == GRQ_F32) memcpy(out, t->data, sizeof *out);
    else {
        memcpy(&bits, t->data, sizeof bits);
        *out = grq_f32_from_bf16(bits);
    }
    return isfinite(*out) ? GRQ_OK : grq_fail(err, GRQ_E_DATA, "%s: %s is %g", file, name, (double)*out);
}

/* Pieces shard_0, shard_1, ... of equal height, by number: the names' order is another one. */
static grq_status list_pieces(grq_checkpoint *c, uint32_t l, const void **values, uint32_t n_pieces,
                              const grq_tensor *first, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (uint32_t i = 0; st == GRQ_OK && i < n_pieces; i++) {
        char name[CHECKPOINT_NAME_BYTES];
        const grq_tensor *t;
        piece_name(c, l, i, name);
        st = grq_shards_get(c->shards, name, first->dtype, 2, first->shape, &t, err);
        if (st == GRQ_OK) values[i] = t->data;
    }
    return st;
}

static grq_status count_pieces(grq_checkpoint *c, uint32_t l, const grq_tensor *first, const char *file, uint32_t *n,
                               grq_error *err)
{
    const grq_geometry *const g = &c->geometry;
    char name[CHECKPOINT_NAME_BYTES];
    const grq_tensor *extra;
    piece_name(c, l, 0, name);
    if (first->dtype == GRQ_U8)
        return grq_fail(err, GRQ_E_DATA, "%s: %s is U8: NVFP4 tables cannot be read", file, name);
    if (first->rank != 2 || first->shape[1] != g->row_dim || first->shape[0] < 1 || g->n_rows[l] % first->shape[0])
        return grq_fail(err, GRQ_E_DATA,
                        "%s: %s: pieces must be (rows, %u) and add up to %" PRIu64 " rows; this one is (%" PRIu64
                        ", %" PRIu64 ")",
                        file, name, g->row_dim, g->n_rows[l], first->rank > 0 ? first->shape[0] : 0,
                        first->rank > 1 ? first->shape[1] : 0);
    if (g->n_rows[l] / first->shape[0] > 65536)
        return grq_fail(err, GRQ_E_DATA, "%s: %s: more than 65536 pieces", file, name);
    *n = (uint32_t)(g->n_rows[l] / first->shape[0]);
    piece_name(c, l, *n, name);
    const grq_status st = grq_shards_find(c->shards, name, &extra, &file, err);
    if (st != GRQ_OK || !extra) return st;
    return grq_fail(err, GRQ_E_DATA, "%s: %s: %u pieces of %" PRIu64 " rows already hold the table", file, name, *n,
                    first->shape[0]);
}

static grq_status open_table(grq_checkpoint *c, uint32_t l, grq_table **out, grq_error *err)
{
    const grq_geometry *const g = &c->geometry;
    char name[CHECKPOINT_NAME_BYTES], label[CHECKPOINT_NAME_BYTES + 300];
    const grq_tensor *first;
    const char *file = NULL;
    uint32_t n_pieces = 0;
    piece_name(c, l, 0, name);
    grq_status st = grq_shards_find(c->shards, name, &first, &file, err);
    if (st == GRQ_OK && !first)
        st = grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is missing", grq_shards_path(c->shards), name);
    if (st == GRQ_OK) st = count_pieces(c, l, first, file, &n_pieces, err);
    if (st != GRQ_OK) return st;
    const char *const base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file; /* labels name no folder */
    snprintf(label, sizeof label, n_pieces > 1 ? "%.255s:%s and %u more" : "%.255s:%s", base, name, n_pieces - 1);
    grq_table_layout layout = {
        .n_rows = g->n_rows[l], .row_dim = g->row_dim, .rows_per_piece = first->shape[0], .e8m0 = c->e8m0, .name = label
    };
    switch (first->dtype) {
    case GRQ_F32: layout.format = GRQ_ROWS_F32; break;
    case GRQ_F16: layout.format = GRQ_ROWS_F16; break;
    case GRQ_BF16: layout.format = GRQ_ROWS_BF16; break;
    case GRQ_F8_E4M3:
        layout.format = GRQ_ROWS_F8_SCALAR;
        st = read_scale(c, l, &layout.scale, err);
        break;
    default:
        st = grq_fail(err, GRQ_E_DATA, "%s: %s is %s; BF16, F8_E4M3, F16 and F32 can be read", file, name,
                      grq_dtype_name(first->dtype));
    }
    const void **const values = malloc(n_pieces * sizeof *values);
    if (st == GRQ_OK && !values) st = grq_fail(err, GRQ_E_NOMEM, "no memory for %u pieces", n_pieces);
    if (st == GRQ_OK) st = list_pieces(c, l, values, n_pieces, first, err);
    layout.values = values;
    if (st == GRQ_OK) st = grq_table_new(&layout, out, err);
    free(values);
    return st;
}

/* ---- weights ---- */

/* An FP8 projection would need scales whose meaning is not known here. */
static grq_status refuse_scales(grq_checkpoint *c, uint32_t l, const char *module, grq_error *err)
{
    char name[CHECKPOINT_NAME_BYTES], what[64];
    const grq_tensor *t;
    snprintf(what, sizeof what, "%s.weight_scale_inv", module);
    tensor_name(c, l, what, name);
    const grq_status st = grq_shards_find(c->shards, name, &t, NULL, err);
    if (st != GRQ_OK || !t) return st;
    return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\": quantised projections cannot be read",
                    grq_shards_path(c->shards), name);
}

static grq_status read_gains(grq_checkpoint *c, uint32_t l, const char *what, float **out, grq_error *err)
{
    const grq_geometry *const g = &c->geometry;
    const uint64_t channels = (uint64_t)g->n_branches * g->width;
    char name[CHECKPOINT_NAME_BYTES];
    tensor_name(c, l, what, name);
    const grq_status st = checkpoint_read_shaped(c, name, NULL, 1, &channels, out, err);
    if (st == GRQ_OK) checkpoint_offset_gains(g, *out, channels);
    return st;
}

static grq_status read_weights(grq_checkpoint *c, uint32_t l, grq_layer_weights *w, grq_error *err)
{
    const grq_geometry *const g = &c->geometry;
    const uint64_t channels = (uint64_t)g->n_branches * g->width;
    char name[CHECKPOINT_NAME_BYTES];
    grq_status st = refuse_scales(c, l, "key_proj", err);
    if (st == GRQ_OK) st = refuse_scales(c, l, "value_proj", err);
    tensor_name(c, l, "key_proj.weight", name);
    if (st == GRQ_OK) st = checkpoint_read(c, name, NULL, channels, g->row_values, &w->key_weight, err);
    tensor_name(c, l, "value_proj.weight", name);
    if (st == GRQ_OK) st = checkpoint_read(c, name, NULL, g->width, g->row_values, &w->value_weight, err);
    if (st == GRQ_OK) st = read_gains(c, l, "norm_query.weight", &w->query_gain, err);
    if (st == GRQ_OK) st = read_gains(c, l, "norm_key.weight", &w->key_gain, err);
    if (st == GRQ_OK) st = read_gains(c, l, "norm_conv.weight", &w->conv_gain, err);
    tensor_name(c, l, "conv1d.weight", name);
    const uint64_t taps[] = { channels, 1, g->conv_kernel };
    if (st == GRQ_OK) st = checkpoint_read_shaped(c, name, NULL, 3, taps, &w->conv_weight, err);
    return st == GRQ_OK ? checkpoint_transpose_taps(g, &w->conv_weight, err) : st;
}

const checkpoint_kind checkpoint_qwen = { "Qwen3.8", read_geometry, open_table, read_weights };
