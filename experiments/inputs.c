#include "inputs.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gaterq/file.h"
#include "gaterq/json.h"
#include "receipts.h"

/* The nearest folder at or above `folder` with datasets/worlds in it; NULL if there is none. */
static char *search_upwards(const char *folder)
{
    char path[PATH_MAX];
    if (!realpath(folder, path)) return NULL;
    for (;;) {
        char probe[PATH_MAX + 32];
        snprintf(probe, sizeof probe, "%s/datasets/worlds", path);
        if (grq_file_exists(probe)) return strdup(path);
        char *slash = strrchr(path, '/');
        if (!slash || slash == path) return NULL;
        *slash = '\0';
    }
}

static char *search_above(const char *file)
{
    char path[PATH_MAX];
    if (!realpath(file, path)) return NULL;
    char *const slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    return search_upwards(path);
}

char *input_root(const char *config_path)
{
    const char *given = getenv("GATERQ_ROOT");
    if (given && *given) return strdup(given);
    char *found = search_upwards(".");
    if (!found && config_path) found = search_above(config_path);
    if (!found) found = search_above("/proc/self/exe"); /* a build folder within the repository */
    return found ? found : strdup(".");
}

static grq_status world_of(grq_json *document, const char *config_path, grq_world **out, grq_error *err)
{
    grq_json_node *world;
    grq_status st = grq_config_status(grq_json_object(grq_json_root(document), "world", &world, err), err);
    if (st != GRQ_OK) return st;
    char *root = input_root(config_path);
    if (!root) return grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    st = grq_world_read(world, root, out, err);
    free(root);
    return st;
}

grq_status input_world(const char *config_path, const grq_model *model, grq_world **out, grq_error *err)
{
    *out = NULL;
    grq_json *document = NULL;
    grq_status st;
    if (config_path) {
        st = grq_config_status(grq_json_open(config_path, &document, err), err);
    } else {
        const char *text = grq_model_metadata(model, INPUT_CONFIG_KEY);
        if (!text)
            return grq_fail(err, GRQ_E_USAGE,
                            "the model file does not say which world it was trained on; give --config");
        st = grq_json_parse("config inside the model file", text, strlen(text), &document, err);
    }
    if (st == GRQ_OK) st = world_of(document, config_path, out, err);
    grq_json_close(document);
    return st;
}

grq_status input_codes(const char *folder, const grq_model *model, bool verified,
                       grq_codes *codes[GRQ_MAX_MEMORY_LAYERS], grq_error *err)
{
    const grq_geometry *g = &grq_model_shape_of(model)->memory;
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++) codes[l] = NULL;
    grq_status st = GRQ_OK;
    for (uint32_t l = 0; st == GRQ_OK && l < g->n_layers; l++) {
        char name[64];
        snprintf(name, sizeof name, "layer-%" PRIu32 ".safetensors", g->layer_ids[l]);
        char *path = grq_path_join(folder, name);
        if (!path) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
        else st = grq_codes_open(path, &codes[l], err);
        if (st == GRQ_OK && verified) st = receipt_check(path, codes[l], err);
        free(path);
    }
    if (st != GRQ_OK) input_codes_close(codes);
    return st;
}

void input_codes_close(grq_codes *codes[GRQ_MAX_MEMORY_LAYERS])
{
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++) {
        grq_codes_close(codes[l]);
        codes[l] = NULL;
    }
}

bool input_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

grq_status input_model_path(const char *path, char **out, grq_error *err)
{
    struct stat info;
    const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    *out = folder ? grq_path_join(path, "model.safetensors") : strdup(path);
    return *out ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a path", path);
}
