/* The released geometries, as data. Source: specs/deepseek-v41-engram.md section 2. */
#include <stdio.h>
#include <string.h>

#include "gaterq/geometry.h"

static const grq_geometry families[] = {
    { .family = "deepseek-v41",
      .n_layers = 2,
      .layer_ids = { 1, 14 },
      .min_order = 2,
      .max_order = 4,
      .n_heads = 8,
      .row_dim = 256,
      .width = 5120,
      .n_branches = 4,
      .prime_start = 16000000,
      .n_ids = 99092,
      .pad_id = 2,
      .multiplier_seed = 10007,
      .norm_eps = 1e-20,
      .gate_clamp = 1e-6 },
};

grq_status grq_geometry_family(const char *name, grq_geometry *out, grq_error *err)
{
    char known[256] = "";
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (!strcmp(families[i].family, name)) {
            *out = families[i];
            return grq_geometry_derive(out, err);
        }
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", families[i].family);
    }
    return grq_fail(err, GRQ_E_USAGE, "family \"%s\" is not known; known: %s", name, known);
}
