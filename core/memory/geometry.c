#include "gaterq/geometry.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gaterq/rng.h"

/* Trial division: prime_start is at most 2^40, so a candidate costs at most 2^20 divisions. */
static bool is_prime(uint64_t n)
{
    if (n < 2) return false;
    for (uint64_t d = 2; d <= n / d; d++)
        if (n % d == 0) return false;
    return true;
}

static grq_status check(const grq_geometry *g, grq_error *err)
{
    if (g->n_layers < 1 || g->n_layers > GRQ_MAX_MEMORY_LAYERS)
        return grq_fail(err, GRQ_E_USAGE, "layer_ids: 1 to %d memory layers, not %u", GRQ_MAX_MEMORY_LAYERS,
                        g->n_layers);
    for (uint32_t l = 1; l < g->n_layers; l++)
        if (g->layer_ids[l] <= g->layer_ids[l - 1])
            return grq_fail(err, GRQ_E_USAGE, "layer_ids: %u does not follow %u; they must ascend", g->layer_ids[l],
                            g->layer_ids[l - 1]);
    if (g->min_order < 2 || g->max_order < g->min_order || g->max_order > GRQ_MAX_ORDER)
        return grq_fail(err, GRQ_E_USAGE, "orders %u to %u: must lie in 2 to %d", g->min_order, g->max_order,
                        GRQ_MAX_ORDER);
    if (g->n_heads < 1 || g->n_heads > GRQ_MAX_COLUMNS / (g->max_order - g->min_order + 1))
        return grq_fail(err, GRQ_E_USAGE, "n_heads: %u heads of %u orders are not 1 to %d columns", g->n_heads,
                        g->max_order - g->min_order + 1, GRQ_MAX_COLUMNS);
    if (g->row_dim < 1 || g->row_dim > 65536)
        return grq_fail(err, GRQ_E_USAGE, "row_dim: %u is not 1 to 65536", g->row_dim);
    if (g->width < 1 || g->width > 65536) return grq_fail(err, GRQ_E_USAGE, "width: %u is not 1 to 65536", g->width);
    if (g->n_branches < 1 || g->n_branches > 64)
        return grq_fail(err, GRQ_E_USAGE, "n_branches: %u is not 1 to 64", g->n_branches);
    if (g->prime_start < 2 || g->prime_start > (uint64_t)1 << 40)
        return grq_fail(err, GRQ_E_USAGE, "prime_start: %" PRIu64 " is not 2 to 2^40", g->prime_start);
    if (g->n_ids < 1 || g->n_ids > INT32_MAX)
        return grq_fail(err, GRQ_E_USAGE, "n_ids: %" PRIu64 " is not 1 to 2^31-1", g->n_ids);
    if (g->pad_id < 0 || (uint64_t)g->pad_id >= g->n_ids)
        return grq_fail(err, GRQ_E_USAGE, "pad_id: %d is not an id below %" PRIu64, g->pad_id, g->n_ids);
    /* A look-up of zeros has key 0: only eps keeps its norm finite, and the gate is computed in binary32. */
    if (!(g->norm_eps >= (double)FLT_MIN) || !isfinite(g->norm_eps))
        return grq_fail(err, GRQ_E_USAGE, "norm_eps: %g must be finite and at least %g", g->norm_eps, (double)FLT_MIN);
    if (!(g->gate_clamp >= 0) || !isfinite(g->gate_clamp))
        return grq_fail(err, GRQ_E_USAGE, "gate_clamp: %g is no clamp", g->gate_clamp);
    return GRQ_OK;
}

/* One search over all layers, orders and heads: since used primes are skipped, they are the first ones above
 * prime_start - 1, ascending (spec section 5). */
static void derive_primes(grq_geometry *g)
{
    uint64_t candidate = g->prime_start - 1;
    for (uint32_t l = 0; l < g->n_layers; l++) {
        uint64_t row = 0;
        for (uint32_t c = 0; c < g->n_columns; c++) {
            do candidate++;
            while (!is_prime(candidate));
            g->primes[l][c] = candidate;
            g->offsets[l][c] = row;
            row += candidate;
        }
        g->n_rows[l] = row;
    }
}

/* m = 2 r + 1 with r below B, so that id * m stays below 2^63 (spec section 6). */
static void derive_multipliers(grq_geometry *g)
{
    const uint64_t limit = (uint64_t)INT64_MAX / g->n_ids / 2;
    const uint64_t bound = limit > 1 ? limit : 1;
    for (uint32_t l = 0; l < g->n_layers; l++) {
        grq_rng rng;
        grq_rng_seed(&rng, g->multiplier_seed * g->layer_ids[l]);
        for (uint32_t i = 0; i < g->max_order; i++) g->multipliers[l][i] = 2 * grq_rng_below(&rng, bound) + 1;
    }
}

grq_status grq_geometry_derive(grq_geometry *g, grq_error *err)
{
    const grq_status st = check(g, err);
    if (st != GRQ_OK) return st;
    g->n_columns = (g->max_order - g->min_order + 1) * g->n_heads;
    g->row_values = g->n_columns * g->row_dim;
    derive_primes(g);
    derive_multipliers(g);
    return GRQ_OK;
}

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
    if (st == GRQ_OK) st = grq_json_u64(object, "prime_start", 2, (uint64_t)1 << 40, &g->prime_start, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "n_ids", 1, INT32_MAX, &g->n_ids, err);
    if (st == GRQ_OK) st = grq_json_i64(object, "pad_id", 0, INT32_MAX, &pad_id, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "multiplier_seed", 0, UINT32_MAX, &g->multiplier_seed, err);
    if (st == GRQ_OK) st = grq_json_f64(object, "norm_eps", 0, 1, &g->norm_eps, err);
    if (st == GRQ_OK) st = grq_json_f64(object, "gate_clamp", 0, 1, &g->gate_clamp, err);
    if (st == GRQ_OK) st = grq_json_finish(object, err);
    if (st != GRQ_OK) return st;
    g->pad_id = (int32_t)pad_id;
    st = grq_geometry_derive(g, err);
    return st == GRQ_OK ? st : grq_fail_prefix(err, st, "%s", grq_json_where(object));
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
    grq_json_put_u64(w, "prime_start", g->prime_start);
    grq_json_put_u64(w, "n_ids", g->n_ids);
    grq_json_put_i64(w, "pad_id", g->pad_id);
    grq_json_put_u64(w, "multiplier_seed", g->multiplier_seed);
    grq_json_put_f64(w, "norm_eps", g->norm_eps);
    grq_json_put_f64(w, "gate_clamp", g->gate_clamp);
}

grq_status grq_geometry_layer_index(const grq_geometry *g, uint32_t layer_id, uint32_t *index, grq_error *err)
{
    char known[128] = "";
    for (uint32_t l = 0; l < g->n_layers; l++) {
        if (g->layer_ids[l] == layer_id) {
            *index = l;
            return GRQ_OK;
        }
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%u", l ? ", " : "", g->layer_ids[l]);
    }
    return grq_fail(err, GRQ_E_USAGE, "layer %u has no memory; the memory layers of %s are %s", layer_id, g->family,
                    known);
}

uint32_t grq_geometry_column_order(const grq_geometry *g, uint32_t column)
{
    return g->min_order + column / g->n_heads;
}
