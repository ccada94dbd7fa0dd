/* Opening a checkpoint: what kind it is, and what its kinds share. */
#include "memory/checkpoint_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gaterq/file.h"

/* ---- kinds ---- */

/* The object with the text model's settings. */
static grq_json_node *text_config(grq_json_node *root)
{
    grq_json_node *const inner = grq_json_find(root, "text_config");
    return inner && grq_json_kind_of(inner) == GRQ_JSON_OBJECT ? inner : root;
}

static grq_status find_kind(grq_checkpoint *c, grq_json_node *config, grq_error *err)
{
    if (grq_json_find(config, "engram_layer_ids")) c->kind = &checkpoint_deepseek;
    else if (grq_json_find(config, "ple_layer_ids")) c->kind = &checkpoint_qwen;
    else
        return grq_fail(err, GRQ_E_DATA,
                        "%s: neither engram_layer_ids (DeepSeek-V4.1) nor ple_layer_ids (Qwen3.8): a model without "
                        "n-gram memory, or one that is not known here",
                        grq_json_where(config));
    return GRQ_OK;
}

static grq_status read_config(grq_checkpoint *c, const char *path, grq_error *err)
{
    grq_json *document = NULL;
    grq_status st = grq_json_open(path, &document, err);
    grq_json_node *const config = st == GRQ_OK ? text_config(grq_json_root(document)) : NULL;
    if (st == GRQ_OK) st = find_kind(c, config, err);
    if (st == GRQ_OK) st = c->kind->read_geometry(c, config, err);
    grq_json_close(document);
    return st;
}

/* Our own kind has no config.json: memory.json is read by it, and a model file has its shape in the metadata. */
static grq_status read_folder(grq_checkpoint *c, const char *path, grq_error *err)
{
    struct stat info;
    char *const config = grq_path_join(path, "config.json");
    if (!config) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a path", path);
    grq_status st;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode) && grq_file_exists(config)) {
        st = read_config(c, config, err);
    } else {
        c->kind = &checkpoint_own;
        st = c->kind->read_geometry(c, NULL, err);
    }
    free(config);
    return st;
}

grq_status grq_checkpoint_open(const char *path, const grq_checkpoint_options *options, grq_checkpoint **out,
                               grq_error *err)
{
    *out = NULL;
    grq_checkpoint *c = calloc(1, sizeof *c);
    if (!c) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory to open it", path);
    if (options) c->e8m0 = options->e8m0;
    grq_status st = grq_shards_open(path, &c->shards, err);
    if (st == GRQ_OK) st = read_folder(c, path, err);
    /* A broken config of somebody's checkpoint is bad data, not bad usage of the tool. */
    if (st == GRQ_E_USAGE) st = grq_fail(err, GRQ_E_DATA, "%s", err ? err->message : "");
    if (st == GRQ_OK) *out = c;
    else grq_checkpoint_close(c);
    return st;
}

void grq_checkpoint_close(grq_checkpoint *c)
{
    if (!c) return;
    grq_shards_close(c->shards);
    free(c);
}

const grq_geometry *grq_checkpoint_geometry(const grq_checkpoint *c)
{
    return &c->geometry;
}

const char *grq_checkpoint_note(const grq_checkpoint *c)
{
    return c->note;
}

/* ---- layers ---- */

grq_status grq_checkpoint_table(grq_checkpoint *c, uint32_t layer_index, grq_table **out, grq_error *err)
{
    *out = NULL;
    return c->kind->open_table(c, layer_index, out, err);
}

grq_status grq_checkpoint_weights(grq_checkpoint *c, uint32_t layer_index, grq_layer_weights **out, grq_error *err)
{
    *out = NULL;
    grq_layer_weights *w = calloc(1, sizeof *w);
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "no memory for a layer's weights");
    w->geometry = c->geometry;
    const grq_status st = c->kind->read_weights(c, layer_index, w, err);
    if (st != GRQ_OK) {
        grq_layer_weights_free(w);
        return st;
    }
    w->view = (grq_memory_layer){ .geometry = &w->geometry,
                                  .layer_index = layer_index,
                                  .key_weight = w->key_weight,
                                  .value_weight = w->value_weight,
                                  .query_gain = w->query_gain,
                                  .key_gain = w->key_gain,
                                  .key_bias = w->key_bias,
                                  .value_bias = w->value_bias,
                                  .conv_gain = w->conv_gain,
                                  .conv_weight = w->conv_weight };
    *out = w;
    return GRQ_OK;
}

const grq_memory_layer *grq_layer_weights_view(const grq_layer_weights *w)
{
    return &w->view;
}

void grq_layer_weights_free(grq_layer_weights *w)
{
    if (!w) return;
    float *const owned[] = { w->key_weight, w->value_weight, w->query_gain, w->key_gain,
                             w->key_bias,   w->value_bias,   w->conv_gain,  w->conv_weight };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
    free(w);
}

/* ---- names and configs ---- */

grq_status checkpoint_find_prefix(grq_checkpoint *c, const char *suffix, char prefix[CHECKPOINT_PREFIX_BYTES],
                                  grq_error *err)
{
    const char *found = NULL, *name;
    const size_t n_suffix = strlen(suffix);
    for (size_t i = 0; (name = grq_shards_name(c->shards, i)); i++) {
        const size_t n = strlen(name);
        if (n < n_suffix || strcmp(name + n - n_suffix, suffix) || (n > n_suffix && name[n - n_suffix - 1] != '.'))
            continue;
        if (found)
            return grq_fail(err, GRQ_E_DATA, "%s: both %s and %s could be the layer's tensor",
                            grq_shards_path(c->shards), found, name);
        found = name;
    }
    if (!found) return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is missing", grq_shards_path(c->shards), suffix);
    const size_t n = strlen(found) - n_suffix;
    if (n >= CHECKPOINT_PREFIX_BYTES)
        return grq_fail(err, GRQ_E_DATA, "%s: the name %.80s... is too long", grq_shards_path(c->shards), found);
    memcpy(prefix, found, n);
    prefix[n] = '\0';
    return GRQ_OK;
}

grq_status checkpoint_u64(grq_json_node *config, const char *key, uint64_t min, uint64_t max, uint64_t *out,
                          grq_error *err)
{
    return grq_json_u64(config, key, min, max, out, err);
}

grq_status checkpoint_u32(grq_json_node *config, const char *key, uint32_t min, uint32_t max, uint32_t *out,
                          grq_error *err)
{
    uint64_t value;
    const grq_status st = grq_json_u64(config, key, min, max, &value, err);
    if (st == GRQ_OK) *out = (uint32_t)value;
    return st;
}
