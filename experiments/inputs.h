/* experiments/inputs.h - opening what several commands take: a model, its world, its codes. */
#ifndef GATERQ_INPUTS_H
#define GATERQ_INPUTS_H

#include <stdbool.h>

#include "gaterq/codec.h"
#include "gaterq/model.h"
#include "gaterq/world.h"

/* Metadata keys of a model file that say where it came from. */
#define INPUT_CONFIG_KEY "gaterq.config" /* the experiment config it was trained by, whole */
#define INPUT_SEED_KEY "gaterq.seed"

/* The world of `config_path`, or, when that is NULL, of the config kept in the model file. `model` may be NULL if
 * config_path is not. */
grq_status input_world(const char *config_path, const grq_model *model, grq_world **out, grq_error *err);

/* Opens DIR/layer-<L>.safetensors for every memory layer of the model into codes[]; all or none. `verified`: each must
 * have a receipt of gaterq verify beside it. */
grq_status input_codes(const char *folder, const grq_model *model, bool verified,
                       grq_codes *codes[GRQ_MAX_MEMORY_LAYERS], grq_error *err);
#define INPUT_UNVERIFIED_OPTION(target)                                                                                \
    {                                                                                                                  \
        "unverified", NULL, "take codes that have no receipt of gaterq verify", TOOL_FLAG, target, false, 0, 0         \
    }
void input_codes_close(grq_codes *codes[GRQ_MAX_MEMORY_LAYERS]);

/* Folder that relative paths of a config start from: $GATERQ_ROOT, else the nearest folder above the working folder, or
 * above `config_path`, or above this program, that holds datasets/worlds; else ".". Caller frees; NULL when out of
 * memory. */
char *input_root(const char *config_path);

/* The model file that `path` is, or model.safetensors in the folder that it is. The caller frees. */
grq_status input_model_path(const char *path, char **out, grq_error *err);

/* Both names lead to one existing file: a result must not take the place of what it is made from. */
bool input_same_file(const char *a, const char *b);

#endif
