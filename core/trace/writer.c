/* A trace being written: every dataset grows by one block at a time, so memory does not depend on their number. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/world.h"
#include "trace/lookups.h"
#include "trace/trace_internal.h"

enum { MAX_FIELDS = 32 };

struct grq_trace_writer {
    grq_h5 *file;
    grq_trace_shape shape;
    size_t n_written;
    grq_h5_dataset *axis_position, *axis_column, *axis_branch;
    grq_h5_dataset *positions[MAX_FIELDS];
    grq_h5_dataset *layers[GRQ_MAX_MEMORY_LAYERS][MAX_FIELDS];
};

/* ---- what stands at the top of the file ---- */

static grq_status put_text_kinds(grq_h5 *file, grq_error *err)
{
    char kinds[256] = "";
    for (int k = 0; k < GRQ_N_TEXT_KINDS; k++) {
        const size_t used = strlen(kinds);
        snprintf(kinds + used, sizeof kinds - used, "%s%s", k ? "," : "", grq_text_kind_name((grq_text_kind)k));
    }
    return grq_h5_put_string(file, "/", "text_kinds", kinds, err);
}

static grq_status put_budget(grq_h5 *file, const grq_budget *budget, grq_error *err)
{
    char text[96] = "";
    for (uint32_t i = 0; i < budget->n_fractions; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.17g", i ? "," : "", budget->fraction[i]);
    }
    return grq_h5_put_string(file, "/", "budget", text, err);
}

static grq_status put_root(grq_h5 *file, const grq_trace_shape *shape, const grq_trace_info *info, grq_error *err)
{
    grq_status st = grq_h5_put_string(file, "/", "format", GRQ_TRACE_FORMAT, err);
    if (st == GRQ_OK) st = grq_h5_put_u64(file, "/", "format_version", GRQ_TRACE_VERSION, err);
    if (st == GRQ_OK)
        st = grq_h5_put_string(
            file, "/", "description",
            "Every look-up of a conditional memory: what it reads, what its gate is, what precision is worth. "
            "Hidden states follow the full table.",
            err);
    if (st == GRQ_OK) st = grq_h5_put_u64(file, "/", "row_dim", shape->row_dim, err);
    if (st == GRQ_OK) st = put_budget(file, &shape->budget, err);
    if (st == GRQ_OK) st = put_text_kinds(file, err);
    for (size_t i = 0; st == GRQ_OK && info && i < info->n_metadata; i++)
        st = grq_h5_put_string(file, "/", info->metadata[i].key, info->metadata[i].value, err);
    return st;
}

/* ---- axes and datasets ---- */

static grq_status make_axis(grq_h5 *file, const char *name, const char *axis, const char *description, uint64_t n,
                            grq_h5_dataset **out, grq_error *err)
{
    const grq_h5_spec spec = { .name = name, .type = GRQ_H5_U64, .rank = 1, .units = "1", .description = description };
    uint64_t *values = grq_trace_array(n, sizeof *values, "axis values", err);
    if (!values) return GRQ_E_NOMEM;
    for (uint64_t i = 0; i < n; i++) values[i] = i;
    grq_status st = grq_h5_write(file, &spec, n, values, out, err);
    if (st == GRQ_OK) st = grq_h5_make_scale(*out, axis, err);
    free(values);
    return st;
}

static grq_status make_axes(grq_trace_writer *w, grq_error *err)
{
    grq_status st =
        make_axis(w->file, "/axes/position", "position",
                  "number of the position in this file; sequences follow each other", 0, &w->axis_position, err);
    if (st == GRQ_OK)
        st = make_axis(w->file, "/axes/column", "column", "hash column: (order - smallest order) * heads + head",
                       w->shape.n_columns, &w->axis_column, err);
    if (st == GRQ_OK)
        st = make_axis(w->file, "/axes/branch", "branch", "residual branch, each with its own gate",
                       w->shape.n_branches, &w->axis_branch, err);
    return st;
}

static grq_status make_dataset(grq_trace_writer *w, const grq_trace_field *field, uint32_t layer, grq_h5_dataset **out,
                               grq_error *err)
{
    char path[GRQ_FIELD_PATH_BYTES];
    grq_field_path(field, layer, path);
    const bool by_branch = field->axes == GRQ_AXES_BRANCH;
    const grq_h5_spec spec = {
        .name = path,
        .type = field->type,
        .rank = field->axes == GRQ_AXES_POSITION ? 1 : 2,
        .shape = { 0, by_branch ? w->shape.n_branches : w->shape.n_columns },
        .units = field->units,
        .description = field->description,
    };
    grq_status st = grq_h5_dataset_create(w->file, &spec, out, err);
    if (st == GRQ_OK) st = grq_h5_attach_scale(*out, 0, w->axis_position, err);
    if (st == GRQ_OK && spec.rank == 2)
        st = grq_h5_attach_scale(*out, 1, by_branch ? w->axis_branch : w->axis_column, err);
    return st;
}

static grq_status make_datasets(grq_trace_writer *w, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t f = 0; st == GRQ_OK && f < grq_n_position_fields; f++)
        st = make_dataset(w, &grq_position_fields[f], 0, &w->positions[f], err);
    for (uint32_t l = 0; st == GRQ_OK && l < w->shape.n_layers; l++) {
        for (size_t f = 0; st == GRQ_OK && f < grq_n_layer_fields; f++)
            st = make_dataset(w, &grq_layer_fields[f], w->shape.layer_ids[l], &w->layers[l][f], err);
        char group[GRQ_FIELD_PATH_BYTES];
        snprintf(group, sizeof group, "/layers/%" PRIu32, w->shape.layer_ids[l]);
        if (st == GRQ_OK)
            st = grq_h5_put_string(w->file, group, "description",
                                   "one memory layer, named by its 0-based decoder layer", err);
    }
    return st;
}

grq_status grq_trace_writer_open(const char *path, const grq_trace_shape *shape, const grq_trace_info *info,
                                 grq_trace_writer **out, grq_error *err)
{
    *out = NULL;
    grq_trace_writer *w = grq_trace_array(1, sizeof *w, "trace writer", err);
    if (!w) return GRQ_E_NOMEM;
    w->shape = *shape;
    grq_status st = grq_h5_create(path, &w->file, err);
    if (st == GRQ_OK) st = put_root(w->file, shape, info, err);
    if (st == GRQ_OK) st = make_axes(w, err);
    if (st == GRQ_OK) st = make_datasets(w, err);
    if (st == GRQ_OK) *out = w;
    else grq_trace_writer_discard(w);
    return st;
}

/* ---- blocks ---- */

static grq_status append_field(grq_trace_writer *w, const grq_trace_field *field, uint32_t layer,
                               grq_h5_dataset *dataset, const void *values, size_t n, size_t width, grq_error *err)
{
    char path[GRQ_FIELD_PATH_BYTES];
    grq_field_path(field, layer, path);
    grq_status st = grq_field_check(field, path, values, w->n_written, n, width, err);
    if (st == GRQ_OK) return grq_h5_append(dataset, n, values, err);
    return grq_fail_prefix(err, st, "%s", grq_h5_path(w->file));
}

static grq_status append_axis(grq_trace_writer *w, size_t n, grq_error *err)
{
    uint64_t *numbers = grq_trace_array(n, sizeof *numbers, "positions", err);
    if (!numbers) return GRQ_E_NOMEM;
    for (size_t i = 0; i < n; i++) numbers[i] = w->n_written + i;
    const grq_status st = grq_h5_append(w->axis_position, n, numbers, err);
    free(numbers);
    return st;
}

grq_status grq_trace_writer_append(grq_trace_writer *w, const grq_trace *block, grq_error *err)
{
    const size_t n = block->n_positions;
    if (n > w->shape.n_positions - w->n_written)
        return grq_fail(err, GRQ_E_USAGE, "%s: %zu positions after %zu are more than the %zu announced",
                        grq_h5_path(w->file), n, w->n_written, w->shape.n_positions);
    grq_status st = append_axis(w, n, err);
    for (size_t f = 0; st == GRQ_OK && f < grq_n_position_fields; f++) {
        const grq_trace_field *field = &grq_position_fields[f];
        st = append_field(w, field, 0, w->positions[f], *grq_field_of_positions(block, field), n, 1, err);
    }
    for (uint32_t l = 0; st == GRQ_OK && l < w->shape.n_layers; l++)
        for (size_t f = 0; st == GRQ_OK && f < grq_n_layer_fields; f++) {
            const grq_trace_field *field = &grq_layer_fields[f];
            const grq_trace_layer *layer = &block->layers[l];
            st = append_field(w, field, layer->layer, w->layers[l][f], *grq_field_of_layer(layer, field), n,
                              grq_field_width(layer, field), err);
        }
    if (st == GRQ_OK) w->n_written += n;
    return st;
}

grq_status grq_trace_writer_commit(grq_trace_writer *w, grq_error *err)
{
    grq_status st = GRQ_OK;
    if (w->n_written != w->shape.n_positions)
        st = grq_fail(err, GRQ_E_USAGE, "%s: %zu of %zu positions were written", grq_h5_path(w->file), w->n_written,
                      w->shape.n_positions);
    if (st != GRQ_OK) {
        grq_trace_writer_discard(w);
        return st;
    }
    st = grq_h5_commit(w->file, err);
    free(w);
    return st;
}

void grq_trace_writer_discard(grq_trace_writer *w)
{
    if (!w) return;
    grq_h5_close(w->file);
    free(w);
}
