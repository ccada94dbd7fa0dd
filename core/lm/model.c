#include "gaterq/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/rng.h"
#include "lm/model_internal.h"

void *lm_allocate(size_t n, size_t bytes)
{
    enum { LINE_BYTES = 64 };
    if (bytes > 0 && n > (SIZE_MAX - LINE_BYTES) / bytes) return NULL;
    const size_t size = (n * bytes + LINE_BYTES) / LINE_BYTES * LINE_BYTES;
    void *memory = aligned_alloc(LINE_BYTES, size);
    if (memory) memset(memory, 0, size);
    return memory;
}

static void set_views(grq_model *model)
{
    const float *w = model->weights;
    for (uint32_t i = 0; i < model->shape.memory.n_layers; i++) {
        const lm_memory_at *at = &model->layout.memory[i];
        model->memory[i] = (grq_memory_layer){
            .geometry = &model->shape.memory,
            .layer_index = i,
            .table = w + at->table,
            .key_weight = w + at->key,
            .value_weight = w + at->value,
            .query_gain = w + at->query_gain,
            .key_gain = w + at->key_gain,
        };
    }
}

grq_status lm_model_allocate(const grq_model_shape *shape, const grq_vocab *vocab, grq_model **out, grq_error *err)
{
    *out = NULL;
    if (vocab && grq_vocab_size(vocab) != shape->vocab_size)
        return grq_fail(err, GRQ_E_DATA, "model: the vocabulary has %u entries, vocab_size is %u",
                        grq_vocab_size(vocab), shape->vocab_size);
    grq_model *model = calloc(1, sizeof *model);
    if (!model) return grq_fail(err, GRQ_E_NOMEM, "model: no memory");
    model->shape = *shape;
    grq_status st = lm_layout_new(&model->shape, &model->layout, err);
    if (st == GRQ_OK) {
        model->weights = lm_allocate(model->layout.n_all, sizeof *model->weights);
        if (!model->weights) st = grq_fail(err, GRQ_E_NOMEM, "model: no memory for %zu weights", model->layout.n_all);
    }
    if (st == GRQ_OK && vocab) st = grq_vocab_copy(vocab, &model->vocab, err);
    if (st != GRQ_OK) {
        grq_model_free(model);
        return st;
    }
    set_views(model);
    *out = model;
    return GRQ_OK;
}

static void fill(float *to, size_t n, float value)
{
    for (size_t i = 0; i < n; i++) to[i] = value;
}

/* Sub-layer k of 2 n_blocks reads mostly branch k mod n, writes to all alike and mixes nothing: the recipe's start. */
static void init_mixers(float *w, const lm_sublayer_at *at, uint32_t k, uint32_t n_branches, uint32_t width)
{
    fill(w + at->norm, width, 1);
    fill(w + at->read, n_branches, 0.3f / (float)n_branches);
    w[at->read + k % n_branches] += 0.7f;
    fill(w + at->write, n_branches, 1);
    for (uint32_t b = 0; b < n_branches; b++) w[at->mix + (size_t)b * n_branches + b] = 1;
}

void lm_model_init(grq_model *model, uint64_t seed)
{
    const grq_model_shape *s = &model->shape;
    const lm_layout *layout = &model->layout;
    const uint32_t n_branches = s->memory.n_branches;
    float *w = model->weights;
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "init");
    for (size_t i = 0; i < layout->n_tensors; i++) {
        const lm_tensor *t = &layout->tensors[i];
        if (t->deviation > 0)
            for (size_t k = 0; k < t->n; k++) w[t->at + k] = (float)(t->deviation * grq_rng_normal(&rng));
    }
    fill(w + layout->final_read, n_branches, 1.0f / (float)n_branches);
    fill(w + layout->final_norm, s->width, 1);
    for (uint32_t b = 0; b < s->n_blocks; b++)
        for (uint32_t k = 0; k < LM_SUBLAYERS; k++)
            init_mixers(w, &layout->blocks[b][k], LM_SUBLAYERS * b + k, n_branches, s->width);
    for (uint32_t i = 0; i < s->memory.n_layers; i++) {
        fill(w + layout->memory[i].query_gain, (size_t)n_branches * s->width, 1);
        fill(w + layout->memory[i].key_gain, (size_t)n_branches * s->width, 1);
    }
}

grq_status grq_model_new(const grq_model_shape *shape, const grq_vocab *vocab, uint64_t seed, grq_model **out,
                         grq_error *err)
{
    *out = NULL;
    grq_status st = lm_shape_check(shape, "model", err);
    if (st == GRQ_OK) st = lm_model_allocate(shape, vocab, out, err);
    if (st == GRQ_OK) lm_model_init(*out, seed);
    return st;
}

void grq_model_free(grq_model *model)
{
    if (!model) return;
    lm_layout_free(&model->layout);
    grq_vocab_free(model->vocab);
    grq_safetensors_close(model->file);
    free(model->weights);
    free(model);
}

const grq_model_shape *grq_model_shape_of(const grq_model *model)
{
    return &model->shape;
}

const grq_vocab *grq_model_vocab(const grq_model *model)
{
    return model->vocab;
}

const grq_memory_layer *grq_model_memory(const grq_model *model, uint32_t index)
{
    return &model->memory[index];
}

const char *grq_model_metadata(const grq_model *model, const char *key)
{
    return model->file ? grq_safetensors_metadata(model->file, key) : NULL;
}

uint64_t grq_model_n_parameters(const grq_model *model, int tables)
{
    uint64_t n = 0;
    for (size_t i = 0; i < model->layout.n_tensors; i++) {
        const lm_tensor *t = &model->layout.tensors[i];
        if (!tables || t->role == LM_TABLE) n += t->n;
    }
    return n;
}
