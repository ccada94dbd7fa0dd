/* gaterq/trace.h - per-look-up traces in HDF5: everything the analyses need, without the model.
 *
 * One dataset per quantity (no compounds), chunked, shuffled, deflated, with dimension scales, units and a description
 * each; object times off, so the same run gives the same bytes. Layout: docs/format.md.
 *   /positions/{token,sequence,position,kind}                                   (positions)
 *   /layers/<L>/gates/{stage1,full}                                             (positions, branches)
 *   /layers/<L>/lookups/{row,head,order,gate_energy,tau,row_energy,importance,frequency,prior,depth,
 *                        gate_energy_full,weighted_reduction,injected_reduction}  (positions, columns)
 * In a trace the hidden states follow the full table; stage-1 gates are computed at the same hidden states.
 *   importance          = gate_energy * tau * row_energy                (stage 1 only: what a server knows)
 *   weighted_reduction  = gate_energy_full * tau * (||e - e1||^2 - ||e - e2||^2)        (the paper's weighted error)
 *   injected_reduction  = gate_energy_full * (||V_j (e - e1)||^2 - ||V_j (e - e2)||^2)  (the true one, per row) */
#ifndef GATERQ_TRACE_H
#define GATERQ_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/codec.h"
#include "gaterq/counts.h"
#include "gaterq/model.h"
#include "gaterq/policy.h"
#include "gaterq/progress.h"

/* Sequences to trace: tokens concatenated, `offsets` (n_sequences + 1). */
typedef struct {
    size_t n_sequences;
    const size_t *offsets;
    const int32_t *tokens;
    const uint8_t *kinds; /* per token, grq_text_kind */
} grq_sequences;

/* Provenance and description, written as attributes of the root group; values borrowed during the call. */
typedef struct {
    const grq_metadata *metadata;
    size_t n_metadata;
} grq_trace_info;

/* Runs the model over the sequences and writes the trace at `path`, complete or not at all, with memory that does not
 * grow with the number of positions. `depth` is what the gate ordering gives each look-up at `budget`, one batch per
 * layer and block of `batch_positions`. */
grq_status grq_trace_capture(const grq_model *model, const grq_codes *const *codes, const grq_counts *counts,
                             const grq_sequences *sequences, const grq_budget *budget, uint32_t batch_positions,
                             const grq_trace_info *info, const char *path, const grq_progress *progress,
                             grq_error *err);

/* A trace read back whole, for analysis. */
typedef struct {
    uint32_t layer; /* backbone layer */
    uint32_t n_columns, n_branches;
    float *gates_stage1, *gates_full; /* (n_positions, n_branches) */
    int64_t *row;                     /* (n_positions, n_columns), as all below */
    uint8_t *head, *order;            /* hash function within the order; the n of the n-gram */
    float *gate_energy, *gate_energy_full, *tau, *row_energy, *importance, *prior, *weighted_reduction,
        *injected_reduction;
    uint64_t *frequency;
    uint8_t *depth;
} grq_trace_layer;

typedef struct {
    size_t n_positions;
    int32_t *token;
    uint32_t *sequence, *position;
    uint8_t *kind; /* grq_text_kind */
    uint32_t n_layers;
    grq_trace_layer layers[GRQ_MAX_MEMORY_LAYERS];
    uint32_t row_dim;
} grq_trace;

/* Refuses by name what is missing, of the wrong type or shape, or holds a NaN. Caller ends with grq_trace_free. */
grq_status grq_trace_open(const char *path, grq_trace *out, grq_error *err);
void grq_trace_free(grq_trace *trace);

#endif
