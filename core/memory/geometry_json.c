/* A geometry as JSON: model files, experiment configs, and the released families. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gaterq/geometry.h"

typedef struct {
    const char *name;
    int value;
} choice;

static const choice multiplier_rules[] = { { "pcg64", GRQ_MULTIPLIERS_PCG64 },
                                           { "splitmix64", GRQ_MULTIPLIERS_SPLITMIX64 },
                                           { NULL, 0 } };
static const choice zero_rules[] = { { "signed", GRQ_ZERO_SIGNED }, { "half", GRQ_ZERO_HALF }, { NULL, 0 } };
static const choice roundings[] = { { "none", GRQ_ROUNDING_NONE },
                                    { "deepseek-v41", GRQ_ROUNDING_DEEPSEEK_V41 },
                                    { "qwen38", GRQ_ROUNDING_QWEN38 },
                                    { NULL, 0 } };

/* ---- reading; the keys that may be left out keep *out as it is ---- */

static grq_status read_u32(grq_json_node *object, const char *key, uint32_t min, uint32_t max, uint32_t *out,
                           grq_error *err)
{
    uint64_t value;
    const grq_status st = grq_json_u64(object, key, min, max, &value, err);
    if (st == GRQ_OK) *out = (uint32_t)value;
    return st;
}

static grq_status read_layer_ids(grq_json_node *object, grq_geometry *g, grq_error *err)
{
    grq_json_node *list;
    grq_status st = grq_json_array(object, "layer_ids", &list, err);
    if (st != GRQ_OK) return st;
    const size_t n = grq_json_count(list);
    if (n < 1 || n > GRQ_MAX_MEMORY_LAYERS)
        return grq_fail(err, GRQ_E_USAGE, "%s: 1 to %d layers, not %zu", grq_json_where(list), GRQ_MAX_MEMORY_LAYERS,
                        n);
    g->n_layers = (uint32_t)n;
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        uint64_t id;
        st = grq_json_as_u64(grq_json_at(list, i), 0, 100000, &id, err);
        if (st == GRQ_OK) g->layer_ids[i] = (uint32_t)id;
    }
    return st;
}

static grq_status read_u32_if_there(grq_json_node *object, const char *key, uint32_t max, uint32_t *out, grq_error *err)
{
    return grq_json_find(object, key) ? read_u32(object, key, 0, max, out, err) : GRQ_OK;
}

static grq_status read_bool_if_there(grq_json_node *object, const char *key, bool *out, grq_error *err)
{
    return grq_json_find(object, key) ? grq_json_bool(object, key, out, err) : GRQ_OK;
}

static grq_status read_choice(grq_json_node *object, const char *key, const choice *choices, int *out, grq_error *err)
{
    const char *name;
    *out = choices->value;
    if (!grq_json_find(object, key)) return GRQ_OK;
    const grq_status st = grq_json_string(object, key, &name, err);
    if (st != GRQ_OK) return st;
    for (const choice *c = choices; c->name; c++)
        if (!strcmp(c->name, name)) {
            *out = c->value;
            return GRQ_OK;
        }
    return grq_fail(err, GRQ_E_USAGE, "%s.%s: \"%.40s\" is not known; \"%s\" is, for one", grq_json_where(object), key,
                    name, choices->name);
}

/* One number for all orders, or a list with one per order. */
static grq_status read_prime_start(grq_json_node *object, grq_geometry *g, grq_error *err)
{
    const uint64_t max = (uint64_t)1 << 40;
    grq_json_node *const node = grq_json_find(object, "prime_start");
    if (!node || grq_json_kind_of(node) != GRQ_JSON_ARRAY)
        return grq_json_u64(object, "prime_start", 2, max, &g->prime_start, err);
    const size_t n = grq_json_count(node);
    if (g->max_order < g->min_order || n != g->max_order - g->min_order + 1)
        return grq_fail(err, GRQ_E_USAGE, "%s: %zu numbers for orders %u to %u", grq_json_where(node), n, g->min_order,
                        g->max_order);
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < n; i++)
        st = grq_json_as_u64(grq_json_at(node, i), 2, max, &g->order_prime_start[g->min_order + i], err);
    g->prime_start = g->order_prime_start[g->min_order];
    return st;
}

static grq_status read_rules(grq_json_node *object, grq_geometry *g, grq_error *err)
{
    int multipliers, zero, rounding;
    grq_status st = read_choice(object, "multiplier_rule", multiplier_rules, &multipliers, err);
    if (st == GRQ_OK) st = read_choice(object, "zero_rule", zero_rules, &zero, err);
    if (st == GRQ_OK) st = read_choice(object, "rounding", roundings, &rounding, err);
    if (st != GRQ_OK) return st;
    g->multiplier_rule = (grq_multiplier_rule)multipliers;
    g->zero_rule = (grq_zero_rule)zero;
    g->rounding = (grq_rounding)rounding;
    if (grq_json_find(object, "hash_seed")) st = grq_json_u64(object, "hash_seed", 0, UINT32_MAX, &g->hash_seed, err);
    if (st == GRQ_OK) st = read_u32_if_there(object, "row_multiple", 1 << 20, &g->row_multiple, err);
    if (st == GRQ_OK) st = read_bool_if_there(object, "raw_ids", &g->raw_ids, err);
    if (st == GRQ_OK) st = read_bool_if_there(object, "text_only", &g->text_only, err);
    if (st == GRQ_OK) st = read_bool_if_there(object, "pad_cuts", &g->pad_cuts, err);
    if (st == GRQ_OK) st = read_u32_if_there(object, "gain_offset", 1, &g->gain_offset, err);
    if (st == GRQ_OK) st = read_bool_if_there(object, "bias", &g->bias, err);
    if (st == GRQ_OK) st = read_u32_if_there(object, "conv_kernel", GRQ_MAX_TAPS, &g->conv_kernel, err);
    if (st == GRQ_OK) st = read_u32_if_there(object, "conv_dilation", 64, &g->conv_dilation, err);
    if (st == GRQ_OK && grq_json_find(object, "conv_eps"))
        st = grq_json_f64(object, "conv_eps", 0, 1, &g->conv_eps, err);
    return st;
}

/* The numbers of rows that the writer of the JSON expects: a check of everything that they are derived from. */
static grq_status check_n_rows(grq_json_node *list, const grq_geometry *g, grq_error *err)
{
    if (!list) return GRQ_OK;
    if (grq_json_kind_of(list) != GRQ_JSON_ARRAY || grq_json_count(list) != g->n_layers)
        return grq_fail(err, GRQ_E_USAGE, "%s: must be a list of %u numbers", grq_json_where(list), g->n_layers);
    for (uint32_t l = 0; l < g->n_layers; l++) {
        uint64_t n;
        const grq_status st = grq_json_as_u64(grq_json_at(list, l), 1, INT64_MAX, &n, err);
        if (st != GRQ_OK) return st;
        if (n != g->n_rows[l])
            return grq_fail(err, GRQ_E_USAGE,
                            "%s: layer %u would have %" PRIu64 " rows, but its primes sum to %" PRIu64,
                            grq_json_where(list), g->layer_ids[l], n, g->n_rows[l]);
    }
    return GRQ_OK;
}

grq_status grq_geometry_read(grq_json_node *object, grq_geometry *g, grq_error *err)
{
    *g = (grq_geometry){ 0 };
    const char *family;
    int64_t pad_id = 0;
    grq_status st = grq_json_string(object, "family", &family, err);
    if (st == GRQ_OK && strlen(family) >= sizeof g->family)
        st = grq_fail(err, GRQ_E_USAGE, "%s: family \"%s\" is longer than %zu bytes", grq_json_where(object), family,
                      sizeof g->family - 1);
    if (st == GRQ_OK) strcpy(g->family, family);
    if (st == GRQ_OK) st = read_layer_ids(object, g, err);
    if (st == GRQ_OK) st = read_u32(object, "min_order", 2, GRQ_MAX_ORDER, &g->min_order, err);
    if (st == GRQ_OK) st = read_u32(object, "max_order", 2, GRQ_MAX_ORDER, &g->max_order, err);
    if (st == GRQ_OK) st = read_u32(object, "n_heads", 1, GRQ_MAX_COLUMNS, &g->n_heads, err);
    if (st == GRQ_OK) st = read_u32(object, "row_dim", 1, 65536, &g->row_dim, err);
    if (st == GRQ_OK) st = read_u32(object, "width", 1, 65536, &g->width, err);
    if (st == GRQ_OK) st = read_u32(object, "n_branches", 1, 64, &g->n_branches, err);
    if (st == GRQ_OK) st = read_prime_start(object, g, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "n_ids", 1, INT32_MAX, &g->n_ids, err);
    if (st == GRQ_OK) st = grq_json_i64(object, "pad_id", 0, INT32_MAX, &pad_id, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "multiplier_seed", 0, UINT32_MAX, &g->multiplier_seed, err);
    if (st == GRQ_OK) st = grq_json_f64(object, "norm_eps", 0, 1, &g->norm_eps, err);
    if (st == GRQ_OK) st = grq_json_f64(object, "gate_clamp", 0, 1, &g->gate_clamp, err);
    if (st == GRQ_OK) st = read_rules(object, g, err);
    grq_json_node *const n_rows = grq_json_find(object, "n_rows");
    if (st == GRQ_OK) st = grq_json_finish(object, err);
    if (st != GRQ_OK) return st;
    g->pad_id = (int32_t)pad_id;
    st = grq_geometry_derive(g, err);
    if (st != GRQ_OK) return grq_fail_prefix(err, st, "%s", grq_json_where(object));
    return check_n_rows(n_rows, g, err);
}

grq_status grq_geometry_open(const char *path, grq_geometry *out, grq_error *err)
{
    grq_json *document = NULL;
    grq_status st = grq_json_open(path, &document, err);
    if (st == GRQ_OK) st = grq_geometry_read(grq_json_root(document), out, err);
    grq_json_close(document);
    return st;
}

/* ---- writing ---- */

static void put_choice(grq_json_writer *w, const char *key, const choice *choices, int value)
{
    if (value == choices->value) return;
    while (choices->name && choices->value != value) choices++;
    grq_json_put_string(w, key, choices->name);
}

static void put_if_set(grq_json_writer *w, const char *key, uint64_t value)
{
    if (value) grq_json_put_u64(w, key, value);
}

static void put_true(grq_json_writer *w, const char *key, bool value)
{
    if (value) grq_json_put_bool(w, key, true);
}

static void put_prime_start(const grq_geometry *g, grq_json_writer *w)
{
    bool by_order = false;
    for (uint32_t n = g->min_order; n <= g->max_order; n++) by_order |= g->order_prime_start[n] != 0;
    if (!by_order) {
        grq_json_put_u64(w, "prime_start", g->prime_start);
        return;
    }
    grq_json_begin_array(w, "prime_start");
    for (uint32_t n = g->min_order; n <= g->max_order; n++)
        grq_json_put_u64(w, NULL, g->order_prime_start[n] ? g->order_prime_start[n] : g->prime_start);
    grq_json_end_array(w);
}

static void put_rules(const grq_geometry *g, grq_json_writer *w)
{
    put_choice(w, "multiplier_rule", multiplier_rules, (int)g->multiplier_rule);
    put_choice(w, "zero_rule", zero_rules, (int)g->zero_rule);
    put_choice(w, "rounding", roundings, (int)g->rounding);
    put_if_set(w, "hash_seed", g->hash_seed);
    if (g->row_multiple > 1) grq_json_put_u64(w, "row_multiple", g->row_multiple);
    put_true(w, "raw_ids", g->raw_ids);
    put_true(w, "text_only", g->text_only);
    put_true(w, "pad_cuts", g->pad_cuts);
    put_if_set(w, "gain_offset", g->gain_offset);
    put_true(w, "bias", g->bias);
    put_if_set(w, "conv_kernel", g->conv_kernel);
    if (!g->conv_kernel) return;
    grq_json_put_u64(w, "conv_dilation", g->conv_dilation);
    grq_json_put_f64(w, "conv_eps", g->conv_eps);
}

void grq_geometry_write(const grq_geometry *g, grq_json_writer *w)
{
    grq_json_put_string(w, "family", g->family);
    grq_json_begin_array(w, "layer_ids");
    for (uint32_t l = 0; l < g->n_layers; l++) grq_json_put_u64(w, NULL, g->layer_ids[l]);
    grq_json_end_array(w);
    grq_json_put_u64(w, "min_order", g->min_order);
    grq_json_put_u64(w, "max_order", g->max_order);
    grq_json_put_u64(w, "n_heads", g->n_heads);
    grq_json_put_u64(w, "row_dim", g->row_dim);
    grq_json_put_u64(w, "width", g->width);
    grq_json_put_u64(w, "n_branches", g->n_branches);
    put_prime_start(g, w);
    grq_json_put_u64(w, "n_ids", g->n_ids);
    grq_json_put_i64(w, "pad_id", g->pad_id);
    grq_json_put_u64(w, "multiplier_seed", g->multiplier_seed);
    grq_json_put_f64(w, "norm_eps", g->norm_eps);
    grq_json_put_f64(w, "gate_clamp", g->gate_clamp);
    put_rules(g, w);
}
