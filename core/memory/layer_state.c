/* Rings of the last ids and of the last inputs of the convolution: the one of position p is in slot p mod the ring's
 * length, so that a rewind is a smaller position and nothing else. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/layer_state_internal.h"

typedef struct {
    uint32_t n_ids, n_inputs; /* lengths of the rings */
    uint32_t channels;        /* values per input; 0 without a convolution */
    uint32_t max_rewind;
} state_shape;

struct grq_layer_state {
    state_shape shape;
    uint64_t position; /* tokens since the start */
    uint64_t oldest;   /* the least position that a rewind may still go back to */
    int32_t *ids;      /* (n_ids) */
    float *inputs;     /* (n_inputs, channels) */
};

static state_shape shape_for(const grq_geometry *g, uint32_t max_rewind)
{
    const bool conv = g->conv_span > 0;
    return (state_shape){ .n_ids = GRQ_MAX_ORDER - 1 + max_rewind,
                          .n_inputs = conv ? g->conv_span + max_rewind : 0,
                          .channels = conv ? g->n_branches * g->width : 0,
                          .max_rewind = max_rewind };
}

static size_t input_bytes(const state_shape *s)
{
    return (size_t)s->n_inputs * s->channels * sizeof(float);
}

static grq_status allocate(state_shape shape, grq_layer_state **out, grq_error *err)
{
    *out = NULL;
    grq_layer_state *s = calloc(1, sizeof *s);
    if (!s) return grq_fail(err, GRQ_E_NOMEM, "no memory for a layer's state");
    s->shape = shape;
    s->ids = malloc(shape.n_ids * sizeof *s->ids);
    s->inputs = shape.n_inputs ? malloc(input_bytes(&shape)) : NULL;
    if (!s->ids || (shape.n_inputs && !s->inputs)) {
        grq_layer_state_free(s);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for a layer's state");
    }
    *out = s;
    return GRQ_OK;
}

grq_status grq_layer_state_new(const grq_geometry *g, uint32_t max_rewind, grq_layer_state **out, grq_error *err)
{
    *out = NULL;
    if (max_rewind > 1u << 20)
        return grq_fail(err, GRQ_E_USAGE, "a state that can be rewound by %u tokens; at most 2^20", max_rewind);
    const grq_status st = allocate(shape_for(g, max_rewind), out, err);
    if (st == GRQ_OK) grq_layer_state_reset(*out);
    return st;
}

void grq_layer_state_free(grq_layer_state *s)
{
    if (!s) return;
    free(s->ids);
    free(s->inputs);
    free(s);
}

void grq_layer_state_reset(grq_layer_state *s)
{
    s->position = s->oldest = 0;
    memset(s->ids, 0, s->shape.n_ids * sizeof *s->ids); /* so that saved bytes are the same ones */
    if (s->inputs) memset(s->inputs, 0, input_bytes(&s->shape));
}

static bool same_shape(const state_shape *a, const state_shape *b)
{
    return a->n_ids == b->n_ids && a->n_inputs == b->n_inputs && a->channels == b->channels &&
           a->max_rewind == b->max_rewind;
}

grq_status grq_layer_state_copy(grq_layer_state *to, const grq_layer_state *from, grq_error *err)
{
    if (!same_shape(&to->shape, &from->shape))
        return grq_fail(err, GRQ_E_USAGE, "the states were made for different geometries or rewinds");
    to->position = from->position;
    to->oldest = from->oldest;
    memcpy(to->ids, from->ids, from->shape.n_ids * sizeof *to->ids);
    if (from->inputs) memcpy(to->inputs, from->inputs, input_bytes(&from->shape));
    return GRQ_OK;
}

grq_status grq_layer_state_rewind(grq_layer_state *s, uint64_t n_tokens, grq_error *err)
{
    if (n_tokens > s->position)
        return grq_fail(err, GRQ_E_USAGE, "rewind by %" PRIu64 " tokens: the sequence has %" PRIu64, n_tokens,
                        s->position);
    if (s->position - n_tokens < s->oldest)
        return grq_fail(err, GRQ_E_USAGE,
                        "rewind by %" PRIu64 " tokens: %" PRIu64
                        " are kept; make the state with a larger max_rewind (%u)",
                        n_tokens, s->position - s->oldest, s->shape.max_rewind);
    s->position -= n_tokens;
    return GRQ_OK;
}

uint64_t grq_layer_state_position(const grq_layer_state *s)
{
    return s->position;
}

/* ---- as bytes ---- */

typedef struct {
    state_shape shape;
    uint64_t position, oldest;
} saved_heading;

size_t grq_layer_state_bytes(const grq_layer_state *s)
{
    return sizeof(saved_heading) + s->shape.n_ids * sizeof *s->ids + input_bytes(&s->shape);
}

void grq_layer_state_save(const grq_layer_state *s, void *bytes)
{
    const saved_heading heading = { s->shape, s->position, s->oldest };
    char *to = bytes;
    memcpy(to, &heading, sizeof heading);
    memcpy(to + sizeof heading, s->ids, s->shape.n_ids * sizeof *s->ids);
    if (s->inputs) memcpy(to + sizeof heading + s->shape.n_ids * sizeof *s->ids, s->inputs, input_bytes(&s->shape));
}

grq_status grq_layer_state_load(grq_layer_state *s, const void *bytes, size_t n_bytes, grq_error *err)
{
    const char *const from = bytes;
    saved_heading heading;
    if (n_bytes != grq_layer_state_bytes(s))
        return grq_fail(err, GRQ_E_DATA, "a saved layer state of %zu bytes; this layer's has %zu", n_bytes,
                        grq_layer_state_bytes(s));
    memcpy(&heading, from, sizeof heading);
    if (!same_shape(&heading.shape, &s->shape) || heading.oldest > heading.position)
        return grq_fail(err, GRQ_E_DATA, "the saved layer state is of another geometry or rewind, or broken");
    s->position = heading.position;
    s->oldest = heading.oldest;
    memcpy(s->ids, from + sizeof heading, s->shape.n_ids * sizeof *s->ids);
    if (s->inputs) memcpy(s->inputs, from + sizeof heading + s->shape.n_ids * sizeof *s->ids, input_bytes(&s->shape));
    return GRQ_OK;
}

/* ---- in a forward pass ---- */

grq_status grq_layer_state_clone(const grq_layer_state *s, grq_layer_state **out, grq_error *err)
{
    grq_status st = allocate(s->shape, out, err);
    if (st == GRQ_OK) st = grq_layer_state_copy(*out, s, err);
    return st;
}

void grq_layer_state_hash(const grq_layer_state *s, grq_hash_state *out)
{
    grq_hash_start(out);
    for (uint64_t i = 0; i < GRQ_MAX_ORDER - 1 && i < s->position; i++)
        out->previous[i] = s->ids[(s->position - 1 - i) % s->shape.n_ids];
}

const float *grq_layer_state_input(const grq_layer_state *s, uint64_t back)
{
    if (back > s->position) return NULL;
    return s->inputs + (s->position - back) % s->shape.n_inputs * s->shape.channels;
}

void grq_layer_state_push(grq_layer_state *s, size_t n_tokens, const int32_t *ids, const float *inputs)
{
    const size_t last_ids = n_tokens < s->shape.n_ids ? n_tokens : s->shape.n_ids;
    for (size_t i = n_tokens - last_ids; i < n_tokens; i++) s->ids[(s->position + i) % s->shape.n_ids] = ids[i];
    const size_t last_inputs = n_tokens < s->shape.n_inputs ? n_tokens : s->shape.n_inputs;
    const size_t channels = s->shape.channels;
    for (size_t i = n_tokens - last_inputs; s->inputs && i < n_tokens; i++)
        memcpy(s->inputs + (s->position + i) % s->shape.n_inputs * channels, inputs + i * channels,
               channels * sizeof *inputs);
    s->position += n_tokens;
    if (s->position > s->shape.max_rewind && s->oldest < s->position - s->shape.max_rewind)
        s->oldest = s->position - s->shape.max_rewind;
}
