#include "gaterq/geometry.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gaterq/rng.h"

static const uint64_t SPLITMIX_STEP = UINT64_C(0x9E3779B97F4A7C15);

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
    for (uint32_t n = g->min_order; n <= g->max_order; n++)
        if (g->order_prime_start[n] == 1 || g->order_prime_start[n] > (uint64_t)1 << 40)
            return grq_fail(err, GRQ_E_USAGE, "prime_start: %" PRIu64 " is not 2 to 2^40", g->order_prime_start[n]);
    if (g->row_multiple > 1u << 20)
        return grq_fail(err, GRQ_E_USAGE, "row_multiple: %u is not 1 to 2^20", g->row_multiple);
    if (g->gain_offset > 1) return grq_fail(err, GRQ_E_USAGE, "gain_offset: %u is not 0 or 1", g->gain_offset);
    if (g->conv_kernel > GRQ_MAX_TAPS || (g->conv_kernel && (g->conv_dilation < 1 || g->conv_dilation > 64)))
        return grq_fail(err, GRQ_E_USAGE, "conv: %u taps with dilation %u; at most %d taps, dilation 1 to 64",
                        g->conv_kernel, g->conv_dilation, GRQ_MAX_TAPS);
    if (g->conv_kernel && (!(g->conv_eps >= (double)FLT_MIN) || !isfinite(g->conv_eps)))
        return grq_fail(err, GRQ_E_USAGE, "conv_eps: %g must be finite and at least %g", g->conv_eps, (double)FLT_MIN);
    if (g->pad_id < 0 || (uint64_t)g->pad_id >= g->n_ids)
        return grq_fail(err, GRQ_E_USAGE, "pad_id: %d is not an id below %" PRIu64, g->pad_id, g->n_ids);
    /* A look-up of zeros has key 0: only eps keeps its norm finite, and the gate is computed in binary32. */
    if (!(g->norm_eps >= (double)FLT_MIN) || !isfinite(g->norm_eps))
        return grq_fail(err, GRQ_E_USAGE, "norm_eps: %g must be finite and at least %g", g->norm_eps, (double)FLT_MIN);
    if (!(g->gate_clamp >= 0) || !isfinite(g->gate_clamp))
        return grq_fail(err, GRQ_E_USAGE, "gate_clamp: %g is no clamp", g->gate_clamp);
    return GRQ_OK;
}

static bool is_used(const grq_geometry *g, uint32_t layer, uint32_t column, uint64_t prime)
{
    for (uint32_t l = 0; l <= layer; l++)
        for (uint32_t c = 0; c < (l < layer ? g->n_columns : column); c++)
            if (g->primes[l][c] == prime) return true;
    return false;
}

/* The search starts again for every order, and takes no prime twice. Where all orders start at one place this gives the
 * first primes from there on, ascending over layers and columns. */
static void derive_primes(grq_geometry *g)
{
    for (uint32_t l = 0; l < g->n_layers; l++) {
        uint64_t row = 0, candidate = 0;
        for (uint32_t c = 0; c < g->n_columns; c++) {
            const uint64_t start = g->order_prime_start[g->min_order + c / g->n_heads];
            if (c % g->n_heads == 0) candidate = (start ? start : g->prime_start) - 1;
            do candidate++;
            while (is_used(g, l, c, candidate) || !is_prime(candidate));
            g->primes[l][c] = candidate;
            g->offsets[l][c] = row;
            row += candidate;
        }
        g->n_rows[l] = (row + g->row_multiple - 1) / g->row_multiple * g->row_multiple;
    }
}

/* Source: specs/qwen38-ple.md section 4.1. The golden-ratio step enters twice: here, and in the caller's argument. */
static uint64_t mix64(uint64_t v)
{
    v += SPLITMIX_STEP;
    v = (v ^ v >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    v = (v ^ v >> 27) * UINT64_C(0x94D049BB133111EB);
    return v ^ v >> 31;
}

/* m = 2 r + 1 with r below B, so that id * m stays below 2^63 (specs/deepseek-v41-engram.md section 6). */
static void derive_multipliers(grq_geometry *g)
{
    const uint64_t limit = (uint64_t)INT64_MAX / g->n_ids / 2;
    const uint64_t bound = limit > 1 ? limit : 1;
    for (uint32_t l = 0; l < g->n_layers; l++) {
        grq_rng rng;
        grq_rng_seed(&rng, g->hash_seed + g->multiplier_seed * g->layer_ids[l]);
        const uint64_t base = g->hash_seed + g->multiplier_seed * l;
        for (uint32_t i = 0; i < g->max_order; i++) {
            const uint64_t r = g->multiplier_rule == GRQ_MULTIPLIERS_PCG64
                                   ? grq_rng_below(&rng, bound)
                                   : mix64(base + SPLITMIX_STEP * (i + 1)) % bound;
            g->multipliers[l][i] = 2 * r + 1;
        }
    }
}

grq_status grq_geometry_derive(grq_geometry *g, grq_error *err)
{
    const grq_status st = check(g, err);
    if (st != GRQ_OK) return st;
    if (g->row_multiple == 0) g->row_multiple = 1;
    g->n_columns = (g->max_order - g->min_order + 1) * g->n_heads;
    g->row_values = g->n_columns * g->row_dim;
    g->conv_span = g->conv_kernel ? (g->conv_kernel - 1) * g->conv_dilation : 0;
    derive_primes(g);
    derive_multipliers(g);
    return GRQ_OK;
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
