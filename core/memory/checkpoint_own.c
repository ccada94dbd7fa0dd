/* Our own memory folders, and a miniature's model file. Layout: docs/format.md, "Memory folders". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gaterq/file.h"
#include "memory/checkpoint_internal.h"

static const char MODEL_KEY[] = "gaterq.model", MODEL_FILE[] = "model.safetensors", GEOMETRY_FILE[] = "memory.json";

/* The geometry within the shape that a miniature's file carries in its metadata. */
static grq_status geometry_of_model(grq_checkpoint *c, const char *text, grq_error *err)
{
    grq_json *document = NULL;
    grq_json_node *memory;
    grq_status st = grq_json_parse(MODEL_KEY, text, strlen(text), &document, err);
    if (st == GRQ_OK) st = grq_json_object(grq_json_root(document), "memory", &memory, err);
    if (st == GRQ_OK) st = grq_geometry_read(memory, &c->geometry, err);
    if (st != GRQ_OK) grq_fail_prefix(err, st, "%s: metadata", grq_shards_path(c->shards));
    grq_json_close(document);
    return st;
}

/* A run's folder holds other safetensors files beside the model (counts, codes): only the model counts. */
static grq_status reopen_model(grq_checkpoint *c, const char *path, grq_error *err)
{
    grq_shards *only = NULL;
    const grq_status st = grq_shards_open(path, &only, err);
    if (st != GRQ_OK) return st;
    grq_shards_close(c->shards);
    c->shards = only;
    return GRQ_OK;
}

static grq_status read_geometry(grq_checkpoint *c, grq_json_node *config, grq_error *err)
{
    (void)config;
    char *const geometry = grq_path_join(grq_shards_path(c->shards), GEOMETRY_FILE);
    char *const model = grq_path_join(grq_shards_path(c->shards), MODEL_FILE);
    grq_status st = geometry && model ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    if (st == GRQ_OK && grq_file_exists(geometry)) {
        st = grq_geometry_open(geometry, &c->geometry, err);
    } else if (st == GRQ_OK) {
        if (grq_file_exists(model)) st = reopen_model(c, model, err);
        const char *const text = st == GRQ_OK ? grq_shards_metadata(c->shards, MODEL_KEY) : NULL;
        if (text) st = geometry_of_model(c, text, err);
        else if (st == GRQ_OK)
            st = grq_fail(
                err, GRQ_E_DATA,
                "%s: no checkpoint with a memory: config.json (DeepSeek-V4.1, Qwen3.8), %s or a miniature's %s "
                "must be there",
                grq_shards_path(c->shards), GEOMETRY_FILE, MODEL_FILE);
    }
    free(geometry);
    free(model);
    return st;
}

static void tensor_name(const grq_checkpoint *c, uint32_t l, const char *what, char *name)
{
    snprintf(name, CHECKPOINT_NAME_BYTES, "memory.%u.%s", c->geometry.layer_ids[l], what);
}

static grq_status open_table(grq_checkpoint *c, uint32_t l, grq_table **out, grq_error *err)
{
    char name[CHECKPOINT_NAME_BYTES], scales[CHECKPOINT_NAME_BYTES];
    tensor_name(c, l, "table", name);
    tensor_name(c, l, "table_scale", scales);
    return checkpoint_table(c, name, scales, c->geometry.n_rows[l], c->geometry.row_dim, out, err);
}

static grq_status read_gains(grq_checkpoint *c, uint32_t l, const char *what, float **out, grq_error *err)
{
    const grq_geometry *const g = &c->geometry;
    char name[CHECKPOINT_NAME_BYTES];
    tensor_name(c, l, what, name);
    const grq_status st = checkpoint_read(c, name, NULL, g->n_branches, g->width, out, err);
    if (st == GRQ_OK) checkpoint_offset_gains(g, *out, (size_t)g->n_branches * g->width);
    return st;
}

static grq_status read_bias(grq_checkpoint *c, uint32_t l, const char *what, uint64_t n, float **out, grq_error *err)
{
    char name[CHECKPOINT_NAME_BYTES];
    tensor_name(c, l, what, name);
    return checkpoint_read_shaped(c, name, NULL, 1, &n, out, err);
}

static grq_status read_weights(grq_checkpoint *c, uint32_t l, grq_layer_weights *w, grq_error *err)
{
    const grq_geometry *const g = &c->geometry;
    const uint64_t channels = (uint64_t)g->n_branches * g->width;
    char name[CHECKPOINT_NAME_BYTES], scales[CHECKPOINT_NAME_BYTES];
    tensor_name(c, l, "key", name);
    tensor_name(c, l, "key_scale", scales);
    grq_status st = checkpoint_read(c, name, scales, channels, g->row_values, &w->key_weight, err);
    tensor_name(c, l, "value", name);
    tensor_name(c, l, "value_scale", scales);
    if (st == GRQ_OK) st = checkpoint_read(c, name, scales, g->width, g->row_values, &w->value_weight, err);
    if (st == GRQ_OK) st = read_gains(c, l, "query_gain", &w->query_gain, err);
    if (st == GRQ_OK) st = read_gains(c, l, "key_gain", &w->key_gain, err);
    if (st == GRQ_OK && g->bias) st = read_bias(c, l, "key_bias", channels, &w->key_bias, err);
    if (st == GRQ_OK && g->bias) st = read_bias(c, l, "value_bias", g->width, &w->value_bias, err);
    if (st != GRQ_OK || !g->conv_kernel) return st;
    st = read_gains(c, l, "conv_gain", &w->conv_gain, err);
    tensor_name(c, l, "conv_weight", name);
    if (st == GRQ_OK) st = checkpoint_read(c, name, NULL, channels, g->conv_kernel, &w->conv_weight, err);
    return st == GRQ_OK ? checkpoint_transpose_taps(g, &w->conv_weight, err) : st;
}

const checkpoint_kind checkpoint_own = { "gaterq", read_geometry, open_table, read_weights };
