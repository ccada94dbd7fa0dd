/* gaterq/geometry.h - the shape of an n-gram memory: which layers, orders, heads, primes, multipliers, row width.
 *
 * A family (DeepSeek-V4.1's Engram, a miniature) is a set of numbers in a JSON file, never a fork of the code.
 * Source: specs/deepseek-v41-engram.md sections 2, 5 and 6. */
#ifndef GATERQ_GEOMETRY_H
#define GATERQ_GEOMETRY_H

#include <stdint.h>

#include "gaterq/json.h"
#include "gaterq/status.h"

enum {
    GRQ_MAX_MEMORY_LAYERS = 8,
    GRQ_MAX_ORDER = 8,    /* longest n-gram */
    GRQ_MAX_COLUMNS = 64, /* hash columns of one layer: orders x heads */
    GRQ_DEAD = -1         /* id of a position that is not text: hashes as padding, gate 0 */
};

typedef struct {
    char family[32];
    /* given */
    uint32_t n_layers;
    uint32_t layer_ids[GRQ_MAX_MEMORY_LAYERS]; /* 0-based backbone layers, ascending; memory acts before each */
    uint32_t min_order, max_order;             /* n-gram orders, 2..4 for DeepSeek */
    uint32_t n_heads;                          /* heads per order */
    uint32_t row_dim;                          /* values per row */
    uint32_t width;                            /* hidden width of one residual branch */
    uint32_t n_branches;                       /* residual branches (hyper-connections) */
    uint64_t prime_start;     /* every head owns a prime > prime_start - 1 of rows ("engram_vocab_size") */
    uint64_t n_ids;           /* compressed vocabulary; every multiplier depends on it */
    int32_t pad_id;           /* compressed id that fills missing slots */
    uint64_t multiplier_seed; /* layer L draws from default_rng(multiplier_seed * L) */
    double norm_eps;          /* eps of the two gate norms; at least FLT_MIN */
    double gate_clamp;        /* |s| is at least this under the square root */
    /* derived by grq_geometry_derive */
    uint32_t n_columns;  /* (max_order - min_order + 1) * n_heads */
    uint32_t row_values; /* n_columns * row_dim: width of a concatenated look-up */
    uint64_t multipliers[GRQ_MAX_MEMORY_LAYERS][GRQ_MAX_ORDER]; /* odd; index = look-back */
    uint64_t primes[GRQ_MAX_MEMORY_LAYERS]
                   [GRQ_MAX_COLUMNS]; /* rows per column; column = (order - min) * heads + head */
    uint64_t offsets[GRQ_MAX_MEMORY_LAYERS][GRQ_MAX_COLUMNS]; /* first row of a column within its layer's table */
    uint64_t n_rows[GRQ_MAX_MEMORY_LAYERS];                   /* sum of the layer's primes */
} grq_geometry;

/* Fills the derived part. Fails, naming the field, when a given value makes no sense. */
grq_status grq_geometry_derive(grq_geometry *geometry, grq_error *err);

/* Reads the given part from a JSON object with exactly the keys: family, layer_ids, min_order, max_order, n_heads,
 * row_dim, width, n_branches, prime_start, n_ids, pad_id, multiplier_seed, norm_eps, gate_clamp; then derives. */
grq_status grq_geometry_read(grq_json_node *object, grq_geometry *out, grq_error *err);
/* Writes those keys as members of the object that is open in `writer`. */
void grq_geometry_write(const grq_geometry *geometry, grq_json_writer *writer);

/* Built-in families by name ("deepseek-v41"). Fails listing the names it knows. */
grq_status grq_geometry_family(const char *name, grq_geometry *out, grq_error *err);

/* Index of backbone layer `layer_id` among layer_ids, or an error that lists them. */
grq_status grq_geometry_layer_index(const grq_geometry *geometry, uint32_t layer_id, uint32_t *index, grq_error *err);
uint32_t grq_geometry_column_order(const grq_geometry *geometry, uint32_t column); /* 2, 3, 4 */

#endif
