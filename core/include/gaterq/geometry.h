/* gaterq/geometry.h - the shape of an n-gram memory: which layers, orders, heads, primes, multipliers, row width.
 *
 * A family (DeepSeek-V4.1's Engram, Qwen3.8's PLE, the original Engram, a miniature) is a set of numbers and a few
 * named rules in a JSON file (core/memory/families), never a fork of the code. Sources: specs/deepseek-v41-engram.md
 * sections 2, 5, 6 and 10, specs/qwen38-ple.md sections 2, 4, 5 and 7, specs/original-engram.md sections 1 to 8. */
#ifndef GATERQ_GEOMETRY_H
#define GATERQ_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "gaterq/json.h"
#include "gaterq/status.h"

enum {
    GRQ_MAX_MEMORY_LAYERS = 8,
    GRQ_MAX_ORDER = 8,    /* longest n-gram */
    GRQ_MAX_COLUMNS = 64, /* hash columns of one layer: orders x heads */
    GRQ_MAX_TAPS = 16,    /* of the short convolution */
    GRQ_DEAD = -1         /* id of a position that is not text: hashes as padding, gate 0 */
};

/* Where a layer's multipliers come from. */
typedef enum {
    GRQ_MULTIPLIERS_PCG64,     /* numpy's default_rng(hash_seed + multiplier_seed * layer id) */
    GRQ_MULTIPLIERS_SPLITMIX64 /* mix64 of hash_seed + multiplier_seed * ordinal of the layer */
} grq_multiplier_rule;

/* The gate of a score that is exactly +-0: the sign of zero decides (1/2 +- 0.00025), or it is 1/2. */
typedef enum { GRQ_ZERO_SIGNED, GRQ_ZERO_HALF } grq_zero_rule;

/* Where the family's own code rounds to BF16; what `--numerics reference` repeats. */
typedef enum { GRQ_ROUNDING_NONE, GRQ_ROUNDING_DEEPSEEK_V41, GRQ_ROUNDING_QWEN38 } grq_rounding;

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
    uint64_t prime_start;     /* every head owns a prime of rows, at least this many ("engram_vocab_size") */
    uint64_t n_ids;           /* vocabulary that is hashed; every multiplier depends on it */
    int32_t pad_id;           /* id that fills missing slots of a window */
    uint64_t multiplier_seed; /* see grq_multiplier_rule */
    double norm_eps;          /* eps of the two gate norms; at least FLT_MIN */
    double gate_clamp;        /* |s| is at least this under the square root */
    /* given, and 0 in the miniatures and (but for rounding) in DeepSeek-V4.1; may be left out of the JSON */
    uint64_t order_prime_start[GRQ_MAX_ORDER + 1]; /* by order, where not 0: in place of prime_start */
    grq_multiplier_rule multiplier_rule;
    uint64_t hash_seed;    /* see grq_multiplier_rule */
    uint32_t row_multiple; /* rows are rounded up to a multiple of this; nothing addresses the rest. 0 is 1 */
    bool raw_ids;          /* ids are the tokenizer's own, not compressed ids (tokenmap.h) */
    bool text_only;        /* there is no GRQ_DEAD: -1 is refused */
    bool pad_cuts;         /* pad_id, which is EOS then, hides what is before it from the positions after it */
    uint32_t gain_offset;  /* norm gains are stored as w and mean gain_offset + w: 0 or 1 */
    bool bias;             /* the projections have biases */
    grq_zero_rule zero_rule;
    grq_rounding rounding;
    uint32_t conv_kernel;   /* taps of the short convolution over earlier positions; 0: there is none */
    uint32_t conv_dilation; /* positions between taps */
    double conv_eps;        /* eps of the convolution's norm; at least FLT_MIN */
    /* derived by grq_geometry_derive */
    uint32_t n_columns;  /* (max_order - min_order + 1) * n_heads */
    uint32_t row_values; /* n_columns * row_dim: width of a concatenated look-up */
    uint32_t conv_span;  /* earlier positions that the convolution sees: (conv_kernel - 1) * conv_dilation, or 0 */
    uint64_t multipliers[GRQ_MAX_MEMORY_LAYERS][GRQ_MAX_ORDER]; /* odd; index = look-back */
    uint64_t primes[GRQ_MAX_MEMORY_LAYERS]
                   [GRQ_MAX_COLUMNS]; /* rows per column; column = (order - min) * heads + head */
    uint64_t offsets[GRQ_MAX_MEMORY_LAYERS][GRQ_MAX_COLUMNS]; /* first row of a column within its layer's table */
    uint64_t n_rows[GRQ_MAX_MEMORY_LAYERS]; /* sum of the layer's primes, rounded up to row_multiple */
} grq_geometry;

/* Fills the derived part. Fails, naming the field, when a given value makes no sense. */
grq_status grq_geometry_derive(grq_geometry *geometry, grq_error *err);

/* Reads the given part from a JSON object with no other keys, then derives. Keys are the members' names, but:
 * prime_start is a number, or a list with one per order; multiplier_rule is "pcg64" or "splitmix64", zero_rule "signed"
 * or "half", rounding "none", "deepseek-v41" or "qwen38"; n_rows (a list, one per layer) may be given and must then be
 * what is derived. */
grq_status grq_geometry_read(grq_json_node *object, grq_geometry *out, grq_error *err);
/* Writes those keys as members of the object that is open in `writer`; what may be left out is, where it is 0. */
void grq_geometry_write(const grq_geometry *geometry, grq_json_writer *writer);

/* Built-in families by name ("deepseek-v41", "qwen38-ple", "engram-v1"). Fails listing the names it knows. */
grq_status grq_geometry_family(const char *name, grq_geometry *out, grq_error *err);
/* A geometry file: one JSON object as above. */
grq_status grq_geometry_open(const char *path, grq_geometry *out, grq_error *err);

/* Index of backbone layer `layer_id` among layer_ids, or an error that lists them. */
grq_status grq_geometry_layer_index(const grq_geometry *geometry, uint32_t layer_id, uint32_t *index, grq_error *err);
uint32_t grq_geometry_column_order(const grq_geometry *geometry, uint32_t column); /* 2, 3, 4 */

#endif
