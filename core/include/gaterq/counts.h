/* gaterq/counts.h - what a held-out counting corpus says about each row: how often it is read, and with what gates.
 *
 * Frequencies and expected gate energies come from a corpus of their own, never from the text that is evaluated.
 * Gate energies are stage-1 ones, the same quantity that the gate ordering uses. */
#ifndef GATERQ_COUNTS_H
#define GATERQ_COUNTS_H

#include <stdint.h>

#include "gaterq/codec.h"
#include "gaterq/model.h"
#include "gaterq/progress.h"

typedef struct {
    uint32_t n_layers;
    uint64_t n_positions; /* tokens counted */
    uint64_t n_rows[GRQ_MAX_MEMORY_LAYERS];
    uint64_t *count[GRQ_MAX_MEMORY_LAYERS];         /* (n_rows) accesses */
    double *gate_energy_sum[GRQ_MAX_MEMORY_LAYERS]; /* (n_rows) */
    double mean_gate_energy[GRQ_MAX_MEMORY_LAYERS]; /* over all look-ups */
} grq_counts;

/* Runs the model over `tokens` in windows of `window` and counts. `codes` has one entry per memory layer. Same bytes
 * for any n_threads. The caller ends *out with grq_counts_free. */
grq_status grq_counts_run(const grq_model *model, const grq_codes *const *codes, const int32_t *tokens, size_t n_tokens,
                          uint32_t window, uint32_t n_threads, const grq_progress *progress, grq_counts *out,
                          grq_error *err);
grq_status grq_counts_save(const grq_counts *counts, const char *path, const grq_metadata *metadata, size_t n_metadata,
                           grq_error *err);
grq_status grq_counts_open(const char *path, grq_counts *out, grq_error *err);
void grq_counts_free(grq_counts *counts);

/* Expected gate energy of a row: (sum + mean) / (count + 1), one pseudo-count of the layer's mean. */
double grq_counts_prior(const grq_counts *counts, uint32_t layer_index, uint64_t row);

#endif
