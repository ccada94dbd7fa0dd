/* tests/lm_support.h - small model shapes and texts for the tests of core/lm. */
#ifndef GATERQ_TESTS_LM_SUPPORT_H
#define GATERQ_TESTS_LM_SUPPORT_H

#include "support.h"

#include "gaterq/model.h"
#include "gaterq/rng.h"

typedef struct {
    uint32_t vocab_size, width, n_blocks, n_heads, mlp_width, n_branches, row_dim;
    double gate_clamp;
} lm_test_shape;

/* Memory before block 1 and, in deeper models, block 2; orders 2 to 4, 2 heads, primes from 31 up. */
static inline grq_model_shape lm_make_shape(lm_test_shape given)
{
    grq_error err = { 0 };
    grq_model_shape shape = {
        .vocab_size = given.vocab_size,
        .width = given.width,
        .n_blocks = given.n_blocks,
        .n_heads = given.n_heads,
        .mlp_width = given.mlp_width,
        .norm_eps = 1e-6,
        .memory = { .family = "miniature",
                    .n_layers = given.n_blocks > 2 ? 2 : 1,
                    .layer_ids = { 1, given.n_blocks > 2 ? 2 : 0 },
                    .min_order = 2,
                    .max_order = 4,
                    .n_heads = 2,
                    .row_dim = given.row_dim,
                    .width = given.width,
                    .n_branches = given.n_branches,
                    .prime_start = 31,
                    .n_ids = given.vocab_size,
                    .pad_id = GRQ_PAD_TOKEN,
                    .multiplier_seed = 10007,
                    .norm_eps = 1e-6,
                    .gate_clamp = given.gate_clamp },
    };
    assert_ok(grq_geometry_derive(&shape.memory, &err), &err);
    return shape;
}

/* The recipe's kind of model in small: every vector path is taken. */
static const lm_test_shape LM_SMALL = { 40, 32, 3, 2, 48, 4, 8, 1e-6 };
/* Nothing is a multiple of a vector. */
static const lm_test_shape LM_ODD = { 23, 15, 2, 3, 13, 3, 5, 1e-6 };

static inline grq_model *lm_make_model(lm_test_shape given, uint64_t seed)
{
    const grq_model_shape shape = lm_make_shape(given);
    grq_error err = { 0 };
    grq_model *model = NULL;
    assert_ok(grq_model_new(&shape, NULL, seed, &model, &err), &err);
    return model;
}

/* Text with something to learn: every token follows from the two before it, nine times out of ten. */
static inline int32_t *lm_make_text(size_t n, uint32_t vocab_size, uint64_t seed)
{
    int32_t *text = malloc(n * sizeof *text);
    assert_non_null(text);
    grq_rng rng;
    grq_rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        const bool known = i >= 2 && grq_rng_below(&rng, 10) > 0;
        text[i] = known ? (text[i - 1] * 7 + text[i - 2] * 3 + 1) % (int32_t)vocab_size
                        : (int32_t)grq_rng_below(&rng, vocab_size);
    }
    return text;
}

#endif
