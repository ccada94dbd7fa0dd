/* experiments/provenance.h - what every result carries: commit, dirty flag, compiler, BLAS kernel, config digest, seed.
 */
#ifndef GATERQ_PROVENANCE_H
#define GATERQ_PROVENANCE_H

#include <stdint.h>

#include "gaterq/json.h"
#include "gaterq/safetensors.h"

enum { PROVENANCE_ITEMS = 8 };

typedef struct {
    grq_metadata items[PROVENANCE_ITEMS];
    size_t n_items;
    char text[PROVENANCE_ITEMS][256]; /* what the items' values point to */
} provenance;

/* Collects; `config_path` may be NULL. */
grq_status provenance_collect(provenance *p, const char *config_path, uint64_t seed, grq_error *err);
void provenance_write(const provenance *p, const char *key, grq_json_writer *writer);

#endif
