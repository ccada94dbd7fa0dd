/* The datasets of a trace, once: the writer, the reader and their checks all go through these tables. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gaterq/world.h"
#include "trace/lookups.h"
#include "trace/trace_internal.h"

#define AT_POSITIONS(member) offsetof(grq_trace, member)
#define AT_LAYER(member) offsetof(grq_trace_layer, member)
#define FLOAT_MAX 3.4028234663852886e38

const grq_trace_field grq_position_fields[] = {
    { "positions", "token", GRQ_H5_I32, GRQ_AXES_POSITION, AT_POSITIONS(token), -1, INT32_MAX, "1",
      "token id; -1 is a position that is not text" },
    { "positions", "sequence", GRQ_H5_U32, GRQ_AXES_POSITION, AT_POSITIONS(sequence), 0, UINT32_MAX, "1",
      "number of the sequence the position belongs to; bootstrap intervals draw whole sequences" },
    { "positions", "position", GRQ_H5_U32, GRQ_AXES_POSITION, AT_POSITIONS(position), 0, UINT32_MAX, "1",
      "0-based place within the sequence" },
    { "positions", "kind", GRQ_H5_U8, GRQ_AXES_POSITION, AT_POSITIONS(kind), 0, GRQ_N_TEXT_KINDS - 1, "1",
      "where the token comes from: index into the root attribute text_kinds" },
};
const size_t grq_n_position_fields = sizeof grq_position_fields / sizeof *grq_position_fields;

const grq_trace_field grq_layer_fields[] = {
    { "gates", "stage1", GRQ_H5_F32, GRQ_AXES_BRANCH, AT_LAYER(gates_stage1), 0, 1, "1",
      "gate of each residual branch computed from stage-1 rows, at the hidden states of the full table" },
    { "gates", "full", GRQ_H5_F32, GRQ_AXES_BRANCH, AT_LAYER(gates_full), 0, 1, "1",
      "gate of each residual branch computed from the full rows" },
    { "lookups", "row", GRQ_H5_I64, GRQ_AXES_COLUMN, AT_LAYER(row), 0, 9007199254740992.0, "1",
      "row number within the layer's table" },
    { "lookups", "head", GRQ_H5_U8, GRQ_AXES_COLUMN, AT_LAYER(head), 0, GRQ_MAX_COLUMNS - 1, "1",
      "hash function within the order" },
    { "lookups", "order", GRQ_H5_U8, GRQ_AXES_COLUMN, AT_LAYER(order), 1, GRQ_MAX_ORDER, "1",
      "n of the n-gram that ends at the position" },
    { "lookups", "gate_energy", GRQ_H5_F32, GRQ_AXES_COLUMN, AT_LAYER(gate_energy), 0, FLOAT_MAX, "1",
      "sum over branches of the squared stage-1 gate" },
    { "lookups", "tau", GRQ_H5_F32, GRQ_AXES_COLUMN, AT_LAYER(tau), 0, FLOAT_MAX, "1",
      "mean squared amplification of a row error by the column's block of the value projection" },
    { "lookups", "row_energy", GRQ_H5_F32, GRQ_AXES_COLUMN, AT_LAYER(row_energy), 0, FLOAT_MAX, "1",
      "squared norm of the stage-1 row" },
    { "lookups", "importance", GRQ_H5_F32, GRQ_AXES_COLUMN, AT_LAYER(importance), 0, FLOAT_MAX, "1",
      "gate_energy * tau * row_energy: what GateRQ ranks by" },
    { "lookups", "frequency", GRQ_H5_U64, GRQ_AXES_COLUMN, AT_LAYER(frequency), 0, 9007199254740992.0, "accesses",
      "how often the row was read in the held-out counting corpus" },
    { "lookups", "prior", GRQ_H5_F32, GRQ_AXES_COLUMN, AT_LAYER(prior), 0, FLOAT_MAX, "1",
      "expected gate energy of the row, from the counting corpus" },
    { "lookups", "depth", GRQ_H5_U8, GRQ_AXES_COLUMN, AT_LAYER(depth), 1, GRQ_MAX_STAGES, "stages",
      "stages that the gate ordering reads at the root attribute budget" },
    { "lookups", "gate_energy_full", GRQ_H5_F32, GRQ_AXES_COLUMN, AT_LAYER(gate_energy_full), 0, FLOAT_MAX, "1",
      "sum over branches of the squared gate of the full rows" },
    { "lookups", "weighted_reduction", GRQ_H5_F32, GRQ_AXES_COLUMN, AT_LAYER(weighted_reduction), -FLOAT_MAX, FLOAT_MAX,
      "1", "gate_energy_full * tau * (||e - e1||^2 - ||e - e2||^2), e1 and e2 the row at depth 1 and 2" },
    { "lookups", "injected_reduction", GRQ_H5_F32, GRQ_AXES_COLUMN, AT_LAYER(injected_reduction), -FLOAT_MAX, FLOAT_MAX,
      "1",
      "gate_energy_full * (||V_j (e - e1)||^2 - ||V_j (e - e2)||^2), V_j the column's block of the value projection" },
};
const size_t grq_n_layer_fields = sizeof grq_layer_fields / sizeof *grq_layer_fields;

void grq_field_path(const grq_trace_field *field, uint32_t layer, char path[GRQ_FIELD_PATH_BYTES])
{
    const bool of_layer = field >= grq_layer_fields && field < grq_layer_fields + grq_n_layer_fields;
    if (of_layer) snprintf(path, GRQ_FIELD_PATH_BYTES, "/layers/%" PRIu32 "/%s/%s", layer, field->group, field->name);
    else snprintf(path, GRQ_FIELD_PATH_BYTES, "/%s/%s", field->group, field->name);
}

void **grq_field_of_positions(const grq_trace *trace, const grq_trace_field *field)
{
    return (void **)((char *)trace + field->member);
}

void **grq_field_of_layer(const grq_trace_layer *layer, const grq_trace_field *field)
{
    return (void **)((char *)layer + field->member);
}

size_t grq_field_width(const grq_trace_layer *layer, const grq_trace_field *field)
{
    switch (field->axes) {
    case GRQ_AXES_BRANCH: return layer->n_branches;
    case GRQ_AXES_COLUMN: return layer->n_columns;
    default: return 1;
    }
}

static double value_at(grq_h5_type type, const void *values, size_t i)
{
    switch (type) {
    case GRQ_H5_I32: return ((const int32_t *)values)[i];
    case GRQ_H5_U32: return ((const uint32_t *)values)[i];
    case GRQ_H5_U8: return ((const uint8_t *)values)[i];
    case GRQ_H5_F32: return ((const float *)values)[i];
    case GRQ_H5_I64: return (double)((const int64_t *)values)[i];
    case GRQ_H5_U64: return (double)((const uint64_t *)values)[i];
    }
    return NAN;
}

grq_status grq_field_check(const grq_trace_field *field, const char *where, const void *values, size_t first, size_t n,
                           size_t width, grq_error *err)
{
    for (size_t i = 0; i < n * width; i++) {
        const double value = value_at(field->type, values, i);
        if (value >= field->min && value <= field->max) continue; /* false for NaN */
        if (width == 1)
            return grq_fail(err, GRQ_E_DATA, "%s[%zu] is %g, outside %g to %g", where, first + i, value, field->min,
                            field->max);
        return grq_fail(err, GRQ_E_DATA, "%s[%zu, %zu] is %g, outside %g to %g", where, first + i / width, i % width,
                        value, field->min, field->max);
    }
    return GRQ_OK;
}

static grq_status new_field(void **member, const grq_trace_field *field, size_t n, size_t width, grq_error *err)
{
    *member = grq_trace_array(n, width * grq_h5_type_bytes(field->type), field->name, err);
    return *member ? GRQ_OK : GRQ_E_NOMEM;
}

grq_status grq_trace_new(const grq_trace_shape *shape, size_t n_positions, grq_trace *out, grq_error *err)
{
    *out = (grq_trace){ .n_positions = n_positions, .n_layers = shape->n_layers, .row_dim = shape->row_dim };
    grq_status st = GRQ_OK;
    for (size_t f = 0; st == GRQ_OK && f < grq_n_position_fields; f++)
        st = new_field(grq_field_of_positions(out, &grq_position_fields[f]), &grq_position_fields[f], n_positions, 1,
                       err);
    for (uint32_t l = 0; st == GRQ_OK && l < shape->n_layers; l++) {
        grq_trace_layer *layer = &out->layers[l];
        layer->layer = shape->layer_ids[l];
        layer->n_columns = shape->n_columns;
        layer->n_branches = shape->n_branches;
        for (size_t f = 0; st == GRQ_OK && f < grq_n_layer_fields; f++) {
            const grq_trace_field *field = &grq_layer_fields[f];
            st = new_field(grq_field_of_layer(layer, field), field, n_positions, grq_field_width(layer, field), err);
        }
    }
    if (st != GRQ_OK) grq_trace_free(out);
    return st;
}

void grq_trace_free(grq_trace *trace)
{
    for (size_t f = 0; f < grq_n_position_fields; f++) free(*grq_field_of_positions(trace, &grq_position_fields[f]));
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++)
        for (size_t f = 0; f < grq_n_layer_fields; f++)
            free(*grq_field_of_layer(&trace->layers[l], &grq_layer_fields[f]));
    *trace = (grq_trace){ 0 };
}
