#include "lm/layout.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TENSORS_PER_BLOCK = 12,
    TENSORS_PER_MEMORY = 5,
    OTHER_TENSORS = 4,
    LINE = 16 /* floats of a cache line: tensors start at one, except a memory's value */
};

typedef struct {
    lm_role role;
    double deviation;
    bool follow; /* no padding before this tensor */
} placing;

static size_t add(lm_layout *layout, placing how, uint32_t rank, const uint64_t *shape, const char *name, ...)
    __attribute__((format(printf, 5, 6)));

static size_t add(lm_layout *layout, placing how, uint32_t rank, const uint64_t *shape, const char *name, ...)
{
    if (!how.follow) layout->n_all = (layout->n_all + LINE - 1) / LINE * LINE;
    lm_tensor *t = &layout->tensors[layout->n_tensors++];
    *t = (lm_tensor){ .role = how.role, .rank = rank, .at = layout->n_all, .n = 1, .deviation = how.deviation };
    for (uint32_t r = 0; r < rank; r++) {
        t->shape[r] = shape[r];
        t->n *= shape[r];
    }
    va_list args;
    va_start(args, name);
    vsnprintf(t->name, sizeof t->name, name, args);
    va_end(args);
    layout->n_all += t->n;
    return t->at;
}

/* Rank and dimensions, as two arguments. */
#define DIMENSIONS(...) ((const uint64_t[]){ __VA_ARGS__ })
#define SHAPE(...) sizeof DIMENSIONS(__VA_ARGS__) / sizeof(uint64_t), DIMENSIONS(__VA_ARGS__)

static void add_sublayer(lm_layout *layout, uint32_t block, int which)
{
    const grq_model_shape *s = layout->shape;
    const uint64_t d = s->width, m = s->memory.n_branches;
    const uint64_t inner_in = which == LM_ATTENTION ? 3 * d : s->mlp_width;
    const uint64_t inner_out = which == LM_ATTENTION ? d : s->mlp_width;
    const char *name = which == LM_ATTENTION ? "attention" : "mlp";
    const placing plain = { .role = LM_PLAIN };
    const placing in = { .role = LM_MATRIX, .deviation = 1 / sqrt((double)d) };
    const placing out = { .role = LM_MATRIX, .deviation = 1 / sqrt((double)inner_out * 2 * s->n_blocks) };
    lm_sublayer_at *at = &layout->blocks[block][which];
    at->norm = add(layout, plain, SHAPE(d), "blocks.%u.%s.norm", block, name);
    at->in = add(layout, in, SHAPE(inner_in, d), "blocks.%u.%s.%s", block, name, which == LM_ATTENTION ? "qkv" : "up");
    at->out =
        add(layout, out, SHAPE(d, inner_out), "blocks.%u.%s.%s", block, name, which == LM_ATTENTION ? "out" : "down");
    at->read = add(layout, plain, SHAPE(m), "blocks.%u.%s.read", block, name);
    at->write = add(layout, plain, SHAPE(m), "blocks.%u.%s.write", block, name);
    at->mix = add(layout, plain, SHAPE(m, m), "blocks.%u.%s.mix", block, name);
}

static void add_memory(lm_layout *layout, uint32_t index)
{
    const grq_geometry *g = &layout->shape->memory;
    const uint64_t d = g->width, m = g->n_branches, e = g->row_values;
    const uint32_t id = g->layer_ids[index];
    const double deviation = 1 / sqrt((double)e);
    lm_memory_at *at = &layout->memory[index];
    at->key = add(layout, (placing){ .role = LM_MATRIX, .deviation = deviation }, SHAPE(m * d, e), "memory.%u.key", id);
    at->value = add(layout, (placing){ .role = LM_MATRIX, .deviation = deviation, .follow = true }, SHAPE(d, e),
                    "memory.%u.value", id);
    at->query_gain = add(layout, (placing){ .role = LM_PLAIN }, SHAPE(m, d), "memory.%u.query_gain", id);
    at->key_gain = add(layout, (placing){ .role = LM_PLAIN }, SHAPE(m, d), "memory.%u.key_gain", id);
}

static void add_all(lm_layout *layout)
{
    const grq_model_shape *s = layout->shape;
    const grq_geometry *g = &s->memory;
    const uint64_t d = s->width, v = s->vocab_size, m = g->n_branches;
    const double rsqrt_d = 1 / sqrt((double)d);
    layout->embed =
        add(layout, (placing){ .role = LM_PLAIN, .deviation = 0.2 * sqrt(2) * rsqrt_d }, SHAPE(v, d), "embed");
    layout->head = add(layout, (placing){ .role = LM_MATRIX, .deviation = 0.5 * rsqrt_d }, SHAPE(v, d), "head");
    layout->final_read = add(layout, (placing){ .role = LM_PLAIN }, SHAPE(m), "final.read");
    layout->final_norm = add(layout, (placing){ .role = LM_PLAIN }, SHAPE(d), "final.norm");
    for (uint32_t b = 0; b < s->n_blocks; b++)
        for (int which = 0; which < LM_SUBLAYERS; which++) add_sublayer(layout, b, which);
    for (uint32_t i = 0; i < g->n_layers; i++) add_memory(layout, i);
    layout->n_all = (layout->n_all + LINE - 1) / LINE * LINE;
    layout->n_dense = layout->n_all;
    for (uint32_t i = 0; i < g->n_layers; i++)
        layout->memory[i].table = add(layout, (placing){ .role = LM_TABLE, .deviation = 0.02 },
                                      SHAPE(g->n_rows[i], g->row_dim), "memory.%u.table", g->layer_ids[i]);
}

grq_status lm_layout_new(const grq_model_shape *shape, lm_layout *out, grq_error *err)
{
    *out = (lm_layout){ .shape = shape };
    const size_t n_tensors = OTHER_TENSORS + (size_t)TENSORS_PER_BLOCK * shape->n_blocks +
                             (size_t)TENSORS_PER_MEMORY * shape->memory.n_layers;
    out->tensors = calloc(n_tensors, sizeof *out->tensors);
    out->blocks = calloc(shape->n_blocks, sizeof *out->blocks);
    if (!out->tensors || !out->blocks) {
        lm_layout_free(out);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for the layout of a model of %u blocks", shape->n_blocks);
    }
    add_all(out);
    return GRQ_OK;
}

void lm_layout_free(lm_layout *layout)
{
    free(layout->tensors);
    free(layout->blocks);
    *layout = (lm_layout){ 0 };
}

int lm_memory_before(const grq_model_shape *shape, uint32_t block)
{
    for (uint32_t i = 0; i < shape->memory.n_layers; i++)
        if (shape->memory.layer_ids[i] == block) return (int)i;
    return -1;
}
