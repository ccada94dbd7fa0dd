#include "lm/decoder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/blas.h"
#include "gaterq/hash.h"
#include "lm/attention.h"
#include "lm/model_internal.h"
#include "lm/ops.h"

/* Sub-layers run over LM_CHUNK tokens at a time, so that their activations stay in cache however many are fed; the
 * memory sees all tokens of a step at once, as hooks must. */
struct grq_decoder {
    const grq_model *model;
    grq_memory_hook hook;
    uint32_t n_sequences, max_tokens;
    uint32_t *lengths, *starts, *counts;        /* (n_sequences) */
    grq_hash_state *hashes;                     /* (n_layers, n_sequences) */
    lm_cache *caches;                           /* (n_blocks) */
    float *cache_values;                        /* the caches' memory */
    float *x, *scale, *y, *inner, *mixed, *out; /* (LM_CHUNK, ...) of one sub-layer */
    float *gathered;                            /* (LM_CHUNK, n_branches, width) streams whose logits are wanted */
    float *probabilities;                       /* one row of scores */
    /* of the current step; grown when needed */
    size_t room;
    float *h, *h_next; /* (room, n_branches, width) */
    lm_place *places;  /* (room) */
    int64_t *rows;     /* (room, n_columns) */
    float *lookups;    /* (LM_CHUNK, row_values) for the model's own table, as the next three */
    float *keys, *values, *gates;
};

static size_t stream_values(const grq_decoder *d)
{
    return (size_t)d->model->shape.memory.n_branches * d->model->shape.width;
}

static size_t inner_width(const grq_model_shape *shape)
{
    return 3 * shape->width > shape->mlp_width ? 3 * shape->width : shape->mlp_width;
}

static grq_status allocate_caches(grq_decoder *d, grq_error *err)
{
    const grq_model_shape *s = &d->model->shape;
    const size_t capacity = lm_key_stride(d->max_tokens);
    size_t per_plane, n_values;
    if (__builtin_mul_overflow((size_t)d->n_sequences * s->width, capacity, &per_plane) ||
        __builtin_mul_overflow(per_plane, 2 * (size_t)s->n_blocks, &n_values) || n_values > SIZE_MAX / sizeof(float))
        return grq_fail(err, GRQ_E_USAGE, "decoder: %u sequences of %u tokens are too many", d->n_sequences,
                        d->max_tokens);
    d->cache_values = calloc(n_values, sizeof *d->cache_values); /* pages not written stay untouched */
    d->caches = calloc(s->n_blocks, sizeof *d->caches);
    if (!d->cache_values || !d->caches)
        return grq_fail(err, GRQ_E_NOMEM, "decoder: no memory for %u sequences of %u tokens", d->n_sequences,
                        d->max_tokens);
    for (uint32_t b = 0; b < s->n_blocks; b++)
        d->caches[b] = (lm_cache){ .keys = d->cache_values + 2 * b * per_plane,
                                   .values = d->cache_values + (2 * b + 1) * per_plane,
                                   .capacity = capacity };
    return GRQ_OK;
}

static grq_status allocate_scratch(grq_decoder *d, grq_error *err)
{
    const grq_model_shape *s = &d->model->shape;
    const grq_geometry *g = &s->memory;
    d->lengths = calloc(d->n_sequences, sizeof *d->lengths);
    d->starts = calloc(d->n_sequences, sizeof *d->starts);
    d->counts = calloc(d->n_sequences, sizeof *d->counts);
    d->hashes = calloc((size_t)d->n_sequences * (g->n_layers + 1), sizeof *d->hashes);
    d->x = lm_allocate((size_t)LM_CHUNK * s->width, sizeof(float));
    d->scale = lm_allocate(LM_CHUNK, sizeof(float));
    d->y = lm_allocate((size_t)LM_CHUNK * s->width, sizeof(float));
    d->inner = lm_allocate(LM_CHUNK * inner_width(s), sizeof(float));
    d->mixed = lm_allocate((size_t)LM_CHUNK * s->width, sizeof(float));
    d->out = lm_allocate((size_t)LM_CHUNK * s->width, sizeof(float));
    d->gathered = lm_allocate(LM_CHUNK * stream_values(d), sizeof(float));
    d->probabilities = lm_allocate(lm_key_stride(d->max_tokens), sizeof(float));
    bool complete = d->lengths && d->starts && d->counts && d->hashes && d->x && d->scale && d->y && d->inner &&
                    d->mixed && d->out && d->gathered && d->probabilities;
    if (!d->hook.apply) {
        d->lookups = lm_allocate((size_t)LM_CHUNK * g->row_values, sizeof(float));
        d->keys = lm_allocate(LM_CHUNK * stream_values(d), sizeof(float));
        d->values = lm_allocate((size_t)LM_CHUNK * s->width, sizeof(float));
        d->gates = lm_allocate((size_t)LM_CHUNK * g->n_branches, sizeof(float));
        complete = complete && d->lookups && d->keys && d->values && d->gates;
    }
    return complete ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "decoder: no memory for the activations");
}

grq_status grq_decoder_new(const grq_model *model, const grq_memory_hook *hook, uint32_t n_sequences,
                           uint32_t max_tokens, grq_decoder **out, grq_error *err)
{
    *out = NULL;
    if (n_sequences == 0 || max_tokens == 0)
        return grq_fail(err, GRQ_E_USAGE, "decoder: %u sequences of %u tokens; both must be at least 1", n_sequences,
                        max_tokens);
    grq_status st = grq_blas_init(err);
    if (st != GRQ_OK) return st;
    grq_decoder *d = calloc(1, sizeof *d);
    if (!d) return grq_fail(err, GRQ_E_NOMEM, "decoder: no memory");
    d->model = model;
    if (hook) d->hook = *hook;
    d->n_sequences = n_sequences;
    d->max_tokens = max_tokens;
    st = allocate_caches(d, err);
    if (st == GRQ_OK) st = allocate_scratch(d, err);
    if (st != GRQ_OK) {
        grq_decoder_free(d);
        return st;
    }
    grq_decoder_reset(d);
    *out = d;
    return GRQ_OK;
}

void grq_decoder_free(grq_decoder *d)
{
    if (!d) return;
    void *const owned[] = { d->lengths,  d->starts,        d->counts, d->hashes, d->caches, d->cache_values,
                            d->x,        d->scale,         d->y,      d->inner,  d->mixed,  d->out,
                            d->gathered, d->probabilities, d->h,      d->h_next, d->places, d->rows,
                            d->lookups,  d->keys,          d->values, d->gates };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
    free(d);
}

void grq_decoder_reset(grq_decoder *d)
{
    memset(d->lengths, 0, d->n_sequences * sizeof *d->lengths);
    memset(d->counts, 0, d->n_sequences * sizeof *d->counts);
    const size_t n = (size_t)d->n_sequences * d->model->shape.memory.n_layers;
    for (size_t i = 0; i < n; i++) grq_hash_start(&d->hashes[i]);
}

uint32_t grq_decoder_length(const grq_decoder *d, uint32_t sequence)
{
    return d->lengths[sequence];
}

const uint32_t *grq_decoder_step_starts(const grq_decoder *d)
{
    return d->starts;
}

const uint32_t *grq_decoder_step_counts(const grq_decoder *d)
{
    return d->counts;
}

/* Everything about the step that can be wrong is found here, before any state changes. */
static grq_status check_step(const grq_decoder *d, const uint32_t *n_new, const int32_t *tokens, size_t *n_fed,
                             grq_error *err)
{
    const uint32_t vocab_size = d->model->shape.vocab_size;
    size_t n = 0;
    for (uint32_t s = 0; s < d->n_sequences; s++) {
        if (n_new[s] > d->max_tokens - d->lengths[s])
            return grq_fail(err, GRQ_E_USAGE, "decoder: sequence %u would hold %" PRIu64 " tokens, room is for %u", s,
                            (uint64_t)d->lengths[s] + n_new[s], d->max_tokens);
        for (uint32_t i = 0; i < n_new[s]; i++, n++)
            if (tokens[n] < 0 || (uint32_t)tokens[n] >= vocab_size)
                return grq_fail(err, GRQ_E_DATA,
                                "decoder: sequence %u, position %u: token %d is outside the vocabulary of %u", s,
                                d->lengths[s] + i, tokens[n], vocab_size);
    }
    *n_fed = n;
    return GRQ_OK;
}

/* Old contents are not needed, so this frees before it allocates. */
static grq_status make_room(grq_decoder *d, size_t n, grq_error *err)
{
    if (n <= d->room) return GRQ_OK;
    free(d->h);
    free(d->h_next);
    free(d->places);
    free(d->rows);
    d->room = 0;
    d->h = lm_allocate(n, stream_values(d) * sizeof *d->h);
    d->h_next = lm_allocate(n, stream_values(d) * sizeof *d->h_next);
    d->places = lm_allocate(n, sizeof *d->places);
    d->rows = lm_allocate(n, d->model->shape.memory.n_columns * sizeof *d->rows);
    if (!d->h || !d->h_next || !d->places || !d->rows)
        return grq_fail(err, GRQ_E_NOMEM, "decoder: no memory for a step of %zu tokens", n);
    d->room = n;
    return GRQ_OK;
}

/* Places of the step's tokens, and their embedding in every branch. */
static void start_step(grq_decoder *d, const uint32_t *n_new, const int32_t *tokens)
{
    const size_t width = d->model->shape.width, n_branches = d->model->shape.memory.n_branches;
    const float *embed = d->model->weights + d->model->layout.embed;
    size_t n = 0;
    for (uint32_t s = 0; s < d->n_sequences; s++) {
        d->starts[s] = d->lengths[s];
        d->counts[s] = n_new[s];
        for (uint32_t i = 0; i < n_new[s]; i++, n++) {
            d->places[n] = (lm_place){ .sequence = s, .position = d->starts[s] + i };
            for (size_t b = 0; b < n_branches; b++)
                memcpy(d->h + (n * n_branches + b) * width, embed + (size_t)tokens[n] * width, width * sizeof *embed);
        }
    }
}

static void read_own_table(grq_decoder *d, const grq_memory_layer *layer, size_t n)
{
    const size_t n_columns = layer->geometry->n_columns;
    for (size_t t = 0; t < n; t += LM_CHUNK) {
        const size_t chunk = n - t < LM_CHUNK ? n - t : LM_CHUNK;
        float *h = d->h + t * stream_values(d);
        grq_layer_fetch(layer, chunk, d->rows + t * n_columns, d->lookups);
        grq_layer_keys(layer, chunk, d->lookups, d->keys);
        grq_layer_values(layer, chunk, d->lookups, d->values);
        grq_layer_gates(layer, chunk, h, d->keys, NULL, d->gates);
        grq_layer_inject(layer, chunk, d->gates, d->values, h);
    }
}

static grq_status apply_memory(grq_decoder *d, uint32_t index, const int32_t *tokens, size_t n, grq_error *err)
{
    const grq_memory_layer *layer = &d->model->memory[index];
    const size_t n_columns = layer->geometry->n_columns;
    grq_status st = GRQ_OK;
    size_t at = 0;
    for (uint32_t s = 0; s < d->n_sequences && st == GRQ_OK; at += d->counts[s++])
        if (d->counts[s] > 0)
            st = grq_hash_rows(layer->geometry, index, &d->hashes[(size_t)index * d->n_sequences + s], tokens + at,
                               d->counts[s], d->rows + at * n_columns, err);
    if (st != GRQ_OK) return st;
    if (d->hook.apply) return d->hook.apply(d->hook.context, layer, n, d->rows, d->h, err);
    read_own_table(d, layer, n);
    return GRQ_OK;
}

static void run_sublayer(grq_decoder *d, uint32_t block, int which, size_t n)
{
    const grq_model_shape *s = &d->model->shape;
    const lm_sublayer_at *at = &d->model->layout.blocks[block][which];
    const float *w = d->model->weights;
    const size_t width = s->width, n_branches = s->memory.n_branches;
    for (size_t t = 0; t < n; t += LM_CHUNK) {
        const size_t chunk = n - t < LM_CHUNK ? n - t : LM_CHUNK, stream = t * stream_values(d);
        lm_read_norm(chunk, n_branches, width, s->norm_eps, d->h + stream, w + at->read, w + at->norm, d->x, d->scale,
                     d->y);
        if (which == LM_ATTENTION) {
            lm_project(chunk, 3 * width, width, d->y, w + at->in, d->inner);
            lm_attention_cached(chunk, d->places + t, s->n_heads, width / s->n_heads, d->inner, &d->caches[block],
                                d->probabilities, d->mixed);
            lm_project(chunk, width, width, d->mixed, w + at->out, d->out);
        } else {
            lm_project(chunk, s->mlp_width, width, d->y, w + at->in, d->inner);
            lm_relu(chunk * s->mlp_width, d->inner);
            lm_project(chunk, width, s->mlp_width, d->inner, w + at->out, d->out);
        }
        lm_write_mix(chunk, n_branches, width, d->h + stream, w + at->mix, w + at->write, d->out, d->h_next + stream);
    }
    float *const swap = d->h;
    d->h = d->h_next;
    d->h_next = swap;
}

grq_status lm_decoder_feed(grq_decoder *d, const uint32_t *n_new, const int32_t *tokens, size_t *n_fed, grq_error *err)
{
    const grq_model_shape *s = &d->model->shape;
    grq_status st = check_step(d, n_new, tokens, n_fed, err);
    if (st == GRQ_OK) st = make_room(d, *n_fed, err);
    if (st != GRQ_OK) return st;
    start_step(d, n_new, tokens);
    if (*n_fed == 0) return GRQ_OK;
    for (uint32_t b = 0; b < s->n_blocks; b++) {
        const int memory = lm_memory_before(s, b);
        if (memory >= 0) st = apply_memory(d, (uint32_t)memory, tokens, *n_fed, err);
        if (st != GRQ_OK) return st;
        for (int which = 0; which < LM_SUBLAYERS; which++) run_sublayer(d, b, which, *n_fed);
    }
    for (uint32_t i = 0; i < d->n_sequences; i++) d->lengths[i] += n_new[i];
    return GRQ_OK;
}

void lm_decoder_logits(grq_decoder *d, size_t first, size_t n, const uint32_t *which, float *logits)
{
    const grq_model_shape *s = &d->model->shape;
    const lm_layout *layout = &d->model->layout;
    const float *w = d->model->weights;
    for (size_t t = 0; t < n; t += LM_CHUNK) {
        const size_t chunk = n - t < LM_CHUNK ? n - t : LM_CHUNK, stream = stream_values(d);
        const float *h = d->h + (first + t) * stream;
        if (which) {
            for (size_t i = 0; i < chunk; i++)
                memcpy(d->gathered + i * stream, d->h + which[t + i] * stream, stream * sizeof *d->h);
            h = d->gathered;
        }
        lm_read_norm(chunk, s->memory.n_branches, s->width, s->norm_eps, h, w + layout->final_read,
                     w + layout->final_norm, d->x, d->scale, d->y);
        lm_project(chunk, s->vocab_size, s->width, d->y, w + layout->head, logits + t * s->vocab_size);
    }
}

/* Rows of `logits` belong to sequences; those not fed keep theirs. */
static void last_logits_of(grq_decoder *d, const uint32_t *n_new, float *logits)
{
    const size_t vocab_size = d->model->shape.vocab_size;
    size_t at = 0;
    for (uint32_t s = 0; s < d->n_sequences;) {
        uint32_t which[LM_CHUNK], n = 0;
        const uint32_t from = s; /* sequences from .. s - 1, all fed, fill consecutive rows */
        for (; s < d->n_sequences && n_new[s] > 0 && n < LM_CHUNK; s++) {
            at += n_new[s];
            which[n++] = (uint32_t)(at - 1);
        }
        if (n > 0) lm_decoder_logits(d, 0, n, which, logits + from * vocab_size);
        else s++; /* this one was not fed */
    }
}

grq_status grq_decoder_step(grq_decoder *d, const uint32_t *n_new, const int32_t *tokens, float *last_logits,
                            float *all_logits, grq_error *err)
{
    size_t n_fed = 0;
    const grq_status st = lm_decoder_feed(d, n_new, tokens, &n_fed, err);
    if (st != GRQ_OK) return st;
    if (all_logits) lm_decoder_logits(d, 0, n_fed, NULL, all_logits);
    if (last_logits) last_logits_of(d, n_new, last_logits);
    return GRQ_OK;
}
