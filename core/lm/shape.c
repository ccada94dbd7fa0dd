#include <inttypes.h>
#include <stdio.h>

#include "lm/model_internal.h"

/* Far above any miniature, and small enough that no product of sizes overflows. */
enum { MAX_VOCAB = 1 << 20, MAX_WIDTH = 1 << 14, MAX_BLOCKS = 256, MAX_ROW_DIM = 1 << 14 };
static const uint64_t MAX_TABLE_VALUES = UINT64_C(1) << 36;

static const char FAMILY[] = "miniature";

grq_status lm_shape_check(const grq_model_shape *s, const char *where, grq_error *err)
{
    const grq_geometry *g = &s->memory;
    const struct {
        const char *field;
        uint64_t value, max;
    } limits[] = {
        { "vocab_size", s->vocab_size, MAX_VOCAB },    { "width", s->width, MAX_WIDTH },
        { "n_blocks", s->n_blocks, MAX_BLOCKS },       { "n_heads", s->n_heads, s->width },
        { "mlp_width", s->mlp_width, 4 * MAX_WIDTH },  { "memory.n_branches", g->n_branches, LM_MAX_BRANCHES },
        { "memory.row_dim", g->row_dim, MAX_ROW_DIM },
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < 1 || limits[i].value > limits[i].max)
            return grq_fail(err, GRQ_E_USAGE, "%s.%s: %" PRIu64 " is outside 1..%" PRIu64, where, limits[i].field,
                            limits[i].value, limits[i].max);
    if (s->width % s->n_heads != 0)
        return grq_fail(err, GRQ_E_USAGE, "%s.n_heads: %u does not divide width %u", where, s->n_heads, s->width);
    if (!(s->norm_eps > 0 && s->norm_eps < 1))
        return grq_fail(err, GRQ_E_USAGE, "%s.norm_eps: %g is outside (0, 1)", where, s->norm_eps);
    if (g->width != s->width)
        return grq_fail(err, GRQ_E_USAGE, "%s.memory.width: %u is not the model's width %u", where, g->width, s->width);
    if (g->n_ids != s->vocab_size)
        return grq_fail(err, GRQ_E_USAGE, "%s.memory.n_ids: %" PRIu64 " is not the vocabulary's size %u", where,
                        g->n_ids, s->vocab_size);
    for (uint32_t i = 0; i < g->n_layers; i++) {
        if (g->layer_ids[i] >= s->n_blocks)
            return grq_fail(err, GRQ_E_USAGE, "%s.memory.layer_ids: no block %u in a model of %u", where,
                            g->layer_ids[i], s->n_blocks);
        if (g->n_rows[i] == 0 || g->n_rows[i] > MAX_TABLE_VALUES / g->row_dim)
            return grq_fail(err, GRQ_E_USAGE, "%s.memory: a table of %" PRIu64 " rows of %u is too large", where,
                            g->n_rows[i], g->row_dim);
    }
    return GRQ_OK;
}

/* The members shared by configs and model files. */
static grq_status read_backbone(grq_json_node *object, grq_model_shape *out, grq_error *err)
{
    uint64_t width, n_blocks, n_heads, mlp_width;
    grq_status st = grq_json_u64(object, "width", 1, MAX_WIDTH, &width, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "n_blocks", 1, MAX_BLOCKS, &n_blocks, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "n_heads", 1, width, &n_heads, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "mlp_width", 1, 4 * MAX_WIDTH, &mlp_width, err);
    if (st == GRQ_OK) st = grq_json_f64(object, "norm_eps", 0, 1, &out->norm_eps, err);
    if (st != GRQ_OK) return st;
    out->width = (uint32_t)width;
    out->n_blocks = (uint32_t)n_blocks;
    out->n_heads = (uint32_t)n_heads;
    out->mlp_width = (uint32_t)mlp_width;
    return GRQ_OK;
}

static grq_status read_layer_ids(grq_json_node *memory, grq_geometry *out, grq_error *err)
{
    grq_json_node *ids;
    grq_status st = grq_json_array(memory, "layer_ids", &ids, err);
    if (st != GRQ_OK) return st;
    const size_t n = grq_json_count(ids);
    if (n > GRQ_MAX_MEMORY_LAYERS)
        return grq_fail(err, GRQ_E_USAGE, "%s: %zu memory layers, at most %d", grq_json_where(ids), n,
                        GRQ_MAX_MEMORY_LAYERS);
    for (size_t i = 0; i < n && st == GRQ_OK; i++) {
        uint64_t id = 0;
        st = grq_json_as_u64(grq_json_at(ids, i), 0, MAX_BLOCKS - 1, &id, err);
        out->layer_ids[i] = (uint32_t)id;
    }
    out->n_layers = (uint32_t)n;
    return st;
}

static grq_status read_small(grq_json_node *object, const char *key, uint64_t max, uint32_t *out, grq_error *err)
{
    uint64_t value = 0;
    const grq_status st = grq_json_u64(object, key, 1, max, &value, err);
    *out = (uint32_t)value;
    return st;
}

static grq_status read_memory(grq_json_node *object, grq_geometry *out, grq_error *err)
{
    grq_json_node *memory;
    grq_status st = grq_json_object(object, "memory", &memory, err);
    if (st == GRQ_OK) st = read_layer_ids(memory, out, err);
    if (st == GRQ_OK) st = read_small(memory, "min_order", GRQ_MAX_ORDER, &out->min_order, err);
    if (st == GRQ_OK) st = read_small(memory, "max_order", GRQ_MAX_ORDER, &out->max_order, err);
    if (st == GRQ_OK) st = read_small(memory, "n_heads", GRQ_MAX_COLUMNS, &out->n_heads, err);
    if (st == GRQ_OK) st = read_small(memory, "row_dim", MAX_ROW_DIM, &out->row_dim, err);
    if (st == GRQ_OK) st = read_small(memory, "n_branches", LM_MAX_BRANCHES, &out->n_branches, err);
    if (st == GRQ_OK) st = grq_json_u64(memory, "prime_start", 2, MAX_TABLE_VALUES, &out->prime_start, err);
    if (st == GRQ_OK) st = grq_json_u64(memory, "multiplier_seed", 0, UINT32_MAX, &out->multiplier_seed, err);
    if (st == GRQ_OK) st = grq_json_f64(memory, "norm_eps", 0, 1, &out->norm_eps, err);
    if (st == GRQ_OK) st = grq_json_f64(memory, "gate_clamp", 0, 1, &out->gate_clamp, err);
    if (st == GRQ_OK) st = grq_json_finish(memory, err);
    return st;
}

grq_status grq_model_shape_read(grq_json_node *object, uint32_t vocab_size, grq_model_shape *out, grq_error *err)
{
    grq_model_shape shape = { .vocab_size = vocab_size };
    grq_status st = read_backbone(object, &shape, err);
    if (st == GRQ_OK) st = read_memory(object, &shape.memory, err);
    if (st == GRQ_OK) st = grq_json_finish(object, err);
    if (st != GRQ_OK) return st;
    snprintf(shape.memory.family, sizeof shape.memory.family, "%s", FAMILY);
    shape.memory.width = shape.width;
    shape.memory.n_ids = vocab_size;
    shape.memory.pad_id = GRQ_PAD_TOKEN;
    st = grq_geometry_derive(&shape.memory, err);
    if (st != GRQ_OK) return grq_fail_prefix(err, st, "%s.memory", grq_json_where(object));
    st = lm_shape_check(&shape, grq_json_where(object), err);
    if (st == GRQ_OK) *out = shape;
    return st;
}

void lm_shape_write(const grq_model_shape *shape, const char *key, grq_json_writer *writer)
{
    grq_json_begin_object(writer, key);
    grq_json_put_u64(writer, "vocab_size", shape->vocab_size);
    grq_json_put_u64(writer, "width", shape->width);
    grq_json_put_u64(writer, "n_blocks", shape->n_blocks);
    grq_json_put_u64(writer, "n_heads", shape->n_heads);
    grq_json_put_u64(writer, "mlp_width", shape->mlp_width);
    grq_json_put_f64(writer, "norm_eps", shape->norm_eps);
    grq_json_begin_object(writer, "memory");
    grq_geometry_write(&shape->memory, writer);
    grq_json_end_object(writer);
    grq_json_end_object(writer);
}

grq_status lm_shape_read(grq_json_node *object, grq_model_shape *out, grq_error *err)
{
    grq_model_shape shape = { 0 };
    uint64_t vocab_size;
    grq_json_node *memory;
    grq_status st = grq_json_u64(object, "vocab_size", 1, MAX_VOCAB, &vocab_size, err);
    if (st == GRQ_OK) st = read_backbone(object, &shape, err);
    if (st == GRQ_OK) st = grq_json_object(object, "memory", &memory, err);
    if (st == GRQ_OK) st = grq_geometry_read(memory, &shape.memory, err);
    if (st == GRQ_OK) st = grq_json_finish(object, err);
    if (st != GRQ_OK) return st;
    shape.vocab_size = (uint32_t)vocab_size;
    st = lm_shape_check(&shape, grq_json_where(object), err);
    if (st == GRQ_OK) *out = shape;
    return st;
}
