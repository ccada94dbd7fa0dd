/* Counts as safetensors: n_positions U64 [1], mean_gate_energy F64 [layers], and per memory layer i (an index, not the
 * backbone's number) memory.<i>.count U64 [rows] and memory.<i>.gate_energy_sum F64 [rows]. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/counts.h"
#include "trace/lookups.h"

static const char format_name[] = "gaterq-counts";
enum { N_TENSORS = 2 + 2 * GRQ_MAX_MEMORY_LAYERS, NAME_BYTES = 40, N_OWN_METADATA = 2 };

static grq_tensor vector(const char *name, grq_dtype dtype, uint64_t n, const void *data)
{
    return (grq_tensor){
        .name = name, .dtype = dtype, .rank = 1, .shape = { n }, .n_bytes = n * grq_dtype_bytes(dtype), .data = data
    };
}

static void tensor_names(uint32_t l, char count[NAME_BYTES], char sum[NAME_BYTES])
{
    snprintf(count, NAME_BYTES, "memory.%" PRIu32 ".count", l);
    snprintf(sum, NAME_BYTES, "memory.%" PRIu32 ".gate_energy_sum", l);
}

grq_status grq_counts_save(const grq_counts *counts, const char *path, const grq_metadata *metadata, size_t n_metadata,
                           grq_error *err)
{
    grq_metadata *all = grq_trace_array(n_metadata + N_OWN_METADATA, sizeof *all, "metadata entries", err);
    if (!all) return GRQ_E_NOMEM;
    all[0] = (grq_metadata){ "format", format_name };
    all[1] = (grq_metadata){ "description", "row accesses and stage-1 gate energies over a held-out counting corpus" };
    if (n_metadata) memcpy(all + N_OWN_METADATA, metadata, n_metadata * sizeof *all);
    char names[2 * GRQ_MAX_MEMORY_LAYERS][NAME_BYTES];
    grq_tensor tensors[N_TENSORS] = {
        vector("n_positions", GRQ_U64, 1, &counts->n_positions),
        vector("mean_gate_energy", GRQ_F64, counts->n_layers, counts->mean_gate_energy),
    };
    size_t n = 2;
    for (uint32_t l = 0; l < counts->n_layers; l++) {
        tensor_names(l, names[2 * l], names[2 * l + 1]);
        tensors[n++] = vector(names[2 * l], GRQ_U64, counts->n_rows[l], counts->count[l]);
        tensors[n++] = vector(names[2 * l + 1], GRQ_F64, counts->n_rows[l], counts->gate_energy_sum[l]);
    }
    const grq_status st = grq_safetensors_write(path, tensors, n, all, n_metadata + N_OWN_METADATA, err);
    free(all);
    return st;
}

static grq_status copy_vector(const grq_safetensors *file, const char *name, grq_dtype dtype, uint64_t n, void *out,
                              grq_error *err)
{
    const grq_tensor *tensor;
    const grq_status st = grq_safetensors_get(file, name, dtype, 1, &n, &tensor, err);
    if (st == GRQ_OK) memcpy(out, tensor->data, tensor->n_bytes);
    return st;
}

static grq_status check_layer(const char *path, const grq_counts *c, uint32_t l, grq_error *err)
{
    uint64_t n_reads = 0;
    for (uint64_t r = 0; r < c->n_rows[l]; r++) {
        const double sum = c->gate_energy_sum[l][r];
        if (!isfinite(sum) || sum < 0 || (c->count[l][r] == 0 && sum != 0))
            return grq_fail(err, GRQ_E_DATA,
                            "%s: memory.%" PRIu32 ".gate_energy_sum[%" PRIu64 "] is %g, its row's count %" PRIu64, path,
                            l, r, sum, c->count[l][r]);
        if (__builtin_add_overflow(n_reads, c->count[l][r], &n_reads))
            return grq_fail(err, GRQ_E_DATA, "%s: memory.%" PRIu32 ".count adds up to more than 2^64", path, l);
    }
    /* Every position reads one row per column. */
    if (c->n_positions == 0 || n_reads % c->n_positions)
        return grq_fail(err, GRQ_E_DATA,
                        "%s: memory.%" PRIu32 ".count adds up to %" PRIu64 ", no multiple of n_positions (%" PRIu64 ")",
                        path, l, n_reads, c->n_positions);
    if (!isfinite(c->mean_gate_energy[l]) || c->mean_gate_energy[l] < 0)
        return grq_fail(err, GRQ_E_DATA, "%s: mean_gate_energy[%" PRIu32 "] is %g", path, l, c->mean_gate_energy[l]);
    return GRQ_OK;
}

static grq_status read_layer(const char *path, const grq_safetensors *file, uint32_t l, grq_counts *out, grq_error *err)
{
    char count[NAME_BYTES], sum[NAME_BYTES];
    tensor_names(l, count, sum);
    const grq_tensor *tensor;
    grq_status st = grq_safetensors_get(file, count, GRQ_U64, 0, NULL, &tensor, err);
    if (st != GRQ_OK) return st;
    if (tensor->rank != 1)
        return grq_fail(err, GRQ_E_DATA, "%s: %s has rank %" PRIu32 ", not 1", path, count, tensor->rank);
    const uint64_t n_rows = out->n_rows[l] = tensor->shape[0];
    out->count[l] = grq_trace_array(n_rows, sizeof *out->count[l], "row counts", err);
    out->gate_energy_sum[l] = grq_trace_array(n_rows, sizeof *out->gate_energy_sum[l], "gate energy sums", err);
    if (!out->count[l] || !out->gate_energy_sum[l]) return GRQ_E_NOMEM;
    st = copy_vector(file, count, GRQ_U64, n_rows, out->count[l], err);
    if (st == GRQ_OK) st = copy_vector(file, sum, GRQ_F64, n_rows, out->gate_energy_sum[l], err);
    return st;
}

grq_status grq_counts_open(const char *path, grq_counts *out, grq_error *err)
{
    *out = (grq_counts){ 0 };
    grq_safetensors *file = NULL;
    grq_status st = grq_safetensors_open(path, &file, err);
    if (st != GRQ_OK) return st;
    const char *format = grq_safetensors_metadata(file, "format");
    const grq_tensor *mean = grq_safetensors_find(file, "mean_gate_energy");
    if (!format || strcmp(format, format_name))
        st = grq_fail(err, GRQ_E_DATA, "%s: not row counts (metadata format is \"%s\"); make them with gaterq count",
                      path, format ? format : "missing");
    else if (!mean || mean->dtype != GRQ_F64 || mean->rank != 1 || mean->shape[0] < 1 ||
             mean->shape[0] > GRQ_MAX_MEMORY_LAYERS)
        st = grq_fail(err, GRQ_E_DATA, "%s: mean_gate_energy must be F64 with 1 to %d entries", path,
                      GRQ_MAX_MEMORY_LAYERS);
    else out->n_layers = (uint32_t)mean->shape[0];
    if (st == GRQ_OK && grq_safetensors_count(file) != 2 + 2 * (size_t)out->n_layers)
        st = grq_fail(err, GRQ_E_DATA, "%s: holds %zu tensors; counts of %" PRIu32 " layers have %" PRIu32, path,
                      grq_safetensors_count(file), out->n_layers, 2 + 2 * out->n_layers);
    if (st == GRQ_OK) st = copy_vector(file, "n_positions", GRQ_U64, 1, &out->n_positions, err);
    if (st == GRQ_OK) st = copy_vector(file, "mean_gate_energy", GRQ_F64, out->n_layers, out->mean_gate_energy, err);
    for (uint32_t l = 0; st == GRQ_OK && l < out->n_layers; l++) {
        st = read_layer(path, file, l, out, err);
        if (st == GRQ_OK) st = check_layer(path, out, l, err);
    }
    grq_safetensors_close(file);
    if (st != GRQ_OK) grq_counts_free(out);
    return st;
}
